//! Incremental fetch sessions (KIP-227): what a client asked for is remembered, so that it sends, and is sent, only what
//! changed.
//!
//! The cache is bounded. A session gives way to a new one when it has not been used for `EVICTION_MS`, or when it is
//! older than that and the new one is larger; a client whose session is gone gets FETCH_SESSION_ID_NOT_FOUND and starts
//! over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fnv::FnvHashMap;
use kaas_wire::messages::fetch::PartitionData;
use kaas_wire::{ErrorCode, Records, Uuid};
use parking_lot::Mutex;

use crate::ids::Ids;

/// Kafka's `KafkaServer.MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS`.
pub const EVICTION_MS: u64 = 120_000;
/// The epoch of a request that opens a session.
const INITIAL_EPOCH: i32 = 0;
/// The epoch of a request that wants none.
const FINAL_EPOCH: i32 = -1;
const NO_SESSION: i32 = 0;

/// One partition of a fetch: what is asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Empty while the topic id is unknown.
    pub topic: Arc<str>,
    /// Zero below version 13.
    pub topic_id: Uuid,
    pub partition: i32,
    pub fetch_offset: i64,
    pub max_bytes: i32,
    pub current_leader_epoch: i32,
    pub last_fetched_epoch: i32,
}

/// Names a partition within a session. With topic ids the name is not part of it: it may become known later.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionKey {
    topic_id: Uuid,
    topic: Arc<str>,
    partition: i32,
}

impl PartitionKey {
    pub fn new(topic_id: Uuid, topic: &Arc<str>, partition: i32) -> PartitionKey {
        let by_name = topic_id == Uuid::ZERO;
        PartitionKey {
            topic_id,
            topic: if by_name {
                topic.clone()
            } else {
                Arc::from("")
            },
            partition,
        }
    }
}

impl Wanted {
    fn key(&self) -> PartitionKey {
        PartitionKey::new(self.topic_id, &self.topic, self.partition)
    }
}

/// What the client was last told of a partition.
#[derive(Debug)]
struct Cached {
    wanted: Wanted,
    high_watermark: i64,
    log_start_offset: i64,
}

impl Cached {
    /// Remembers the answer; whether it has news for the client.
    fn update(&mut self, data: &PartitionData) -> bool {
        let mut news = records_len(&data.records) > 0;
        if self.high_watermark != data.high_watermark {
            self.high_watermark = data.high_watermark;
            news = true;
        }
        if self.log_start_offset != data.log_start_offset {
            self.log_start_offset = data.log_start_offset;
            news = true;
        }
        if data.diverging_epoch.epoch >= 0 {
            self.high_watermark = -1;
            news = true;
        }
        if !data.error_code.is_ok() {
            // Sent again when the error has gone, whatever the watermark is then.
            self.high_watermark = -1;
            news = true;
        }
        news
    }
}

pub fn records_len(records: &Records) -> usize {
    match records {
        Records::Absent => 0,
        Records::Inline(bytes) => bytes.len(),
        Records::External { len, .. } => *len,
    }
}

/// The partitions of one client, in the order in which they are served next.
#[derive(Debug)]
struct Session {
    id: i32,
    epoch: i32,
    uses_topic_ids: bool,
    created_ms: u64,
    last_used_ms: u64,
    /// By turn. A partition that delivered records goes to the end, so that a small `max_bytes` starves none.
    turns: BTreeMap<u64, Cached>,
    turn_of: FnvHashMap<PartitionKey, u64>,
    next_turn: u64,
}

impl Session {
    fn put(&mut self, cached: Cached) {
        let key = cached.wanted.key();
        match self.turn_of.get(&key) {
            Some(turn) => {
                let known = self.turns.get_mut(turn).expect("every key has its turn");
                known.wanted = cached.wanted;
            }
            None => {
                self.turn_of.insert(key, self.next_turn);
                self.turns.insert(self.next_turn, cached);
                self.next_turn += 1;
            }
        }
        self.debug_check();
    }

    fn forget(&mut self, key: &PartitionKey) {
        if let Some(turn) = self.turn_of.remove(key) {
            self.turns.remove(&turn);
        }
        self.debug_check();
    }

    fn move_to_the_end(&mut self, key: &PartitionKey) {
        let turn = self
            .turn_of
            .get_mut(key)
            .expect("a partition that is moved is in the session");
        let cached = self.turns.remove(turn).expect("every key has its turn");
        *turn = self.next_turn;
        self.turns.insert(self.next_turn, cached);
        self.next_turn += 1;
    }

    fn debug_check(&self) {
        debug_assert_eq!(
            self.turns.len(),
            self.turn_of.len(),
            "every partition has exactly one turn"
        );
    }
}

/// How a fetch is answered: what was agreed with the client before.
#[derive(Debug)]
pub enum Context {
    /// The whole answer is this error.
    Refused(ErrorCode),
    Sessionless,
    /// Everything is answered; a session is opened if there is room.
    Full {
        uses_topic_ids: bool,
    },
    /// Only news is answered.
    Incremental {
        session: SessionRef,
        epoch: i32,
    },
}

#[derive(Clone, Debug)]
pub struct SessionRef(Arc<Mutex<Session>>);

/// What a request says of its session.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub version: i16,
    pub session_id: i32,
    pub session_epoch: i32,
    pub now_ms: u64,
}

/// All sessions of this broker.
pub struct FetchSessions {
    ids: Ids,
    inner: Mutex<Inner>,
}

struct Inner {
    slots: usize,
    sessions: FnvHashMap<i32, SessionRef>,
    /// (last used, id).
    by_use: BTreeSet<(u64, i32)>,
}

impl FetchSessions {
    pub fn new(ids: Ids, slots: usize) -> FetchSessions {
        FetchSessions {
            ids,
            inner: Mutex::new(Inner {
                slots,
                sessions: FnvHashMap::default(),
                by_use: BTreeSet::new(),
            }),
        }
    }

    pub fn len(&self) -> usize {
        self.inner.lock().sessions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Begins a fetch: what is wanted now, all partitions together, and how to answer.
    pub fn begin(
        &self,
        asked: Asked,
        wanted: Vec<Wanted>,
        forgotten: &[PartitionKey],
    ) -> (Context, Vec<Wanted>) {
        let mut inner = self.inner.lock();
        if asked.session_epoch == INITIAL_EPOCH || asked.session_epoch == FINAL_EPOCH {
            if asked.session_id != NO_SESSION {
                inner.remove(asked.session_id);
            }
            return if asked.session_epoch == FINAL_EPOCH {
                (Context::Sessionless, wanted)
            } else {
                (
                    Context::Full {
                        uses_topic_ids: asked.version >= 13,
                    },
                    wanted,
                )
            };
        }
        let Some(found) = inner.sessions.get(&asked.session_id).cloned() else {
            return (
                Context::Refused(ErrorCode::FETCH_SESSION_ID_NOT_FOUND),
                Vec::new(),
            );
        };
        let mut session = found.0.lock();
        if session.epoch != asked.session_epoch {
            return (
                Context::Refused(ErrorCode::INVALID_FETCH_SESSION_EPOCH),
                Vec::new(),
            );
        }
        if session.uses_topic_ids != (asked.version >= 13) {
            return (
                Context::Refused(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR),
                Vec::new(),
            );
        }
        for one in &wanted {
            session.put(Cached {
                wanted: one.clone(),
                high_watermark: -1,
                log_start_offset: -1,
            });
        }
        for key in forgotten {
            session.forget(key);
        }
        if session.turns.is_empty() {
            drop(session);
            inner.remove(asked.session_id);
            return (Context::Sessionless, wanted);
        }
        inner.by_use.remove(&(session.last_used_ms, session.id));
        session.last_used_ms = asked.now_ms;
        inner.by_use.insert((session.last_used_ms, session.id));
        session.epoch = next_epoch(session.epoch);
        let all = session
            .turns
            .values()
            .map(|cached| cached.wanted.clone())
            .collect();
        let epoch = session.epoch;
        drop(session);
        (
            Context::Incremental {
                session: found,
                epoch,
            },
            all,
        )
    }

    /// Ends a fetch: the top-level error, the session's id and what of the answers is to be sent.
    pub fn end<T>(
        &self,
        context: Context,
        now_ms: u64,
        mut answers: Vec<(Wanted, PartitionData, T)>,
    ) -> (ErrorCode, i32, Vec<(Wanted, PartitionData, T)>) {
        match context {
            Context::Refused(error) => (error, NO_SESSION, Vec::new()),
            Context::Sessionless => (ErrorCode::NONE, NO_SESSION, answers),
            Context::Full { uses_topic_ids } => {
                let id = self.open(uses_topic_ids, now_ms, &answers);
                (ErrorCode::NONE, id, answers)
            }
            Context::Incremental { session, epoch } => {
                let mut session = session.0.lock();
                if session.epoch != epoch {
                    return (
                        ErrorCode::INVALID_FETCH_SESSION_EPOCH,
                        session.id,
                        Vec::new(),
                    );
                }
                answers.retain(|(wanted, data, _)| {
                    let key = wanted.key();
                    let Some(turn) = session.turn_of.get(&key).copied() else {
                        return false;
                    };
                    let news = session
                        .turns
                        .get_mut(&turn)
                        .expect("every key has its turn")
                        .update(data);
                    if records_len(&data.records) > 0 {
                        session.move_to_the_end(&key);
                    }
                    news
                });
                (ErrorCode::NONE, session.id, answers)
            }
        }
    }

    /// Opens a session over what was just answered; `NO_SESSION` if there is no room for it.
    fn open<T>(
        &self,
        uses_topic_ids: bool,
        now_ms: u64,
        answers: &[(Wanted, PartitionData, T)],
    ) -> i32 {
        let mut inner = self.inner.lock();
        if inner.sessions.len() >= inner.slots && !inner.evict_for(answers.len(), now_ms) {
            return NO_SESSION;
        }
        let id = loop {
            let id = self.ids.any_i32() & i32::MAX;
            if id != NO_SESSION && !inner.sessions.contains_key(&id) {
                break id;
            }
        };
        let mut session = Session {
            id,
            epoch: next_epoch(INITIAL_EPOCH),
            uses_topic_ids,
            created_ms: now_ms,
            last_used_ms: now_ms,
            turns: BTreeMap::new(),
            turn_of: FnvHashMap::default(),
            next_turn: 0,
        };
        for (wanted, data, _) in answers {
            let mut cached = Cached {
                wanted: wanted.clone(),
                high_watermark: -1,
                log_start_offset: -1,
            };
            cached.update(data);
            session.put(cached);
        }
        inner.by_use.insert((now_ms, id));
        inner
            .sessions
            .insert(id, SessionRef(Arc::new(Mutex::new(session))));
        id
    }
}

impl Inner {
    fn remove(&mut self, id: i32) {
        if let Some(session) = self.sessions.remove(&id) {
            let last_used_ms = session.0.lock().last_used_ms;
            self.by_use.remove(&(last_used_ms, id));
        }
        debug_assert_eq!(
            self.sessions.len(),
            self.by_use.len(),
            "every session has one entry by use"
        );
    }

    /// Makes room for a session of `size` partitions, if one deserves its place less.
    fn evict_for(&mut self, size: usize, now_ms: u64) -> bool {
        let Some(&(last_used_ms, oldest)) = self.by_use.first() else {
            return false;
        };
        if now_ms.saturating_sub(last_used_ms) > EVICTION_MS {
            self.remove(oldest);
            return true;
        }
        let smallest = self
            .sessions
            .values()
            .filter_map(|session| {
                let session = session.0.lock();
                (now_ms.saturating_sub(session.created_ms) > EVICTION_MS)
                    .then_some((session.turns.len(), session.id))
            })
            .min();
        match smallest {
            Some((smaller, id)) if smaller < size => {
                self.remove(id);
                true
            }
            _ => false,
        }
    }
}

/// Kafka's `FetchMetadata.nextEpoch`.
fn next_epoch(epoch: i32) -> i32 {
    match epoch {
        i32::MIN..0 => FINAL_EPOCH,
        i32::MAX => 1,
        _ => epoch + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn wanted(topic: &str, partition: i32) -> Wanted {
        Wanted {
            topic: Arc::from(topic),
            topic_id: Uuid::ZERO,
            partition,
            fetch_offset: 0,
            max_bytes: 1 << 20,
            current_leader_epoch: -1,
            last_fetched_epoch: -1,
        }
    }

    fn answer(wanted: &Wanted, high_watermark: i64, records: usize) -> (Wanted, PartitionData, ()) {
        let data = PartitionData {
            partition_index: wanted.partition,
            high_watermark,
            log_start_offset: 0,
            records: Records::Inline(Bytes::from(vec![0; records])),
            ..Default::default()
        };
        (wanted.clone(), data, ())
    }

    fn asked(session_id: i32, session_epoch: i32, now_ms: u64) -> Asked {
        Asked {
            version: 11,
            session_id,
            session_epoch,
            now_ms,
        }
    }

    fn open(sessions: &FetchSessions, now_ms: u64, partitions: i32) -> i32 {
        let all: Vec<Wanted> = (0..partitions)
            .map(|partition| wanted("a", partition))
            .collect();
        let (context, all) = sessions.begin(asked(0, 0, now_ms), all, &[]);
        let (error, id, _) = sessions.end(
            context,
            now_ms,
            all.iter().map(|one| answer(one, 0, 0)).collect(),
        );
        assert_eq!(error, ErrorCode::NONE);
        id
    }

    fn cache(slots: usize) -> FetchSessions {
        FetchSessions::new(Ids::counted(), slots)
    }

    #[test]
    fn a_full_fetch_opens_a_session_and_the_next_one_answers_only_news() {
        let sessions = cache(10);
        let id = open(&sessions, 0, 3);
        assert_ne!(id, 0);
        let (context, all) = sessions.begin(asked(id, 1, 10), vec![], &[]);
        assert_eq!(all.len(), 3);
        let answers = vec![
            answer(&all[0], 0, 0),
            answer(&all[1], 5, 0),
            answer(&all[2], 0, 9),
        ];
        let (error, answered, kept) = sessions.end(context, 10, answers);
        assert_eq!((error, answered), (ErrorCode::NONE, id));
        assert_eq!(
            kept.iter()
                .map(|(wanted, ..)| wanted.partition)
                .collect::<Vec<_>>(),
            [1, 2]
        );
    }

    #[test]
    fn a_partition_that_delivered_records_goes_to_the_end() {
        let sessions = cache(10);
        let id = open(&sessions, 0, 3);
        let (context, all) = sessions.begin(asked(id, 1, 10), vec![], &[]);
        let answers = vec![
            answer(&all[0], 0, 9),
            answer(&all[1], 0, 0),
            answer(&all[2], 0, 0),
        ];
        sessions.end(context, 10, answers);
        let (_, all) = sessions.begin(asked(id, 2, 20), vec![], &[]);
        assert_eq!(
            all.iter().map(|one| one.partition).collect::<Vec<_>>(),
            [1, 2, 0]
        );
    }

    #[test]
    fn an_error_is_told_every_time_and_its_end_is_news() {
        let sessions = cache(10);
        let id = open(&sessions, 0, 1);
        for epoch in 1..4 {
            let (context, all) = sessions.begin(asked(id, epoch, 10), vec![], &[]);
            let mut one = answer(&all[0], 0, 0);
            if epoch < 3 {
                one.1.error_code = ErrorCode::NOT_LEADER_OR_FOLLOWER;
            }
            let (_, _, kept) = sessions.end(context, 10, vec![one]);
            assert_eq!(kept.len(), 1, "epoch {epoch}");
        }
    }

    #[test]
    fn a_wrong_epoch_an_unknown_session_and_a_change_of_naming_are_refused() {
        let sessions = cache(10);
        let id = open(&sessions, 0, 1);
        let refused = |asked: Asked| match sessions.begin(asked, vec![], &[]).0 {
            Context::Refused(error) => error,
            other => panic!("expected a refusal, got {other:?}"),
        };
        assert_eq!(
            refused(asked(id, 2, 0)),
            ErrorCode::INVALID_FETCH_SESSION_EPOCH
        );
        assert_eq!(
            refused(asked(id ^ 1, 1, 0)),
            ErrorCode::FETCH_SESSION_ID_NOT_FOUND
        );
        let by_id = Asked {
            version: 13,
            ..asked(id, 1, 0)
        };
        assert_eq!(refused(by_id), ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR);
        assert!(matches!(
            sessions.begin(asked(id, 1, 0), vec![], &[]).0,
            Context::Incremental { .. }
        ));
    }

    #[test]
    fn forgetting_everything_ends_the_session() {
        let sessions = cache(10);
        let id = open(&sessions, 0, 1);
        let (context, all) = sessions.begin(
            asked(id, 1, 0),
            vec![],
            &[PartitionKey::new(Uuid::ZERO, &Arc::from("a"), 0)],
        );
        assert!(matches!(context, Context::Sessionless) && all.is_empty());
        assert!(sessions.is_empty());
    }

    #[test]
    fn a_final_epoch_closes_the_session_and_opens_none() {
        let sessions = cache(10);
        let id = open(&sessions, 0, 1);
        let (context, _) = sessions.begin(asked(id, -1, 0), vec![wanted("a", 0)], &[]);
        assert!(matches!(context, Context::Sessionless));
        assert!(sessions.is_empty());
    }

    #[test]
    fn a_full_cache_keeps_young_sessions_and_gives_up_stale_and_small_old_ones() {
        let sessions = cache(1);
        let first = open(&sessions, 0, 2);
        assert_ne!(first, 0);
        assert_eq!(open(&sessions, 10, 5), 0, "a young session keeps its place");
        // Old, in use, but smaller than the newcomer.
        let (_, _) = sessions.begin(asked(first, 1, EVICTION_MS), vec![], &[]);
        assert_eq!(
            open(&sessions, EVICTION_MS + 1, 2),
            0,
            "an equal one does not push it out"
        );
        assert_ne!(open(&sessions, EVICTION_MS + 1, 3), 0);
        assert_eq!(sessions.len(), 1);
        // Unused for long.
        assert_ne!(open(&sessions, 3 * EVICTION_MS, 1), 0);
        assert_eq!(sessions.len(), 1);
    }

    #[test]
    fn epochs_wrap_to_one() {
        assert_eq!(next_epoch(i32::MAX), 1);
        assert_eq!(next_epoch(0), 1);
        assert_eq!(next_epoch(-1), -1);
    }
}
