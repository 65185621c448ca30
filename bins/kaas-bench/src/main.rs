//! Drives a Kafka-compatible broker over the wire from one thread of one process, measures, and checks the answers.

mod arguments;
mod client;
mod clock;
mod cluster;
mod load;
mod measure;
mod member;
mod offsets;
mod process;
mod report;
mod scenarios;

use std::process::ExitCode;
use std::rc::Rc;

use anyhow::bail;
use tokio::task::LocalSet;

use crate::arguments::Arguments;
use crate::cluster::Cluster;
use crate::measure::Measure;
use crate::process::Process;
use crate::report::Report;

const USAGE: &str = "\
kaas-bench, a load generator for Kafka-compatible brokers

Usage: kaas-bench SCENARIO --bootstrap HOST:PORT [--pid BROKER] [--json] [--NAME VALUE]...

  commit         durable commits: --groups 100 --partitions 1 --connections 100 --in-flight 100 --rate 0
  steady         heartbeats of stable groups: --groups 100 --members 10 --rate 0
  join-storm     groups from nothing to stable: --groups 1 --members 1000 --hold 0
  rolling        members leave and join one by one: --members 20 --steps 20 --heartbeat-ms 100
  fetch-offsets  committed offsets read: --groups 1000 --partitions 12 --connections 100 --in-flight 100 --rate 0
                 --groups-per-request 1
  list-describe  an admin tool at many groups: --groups 10000 --rounds 10
  failover       members while a broker dies, of which a line on stdin tells: --groups 100 --interval-ms 100
                 --patience 60 --others HOST:PORT,...
  served         from now until the broker answers, and serves these groups: --groups 0 --prefix bench-list --patience 60
  produce-fetch  records written, then read: --megabytes 2048 --partitions 12 --connections 12 --in-flight 60 --acks -1
                 --batch-bytes 65536 --record-bytes 1024 --compression none --consumers 4 --fetch-bytes 1048576 --fetch-rounds 1

A rate of 0 is a closed loop. Those that run for a time take --seconds 10 --warmup 1.
Groups and topics are named after --prefix, where there are any.
--pid tells what the broker's process used, if it runs on this machine. The report goes to stdout, progress to stderr.
The exit code is 1 when an answer of the broker was wrong, 2 when the run could not be made.";

/// What every scenario is given and gives back.
pub struct Run {
    pub arguments: Arguments,
    pub measure: Rc<Measure>,
    pub report: Report,
    bootstrap: String,
}

impl Run {
    /// Connects, once the scenario has taken its settings.
    pub async fn begin(&mut self) -> anyhow::Result<Cluster> {
        self.report.settings = self.arguments.finish()?;
        let mut cluster = Cluster::connect(&self.bootstrap).await?;
        self.report.target = cluster.describe().await?;
        Ok(cluster)
    }
}

fn main() -> ExitCode {
    match measured() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("kaas-bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether all answers were right.
fn measured() -> anyhow::Result<bool> {
    let Some(mut arguments) = Arguments::parse()? else {
        println!("{USAGE}");
        return Ok(true);
    };
    process::raise_descriptor_limit()?;
    let bootstrap = arguments.take_required("bootstrap")?;
    let broker = arguments
        .take_optional::<u32>("pid")?
        .map(|id| Process::new(&id.to_string()));
    let as_json = arguments.take_optional::<bool>("json")?.unwrap_or(false);
    let report = Report::new(arguments.scenario.clone(), broker)?;
    let run = Run {
        arguments,
        measure: Measure::new(),
        report,
        bootstrap,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut run = LocalSet::new().block_on(&runtime, scenario(run))?;
    run.report.take_faults(&run.measure);
    let right = run.report.is_right();
    run.report.print(as_json)?;
    Ok(right)
}

async fn scenario(run: Run) -> anyhow::Result<Run> {
    match run.arguments.scenario.as_str() {
        "commit" => scenarios::commit::run(run).await,
        "failover" => scenarios::failover::run(run).await,
        "fetch-offsets" => scenarios::fetch_offsets::run(run).await,
        "join-storm" => scenarios::join_storm::run(run).await,
        "list-describe" => scenarios::list_describe::run(run).await,
        "rolling" => scenarios::rolling::run(run).await,
        "served" => scenarios::served::run(run).await,
        "steady" => scenarios::steady::run(run).await,
        "produce-fetch" => scenarios::produce_fetch::run(run).await,
        other => bail!("there is no scenario {other}; --help lists them"),
    }
}
