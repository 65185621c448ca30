//! Connections that send one request after the other: as fast as they are answered, or at a pace.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::sleep_until;

use crate::client::{Answer, Connection, Failure};
use crate::clock;
use crate::measure::Measure;

/// What a connection sends, and what is right as an answer.
pub trait Load {
    /// Pushes the next request.
    fn push(&mut self, connection: &mut Connection);

    /// Looks at the oldest answer not looked at. `true` if it is one without error.
    fn check(&mut self, answer: &Answer, measure: &Measure) -> Result<bool, Failure>;
}

/// How requests follow each other.
#[derive(Clone, Copy)]
pub enum Pace {
    /// So many are under way on a connection; an answer makes room for the next.
    Closed { in_flight: usize },
    /// One is due each `interval`, the first after `phase`.
    Every { interval: Duration, phase: Duration },
}

impl Pace {
    /// The pace of one of `connections`, which together make `rate` requests a second, or have `in_flight` under way
    /// where that is 0.
    pub fn of_connection(index: usize, connections: usize, rate: f64, in_flight: usize) -> Pace {
        if rate > 0.0 {
            let interval = Duration::from_secs_f64(connections as f64 / rate);
            let phase = interval.mul_f64(index as f64 / connections as f64);
            Pace::Every { interval, phase }
        } else {
            Pace::Closed {
                in_flight: (in_flight / connections).max(1),
            }
        }
    }
}

/// Sends until the measurement stops and all is answered.
pub async fn drive(
    connection: &mut Connection,
    load: &mut impl Load,
    pace: Pace,
    measure: &Measure,
) -> Result<(), Failure> {
    match pace {
        Pace::Closed { in_flight } => closed_loop(connection, load, in_flight, measure).await,
        Pace::Every { interval, phase } => paced(connection, load, interval, phase, measure).await,
    }
}

async fn closed_loop(
    connection: &mut Connection,
    load: &mut impl Load,
    in_flight: usize,
    measure: &Measure,
) -> Result<(), Failure> {
    let mut sent = VecDeque::with_capacity(in_flight);
    loop {
        while sent.len() < in_flight && !measure.stopped() {
            load.push(connection);
            sent.push_back(clock::now());
        }
        if sent.is_empty() {
            return Ok(());
        }
        let mut next = Some(connection.next_answer().await?);
        let now = clock::now();
        while let Some(answer) = next {
            let from = sent.pop_front().expect("only what was sent is answered");
            if load.check(&answer, measure)? {
                measure.answered(from, now);
            }
            drop(answer);
            next = connection.buffered_answer()?;
        }
    }
}

/// A request that is due while its connection still waits for an answer is late through the broker's fault: its latency
/// counts from when it was due, so that a stall is not seen once but as often as it would have been felt.
async fn paced(
    connection: &mut Connection,
    load: &mut impl Load,
    interval: Duration,
    phase: Duration,
    measure: &Measure,
) -> Result<(), Failure> {
    let mut answered = clock::now();
    let mut due = answered + phase;
    while !measure.stopped() {
        sleep_until(due.into()).await;
        let from = if due < answered { due } else { clock::now() };
        load.push(connection);
        let answer = connection.next_answer().await?;
        answered = clock::now();
        if load.check(&answer, measure)? {
            measure.answered(from, answered);
        }
        due += interval;
    }
    Ok(())
}

/// The groups one connection works for.
pub struct Share {
    pub address: String,
    pub groups: Vec<usize>,
    /// Tells apart the connections that work for the same group.
    pub slot: usize,
}

/// Divides groups among connections to their coordinators. With fewer groups than connections, several have the same.
pub fn shares(coordinators: &[String], connections: usize) -> Vec<Share> {
    let mut by_address: BTreeMap<&String, Vec<usize>> = BTreeMap::new();
    for (group, address) in coordinators.iter().enumerate() {
        by_address.entry(address).or_default().push(group);
    }
    let mut shares = Vec::new();
    for (address, groups) in by_address {
        let count = (connections * groups.len() / coordinators.len()).max(1);
        shares.extend((0..count).map(|index| {
            Share {
                address: address.clone(),
                groups: groups
                    .iter()
                    .copied()
                    .skip(index % groups.len())
                    .step_by(count)
                    .collect(),
                slot: index / groups.len(),
            }
        }));
    }
    shares
}

/// Work of many connections.
pub struct Crew<T>(Vec<JoinHandle<Result<T, Failure>>>);

impl<T: 'static> Crew<T> {
    pub fn new() -> Crew<T> {
        Crew(Vec::new())
    }

    /// Work that fails stops the measurement.
    pub fn add(
        &mut self,
        measure: &Rc<Measure>,
        work: impl Future<Output = Result<T, Failure>> + 'static,
    ) {
        let measure = measure.clone();
        self.0.push(spawn_local(async move {
            let result = work.await;
            if result.is_err() {
                measure.stop();
            }
            result
        }));
    }

    pub async fn finish(self) -> anyhow::Result<Vec<T>> {
        let mut results = Vec::with_capacity(self.0.len());
        for work in self.0 {
            results.push(work.await.context("a task panicked")??);
        }
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_is_worked_for_and_slots_tell_sharers_apart() {
        let coordinators: Vec<String> = (0..10)
            .map(|group| format!("broker-{}", group % 3))
            .collect();
        for connections in [1, 4, 10, 25] {
            let mut seen: Vec<(usize, usize)> = shares(&coordinators, connections)
                .into_iter()
                .flat_map(|share| {
                    share
                        .groups
                        .iter()
                        .for_each(|group| assert_eq!(coordinators[*group], share.address));
                    share
                        .groups
                        .into_iter()
                        .map(move |group| (group, share.slot))
                })
                .collect();
            seen.sort_unstable();
            let all = seen.len();
            seen.dedup();
            assert_eq!(seen.len(), all, "no group and slot is given out twice");
            assert!(
                (0..10).all(|group| seen.contains(&(group, 0))),
                "no group is left out"
            );
        }
    }
}
