//! The rows of a `DescribeConfigs` answer.

use super::table::Configuration;
use super::value::ConfigType;

/// Where a value comes from, with the codes of `DescribeConfigs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    Topic = 1,
    DynamicBroker = 2,
    DynamicDefaultBroker = 3,
    StaticBroker = 4,
    Default = 5,
    ClientMetrics = 7,
    Group = 8,
}

impl ConfigSource {
    pub fn code(self) -> i8 {
        self as i8
    }
}

/// One key of a resource as `DescribeConfigs` shows it. No key served so far is sensitive.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigEntry {
    pub name: &'static str,
    /// `None` if the key has no value.
    pub value: Option<String>,
    pub source: ConfigSource,
    pub read_only: bool,
    pub kind: ConfigType,
    pub documentation: &'static str,
    /// What has a say in the value, the strongest first.
    pub synonyms: Vec<Synonym>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Synonym {
    pub name: &'static str,
    pub value: Option<String>,
    pub source: ConfigSource,
}

/// The rows of a resource that overrides nothing; `synonym` names the key each default comes from, if any.
pub(super) fn defaults<C: Configuration>(
    synonym: impl Fn(&'static str) -> Option<&'static str>,
) -> Vec<ConfigEntry> {
    C::keys()
        .iter()
        .map(|key| ConfigEntry {
            name: key.name,
            value: key.default.clone(),
            source: ConfigSource::Default,
            read_only: false,
            kind: key.kind,
            documentation: key.doc,
            synonyms: synonym(key.name)
                .map(|name| Synonym {
                    name,
                    value: key.default.clone(),
                    source: ConfigSource::Default,
                })
                .into_iter()
                .collect(),
        })
        .collect()
}
