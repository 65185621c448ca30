//! Members that beat and commit while a broker dies.
//!
//! Each member is a group of its own: it beats and commits once an interval. A line on standard input tells that a broker
//! died. The run ends once every member was answered again; its gap is the longest time without a good answer. At the
//! end the last acknowledged offsets are read back.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::bail;
use kaas_wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    OffsetCommitResponse,
};
use kaas_wire::{ApiKey, ErrorCode};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::Run;
use crate::client::{Connection, Failure};
use crate::clock;
use crate::cluster::{Cluster, Topic, find_coordinators};
use crate::load::Crew;
use crate::measure::{Measure, latencies, micros};
use crate::member::Member;
use crate::offsets::{Committed, read_back};
use crate::scenarios::stable_groups;

const LOOK_EVERY: Duration = Duration::from_millis(10);
const RETRY_AFTER: Duration = Duration::from_millis(20);

pub async fn run(mut run: Run) -> anyhow::Result<Run> {
    let group_count: usize = run.arguments.take("groups", 100)?;
    let interval_ms: u64 = run.arguments.take("interval-ms", 100)?;
    let patience: f64 = run.arguments.take("patience", 60.0)?;
    let prefix: String = run
        .arguments
        .take("prefix", format!("bench-failover-{}", clock::wall_ms()))?;
    // Other ways in, when the broker that died was the one at the bootstrap address.
    let others: String = run.arguments.take("others", String::new())?;
    let mut cluster = run.begin().await?;

    let topic = cluster.topic("bench-failover-topic", 1).await?;
    let stable = stable_groups(
        &mut cluster,
        &prefix,
        &topic.name,
        group_count,
        1,
        &run.measure,
    )
    .await?;
    let groups: Vec<String> = stable
        .iter()
        .map(|member| member.group.to_string())
        .collect();
    let addresses: Rc<[String]> = [cluster.bootstrap.as_str()]
        .into_iter()
        .chain(others.split(','))
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
        .collect();
    let served = Rc::new(Served {
        since_told: Cell::new(0),
        told: Cell::new(None),
    });
    let mut crew = Crew::new();
    for member in stable {
        let life = Life {
            member,
            topic: topic.clone(),
            addresses: addresses.clone(),
            served: served.clone(),
            good_at: clock::now(),
            gap: Duration::ZERO,
            answered_since_told: false,
            acknowledged: None,
            attempted: 0,
            rejoined: false,
        };
        crew.add(
            &run.measure,
            life.live(Duration::from_millis(interval_ms), run.measure.clone()),
        );
    }

    eprintln!("{group_count} groups are served; a line on standard input tells that a broker died");
    line_on_stdin().await?;
    let told = clock::now();
    served.told.set(Some(told));
    let patience = Duration::from_secs_f64(patience);
    while served.since_told.get() < group_count
        && told.elapsed() < patience
        && !run.measure.stopped()
    {
        sleep(LOOK_EVERY).await;
    }
    let all_served = served.since_told.get();
    // What was acknowledged after the failure counts too.
    sleep(Duration::from_millis(10 * interval_ms)).await;
    run.measure.stop();
    let lives = crew.finish().await?;
    if all_served < group_count {
        run.report.wrong(format!(
            "{} of {group_count} groups were not served again",
            group_count - all_served
        ));
    }
    let mut gaps = latencies();
    for life in &lives {
        gaps.saturating_record(micros(life.gap));
    }
    run.report.figure(
        "members that had to join again",
        lives.iter().filter(|life| life.rejoined).count() as f64,
        "",
    );
    run.report.latency("longest time unserved", gaps);
    let committed: Vec<Committed> = lives
        .iter()
        .enumerate()
        .map(|(group, life)| Committed {
            group,
            partitions: 0..1,
            acknowledged: life.acknowledged,
            attempted: life.attempted,
        })
        .collect();
    let mut cluster = reconnect(&addresses).await?;
    let coordinators = cluster.coordinators(&groups).await?;
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

/// A thread waits for it: standard input cannot be polled where it is a file.
async fn line_on_stdin() -> anyhow::Result<()> {
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        // The end of the input tells as much, and nobody listens if the run has failed.
        drop(tell.send(std::io::stdin().read_line(&mut line)));
    });
    told.await??;
    Ok(())
}

async fn reconnect(addresses: &[String]) -> anyhow::Result<Cluster> {
    for address in addresses {
        if let Ok(cluster) = Cluster::connect(address).await {
            return Ok(cluster);
        }
    }
    bail!("none of {addresses:?} answers")
}

struct Served {
    told: Cell<Option<Instant>>,
    /// Members that had a good answer since.
    since_told: Cell<usize>,
}

struct Life {
    member: Member,
    topic: Topic,
    addresses: Rc<[String]>,
    served: Rc<Served>,
    good_at: Instant,
    gap: Duration,
    answered_since_told: bool,
    acknowledged: Option<i64>,
    attempted: i64,
    rejoined: bool,
}

impl Life {
    async fn live(mut self, interval: Duration, measure: Rc<Measure>) -> Result<Life, Failure> {
        self.good_at = clock::now();
        while !measure.stopped() {
            match self.beat_and_commit().await {
                Ok(ErrorCode::NONE) => {
                    self.good();
                    sleep(interval).await;
                }
                Ok(code) => {
                    measure.error(ApiKey::OFFSET_COMMIT, code);
                    if matches!(
                        code,
                        ErrorCode::UNKNOWN_MEMBER_ID
                            | ErrorCode::ILLEGAL_GENERATION
                            | ErrorCode::REBALANCE_IN_PROGRESS
                    ) {
                        self.join_again(&measure).await;
                    } else {
                        self.find_again(&measure).await;
                    }
                }
                // The broker is gone; who coordinates now is asked of whoever answers.
                Err(_) => self.find_again(&measure).await,
            }
        }
        self.gap = self.gap.max(self.good_at.elapsed());
        Ok(self)
    }

    fn good(&mut self) {
        let now = clock::now();
        self.gap = self.gap.max(now - self.good_at);
        self.good_at = now;
        if !self.answered_since_told && self.served.told.get().is_some() {
            self.answered_since_told = true;
            self.served.since_told.set(self.served.since_told.get() + 1);
        }
    }

    async fn beat_and_commit(&mut self) -> Result<ErrorCode, Failure> {
        let beat = self.member.heartbeat().await?;
        if !beat.is_ok() {
            return Ok(beat);
        }
        let offset = self.attempted + 1;
        self.attempted = offset;
        let partition = OffsetCommitRequestPartition {
            committed_offset: offset,
            ..Default::default()
        };
        let request = OffsetCommitRequest {
            group_id: self.member.group.to_string(),
            generation_id_or_member_epoch: self.member.generation,
            member_id: self.member.id.clone(),
            topics: vec![OffsetCommitRequestTopic {
                name: self.topic.name.clone(),
                topic_id: self.topic.id,
                partitions: vec![partition],
            }],
            ..Default::default()
        };
        let response: OffsetCommitResponse = self.member.connection.call(&request).await?;
        let codes = response
            .topics
            .iter()
            .flat_map(|topic| &topic.partitions)
            .map(|each| each.error_code);
        let code = codes.fold(
            ErrorCode::NONE,
            |first, code| if first.is_ok() { code } else { first },
        );
        if code.is_ok() {
            self.acknowledged = Some(offset);
        }
        Ok(code)
    }

    async fn join_again(&mut self, measure: &Measure) {
        self.rejoined = true;
        self.member.id.clear();
        self.member.generation = -1;
        // A failure shows in the next beat.
        self.member.join(measure).await.ok();
    }

    /// Connects to the group's coordinator, as far as somebody knows it.
    async fn find_again(&mut self, measure: &Measure) {
        sleep(RETRY_AFTER).await;
        let versions = self.member.connection.versions().clone();
        let group = [self.member.group.to_string()];
        for address in self.addresses.iter() {
            let Ok(mut connection) = Connection::open_knowing(address, versions.clone()).await
            else {
                continue;
            };
            let mut found = BTreeMap::new();
            match find_coordinators(&mut connection, &group, &mut found).await {
                Ok(Ok(())) => {}
                Ok(Err(code)) => {
                    measure.error(ApiKey::FIND_COORDINATOR, code);
                    continue;
                }
                Err(_) => continue,
            }
            let Some(coordinator) = found.get(&group[0]) else {
                continue;
            };
            if let Ok(connection) = Connection::open_knowing(coordinator, versions.clone()).await {
                self.member.connection = connection;
                return;
            }
        }
    }
}
