//! The broker's process: arguments, configuration, start, signals.

mod cluster;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use kaas_broker::config::settings::Settings;
use lexopt::{Arg, ValueExt};
use rustix::process::{Resource, getrlimit, setrlimit};
use tracing::{error, info, warn};
use tracing_subscriber::EnvFilter;

const USAGE: &str = "\
kaas, an Apache-Kafka-wire-compatible broker on a shared volume

Usage: kaas [--data-dir DIR] [--node-id N] [--listen HOST:PORT] [--advertise HOST:PORT] [--admin HOST:PORT]
            [--config FILE.properties] [--set KEY=VALUE]...

  --data-dir DIR          the volume (KAAS_DATA_DIR; ./data)
  --node-id N             this broker's id (KAAS_NODE_ID; 0)
  --listen HOST:PORT      where clients connect; port 0 takes a free one (KAAS_LISTEN; 127.0.0.1:9092)
  --advertise HOST:PORT   the address clients are told (KAAS_ADVERTISE; the listen address)
  --admin HOST:PORT       health, metrics and assignment over HTTP (KAAS_ADMIN; 127.0.0.1:9644)
  --config FILE           a properties file with Kafka's keys
  --set KEY=VALUE         one key; any number of times
  --version, --help

What is set later in this list wins: the file, --set, the environment, the arguments. Keys: docs/configs.md.
RUST_LOG sets what is logged (info).";

/// An argument, its environment twin, and the key it sets.
const TWINS: [(&str, &str, &str); 5] = [
    ("data-dir", "KAAS_DATA_DIR", "log.dirs"),
    ("node-id", "KAAS_NODE_ID", "node.id"),
    ("listen", "KAAS_LISTEN", "listeners"),
    ("advertise", "KAAS_ADVERTISE", "advertised.listeners"),
    ("admin", "KAAS_ADMIN", "kaas.admin.listener"),
];

fn main() -> ExitCode {
    let settings = match settings() {
        Ok(Some(settings)) => settings,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kaas: {error:#}");
            return ExitCode::from(2);
        }
    };
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(
            EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info")),
        )
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .init();
    if !settings.ignored().is_empty() {
        warn!(keys = ?settings.ignored(), "keys of Kafka that have no effect here were set");
    }
    raise_file_limit();
    match run(settings) {
        Ok(()) => {
            info!("stopped");
            ExitCode::SUCCESS
        }
        Err(error) => {
            error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Each connection and each partition that is written holds a descriptor: as many as this user may have are taken.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        warn!(%error, "the limit of open files stays as it is");
    }
}

fn run(settings: Settings) -> anyhow::Result<()> {
    let threads = match settings.resolve()?.kaas_worker_threads {
        0 => std::thread::available_parallelism().map_or(2, usize::from),
        threads => threads as usize,
    };
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("kaas")
        .enable_all()
        .build()
        .context("cannot start the runtime")?
        .block_on(cluster::run(settings))
}

/// What the user set, or `None` when all was said by printing.
fn settings() -> anyhow::Result<Option<Settings>> {
    let mut files = Vec::new();
    let mut sets = Vec::new();
    let mut arguments = Vec::new();
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("help") | Arg::Short('h') => {
                println!("{USAGE}");
                return Ok(None);
            }
            Arg::Long("version") | Arg::Short('V') => {
                println!("kaas {}", env!("CARGO_PKG_VERSION"));
                return Ok(None);
            }
            Arg::Long("config") => files.push(parser.value()?.string()?),
            Arg::Long("set") => sets.push(parser.value()?.string()?),
            Arg::Long(name) => {
                let Some((name, _, key)) = TWINS.iter().find(|(twin, _, _)| *twin == name) else {
                    bail!("there is no argument --{name}\n\n{USAGE}");
                };
                arguments.push((*key, format!("--{name}"), parser.value()?.string()?));
            }
            Arg::Short(name) => bail!("there is no argument -{name}\n\n{USAGE}"),
            Arg::Value(value) => bail!("{value:?} is not an argument\n\n{USAGE}"),
        }
    }
    let mut settings = Settings::default();
    for file in files {
        let text = cluster::read_properties(Path::new(&file))
            .with_context(|| format!("cannot read {file}"))?;
        settings.add_file(&file, &text)?;
    }
    for set in sets {
        settings.add_argument(&set)?;
    }
    for (_, variable, key) in TWINS {
        match std::env::var(variable) {
            Ok(value) => settings.add(key, &as_setting(key, value), variable)?,
            Err(std::env::VarError::NotPresent) => {}
            Err(error) => bail!("{variable}: {error}"),
        }
    }
    for (key, origin, value) in arguments {
        settings.add(key, &as_setting(key, value), &origin)?;
    }
    settings.resolve()?;
    Ok(Some(settings))
}

/// Kafka's listener keys carry a protocol, our arguments do not.
fn as_setting(key: &str, value: String) -> String {
    match key {
        "listeners" | "advertised.listeners" if !value.contains("://") => {
            format!("PLAINTEXT://{value}")
        }
        _ => value,
    }
}
