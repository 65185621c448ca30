//! How long until a broker serves: started together with it, asks until it answers ApiVersions, then until every group
//! has an answer to OffsetFetch without error.

use std::time::Duration;

use anyhow::bail;
use kaas_wire::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse,
};
use tokio::time::sleep;

use crate::Run;
use crate::client::{Connection, Failure};
use crate::clock;
use crate::measure::millis;

const RETRY_AFTER: Duration = Duration::from_millis(1);
const GROUPS_AT_ONCE: usize = 1_000;

pub async fn run(mut run: Run) -> anyhow::Result<Run> {
    let group_count: usize = run.arguments.take("groups", 0)?;
    let patience: f64 = run.arguments.take("patience", 60.0)?;
    let prefix: String = run.arguments.take("prefix", "bench-list".to_owned())?;
    let start = clock::now();
    let patience = Duration::from_secs_f64(patience);
    run.report.settings = run.arguments.finish()?;
    run.report.target.clone_from(&run.bootstrap);
    let mut connection = loop {
        match Connection::open(&run.bootstrap).await {
            Ok(connection) => break connection,
            Err(error) if start.elapsed() > patience => {
                bail!("no answer from {}: {error}", run.bootstrap)
            }
            Err(_) => sleep(RETRY_AFTER).await,
        }
    };
    run.report.figure(
        "to the first ApiVersions answered",
        millis(start.elapsed()),
        "ms",
    );
    let groups: Vec<String> = (0..group_count)
        .map(|group| format!("{prefix}-{group}"))
        .collect();
    let mut offsets = 0;
    for chunk in groups.chunks(GROUPS_AT_ONCE) {
        loop {
            match offsets_when_served(&mut connection, chunk).await? {
                Some(count) => {
                    offsets += count;
                    break;
                }
                None if start.elapsed() > patience => bail!("groups are not served"),
                None => sleep(RETRY_AFTER).await,
            }
        }
    }
    if group_count > 0 {
        run.report
            .figure("to every group served", millis(start.elapsed()), "ms");
        run.report
            .figure("offsets of these groups", offsets as f64, "");
    }
    Ok(run)
}

/// The number of offsets the groups have; `None` while one of them is not served.
async fn offsets_when_served(
    connection: &mut Connection,
    groups: &[String],
) -> Result<Option<usize>, Failure> {
    let groups = groups.iter().map(|group| OffsetFetchRequestGroup {
        group_id: group.clone(),
        topics: None,
        ..Default::default()
    });
    let request = OffsetFetchRequest {
        groups: groups.collect(),
        ..Default::default()
    };
    let response: OffsetFetchResponse = connection.call(&request).await?;
    if response
        .groups
        .iter()
        .any(|group| !group.error_code.is_ok())
    {
        return Ok(None);
    }
    Ok(Some(
        response
            .groups
            .iter()
            .flat_map(|group| &group.topics)
            .map(|topic| topic.partitions.len())
            .sum(),
    ))
}
