//! Groups from nothing to stable: every member is connected, then all join at once.
//!
//! The time in which the coordinator only waits for more members (`group.initial.rebalance.delay.ms`) is told apart: it
//! lies between the last member id that was given and the first join that was answered.

use std::time::{Duration, Instant};

use crate::Run;
use crate::load::Crew;
use crate::measure::{latencies, micros, millis};
use crate::member::{Joined, check_stable};
use crate::scenarios::members_of;

pub async fn run(mut run: Run) -> anyhow::Result<Run> {
    let groups: usize = run.arguments.take("groups", 1)?;
    let members: usize = run.arguments.take("members", 1_000)?;
    let hold: f64 = run.arguments.take("hold", 0.0)?;
    let prefix: String = run
        .arguments
        .take("prefix", format!("bench-join-{}", crate::clock::wall_ms()))?;
    let mut cluster = run.begin().await?;
    let topic = cluster.topic("bench-join-topic", 1).await?;
    let initial_delay = cluster
        .broker_config("group.initial.rebalance.delay.ms")
        .await?;

    let alone = run.report.broker_usage()?;
    let all = members_of(&mut cluster, &prefix, &topic.name, groups, members).await?;
    // Answered by the broker, so each of them is known to it.
    let mut crew = Crew::new();
    for mut member in all {
        crew.add(&run.measure, async move {
            member.connection.ping().await?;
            Ok(member)
        });
    }
    let all = crew.finish().await?;
    let connected = run.report.broker_usage()?;

    let start = crate::clock::now();
    let mut crew = Crew::new();
    for mut member in all {
        let measure = run.measure.clone();
        crew.add(&run.measure, async move {
            let joined = member.join(&measure).await?;
            Ok((member, joined))
        });
    }
    let stable = crew.finish().await?;
    let total = start.elapsed();
    if let (Some(alone), Some(connected), Some(joined)) =
        (alone, connected, run.report.broker_usage()?)
    {
        let per_member = |from: u64, to: u64| (to as f64 - from as f64) / stable.len() as f64;
        run.report
            .figure("broker RSS before", alone.rss_kib as f64 / 1024.0, "MiB");
        run.report.figure(
            "broker RSS per connection",
            per_member(alone.rss_kib, connected.rss_kib),
            "KiB",
        );
        run.report.figure(
            "broker RSS per member",
            per_member(connected.rss_kib, joined.rss_kib),
            "KiB",
        );
        run.report.figure(
            "both together",
            per_member(alone.rss_kib, joined.rss_kib),
            "KiB",
        );
    }
    run.report
        .broker_cost(connected, stable.len() as f64, "join")?;

    let steps: Vec<Joined> = stable.iter().map(|(_, joined)| *joined).collect();
    let first = |step: fn(&Joined) -> Instant| steps.iter().map(step).min().unwrap_or(start);
    let last = |step: fn(&Joined) -> Instant| steps.iter().map(step).max().unwrap_or(start);
    let entered = last(|step| step.id_given) - start;
    let settled = last(|step| step.synced) - first(|step| step.joined);
    let waited = total.saturating_sub(entered + settled);
    if let Some(delay) = initial_delay.and_then(|delay| delay.parse::<f64>().ok()) {
        run.report.figure("configured initial delay", delay, "ms");
    }
    run.report
        .figure("from nothing to stable", millis(total), "ms");
    run.report
        .figure("of which waited for more members", millis(waited), "ms");
    run.report
        .figure("until all had a member id", millis(entered), "ms");
    run.report.figure(
        "from the first join answered to stable",
        millis(settled),
        "ms",
    );
    run.report
        .figure("work: without the wait", millis(entered + settled), "ms");
    let mut settling = latencies();
    for group in stable.chunks(members) {
        check_stable(group.iter().map(|(member, _)| member), &run.measure);
        let joined = group
            .iter()
            .map(|(_, step)| step.joined)
            .min()
            .expect("a group has members");
        let synced = group
            .iter()
            .map(|(_, step)| step.synced)
            .max()
            .expect("a group has members");
        settling.saturating_record(micros(synced - joined));
    }
    run.report.latency("group: joined to stable", settling);
    tokio::time::sleep(Duration::from_secs_f64(hold)).await;

    let mut crew = Crew::new();
    for (mut member, _) in stable {
        let measure = run.measure.clone();
        crew.add(&run.measure, async move { member.leave(&measure).await });
    }
    crew.finish().await?;
    Ok(run)
}
