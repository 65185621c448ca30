//! The partitions this broker leads: their logs, who waits for them to grow, and their upkeep.
//!
//! Which partitions these are, and under which leader epoch, the assignment says (`apply`). A log is opened by the first
//! request that needs it or by the openers that run after the start, whichever comes first, so that a broker with many
//! partitions serves at once. A log that cannot be opened or written refuses its own partition and no other.

pub mod fetch_sessions;
pub mod producer_ids;
pub mod timeouts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use fnv::FnvHashMap;
use kaas_storage::log::{CleanupPolicy, Flusher, Log, LogConfig, TimestampType};
use kaas_storage::session::Session;
use kaas_storage::volume::Volume;
use kaas_wire::{ErrorCode, Uuid};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tracing::{debug, error, info, warn};

use self::fetch_sessions::FetchSessions;
use self::producer_ids::ProducerIds;
use self::timeouts::Timeouts;
use crate::assignment::ClusterView;
use crate::clock::Clock;
use crate::config::live::LiveConfig;
use crate::config::topic::TopicConfig;
use crate::config::{Config, value};
use crate::ids::Ids;
use crate::topics::{Table, Topic, TopicWatcher};

/// Threads that open logs after the start.
const OPENERS: usize = 4;
/// Threads that close logs at the end: each waits for the disk most of the time.
const CLOSERS: usize = 8;
/// A log that failed to open is tried again by the first request after this long.
const REOPEN_AFTER_MS: u64 = 1_000;
/// How often logs are asked whether `flush.ms` is over.
const FLUSH_CHECK: Duration = Duration::from_millis(100);

/// What every partition's log needs of the process around it.
struct Surroundings {
    volume: Arc<dyn Volume>,
    session: Arc<Session>,
    clock: Clock,
}

/// One partition this broker leads.
pub struct Partition {
    pub topic: Arc<str>,
    pub topic_id: Uuid,
    pub index: i32,
    pub leader_epoch: i32,
    dir: String,
    around: Arc<Surroundings>,
    /// Set while open; what requests look at.
    log: ArcSwapOption<Log>,
    state: Mutex<State>,
    waiters: Arc<Waiters>,
}

/// Fetches that wait for a partition to grow, by address. Each is woken once and comes back if that was not enough.
#[derive(Default)]
struct Waiters(Mutex<FnvHashMap<usize, Arc<Notify>>>);

impl Waiters {
    fn wake(&self) {
        let woken = std::mem::take(&mut *self.0.lock());
        for waiter in woken.into_values() {
            waiter.notify_one();
        }
    }
}

struct State {
    config: LogConfig,
    /// When a failed log may be tried again, by the monotonic clock.
    retry_at_ms: u64,
    /// Leadership or the topic is gone.
    closed: bool,
}

/// Sizes and offsets for metrics and DescribeLogDirs.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub topic: Arc<str>,
    pub topic_id: Uuid,
    pub partition: i32,
    pub log_start_offset: i64,
    pub log_end_offset: i64,
    pub high_watermark: i64,
    pub size: u64,
}

impl Partition {
    /// The log, opened now if it is not yet. Blocks on the disk in that case.
    ///
    /// # Errors
    /// KAFKA_STORAGE_ERROR if it cannot be opened (logged once, tried again from time to time),
    /// NOT_LEADER_OR_FOLLOWER if this broker ceased to lead.
    pub fn log(&self) -> Result<Arc<Log>, ErrorCode> {
        if let Some(log) = &*self.log.load() {
            return Ok(log.clone());
        }
        let mut state = self.state.lock();
        if state.closed {
            return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER);
        }
        if let Some(log) = self.log.load_full() {
            return Ok(log);
        }
        let now_ms = self.around.clock.mono_ms();
        if now_ms < state.retry_at_ms {
            return Err(ErrorCode::KAFKA_STORAGE_ERROR);
        }
        let opened = Log::open(
            self.around.volume.clone(),
            self.around.session.clone(),
            &self.dir,
            state.config.clone(),
            self.leader_epoch,
        );
        match opened {
            Ok(log) => {
                let waiters = self.waiters.clone();
                log.on_advance(move || waiters.wake());
                let log = Arc::new(log);
                debug!(topic = %self.topic, partition = self.index, bytes = log.size(), "log opened");
                self.log.store(Some(log.clone()));
                Ok(log)
            }
            Err(why) => {
                state.retry_at_ms = now_ms + REOPEN_AFTER_MS;
                error!(topic = %self.topic, partition = self.index, dir = self.dir, %why, "log not opened");
                Err(ErrorCode::KAFKA_STORAGE_ERROR)
            }
        }
    }

    /// The log if it is open.
    pub fn open_log(&self) -> Option<Arc<Log>> {
        self.log.load_full()
    }

    /// Wakes `waiter` at the next [`Partition::wake`]; only that once.
    pub fn wait(&self, waiter: &Arc<Notify>) {
        self.waiters
            .0
            .lock()
            .insert(Arc::as_ptr(waiter) as usize, waiter.clone());
    }

    /// Forgets a waiter that wants to be woken no more.
    pub fn stop_waiting(&self, waiter: &Arc<Notify>) {
        self.waiters
            .0
            .lock()
            .remove(&(Arc::as_ptr(waiter) as usize));
    }

    /// Something readers wait for has happened: more is visible, records were deleted, or leadership is gone.
    pub fn wake(&self) {
        self.waiters.wake();
    }

    fn set_config(&self, config: LogConfig) {
        let mut state = self.state.lock();
        if let Some(log) = self.log.load_full() {
            log.set_config(config.clone());
        }
        state.config = config;
    }

    /// Ends this broker's leadership. Later calls get NOT_LEADER_OR_FOLLOWER.
    fn close(&self) {
        let log = {
            let mut state = self.state.lock();
            state.closed = true;
            self.log.swap(None)
        };
        if let Some(log) = log
            && let Err(error) = log.close()
        {
            warn!(topic = %self.topic, partition = self.index, %error, "log not closed in order; the next open recovers it");
        }
        self.wake();
    }

    fn snapshot(&self) -> Option<Snapshot> {
        let log = self.open_log()?;
        let offsets = log.known_offsets()?;
        Some(Snapshot {
            topic: self.topic.clone(),
            topic_id: self.topic_id,
            partition: self.index,
            log_start_offset: offsets.start,
            log_end_offset: offsets.end,
            high_watermark: offsets.high_watermark,
            size: log.size(),
        })
    }
}

pub struct Partitions {
    node_id: i32,
    around: Arc<Surroundings>,
    flusher: Flusher,
    config: Arc<LiveConfig>,
    led: RwLock<FnvHashMap<Uuid, BTreeMap<i32, Arc<Partition>>>>,
    pub fetch_sessions: FetchSessions,
    pub producer_ids: ProducerIds,
    /// Answers that wait for the disk.
    pub timeouts: Arc<Timeouts>,
}

impl Partitions {
    pub fn new(
        node_id: i32,
        volume: Arc<dyn Volume>,
        session: Arc<Session>,
        clock: Clock,
        ids: Ids,
        config: Arc<LiveConfig>,
    ) -> Partitions {
        let slots = config.load().max_incremental_fetch_session_cache_slots;
        Partitions {
            node_id,
            flusher: Flusher::start(session.clone()),
            producer_ids: ProducerIds::new(volume.clone(), session.clone()),
            fetch_sessions: FetchSessions::new(ids, usize::try_from(slots).unwrap_or(0)),
            around: Arc::new(Surroundings {
                volume,
                session,
                clock,
            }),
            config,
            led: RwLock::default(),
            timeouts: Arc::default(),
        }
    }

    pub fn flusher(&self) -> &Flusher {
        &self.flusher
    }

    /// Takes up what a version of the assignment gives this broker and lets go of what it takes away. Opens nothing.
    pub fn apply(&self, table: &Table, view: &ClusterView) {
        let mut gone = Vec::new();
        {
            let mut led = self.led.write();
            led.retain(|topic_id, partitions| {
                let kept = table.get_by_id(topic_id).is_some();
                partitions.retain(|index, partition| {
                    let mine = view.leader(*topic_id, *index).is_some_and(|leader| {
                        leader.id == self.node_id && leader.epoch == partition.leader_epoch
                    });
                    if !(kept && mine) {
                        gone.push(partition.clone());
                    }
                    kept && mine
                });
                !partitions.is_empty()
            });
            for topic in table.iter() {
                for index in 0..topic.partitions {
                    let Some(leader) = view
                        .leader(topic.id, index)
                        .filter(|leader| leader.id == self.node_id)
                    else {
                        continue;
                    };
                    led.entry(topic.id)
                        .or_default()
                        .entry(index)
                        .or_insert_with(|| Arc::new(self.partition(topic, index, leader.epoch)));
                }
            }
        }
        for partition in gone {
            info!(topic = %partition.topic, partition = partition.index, "partition no longer led");
            partition.close();
        }
    }

    fn partition(&self, topic: &Topic, index: i32, leader_epoch: i32) -> Partition {
        Partition {
            topic: Arc::from(&*topic.name),
            topic_id: topic.id,
            index,
            leader_epoch,
            dir: topic.partition_dir(index),
            around: self.around.clone(),
            log: ArcSwapOption::empty(),
            state: Mutex::new(State {
                config: log_config(&self.config.load(), topic),
                retry_at_ms: 0,
                closed: false,
            }),
            waiters: Arc::default(),
        }
    }

    /// A partition that this broker leads.
    pub fn get(&self, topic_id: Uuid, index: i32) -> Option<Arc<Partition>> {
        self.led.read().get(&topic_id)?.get(&index).cloned()
    }

    /// The partition, if a client that believes in `current_leader_epoch` (-1: does not say) may use it here.
    pub fn lead(
        &self,
        topic: &Topic,
        index: i32,
        current_leader_epoch: i32,
        view: &ClusterView,
    ) -> Result<Arc<Partition>, ErrorCode> {
        if !topic.has_partition(index) {
            return Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        }
        let partition = self.get(topic.id, index);
        let epoch = match &partition {
            Some(partition) => Some(partition.leader_epoch),
            None => view.leader(topic.id, index).map(|leader| leader.epoch),
        };
        if current_leader_epoch >= 0
            && let Some(epoch) = epoch
        {
            if current_leader_epoch < epoch {
                return Err(ErrorCode::FENCED_LEADER_EPOCH);
            }
            if current_leader_epoch > epoch {
                return Err(ErrorCode::UNKNOWN_LEADER_EPOCH);
            }
        }
        partition.ok_or(ErrorCode::NOT_LEADER_OR_FOLLOWER)
    }

    /// The configuration of a topic, or of the broker, has changed.
    pub fn reconfigure(&self, topic: &Topic) {
        let partitions: Vec<Arc<Partition>> = self
            .led
            .read()
            .get(&topic.id)
            .into_iter()
            .flat_map(|led| led.values().cloned())
            .collect();
        for partition in partitions {
            partition.set_config(log_config(&self.config.load(), topic));
        }
    }

    /// Closes the logs of a topic that was deleted, so that its data may be removed.
    pub fn drop_topic(&self, topic_id: Uuid) {
        let gone = self.led.write().remove(&topic_id);
        for partition in gone.into_iter().flatten().map(|(_, partition)| partition) {
            partition.close();
        }
    }

    pub fn all(&self) -> Vec<Arc<Partition>> {
        self.led
            .read()
            .values()
            .flat_map(|partitions| partitions.values().cloned())
            .collect()
    }

    /// Sizes and offsets of the open logs.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        self.all()
            .iter()
            .filter_map(|partition| partition.snapshot())
            .collect()
    }

    /// Opens what is led and not yet open, on threads of its own, and returns at once.
    pub fn open_in_background(self: &Arc<Partitions>) {
        let todo = Arc::new(Mutex::new(self.all()));
        for opener in 0..OPENERS {
            let todo = todo.clone();
            let spawned = std::thread::Builder::new()
                .name(format!("log-opener-{opener}"))
                .spawn(move || {
                    loop {
                        let Some(partition) = todo.lock().pop() else {
                            break;
                        };
                        // A failure to open is logged where it happens, one to read by the first request; both refuse the
                        // partition and nothing else.
                        if let Ok(log) = partition.log() {
                            let _ = log.load();
                        }
                    }
                });
            if let Err(error) = spawned {
                warn!(%error, "no thread to open logs ahead of their first request");
            }
        }
    }

    /// Deletes what retention no longer keeps and leaves checkpoints, in every open log. Blocks on the disk.
    pub fn maintain(&self) {
        for partition in self.all() {
            let Some(log) = partition.open_log() else {
                continue;
            };
            match log.maintain(self.around.clock.wall_ms()) {
                Ok(0) => {}
                Ok(segments) => {
                    info!(topic = %partition.topic, partition = partition.index, segments, "segments past retention deleted");
                    partition.wake();
                }
                Err(error) => {
                    warn!(topic = %partition.topic, partition = partition.index, %error, "upkeep of a log failed; it is tried again");
                }
            }
        }
    }

    fn flush_what_is_due(&self) {
        let now_ms = self.around.clock.wall_ms();
        for partition in self.all() {
            if let Some(log) = partition.open_log()
                && log.config().flush_messages > 1
            {
                self.flusher.flush_if_due(&log, now_ms);
            }
        }
    }

    /// Runs the upkeep until the process ends.
    pub async fn keep_up(self: Arc<Partitions>) {
        let every_ms = u64::try_from(self.config.load().log_retention_check_interval_ms)
            .expect("it is at least 1");
        let mut retention = tokio::time::interval(Duration::from_millis(every_ms));
        let mut flush = tokio::time::interval(FLUSH_CHECK);
        for ticks in [&mut retention, &mut flush] {
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            ticks.tick().await;
        }
        loop {
            tokio::select! {
                biased;
                _ = flush.tick() => {
                    self.timeouts.run(self.around.clock.mono_ms());
                    self.flush_what_is_due();
                }
                _ = retention.tick() => {
                    let this = self.clone();
                    if tokio::task::spawn_blocking(move || this.maintain()).await.is_err() {
                        error!("upkeep of the logs panicked; it goes on at its next turn");
                    }
                }
            }
        }
    }

    /// Flushes and closes every log, several at a time. Blocks on the disk.
    pub fn close(&self) {
        let led = std::mem::take(&mut *self.led.write());
        let todo: Mutex<Vec<Arc<Partition>>> =
            Mutex::new(led.into_values().flat_map(BTreeMap::into_values).collect());
        let close_some = || {
            loop {
                let Some(partition) = todo.lock().pop() else {
                    break;
                };
                partition.close();
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..CLOSERS {
                scope.spawn(close_some);
            }
        });
    }
}

impl TopicWatcher for Partitions {
    fn changed(&self, _old: &Arc<Topic>, new: &Arc<Topic>) {
        self.reconfigure(new);
    }
}

/// What a topic's configuration means for its logs. Overrides that do not hold any more, since another version of kaas
/// wrote them or the broker's own configuration contradicts them, are left out, and said so.
fn log_config(broker: &Config, topic: &Topic) -> LogConfig {
    let config = TopicConfig::with_overrides(broker, &topic.configs).unwrap_or_else(|why| {
        warn!(topic = topic.name, %why, "the topic's overrides do not hold; the broker's values are used");
        TopicConfig::inherited(broker)
    });
    let unbounded = |value: i64| u64::try_from(value).ok();
    let positive = |value: i32| u64::try_from(value).expect("its table allows no negative value");
    LogConfig {
        segment_bytes: positive(config.segment_size().max(1)),
        segment_ms: config.segment_ms,
        segment_jitter_ms: config.segment_jitter_ms,
        retention_ms: Some(config.retention_ms).filter(|ms| *ms >= 0),
        retention_bytes: unbounded(config.retention_bytes),
        max_message_bytes: positive(config.max_message_bytes) as usize,
        message_timestamp_type: match config.message_timestamp_type {
            value::TimestampType::CreateTime => TimestampType::CreateTime,
            value::TimestampType::LogAppendTime => TimestampType::LogAppendTime,
        },
        message_timestamp_before_max_ms: config.message_timestamp_before_max_ms,
        message_timestamp_after_max_ms: config.message_timestamp_after_max_ms,
        flush_messages: unbounded(config.flush_messages)
            .expect("its table allows no negative value"),
        flush_ms: Some(config.flush_ms).filter(|ms| *ms != i64::MAX),
        index_interval_bytes: config.index_interval_bytes.unsigned_abs(),
        cleanup_policy: CleanupPolicy {
            delete: config.is_deleted_from(),
            compact: config.is_compacted(),
        },
        delete_retention_ms: config.delete_retention_ms,
        min_compaction_lag_ms: config.min_compaction_lag_ms,
        min_cleanable_dirty_ratio: config.min_cleanable_dirty_ratio,
        producer_id_expiration_ms: i64::from(broker.producer_id_expiration_ms),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kaas_storage::layout;
    use kaas_storage::log::AppendOptions;
    use kaas_storage::session::SessionKind;
    use kaas_storage::volume::memory::MemoryVolume;
    use kaas_wire::batch::BatchBuilder;

    use super::*;
    use crate::assignment::{Assignment, PartitionEntry};
    use crate::config::settings::Settings;
    use crate::topics::{NewTopic, Topics};

    const NODE: i32 = 3;

    struct World {
        volume: Arc<dyn Volume>,
        topics: Arc<Topics>,
        partitions: Arc<Partitions>,
        clock: Clock,
    }

    impl World {
        /// A broker with the topic `t` of two partitions.
        async fn new() -> World {
            let volume: Arc<dyn Volume> = Arc::new(MemoryVolume::new());
            layout::create(&*volume).unwrap();
            let uuid = uuid::Uuid::from_u128(1);
            let session = Session::create(volume.clone(), SessionKind::Broker, NODE, uuid).unwrap();
            let session = Arc::new(session);
            let topics = Arc::new(Topics::open(volume.clone(), session.clone()).unwrap().0);
            let clock = Clock::manual(1_000_000);
            let config = Arc::new(LiveConfig::new(&Settings::default()).unwrap());
            let partitions = Arc::new(Partitions::new(
                NODE,
                volume.clone(),
                session,
                clock.clone(),
                Ids::counted(),
                config,
            ));
            let new = NewTopic {
                name: "t".to_owned(),
                id: Uuid::from_bytes([7; 16]),
                partitions: 2,
                configs: BTreeMap::new(),
                created_ms: 0,
            };
            topics.create(vec![new]).await.remove(0).unwrap();
            topics.watch(partitions.clone());
            World {
                volume,
                topics,
                partitions,
                clock,
            }
        }

        fn topic(&self) -> Arc<Topic> {
            self.topics.get("t").unwrap()
        }

        /// Applies an assignment: leader and leader epoch of each partition.
        fn assign(&self, leaders: &[(i32, i32)]) -> ClusterView {
            let topic = self.topic();
            let entry =
                |(partition, (leader, leader_epoch)): (usize, &(i32, i32))| PartitionEntry {
                    topic: topic.name.clone(),
                    topic_id: topic.id.to_string(),
                    partition: partition as i32,
                    leader: *leader,
                    leader_epoch: *leader_epoch,
                };
            let partitions = leaders.iter().enumerate().map(entry).collect();
            let view = ClusterView::of(&Assignment {
                partitions,
                ..Assignment::default()
            });
            self.partitions.apply(&self.topics.table(), &view);
            view
        }

        fn append(&self, partition: &Partition) -> Result<i64, ErrorCode> {
            let log = partition.log()?;
            let options = AppendOptions {
                now_ms: self.clock.wall_ms(),
                zstd: true,
            };
            let appended = log.append(batch(), options).map_err(|error| error.code)?;
            let (done, waiting) = std::sync::mpsc::channel();
            let callback = Box::new(move |result| done.send(result).expect("the test waits"));
            self.partitions.flusher().flush(&log, &appended, callback);
            waiting.recv().unwrap().map_err(|error| error.code)?;
            Ok(appended.base_offset)
        }
    }

    fn batch() -> Bytes {
        BatchBuilder::new(0)
            .record(1_000, None, Some(b"value"))
            .build()
    }

    #[tokio::test]
    async fn what_the_assignment_gives_is_led_under_its_epoch_and_the_rest_is_refused() {
        let world = World::new().await;
        let view = world.assign(&[(NODE, 4), (9, 6)]);
        let topic = world.topic();
        let lead = |index, epoch| {
            world
                .partitions
                .lead(&topic, index, epoch, &view)
                .map(|led| led.leader_epoch)
        };
        assert_eq!(lead(0, -1), Ok(4));
        assert_eq!(lead(0, 4), Ok(4));
        assert_eq!(lead(0, 3), Err(ErrorCode::FENCED_LEADER_EPOCH));
        assert_eq!(lead(0, 5), Err(ErrorCode::UNKNOWN_LEADER_EPOCH));
        assert_eq!(lead(1, -1), Err(ErrorCode::NOT_LEADER_OR_FOLLOWER));
        assert_eq!(lead(1, 5), Err(ErrorCode::FENCED_LEADER_EPOCH));
        assert_eq!(lead(2, -1), Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    }

    #[tokio::test]
    async fn a_partition_taken_away_refuses_what_still_holds_it_and_keeps_its_records() {
        let world = World::new().await;
        world.assign(&[(NODE, 1), (NODE, 1)]);
        let id = world.topic().id;
        let (lost, kept) = (
            world.partitions.get(id, 0).unwrap(),
            world.partitions.get(id, 1).unwrap(),
        );
        let log = lost.log().unwrap();
        assert_eq!(world.append(&lost), Ok(0));
        let waiter = Arc::new(Notify::new());
        lost.wait(&waiter);
        world.assign(&[(9, 2), (NODE, 1)]);
        waiter.notified().await;
        assert_eq!(lost.log().err(), Some(ErrorCode::NOT_LEADER_OR_FOLLOWER));
        let options = AppendOptions {
            now_ms: 0,
            zstd: true,
        };
        assert_eq!(
            log.append(batch(), options).unwrap_err().code,
            ErrorCode::NOT_LEADER_OR_FOLLOWER
        );
        assert!(Arc::ptr_eq(&kept, &world.partitions.get(id, 1).unwrap()));
        // Given back, it goes on where it was.
        world.assign(&[(NODE, 3), (NODE, 1)]);
        assert_eq!(world.append(&world.partitions.get(id, 0).unwrap()), Ok(1));
    }

    #[tokio::test]
    async fn a_log_that_cannot_be_opened_refuses_its_partition_and_no_other_until_it_is_mended() {
        let world = World::new().await;
        world.assign(&[(NODE, 0), (NODE, 0)]);
        let topic = world.topic();
        let dir = topic.partition_dir(0);
        world
            .volume
            .create_dir_all(kaas_storage::volume::parent(&dir))
            .unwrap();
        world.volume.create(&dir).unwrap();
        let (bad, good) = (
            world.partitions.get(topic.id, 0).unwrap(),
            world.partitions.get(topic.id, 1).unwrap(),
        );
        assert_eq!(bad.log().err(), Some(ErrorCode::KAFKA_STORAGE_ERROR));
        assert_eq!(world.append(&good), Ok(0));
        world.volume.remove_file(&dir).unwrap();
        assert_eq!(
            bad.log().err(),
            Some(ErrorCode::KAFKA_STORAGE_ERROR),
            "it is not tried at every request"
        );
        world.clock.advance(Duration::from_millis(REOPEN_AFTER_MS));
        assert_eq!(world.append(&bad), Ok(0));
    }

    #[tokio::test]
    async fn readers_that_wait_are_woken_once_a_record_is_visible() {
        let world = World::new().await;
        world.assign(&[(NODE, 0), (NODE, 0)]);
        let id = world.topic().id;
        let (grows, rests) = (
            world.partitions.get(id, 0).unwrap(),
            world.partitions.get(id, 1).unwrap(),
        );
        let waiter = Arc::new(Notify::new());
        grows.wait(&waiter);
        rests.wait(&waiter);
        world.append(&grows).unwrap();
        waiter.notified().await;
        assert_eq!(grows.log().unwrap().high_watermark(), Ok(1));
        assert!(grows.waiters.0.lock().is_empty() && rests.waiters.0.lock().len() == 1);
        rests.stop_waiting(&waiter);
        assert!(rests.waiters.0.lock().is_empty());
    }

    #[tokio::test]
    async fn a_topics_new_config_reaches_open_logs_and_those_opened_later() {
        let world = World::new().await;
        world.assign(&[(NODE, 0), (NODE, 0)]);
        let id = world.topic().id;
        let open = world.partitions.get(id, 0).unwrap().log().unwrap();
        let configs = BTreeMap::from([
            ("retention.ms".to_owned(), "-1".to_owned()),
            ("max.message.bytes".to_owned(), "77".to_owned()),
        ]);
        world
            .topics
            .change("t", |old| {
                Ok(Topic {
                    configs,
                    ..old.clone()
                })
            })
            .await
            .unwrap();
        let later = world.partitions.get(id, 1).unwrap().log().unwrap();
        for log in [open, later] {
            assert_eq!(
                (log.config().retention_ms, log.config().max_message_bytes),
                (None, 77)
            );
        }
    }

    #[tokio::test]
    async fn overrides_that_do_not_hold_leave_the_brokers_values() {
        let topic = Topic {
            configs: BTreeMap::from([("nope".to_owned(), "1".to_owned())]),
            ..(*World::new().await.topic()).clone()
        };
        let config = log_config(&Config::default(), &topic);
        assert_eq!(
            config,
            LogConfig {
                ..log_config(
                    &Config::default(),
                    &Topic {
                        configs: BTreeMap::new(),
                        ..topic
                    }
                )
            }
        );
    }
}
