//! The one way a configuration is declared: a table of keys, from which come the struct, its defaults, the parsing, the
//! rows of `DescribeConfigs` and the documentation.

use super::value::{ConfigType, ConfigValue, Valid};

/// Who may change a key while the broker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Only a restart.
    ReadOnly,
    /// `AlterConfigs`, for one broker or for all.
    Dynamic,
}

/// One key of the configuration `C`.
pub struct Key<C> {
    pub name: &'static str,
    pub kind: ConfigType,
    /// As text; `None` if the key has no default.
    pub default: Option<String>,
    pub valid: Valid,
    pub update: Update,
    pub doc: &'static str,
    /// The field's name, which is the key's with underscores.
    pub field: &'static str,
    pub(super) set: fn(&mut C, &str) -> Result<(), Rejection>,
    pub(super) get: fn(&C) -> Option<String>,
}

impl<C> Key<C> {
    /// Sets the field from text.
    pub fn set(&self, config: &mut C, text: &str) -> Result<(), Invalid> {
        (self.set)(config, text.trim()).map_err(|Rejection { value, reason }| Invalid {
            key: self.name,
            value,
            reason,
        })
    }

    /// The field's value as text; `None` if it is absent.
    pub fn get(&self, config: &C) -> Option<String> {
        (self.get)(config)
    }
}

/// A struct declared by `config_table!`.
pub trait Configuration: Default + Clone + Sized + 'static {
    /// The keys, in the order of their declaration.
    fn keys() -> &'static [Key<Self>];

    fn key(name: &str) -> Option<&'static Key<Self>> {
        Self::keys().iter().find(|key| key.name == name)
    }
}

/// A value that a key does not take. Shown as Kafka says it in an `INVALID_CONFIG` answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Invalid value {value} for configuration {key}: {reason}")]
pub struct Invalid {
    pub key: &'static str,
    pub value: String,
    pub reason: String,
}

/// `Invalid` before its key is known.
pub struct Rejection {
    value: String,
    reason: String,
}

/// Reads a value and checks it against what its key allows.
pub fn parse<T: ConfigValue>(text: &str, valid: &Valid) -> Result<T, Rejection> {
    let value = T::parse(text).map_err(|reason| Rejection {
        value: text.to_owned(),
        reason,
    })?;
    match value.check(valid) {
        Ok(()) => Ok(value),
        Err(reason) => Err(Rejection {
            value: value.show().unwrap_or_default(),
            reason,
        }),
    }
}

/// Declares a configuration. A row is
/// `"key.name" key_name: type = default, valid, update, "what it does";`
/// where `valid` is a variant of `Valid` and `update` one of `Update`.
macro_rules! config_table {
    (
        $(#[$meta:meta])*
        pub struct $Config:ident;
        $( $name:literal $field:ident: $type:ty = $default:expr, $valid:expr, $update:ident, $doc:literal; )*
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $Config {
            $( #[doc = concat!("`", $name, "`: ", $doc)] pub $field: $type, )*
        }

        impl Default for $Config {
            fn default() -> Self {
                $Config { $( $field: $default, )* }
            }
        }

        impl $crate::config::table::Configuration for $Config {
            fn keys() -> &'static [$crate::config::table::Key<$Config>] {
                use $crate::config::{table, value::{ConfigValue, Valid::*}};
                static KEYS: std::sync::LazyLock<Vec<table::Key<$Config>>> = std::sync::LazyLock::new(|| {
                    let default = $Config::default();
                    vec![ $(
                        table::Key {
                            name: $name,
                            field: stringify!($field),
                            kind: <$type as ConfigValue>::TYPE,
                            default: default.$field.show(),
                            valid: $valid,
                            update: table::Update::$update,
                            doc: $doc,
                            set: |config, text| {
                                config.$field = table::parse(text, &$valid)?;
                                Ok(())
                            },
                            get: |config| config.$field.show(),
                        },
                    )* ]
                });
                &KEYS
            }
        }
    };
}

pub(crate) use config_table;
