#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
//! How fast the core alone is, on one thread: `cargo run --release -p kaas-coordinator --example core_bench`.

use std::time::Instant;

use bytes::Bytes;

use kaas_coordinator::{Call, GroupConfig, GroupDocument, Manager, Now, Output, Reply, Request};
use kaas_wire::Uuid;
use kaas_wire::messages::heartbeat::HeartbeatRequest;
use kaas_wire::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use kaas_wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kaas_wire::messages::sync_group::SyncGroupRequest;

const EVENTS: usize = 1_000_000;
/// Handled between two looks at the clock.
const CHUNK: usize = 2_048;
/// Handled between two uses of the output, as the shell does.
const BATCH: usize = 256;

fn main() {
    // First, while nothing that was freed can be used again.
    idle_members();
    for (groups, members) in [(100, 10), (10_000, 1)] {
        let mut bench = Bench::new();
        let ids = bench.stable_groups(groups, members);
        let heartbeat = |i: usize| heartbeat(&ids[i % ids.len()]);
        let commit = |i: usize| commit(&ids[i % ids.len()], i);
        println!("{groups} groups of {members}:");
        bench.run("heartbeats", heartbeat);
        bench.run("commits", commit);
        bench.run(
            "mixed",
            |i| if i % 2 == 0 { heartbeat(i) } else { commit(i) },
        );
    }
    join_of(1_000);
    join_of(10_000);
    reads_of(10_000);
}

struct Bench {
    manager: Manager<u32>,
    out: Output<u32>,
    now: Now,
}

/// A member of a stable group.
struct Id {
    group_id: String,
    member_id: String,
}

impl Bench {
    fn new() -> Bench {
        let config = GroupConfig {
            group_initial_rebalance_delay_ms: 0,
            ..GroupConfig::default()
        };
        let now = Now {
            mono_ms: 0,
            wall_ms: 1_700_000_000_000,
        };
        Bench {
            manager: Manager::new(config),
            out: Output::default(),
            now,
        }
    }

    fn handle(&mut self, version: i16, request: Request) {
        let call = Call {
            reply_to: 0,
            version,
            client_id: "consumer-orders-1",
            client_host: "/10.20.30.40",
            fresh_id: "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
            request,
        };
        self.manager.handle(self.now, call, &mut self.out);
    }

    fn join(&mut self, group_id: &str, instance_id: String) {
        self.handle(
            9,
            Request::JoinGroup(JoinGroupRequest {
                group_id: group_id.to_owned(),
                session_timeout_ms: 45_000,
                rebalance_timeout_ms: 300_000,
                group_instance_id: Some(instance_id),
                protocol_type: "consumer".to_owned(),
                protocols: ["range", "cooperative-sticky"].map(protocol).into(),
                ..JoinGroupRequest::default()
            }),
        );
    }

    fn load(&mut self, group_id: &str) {
        self.manager
            .load(self.now, group_id, None, &mut self.out)
            .expect("nothing to load");
    }

    /// Ends the join phase and syncs everyone; the members' ids.
    fn settle(&mut self, group_id: &str) -> Vec<Id> {
        while self
            .manager
            .next_timeout()
            .is_some_and(|deadline| deadline <= self.now.mono_ms)
        {
            self.manager.handle_timeout(self.now, &mut self.out);
        }
        let mut ids = Vec::new();
        let replies = std::mem::take(&mut self.out.replies);
        for (_, reply, _) in replies {
            let Reply::JoinGroup(answer) = reply else {
                continue;
            };
            ids.push(Id {
                group_id: group_id.to_owned(),
                member_id: answer.member_id,
            });
        }
        for id in &ids {
            let request = SyncGroupRequest {
                group_id: id.group_id.clone(),
                generation_id: 1,
                member_id: id.member_id.clone(),
                ..SyncGroupRequest::default()
            };
            self.handle(4, Request::SyncGroup(request));
        }
        self.out.clear();
        ids
    }

    fn stable_groups(&mut self, groups: usize, members: usize) -> Vec<Id> {
        let mut ids = Vec::new();
        for group in 0..groups {
            let group_id = format!("group-{group}");
            self.load(&group_id);
            for member in 0..members {
                self.join(&group_id, format!("instance-{member}"));
            }
            ids.extend(self.settle(&group_id));
        }
        ids
    }

    fn run(&mut self, name: &str, request: impl Fn(usize) -> Request) {
        let mut spent = Vec::new();
        for chunk in 0..EVENTS / CHUNK {
            // Requests come decoded; making them is not the core's work.
            let requests: Vec<Request> =
                (chunk * CHUNK..(chunk + 1) * CHUNK).map(&request).collect();
            let start = Instant::now();
            for (i, request) in requests.into_iter().enumerate() {
                self.handle(9, request);
                if i % BATCH == 0 {
                    self.out.clear();
                }
            }
            spent.push(start.elapsed());
        }
        assert!(
            self.out
                .replies
                .iter()
                .all(|(_, reply, _)| succeeded(reply)),
            "every request succeeds"
        );
        // The median, so that other work on the machine does not count.
        spent.sort();
        let typical = spent[spent.len() / 2].as_secs_f64();
        println!("  {name}: {:.2} M events/s", CHUNK as f64 / typical / 1e6);
    }
}

fn succeeded(reply: &Reply) -> bool {
    match reply {
        Reply::Heartbeat(answer) => answer.error_code.is_ok(),
        Reply::OffsetCommit(answer) => answer
            .topics
            .iter()
            .flat_map(|topic| &topic.partitions)
            .all(|p| p.error_code.is_ok()),
        _ => false,
    }
}

fn protocol(name: &str) -> JoinGroupRequestProtocol {
    let metadata = [&[0, 3, 0, 0, 0, 1, 0, 6][..], b"orders", &[0xff; 8]].concat();
    JoinGroupRequestProtocol {
        name: name.to_owned(),
        metadata: Bytes::from(metadata),
    }
}

fn heartbeat(id: &Id) -> Request {
    Request::Heartbeat(HeartbeatRequest {
        group_id: id.group_id.clone(),
        generation_id: 1,
        member_id: id.member_id.clone(),
        group_instance_id: None,
    })
}

fn commit(id: &Id, i: usize) -> Request {
    Request::OffsetCommit(OffsetCommitRequest {
        group_id: id.group_id.clone(),
        generation_id_or_member_epoch: 1,
        member_id: id.member_id.clone(),
        topics: vec![OffsetCommitRequestTopic {
            name: "orders".to_owned(),
            topic_id: Uuid::from_bytes([7; 16]),
            partitions: vec![OffsetCommitRequestPartition {
                partition_index: (i % 12) as i32,
                committed_offset: i as i64,
                committed_leader_epoch: 3,
                committed_metadata: Some(String::new()),
            }],
        }],
        ..OffsetCommitRequest::default()
    })
}

fn join_of(members: usize) {
    let mut bench = Bench::new();
    bench.load("big");
    let start = Instant::now();
    for member in 0..members {
        bench.join("big", format!("instance-{member}"));
    }
    let joined = start.elapsed();
    let ids = bench.settle("big");
    assert_eq!(ids.len(), members);
    println!(
        "{members} members join in {joined:.1?}, and are stable after {:.1?}",
        start.elapsed()
    );
}

/// Resident memory, from the kernel.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}

fn idle_members() {
    const GROUPS: usize = 20_000;
    let before = resident_bytes();
    let mut bench = Bench::new();
    let ids = bench.stable_groups(GROUPS, 1).len();
    let each = resident_bytes().saturating_sub(before) / ids;
    println!("an idle member with a group of its own takes {each} bytes");
}

fn reads_of(groups: usize) {
    let mut bench = Bench::new();
    let ids = bench.stable_groups(groups, 3);
    for (i, id) in ids.iter().enumerate() {
        bench.handle(9, commit(id, i));
    }
    bench.out.clear();
    let start = Instant::now();
    let listed = bench.manager.list(&[], &[]);
    let list = start.elapsed();
    let start = Instant::now();
    let members: usize = listed
        .iter()
        .map(|group| {
            bench
                .manager
                .describe(&group.group_id, 6, false)
                .members
                .len()
        })
        .sum();
    println!(
        "{groups} groups: listed in {list:.1?}, described ({members} members) in {:.1?}",
        start.elapsed()
    );
    let start = Instant::now();
    bench.manager.sweep_expired(bench.now, &mut bench.out);
    println!("{groups} groups: swept in {:.1?}", start.elapsed());
    let start = Instant::now();
    let documents = listed
        .iter()
        .map(|group| bench.manager.document(&group.group_id));
    let documents: Vec<Vec<u8>> = documents
        .map(|document| document.unwrap().to_json())
        .collect();
    println!("{groups} groups: written in {:.1?}", start.elapsed());
    let mut fresh = Bench::new();
    let start = Instant::now();
    for (group, json) in listed.iter().zip(&documents) {
        let document = GroupDocument::from_json(json).expect("what was written");
        fresh
            .manager
            .load(fresh.now, &group.group_id, Some(document), &mut fresh.out)
            .unwrap();
    }
    println!("{groups} groups: loaded in {:.1?}", start.elapsed());
}
