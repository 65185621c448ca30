//! Fetch (1): batches from many partitions, within a fetch session if the client keeps one, sent as they lie in their
//! files.
//!
//! A fetch that finds less than `min_bytes` waits until one of its partitions grows or `max_wait_ms` is over, and then
//! reads again. The first batch of the first partition that has any is sent whatever its size, so that every client gets
//! on.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use kaas_storage::log::{Isolation, Log, ReadOptions};
use kaas_wire::messages::fetch::{
    AbortedTransaction, EpochEndOffset, FetchRequest, FetchResponse, FetchableTopicResponse,
    LeaderIdAndEpoch, NodeEndpoint, PartitionData,
};
use kaas_wire::{ErrorCode, Records, Uuid};
use tokio::sync::Notify;

use crate::assignment::ClusterView;
use crate::connection::{FileRegion, ReplySlot};
use crate::partitions::Partition;
use crate::partitions::fetch_sessions::{Asked, Context, PartitionKey, Wanted};
use crate::topics::Table;
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 4..=18;

/// From here on topics are named by id.
const IDS_FROM: i16 = 13;

pub async fn handle(broker: &Arc<Broker>, ctx: &Ctx, mut request: FetchRequest, reply: ReplySlot) {
    let asked = Asked {
        version: ctx.version,
        session_id: request.session_id,
        session_epoch: request.session_epoch,
        now_ms: broker.clock.mono_ms(),
    };
    let (wanted, forgotten) = named(&broker.topics.table(), ctx.version, &mut request);
    let (context, wanted) = broker
        .partitions
        .fetch_sessions
        .begin(asked, wanted, &forgotten);
    let fetched = match context {
        Context::Refused(_) => Vec::new(),
        _ => fetch(broker, &request, &wanted).await,
    };
    let now_ms = broker.clock.mono_ms();
    let answers = wanted
        .into_iter()
        .zip(fetched)
        .map(|(wanted, found)| (wanted, found.data, found.region))
        .collect();
    let (error_code, session_id, answers) = broker
        .partitions
        .fetch_sessions
        .end(context, now_ms, answers);

    let mut response = FetchResponse {
        error_code,
        session_id,
        ..Default::default()
    };
    let mut regions = Vec::new();
    let view = broker.cluster.load();
    for (wanted, mut data, region) in answers {
        if let Some(region) = region {
            data.records = Records::External {
                len: region.len,
                id: regions.len(),
            };
            regions.push(region);
        }
        name_leader(
            broker,
            ctx,
            &view,
            &wanted,
            &mut data,
            &mut response.node_endpoints,
        );
        match response.responses.last_mut() {
            Some(last)
                if last.topic_id == wanted.topic_id
                    && (ctx.version >= IDS_FROM || *last.topic == *wanted.topic) =>
            {
                last.partitions.push(data);
            }
            _ => response.responses.push(FetchableTopicResponse {
                topic: wanted.topic.to_string(),
                topic_id: wanted.topic_id,
                partitions: vec![data],
            }),
        }
    }
    reply.send_with_files(&response, regions);
}

/// What the request names, and what it wants named no more.
fn named(
    table: &Table,
    version: i16,
    request: &mut FetchRequest,
) -> (Vec<Wanted>, Vec<PartitionKey>) {
    let name_of = |name: &str, id: &Uuid| -> Arc<str> {
        if version < IDS_FROM {
            return Arc::from(name);
        }
        table
            .get_by_id(id)
            .map_or_else(|| Arc::from(""), |topic| Arc::from(&*topic.name))
    };
    let mut wanted = Vec::new();
    for topic in std::mem::take(&mut request.topics) {
        let name = name_of(&topic.topic, &topic.topic_id);
        for partition in topic.partitions {
            wanted.push(Wanted {
                topic: name.clone(),
                topic_id: topic.topic_id,
                partition: partition.partition,
                fetch_offset: partition.fetch_offset,
                max_bytes: partition.partition_max_bytes,
                current_leader_epoch: partition.current_leader_epoch,
                last_fetched_epoch: partition.last_fetched_epoch,
            });
        }
    }
    let mut forgotten = Vec::new();
    for topic in std::mem::take(&mut request.forgotten_topics_data) {
        let name = name_of(&topic.topic, &topic.topic_id);
        forgotten.extend(
            topic
                .partitions
                .into_iter()
                .map(|partition| PartitionKey::new(topic.topic_id, &name, partition)),
        );
    }
    (wanted, forgotten)
}

/// What was found for one partition.
struct Found {
    data: PartitionData,
    region: Option<FileRegion>,
}

/// What is readable for all partitions, once that is enough or the time is over. One result a partition, in order.
async fn fetch(broker: &Arc<Broker>, request: &FetchRequest, wanted: &[Wanted]) -> Vec<Found> {
    let deadline_ms = broker.clock.mono_ms() + u64::try_from(request.max_wait_ms).unwrap_or(0);
    let min_bytes = usize::try_from(request.min_bytes).unwrap_or(0);
    let reader = Reader::new(broker, request, wanted);
    let waiter = Arc::new(Notify::new());
    loop {
        // Registered before reading, so that what comes in between wakes it.
        let waiting = reader.register(&waiter);
        let (found, must_answer) = reader.read();
        let bytes: usize = found
            .iter()
            .filter_map(|found| found.region.as_ref())
            .map(|region| region.len)
            .sum();
        let now_ms = broker.clock.mono_ms();
        if must_answer || bytes >= min_bytes || now_ms >= deadline_ms || wanted.is_empty() {
            return found;
        }
        drop(found);
        // Without a permit left over from a wake that came during the read this waits; with one it reads again.
        let woken = tokio::time::timeout(
            Duration::from_millis(deadline_ms - now_ms),
            waiter.notified(),
        )
        .await;
        drop(waiting);
        if woken.is_err() {
            return reader.read().0;
        }
    }
}

/// Looks partitions up once and reads them as often as it takes.
struct Reader<'a> {
    wanted: &'a [Wanted],
    partitions: Vec<Result<Arc<Partition>, ErrorCode>>,
    max_bytes: usize,
    isolation: Isolation,
}

/// Takes the waiter out of the partitions' lists when a fetch ends, also when its connection goes away.
struct Waiting<'a> {
    partitions: &'a [Result<Arc<Partition>, ErrorCode>],
    waiter: &'a Arc<Notify>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        for partition in self.partitions.iter().flatten() {
            partition.stop_waiting(self.waiter);
        }
    }
}

impl<'a> Reader<'a> {
    fn new(broker: &Broker, request: &FetchRequest, wanted: &'a [Wanted]) -> Reader<'a> {
        let table = broker.topics.table();
        let view = broker.cluster.load();
        let config = broker.config.load();
        Reader {
            partitions: wanted
                .iter()
                .map(|wanted| find(broker, &table, &view, wanted))
                .collect(),
            wanted,
            max_bytes: usize::try_from(request.max_bytes.min(config.fetch_max_bytes)).unwrap_or(0),
            isolation: if request.isolation_level == 1 {
                Isolation::ReadCommitted
            } else {
                Isolation::ReadUncommitted
            },
        }
    }

    fn register<'b>(&'b self, waiter: &'b Arc<Notify>) -> Waiting<'b> {
        for partition in self.partitions.iter().flatten() {
            partition.wait(waiter);
        }
        Waiting {
            partitions: &self.partitions,
            waiter,
        }
    }

    /// Reads each partition; whether the answer cannot wait, because of an error or of logs that diverge.
    fn read(&self) -> (Vec<Found>, bool) {
        let mut left = self.max_bytes;
        let mut nothing_yet = true;
        let mut must_answer = false;
        let mut all = Vec::with_capacity(self.wanted.len());
        for (wanted, partition) in self.wanted.iter().zip(&self.partitions) {
            let read = match partition {
                Ok(partition) => partition
                    .log()
                    .and_then(|log| self.read_one(&log, wanted, left, nothing_yet)),
                Err(error) => Err(*error),
            };
            let found = match read {
                Ok(found) => found,
                Err(error) => Found {
                    data: failed(wanted.partition, error),
                    region: None,
                },
            };
            if let Some(region) = &found.region {
                left = left.saturating_sub(region.len);
                nothing_yet = false;
            }
            must_answer |= !found.data.error_code.is_ok() || found.data.diverging_epoch.epoch >= 0;
            all.push(found);
        }
        (all, must_answer)
    }

    fn read_one(
        &self,
        log: &Log,
        wanted: &Wanted,
        left: usize,
        nothing_yet: bool,
    ) -> Result<Found, ErrorCode> {
        if wanted.last_fetched_epoch >= 0
            && let Some(diverging) = diverging(log, wanted)?
        {
            return Ok(diverging);
        }
        let options = ReadOptions {
            max_bytes: left.min(usize::try_from(wanted.max_bytes).unwrap_or(0)),
            at_least_one_batch: nothing_yet,
            isolation: self.isolation,
        };
        let read = log
            .read(wanted.fetch_offset, options)
            .map_err(|error| error.code)?;
        let aborted_transactions = match (self.isolation, &read.slice) {
            (Isolation::ReadUncommitted, _) => None,
            (Isolation::ReadCommitted, None) => Some(Vec::new()),
            (Isolation::ReadCommitted, Some(slice)) => {
                let aborted = log
                    .aborted_transactions(wanted.fetch_offset, slice.next_offset)
                    .map_err(|error| error.code)?;
                let told = aborted.into_iter().map(|aborted| AbortedTransaction {
                    producer_id: aborted.producer_id,
                    first_offset: aborted.first_offset,
                });
                Some(told.collect())
            }
        };
        let region = read.slice.map(|slice| FileRegion {
            file: slice.file,
            position: slice.position,
            len: slice.len,
        });
        Ok(Found {
            data: PartitionData {
                partition_index: wanted.partition,
                error_code: ErrorCode::NONE,
                high_watermark: read.offsets.high_watermark,
                last_stable_offset: read.offsets.last_stable,
                log_start_offset: read.offsets.start,
                aborted_transactions,
                // Which place the region has among those of the answer is not known yet.
                records: region
                    .as_ref()
                    .map_or_else(empty, |region| Records::External {
                        len: region.len,
                        id: 0,
                    }),
                ..Default::default()
            },
            region,
        })
    }
}

fn find(
    broker: &Broker,
    table: &Table,
    view: &ClusterView,
    wanted: &Wanted,
) -> Result<Arc<Partition>, ErrorCode> {
    let topic = if wanted.topic_id == Uuid::ZERO {
        table
            .get(&wanted.topic)
            .ok_or(match (&*wanted.topic, table.refused(&wanted.topic)) {
                ("", _) => ErrorCode::UNKNOWN_TOPIC_ID,
                (_, Some(_)) => ErrorCode::KAFKA_STORAGE_ERROR,
                (_, None) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            })?
    } else {
        table
            .get_by_id(&wanted.topic_id)
            .ok_or(ErrorCode::UNKNOWN_TOPIC_ID)?
    };
    broker
        .partitions
        .lead(topic, wanted.partition, wanted.current_leader_epoch, view)
}

/// What a reader must know whose last record is of an epoch that ended earlier here (KIP-595).
fn diverging(log: &Log, wanted: &Wanted) -> Result<Option<Found>, ErrorCode> {
    let end = log
        .epoch_end_offset(wanted.last_fetched_epoch)
        .map_err(|error| error.code)?;
    let Some(end) = end else {
        return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
    };
    let offsets = log.offsets().map_err(|error| error.code)?;
    if wanted.fetch_offset < offsets.start {
        return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
    }
    if end.leader_epoch >= wanted.last_fetched_epoch && end.end_offset >= wanted.fetch_offset {
        return Ok(None);
    }
    Ok(Some(Found {
        data: PartitionData {
            partition_index: wanted.partition,
            high_watermark: offsets.high_watermark,
            last_stable_offset: offsets.last_stable,
            log_start_offset: offsets.start,
            diverging_epoch: EpochEndOffset {
                epoch: end.leader_epoch,
                end_offset: end.end_offset,
            },
            aborted_transactions: None,
            records: empty(),
            ..Default::default()
        },
        region: None,
    }))
}

/// An error. As with Kafka, partitions that do not exist have an empty list of aborted transactions, others none.
fn failed(partition_index: i32, error_code: ErrorCode) -> PartitionData {
    let is_unknown = matches!(
        error_code,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION | ErrorCode::UNKNOWN_TOPIC_ID
    );
    PartitionData {
        partition_index,
        error_code,
        high_watermark: -1,
        aborted_transactions: is_unknown.then(Vec::new),
        records: empty(),
        ..Default::default()
    }
}

fn empty() -> Records {
    Records::Inline(bytes::Bytes::new())
}

/// Tells a client that came to the wrong broker, or with an old epoch, where the leader is (KIP-951).
fn name_leader(
    broker: &Broker,
    ctx: &Ctx,
    view: &ClusterView,
    wanted: &Wanted,
    data: &mut PartitionData,
    endpoints: &mut Vec<NodeEndpoint>,
) {
    if !matches!(
        data.error_code,
        ErrorCode::NOT_LEADER_OR_FOLLOWER | ErrorCode::FENCED_LEADER_EPOCH
    ) {
        return;
    }
    let topic_id = if wanted.topic_id == Uuid::ZERO {
        match broker.topics.get(&wanted.topic) {
            Some(topic) => topic.id,
            None => return,
        }
    } else {
        wanted.topic_id
    };
    let Some(leader) = view.leader(topic_id, wanted.partition) else {
        return;
    };
    data.current_leader = LeaderIdAndEpoch {
        leader_id: leader.id,
        leader_epoch: leader.epoch,
    };
    if let Some(entry) = view.broker(leader.id)
        && !endpoints
            .iter()
            .any(|endpoint| endpoint.node_id == leader.id)
    {
        let (host, port) = broker.address_of(&ctx.connection, entry);
        endpoints.push(NodeEndpoint {
            node_id: leader.id,
            host,
            port,
            rack: None,
        });
    }
}
