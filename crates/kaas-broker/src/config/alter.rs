//! Changes to overrides as `IncrementalAlterConfigs` asks for them, for any table.

use std::collections::BTreeMap;

use super::table::{Configuration, Invalid};
use super::value::ConfigType;

/// Why a change is refused, in Kafka's words where Kafka has some. The variant names the error code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AlterError {
    #[error("{0}")]
    InvalidConfig(String),
    #[error("{0}")]
    InvalidRequest(String),
}

impl From<Invalid> for AlterError {
    fn from(invalid: Invalid) -> AlterError {
        AlterError::InvalidConfig(invalid.to_string())
    }
}

/// What is to become of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Set(String),
    Delete,
    /// Adds elements to a list.
    Append(String),
    /// Takes elements out of a list.
    Subtract(String),
}

impl Change {
    /// From `ConfigOperation` and `Value` of `IncrementalAlterConfigs`.
    pub fn from_wire(key: &str, operation: i8, value: Option<&str>) -> Result<Change, AlterError> {
        let some = || match value {
            Some(value) => Ok(value.to_owned()),
            None => Err(AlterError::InvalidRequest(format!(
                "Null value not supported for : {key}"
            ))),
        };
        match operation {
            0 => Ok(Change::Set(some()?)),
            1 => Ok(Change::Delete),
            2 => Ok(Change::Append(some()?)),
            3 => Ok(Change::Subtract(some()?)),
            other => Err(AlterError::InvalidRequest(format!(
                "Unknown operation type {other} for config {key}"
            ))),
        }
    }

    /// Carries the change out on the overrides of a `C`; whether the outcome is valid is for the caller to check.
    /// A list that is not overridden is changed from the default of its table.
    pub fn apply<C: Configuration>(
        self,
        overrides: &mut BTreeMap<String, String>,
        key: &str,
    ) -> Result<(), AlterError> {
        let (operation, adds, listed) = match self {
            Change::Set(value) => {
                overrides.insert(key.to_owned(), value);
                return Ok(());
            }
            Change::Delete => {
                overrides.remove(key);
                return Ok(());
            }
            Change::Append(listed) => ("APPEND", true, listed),
            Change::Subtract(listed) => ("SUBTRACT", false, listed),
        };
        let Some(definition) = C::key(key).filter(|definition| definition.kind == ConfigType::List)
        else {
            return Err(AlterError::InvalidConfig(format!(
                "Can't {operation} to key {key} because its type is not LIST."
            )));
        };
        let current = overrides
            .get(key)
            .or(definition.default.as_ref())
            .map_or("", String::as_str);
        let mut elements: Vec<&str> = current
            .split(',')
            .map(str::trim)
            .filter(|element| !element.is_empty())
            .collect();
        for element in listed.split(',').map(str::trim) {
            if !adds {
                elements.retain(|kept| *kept != element);
            } else if !elements.contains(&element) {
                elements.push(element);
            }
        }
        let changed = elements.join(",");
        overrides.insert(key.to_owned(), changed);
        Ok(())
    }
}
