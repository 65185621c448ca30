//! Commits of consumers without membership, as fast as they are answered or at a rate. At the end the last acknowledged
//! offsets are read back.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use kaas_wire::ApiKey;
use kaas_wire::messages::offset_commit::{OffsetCommitRequest, OffsetCommitResponse};

use crate::Run;
use crate::client::{Answer, Connection, Failure, Frame, Versions};
use crate::cluster::Topic;
use crate::load::{Crew, Load, Pace, drive, shares};
use crate::measure::Measure;
use crate::offsets::{Committed, commit_request, read_back};

/// Stands where the offset of the first partition will be; the next partition has the next number.
const PLACEHOLDER: i64 = 0x5eed_0ff5_e7ed_0000;

pub async fn run(mut run: Run) -> anyhow::Result<Run> {
    let group_count: usize = run.arguments.take("groups", 100)?;
    let partitions: usize = run.arguments.take("partitions", 1)?;
    let connections: usize = run.arguments.take("connections", 100)?;
    let in_flight: usize = run.arguments.take("in-flight", connections)?;
    let rate: f64 = run.arguments.take("rate", 0.0)?;
    let seconds: f64 = run.arguments.take("seconds", 10.0)?;
    let warmup: f64 = run.arguments.take("warmup", 1.0)?;
    let prefix: String = run.arguments.take("prefix", "bench-commit".to_owned())?;
    let mut cluster = run.begin().await?;

    let groups: Vec<String> = (0..group_count)
        .map(|group| format!("{prefix}-{group}"))
        .collect();
    let coordinators = cluster.coordinators(&groups).await?;
    let shares = shares(&coordinators, connections);
    let slots = shares.iter().map(|share| share.slot + 1).max().unwrap_or(1);
    let topic = cluster
        .topic(
            &format!("{prefix}-topic-{}", slots * partitions),
            slots * partitions,
        )
        .await?;

    let mut crew = Crew::new();
    let count = shares.len();
    for (index, share) in shares.into_iter().enumerate() {
        let mut connection = cluster.open(&share.address).await?;
        let measure = run.measure.clone();
        let first_partition = share.slot * partitions;
        let mut load = Commits {
            groups: Vec::with_capacity(share.groups.len()),
            next: 0,
            unanswered: VecDeque::new(),
            offset: 0,
            expected: None,
            partitions,
        };
        for group in share.groups {
            load.groups.push(Group::new(
                &groups[group],
                group,
                &topic,
                first_partition..first_partition + partitions,
                connection.versions(),
            )?);
        }
        let pace = Pace::of_connection(index, count, rate, in_flight);
        crew.add(&run.measure, async move {
            drive(&mut connection, &mut load, pace, &measure).await?;
            Ok((load, first_partition))
        });
    }
    let before = run.report.broker_usage()?;
    let warmup = Duration::from_secs_f64(warmup);
    let window = run
        .measure
        .count(warmup, Duration::from_secs_f64(seconds))
        .await;
    let loads = crew.finish().await?;
    let all: i64 = loads.iter().map(|(load, _)| load.offset).sum();
    run.report.figure("commits", window.per_second(), "1/s");
    run.report.broker_cost(before, all as f64, "commit")?;
    run.report
        .latency("commit", run.measure.latency_histogram());

    let committed: Vec<Committed> = loads
        .into_iter()
        .flat_map(|(load, first_partition)| {
            load.groups.into_iter().map(move |group| Committed {
                group: group.index,
                partitions: first_partition..first_partition + partitions,
                acknowledged: group.acknowledged,
                attempted: group.attempted,
            })
        })
        .collect();
    let read = read_back(
        &mut cluster,
        &groups,
        &coordinators,
        &topic,
        &committed,
        &run.measure,
    )
    .await?;
    run.report.figure("offsets read back", read as f64, "");
    Ok(run)
}

/// The commits of one connection, for its groups in turn. The committed offset is the number of the commit.
struct Commits {
    groups: Vec<Group>,
    next: usize,
    unanswered: VecDeque<(usize, i64)>,
    offset: i64,
    /// The answer when all went well: it is the same for all commits of a connection.
    expected: Option<Bytes>,
    partitions: usize,
}

struct Group {
    index: usize,
    frame: Frame,
    offsets_at: Vec<usize>,
    acknowledged: Option<i64>,
    attempted: i64,
}

impl Group {
    fn new(
        id: &str,
        index: usize,
        topic: &Topic,
        partitions: std::ops::Range<usize>,
        versions: &Versions,
    ) -> Result<Group, Failure> {
        let numbers = || (0..).map(|number| PLACEHOLDER + number);
        let frame = Frame::new(
            &commit_request(id, &topic.name, topic.id, partitions.clone().zip(numbers())),
            versions.of::<OffsetCommitRequest>()?,
        );
        let offsets_at = partitions
            .zip(numbers())
            .map(|(_, number)| frame.position_of(number))
            .collect();
        Ok(Group {
            index,
            frame,
            offsets_at,
            acknowledged: None,
            attempted: 0,
        })
    }
}

impl Load for Commits {
    fn push(&mut self, connection: &mut Connection) {
        self.offset += 1;
        let group = &mut self.groups[self.next];
        for at in &group.offsets_at {
            group.frame.set_number(*at, self.offset);
        }
        group.attempted = self.offset;
        connection.push(&group.frame);
        self.unanswered.push_back((self.next, self.offset));
        self.next = (self.next + 1) % self.groups.len();
    }

    fn check(&mut self, answer: &Answer, measure: &Measure) -> Result<bool, Failure> {
        let (group, offset) = self
            .unanswered
            .pop_front()
            .expect("only what was sent is answered");
        if self
            .expected
            .as_ref()
            .is_none_or(|expected| *expected != answer.body)
        {
            let response: OffsetCommitResponse = answer.decode()?;
            let mut codes = response
                .topics
                .iter()
                .flat_map(|topic| &topic.partitions)
                .map(|each| each.error_code);
            if let Some(code) = codes.find(|code| !code.is_ok()) {
                measure.error(ApiKey::OFFSET_COMMIT, code);
                return Ok(false);
            }
            let answered: usize = response
                .topics
                .iter()
                .map(|topic| topic.partitions.len())
                .sum();
            if answered != self.partitions {
                measure.wrong(|| {
                    format!(
                        "a commit of {} partitions was answered for {answered}",
                        self.partitions
                    )
                });
                return Ok(false);
            }
            if self.expected.is_none() {
                self.expected = Some(Bytes::copy_from_slice(&answer.body));
            }
        }
        self.groups[group].acknowledged = Some(offset);
        Ok(true)
    }
}
