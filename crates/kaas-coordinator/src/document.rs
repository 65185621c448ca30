//! A group as it is stored: the readable JSON of `<group id>.json`, and the compact delta that carries its offsets from
//! one revision to the next in the journal.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use kaas_wire::Uuid;

use crate::{Revision, base64, subscription};

/// Raised when a document changes so that an older kaas must not read it.
pub const FORMAT: u32 = 1;

/// Topics and partitions are written out beside the bytes they come from, but for bytes longer than this.
const READABLE_MAX_BYTES: usize = 64 * 1024;

/// Offsets by topic and partition.
pub type Offsets = BTreeMap<String, BTreeMap<i32, Committed>>;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupDocument {
    pub format: u32,
    pub group_id: String,
    pub revision: Revision,
    pub state: StateDocument,
    pub offsets: Offsets,
    /// Offsets of transactions that are still open, by producer id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pending_offsets: BTreeMap<i64, Offsets>,
}

/// What differs between the types of groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateDocument {
    Classic(ClassicDocument),
}

/// The last generation that was complete, or the group when it became Empty: a rebalance under way is not stored, so
/// after a reload its members find out by their next request (CG-128).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassicDocument {
    /// `Empty` or `Stable`.
    pub state: String,
    /// When it entered that state, milliseconds since 1970; none in documents that came from elsewhere.
    pub state_timestamp: Option<i64>,
    pub generation: i32,
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    pub leader: Option<String>,
    pub members: Vec<MemberDocument>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberDocument {
    pub member_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    pub client_id: String,
    pub client_host: String,
    pub session_timeout_ms: i32,
    pub rebalance_timeout_ms: i32,
    /// All that the member offers, in its order of preference, so that the same offer after a reload is no change.
    pub protocols: Vec<ProtocolDocument>,
    #[serde(with = "base64")]
    pub assignment: Bytes,
    /// `assignment` for people; never read back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assigned_partitions: Option<BTreeMap<String, Vec<i32>>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProtocolDocument {
    pub name: String,
    #[serde(with = "base64")]
    pub metadata: Bytes,
    /// `metadata` for people; never read back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribed_topics: Option<Vec<String>>,
}

/// One committed offset (OF-01).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Committed {
    pub offset: i64,
    /// -1 when the client gave none.
    #[serde(default = "no_epoch", skip_serializing_if = "is_no_epoch")]
    pub leader_epoch: i32,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub metadata: Box<str>,
    pub commit_timestamp: i64,
    /// Set by clients that ask for a retention of their own (OffsetCommit 2-4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire_timestamp: Option<i64>,
    /// [`Uuid::ZERO`] when unknown.
    #[serde(
        default = "no_topic_id",
        skip_serializing_if = "is_no_topic_id",
        with = "uuid_text"
    )]
    pub topic_id: Uuid,
}

fn no_epoch() -> i32 {
    -1
}

fn is_no_epoch(epoch: &i32) -> bool {
    *epoch == -1
}

fn no_topic_id() -> Uuid {
    Uuid::ZERO
}

fn is_no_topic_id(id: &Uuid) -> bool {
    id.is_zero()
}

mod uuid_text {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use kaas_wire::Uuid;

    pub fn serialize<S: Serializer>(id: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|_| de::Error::custom("not a topic id"))
    }
}

/// Why a document, or a change to one, cannot be used. Never taken for an empty group.
#[derive(Debug, Error)]
pub enum DocumentError {
    #[error("the document does not parse: {0}")]
    Parse(#[from] serde_json::Error),
    #[error("the document has format {0}, this kaas reads up to {FORMAT}; upgrade it")]
    Format(u32),
    #[error("the document is of group {found:?}, not of {expected:?}")]
    WrongGroup { expected: String, found: String },
    #[error("the document has term {found}, which is above the term {current} in force")]
    TermAhead { found: u64, current: u64 },
    #[error("the document contradicts itself: {0}")]
    Inconsistent(String),
    #[error("a change with revision {next:?} does not follow {have:?}")]
    Gap { have: Revision, next: Revision },
    #[error("a change of offsets does not parse at byte {0}")]
    Delta(usize),
}

impl GroupDocument {
    /// Reads what [`GroupDocument::to_json`] or a [`crate::ChangeKind::Document`] payload holds.
    pub fn from_json(json: &[u8]) -> Result<GroupDocument, DocumentError> {
        let document: GroupDocument = serde_json::from_slice(json)?;
        if document.format > FORMAT {
            return Err(DocumentError::Format(document.format));
        }
        Ok(document)
    }

    /// The content of the group's file.
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec_pretty(self)
            .expect("a document has string keys and no failing parts");
        json.push(b'\n');
        json
    }

    /// The same without white space, for the journal.
    pub fn to_compact_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a document has string keys and no failing parts")
    }

    /// Replays the payload of a [`crate::ChangeKind::Offsets`] change, which must follow this document's revision.
    pub fn apply(&mut self, revision: Revision, delta: &[u8]) -> Result<(), DocumentError> {
        if revision.term != self.revision.term || revision.n != self.revision.n + 1 {
            return Err(DocumentError::Gap {
                have: self.revision,
                next: revision,
            });
        }
        for step in DeltaReader::new(delta) {
            match step? {
                Step::Set {
                    topic,
                    partition,
                    committed,
                } => {
                    set(&mut self.offsets, topic, partition, committed);
                }
                Step::Remove { topic, partition } => {
                    remove(&mut self.offsets, topic, partition);
                    for offsets in self.pending_offsets.values_mut() {
                        remove(offsets, topic, partition);
                    }
                    self.pending_offsets
                        .retain(|_, offsets| !offsets.is_empty());
                }
            }
        }
        self.revision = revision;
        Ok(())
    }
}

pub(crate) fn set(offsets: &mut Offsets, topic: &str, partition: i32, committed: Committed) {
    match offsets.get_mut(topic) {
        Some(partitions) => {
            partitions.insert(partition, committed);
        }
        None => {
            offsets.insert(topic.to_owned(), BTreeMap::from([(partition, committed)]));
        }
    }
}

/// Whether there was something to remove. A topic without partitions does not stay.
pub(crate) fn remove(offsets: &mut Offsets, topic: &str, partition: i32) -> bool {
    let Some(partitions) = offsets.get_mut(topic) else {
        return false;
    };
    let removed = partitions.remove(&partition).is_some();
    if partitions.is_empty() {
        offsets.remove(topic);
    }
    removed
}

impl MemberDocument {
    /// Fills in what is only for people, where the bytes are of the "consumer" protocol type.
    pub(crate) fn explain(&mut self) {
        for protocol in &mut self.protocols {
            if protocol.metadata.len() <= READABLE_MAX_BYTES {
                protocol.subscribed_topics = subscription::subscribed_topics(&protocol.metadata)
                    .map(|topics| topics.into_iter().map(str::to_owned).collect());
            }
        }
        if self.assignment.len() <= READABLE_MAX_BYTES {
            self.assigned_partitions = subscription::assigned_partitions(&self.assignment);
        }
    }
}

const DELTA_VERSION: u8 = 1;
const TOPIC: u8 = 1;
const SET: u8 = 2;
const SET_EXPIRING: u8 = 3;
const REMOVE: u8 = 4;

/// Writes a delta: a version byte, then steps. A `TOPIC` step (name, id) is what the partition steps after it are about.
/// Integers are big-endian, texts have a length of four bytes.
pub(crate) struct DeltaWriter {
    bytes: Vec<u8>,
    steps: usize,
}

impl DeltaWriter {
    pub fn new() -> DeltaWriter {
        DeltaWriter {
            bytes: Vec::new(),
            steps: 0,
        }
    }

    pub fn topic(&mut self, name: &str, id: Uuid) {
        if self.bytes.is_empty() {
            self.bytes.reserve(128);
            self.bytes.push(DELTA_VERSION);
        }
        self.bytes.push(TOPIC);
        self.text(name);
        self.bytes.extend_from_slice(id.as_bytes());
    }

    pub fn set(&mut self, partition: i32, committed: &Committed) {
        self.steps += 1;
        self.bytes.push(if committed.expire_timestamp.is_some() {
            SET_EXPIRING
        } else {
            SET
        });
        self.bytes.extend_from_slice(&partition.to_be_bytes());
        self.bytes
            .extend_from_slice(&committed.offset.to_be_bytes());
        self.bytes
            .extend_from_slice(&committed.leader_epoch.to_be_bytes());
        self.bytes
            .extend_from_slice(&committed.commit_timestamp.to_be_bytes());
        if let Some(expire_timestamp) = committed.expire_timestamp {
            self.bytes
                .extend_from_slice(&expire_timestamp.to_be_bytes());
        }
        self.text(&committed.metadata);
    }

    pub fn remove(&mut self, partition: i32) {
        self.steps += 1;
        self.bytes.push(REMOVE);
        self.bytes.extend_from_slice(&partition.to_be_bytes());
    }

    pub fn is_empty(&self) -> bool {
        self.steps == 0
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn text(&mut self, text: &str) {
        let len = u32::try_from(text.len()).expect("a text of one request is shorter than 4 GiB");
        self.bytes.extend_from_slice(&len.to_be_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

enum Step<'a> {
    Set {
        topic: &'a str,
        partition: i32,
        committed: Committed,
    },
    Remove {
        topic: &'a str,
        partition: i32,
    },
}

struct DeltaReader<'a> {
    delta: &'a [u8],
    at: usize,
    topic: Option<(&'a str, Uuid)>,
}

impl<'a> DeltaReader<'a> {
    fn new(delta: &'a [u8]) -> DeltaReader<'a> {
        DeltaReader {
            delta,
            at: 0,
            topic: None,
        }
    }

    fn step(&mut self) -> Option<Step<'a>> {
        if self.at == 0 && self.array()? != [DELTA_VERSION] {
            return None;
        }
        loop {
            let [kind] = self.array()?;
            if kind == TOPIC {
                self.topic = Some((self.text()?, Uuid::from_bytes(self.array()?)));
                continue;
            }
            let (topic, topic_id) = self.topic?;
            let partition = i32::from_be_bytes(self.array()?);
            return match kind {
                SET | SET_EXPIRING => {
                    let offset = i64::from_be_bytes(self.array()?);
                    let leader_epoch = i32::from_be_bytes(self.array()?);
                    let commit_timestamp = i64::from_be_bytes(self.array()?);
                    let expire_timestamp = if kind == SET_EXPIRING {
                        Some(i64::from_be_bytes(self.array()?))
                    } else {
                        None
                    };
                    let metadata = self.text()?.into();
                    let committed = Committed {
                        offset,
                        leader_epoch,
                        metadata,
                        commit_timestamp,
                        expire_timestamp,
                        topic_id,
                    };
                    Some(Step::Set {
                        topic,
                        partition,
                        committed,
                    })
                }
                REMOVE => Some(Step::Remove { topic, partition }),
                _ => None,
            };
        }
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.delta.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn text(&mut self) -> Option<&'a str> {
        let len = u32::from_be_bytes(self.array()?);
        str::from_utf8(self.take(usize::try_from(len).ok()?)?).ok()
    }
}

impl<'a> Iterator for DeltaReader<'a> {
    type Item = Result<Step<'a>, DocumentError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.delta.len() {
            return None;
        }
        Some(self.step().ok_or_else(|| {
            let at = self.at;
            self.at = self.delta.len();
            DocumentError::Delta(at)
        }))
    }
}
