//! A consumer in a process of its own. It writes what it is assigned and what it read to stdout, always before it commits,
//! and leaves when a line comes in on stdin. When stdin ends, its parent is gone and it goes too.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::message::Message;

const SERVERS: &str = "KAAS_TEST_CONSUMER_SERVERS";

/// Records between two commits.
const COMMIT_EVERY: usize = 500;

/// A consumer to be.
pub struct Task {
    servers: String,
}

impl Task {
    pub fn of_environment() -> Option<Task> {
        let servers = std::env::var(SERVERS).ok()?;
        Some(Task { servers })
    }

    /// The command that runs it.
    pub fn command(servers: &str) -> std::process::Command {
        let itself = std::env::current_exe().expect("an executable knows where it is");
        let mut command = std::process::Command::new(itself);
        command.env(SERVERS, servers);
        command
    }

    pub fn run(self) {
        let consumer: BaseConsumer<CommitsOnRevoke> = ClientConfig::new()
            .set("bootstrap.servers", &self.servers)
            .set("group.id", "job")
            .set("enable.auto.commit", "false")
            .set("auto.offset.reset", "earliest")
            .set("session.timeout.ms", "2000")
            .set("heartbeat.interval.ms", "300")
            .create_with_context(CommitsOnRevoke)
            .expect("a consumer");
        consumer.subscribe(&[crate::TOPIC]).expect("it subscribes");
        let leaving = Arc::new(AtomicBool::new(false));
        listen(Arc::clone(&leaving));
        let mut read = 0;
        let mut assigned = usize::MAX;
        while !leaving.load(Ordering::Relaxed) {
            let message = consumer.poll(Duration::from_millis(50));
            if let Some(Ok(message)) = &message {
                say(&format!(
                    "read {} {}",
                    message.partition(),
                    message.offset()
                ));
                read += 1;
            }
            if read >= COMMIT_EVERY || (message.is_none() && read > 0) {
                // A commit that fails, as in a rebalance, is made up for by the next; records may then be read twice.
                if consumer.commit_consumer_state(CommitMode::Sync).is_ok() {
                    read = 0;
                }
            }
            let count = consumer
                .assignment()
                .map_or(0, |assignment| assignment.count());
            if count != assigned {
                assigned = count;
                say(&format!("assigned {count}"));
            }
        }
        // As above; nothing is committed if nothing was read.
        let _ = consumer.commit_consumer_state(CommitMode::Sync);
    }
}

fn say(line: &str) {
    // The parent reads until this process ends; if it is gone, so are we soon.
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn listen(leaving: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut line = String::new();
        match std::io::stdin().read_line(&mut line) {
            Ok(1..) => leaving.store(true, Ordering::Relaxed),
            _ => std::process::exit(1),
        }
    });
}

/// What was read is committed before the partition goes to another.
struct CommitsOnRevoke;

impl ClientContext for CommitsOnRevoke {}

impl ConsumerContext for CommitsOnRevoke {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Revoke(_) = rebalance {
            // Fails if nothing was read or the member was removed: then records are read twice.
            let _ = consumer.commit_consumer_state(CommitMode::Sync);
        }
    }
}
