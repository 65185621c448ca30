//! Reads of committed offsets, which are checked against what was committed before.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use kaas_wire::messages::offset_fetch::OffsetFetchResponse;

use crate::Run;
use crate::client::{Answer, Connection, Failure, Frame};
use crate::load::{Crew, Load, Pace, drive, shares};
use crate::measure::Measure;
use crate::offsets::{commit_once, fetch_request, offset_of, offsets_of};

pub async fn run(mut run: Run) -> anyhow::Result<Run> {
    let group_count: usize = run.arguments.take("groups", 1_000)?;
    let partitions: usize = run.arguments.take("partitions", 12)?;
    let connections: usize = run.arguments.take("connections", 100)?;
    let in_flight: usize = run.arguments.take("in-flight", connections)?;
    let batch: usize = run.arguments.take("groups-per-request", 1)?;
    let rate: f64 = run.arguments.take("rate", 0.0)?;
    let seconds: f64 = run.arguments.take("seconds", 10.0)?;
    let warmup: f64 = run.arguments.take("warmup", 1.0)?;
    let prefix: String = run.arguments.take("prefix", "bench-offsets".to_owned())?;
    let mut cluster = run.begin().await?;

    let groups: Vec<String> = (0..group_count)
        .map(|group| format!("{prefix}-{group}"))
        .collect();
    let coordinators = cluster.coordinators(&groups).await?;
    let topic = cluster
        .topic(&format!("{prefix}-topic-{partitions}"), partitions)
        .await?;
    commit_once(&mut cluster, &groups, &coordinators, &topic, partitions).await?;

    let shares = shares(&coordinators, connections);
    let count = shares.len();
    let all: Vec<i32> = (0..partitions as i32).collect();
    let mut crew = Crew::new();
    for (index, share) in shares.into_iter().enumerate() {
        let mut connection = cluster.open(&share.address).await?;
        let requests = share
            .groups
            .chunks(batch.max(1))
            .map(|chunk| {
                let asked = chunk
                    .iter()
                    .map(|&group| (groups[group].as_str(), all.clone()));
                Ok(Request {
                    frame: connection.frame(&fetch_request(&topic, asked))?,
                    groups: chunk
                        .iter()
                        .map(|&group| (groups[group].clone(), offset_of(group)))
                        .collect(),
                    expected: None,
                })
            })
            .collect::<Result<Vec<_>, Failure>>()?;
        let mut load = Reads {
            requests,
            next: 0,
            unanswered: VecDeque::new(),
            partitions,
        };
        let measure = run.measure.clone();
        let pace = Pace::of_connection(index, count, rate, in_flight);
        crew.add(&run.measure, async move {
            drive(&mut connection, &mut load, pace, &measure).await
        });
    }
    tokio::time::sleep(Duration::from_secs_f64(warmup)).await;
    let before = run.report.broker_usage()?;
    let window = run
        .measure
        .count(Duration::ZERO, Duration::from_secs_f64(seconds))
        .await;
    run.report
        .broker_cost(before, window.operations as f64, "OffsetFetch")?;
    run.report.figure("OffsetFetch", window.per_second(), "1/s");
    run.report.figure(
        "offsets read",
        window.per_second() * (batch * partitions) as f64,
        "1/s",
    );
    run.report
        .latency("OffsetFetch", run.measure.latency_histogram());
    crew.finish().await?;
    Ok(run)
}

/// The requests of one connection, in turn.
struct Reads {
    requests: Vec<Request>,
    next: usize,
    unanswered: VecDeque<usize>,
    partitions: usize,
}

struct Request {
    frame: Frame,
    /// Each with the offset that all its partitions have.
    groups: Vec<(String, i64)>,
    /// The answer that was found right.
    expected: Option<Bytes>,
}

impl Load for Reads {
    fn push(&mut self, connection: &mut Connection) {
        connection.push(&self.requests[self.next].frame);
        self.unanswered.push_back(self.next);
        self.next = (self.next + 1) % self.requests.len();
    }

    fn check(&mut self, answer: &Answer, measure: &Measure) -> Result<bool, Failure> {
        let request = self
            .unanswered
            .pop_front()
            .expect("only what was sent is answered");
        let request = &mut self.requests[request];
        if request
            .expected
            .as_ref()
            .is_some_and(|expected| *expected == answer.body)
        {
            return Ok(true);
        }
        let response: OffsetFetchResponse = answer.decode()?;
        let offsets = offsets_of(&response, measure);
        for (group, expected) in &request.groups {
            for partition in 0..self.partitions as i32 {
                let offset = offsets.get(&(group.clone(), partition));
                if offset != Some(expected) {
                    measure.wrong(|| {
                        format!("{group} partition {partition}: {expected} was committed, {offset:?} is read back")
                    });
                    return Ok(false);
                }
            }
        }
        request.expected = Some(Bytes::copy_from_slice(&answer.body));
        Ok(true)
    }
}
