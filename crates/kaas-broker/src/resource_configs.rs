//! The configurations clients can describe and alter: of topics, of brokers, of groups and of client metrics
//! subscriptions. A change is on the volume before it is in force.
//!
//! A topic's overrides are in its own file (`topics.rs`), those of brokers, groups and subscriptions in one file each
//! under `__cluster/configs`. What a key is, allows and defaults to is the tables' business (`config`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use kaas_storage::error::StorageError;
use kaas_storage::session::Session;
use kaas_storage::volume::Volume;
use kaas_wire::ErrorCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tracing::{info, warn};

use crate::config::alter::Change;
use crate::config::describe::{ConfigEntry, ConfigSource, Synonym};
use crate::config::group::{self, ClientMetricsConfig, GroupConfig};
use crate::config::live::{DynamicConfig, LiveConfig, Scope};
use crate::config::table::Configuration;
use crate::config::topic::{Overrides, TopicConfig};
use crate::partitions::Partitions;
use crate::topics::{self, ApiError, Topic, Topics};

const CONFIGS: &str = "__cluster/configs";
const BROKERS: &str = "__cluster/configs/brokers.json";
const GROUPS: &str = "__cluster/configs/groups.json";
const CLIENT_METRICS: &str = "__cluster/configs/client_metrics.json";

/// Kafka's `ConfigResource.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceType {
    Topic = 2,
    Broker = 4,
    BrokerLogger = 8,
    ClientMetrics = 16,
    Group = 32,
}

impl ResourceType {
    pub const ALL: [ResourceType; 5] = [
        ResourceType::Topic,
        ResourceType::Broker,
        ResourceType::BrokerLogger,
        ResourceType::ClientMetrics,
        ResourceType::Group,
    ];

    pub fn of(code: i8) -> Option<ResourceType> {
        ResourceType::ALL
            .into_iter()
            .find(|kind| *kind as i8 == code)
    }

    /// The type of that code.
    ///
    /// # Errors
    /// INVALID_REQUEST if there is none.
    pub fn named(code: i8) -> Result<ResourceType, ApiError> {
        let unknown = || {
            ApiError::new(
                ErrorCode::INVALID_REQUEST,
                format!("Unknown resource type {code}"),
            )
        };
        ResourceType::of(code).ok_or_else(unknown)
    }
}

/// What is to become of a resource's overrides.
#[derive(Clone, Debug)]
pub enum Edit {
    /// Each change on top of what there is.
    Incremental(Vec<(String, Change)>),
    /// These instead of all there are.
    Replace(Overrides),
}

/// Overrides of resources of one type, by name.
type ByName = BTreeMap<String, Overrides>;

pub struct ResourceConfigs {
    node_id: i32,
    volume: Arc<dyn Volume>,
    session: Arc<Session>,
    live: Arc<LiveConfig>,
    topics: Arc<Topics>,
    groups: ArcSwap<ByName>,
    client_metrics: ArcSwap<ByName>,
    /// One change of what lies in `__cluster/configs` at a time.
    changing: Mutex<()>,
}

impl ResourceConfigs {
    /// Reads what clients altered and puts it into force. Blocks on the disk.
    ///
    /// # Errors
    /// When a file cannot be read or does not parse: a broker does not start on half of its configuration.
    pub fn open(
        node_id: i32,
        volume: Arc<dyn Volume>,
        session: Arc<Session>,
        live: Arc<LiveConfig>,
        topics: Arc<Topics>,
    ) -> Result<ResourceConfigs, StorageError> {
        volume
            .create_dir_all(CONFIGS)
            .map_err(|error| StorageError::from_io("create", CONFIGS, error))?;
        let dynamic: DynamicConfig = read(&*volume, BROKERS)?;
        for (key, why) in live.apply(dynamic) {
            warn!(key, why, "altered config left out");
        }
        Ok(ResourceConfigs {
            node_id,
            groups: ArcSwap::from_pointee(read(&*volume, GROUPS)?),
            client_metrics: ArcSwap::from_pointee(read(&*volume, CLIENT_METRICS)?),
            volume,
            session,
            live,
            topics,
            changing: Mutex::new(()),
        })
    }

    /// Makes the logs follow the broker's configuration whenever it changes.
    pub fn drive(&self, partitions: &Arc<Partitions>) {
        let (topics, partitions) = (Arc::downgrade(&self.topics), Arc::downgrade(partitions));
        self.live.subscribe(move |_| {
            if let (Some(topics), Some(partitions)) = (topics.upgrade(), partitions.upgrade()) {
                for topic in topics.table().iter() {
                    partitions.reconfigure(topic);
                }
            }
        });
    }

    /// The rows of one resource.
    pub fn describe(&self, kind: ResourceType, name: &str) -> Result<Vec<ConfigEntry>, ApiError> {
        match kind {
            ResourceType::Topic => {
                topics::validate_name(name)
                    .map_err(|why| ApiError::new(ErrorCode::INVALID_TOPIC_EXCEPTION, why))?;
                let table = self.topics.table();
                let topic = table.get(name).ok_or_else(|| ApiError {
                    message: table
                        .refused(name)
                        .map_or(Some(String::new()), |why| Some(why.to_owned())),
                    ..topics::unknown(&table, name)
                })?;
                Ok(self.live.describe_topic(&topic.configs)?)
            }
            ResourceType::Broker if name.is_empty() => Ok(self.live.describe_everywhere()),
            ResourceType::Broker => {
                self.check_node("Broker", " or empty string", name)?;
                Ok(self.live.describe())
            }
            ResourceType::BrokerLogger if name.is_empty() => Err(ApiError::new(
                ErrorCode::INVALID_REQUEST,
                "Broker id must not be empty",
            )),
            ResourceType::BrokerLogger => {
                self.check_node("Broker", "", name)?;
                Ok(Vec::new())
            }
            ResourceType::Group if name.is_empty() => Err(ApiError::new(
                ErrorCode::INVALID_REQUEST,
                "Group name must not be empty",
            )),
            ResourceType::Group => Ok(overridden::<GroupConfig>(
                group::describe_group(),
                self.groups.load().get(name),
                ConfigSource::Group,
            )),
            ResourceType::ClientMetrics if name.is_empty() => Err(ApiError::new(
                ErrorCode::INVALID_REQUEST,
                "Client metrics subscription name must not be empty",
            )),
            ResourceType::ClientMetrics => Ok(overridden::<ClientMetricsConfig>(
                group::describe_client_metrics(),
                self.client_metrics.load().get(name),
                ConfigSource::ClientMetrics,
            )),
        }
    }

    fn check_node(&self, what: &str, or: &str, name: &str) -> Result<i32, ApiError> {
        let refuse = |why: String| Err(ApiError::new(ErrorCode::INVALID_REQUEST, why));
        match name.parse::<i32>() {
            Err(_) => refuse(format!("{what} id must be an integer, but it is: {name}")),
            Ok(id) if id != self.node_id => refuse(format!(
                "Unexpected broker id, expected {}{or}, but received {id}",
                self.node_id
            )),
            Ok(id) => Ok(id),
        }
    }

    /// Names of the resources of one type that have overrides, or for topics and brokers, that exist.
    pub fn names(&self, kind: ResourceType, brokers: impl Iterator<Item = i32>) -> Vec<String> {
        match kind {
            ResourceType::Topic => self
                .topics
                .table()
                .iter()
                .map(|topic| topic.name.clone())
                .collect(),
            ResourceType::Broker | ResourceType::BrokerLogger => {
                brokers.map(|id| id.to_string()).collect()
            }
            ResourceType::ClientMetrics => self.client_metrics.load().keys().cloned().collect(),
            ResourceType::Group => self.groups.load().keys().cloned().collect(),
        }
    }

    /// Alters one resource, or only says whether it could.
    pub async fn alter(
        self: &Arc<Self>,
        kind: ResourceType,
        name: &str,
        edit: Edit,
        validate_only: bool,
    ) -> Result<(), ApiError> {
        let (this, name) = (self.clone(), name.to_owned());
        topics::to_the_end(async move {
            match kind {
                ResourceType::Topic => this.alter_topic(&name, edit, validate_only).await,
                ResourceType::Broker => this.alter_broker(&name, edit, validate_only).await,
                ResourceType::BrokerLogger => this.alter_logger(&name, edit),
                ResourceType::Group => this.alter_group(&name, edit, validate_only).await,
                ResourceType::ClientMetrics => {
                    this.alter_client_metrics(&name, edit, validate_only).await
                }
            }
        })
        .await
    }

    async fn alter_topic(
        &self,
        name: &str,
        edit: Edit,
        validate_only: bool,
    ) -> Result<(), ApiError> {
        if name.is_empty() {
            return Err(ApiError::new(
                ErrorCode::INVALID_REQUEST,
                "Default topic resources are not allowed.",
            ));
        }
        topics::validate_name(name)
            .map_err(|why| ApiError::new(ErrorCode::INVALID_TOPIC_EXCEPTION, why))?;
        let edited = |topic: &Topic| -> Result<Topic, ApiError> {
            let configs = edit.clone().on::<TopicConfig>(topic.configs.clone())?;
            TopicConfig::with_overrides(&self.live.load(), &configs)?;
            Ok(Topic {
                configs,
                ..topic.clone()
            })
        };
        let table = self.topics.table();
        let Some(topic) = table.get(name) else {
            let unknown = topics::unknown(&table, name);
            return Err(match unknown.code {
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => {
                    ApiError::new(unknown.code, format!("The topic '{name}' does not exist."))
                }
                _ => unknown,
            });
        };
        if validate_only {
            return edited(topic).map(|_| ());
        }
        self.topics.change(name, edited).await.map(|_| ())
    }

    async fn alter_broker(
        &self,
        name: &str,
        edit: Edit,
        validate_only: bool,
    ) -> Result<(), ApiError> {
        let scope = if name.is_empty() {
            Scope::Everywhere
        } else {
            Scope::Broker(self.check_node("Node", "", name)?)
        };
        let _one_at_a_time = self.changing.lock().await;
        let planned = match edit {
            Edit::Incremental(changes) => self.live.plan(scope, changes)?,
            Edit::Replace(overrides) => self.live.plan_replacement(scope, overrides)?,
        };
        if validate_only || planned == self.live.dynamic() {
            return Ok(());
        }
        self.publish(BROKERS, &planned).await?;
        info!(broker = name, "broker config altered");
        for (key, why) in self.live.apply(planned) {
            warn!(key, why, "altered config left out");
        }
        Ok(())
    }

    /// There is one logger, the process's, and only its start sets it.
    fn alter_logger(&self, name: &str, edit: Edit) -> Result<(), ApiError> {
        let refuse = |code, why: String| Err(ApiError::new(code, why));
        match name.parse::<i32>() {
            Err(_) => {
                return refuse(
                    ErrorCode::INVALID_REQUEST,
                    format!("Node id must be an integer, but it is: {name}"),
                );
            }
            Ok(id) if id != self.node_id => {
                return refuse(
                    ErrorCode::INVALID_REQUEST,
                    format!(
                        "Unexpected node id. Expected {}, but received {id}",
                        self.node_id
                    ),
                );
            }
            Ok(_) => {}
        }
        match edit {
            Edit::Incremental(changes) => match changes.first() {
                Some((logger, _)) => refuse(
                    ErrorCode::INVALID_CONFIG,
                    format!("Logger {logger} does not exist!"),
                ),
                None => Ok(()),
            },
            Edit::Replace(_) => refuse(
                ErrorCode::INVALID_REQUEST,
                "Unknown resource type 8".to_owned(),
            ),
        }
    }

    async fn alter_group(
        &self,
        name: &str,
        edit: Edit,
        validate_only: bool,
    ) -> Result<(), ApiError> {
        if name.is_empty() {
            return Err(ApiError::new(
                ErrorCode::INVALID_REQUEST,
                "Default group resources are not allowed.",
            ));
        }
        self.alter_named(&self.groups, GROUPS, name, validate_only, |overrides| {
            let overrides = edit.on::<GroupConfig>(overrides)?;
            let mut config = GroupConfig::default();
            for (name, value) in &overrides {
                let key = GroupConfig::key(name).ok_or_else(|| {
                    ApiError::new(
                        ErrorCode::INVALID_CONFIG,
                        format!("Unknown group config name: {name}"),
                    )
                })?;
                key.set(&mut config, value).map_err(|invalid| {
                    ApiError::new(ErrorCode::INVALID_CONFIG, invalid.to_string())
                })?;
            }
            check_group(&config)?;
            Ok(overrides)
        })
        .await
    }

    async fn alter_client_metrics(
        &self,
        name: &str,
        edit: Edit,
        validate_only: bool,
    ) -> Result<(), ApiError> {
        let refuse = |why: String| ApiError::new(ErrorCode::INVALID_REQUEST, why);
        if name.is_empty() {
            return Err(refuse("Subscription name can't be empty".to_owned()));
        }
        self.alter_named(&self.client_metrics, CLIENT_METRICS, name, validate_only, |overrides| {
            let overrides = edit.on::<ClientMetricsConfig>(overrides)?;
            let mut config = ClientMetricsConfig::default();
            for (name, value) in &overrides {
                let key = ClientMetricsConfig::key(name)
                    .ok_or_else(|| refuse(format!("Unknown client metrics configuration: {name}")))?;
                key.set(&mut config, value).map_err(|invalid| {
                    refuse(match name.as_str() {
                        "interval.ms" => format!(
                            "Invalid value {value} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
                        ),
                        _ => invalid.to_string(),
                    })
                })?;
            }
            Ok(overrides)
        })
        .await
    }

    async fn alter_named(
        &self,
        all: &ArcSwap<ByName>,
        path: &str,
        name: &str,
        validate_only: bool,
        edit: impl FnOnce(Overrides) -> Result<Overrides, ApiError>,
    ) -> Result<(), ApiError> {
        let _one_at_a_time = self.changing.lock().await;
        let mut planned = ByName::clone(&all.load());
        let edited = edit(planned.remove(name).unwrap_or_default())?;
        if !edited.is_empty() {
            planned.insert(name.to_owned(), edited);
        }
        if validate_only || planned == **all.load() {
            return Ok(());
        }
        self.publish(path, &planned).await?;
        info!(file = path, name, "config altered");
        all.store(Arc::new(planned));
        Ok(())
    }

    async fn publish(&self, path: &str, document: &impl Serialize) -> Result<(), ApiError> {
        let mut text = serde_json::to_vec_pretty(document).expect("strings always serialise");
        text.push(b'\n');
        let (session, path) = (self.session.clone(), path.to_owned());
        let published = tokio::task::spawn_blocking(move || session.publish(&path, &text)).await;
        Ok(published.expect("publishing does not panic")?)
    }

    /// The volume these configurations lie on.
    pub fn volume(&self) -> &Arc<dyn Volume> {
        &self.volume
    }
}

impl Edit {
    fn on<C: Configuration>(self, mut overrides: Overrides) -> Result<Overrides, ApiError> {
        match self {
            Edit::Replace(overrides) => Ok(overrides),
            Edit::Incremental(changes) => {
                for (key, change) in changes {
                    change.apply::<C>(&mut overrides, &key)?;
                }
                Ok(overrides)
            }
        }
    }
}

fn read<T: DeserializeOwned + Default>(volume: &dyn Volume, path: &str) -> Result<T, StorageError> {
    match volume.read_fresh(path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| StorageError::Corrupt {
            path: path.to_owned(),
            why: format!("it does not parse: {error}"),
            remedy: "mend it, or move it aside to start without what clients altered".to_owned(),
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(StorageError::from_io("read", path, error)),
    }
}

/// Rows of defaults with a resource's own overrides put over them.
fn overridden<C: Configuration>(
    mut rows: Vec<ConfigEntry>,
    overrides: Option<&Overrides>,
    source: ConfigSource,
) -> Vec<ConfigEntry> {
    for (name, value) in overrides.into_iter().flatten() {
        let key = C::key(name).expect("overrides are of known keys");
        if let Some(row) = rows.iter_mut().find(|row| row.name == key.name) {
            row.value = Some(value.clone());
            row.source = source;
            row.synonyms.insert(
                0,
                Synonym {
                    name: key.name,
                    value: Some(value.clone()),
                    source,
                },
            );
        }
    }
    rows
}

/// The ranges the broker sets to what groups may ask for, in Kafka's words.
fn check_group(config: &GroupConfig) -> Result<(), ApiError> {
    let ranges = [
        (
            "consumer.heartbeat.interval.ms",
            config.consumer_heartbeat_interval_ms,
            5_000,
            15_000,
        ),
        (
            "consumer.session.timeout.ms",
            config.consumer_session_timeout_ms,
            45_000,
            60_000,
        ),
        (
            "share.heartbeat.interval.ms",
            config.share_heartbeat_interval_ms,
            5_000,
            15_000,
        ),
        (
            "share.session.timeout.ms",
            config.share_session_timeout_ms,
            45_000,
            60_000,
        ),
        (
            "share.record.lock.duration.ms",
            config.share_record_lock_duration_ms,
            15_000,
            60_000,
        ),
        (
            "streams.heartbeat.interval.ms",
            config.streams_heartbeat_interval_ms,
            5_000,
            15_000,
        ),
        (
            "streams.session.timeout.ms",
            config.streams_session_timeout_ms,
            45_000,
            60_000,
        ),
    ];
    for (key, value, low, high) in ranges {
        if !(low..=high).contains(&value) {
            return Err(ApiError::new(
                ErrorCode::INVALID_CONFIG,
                format!("{key} must be in the range {low} to {high} inclusive."),
            ));
        }
    }
    Ok(())
}

/// Refuses each resource that a request names more than once, every time it does.
pub fn refuse_repeated<'a>(
    names: impl Iterator<Item = (i8, &'a str)> + Clone,
) -> Vec<Result<(), ApiError>> {
    let mut times = BTreeMap::<(i8, &str), usize>::new();
    for name in names.clone() {
        *times.entry(name).or_default() += 1;
    }
    let repeated = || {
        Err(ApiError::new(
            ErrorCode::INVALID_REQUEST,
            "Each resource must appear at most once.",
        ))
    };
    names
        .map(|name| if times[&name] > 1 { repeated() } else { Ok(()) })
        .collect()
}

/// Refuses keys that are named twice, and those without the value they need.
pub fn check_keys<'a>(
    mut keys: impl Iterator<Item = &'a str>,
    nulls: impl Iterator<Item = &'a str>,
    separator: &str,
) -> Result<(), ApiError> {
    let refuse = |why: String| Err(ApiError::new(ErrorCode::INVALID_REQUEST, why));
    let mut seen = BTreeSet::new();
    if !keys.all(|key| seen.insert(key)) {
        return refuse("Error due to duplicate config keys".to_owned());
    }
    let nulls: Vec<&str> = nulls.collect();
    if !nulls.is_empty() {
        return refuse(format!(
            "Null value not supported for : {}",
            nulls.join(separator)
        ));
    }
    Ok(())
}
