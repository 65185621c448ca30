//! What a run says at its end: a table for people, or JSON.

use std::collections::BTreeMap;
use std::fmt::Write;

use hdrhistogram::Histogram;
use kaas_wire::{ApiKey, ErrorCode};
use serde_json::{Map, Value, json};

use crate::measure::Measure;
use crate::process::{self, Process, Usage};

/// The points of a distribution that are reported.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];

/// Collects one run.
pub struct Report {
    pub scenario: String,
    pub settings: Vec<(String, String)>,
    /// How the broker was reached, and what it said it is.
    pub target: String,
    broker: Option<(Process, Usage)>,
    figures: Vec<Figure>,
    latencies: Vec<(String, Histogram<u64>)>,
    errors: BTreeMap<(ApiKey, ErrorCode), u64>,
    wrong_count: u64,
    wrongs: Vec<String>,
}

struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
}

impl Report {
    pub fn new(scenario: String, broker: Option<Process>) -> anyhow::Result<Report> {
        let broker = match broker {
            Some(process) => {
                let usage = process.usage()?;
                Some((process, usage))
            }
            None => None,
        };
        Ok(Report {
            scenario,
            settings: Vec::new(),
            target: String::new(),
            broker,
            figures: Vec::new(),
            latencies: Vec::new(),
            errors: BTreeMap::new(),
            wrong_count: 0,
            wrongs: Vec::new(),
        })
    }

    pub fn figure(&mut self, name: &str, value: f64, unit: &'static str) {
        self.figures.push(Figure {
            name: name.to_owned(),
            value,
            unit,
        });
    }

    /// A distribution of microseconds.
    pub fn latency(&mut self, name: &str, histogram: Histogram<u64>) {
        self.latencies.push((name.to_owned(), histogram));
    }

    /// What the broker uses now.
    pub fn broker_usage(&self) -> anyhow::Result<Option<Usage>> {
        self.broker
            .as_ref()
            .map(|(process, _)| process.usage())
            .transpose()
    }

    /// What the broker used since `before`, for `operations` of a kind.
    pub fn broker_cost(
        &mut self,
        before: Option<Usage>,
        operations: f64,
        of: &str,
    ) -> anyhow::Result<()> {
        if let (Some(before), Some(after)) = (before, self.broker_usage()?) {
            let cpu = after.cpu_seconds() - before.cpu_seconds();
            self.figure(&format!("broker CPU for {of}"), cpu, "s");
            self.figure(
                &format!("broker CPU per {of}, user"),
                (after.user_seconds - before.user_seconds) / operations * 1e6,
                "us",
            );
            self.figure(
                &format!("broker CPU per {of}, system"),
                (after.system_seconds - before.system_seconds) / operations * 1e6,
                "us",
            );
            self.figure(
                &format!("{of} per broker CPU second"),
                operations / cpu,
                "1/s",
            );
        }
        Ok(())
    }

    /// Errors and wrong answers of a part of the run.
    pub fn take_faults(&mut self, measure: &Measure) {
        for (error, count) in measure.errors() {
            *self.errors.entry(error).or_default() += count;
        }
        let (count, wrongs) = measure.wrongs();
        self.wrong_count += count;
        self.wrongs.extend(wrongs);
    }

    pub fn wrong(&mut self, what: String) {
        self.wrong_count += 1;
        self.wrongs.push(what);
    }

    /// Whether all answers were right.
    pub fn is_right(&self) -> bool {
        self.wrong_count == 0
    }

    /// Adds what the processes used, and prints.
    pub fn print(mut self, as_json: bool) -> anyhow::Result<()> {
        if let Some(usage) = self.broker_usage()? {
            self.figure("broker RSS", usage.rss_kib as f64 / 1024.0, "MiB");
            self.figure(
                "broker RSS, peak",
                usage.peak_rss_kib as f64 / 1024.0,
                "MiB",
            );
            let (_, before) = self.broker.as_ref().expect("usage is that of a process");
            self.figure(
                "broker CPU in all",
                usage.cpu_seconds() - before.cpu_seconds(),
                "s",
            );
        }
        let own = Process::new("self").usage()?;
        self.figure("client CPU in all", own.cpu_seconds(), "s");
        if as_json {
            println!("{}", serde_json::to_string_pretty(&self.to_json())?);
        } else {
            print!("{}", self.to_table());
        }
        Ok(())
    }

    fn to_json(&self) -> Value {
        let settings: Map<String, Value> = self
            .settings
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        let figures: Map<String, Value> = self
            .figures
            .iter()
            .map(|figure| {
                (
                    figure.name.clone(),
                    json!({ "value": figure.value, "unit": figure.unit }),
                )
            })
            .collect();
        let latencies: Map<String, Value> = self
            .latencies
            .iter()
            .map(|(name, histogram)| {
                let mut points: Map<String, Value> = QUANTILES
                    .iter()
                    .map(|(point, quantile)| {
                        (
                            (*point).to_owned(),
                            json!(histogram.value_at_quantile(*quantile)),
                        )
                    })
                    .collect();
                points.insert("max".to_owned(), json!(histogram.max()));
                points.insert("count".to_owned(), json!(histogram.len()));
                (name.clone(), Value::Object(points))
            })
            .collect();
        let errors: Map<String, Value> = self
            .errors
            .iter()
            .map(|((api, code), count)| (format!("{api} {code}"), json!(count)))
            .collect();
        json!({
            "scenario": self.scenario,
            "target": self.target,
            "machine": process::machine(),
            "settings": settings,
            "figures": figures,
            "latencies_us": latencies,
            "errors": errors,
            "wrong_answers": self.wrong_count,
            "wrong_answers_in_words": self.wrongs,
        })
    }

    fn to_table(&self) -> String {
        let mut text = String::new();
        let mut line = |parts: std::fmt::Arguments| {
            text.write_fmt(parts).expect("a string takes all");
            text.push('\n');
        };
        line(format_args!("{} on {}", self.scenario, self.target));
        line(format_args!("  {}", process::machine()));
        let settings: Vec<String> = self
            .settings
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        line(format_args!("  {}", settings.join(" ")));
        for Figure { name, value, unit } in &self.figures {
            line(format_args!("{name:<44} {:>14} {unit}", number(*value)));
        }
        if !self.latencies.is_empty() {
            line(format_args!(
                "{:<24} {:>10} {:>10} {:>10} {:>10} {:>10}",
                "ms", "count", "p50", "p99", "p99.9", "max"
            ));
        }
        for (name, histogram) in &self.latencies {
            let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
            line(format_args!(
                "{name:<24} {:>10} {:>10.3} {:>10.3} {:>10.3} {:>10.3}",
                histogram.len(),
                at(0.5),
                at(0.99),
                at(0.999),
                histogram.max() as f64 / 1e3
            ));
        }
        for ((api, code), count) in &self.errors {
            line(format_args!("error {api} {code}: {count}"));
        }
        for wrong in &self.wrongs {
            line(format_args!("WRONG: {wrong}"));
        }
        if self.wrong_count > self.wrongs.len() as u64 {
            line(format_args!("WRONG: {} in all", self.wrong_count));
        }
        text
    }
}

/// As many digits as mean something.
fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}
