//! The registry of topics: name, id, partition count and overridden configs, one readable JSON file a topic.
//!
//! A topic is what its file says; it exists from the moment the file is published until the moment the file is retired.
//! Data lies under the topic's id, so a re-created topic inherits nothing. Who leads a partition is the assignment's
//! business (`assignment.rs`), what a partition holds is `partitions.rs`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use fnv::FnvHashMap;
use kaas_storage::error::StorageError;
use kaas_storage::layout::{TOPIC_FILES, TOPICS, file_name};
use kaas_storage::session::Session;
use kaas_storage::volume::Volume;
use kaas_wire::{ErrorCode, Uuid};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use tracing::{error, info, warn};

use crate::Broker;
use crate::config::alter::AlterError;
use crate::controller::NewPartitions;

/// Kafka's longest topic name.
pub const MAX_TOPIC_NAME: usize = 249;
/// Files published at once when a request creates many topics.
const PUBLISHERS: usize = 8;

/// Names Kafka keeps for itself. Their state lies in `__cluster/`, so no such topic exists here.
const INTERNAL_TOPICS: [&str; 4] = [
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    "__cluster_metadata",
];

/// A refusal as admin APIs give it: a code and, where Kafka has one, a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    pub code: ErrorCode,
    pub message: Option<String>,
}

impl ApiError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> ApiError {
        ApiError {
            code,
            message: Some(message.into()),
        }
    }

    /// What an answer says of an operation.
    pub fn outcome(result: Result<(), ApiError>) -> (ErrorCode, Option<String>) {
        match result {
            Ok(()) => (ErrorCode::NONE, None),
            Err(error) => (error.code, error.message),
        }
    }

    /// The code with its own short text.
    pub fn bare(code: ErrorCode) -> ApiError {
        ApiError {
            code,
            message: Some(code.message().to_owned()),
        }
    }
}

impl From<StorageError> for ApiError {
    fn from(error: StorageError) -> ApiError {
        ApiError::new(ErrorCode::KAFKA_STORAGE_ERROR, error.to_string())
    }
}

impl From<AlterError> for ApiError {
    fn from(error: AlterError) -> ApiError {
        let code = match error {
            AlterError::InvalidConfig(_) => ErrorCode::INVALID_CONFIG,
            AlterError::InvalidRequest(_) => ErrorCode::INVALID_REQUEST,
        };
        ApiError::new(code, error.to_string())
    }
}

/// A topic as its file tells it. Never changed: a change publishes a new file and puts a new `Topic` in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    pub name: String,
    pub id: Uuid,
    pub partitions: i32,
    /// The overridden configs only; everything else comes from the broker's config.
    pub configs: BTreeMap<String, String>,
    /// Unix milliseconds.
    pub created_ms: i64,
}

impl Topic {
    pub fn has_partition(&self, partition: i32) -> bool {
        (0..self.partitions).contains(&partition)
    }

    /// The directory of one partition's log, relative to the volume.
    pub fn partition_dir(&self, partition: i32) -> String {
        format!("{}/{partition}", data_dir(self.id))
    }
}

fn data_dir(id: Uuid) -> String {
    format!("{TOPICS}/{}", file_name(&id.to_string()))
}

fn topic_path(name: &str) -> String {
    format!("{TOPIC_FILES}/{}.json", file_name(name))
}

/// The file of a topic. Unknown fields are refused: a file of a later version must not lose what it says.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TopicDocument {
    topic: String,
    topic_id: String,
    partitions: i32,
    created_ms: i64,
    configs: BTreeMap<String, String>,
}

impl TopicDocument {
    fn of(topic: &Topic) -> TopicDocument {
        TopicDocument {
            topic: topic.name.clone(),
            topic_id: topic.id.to_string(),
            partitions: topic.partitions,
            created_ms: topic.created_ms,
            configs: topic.configs.clone(),
        }
    }

    fn to_json(&self) -> Vec<u8> {
        let mut text =
            serde_json::to_vec_pretty(self).expect("strings and integers always serialise");
        text.push(b'\n');
        text
    }

    /// Parses the file called `file`; the error says where it is wrong and what to do.
    fn parse(file: &str, bytes: &[u8]) -> Result<Topic, String> {
        let wrong = |why: String| {
            format!(
                "topic file {TOPIC_FILES}/{file} {why}; mend it, or move it and its data under {TOPICS}/ aside to be able to create the topic anew"
            )
        };
        let document: TopicDocument = serde_json::from_slice(bytes).map_err(|e| {
            wrong(format!(
                "does not parse at line {} column {}: {e}",
                e.line(),
                e.column()
            ))
        })?;
        let id: Uuid = document.topic_id.parse().map_err(|_| {
            wrong(format!(
                "has topic_id {:?}, which is no topic id",
                document.topic_id
            ))
        })?;
        if id == Uuid::ZERO {
            return Err(wrong("has the zero topic id".to_owned()));
        }
        if file != format!("{}.json", file_name(&document.topic)) {
            return Err(wrong(format!(
                "holds topic {:?}, whose file has another name",
                document.topic
            )));
        }
        if document.partitions < 1 {
            return Err(wrong(format!("has {} partitions", document.partitions)));
        }
        Ok(Topic {
            name: document.topic,
            id,
            partitions: document.partitions,
            configs: document.configs,
            created_ms: document.created_ms,
        })
    }
}

/// All topics at one moment.
#[derive(Clone, Default)]
pub struct Table {
    by_name: BTreeMap<String, Arc<Topic>>,
    by_id: FnvHashMap<Uuid, Arc<Topic>>,
    /// Names with `.` as `_`: two topics may not differ in these characters only.
    normalised: BTreeMap<String, BTreeSet<String>>,
    /// Files that do not parse, with the reason: their topics are refused.
    refused: BTreeMap<String, String>,
}

impl Table {
    pub fn get(&self, name: &str) -> Option<&Arc<Topic>> {
        self.by_name.get(name)
    }

    pub fn get_by_id(&self, id: &Uuid) -> Option<&Arc<Topic>> {
        self.by_id.get(id)
    }

    /// In the order of names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.by_name.values()
    }

    /// In the order of names, from `name` on.
    pub fn from(&self, name: &str) -> impl Iterator<Item = &Arc<Topic>> {
        self.by_name
            .range::<str, _>((std::ops::Bound::Included(name), std::ops::Bound::Unbounded))
            .map(|(_, topic)| topic)
    }

    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Whether there are topics besides these, in files that do not parse.
    pub fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Why the topic of this name cannot be served, if its file does not parse.
    pub fn refused(&self, name: &str) -> Option<&str> {
        if self.refused.is_empty() {
            return None;
        }
        self.refused
            .get(&format!("{}.json", file_name(name)))
            .map(String::as_str)
    }

    /// A topic whose name differs from this one in `.` and `_` only.
    pub fn colliding(&self, name: &str) -> Option<&str> {
        if !name.contains(['.', '_']) {
            return None;
        }
        self.normalised
            .get(&name.replace('.', "_"))?
            .iter()
            .map(String::as_str)
            .find(|other| *other != name)
    }

    fn put(&mut self, topic: Arc<Topic>) {
        if topic.name.contains(['.', '_']) {
            self.normalised
                .entry(topic.name.replace('.', "_"))
                .or_default()
                .insert(topic.name.clone());
        }
        self.by_id.insert(topic.id, topic.clone());
        self.by_name.insert(topic.name.clone(), topic);
    }

    fn remove(&mut self, topic: &Topic) {
        if let Some(names) = self.normalised.get_mut(&topic.name.replace('.', "_")) {
            names.remove(&topic.name);
        }
        self.by_id.remove(&topic.id);
        self.by_name.remove(&topic.name);
    }
}

/// Told of every change after it is durable and in the table. Called in order, one change at a time; must not block.
pub trait TopicWatcher: Send + Sync {
    fn created(&self, _topic: &Arc<Topic>) {}
    fn changed(&self, _old: &Arc<Topic>, _new: &Arc<Topic>) {}
    fn deleted(&self, _topic: &Arc<Topic>) {}
}

/// A topic to be created; what a handler has validated.
#[derive(Clone, Debug)]
pub struct NewTopic {
    pub name: String,
    pub id: Uuid,
    pub partitions: i32,
    pub configs: BTreeMap<String, String>,
    pub created_ms: i64,
}

pub struct Topics {
    volume: Arc<dyn Volume>,
    session: Arc<Session>,
    table: ArcSwap<Table>,
    /// One change at a time, from the check against the table to the new table.
    changing: tokio::sync::Mutex<()>,
    watchers: RwLock<Vec<Arc<dyn TopicWatcher>>>,
}

impl Topics {
    /// Reads every topic's file. Blocks on the disk.
    ///
    /// A file that does not parse is logged and its topic refused; the others are served. Data that belongs to no topic
    /// is given back by name, to be removed with [`Topics::remove_data`] once serving has begun: the remains of a
    /// deletion that was cut short.
    ///
    /// # Errors
    /// When the directories cannot be listed or a file cannot be read.
    pub fn open(
        volume: Arc<dyn Volume>,
        session: Arc<Session>,
    ) -> Result<(Topics, Vec<Uuid>), StorageError> {
        // Data first: a topic's file is there before its first directory, so a directory seen now without a file
        // afterwards is a deleted topic's, even while another broker creates topics.
        let mut leftover = BTreeSet::new();
        for entry in list(&*volume, TOPICS)? {
            if entry.is_dir
                && let Ok(id) = entry.name.parse::<Uuid>()
            {
                leftover.insert(id);
            }
        }
        let mut table = Table::default();
        for entry in list(&*volume, TOPIC_FILES)? {
            if entry.is_dir || !entry.name.ends_with(".json") {
                continue;
            }
            let path = format!("{TOPIC_FILES}/{}", entry.name);
            let bytes = volume
                .read(&path)
                .map_err(|error| StorageError::from_io("read", &path, error))?;
            match TopicDocument::parse(&entry.name, &bytes) {
                Ok(topic) => match table.get_by_id(&topic.id) {
                    Some(twin) => {
                        let why = format!(
                            "topic file {path} has the topic id of topic {:?}; move one of the two files aside",
                            twin.name
                        );
                        error!("{why}");
                        table.refused.insert(entry.name, why);
                    }
                    None => table.put(Arc::new(topic)),
                },
                Err(why) => {
                    error!("{why}");
                    table.refused.insert(entry.name, why);
                }
            }
        }
        // A refused file's topic id is not known, so any directory may be its data.
        if table.refused.is_empty() {
            leftover.retain(|id| !table.by_id.contains_key(id));
        } else {
            leftover.clear();
        }
        info!(
            topics = table.len(),
            refused = table.refused.len(),
            leftovers = leftover.len(),
            "topics loaded"
        );
        let topics = Topics {
            volume,
            session,
            table: ArcSwap::from_pointee(table),
            changing: tokio::sync::Mutex::new(()),
            watchers: RwLock::default(),
        };
        Ok((topics, leftover.into_iter().collect()))
    }

    pub fn table(&self) -> Arc<Table> {
        self.table.load_full()
    }

    pub fn get(&self, name: &str) -> Option<Arc<Topic>> {
        self.table.load().get(name).cloned()
    }

    pub fn get_by_id(&self, id: &Uuid) -> Option<Arc<Topic>> {
        self.table.load().get_by_id(id).cloned()
    }

    pub fn watch(&self, watcher: Arc<dyn TopicWatcher>) {
        self.watchers.write().push(watcher);
    }

    /// Creates topics: publishes their files, then lets them be seen. One answer each, in the order asked.
    ///
    /// The handler has validated name, count and configs; what may have changed since (the name is taken, the file is
    /// refused) is checked here.
    pub async fn create(
        self: &Arc<Topics>,
        wanted: Vec<NewTopic>,
    ) -> Vec<Result<Arc<Topic>, ApiError>> {
        let _one_at_a_time = self.changing.lock().await;
        let table = self.table();
        let mut taken = BTreeSet::new();
        let mut answers: Vec<Result<Arc<Topic>, ApiError>> = Vec::with_capacity(wanted.len());
        for new in wanted {
            answers.push(may_create(&table, &new.name).and_then(|()| {
                assert_ne!(new.id, Uuid::ZERO, "a topic id is never zero");
                if !taken.insert(new.name.clone()) {
                    return Err(exists(&new.name));
                }
                Ok(Arc::new(Topic {
                    name: new.name,
                    id: new.id,
                    partitions: new.partitions,
                    configs: new.configs,
                    created_ms: new.created_ms,
                }))
            }));
        }
        let to_publish: Vec<Arc<Topic>> = answers
            .iter()
            .filter_map(|answer| answer.as_ref().ok().cloned())
            .collect();
        if to_publish.is_empty() {
            return answers;
        }
        let mut published = self.publish_all(to_publish).await.into_iter();
        let mut table = Table::clone(&table);
        for answer in &mut answers {
            let Ok(topic) = answer else { continue };
            match published.next().expect("one result a published topic") {
                Ok(()) => table.put(topic.clone()),
                Err(error) => *answer = Err(error.into()),
            }
        }
        self.table.store(Arc::new(table));
        for topic in answers.iter().flatten() {
            info!(topic = topic.name, topic_id = %topic.id, partitions = topic.partitions, "topic created");
            self.tell(|watcher| watcher.created(topic));
        }
        answers
    }

    async fn publish_all(
        self: &Arc<Topics>,
        topics: Vec<Arc<Topic>>,
    ) -> Vec<Result<(), StorageError>> {
        let this = self.clone();
        tokio::task::spawn_blocking(move || {
            let each = topics.len().div_ceil(PUBLISHERS).max(1);
            std::thread::scope(|scope| {
                let publishers: Vec<_> = topics
                    .chunks(each)
                    .map(|chunk| {
                        let this = &this;
                        scope.spawn(move || {
                            chunk
                                .iter()
                                .map(|topic| this.publish(topic))
                                .collect::<Vec<_>>()
                        })
                    })
                    .collect();
                publishers
                    .into_iter()
                    .flat_map(|publisher| publisher.join().expect("a publisher does not panic"))
                    .collect()
            })
        })
        .await
        .expect("publishing does not panic")
    }

    fn publish(&self, topic: &Topic) -> Result<(), StorageError> {
        self.session.publish(
            &topic_path(&topic.name),
            &TopicDocument::of(topic).to_json(),
        )
    }

    /// Replaces what a topic says of itself. `edit` sees the topic as it is now and gives what it shall be.
    pub async fn change(
        self: &Arc<Topics>,
        name: &str,
        edit: impl FnOnce(&Topic) -> Result<Topic, ApiError>,
    ) -> Result<Arc<Topic>, ApiError> {
        let _one_at_a_time = self.changing.lock().await;
        let table = self.table();
        let Some(old) = table.get(name).cloned() else {
            return Err(unknown(&table, name));
        };
        let new = Arc::new(edit(&old)?);
        assert!(
            new.name == old.name && new.id == old.id,
            "a change leaves a topic's name and id alone"
        );
        assert!(
            new.partitions >= old.partitions,
            "partitions are never taken away"
        );
        if new == old {
            return Ok(old);
        }
        let (this, topic) = (self.clone(), new.clone());
        tokio::task::spawn_blocking(move || this.publish(&topic))
            .await
            .expect("publishing does not panic")?;
        let mut table = Table::clone(&table);
        table.put(new.clone());
        self.table.store(Arc::new(table));
        info!(topic = new.name, partitions = new.partitions, configs = ?new.configs, "topic changed");
        self.tell(|watcher| watcher.changed(&old, &new));
        Ok(new)
    }

    /// Deletes a topic: its file is durably gone before it leaves the table. Its data goes later ([`Topics::remove_data`]).
    pub async fn delete(self: &Arc<Topics>, id: Uuid) -> Result<Arc<Topic>, ApiError> {
        let _one_at_a_time = self.changing.lock().await;
        let table = self.table();
        let Some(topic) = table.get_by_id(&id).cloned() else {
            return Err(ApiError::bare(ErrorCode::UNKNOWN_TOPIC_ID));
        };
        let (this, path) = (self.clone(), topic_path(&topic.name));
        tokio::task::spawn_blocking(move || this.session.retire(&path))
            .await
            .expect("retiring does not panic")?;
        let mut table = Table::clone(&table);
        table.remove(&topic);
        self.table.store(Arc::new(table));
        info!(topic = topic.name, topic_id = %topic.id, "topic deleted");
        self.tell(|watcher| watcher.deleted(&topic));
        Ok(topic)
    }

    /// Removes the data of a topic that is no more. Blocks on the disk; a failure is logged, and the next start tries
    /// again.
    pub fn remove_data(&self, id: Uuid) {
        assert!(
            self.table.load().get_by_id(&id).is_none(),
            "the data of a living topic is never removed"
        );
        let dir = data_dir(id);
        match self.volume.exists(&dir) {
            Ok(false) => return,
            Ok(true) => {}
            Err(error) => {
                warn!(topic_id = %id, %error, "data of a deleted topic was not looked up");
                return;
            }
        }
        match self.session.retire(&dir) {
            Ok(_) => info!(topic_id = %id, "data of a deleted topic removed"),
            Err(error) => warn!(topic_id = %id, %error, "data of a deleted topic was not removed"),
        }
    }

    fn tell(&self, fact: impl Fn(&dyn TopicWatcher)) {
        let watchers = self.watchers.read().clone();
        for watcher in &watchers {
            fact(&**watcher);
        }
    }
}

fn list(volume: &dyn Volume, dir: &str) -> Result<Vec<kaas_storage::volume::Entry>, StorageError> {
    volume
        .list_fresh(dir)
        .map_err(|error| StorageError::from_io("list", dir, error))
}

/// Whether a topic of this (valid) name can be created now.
pub fn may_create(table: &Table, name: &str) -> Result<(), ApiError> {
    if table.get(name).is_some() {
        return Err(exists(name));
    }
    if let Some(why) = table.refused(name) {
        return Err(ApiError::new(ErrorCode::KAFKA_STORAGE_ERROR, why));
    }
    if let Some(other) = table.colliding(name) {
        return Err(ApiError::new(
            ErrorCode::INVALID_TOPIC_EXCEPTION,
            format!("Topic '{name}' collides with existing topic: {other}"),
        ));
    }
    Ok(())
}

fn exists(name: &str) -> ApiError {
    ApiError::new(
        ErrorCode::TOPIC_ALREADY_EXISTS,
        format!("Topic '{name}' already exists."),
    )
}

/// The refusal for a name the table does not have.
pub fn unknown(table: &Table, name: &str) -> ApiError {
    match table.refused(name) {
        Some(why) => ApiError::new(ErrorCode::KAFKA_STORAGE_ERROR, why),
        None => ApiError::bare(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
    }
}

/// Whether Kafka keeps this name for itself.
pub fn is_internal(name: &str) -> bool {
    INTERNAL_TOPICS.contains(&name)
}

/// Kafka's rules for a topic name; the error is Kafka's sentence.
pub fn validate_name(name: &str) -> Result<(), String> {
    let wrong = if name.is_empty() {
        "the empty string is not allowed".to_owned()
    } else if name == "." {
        "'.' is not allowed".to_owned()
    } else if name == ".." {
        "'..' is not allowed".to_owned()
    } else if name.encode_utf16().count() > MAX_TOPIC_NAME {
        format!("the length of '{name}' is longer than the max allowed length {MAX_TOPIC_NAME}")
    } else if !name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
    {
        format!(
            "'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
        )
    } else {
        return Ok(());
    };
    Err(format!("Topic name is invalid: {wrong}"))
}

/// Runs a change to its end, also when whoever asked for it goes away meanwhile: half of one must not stay.
pub async fn to_the_end<T: Send + 'static>(change: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(change).await {
        Ok(done) => done,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

/// Creates topics and gives their partitions leaders. One answer each, in the order asked.
pub async fn create(
    broker: &Arc<Broker>,
    wanted: Vec<NewTopic>,
) -> Vec<Result<Arc<Topic>, ApiError>> {
    let broker = broker.clone();
    to_the_end(async move {
        let mut answers = broker.topics.create(wanted).await;
        let partitions: Vec<NewPartitions> = answers
            .iter()
            .flatten()
            .map(|topic| new_partitions(topic, 0))
            .collect();
        if partitions.is_empty() {
            return answers;
        }
        if let Err(error) = broker.controller.assign(partitions).await {
            // The topics exist; their partitions get leaders when the next controller begins.
            let error = ApiError::from(error);
            for answer in answers.iter_mut().filter(|answer| answer.is_ok()) {
                *answer = Err(error.clone());
            }
        }
        answers
    })
    .await
}

/// Deletes topics, takes their partitions from their leaders and removes their data in the background. One answer each,
/// in the order asked.
pub async fn delete(broker: &Arc<Broker>, ids: Vec<Uuid>) -> Vec<Result<(), ApiError>> {
    let broker = broker.clone();
    to_the_end(async move {
        let mut answers = Vec::with_capacity(ids.len());
        let mut gone = Vec::new();
        for id in ids {
            let deleted = broker.topics.delete(id).await;
            if deleted.is_ok() {
                gone.push(id);
            }
            answers.push(deleted.map(|_| ()));
        }
        if gone.is_empty() {
            return answers;
        }
        if let Err(error) = broker.controller.unassign(&gone).await {
            // The topics are gone for good; the next controller forgets their partitions.
            warn!(%error, topics = gone.len(), "partitions of deleted topics are still assigned");
        }
        let (topics, partitions) = (broker.topics.clone(), broker.partitions.clone());
        tokio::task::spawn_blocking(move || {
            for id in gone {
                partitions.drop_topic(id);
                topics.remove_data(id);
            }
        });
        answers
    })
    .await
}

/// Gives a topic `count` partitions, if `may` agrees to the topic as it is then.
pub async fn grow(
    broker: &Arc<Broker>,
    name: String,
    count: i32,
    may: impl FnOnce(&Topic) -> Result<(), ApiError> + Send + 'static,
) -> Result<(), ApiError> {
    let broker = broker.clone();
    to_the_end(async move {
        let mut before = 0;
        let topic = broker
            .topics
            .change(&name, |old| {
                may(old)?;
                before = old.partitions;
                Ok(Topic {
                    partitions: count,
                    ..old.clone()
                })
            })
            .await?;
        Ok(broker
            .controller
            .assign(vec![new_partitions(&topic, before)])
            .await?)
    })
    .await
}

fn new_partitions(topic: &Topic, from: i32) -> NewPartitions {
    NewPartitions {
        topic: topic.name.clone(),
        topic_id: topic.id,
        partitions: from..topic.partitions,
    }
}

#[cfg(test)]
mod tests {
    use kaas_storage::layout;
    use kaas_storage::session::{SessionKind, fence};
    use kaas_storage::volume::memory::MemoryVolume;
    use parking_lot::Mutex;

    use super::*;
    use crate::ids::Ids;

    /// A volume and the topics of one process on it after another.
    struct World {
        volume: Arc<dyn Volume>,
        session: Arc<Session>,
        ids: Ids,
    }

    impl World {
        fn new(volume: impl Volume + 'static) -> World {
            World::with_ids(volume, Ids::counted())
        }

        fn after_power_cut(&self, memory: &MemoryVolume) -> World {
            World::with_ids(memory.power_cut(1), self.ids.clone())
        }

        fn with_ids(volume: impl Volume + 'static, ids: Ids) -> World {
            let volume: Arc<dyn Volume> = Arc::new(volume);
            layout::create(&*volume).unwrap();
            let session = session(&volume, &ids);
            World {
                volume,
                session,
                ids,
            }
        }

        fn restart(&mut self) {
            fence(&*self.volume, self.session.name()).unwrap();
            self.session = session(&self.volume, &self.ids);
        }

        fn open(&self) -> (Arc<Topics>, Vec<Uuid>) {
            let (topics, leftovers) =
                Topics::open(self.volume.clone(), self.session.clone()).unwrap();
            (Arc::new(topics), leftovers)
        }

        fn new_topic(&self, name: &str, partitions: i32) -> NewTopic {
            NewTopic {
                name: name.to_owned(),
                id: self.ids.kafka_uuid(),
                partitions,
                configs: BTreeMap::from([("retention.ms".to_owned(), "5".to_owned())]),
                created_ms: 7,
            }
        }

        async fn create(&self, topics: &Arc<Topics>, name: &str) -> Result<Arc<Topic>, ApiError> {
            topics.create(vec![self.new_topic(name, 2)]).await.remove(0)
        }

        /// A file in the data of a topic.
        fn write_data(&self, id: Uuid) {
            let dir = format!("{}/0", data_dir(id));
            self.volume.create_dir_all(&dir).unwrap();
            self.volume.create(&format!("{dir}/x")).unwrap();
        }

        fn write_file(&self, name: &str, text: &str) {
            self.session
                .publish(&format!("{TOPIC_FILES}/{name}"), text.as_bytes())
                .unwrap();
        }
    }

    fn session(volume: &Arc<dyn Volume>, ids: &Ids) -> Arc<Session> {
        let uuid = uuid::Uuid::from_bytes(ids.uuid_bytes());
        Arc::new(Session::create(volume.clone(), SessionKind::Broker, 0, uuid).unwrap())
    }

    #[tokio::test]
    async fn a_created_topic_survives_a_restart_and_a_power_cut_as_it_was() {
        let memory = MemoryVolume::new();
        let mut world = World::new(memory.clone());
        let (topics, _) = world.open();
        let created = world.create(&topics, "orders").await.unwrap();
        world.restart();
        assert_eq!(world.open().0.get("orders").unwrap(), created);
        let world = world.after_power_cut(&memory);
        assert_eq!(world.open().0.get("orders").unwrap(), created);
    }

    #[tokio::test]
    async fn the_file_of_a_topic_is_readable() {
        let world = World::new(MemoryVolume::new());
        let (topics, _) = world.open();
        let id = world.create(&topics, "orders").await.unwrap().id;
        let text =
            String::from_utf8(world.volume.read("__cluster/topics/orders.json").unwrap()).unwrap();
        let expected = format!(
            "{{\n  \"topic\": \"orders\",\n  \"topic_id\": \"{id}\",\n  \"partitions\": 2,\n  \"created_ms\": 7,\n  \"configs\": {{\n    \"retention.ms\": \"5\"\n  }}\n}}\n"
        );
        assert_eq!(text, expected);
    }

    #[tokio::test]
    async fn a_deleted_topic_stays_deleted_and_its_data_goes_at_the_next_start_at_the_latest() {
        let memory = MemoryVolume::new();
        let world = World::new(memory.clone());
        let (topics, _) = world.open();
        let old = world.create(&topics, "orders").await.unwrap();
        world.write_data(old.id);
        topics.delete(old.id).await.unwrap();
        assert!(topics.get("orders").is_none() && topics.get_by_id(&old.id).is_none());
        // The process dies before it removes the data.
        let world = world.after_power_cut(&memory);
        let (topics, leftovers) = world.open();
        assert!(topics.table().is_empty());
        for id in leftovers {
            topics.remove_data(id);
        }
        assert!(world.volume.list(TOPICS).unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_topic_created_again_has_another_id_and_the_data_of_the_former_is_not_its() {
        let world = World::new(MemoryVolume::new());
        let (topics, _) = world.open();
        let old = world.create(&topics, "orders").await.unwrap();
        topics.delete(old.id).await.unwrap();
        let new = world.create(&topics, "orders").await.unwrap();
        assert_ne!(old.id, new.id);
        assert_ne!(old.partition_dir(0), new.partition_dir(0));
    }

    #[tokio::test]
    async fn a_file_that_does_not_parse_refuses_its_topic_and_no_other_and_no_data_is_removed() {
        let mut world = World::new(MemoryVolume::new());
        let (topics, _) = world.open();
        world.create(&topics, "good").await.unwrap();
        let bad = world.create(&topics, "bad").await.unwrap();
        world.write_data(bad.id);
        world.restart();
        world.write_file("bad.json", "{\n  \"topic\": \"bad\",\n  oops");
        let (topics, leftovers) = world.open();
        assert!(
            leftovers.is_empty(),
            "the directory may be the refused topic's"
        );
        assert!(topics.get("good").is_some() && topics.get("bad").is_none());
        let refusal = world.create(&topics, "bad").await.unwrap_err();
        assert_eq!(refusal.code, ErrorCode::KAFKA_STORAGE_ERROR);
        let why = refusal.message.unwrap();
        assert!(
            why.contains("__cluster/topics/bad.json does not parse at line 3 column 3"),
            "{why}"
        );
        assert!(
            why.contains("move it and its data under topics/ aside"),
            "{why}"
        );
        world.create(&topics, "other").await.unwrap();
    }

    #[test]
    fn what_a_file_may_not_say_is_refused_in_words() {
        let id = "AAAAAAAAAAAAAAAAAAAAAQ";
        let parse = |file: &str, topic: &str, id: &str, partitions: i32| {
            let text = format!(
                "{{\"topic\":\"{topic}\",\"topic_id\":\"{id}\",\"partitions\":{partitions},\"created_ms\":1,\"configs\":{{}}}}"
            );
            TopicDocument::parse(file, text.as_bytes())
        };
        assert!(parse("a.json", "a", id, 1).is_ok());
        for (file, topic, id, partitions, why) in [
            (
                "a.json",
                "b",
                id,
                1,
                "holds topic \"b\", whose file has another name",
            ),
            (
                "a.json",
                "a",
                "AAAAAAAAAAAAAAAAAAAAAA",
                1,
                "has the zero topic id",
            ),
            ("a.json", "a", "?", 1, "which is no topic id"),
            ("a.json", "a", id, 0, "has 0 partitions"),
        ] {
            let refused = parse(file, topic, id, partitions).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        let more = format!(
            "{{\"topic\":\"a\",\"topic_id\":\"{id}\",\"partitions\":1,\"created_ms\":1,\"configs\":{{}},\"shards\":1}}"
        );
        assert!(
            TopicDocument::parse("a.json", more.as_bytes())
                .unwrap_err()
                .contains("unknown field `shards`")
        );
    }

    #[tokio::test]
    async fn names_are_taken_once_also_within_a_request_and_may_not_differ_in_dots_and_underscores_only()
     {
        let world = World::new(MemoryVolume::new());
        let (topics, _) = world.open();
        let asked = ["a.b", "a.b", "c"].map(|name| world.new_topic(name, 1));
        let answers = topics.create(asked.to_vec()).await;
        let codes: Vec<Option<ErrorCode>> = answers
            .into_iter()
            .map(|answer| answer.err().map(|error| error.code))
            .collect();
        assert_eq!(codes, [None, Some(ErrorCode::TOPIC_ALREADY_EXISTS), None]);
        let collides = world.create(&topics, "a_b").await.unwrap_err();
        assert_eq!(collides.code, ErrorCode::INVALID_TOPIC_EXCEPTION);
        assert_eq!(
            collides.message.unwrap(),
            "Topic 'a_b' collides with existing topic: a.b"
        );
        let a_b = topics.get("a.b").unwrap().id;
        topics.delete(a_b).await.unwrap();
        world.create(&topics, "a_b").await.unwrap();
    }

    #[tokio::test]
    async fn a_change_is_durable_before_it_is_seen_and_a_refused_one_changes_nothing() {
        let mut world = World::new(MemoryVolume::new());
        let (topics, _) = world.open();
        world.create(&topics, "a").await.unwrap();
        let refused = topics
            .change("a", |_| Err(ApiError::bare(ErrorCode::INVALID_PARTITIONS)))
            .await;
        assert_eq!(refused.unwrap_err().code, ErrorCode::INVALID_PARTITIONS);
        assert_eq!(topics.get("a").unwrap().partitions, 2);
        let grown = topics
            .change("a", |old| {
                Ok(Topic {
                    partitions: 5,
                    ..old.clone()
                })
            })
            .await
            .unwrap();
        assert_eq!(topics.get("a").unwrap(), grown);
        world.restart();
        assert_eq!(world.open().0.get("a").unwrap().partitions, 5);
        let gone = topics.change("b", |old| Ok(old.clone())).await;
        assert_eq!(
            gone.unwrap_err().code,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
        );
    }

    #[tokio::test]
    async fn a_fenced_broker_creates_changes_and_deletes_nothing() {
        let world = World::new(MemoryVolume::new());
        let (topics, _) = world.open();
        let topic = world.create(&topics, "a").await.unwrap();
        fence(&*world.volume, world.session.name()).unwrap();
        assert!(world.create(&topics, "b").await.is_err());
        assert!(
            topics
                .change("a", |old| Ok(Topic {
                    partitions: 9,
                    ..old.clone()
                }))
                .await
                .is_err()
        );
        assert!(topics.delete(topic.id).await.is_err());
        assert_eq!(
            topics
                .table()
                .iter()
                .map(|topic| &*topic.name)
                .collect::<Vec<_>>(),
            ["a"]
        );
        assert_eq!(topics.get("a").unwrap().partitions, 2);
    }

    #[tokio::test]
    async fn watchers_are_told_of_what_happened_in_its_order() {
        #[derive(Default)]
        struct Notes(Mutex<Vec<String>>);
        impl TopicWatcher for Notes {
            fn created(&self, topic: &Arc<Topic>) {
                self.0.lock().push(format!("+{}", topic.name));
            }
            fn changed(&self, old: &Arc<Topic>, new: &Arc<Topic>) {
                self.0.lock().push(format!(
                    "{} {}>{}",
                    new.name, old.partitions, new.partitions
                ));
            }
            fn deleted(&self, topic: &Arc<Topic>) {
                self.0.lock().push(format!("-{}", topic.name));
            }
        }
        let world = World::new(MemoryVolume::new());
        let (topics, _) = world.open();
        let notes = Arc::new(Notes::default());
        topics.watch(notes.clone());
        let topic = world.create(&topics, "a").await.unwrap();
        topics
            .change("a", |old| {
                Ok(Topic {
                    partitions: 3,
                    ..old.clone()
                })
            })
            .await
            .unwrap();
        topics.change("a", |old| Ok(old.clone())).await.unwrap();
        topics.delete(topic.id).await.unwrap();
        assert_eq!(*notes.0.lock(), ["+a", "a 2>3", "-a"]);
    }

    #[tokio::test]
    async fn a_change_goes_on_when_nobody_waits_for_it_any_more() {
        let world = World::new(MemoryVolume::new());
        let (topics, _) = world.open();
        let (creating, new) = (topics.clone(), world.new_topic("a", 1));
        {
            let asked = to_the_end(async move { creating.create(vec![new]).await });
            tokio::pin!(asked);
            let polled =
                std::future::poll_fn(|cx| std::task::Poll::Ready(asked.as_mut().poll(cx))).await;
            assert!(polled.is_pending(), "it waits for the disk");
        }
        while topics.get("a").is_none() {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn names_are_judged_in_kafkas_words() {
        let long = "x".repeat(250);
        for (name, why) in [
            ("", "the empty string is not allowed".to_owned()),
            (".", "'.' is not allowed".to_owned()),
            ("..", "'..' is not allowed".to_owned()),
            (&long, format!("the length of '{long}' is longer than the max allowed length 249")),
            ("a b", "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'".to_owned()),
        ] {
            assert_eq!(validate_name(name).unwrap_err(), format!("Topic name is invalid: {why}"));
        }
        for name in ["a", "A.b_c-9", "...", "_", "-"] {
            assert_eq!(validate_name(name), Ok(()));
        }
        assert_eq!(validate_name(&"x".repeat(249)), Ok(()));
    }
}
