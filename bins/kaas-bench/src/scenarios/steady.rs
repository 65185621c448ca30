//! Heartbeats in groups that nobody joins or leaves.

use std::time::Duration;

use crate::Run;
use crate::load::{Crew, Pace, drive};
use crate::member::Heartbeats;
use crate::scenarios::stable_groups;

pub async fn run(mut run: Run) -> anyhow::Result<Run> {
    let groups: usize = run.arguments.take("groups", 100)?;
    let members: usize = run.arguments.take("members", 10)?;
    let rate: f64 = run.arguments.take("rate", 0.0)?;
    let seconds: f64 = run.arguments.take("seconds", 10.0)?;
    let warmup: f64 = run.arguments.take("warmup", 1.0)?;
    let prefix: String = run.arguments.take("prefix", "bench-steady".to_owned())?;
    let mut cluster = run.begin().await?;

    let topic = cluster.topic(&format!("{prefix}-topic"), 1).await?;
    let stable = stable_groups(
        &mut cluster,
        &prefix,
        &topic.name,
        groups,
        members,
        &run.measure,
    )
    .await?;
    let count = stable.len();
    let mut crew = Crew::new();
    for (index, mut member) in stable.into_iter().enumerate() {
        let mut load = Heartbeats::new(&member)?;
        let measure = run.measure.clone();
        let pace = Pace::of_connection(index, count, rate, count);
        crew.add(&run.measure, async move {
            drive(&mut member.connection, &mut load, pace, &measure).await?;
            Ok(member)
        });
    }
    // CPU time is told in steps, so it is compared over the counted window only.
    tokio::time::sleep(Duration::from_secs_f64(warmup)).await;
    let before = run.report.broker_usage()?;
    let window = run
        .measure
        .count(Duration::ZERO, Duration::from_secs_f64(seconds))
        .await;
    run.report
        .broker_cost(before, window.operations as f64, "heartbeat")?;
    run.report.figure("heartbeats", window.per_second(), "1/s");
    run.report
        .latency("heartbeat", run.measure.latency_histogram());
    // Only now: as long as one beats, nobody leaves.
    let mut leaving = Crew::new();
    for mut member in crew.finish().await? {
        let measure = run.measure.clone();
        leaving.add(&run.measure, async move { member.leave(&measure).await });
    }
    leaving.finish().await?;
    Ok(run)
}
