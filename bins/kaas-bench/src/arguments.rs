//! The command line: a scenario, then `--name value` in any order. A scenario takes what it knows, with its defaults;
//! what nobody took is an error. What was taken is part of the report.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use anyhow::{Context, bail};
use lexopt::{Arg, ValueExt};

pub struct Arguments {
    pub scenario: String,
    given: BTreeMap<String, String>,
    taken: Vec<(String, String)>,
}

/// Arguments that have no value.
const FLAGS: [&str; 2] = ["json", "help"];

impl Arguments {
    /// `None` where help was asked for.
    pub fn parse() -> anyhow::Result<Option<Arguments>> {
        let mut parser = lexopt::Parser::from_env();
        let mut scenario = None;
        let mut given = BTreeMap::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Value(value) if scenario.is_none() => scenario = Some(value.string()?),
                Arg::Long(name) if FLAGS.contains(&name) => {
                    given.insert(name.to_owned(), "true".to_owned());
                }
                Arg::Long(name) => {
                    let name = name.to_owned();
                    given.insert(name, parser.value()?.string()?);
                }
                other => return Err(other.unexpected().into()),
            }
        }
        if given.remove("help").is_some() {
            return Ok(None);
        }
        Ok(scenario.map(|scenario| Arguments {
            scenario,
            given,
            taken: Vec::new(),
        }))
    }

    /// The value of `--name`, or `default`.
    pub fn take<T: FromStr<Err: Display> + Display>(
        &mut self,
        name: &str,
        default: T,
    ) -> anyhow::Result<T> {
        let value = self.take_optional(name)?.unwrap_or(default);
        self.taken.push((name.to_owned(), value.to_string()));
        Ok(value)
    }

    /// The value of `--name`, if it was given. Not part of the report.
    pub fn take_optional<T: FromStr<Err: Display>>(
        &mut self,
        name: &str,
    ) -> anyhow::Result<Option<T>> {
        let Some(text) = self.given.remove(name) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(error) => bail!("--{name} {text}: {error}"),
        }
    }

    pub fn take_required(&mut self, name: &str) -> anyhow::Result<String> {
        self.take_optional(name)?
            .with_context(|| format!("--{name} is missing"))
    }

    /// What was taken, once nothing is left.
    pub fn finish(&mut self) -> anyhow::Result<Vec<(String, String)>> {
        if let Some(name) = self.given.keys().next() {
            bail!("{} knows no --{name}", self.scenario);
        }
        Ok(std::mem::take(&mut self.taken))
    }
}
