//! Records written to the partitions of a new topic, then read. Every offset that is given out is checked, and so is
//! every batch that comes back.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use anyhow::bail;
use bytes::Bytes;
use hdrhistogram::Histogram;
use kaas_wire::batch::{BatchBuilder, Compression, batches};
use kaas_wire::messages::delete_topics::{
    DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};
use kaas_wire::messages::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic};
use kaas_wire::messages::produce::{
    PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData,
};
use kaas_wire::{ApiKey, ErrorCode, Records};
use tokio::time::sleep;

use crate::Run;
use crate::client::{Answer, Connection, Failure, Frame};
use crate::clock;
use crate::cluster::{Cluster, Topic};
use crate::load::Crew;
use crate::measure::{Measure, latencies, micros};

const TIMEOUT_MS: i32 = 60_000;
const FETCH_WAIT_MS: i32 = 500;

/// Largest answer to a fetch: what Kafka's clients ask for.
const FETCH_MAX_BYTES: i32 = 50 << 20;

/// Stands where the fetch offset of the first partition will be; the next partition has the next number.
const PLACEHOLDER: i64 = 0x5eed_0ff5_e7fe_0000;

/// How long records that nobody acknowledged may take to appear.
const UNACKNOWLEDGED_PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy)]
struct Batch<'a> {
    bytes: &'a Bytes,
    records: i64,
    acks: i16,
}

pub async fn run(mut run: Run) -> anyhow::Result<Run> {
    let megabytes: f64 = run.arguments.take("megabytes", 2048.0)?;
    let partitions: usize = run.arguments.take("partitions", 12)?;
    let connections: usize = run.arguments.take("connections", partitions)?;
    let in_flight: usize = run.arguments.take("in-flight", 60)?;
    let acks: i16 = run.arguments.take("acks", -1)?;
    let batch_bytes: usize = run.arguments.take("batch-bytes", 65_536)?;
    let record_bytes: usize = run.arguments.take("record-bytes", 1_024)?;
    let compression: String = run.arguments.take("compression", "none".to_owned())?;
    let consumers: usize = run.arguments.take("consumers", 4)?;
    let fetch_bytes: i32 = run.arguments.take("fetch-bytes", 1 << 20)?;
    let rounds: usize = run.arguments.take("fetch-rounds", 1)?;
    let mut cluster = run.begin().await?;

    let (batch, records) = make_batch(record_bytes, batch_bytes, compression_of(&compression)?);
    let batch = Batch {
        bytes: &batch,
        records,
        acks,
    };
    let topic = cluster
        .topic(&format!("bench-produce-{}", clock::wall_ms()), partitions)
        .await?;
    let per_partition =
        (megabytes * 1e6 / batch.bytes.len() as f64 / partitions as f64).ceil() as usize;
    let count = per_partition * partitions;
    let total_bytes = (count * batch.bytes.len()) as f64;
    run.report
        .figure("batch on the wire", batch.bytes.len() as f64, "B");
    run.report.figure("records in a batch", records as f64, "");

    let before = run.report.broker_usage()?;
    let start = clock::now();
    let mut crew = Crew::new();
    let mut parts = Vec::new();
    for share in partition_shares(&topic, connections) {
        parts.push(share);
    }
    let depth = (in_flight / parts.len()).max(1);
    for (address, share) in parts {
        let connection = cluster.open(&address).await?;
        let producer = Producer::new(connection, &topic, &share, batch)?;
        let measure = run.measure.clone();
        crew.add(
            &run.measure,
            producer.produce(per_partition, depth, acks == 0, measure),
        );
    }
    let produced = watched(&run.measure, crew).await?;
    if acks == 0 {
        wait_for_ends(&mut cluster, &topic, per_partition as i64 * records).await?;
    }
    let seconds = start.elapsed().as_secs_f64();
    run.report
        .figure("produced", total_bytes / seconds / 1e6, "MB/s");
    run.report.figure(
        "produced records",
        count as f64 * records as f64 / seconds,
        "1/s",
    );
    run.report.figure("produce took", seconds, "s");
    run.report
        .broker_cost(before, total_bytes / 1e6, "MB produced")?;
    run.report.latency("produce", merged(produced));
    for (partition, end) in cluster.end_offsets(&topic).await?.into_iter().enumerate() {
        let expected = per_partition as i64 * records;
        if end != expected {
            run.report.wrong(format!(
                "partition {partition} ends at {end}, {expected} records were written"
            ));
        }
    }

    for round in 1..=rounds {
        let before = run.report.broker_usage()?;
        let start = clock::now();
        let mut crew = Crew::new();
        for (address, share) in partition_shares(&topic, consumers) {
            let connection = cluster.open(&address).await?;
            let consumer = Consumer::new(connection, &topic, &share, fetch_bytes)?;
            let measure = run.measure.clone();
            crew.add(
                &run.measure,
                consumer.consume(per_partition as i64 * records, measure),
            );
        }
        let consumed = watched(&run.measure, crew).await?;
        let seconds = start.elapsed().as_secs_f64();
        run.report.figure(
            &format!("consumed, round {round}"),
            total_bytes / seconds / 1e6,
            "MB/s",
        );
        run.report.broker_cost(
            before,
            total_bytes / 1e6,
            &format!("MB consumed, round {round}"),
        )?;
        run.report
            .latency(&format!("fetch, round {round}"), merged(consumed));
    }

    let state = DeleteTopicState {
        name: Some(topic.name.clone()),
        ..Default::default()
    };
    let request = DeleteTopicsRequest {
        topics: vec![state],
        topic_names: vec![topic.name.clone()],
        timeout_ms: TIMEOUT_MS,
    };
    let deleted: DeleteTopicsResponse = cluster.control.call(&request).await?;
    for result in deleted
        .responses
        .iter()
        .filter(|result| !result.error_code.is_ok())
    {
        run.measure.error(ApiKey::DELETE_TOPICS, result.error_code);
    }
    Ok(run)
}

fn compression_of(name: &str) -> anyhow::Result<Compression> {
    Ok(match name {
        "none" => Compression::None,
        "gzip" => Compression::Gzip,
        "snappy" => Compression::Snappy,
        "lz4" => Compression::Lz4,
        "zstd" => Compression::Zstd,
        other => bail!("--compression {other}: none, gzip, snappy, lz4 or zstd"),
    })
}

/// As many records as fit, and their number. Their values are words, so that they compress somewhat as text does.
fn make_batch(record_bytes: usize, batch_bytes: usize, compression: Compression) -> (Bytes, i64) {
    let records = (batch_bytes / record_bytes).max(1);
    let now = clock::wall_ms();
    let mut batch = BatchBuilder::new(0).compression(compression);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..records {
        let mut value = Vec::with_capacity(record_bytes + 8);
        while value.len() < record_bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            value.extend_from_slice(WORDS[(state >> 60) as usize].as_bytes());
            value.push(b' ');
        }
        value.truncate(record_bytes);
        batch = batch.record(now, None, Some(&value));
    }
    (batch.build(), records as i64)
}

const WORDS: [&str; 16] = [
    "order",
    "amount",
    "customer",
    "shipped",
    "2026",
    "pending",
    "Berlin",
    "item",
    "quantity",
    "true",
    "currency",
    "EUR",
    "warehouse",
    "17",
    "paid",
    "address",
];

/// Divides the partitions of each leader among connections to it.
fn partition_shares(topic: &Topic, connections: usize) -> Vec<(String, Vec<usize>)> {
    let mut by_leader: BTreeMap<&String, Vec<usize>> = BTreeMap::new();
    for (partition, leader) in topic.leaders.iter().enumerate() {
        by_leader.entry(leader).or_default().push(partition);
    }
    let mut shares = Vec::new();
    for (leader, partitions) in by_leader {
        let count =
            (connections * partitions.len() / topic.leaders.len()).clamp(1, partitions.len());
        shares.extend((0..count).map(|index| {
            (
                leader.clone(),
                partitions
                    .iter()
                    .copied()
                    .skip(index)
                    .step_by(count)
                    .collect(),
            )
        }));
    }
    shares
}

/// Tells each second how it goes until all are done.
async fn watched(
    measure: &Measure,
    crew: Crew<Histogram<u64>>,
) -> anyhow::Result<Vec<Histogram<u64>>> {
    let finish = crew.finish();
    tokio::pin!(finish);
    tokio::select! {
        histograms = &mut finish => histograms,
        // It ends when one of the crew has failed.
        () = measure.tell() => finish.await,
    }
}

fn merged(histograms: Vec<Histogram<u64>>) -> Histogram<u64> {
    let mut all = latencies();
    for histogram in histograms {
        all.add(histogram).expect("all have the same bounds");
    }
    all
}

/// Writes one batch again and again, to its partitions in turn.
struct Producer {
    connection: Connection,
    partitions: Vec<Outgoing>,
    records: i64,
}

struct Outgoing {
    partition: usize,
    frame: Frame,
    next_offset: i64,
}

impl Producer {
    fn new(
        connection: Connection,
        topic: &Topic,
        share: &[usize],
        batch: Batch<'_>,
    ) -> Result<Producer, Failure> {
        let partitions = share
            .iter()
            .map(|&partition| {
                let data = PartitionProduceData {
                    index: partition as i32,
                    records: Some(batch.bytes.clone()),
                };
                let frame = connection.frame(&ProduceRequest {
                    acks: batch.acks,
                    timeout_ms: TIMEOUT_MS,
                    topic_data: vec![TopicProduceData {
                        name: topic.name.clone(),
                        topic_id: topic.id,
                        partition_data: vec![data],
                    }],
                    ..Default::default()
                })?;
                Ok(Outgoing {
                    partition,
                    frame,
                    next_offset: 0,
                })
            })
            .collect::<Result<_, Failure>>()?;
        Ok(Producer {
            connection,
            partitions,
            records: batch.records,
        })
    }

    async fn produce(
        mut self,
        per_partition: usize,
        in_flight: usize,
        unacknowledged: bool,
        measure: std::rc::Rc<Measure>,
    ) -> Result<Histogram<u64>, Failure> {
        let mut latencies = latencies();
        let partitions = self.partitions.len();
        let mut order = (0..per_partition).flat_map(|_| 0..partitions);
        if unacknowledged {
            for index in order {
                self.connection
                    .push_unanswered(&self.partitions[index].frame);
                self.connection.flush().await?;
                measure.done();
            }
            return Ok(latencies);
        }
        let mut sent = VecDeque::with_capacity(in_flight);
        loop {
            while sent.len() < in_flight
                && let Some(index) = order.next()
            {
                self.connection.push(&self.partitions[index].frame);
                self.connection.flush().await?;
                sent.push_back((index, clock::now()));
            }
            let Some((index, from)) = sent.pop_front() else {
                return Ok(latencies);
            };
            let answer = self.connection.next_answer().await?;
            latencies.saturating_record(micros(from.elapsed()));
            measure.done();
            self.partitions[index].check(&answer, self.records, &measure)?;
        }
    }
}

impl Outgoing {
    fn check(&mut self, answer: &Answer, records: i64, measure: &Measure) -> Result<(), Failure> {
        let response: ProduceResponse = answer.decode()?;
        let mut parts = response
            .responses
            .iter()
            .flat_map(|topic| &topic.partition_responses);
        let (Some(part), None) = (parts.next(), parts.next()) else {
            measure.wrong(|| {
                "an answer to one partition's records is not for one partition".to_owned()
            });
            return Ok(());
        };
        if !part.error_code.is_ok() {
            measure.error(ApiKey::PRODUCE, part.error_code);
            return Err(Failure::Refused {
                api: ApiKey::PRODUCE,
                code: part.error_code,
            });
        }
        if part.base_offset != self.next_offset || part.index as usize != self.partition {
            measure.wrong(|| {
                format!(
                    "partition {} gave offset {} where partition {} is at {}",
                    part.index, part.base_offset, self.partition, self.next_offset
                )
            });
        }
        self.next_offset += records;
        Ok(())
    }
}

/// Reads its partitions from the start.
struct Consumer {
    connection: Connection,
    frame: Frame,
    partitions: Vec<Incoming>,
}

struct Incoming {
    partition: i32,
    offset_at: usize,
    offset: i64,
}

impl Consumer {
    fn new(
        connection: Connection,
        topic: &Topic,
        share: &[usize],
        fetch_bytes: i32,
    ) -> Result<Consumer, Failure> {
        let numbers = || (0..).map(|number| PLACEHOLDER + number);
        let partitions = share
            .iter()
            .zip(numbers())
            .map(|(&partition, number)| FetchPartition {
                partition: partition as i32,
                fetch_offset: number,
                partition_max_bytes: fetch_bytes,
                ..Default::default()
            });
        let frame = connection.frame(&FetchRequest {
            max_wait_ms: FETCH_WAIT_MS,
            min_bytes: 1,
            max_bytes: FETCH_MAX_BYTES,
            topics: vec![FetchTopic {
                topic: topic.name.clone(),
                topic_id: topic.id,
                partitions: partitions.collect(),
            }],
            ..Default::default()
        })?;
        let partitions = share
            .iter()
            .zip(numbers())
            .map(|(&partition, number)| Incoming {
                partition: partition as i32,
                offset_at: frame.position_of(number),
                offset: 0,
            })
            .collect();
        Ok(Consumer {
            connection,
            frame,
            partitions,
        })
    }

    /// Until every partition is read to `end`.
    async fn consume(
        mut self,
        end: i64,
        measure: std::rc::Rc<Measure>,
    ) -> Result<Histogram<u64>, Failure> {
        let mut latencies = latencies();
        while self
            .partitions
            .iter()
            .any(|partition| partition.offset < end)
        {
            for partition in &self.partitions {
                self.frame.set_number(partition.offset_at, partition.offset);
            }
            let from = clock::now();
            let answer = self.connection.exchange(&self.frame).await?;
            latencies.saturating_record(micros(from.elapsed()));
            measure.done();
            let response: FetchResponse = answer.decode()?;
            if !response.error_code.is_ok() {
                measure.error(ApiKey::FETCH, response.error_code);
                return Err(Failure::Refused {
                    api: ApiKey::FETCH,
                    code: response.error_code,
                });
            }
            for data in response
                .responses
                .into_iter()
                .flat_map(|topic| topic.partitions)
            {
                if !data.error_code.is_ok() {
                    measure.error(ApiKey::FETCH, data.error_code);
                    return Err(Failure::Refused {
                        api: ApiKey::FETCH,
                        code: data.error_code,
                    });
                }
                let mut partitions = self.partitions.iter_mut();
                let Some(partition) =
                    partitions.find(|each| each.partition == data.partition_index)
                else {
                    measure
                        .wrong(|| format!("partition {} was not asked for", data.partition_index));
                    continue;
                };
                if let Records::Inline(records) = data.records
                    && !partition.read(&records, measure.as_ref())
                {
                    return Err(Failure::Refused {
                        api: ApiKey::FETCH,
                        code: ErrorCode::CORRUPT_MESSAGE,
                    });
                }
            }
        }
        if let Some(partition) = self
            .partitions
            .iter()
            .find(|partition| partition.offset > end)
        {
            measure.wrong(|| {
                format!(
                    "partition {} has more than {end} records",
                    partition.partition
                )
            });
        }
        Ok(latencies)
    }
}

impl Incoming {
    /// Goes over the batches. `false` if what came is not what follows.
    fn read(&mut self, records: &[u8], measure: &Measure) -> bool {
        for batch in batches(records) {
            let header = match batch {
                Ok(batch) => batch.header,
                // The last batch of an answer may be cut off.
                Err(kaas_wire::batch::BatchError::Truncated { .. }) => return true,
                Err(error) => {
                    measure.wrong(|| {
                        format!("partition {} at {}: {error}", self.partition, self.offset)
                    });
                    return false;
                }
            };
            if header.base_offset != self.offset {
                measure.wrong(|| {
                    format!(
                        "partition {}: offset {} follows {}",
                        self.partition, header.base_offset, self.offset
                    )
                });
                return false;
            }
            self.offset += i64::from(header.record_count);
        }
        true
    }
}

async fn wait_for_ends(cluster: &mut Cluster, topic: &Topic, end: i64) -> anyhow::Result<()> {
    let deadline = clock::now() + UNACKNOWLEDGED_PATIENCE;
    while cluster
        .end_offsets(topic)
        .await?
        .iter()
        .any(|offset| *offset < end)
    {
        if clock::now() > deadline {
            bail!("records written without acknowledgement did not appear");
        }
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
