//! Produce (0): append batches to partitions, in the order of the requests of a connection, and answer when they count.
//!
//! Appends happen here, at once; only the answer waits. With acks=all it is sent when every partition's batch is durable
//! or its `timeout_ms` is over, with acks=1 after the append, with acks=0 never: there an error closes the connection.
//! ApiVersions advertises versions from 0 on, since older librdkafka takes less for a broker without compression.

use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use kaas_storage::log::{AppendOptions, Appended, Log, LogConfig, LogError};
use kaas_wire::batch::{Batch, BatchError, BatchHeader, Record};
use kaas_wire::messages::produce::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse,
    ProduceRequest, ProduceResponse, TopicProduceResponse,
};
use kaas_wire::{ErrorCode, Uuid};
use parking_lot::Mutex;
use tracing::{debug, info};

use crate::assignment::ClusterView;
use crate::connection::ReplySlot;
use crate::partitions::timeouts::{Timeout, Timeouts};
use crate::topics::{Table, Topic};
use crate::{Broker, Ctx};

pub const SERVED: RangeInclusive<i16> = 3..=13;

/// From here on zstd may be produced.
const ZSTD_FROM: i16 = 7;
/// From here on topics are named by id.
const IDS_FROM: i16 = 13;
/// Where single records matter, a batch is decompressed to this size at most.
const MAX_INSPECTED: usize = 64 << 20;

pub fn handle(broker: &Arc<Broker>, ctx: &Ctx, request: ProduceRequest, reply: ReplySlot) {
    let acks = request.acks;
    let timeout_ms = request.timeout_ms;
    let mut waiting = Vec::new();
    let response = if is_transactional(&request) && request.transactional_id.is_none() {
        refuse_all(request, ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    } else if !(-1..=1).contains(&acks) {
        refuse_all(request, ErrorCode::INVALID_REQUIRED_ACKS)
    } else {
        append_all(broker, ctx, request, &mut waiting)
    };
    if acks == 0 {
        flush(broker, waiting, |_, _| {});
        match response
            .responses
            .iter()
            .flat_map(|topic| &topic.partition_responses)
            .find(|one| !one.error_code.is_ok())
        {
            Some(failed) => {
                info!(
                    client_id = ctx.client_id,
                    partition = failed.index,
                    error = %failed.error_code,
                    "connection closed: a produce that wants no answer failed"
                );
                reply.abandon();
            }
            None => reply.send_nothing(),
        }
    } else if acks == 1 || waiting.is_empty() {
        reply.send(&response);
        flush(broker, waiting, |_, _| {});
    } else {
        Pending::start(broker, response, reply, waiting, timeout_ms);
    }
}

/// A batch that was appended and whose partition's answer is at `(topic, partition)` of the response.
struct Waiting {
    log: Arc<Log>,
    appended: Appended,
    place: (usize, usize),
}

fn append_all(
    broker: &Arc<Broker>,
    ctx: &Ctx,
    request: ProduceRequest,
    waiting: &mut Vec<Waiting>,
) -> ProduceResponse {
    let table = broker.topics.table();
    let view = broker.cluster.load();
    let transactional_id = request.transactional_id;
    let mut response = ProduceResponse {
        responses: Vec::with_capacity(request.topic_data.len()),
        ..Default::default()
    };
    for topic_data in request.topic_data {
        let topic = find(&table, ctx.version, &topic_data.name, topic_data.topic_id);
        let mut partition_responses = Vec::with_capacity(topic_data.partition_data.len());
        for partition_data in topic_data.partition_data {
            let index = partition_data.index;
            let appended = topic.clone().and_then(|topic| {
                append(
                    broker,
                    ctx,
                    topic,
                    index,
                    partition_data.records,
                    transactional_id.is_some(),
                    &view,
                )
            });
            partition_responses.push(match appended {
                Ok((log, appended)) => {
                    let answer = PartitionProduceResponse {
                        index,
                        error_code: ErrorCode::NONE,
                        base_offset: appended.base_offset,
                        log_append_time_ms: appended.log_append_time_ms,
                        log_start_offset: appended.log_start_offset,
                        ..Default::default()
                    };
                    waiting.push(Waiting { log, appended, place: (response.responses.len(), partition_responses.len()) });
                    answer
                }
                Err(refusal) => {
                    debug!(topic = topic_data.name, partition = index, error = %refusal.code, "produce refused");
                    let mut answer = PartitionProduceResponse {
                        log_start_offset: refusal.log_start_offset,
                        record_errors: refusal.record_errors,
                        error_message: refusal.message,
                        ..refused(index, refusal.code)
                    };
                    if let Ok(topic) = &topic {
                        name_leader(broker, ctx, &view, topic, &mut answer, &mut response.node_endpoints);
                    }
                    answer
                }
            });
        }
        response.responses.push(TopicProduceResponse {
            name: topic_data.name,
            topic_id: topic_data.topic_id,
            partition_responses,
        });
    }
    response
}

fn find<'a>(table: &'a Table, version: i16, name: &str, id: Uuid) -> Result<&'a Topic, Refusal> {
    let found = if version >= IDS_FROM {
        table.get_by_id(&id)
    } else {
        table.get(name)
    };
    found.map(|topic| &**topic).ok_or_else(|| {
        Refusal::bare(match table.refused(name) {
            _ if version >= IDS_FROM => ErrorCode::UNKNOWN_TOPIC_ID,
            Some(_) => ErrorCode::KAFKA_STORAGE_ERROR,
            None => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        })
    })
}

/// Why one partition's batch was not appended.
#[derive(Clone)]
struct Refusal {
    code: ErrorCode,
    /// What Kafka tells with errors of the log, -1 with others.
    log_start_offset: i64,
    /// Which records of the batch are to blame, if single ones are.
    record_errors: Vec<BatchIndexAndErrorMessage>,
    message: Option<String>,
}

impl Refusal {
    fn bare(code: ErrorCode) -> Refusal {
        Refusal {
            code,
            log_start_offset: -1,
            record_errors: Vec::new(),
            message: None,
        }
    }
}

fn append(
    broker: &Broker,
    ctx: &Ctx,
    topic: &Topic,
    index: i32,
    records: Option<Bytes>,
    has_transactional_id: bool,
    view: &ClusterView,
) -> Result<(Arc<Log>, Appended), Refusal> {
    if !topic.has_partition(index) {
        return Err(Refusal::bare(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    }
    let (records, header) = single_batch(ctx.version, records.unwrap_or_default())?;
    if header.is_transactional() && has_transactional_id {
        // No producer has such an id here, so none has begun a transaction that this batch could belong to.
        return Err(Refusal {
            message: Some(ErrorCode::INVALID_PRODUCER_ID_MAPPING.message().to_owned()),
            ..Refusal::bare(ErrorCode::INVALID_PRODUCER_ID_MAPPING)
        });
    }
    let partition = broker
        .partitions
        .lead(topic, index, -1, view)
        .map_err(Refusal::bare)?;
    let log = partition.log().map_err(Refusal::bare)?;
    let start_offset = || log.start_offset().unwrap_or(-1);
    let now_ms = broker.clock.wall_ms();
    let config = log.config();
    if config.cleanup_policy.compact {
        let blamed = keyless(&records, &topic.name, index)?;
        if !blamed.is_empty() {
            return Err(Refusal {
                log_start_offset: start_offset(),
                message: Some(some_of(&blamed)),
                record_errors: blamed,
                ..Refusal::bare(ErrorCode::INVALID_RECORD)
            });
        }
    }
    let options = AppendOptions {
        now_ms,
        zstd: ctx.version >= ZSTD_FROM,
    };
    log.append(records.clone(), options)
        .map(|appended| (log.clone(), appended))
        .map_err(|error| match error.code {
            ErrorCode::NOT_LEADER_OR_FOLLOWER
            | ErrorCode::KAFKA_STORAGE_ERROR
            | ErrorCode::MESSAGE_TOO_LARGE
            | ErrorCode::RECORD_LIST_TOO_LARGE
            | ErrorCode::CORRUPT_MESSAGE => Refusal::bare(error.code),
            ErrorCode::INVALID_TIMESTAMP => Refusal {
                log_start_offset: start_offset(),
                record_errors: out_of_time(&records, &config, now_ms),
                message: Some(
                    "One or more records have been rejected due to invalid timestamp".to_owned(),
                ),
                ..Refusal::bare(error.code)
            },
            _ => Refusal {
                log_start_offset: start_offset(),
                ..Refusal::bare(error.code)
            },
        })
}

/// Records without a key, which a compacted topic cannot keep. Looked for only there: everything else is appended
/// without being decompressed.
fn keyless(
    records: &Bytes,
    topic: &str,
    partition: i32,
) -> Result<Vec<BatchIndexAndErrorMessage>, Refusal> {
    let why = format!(
        "Compacted topic cannot accept message without key in topic partition {topic}-{partition}"
    );
    blame(records, |record| record.key.is_none().then(|| why.clone())).map_err(|error| {
        Refusal::bare(match error {
            BatchError::TooLarge { .. } => ErrorCode::MESSAGE_TOO_LARGE,
            BatchError::InvalidRecord { .. } => ErrorCode::INVALID_RECORD,
            _ => ErrorCode::CORRUPT_MESSAGE,
        })
    })
}

/// Records whose time the topic does not take.
fn out_of_time(records: &Bytes, config: &LogConfig, now_ms: i64) -> Vec<BatchIndexAndErrorMessage> {
    let earliest = now_ms.saturating_sub(config.message_timestamp_before_max_ms);
    let latest = now_ms.saturating_add(config.message_timestamp_after_max_ms);
    let blamed = blame(records, |record| {
        let timestamp = record.timestamp;
        (timestamp >= 0 && !(earliest..=latest).contains(&timestamp)).then(|| {
            format!(
                "Timestamp {timestamp} of message with offset {} is out of range. The timestamp should be within [{earliest}, {latest}]",
                record.offset
            )
        })
    });
    // The batch is refused by its header already; if its records cannot be read, none is blamed.
    blamed.unwrap_or_default()
}

/// What is wrong with single records of a batch. Reads at most `MAX_INSPECTED` bytes of them.
fn blame(
    records: &Bytes,
    wrong: impl Fn(&Record) -> Option<String>,
) -> Result<Vec<BatchIndexAndErrorMessage>, BatchError> {
    let batch = Batch::parse(records)?;
    let body = batch.body(MAX_INSPECTED)?;
    let mut blamed = Vec::new();
    for (at, record) in batch.records(&body).enumerate() {
        if let Some(why) = wrong(&record?) {
            blamed.push(BatchIndexAndErrorMessage {
                batch_index: i32::try_from(at).unwrap_or(i32::MAX),
                batch_index_error_message: Some(why),
            });
        }
    }
    Ok(blamed)
}

fn some_of(blamed: &[BatchIndexAndErrorMessage]) -> String {
    let shown: Vec<String> = blamed
        .iter()
        .take(3)
        .map(|one| {
            let why = one.batch_index_error_message.as_deref().unwrap_or_default();
            format!(
                "RecordError(batchIndex={}, message='{why}')",
                one.batch_index
            )
        })
        .collect();
    format!(
        "One or more records have been rejected due to {} record errors in total, and only showing the first three errors at most: [{}]",
        blamed.len(),
        shown.join(", ")
    )
}

/// Kafka's rules for what a request may carry for one partition: exactly one batch, of magic 2, zstd only for those who
/// can read it. The batch without what trails it, if that is no batch of its own.
fn single_batch(version: i16, mut records: Bytes) -> Result<(Bytes, BatchHeader), Refusal> {
    let header = BatchHeader::parse(&records).map_err(|error| match error {
        BatchError::UnsupportedMagic(0 | 1) | BatchError::Truncated { .. } => {
            Refusal::bare(ErrorCode::INVALID_RECORD)
        }
        BatchError::UnsupportedMagic(magic) => Refusal {
            message: Some(format!("Invalid magic found in record: {magic}")),
            ..Refusal::bare(ErrorCode::CORRUPT_MESSAGE)
        },
        _ => Refusal::bare(ErrorCode::CORRUPT_MESSAGE),
    })?;
    if records.len() < header.total_len() {
        return Err(Refusal::bare(ErrorCode::INVALID_RECORD));
    }
    if version < ZSTD_FROM && header.attributes & 7 == 4 {
        return Err(Refusal::bare(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE));
    }
    let rest = records.split_off(header.total_len());
    if let Some(length) = rest.get(8..12) {
        let length = i32::from_be_bytes(length.try_into().expect("four bytes"));
        if i64::from(length) + 12 <= rest.len() as i64 {
            return Err(Refusal::bare(ErrorCode::INVALID_RECORD));
        }
    }
    Ok((records, header))
}

fn is_transactional(request: &ProduceRequest) -> bool {
    request
        .topic_data
        .iter()
        .flat_map(|topic| &topic.partition_data)
        .filter_map(|partition| partition.records.as_ref())
        .any(|records| BatchHeader::parse(records).is_ok_and(|header| header.is_transactional()))
}

fn refused(index: i32, error_code: ErrorCode) -> PartitionProduceResponse {
    PartitionProduceResponse {
        index,
        error_code,
        base_offset: -1,
        ..Default::default()
    }
}

fn refuse_all(request: ProduceRequest, error: ErrorCode) -> ProduceResponse {
    let responses = request
        .topic_data
        .into_iter()
        .map(|topic| TopicProduceResponse {
            name: topic.name,
            topic_id: topic.topic_id,
            partition_responses: topic
                .partition_data
                .iter()
                .map(|partition| refused(partition.index, error))
                .collect(),
        })
        .collect();
    ProduceResponse {
        responses,
        ..Default::default()
    }
}

/// Tells a client that came to the wrong broker where the right one is (KIP-951).
fn name_leader(
    broker: &Broker,
    ctx: &Ctx,
    view: &ClusterView,
    topic: &Topic,
    answer: &mut PartitionProduceResponse,
    endpoints: &mut Vec<NodeEndpoint>,
) {
    if answer.error_code != ErrorCode::NOT_LEADER_OR_FOLLOWER {
        return;
    }
    let Some(leader) = view.leader(topic.id, answer.index) else {
        return;
    };
    answer.current_leader = LeaderIdAndEpoch {
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

fn flush(
    broker: &Broker,
    waiting: Vec<Waiting>,
    done: impl Fn((usize, usize), Result<(), LogError>) + Clone + Send + 'static,
) {
    for Waiting {
        log,
        appended,
        place,
    } in waiting
    {
        let done = done.clone();
        let (metrics, clock) = (broker.metrics.clone(), broker.clock.clone());
        let begun_us = clock.mono_us();
        broker.partitions.flusher().flush(
            &log,
            &appended,
            Box::new(move |result| {
                let took_us = clock.mono_us().saturating_sub(begun_us);
                metrics.log_flush(took_us, result.is_ok());
                done(place, result);
            }),
        );
    }
}

/// An answer that waits for the disk.
struct Pending {
    timeouts: Arc<Timeouts>,
    timeout: OnceLock<Timeout>,
    /// Taken by whoever sends it: the last flush, or the timeout.
    answer: Mutex<Option<Answer>>,
}

struct Answer {
    response: ProduceResponse,
    reply: ReplySlot,
    /// The partitions whose batches are not durable yet.
    missing: Vec<(usize, usize)>,
}

impl Answer {
    fn refuse(&mut self, (topic, partition): (usize, usize), error: ErrorCode) {
        let answer = &mut self.response.responses[topic].partition_responses[partition];
        *answer = refused(answer.index, error);
    }
}

impl Pending {
    fn start(
        broker: &Broker,
        response: ProduceResponse,
        reply: ReplySlot,
        waiting: Vec<Waiting>,
        timeout_ms: i32,
    ) {
        let pending = Arc::new(Pending {
            timeouts: broker.partitions.timeouts.clone(),
            timeout: OnceLock::new(),
            answer: Mutex::new(Some(Answer {
                response,
                reply,
                missing: waiting.iter().map(|one| one.place).collect(),
            })),
        });
        let late = Arc::downgrade(&pending);
        let at_ms = broker.clock.mono_ms() + u64::try_from(timeout_ms).unwrap_or(0);
        pending.timeout.get_or_init(|| {
            pending.timeouts.at(at_ms, move || {
                if let Some(pending) = late.upgrade() {
                    pending.time_out();
                }
            })
        });
        flush(broker, waiting, move |place, result| {
            pending.flushed(place, result)
        });
    }

    fn flushed(&self, place: (usize, usize), result: Result<(), LogError>) {
        let mut answer = self.answer.lock();
        let Some(waiting) = &mut *answer else { return };
        waiting.missing.retain(|missing| *missing != place);
        if let Err(error) = result {
            waiting.refuse(place, error.code);
        }
        if waiting.missing.is_empty() {
            let taken = answer.take();
            drop(answer);
            self.send(taken);
        }
    }

    /// What is durable by now is answered as such, the rest may still become so.
    fn time_out(&self) {
        let mut taken = self.answer.lock().take();
        if let Some(answer) = &mut taken {
            for place in std::mem::take(&mut answer.missing) {
                answer.refuse(place, ErrorCode::REQUEST_TIMED_OUT);
            }
        }
        self.send(taken);
    }

    fn send(&self, taken: Option<Answer>) {
        if let Some(answer) = taken {
            answer.reply.send(&answer.response);
            self.timeouts.cancel(
                *self
                    .timeout
                    .get()
                    .expect("a pending answer has its timeout"),
            );
        }
    }
}
