//! The main job with a client that much of the world uses: records are produced to twelve partitions and read by one group
//! whose consumers come, are killed and leave, and whose broker is killed. Nothing is skipped.
//!
//! Consumers are processes, so that they can be killed: this executable itself, told by its environment.

mod consumer;
mod group;

use std::time::Duration;

use group::Group;
use kaas_tests::broker::Setup;
use kaas_tests::topic;
use rdkafka::config::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

const TOPIC: &str = "job";
const PARTITIONS: i32 = 12;

/// A round of the job may take this long on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() {
    if let Some(task) = consumer::Task::of_environment() {
        return task.run();
    }
    // As under the usual harness, a filter that does not match leaves the test out.
    let name = "librdkafka_does_the_main_job";
    let filters: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    if filters.iter().all(|filter| name.contains(filter.as_str())) {
        job();
        println!("test {name} ... ok");
    }
}

fn job() {
    let mut broker = Setup::new(env!("CARGO_BIN_EXE_kaas"))
        .set("group.initial.rebalance.delay.ms", 200)
        .set("group.min.session.timeout.ms", 1_000)
        .start();
    topic::create(&mut broker.connect(), TOPIC, PARTITIONS);
    let servers = broker.address.to_string();
    let mut produced = 0;

    let mut group = Group::new(&servers);
    let [first, second, third] = [group.start(), group.start(), group.start()];
    group.wait_for_partitions(&[(first, 4), (second, 4), (third, 4)]);
    produced += produce(&servers, 100_000);
    group.wait_for_all(produced);
    group.assert_each_partition_was_read_once_and_by_one();

    let fourth = group.start();
    group.wait_for_partitions(&[(first, 3), (second, 3), (third, 3), (fourth, 3)]);
    produced += produce(&servers, 12_000);
    group.wait_for_all(produced);

    group.kill(second);
    produced += produce(&servers, 12_000);
    group.wait_for_partitions(&[(first, 4), (third, 4), (fourth, 4)]);
    group.wait_for_all(produced);

    group.leave(third);
    group.wait_for_partitions(&[(first, 6), (fourth, 6)]);
    produced += produce(&servers, 12_000);
    group.wait_for_all(produced);

    broker.kill();
    broker.start_again();
    produced += produce(&servers, 12_000);
    group.wait_for_all(produced);

    group.leave(first);
    group.leave(fourth);
    let committed = group.committed();
    produced += produce(&servers, 12_000);
    let last = group.start();
    group.wait_for_partitions(&[(last, 12)]);
    group.wait_for_all(produced);
    group.assert_started_at(last, &committed);
}

/// Produces to all partitions in turn, and gives the number when all are acknowledged.
fn produce(servers: &str, records: usize) -> usize {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", servers)
        .set("enable.idempotence", "true")
        .set("linger.ms", "5")
        .create()
        .expect("a producer");
    for number in 0..records {
        let payload = format!("record {number}");
        let mut record: BaseRecord<str, str> = BaseRecord::to(TOPIC)
            .partition(number as i32 % PARTITIONS)
            .payload(&payload);
        while let Err((error, again)) = producer.send(record) {
            let is_full = matches!(
                error,
                KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull)
            );
            assert!(is_full, "produce: {error}");
            producer.poll(Duration::from_millis(10));
            record = again;
        }
    }
    producer
        .flush(PATIENCE)
        .expect("all records are acknowledged");
    records
}
