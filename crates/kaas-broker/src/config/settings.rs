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
        .map(|name| (strsim::osa_distance(typed, name), name))
        .min_by_key(|(edits, _)| *edits);
    match nearest {
        Some((edits, name)) if edits <= MAX_EDITS.min(typed.len() / 2) => {
            format!("; did you mean {name}?")
        }
        _ => "; docs/configs.md lists the keys there are".to_owned(),
    }
}
