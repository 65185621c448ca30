//! The consumers of the job, and what they read.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Child, Stdio};

use kaas_tests::connection::Connection;
use kaas_tests::log::Log;
use kaas_tests::member;
use kaas_tests::time::eventually;

use crate::consumer::Task;
use crate::{PARTITIONS, PATIENCE, TOPIC};

/// All consumers that ever were, by their number.
pub struct Group {
    servers: String,
    consumers: Vec<Consumer>,
    /// What anybody read, by partition.
    read: Vec<BTreeSet<i64>>,
}

/// One consumer, killed when the value goes away.
struct Consumer {
    child: Child,
    log: Log,
    lines: usize,
    assigned: usize,
    /// Offsets by partition, in the order in which they were read.
    read: BTreeMap<i32, Vec<i64>>,
}

impl Drop for Consumer {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Consumer {
    /// Takes in what it has said since; `all` is what anybody read.
    fn listen(&mut self, all: &mut [BTreeSet<i64>]) {
        let lines = self.log.lines_after(self.lines);
        self.lines += lines.len();
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["assigned", count] => self.assigned = count.parse().expect("a number"),
                ["read", partition, offset] => {
                    let partition: i32 = partition.parse().expect("a number");
                    let offset = offset.parse().expect("a number");
                    all[partition as usize].insert(offset);
                    self.read.entry(partition).or_default().push(offset);
                }
                _ => panic!("a consumer said {line:?}"),
            }
        }
    }
}

impl Group {
    pub fn new(servers: &str) -> Group {
        Group {
            servers: servers.to_owned(),
            consumers: Vec::new(),
            read: vec![BTreeSet::new(); PARTITIONS as usize],
        }
    }

    fn listen(&mut self) {
        for consumer in &mut self.consumers {
            consumer.listen(&mut self.read);
        }
    }

    /// Starts a consumer and gives its number.
    pub fn start(&mut self) -> usize {
        let mut child = Task::command(&self.servers)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the executable starts again");
        let log = Log::default();
        log.follow(child.stdout.take().expect("it is piped"));
        self.consumers.push(Consumer {
            child,
            log,
            lines: 0,
            assigned: 0,
            read: BTreeMap::new(),
        });
        self.consumers.len() - 1
    }

    /// SIGKILL.
    pub fn kill(&mut self, number: usize) {
        let consumer = &mut self.consumers[number];
        consumer.child.kill().expect("a child can be killed");
        consumer.child.wait().expect("a child can be waited for");
    }

    /// Tells it to leave and waits until it has.
    pub fn leave(&mut self, number: usize) {
        let consumer = &mut self.consumers[number];
        let mut stdin = consumer.child.stdin.take().expect("it was not told before");
        stdin.write_all(b"leave\n").expect("it listens");
        let status = eventually(PATIENCE, "the consumer leaves", || {
            consumer
                .child
                .try_wait()
                .expect("a child can be waited for")
        });
        assert!(status.success(), "the consumer ended with {status}");
    }

    pub fn wait_for_partitions(&mut self, expected: &[(usize, usize)]) {
        eventually(PATIENCE, &format!("partitions {expected:?}"), || {
            self.listen();
            expected
                .iter()
                .all(|&(number, count)| self.consumers[number].assigned == count)
                .then_some(())
        });
    }

    /// Waits until every one of `produced` records was read by somebody.
    pub fn wait_for_all(&mut self, produced: usize) {
        eventually(
            PATIENCE,
            &format!("all of {produced} records are read"),
            || {
                self.listen();
                let read: usize = self.read.iter().map(BTreeSet::len).sum();
                (read == produced).then_some(())
            },
        );
        for (partition, read) in self.read.iter().enumerate() {
            let last = read.len() as i64 - 1;
            assert_eq!(read.last(), Some(&last), "partition {partition} has a hole");
        }
    }

    pub fn assert_each_partition_was_read_once_and_by_one(&self) {
        for partition in 0..PARTITIONS {
            let readers: Vec<&Vec<i64>> = self
                .consumers
                .iter()
                .filter_map(|consumer| consumer.read.get(&partition))
                .collect();
            assert_eq!(readers.len(), 1, "partition {partition} has one reader");
            let in_order: Vec<i64> = (0..readers[0].len() as i64).collect();
            assert_eq!(
                *readers[0], in_order,
                "partition {partition} is read in order and once"
            );
        }
    }

    /// The committed offsets of all partitions.
    pub fn committed(&self) -> Vec<i64> {
        let mut connection = Connection::open(self.servers.parse().expect("it is an address"));
        (0..PARTITIONS)
            .map(|partition| member::committed(&mut connection, "job", TOPIC, partition))
            .collect()
    }

    /// That the first record it read of each partition was the one the group had come to.
    pub fn assert_started_at(&self, number: usize, committed: &[i64]) {
        for (partition, offset) in (0..).zip(committed) {
            let read = &self.consumers[number].read[&partition];
            assert_eq!(read[0], *offset, "partition {partition}");
        }
    }
}
