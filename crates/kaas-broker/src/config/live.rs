//! The configuration in force: what was set at start, what clients altered since, and what it all comes to.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::alter::{AlterError, Change};
use super::describe::{ConfigEntry, ConfigSource, Synonym};
use super::settings::{Settings, suggestion};
use super::table::{Configuration, Key, Update};
use super::topic::{self, Overrides, TopicConfig};
use super::{Config, ConfigError, ignored};

/// Kafka's older names and coarser units: each group in order of precedence.
const SYNONYMS: &[&[&str]] = &[
    &[
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    ],
    &["log.roll.ms", "log.roll.hours"],
    &["log.roll.jitter.ms", "log.roll.jitter.hours"],
];
/// A key whose value counts for another's default, but which that other does not count for.
const FLUSH_SYNONYMS: &[&str] = &["log.flush.interval.ms", "log.flush.scheduler.interval.ms"];

/// What clients altered: overrides for all brokers and for single ones. Who alters it writes it to the volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DynamicConfig {
    /// For every broker.
    #[serde(default)]
    pub everywhere: Overrides,
    /// By node id; these go before those for every broker.
    #[serde(default)]
    pub brokers: BTreeMap<i32, Overrides>,
}

/// Whose overrides a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Everywhere,
    Broker(i32),
}

impl DynamicConfig {
    fn overrides(&self, scope: Scope) -> Option<&Overrides> {
        match scope {
            Scope::Everywhere => Some(&self.everywhere),
            Scope::Broker(id) => self.brokers.get(&id),
        }
    }
}

/// Called with the configuration that comes into force.
type Listener = Box<dyn Fn(&Config) + Send + Sync>;

/// Reading costs next to nothing (`load`); changing is `plan`, then making the outcome durable, then `apply`.
pub struct LiveConfig {
    node_id: i32,
    /// What was set at start, by file and arguments.
    fixed: BTreeMap<&'static str, String>,
    dynamic: Mutex<DynamicConfig>,
    current: ArcSwap<Config>,
    listeners: Mutex<Vec<Listener>>,
}

impl LiveConfig {
    pub fn new(settings: &Settings) -> Result<LiveConfig, ConfigError> {
        let config = settings.resolve()?;
        Ok(LiveConfig {
            node_id: config.node_id,
            fixed: settings
                .values()
                .map(|(key, value)| (key, value.to_owned()))
                .collect(),
            dynamic: Mutex::default(),
            current: ArcSwap::from_pointee(config),
            listeners: Mutex::default(),
        })
    }

    /// The configuration in force now. Not to be kept over an await: load it anew.
    pub fn load(&self) -> arc_swap::Guard<Arc<Config>> {
        self.current.load()
    }

    /// Calls `listener` now and whenever the configuration changes.
    pub fn subscribe(&self, listener: impl Fn(&Config) + Send + Sync + 'static) {
        let mut listeners = self.listeners.lock();
        listener(&self.load());
        listeners.push(Box::new(listener));
    }

    /// What clients have altered.
    pub fn dynamic(&self) -> DynamicConfig {
        self.dynamic.lock().clone()
    }

    /// What `IncrementalAlterConfigs` would make of it. Nothing changes yet: the caller makes the outcome durable and
    /// then applies it, one plan at a time.
    pub fn plan(
        &self,
        scope: Scope,
        changes: impl IntoIterator<Item = (String, Change)>,
    ) -> Result<DynamicConfig, AlterError> {
        let mut planned = self.dynamic();
        let mut overrides = planned.overrides(scope).cloned().unwrap_or_default();
        for (key, change) in changes {
            check_alterable(&key)?;
            change.apply::<Config>(&mut overrides, &key)?;
        }
        planned.put(scope, overrides);
        self.check(scope, &planned)?;
        Ok(planned)
    }

    /// What `AlterConfigs` would make of it: these overrides replace all former ones of the scope.
    pub fn plan_replacement(
        &self,
        scope: Scope,
        overrides: Overrides,
    ) -> Result<DynamicConfig, AlterError> {
        for key in overrides.keys() {
            check_alterable(key)?;
        }
        let mut planned = self.dynamic();
        planned.put(scope, overrides);
        self.check(scope, &planned)?;
        Ok(planned)
    }

    /// Puts what a plan came to, or what the volume holds, into force. Overrides that do not hold here (another version
    /// of kaas wrote them, or they contradict what this broker was started with) are left out and returned with the reason.
    pub fn apply(&self, dynamic: DynamicConfig) -> Vec<(String, String)> {
        let mut refused = Vec::new();
        let mut config = self.fixed_config();
        for scope in [Scope::Everywhere, Scope::Broker(self.node_id)] {
            for (name, text) in dynamic.overrides(scope).into_iter().flatten() {
                let Some(key) = Config::key(name) else {
                    if ignored::find(name).is_none() {
                        refused.push((
                            name.clone(),
                            format!("unknown key {name}{}", suggestion(name)),
                        ));
                    }
                    continue;
                };
                if key.update == Update::ReadOnly {
                    refused.push((
                        name.clone(),
                        format!("{name} cannot be altered while the broker runs"),
                    ));
                } else if let Err(invalid) = key.set(&mut config, text) {
                    refused.push((name.clone(), invalid.to_string()));
                }
            }
        }
        if let Err(reason) = config.check() {
            refused.push(("*".to_owned(), reason));
            config = self.fixed_config();
        }
        let listeners = self.listeners.lock();
        *self.dynamic.lock() = dynamic;
        self.current.store(Arc::new(config));
        for listener in listeners.iter() {
            listener(&self.load());
        }
        refused
    }

    /// The rows of `DescribeConfigs` for this broker: every key that acts, and what was altered besides.
    pub fn describe(&self) -> Vec<ConfigEntry> {
        let config = self.load();
        let dynamic = self.dynamic();
        let mut rows: Vec<ConfigEntry> = Config::keys()
            .iter()
            .map(|key| self.row(key, key.get(&config), &dynamic))
            .collect();
        let altered = self
            .layers(&dynamic)
            .into_iter()
            .flat_map(|(_, overrides)| overrides.keys());
        let altered: std::collections::BTreeSet<&String> = altered.collect();
        for name in altered {
            if let Some(key) = ignored::find(name) {
                let synonyms = self.broker_synonyms(key.name, &dynamic);
                rows.push(ConfigEntry {
                    name: key.name,
                    value: synonyms.first().and_then(|first| first.value.clone()),
                    source: synonyms
                        .first()
                        .map_or(ConfigSource::Default, |first| first.source),
                    read_only: !key.dynamic,
                    kind: key.kind,
                    documentation: "Has no effect here.",
                    synonyms,
                });
            }
        }
        rows
    }

    /// The rows of `DescribeConfigs` for what was altered on all brokers.
    pub fn describe_everywhere(&self) -> Vec<ConfigEntry> {
        let dynamic = self.dynamic();
        let row = |(name, text): (&String, &String)| {
            let (name, kind, documentation) = match Config::key(name) {
                Some(key) => (key.name, key.kind, key.doc),
                None => {
                    ignored::find(name).map(|key| (key.name, key.kind, "Has no effect here."))?
                }
            };
            let source = ConfigSource::DynamicDefaultBroker;
            let synonyms = vec![Synonym {
                name,
                value: Some(text.clone()),
                source,
            }];
            Some(ConfigEntry {
                name,
                value: Some(text.clone()),
                source,
                read_only: false,
                kind,
                documentation,
                synonyms,
            })
        };
        dynamic.everywhere.iter().filter_map(row).collect()
    }

    /// The rows of `DescribeConfigs` for a topic with these overrides.
    pub fn describe_topic(&self, overrides: &Overrides) -> Result<Vec<ConfigEntry>, AlterError> {
        let config = TopicConfig::with_overrides(&self.load(), overrides)?;
        let dynamic = self.dynamic();
        let rows = TopicConfig::keys()
            .iter()
            .filter(|key| !topic::is_internal(key.name) || overrides.contains_key(key.name));
        Ok(rows
            .map(|key| {
                let value = key.get(&config);
                let mut synonyms = match topic::broker_key(key.name) {
                    Some(broker_key) => self.broker_synonyms(broker_key, &dynamic),
                    None => Vec::new(),
                };
                if overrides.contains_key(key.name) {
                    let own = Synonym {
                        name: key.name,
                        value: value.clone(),
                        source: ConfigSource::Topic,
                    };
                    synonyms.insert(0, own);
                }
                ConfigEntry {
                    name: key.name,
                    value,
                    source: synonyms
                        .first()
                        .map_or(ConfigSource::Default, |first| first.source),
                    read_only: false,
                    kind: key.kind,
                    documentation: key.doc,
                    synonyms,
                }
            })
            .collect())
    }

    fn row(
        &self,
        key: &'static Key<Config>,
        value: Option<String>,
        dynamic: &DynamicConfig,
    ) -> ConfigEntry {
        let synonyms = self.broker_synonyms(key.name, dynamic);
        ConfigEntry {
            name: key.name,
            value,
            source: synonyms
                .first()
                .map_or(ConfigSource::Default, |first| first.source),
            read_only: key.update == Update::ReadOnly,
            kind: key.kind,
            documentation: key.doc,
            synonyms,
        }
    }

    /// Everything that has a say in a broker key, the strongest first. As in Kafka, what a synonym has to say counts only
    /// after the key itself is set somewhere.
    fn broker_synonyms(&self, name: &'static str, dynamic: &DynamicConfig) -> Vec<Synonym> {
        let alone = [name];
        let names: &[&'static str] = match SYNONYMS.iter().find(|group| group.contains(&name)) {
            Some(group) => group,
            None if name == FLUSH_SYNONYMS[0] => FLUSH_SYNONYMS,
            None => &alone,
        };
        let mut found = Vec::new();
        for (source, overrides) in self.layers(dynamic) {
            for name in names {
                if let Some(value) = overrides.get(*name) {
                    found.push(Synonym {
                        name,
                        value: Some(value.clone()),
                        source,
                    });
                }
            }
        }
        for name in names {
            if let Some(value) = self.fixed.get(name) {
                found.push(Synonym {
                    name,
                    value: Some(value.clone()),
                    source: ConfigSource::StaticBroker,
                });
            }
        }
        for name in names {
            let default = match Config::key(name) {
                Some(key) => key.default.clone(),
                None => ignored::find(name)
                    .and_then(|key| key.default)
                    .map(str::to_owned),
            };
            if let Some(value) = default {
                found.push(Synonym {
                    name,
                    value: Some(value),
                    source: ConfigSource::Default,
                });
            }
        }
        found
            .into_iter()
            .skip_while(|synonym| synonym.name != name)
            .collect()
    }

    /// The altered layers that hold for this broker, the stronger first.
    fn layers<'a>(&self, dynamic: &'a DynamicConfig) -> Vec<(ConfigSource, &'a Overrides)> {
        let mut layers = Vec::new();
        if let Some(overrides) = dynamic.brokers.get(&self.node_id) {
            layers.push((ConfigSource::DynamicBroker, overrides));
        }
        layers.push((ConfigSource::DynamicDefaultBroker, &dynamic.everywhere));
        layers
    }

    fn fixed_config(&self) -> Config {
        let mut config = Config::default();
        for (name, text) in &self.fixed {
            if let Some(key) = Config::key(name) {
                key.set(&mut config, text)
                    .expect("what was set at start was checked then");
            }
        }
        config
    }

    /// Checks the values a plan leads to, on the broker it is about.
    fn check(&self, scope: Scope, planned: &DynamicConfig) -> Result<(), AlterError> {
        let mut config = self.fixed_config();
        let everywhere = planned.everywhere.iter();
        let here = match scope {
            Scope::Broker(id) => planned.brokers.get(&id),
            Scope::Everywhere => planned.brokers.get(&self.node_id),
        };
        for (name, text) in everywhere.chain(here.into_iter().flatten()) {
            if let Some(key) = Config::key(name) {
                key.set(&mut config, text)
                    .map_err(|invalid| AlterError::InvalidRequest(invalid.to_string()))?;
            }
        }
        config.check().map_err(AlterError::InvalidRequest)
    }
}

impl DynamicConfig {
    fn put(&mut self, scope: Scope, overrides: Overrides) {
        match scope {
            Scope::Everywhere => self.everywhere = overrides,
            Scope::Broker(id) if overrides.is_empty() => {
                self.brokers.remove(&id);
            }
            Scope::Broker(id) => {
                self.brokers.insert(id, overrides);
            }
        }
    }
}

/// A key that acts and may be altered, or one that Kafka lets its tools alter and that has no effect here.
fn check_alterable(name: &str) -> Result<(), AlterError> {
    let dynamic = match (Config::key(name), ignored::find(name)) {
        (Some(key), _) => key.update == Update::Dynamic,
        (None, Some(key)) => key.dynamic,
        (None, None) => {
            return Err(AlterError::InvalidConfig(format!(
                "unknown key {name}{}",
                suggestion(name)
            )));
        }
    };
    if dynamic {
        Ok(())
    } else {
        Err(AlterError::InvalidRequest(format!(
            "Cannot update these configs dynamically: [{name}]"
        )))
    }
}
