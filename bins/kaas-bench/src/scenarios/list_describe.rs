//! An admin tool at a cluster of many groups: lists them, describes them, reads their offsets.

use std::collections::{BTreeMap, BTreeSet};

use kaas_wire::ApiKey;
use kaas_wire::messages::describe_groups::{DescribeGroupsRequest, DescribeGroupsResponse};
use kaas_wire::messages::list_groups::{ListGroupsRequest, ListGroupsResponse};
use kaas_wire::messages::offset_fetch::OffsetFetchResponse;

use crate::Run;
use crate::clock;
use crate::measure::{latencies, micros};
use crate::offsets::{commit_once, fetch_request, offset_of, offsets_of};

pub async fn run(mut run: Run) -> anyhow::Result<Run> {
    let group_count: usize = run.arguments.take("groups", 10_000)?;
    let rounds: usize = run.arguments.take("rounds", 10)?;
    let prefix: String = run.arguments.take("prefix", "bench-list".to_owned())?;
    let mut cluster = run.begin().await?;

    let groups: Vec<String> = (0..group_count)
        .map(|group| format!("{prefix}-{group}"))
        .collect();
    let coordinators = cluster.coordinators(&groups).await?;
    let topic = cluster.topic(&format!("{prefix}-topic"), 1).await?;
    commit_once(&mut cluster, &groups, &coordinators, &topic, 1).await?;
    let mut brokers = Vec::new();
    let mut by_address: BTreeMap<&String, Vec<usize>> = BTreeMap::new();
    for (group, address) in coordinators.iter().enumerate() {
        by_address.entry(address).or_default().push(group);
    }
    for (address, here) in by_address {
        brokers.push((cluster.open(address).await?, here));
    }

    let measure = run.measure.clone();
    let (mut list, mut describe, mut offsets) = (latencies(), latencies(), latencies());
    let before = run.report.broker_usage()?;
    for round in 1..=rounds {
        let mut listed = BTreeSet::new();
        let start = clock::now();
        for (connection, _) in &mut brokers {
            let response: ListGroupsResponse =
                connection.call(&ListGroupsRequest::default()).await?;
            if !response.error_code.is_ok() {
                measure.error(ApiKey::LIST_GROUPS, response.error_code);
            }
            listed.extend(response.groups.into_iter().map(|group| group.group_id));
        }
        list.saturating_record(micros(start.elapsed()));
        let missing = groups
            .iter()
            .filter(|group| !listed.contains(*group))
            .count();
        if missing > 0 {
            measure.wrong(|| format!("{missing} groups are not listed"));
        }

        let start = clock::now();
        let mut described = Vec::new();
        for (connection, here) in &mut brokers {
            let request = DescribeGroupsRequest {
                groups: here.iter().map(|&group| groups[group].clone()).collect(),
                include_authorized_operations: false,
            };
            let response: DescribeGroupsResponse = connection.call(&request).await?;
            described.extend(response.groups);
        }
        describe.saturating_record(micros(start.elapsed()));
        for group in &described {
            if !group.error_code.is_ok() {
                measure.error(ApiKey::DESCRIBE_GROUPS, group.error_code);
            }
        }
        let empty = described
            .iter()
            .filter(|group| group.group_state == "Empty")
            .count();
        if empty != group_count {
            measure.wrong(|| format!("{empty} of {group_count} groups are described as Empty"));
        }

        let start = clock::now();
        let mut responses = Vec::new();
        for (connection, here) in &mut brokers {
            let asked = here.iter().map(|&group| (groups[group].as_str(), vec![0]));
            let request = fetch_request(&topic, asked);
            responses.push(connection.call::<_, OffsetFetchResponse>(&request).await?);
        }
        offsets.saturating_record(micros(start.elapsed()));
        let mut found = BTreeMap::new();
        for response in &responses {
            found.extend(offsets_of(response, &measure));
        }
        let wrong = (0..group_count)
            .filter(|&group| found.get(&(groups[group].clone(), 0)) != Some(&offset_of(group)));
        let wrong = wrong.count();
        if wrong > 0 {
            measure.wrong(|| format!("the offsets of {wrong} groups are not those committed"));
        }
        eprintln!("round {round} of {rounds}");
    }
    run.report.broker_cost(before, rounds as f64, "round")?;
    run.report.latency("ListGroups", list);
    run.report.latency("DescribeGroups of all", describe);
    run.report.latency("OffsetFetch of all", offsets);
    Ok(run)
}
