//! A rolling restart: one member after the other leaves and joins again. Each time the group is stable again once every
//! member is in the same new generation.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use anyhow::bail;
use kaas_wire::{ApiKey, ErrorCode};
use tokio::time::sleep;

use crate::Run;
use crate::client::Failure;
use crate::clock;
use crate::load::Crew;
use crate::measure::{Measure, latencies, micros};
use crate::member::Member;
use crate::scenarios::stable_groups;

/// How long a rebalance may take.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The generation each member of the group is in, by its index.
type Generations = RefCell<BTreeMap<usize, i32>>;

pub async fn run(mut run: Run) -> anyhow::Result<Run> {
    let members: usize = run.arguments.take("members", 20)?;
    let steps: usize = run.arguments.take("steps", members)?;
    let heartbeat_ms: u64 = run.arguments.take("heartbeat-ms", 100)?;
    let prefix: String = run.arguments.take("prefix", "bench-rolling".to_owned())?;
    let mut cluster = run.begin().await?;
    if members < 2 {
        bail!(
            "--members {members}: a group of fewer than 2 is never stable without the one that leaves"
        );
    }

    let topic = cluster.topic(&format!("{prefix}-topic"), 1).await?;
    let stable =
        stable_groups(&mut cluster, &prefix, &topic.name, 1, members, &run.measure).await?;
    let before = run.report.broker_usage()?;
    let generations: Rc<Generations> = Rc::default();
    let mut crew = Crew::new();
    let mut restarts = Vec::new();
    for (index, member) in stable.into_iter().enumerate() {
        generations.borrow_mut().insert(index, member.generation);
        let restart = Rc::new(Cell::new(Wish::Stay));
        restarts.push(restart.clone());
        let measure = run.measure.clone();
        let interval = Duration::from_millis(heartbeat_ms);
        crew.add(
            &run.measure,
            live(
                member,
                index,
                generations.clone(),
                restart,
                interval,
                measure,
            ),
        );
    }

    let (mut left, mut joined) = (latencies(), latencies());
    for step in 0..steps {
        let index = step % members;
        for (wish, present, times) in [
            (Wish::Leave, members - 1, &mut left),
            (Wish::Join, members, &mut joined),
        ] {
            let generation = generations.borrow().values().copied().max().unwrap_or(0);
            let start = clock::now();
            restarts[index].set(wish);
            while !is_stable(&generations.borrow(), present, generation) {
                if run.measure.stopped() {
                    break;
                }
                if start.elapsed() > PATIENCE {
                    bail!(
                        "no stable group of {present} members after {} s",
                        PATIENCE.as_secs()
                    );
                }
                sleep(LOOK_EVERY).await;
            }
            times.saturating_record(micros(start.elapsed()));
        }
        eprintln!("{} of {steps} members restarted", step + 1);
    }
    run.measure.stop();
    crew.finish().await?;
    run.report
        .broker_cost(before, (2 * steps) as f64, "rebalance")?;
    run.report.figure("rebalances", (2 * steps) as f64, "");
    run.report.latency("a member leaves", left);
    run.report.latency("a member joins", joined);
    Ok(run)
}

fn is_stable(generations: &BTreeMap<usize, i32>, present: usize, after: i32) -> bool {
    let mut each = generations.values();
    let first = each.next();
    generations.len() == present
        && first.is_some_and(|first| *first > after)
        && each.all(|other| Some(other) == first)
}

/// What a member is to do next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Stay,
    Leave,
    Join,
}

/// A member that beats, follows rebalances, and does what is wished.
async fn live(
    mut member: Member,
    index: usize,
    generations: Rc<Generations>,
    wish: Rc<Cell<Wish>>,
    interval: Duration,
    measure: Rc<Measure>,
) -> Result<(), Failure> {
    let mut beat_at = clock::now() + interval;
    while !measure.stopped() {
        match wish.replace(Wish::Stay) {
            Wish::Stay => {}
            Wish::Leave => {
                member.leave(&measure).await?;
                generations.borrow_mut().remove(&index);
            }
            Wish::Join => {
                member.join(&measure).await?;
                generations.borrow_mut().insert(index, member.generation);
            }
        }
        if !member.id.is_empty() && clock::now() >= beat_at {
            match member.heartbeat().await? {
                ErrorCode::NONE => {}
                ErrorCode::REBALANCE_IN_PROGRESS => {
                    member.join(&measure).await?;
                    generations.borrow_mut().insert(index, member.generation);
                }
                code => {
                    measure.error(ApiKey::HEARTBEAT, code);
                    return Err(Failure::Refused {
                        api: ApiKey::HEARTBEAT,
                        code,
                    });
                }
            }
            beat_at = clock::now() + interval;
        }
        sleep(LOOK_EVERY).await;
    }
    Ok(())
}
