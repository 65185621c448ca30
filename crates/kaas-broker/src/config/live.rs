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
        (None, None) if ignored::is_ignored(name) => false,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn live(settings: &[(&str, &str)]) -> LiveConfig {
        let mut told = Settings::default();
        for (key, value) in settings {
            told.add(key, value, "test").unwrap();
        }
        LiveConfig::new(&told).unwrap()
    }

    fn set(value: &str) -> Change {
        Change::Set(value.to_owned())
    }

    fn alter(live: &LiveConfig, scope: Scope, key: &str, change: Change) -> Result<(), AlterError> {
        let planned = live.plan(scope, [(key.to_owned(), change)])?;
        assert_eq!(live.apply(planned), []);
        Ok(())
    }

    fn overrides<const N: usize>(entries: [(&str, &str); N]) -> Overrides {
        entries
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    }

    /// A row as Kafka's `kafka-configs --describe` prints it.
    fn show(rows: &[ConfigEntry], name: &str) -> String {
        let row = rows.iter().find(|row| row.name == name).expect(name);
        let source = |source: ConfigSource| match source {
            ConfigSource::Topic => "TOPIC",
            ConfigSource::DynamicBroker => "DYNAMIC_BROKER",
            ConfigSource::DynamicDefaultBroker => "DYNAMIC_DEFAULT_BROKER",
            ConfigSource::StaticBroker => "STATIC_BROKER",
            ConfigSource::Default => "DEFAULT",
            ConfigSource::ClientMetrics | ConfigSource::Group => "OTHER",
        };
        let text = |value: &Option<String>| value.clone().unwrap_or("null".to_owned());
        let synonyms: Vec<String> = row
            .synonyms
            .iter()
            .map(|synonym| {
                format!(
                    "{}:{}={}",
                    source(synonym.source),
                    synonym.name,
                    text(&synonym.value)
                )
            })
            .collect();
        format!(
            "{} {} [{}]",
            text(&row.value),
            source(row.source),
            synonyms.join(" ")
        )
    }

    #[test]
    fn rows_name_every_source_of_a_value_as_kafka_does() {
        let live = live(&[
            ("log.segment.bytes", "2097152"),
            ("log.retention.minutes", "100"),
        ]);
        let topic = live
            .describe_topic(&overrides([("min.cleanable.dirty.ratio", "1e-3")]))
            .unwrap();
        assert_eq!(
            show(&topic, "segment.bytes"),
            "2097152 STATIC_BROKER [STATIC_BROKER:log.segment.bytes=2097152 DEFAULT:log.segment.bytes=1073741824]"
        );
        assert_eq!(show(&topic, "retention.ms"), "6000000 DEFAULT []");
        assert_eq!(show(&topic, "flush.ms"), "9223372036854775807 DEFAULT []");
        assert_eq!(show(&topic, "segment.ms"), "604800000 DEFAULT []");
        assert_eq!(show(&topic, "remote.storage.enable"), "false DEFAULT []");
        assert_eq!(
            show(&topic, "compression.type"),
            "producer DEFAULT [DEFAULT:compression.type=producer]"
        );
        assert_eq!(
            show(&topic, "min.cleanable.dirty.ratio"),
            "0.001 TOPIC [TOPIC:min.cleanable.dirty.ratio=0.001 DEFAULT:log.cleaner.min.cleanable.ratio=0.5]"
        );
        let broker = live.describe();
        assert_eq!(
            show(&broker, "log.retention.minutes"),
            "100 STATIC_BROKER [STATIC_BROKER:log.retention.minutes=100 DEFAULT:log.retention.hours=168]"
        );
        assert_eq!(show(&broker, "log.retention.ms"), "null DEFAULT []");
        assert_eq!(
            show(&broker, "log.retention.hours"),
            "168 DEFAULT [DEFAULT:log.retention.hours=168]"
        );

        alter(&live, Scope::Broker(0), "log.retention.ms", set("500000")).unwrap();
        alter(&live, Scope::Everywhere, "log.retention.ms", set("600000")).unwrap();
        alter(
            &live,
            Scope::Everywhere,
            "message.max.bytes",
            set("2000000"),
        )
        .unwrap();
        let chain = "DYNAMIC_BROKER:log.retention.ms=500000 DYNAMIC_DEFAULT_BROKER:log.retention.ms=600000 \
                     STATIC_BROKER:log.retention.minutes=100 DEFAULT:log.retention.hours=168";
        assert_eq!(
            show(&live.describe(), "log.retention.ms"),
            format!("500000 DYNAMIC_BROKER [{chain}]")
        );
        let topic = live.describe_topic(&Overrides::new()).unwrap();
        assert_eq!(
            show(&topic, "retention.ms"),
            format!("500000 DYNAMIC_BROKER [{chain}]")
        );
        assert_eq!(
            show(&topic, "max.message.bytes"),
            "2000000 DYNAMIC_DEFAULT_BROKER [DYNAMIC_DEFAULT_BROKER:message.max.bytes=2000000 DEFAULT:message.max.bytes=1048588]"
        );
        let everywhere = live.describe_everywhere();
        assert_eq!(everywhere.len(), 2);
        assert_eq!(
            show(&everywhere, "message.max.bytes"),
            "2000000 DYNAMIC_DEFAULT_BROKER [DYNAMIC_DEFAULT_BROKER:message.max.bytes=2000000]"
        );
    }

    #[test]
    fn internal_keys_are_shown_only_where_they_are_overridden() {
        let live = live(&[]);
        let names = |overrides| {
            let rows = live.describe_topic(&overrides).unwrap();
            rows.iter().any(|row| row.name == "internal.segment.bytes")
        };
        assert!(!names(Overrides::new()));
        assert!(names(overrides([("internal.segment.bytes", "10")])));
    }

    #[test]
    fn an_override_of_one_broker_goes_before_one_for_all_and_both_before_what_was_set_at_start() {
        let live = live(&[("max.connections", "1")]);
        alter(&live, Scope::Broker(7), "max.connections", set("9")).unwrap();
        assert_eq!(live.load().max_connections, 1);
        alter(&live, Scope::Everywhere, "max.connections", set("2")).unwrap();
        assert_eq!(live.load().max_connections, 2);
        alter(&live, Scope::Broker(0), "max.connections", set("3")).unwrap();
        assert_eq!(live.load().max_connections, 3);
        alter(&live, Scope::Broker(0), "max.connections", Change::Delete).unwrap();
        alter(&live, Scope::Everywhere, "max.connections", Change::Delete).unwrap();
        assert_eq!(live.load().max_connections, 1);
        assert_eq!(live.dynamic().brokers.keys().collect::<Vec<_>>(), [&7]);
    }

    #[test]
    fn what_may_not_be_altered_is_refused_and_changes_nothing() {
        let live = live(&[]);
        for (key, value, message) in [
            (
                "node.id",
                "5",
                "Cannot update these configs dynamically: [node.id]",
            ),
            (
                "log.retention.hours",
                "5",
                "Cannot update these configs dynamically: [log.retention.hours]",
            ),
            (
                "zookeeper.connect",
                "x",
                "Cannot update these configs dynamically: [zookeeper.connect]",
            ),
            (
                "max.conections",
                "5",
                "unknown key max.conections; did you mean max.connections?",
            ),
            (
                "max.connections",
                "abc",
                "Invalid value abc for configuration max.connections: Not a number of type INT",
            ),
        ] {
            let error = live
                .plan(Scope::Broker(0), [(key.to_owned(), set(value))])
                .unwrap_err();
            assert_eq!(error.to_string(), message);
        }
        let error = live.plan(
            Scope::Everywhere,
            [("group.min.session.timeout.ms".to_owned(), set("1900000"))],
        );
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("no member can join")
        );
        assert_eq!(live.dynamic(), DynamicConfig::default());
    }

    #[test]
    fn lists_grow_and_shrink_by_elements() {
        let live = live(&[]);
        let everywhere = |change| alter(&live, Scope::Everywhere, "log.cleanup.policy", change);
        everywhere(Change::Append("compact".to_owned())).unwrap();
        assert_eq!(live.load().log_cleanup_policy, ["delete", "compact"]);
        everywhere(Change::Append("compact".to_owned())).unwrap();
        everywhere(Change::Subtract("delete,other".to_owned())).unwrap();
        assert_eq!(live.load().log_cleanup_policy, ["compact"]);
        let error = alter(
            &live,
            Scope::Everywhere,
            "max.connections",
            Change::Append("1".to_owned()),
        )
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "Can't APPEND to key max.connections because its type is not LIST."
        );
    }

    #[test]
    fn a_replacement_drops_what_it_does_not_name() {
        let live = live(&[]);
        alter(&live, Scope::Everywhere, "max.connections", set("2")).unwrap();
        let planned = live
            .plan_replacement(Scope::Everywhere, overrides([("group.max.size", "9")]))
            .unwrap();
        assert_eq!(live.apply(planned), []);
        assert_eq!(
            (live.load().max_connections, live.load().group_max_size),
            (i32::MAX, 9)
        );
    }

    #[test]
    fn stored_overrides_that_no_longer_hold_are_left_out_with_the_reason() {
        let live = live(&[]);
        let stored = DynamicConfig {
            everywhere: overrides([
                ("group.max.size", "0"),
                ("no.such.key", "1"),
                ("max.connections", "8"),
            ]),
            brokers: BTreeMap::from([(0, overrides([("node.id", "4")]))]),
        };
        let text = serde_json::to_string(&stored).unwrap();
        let refused = live.apply(serde_json::from_str(&text).unwrap());
        let keys: Vec<&str> = refused.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["group.max.size", "no.such.key", "node.id"]);
        assert_eq!(
            (live.load().max_connections, live.load().group_max_size),
            (8, i32::MAX)
        );
        assert_eq!(live.dynamic(), stored);
    }

    #[test]
    fn kafkas_tools_may_alter_a_key_without_effect_and_see_it() {
        let live = live(&[]);
        alter(
            &live,
            Scope::Broker(0),
            "leader.replication.throttled.rate",
            set("100"),
        )
        .unwrap();
        alter(&live, Scope::Broker(0), "log.cleaner.threads", set("7")).unwrap();
        assert_eq!(
            show(&live.describe(), "log.cleaner.threads"),
            "7 DYNAMIC_BROKER [DYNAMIC_BROKER:log.cleaner.threads=7 DEFAULT:log.cleaner.threads=1]"
        );
    }

    #[test]
    fn a_subscriber_hears_of_the_configuration_at_once_and_of_each_change() {
        let live = live(&[]);
        let heard = Arc::new(Mutex::new(Vec::new()));
        let log = heard.clone();
        live.subscribe(move |config| log.lock().push(config.group_max_size));
        alter(&live, Scope::Everywhere, "group.max.size", set("3")).unwrap();
        assert_eq!(*heard.lock(), [i32::MAX, 3]);
    }
}
