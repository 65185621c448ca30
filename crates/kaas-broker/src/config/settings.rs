//! What an operator has set: a properties file, `--set KEY=VALUE`, arguments and environment variables.
//!
//! What is told later goes before what was told earlier; `bins/kaas` tells the file first, then `--set`, then the
//! environment, then its own arguments. What nobody told has its default.

use std::collections::BTreeMap;

use super::table::{Configuration, Key};
use super::{Config, ConfigError, ignored, properties};

/// Kafka's other names for keys.
const ALIASES: &[(&str, &str)] = &[("broker.id", "node.id"), ("log.dir", "log.dirs")];

/// How far, in edits, a key may be from what was typed to be suggested for it.
const MAX_EDITS: usize = 3;

#[derive(Clone, Debug, Default)]
pub struct Settings {
    values: BTreeMap<&'static str, Setting>,
    ignored: Vec<String>,
}

#[derive(Clone, Debug)]
struct Setting {
    value: String,
    /// As an error names it: a file and line, `--set`, `KAAS_LISTEN`…
    origin: String,
}

impl Settings {
    /// The settings of a properties file; `name` is for errors.
    pub fn add_file(&mut self, name: &str, text: &str) -> Result<(), ConfigError> {
        for property in properties::parse(text).map_err(|error| ConfigError::File {
            file: name.to_owned(),
            line: error.line,
            reason: error.reason,
        })? {
            self.add(
                &property.key,
                &property.value,
                &format!("{name}:{}", property.line),
            )?;
        }
        Ok(())
    }

    /// The argument of `--set`.
    pub fn add_argument(&mut self, argument: &str) -> Result<(), ConfigError> {
        let Some((key, value)) = argument.split_once('=') else {
            return Err(ConfigError::Argument(argument.to_owned()));
        };
        self.add(key.trim(), value, "--set")
    }

    /// One key, told by `origin`. A known key that has no effect here is only remembered.
    pub fn add(&mut self, key: &str, value: &str, origin: &str) -> Result<(), ConfigError> {
        let name = ALIASES
            .iter()
            .find(|(alias, _)| *alias == key)
            .map_or(key, |(_, name)| *name);
        if let Some(key) = Config::key(name) {
            key.set(&mut Config::default(), value)
                .map_err(|invalid| ConfigError::Invalid {
                    origin: origin.to_owned(),
                    key: key.name,
                    value: value.to_owned(),
                    reason: invalid.reason,
                    remedy: remedy(key),
                })?;
            self.values.insert(
                key.name,
                Setting {
                    value: value.trim().to_owned(),
                    origin: origin.to_owned(),
                },
            );
        } else if ignored::is_ignored(name) {
            self.ignored.push(name.to_owned());
        } else {
            return Err(ConfigError::Unknown {
                origin: origin.to_owned(),
                key: key.to_owned(),
                suggestion: suggestion(key),
            });
        }
        Ok(())
    }

    /// The keys of Kafka that were set and have no effect here, for one warning.
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// What was set, by key.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values
            .iter()
            .map(|(key, setting)| (*key, setting.value.as_str()))
    }

    /// The settings over the defaults.
    pub fn resolve(&self) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        for (name, setting) in &self.values {
            let key = Config::key(name).expect("only keys of the table are kept");
            key.set(&mut config, &setting.value)
                .expect("a setting was checked when it was added");
        }
        config.check().map_err(|reason| {
            let told: Vec<String> = self
                .values
                .iter()
                .filter(|(name, _)| reason.contains(*name))
                .map(|(name, setting)| format!("{name}={} ({})", setting.value, setting.origin))
                .collect();
            ConfigError::Contradiction {
                reason,
                told: told.join(", "),
            }
        })?;
        Ok(config)
    }
}

/// What is allowed, and what to do.
fn remedy(key: &Key<Config>) -> String {
    let mut remedy = format!("allowed is: {}", key.kind.name());
    if let Some(allowed) = key.valid.describe() {
        remedy.push_str(", ");
        remedy.push_str(&allowed);
    }
    match key.default.as_deref() {
        None | Some("") => remedy.push_str("; correct it or remove it"),
        Some(default) => {
            remedy.push_str("; correct it, or remove it for the default, ");
            remedy.push_str(default);
        }
    }
    remedy
}

/// `; did you mean KEY?`, if a known key is near enough to what was typed.
pub(super) fn suggestion(typed: &str) -> String {
    let known = Config::keys()
        .iter()
        .map(|key| key.name)
        .chain(ignored::names());
    let nearest = known
        .filter(|name| name.len().abs_diff(typed.len()) <= MAX_EDITS)
        .map(|name| (strsim::osa_distance(typed, name), name))
        .min_by_key(|(edits, _)| *edits);
    match nearest {
        Some((edits, name)) if edits <= MAX_EDITS.min(typed.len() / 2) => {
            format!("; did you mean {name}?")
        }
        _ => "; docs/configs.md lists the keys there are".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(argument: &str) -> String {
        Settings::default()
            .add_argument(argument)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn what_is_told_later_goes_before_what_was_told_earlier() {
        let mut settings = Settings::default();
        settings
            .add_file(
                "k.properties",
                "group.max.size=1\nnum.partitions=2\nnum.partitions=3\nmax.connections=4",
            )
            .unwrap();
        settings.add_argument("group.max.size=5").unwrap();
        settings.add_argument("group.max.size = 6").unwrap();
        settings.add("max.connections", "7", "KAAS_MAX").unwrap();
        let config = settings.resolve().unwrap();
        assert_eq!(
            (
                config.group_max_size,
                config.num_partitions,
                config.max_connections
            ),
            (6, 3, 7)
        );
        assert_eq!(config.offsets_retention_minutes, 10_080);
    }

    #[test]
    fn an_invalid_value_is_refused_with_what_is_allowed_and_the_remedy() {
        assert_eq!(
            refused("group.max.size=0"),
            "--set: group.max.size=0: Value must be at least 1; allowed is: int, at least 1; \
             correct it, or remove it for the default, 2147483647"
        );
        let file = Settings::default()
            .add_file("k.properties", "\nlog.retention.ms=soon")
            .unwrap_err()
            .to_string();
        assert_eq!(
            file,
            "k.properties:2: log.retention.ms=soon: Not a number of type LONG; allowed is: long, -1, or at least 1; \
             correct it or remove it"
        );
        assert!(refused("log.retention.hours=0").contains("at least 1"));
        assert!(refused("group.max.size").contains("KEY=VALUE"));
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_there_is() {
        assert_eq!(
            refused("group.initial.rebalanse.delay.ms=0"),
            "--set: unknown key group.initial.rebalanse.delay.ms; did you mean group.initial.rebalance.delay.ms?"
        );
        assert!(refused("utter.nonsense=1").ends_with("docs/configs.md lists the keys there are"));
        assert!(refused("x=1").ends_with("docs/configs.md lists the keys there are"));
    }

    #[test]
    fn kafkas_keys_without_effect_are_accepted_and_named() {
        let mut settings = Settings::default();
        let text = "num.replica.fetchers=4\nzookeeper.connect=a:1\nlistener.name.x.ssl.key.password=y\nprocess.roles=broker";
        settings.add_file("k", text).unwrap();
        let names = [
            "num.replica.fetchers",
            "zookeeper.connect",
            "listener.name.x.ssl.key.password",
            "process.roles",
        ];
        assert_eq!(settings.ignored(), names);
        assert_eq!(settings.resolve().unwrap(), Config::default());
    }

    #[test]
    fn kafkas_other_names_are_taken_for_the_keys_they_name() {
        let mut settings = Settings::default();
        settings
            .add_file("k", "broker.id=3\nlog.dir=/data")
            .unwrap();
        let config = settings.resolve().unwrap();
        assert_eq!((config.node_id, config.log_dirs.as_str()), (3, "/data"));
    }

    #[test]
    fn values_that_contradict_each_other_are_refused_with_where_they_were_set() {
        for (arguments, named) in [
            (
                &["queued.max.request.bytes=5000"][..],
                "socket.request.max.bytes",
            ),
            (
                &[
                    "group.min.session.timeout.ms=5",
                    "group.max.session.timeout.ms=4",
                ],
                "no member",
            ),
            (
                &["socket.request.max.bytes=2000000000"],
                "kaas.request.memory.connection.max.bytes",
            ),
            (
                &["kaas.request.memory.total.max.bytes=1048576"],
                "kaas.request.memory.connection.max.bytes",
            ),
            (
                &["max.connections.per.ip=0"],
                "max.connections.per.ip.overrides",
            ),
            (
                &[
                    "log.cleaner.max.compaction.lag.ms=4",
                    "log.cleaner.min.compaction.lag.ms=5",
                ],
                "above",
            ),
        ] {
            let mut settings = Settings::default();
            for argument in arguments {
                settings.add_argument(argument).unwrap();
            }
            let error = settings.resolve().unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
            for argument in arguments {
                assert!(error.contains(&format!("{argument} (--set)")), "{error}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn an_unknown_key_one_edit_from_a_known_one_suggests_such_a_one(
            pick in any::<prop::sample::Index>(),
            at in any::<prop::sample::Index>(),
            edit in 0..4,
            letter in "[a-z.]",
        ) {
            let known: Vec<&str> = Config::keys().iter().map(|key| key.name).chain(ignored::names()).collect();
            let key = known[pick.index(known.len())];
            let at = at.index(key.len() - 1);
            let typed = match edit {
                0 => format!("{}{letter}{}", &key[..at], &key[at..]),
                1 => format!("{}{}", &key[..at], &key[at + 1..]),
                2 => format!("{}{letter}{}", &key[..at], &key[at + 1..]),
                _ => format!("{}{}{}{}", &key[..at], &key[at + 1..at + 2], &key[at..at + 1], &key[at + 2..]),
            };
            let is_known = known.contains(&typed.as_str()) || ignored::is_ignored(&typed);
            prop_assume!(!is_known && !ALIASES.iter().any(|(alias, _)| *alias == typed));
            let error = refused(&format!("{typed}=1"));
            let suggested = error.split("did you mean ").nth(1).map(|rest| rest.trim_end_matches('?'));
            let suggested = suggested.expect("a key is suggested");
            prop_assert!(suggested == key || strsim::osa_distance(suggested, &typed) == 1, "{} for {}", suggested, typed);
        }
    }
}
