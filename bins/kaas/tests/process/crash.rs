//! SIGKILL at random moments under a load of produces, commits, heartbeaters and joins. What was acknowledged is there
//! afterwards, in its order, and the groups carry on as if nothing had been.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use kaas_tests::connection::Connection;
use kaas_tests::dice::Dice;
use kaas_tests::member::{self, Member};
use kaas_tests::time::{SOON, Stopwatch, eventually, pause};
use kaas_tests::topic;
use kaas_wire::ErrorCode;
use kaas_wire::messages::join_group::JoinGroupRequest;
use kaas_wire::messages::leave_group::LeaveGroupRequest;
use kaas_wire::messages::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestTopic};
use kaas_wire::messages::sync_group::SyncGroupRequest;

use crate::quick;

const ROUNDS: usize = 20;
const PARTITIONS: i32 = 3;
const MEMBERS: usize = 3;

/// Produce requests that one producer has under way.
const IN_FLIGHT: usize = 4;

/// From the start of the process until its groups are served.
const SERVED_WITHIN: Duration = Duration::from_secs(2);

#[test]
fn killed_at_any_moment_a_broker_loses_nothing_it_acknowledged_and_no_group_rebalances() {
    let mut dice = Dice::of_run("crash");
    let mut broker = quick().start();
    let mut connection = broker.connect();
    topic::create(&mut connection, "t", PARTITIONS);
    let mut producers: Vec<Producer> = (0..PARTITIONS).map(Producer::new).collect();
    let mut committers: Vec<Committer> = (0..PARTITIONS).map(Committer::new).collect();
    let mut members: Vec<Member> = (0..MEMBERS)
        .map(|_| Member::new(&broker, "members"))
        .collect();
    let mut together: Vec<&mut Member> = members.iter_mut().collect();
    member::enter_together(&mut together);
    let mut beaters: Vec<Beater> = members.into_iter().zip(0..).map(Beater::new).collect();

    for round in 0..ROUNDS {
        let load_for = Duration::from_millis(20 + dice.below(300) as u64);
        let address = broker.address;
        std::thread::scope(|scope| {
            for producer in &mut producers {
                let dice = dice.split();
                scope.spawn(move || producer.run(address, dice));
            }
            for committer in &mut committers {
                scope.spawn(move || committer.run(address));
            }
            for beater in &mut beaters {
                scope.spawn(move || beater.run(address));
            }
            scope.spawn(move || churn(address, round));
            pause(load_for);
            broker.kill();
        });

        let watch = Stopwatch::start();
        std::thread::scope(|scope| {
            // They ask while nobody listens, while the broker takes up its volume, and until it answers.
            for committer in &committers {
                let dice = dice.split();
                scope.spawn(move || committer.check(address, dice));
            }
            broker.start_again();
            for beater in &mut beaters {
                scope.spawn(move || beater.check(address));
            }
        });
        let served = watch.elapsed();
        assert!(
            served < SERVED_WITHIN,
            "round {round}: groups were served after {served:?}"
        );

        let mut connection = broker.connect();
        for producer in &producers {
            producer.check(&mut connection);
        }
    }
    let records: usize = producers
        .iter()
        .map(|producer| producer.acknowledged.len())
        .sum();
    let commits: i64 = committers
        .iter()
        .map(|committer| committer.acknowledged)
        .sum();
    eprintln!(
        "crash: {records} records and {commits} commits were acknowledged in {ROUNDS} rounds"
    );
    assert!(records > ROUNDS && commits > ROUNDS as i64);
}

/// Produces to one partition records that say how many came before them; none is sent twice.
struct Producer {
    partition: i32,
    next: u64,
    acknowledged: BTreeMap<i64, u64>,
}

impl Producer {
    fn new(partition: i32) -> Producer {
        Producer {
            partition,
            next: 0,
            acknowledged: BTreeMap::new(),
        }
    }

    /// Until the connection fails.
    fn run(&mut self, address: SocketAddr, mut dice: Dice) {
        let Ok(mut connection) = Connection::try_open(address) else {
            return;
        };
        let mut under_way = VecDeque::new();
        loop {
            while under_way.len() < IN_FLIGHT {
                let first = self.next;
                self.next += 1 + dice.below(4) as u64;
                let values: Vec<Vec<u8>> = (first..self.next)
                    .map(|number| number.to_be_bytes().to_vec())
                    .collect();
                let request = topic::produce_request("t", self.partition, topic::batch(&values));
                let Ok(sent) = connection.try_send(12, &request) else {
                    return;
                };
                under_way.push_back((first, self.next, sent));
            }
            let (first, end, sent) = under_way.pop_front().expect("several are under way");
            let Ok(answer) = connection.receive_within(sent, SOON) else {
                return;
            };
            let produced = &answer.responses[0].partition_responses[0];
            assert_eq!(produced.error_code, ErrorCode::NONE);
            for (offset, number) in (produced.base_offset..).zip(first..end) {
                self.acknowledged.insert(offset, number);
            }
        }
    }

    fn check(&self, connection: &mut Connection) {
        let found = topic::read_all(connection, "t", self.partition);
        let mut before = None;
        for (index, (offset, value)) in found.iter().enumerate() {
            assert_eq!(*offset, index as i64, "offsets have no gap");
            let number = u64::from_be_bytes(value.as_slice().try_into().expect("eight bytes"));
            assert!(Some(number) > before, "{number} came after {before:?}");
            before = Some(number);
            if let Some(expected) = self.acknowledged.get(offset) {
                assert_eq!(number, *expected, "at offset {offset}");
            }
        }
        let last = self.acknowledged.keys().next_back().copied();
        assert!(
            last < Some(found.len() as i64),
            "offset {last:?} was acknowledged and is lost"
        );
    }
}

/// Commits ever higher offsets for a group of its own.
struct Committer {
    group: String,
    partition: i32,
    tried: i64,
    acknowledged: i64,
}

impl Committer {
    fn new(partition: i32) -> Committer {
        Committer {
            group: format!("committer-{partition}"),
            partition,
            tried: 0,
            acknowledged: 0,
        }
    }

    /// Until the connection fails.
    fn run(&mut self, address: SocketAddr) {
        let Ok(mut connection) = Connection::try_open(address) else {
            return;
        };
        loop {
            self.tried += 1;
            let offsets = [(self.partition, self.tried)];
            let request = member::simple_commit_request(&self.group, "t", &offsets);
            let Some(answer) = connection.try_call(8, &request) else {
                return;
            };
            assert_eq!(answer.topics[0].partitions[0].error_code, ErrorCode::NONE);
            self.acknowledged = self.tried;
        }
    }

    /// Asks until there is an offset, which must not be older than what was acknowledged (C02).
    fn check(&self, address: SocketAddr, mut dice: Dice) {
        let found = eventually(SOON, "an offset is told", || {
            let mut connection = Connection::try_open(address).ok()?;
            let request = OffsetFetchRequest {
                group_id: self.group.clone(),
                topics: Some(vec![OffsetFetchRequestTopic {
                    name: "t".to_owned(),
                    partition_indexes: vec![self.partition],
                }]),
                ..OffsetFetchRequest::default()
            };
            let answer = connection.try_call(2 + dice.below(4) as i16, &request)?;
            if !answer.error_code.is_ok() {
                return None;
            }
            let partition = answer.topics[0].partitions[0].clone();
            partition
                .error_code
                .is_ok()
                .then_some(partition.committed_offset)
        });
        let none = if self.acknowledged == 0 {
            -1
        } else {
            self.acknowledged
        };
        assert!(
            (none..=self.tried).contains(&found),
            "{}: {found} is not from {} to {}",
            self.group,
            self.acknowledged,
            self.tried
        );
    }
}

/// A member that beaters and commits, and of which nothing else is ever asked.
struct Beater {
    member: Member,
    partition: i32,
    acknowledged: i64,
    tried: i64,
}

impl Beater {
    fn new((member, partition): (Member, i32)) -> Beater {
        Beater {
            member,
            partition,
            acknowledged: 0,
            tried: 0,
        }
    }

    /// Until the connection fails.
    fn run(&mut self, address: SocketAddr) {
        let Ok(mut connection) = Connection::try_open(address) else {
            return;
        };
        loop {
            self.tried += 1;
            let request = self.member.commit_request("t", self.partition, self.tried);
            let Some(answer) = connection.try_call(8, &request) else {
                return;
            };
            assert_eq!(answer.topics[0].partitions[0].error_code, ErrorCode::NONE);
            self.acknowledged = self.tried;
        }
    }

    /// Carries on with the generation it has.
    fn check(&mut self, address: SocketAddr) {
        self.member.connection = Connection::open(address);
        eventually(SERVED_WITHIN, "the group is served", || {
            match self.member.heartbeat() {
                ErrorCode::NONE => Some(()),
                ErrorCode::COORDINATOR_LOAD_IN_PROGRESS => None,
                other => panic!("a member that did nothing is told {other}"),
            }
        });
        let found = member::committed(&mut self.member.connection, "members", "t", self.partition);
        let none = if self.acknowledged == 0 {
            -1
        } else {
            self.acknowledged
        };
        assert!(
            (none..=self.tried).contains(&found),
            "{found} is older than {none}"
        );
    }
}

/// Groups come and go, until the connection fails.
fn churn(address: SocketAddr, round: usize) {
    let Ok(mut connection) = Connection::try_open(address) else {
        return;
    };
    for number in 0.. {
        let group_id = format!("churn-{round}-{number}");
        let join = JoinGroupRequest {
            group_id: group_id.clone(),
            session_timeout_ms: 1_000,
            rebalance_timeout_ms: 1_000,
            protocol_type: "consumer".to_owned(),
            protocols: vec![Default::default()],
            ..JoinGroupRequest::default()
        };
        let Some(joined) = connection.try_call(3, &join) else {
            return;
        };
        assert_eq!(joined.error_code, ErrorCode::NONE);
        let sync = SyncGroupRequest {
            group_id: group_id.clone(),
            generation_id: joined.generation_id,
            member_id: joined.member_id.clone(),
            ..SyncGroupRequest::default()
        };
        let Some(synced) = connection.try_call(2, &sync) else {
            return;
        };
        assert_eq!(synced.error_code, ErrorCode::NONE);
        let leave = LeaveGroupRequest {
            group_id,
            member_id: joined.member_id,
            ..LeaveGroupRequest::default()
        };
        let Some(left) = connection.try_call(1, &leave) else {
            return;
        };
        assert_eq!(left.error_code, ErrorCode::NONE);
    }
}
