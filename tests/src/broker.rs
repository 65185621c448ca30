//! A broker process of one's own: started, signalled, killed, started again on its port and volume. It is stopped by its
//! id when the value goes away, in a panic too.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::connection::Connection;
use crate::log::Log;
use crate::time::{SOON, eventually, pause};

/// Lines of a log that are shown when a test fails.
const SHOWN: usize = 80;

/// How often a start on a former port is tried: a client of another test may have been given it meanwhile.
const PORT_TRIES: usize = 20;

/// How to start a broker. By default: node 0, free ports, an empty temporary volume, defaults of the program.
#[derive(Clone)]
pub struct Setup {
    program: PathBuf,
    volume: Option<PathBuf>,
    temporary: Option<Arc<TempDir>>,
    node_id: i32,
    listen: String,
    sets: Vec<String>,
}

/// A process that ended on its own.
pub struct Ended {
    pub status: ExitStatus,
    pub log: Log,
}

impl Setup {
    pub fn new(program: &str) -> Setup {
        Setup {
            program: PathBuf::from(program),
            volume: None,
            temporary: None,
            node_id: 0,
            listen: "127.0.0.1:0".to_owned(),
            sets: Vec::new(),
        }
    }

    pub fn set(mut self, key: &str, value: impl ToString) -> Setup {
        self.sets.push(format!("{key}={}", value.to_string()));
        self
    }

    pub fn node_id(mut self, node_id: i32) -> Setup {
        self.node_id = node_id;
        self
    }

    pub fn listen(mut self, address: SocketAddr) -> Setup {
        self.listen = address.to_string();
        self
    }

    /// The volume is `path`, which the caller keeps.
    pub fn volume(mut self, path: &Path) -> Setup {
        self.volume = Some(path.to_owned());
        self
    }

    /// On the volume of `other`, which outlives this process.
    pub fn on_volume_of(mut self, other: &Broker) -> Setup {
        self.temporary = other.setup.temporary.clone();
        self.volume = other.setup.volume.clone();
        self
    }

    /// Starts it and waits until it serves.
    pub fn start(mut self) -> Broker {
        self.give_volume();
        let launched = self.launch();
        launched.serving(self)
    }

    /// Starts it and waits until it has ended on its own.
    pub fn run_to_end(mut self) -> Ended {
        self.give_volume();
        let mut launched = self.launch();
        let status = eventually(SOON, "the process ends", || {
            launched
                .child
                .try_wait()
                .expect("a child can be waited for")
        });
        launched.log.wait_for_end(SOON);
        Ended {
            status,
            log: launched.log.clone(),
        }
    }

    fn give_volume(&mut self) {
        if self.volume.is_none() {
            let temporary = TempDir::with_prefix("kaas-test-").expect("a temporary directory");
            self.volume = Some(temporary.path().to_owned());
            self.temporary = Some(Arc::new(temporary));
        }
    }

    fn launch(&self) -> Process {
        let volume = self.volume.as_ref().expect("a volume was given");
        let mut command = Command::new(&self.program);
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("KAAS_") {
                command.env_remove(variable);
            }
        }
        command
            .env_remove("RUST_LOG")
            .args(["--data-dir", volume.to_str().expect("the path is text")])
            .args(["--node-id", &self.node_id.to_string()])
            .args(["--listen", &self.listen])
            .args(["--admin", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for set in &self.sets {
            command.args(["--set", set]);
        }
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("start {}: {error}", self.program.display()));
        let log = Log::default();
        log.follow(child.stdout.take().expect("it is piped"));
        log.follow(child.stderr.take().expect("it is piped"));
        Process { child, log }
    }
}

/// A process that is killed when the value goes away.
struct Process {
    child: Child,
    log: Log,
}

impl Process {
    fn serving(self, setup: Setup) -> Broker {
        let Some(ready) = self.log.wait_for(" ready on ", SOON) else {
            panic!("the broker does not get ready");
        };
        let address = ready
            .rsplit(' ')
            .next()
            .and_then(|address| address.parse().ok())
            .expect("the ready line ends with the address");
        Broker {
            process: Some(self),
            setup,
            address,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails only if it has ended already, and then there is nothing to wait for either.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let lines = self.log.lines();
            let from = lines.len().saturating_sub(SHOWN);
            eprintln!("--- log of process {}:", self.child.id());
            for line in &lines[from..] {
                eprintln!("{line}");
            }
        }
    }
}

/// A broker, running or not.
pub struct Broker {
    process: Option<Process>,
    setup: Setup,
    pub address: SocketAddr,
}

impl Broker {
    fn process(&self) -> &Process {
        self.process.as_ref().expect("the broker runs")
    }

    pub fn connect(&self) -> Connection {
        Connection::open(self.address)
    }

    pub fn pid(&self) -> u32 {
        self.process().child.id()
    }

    pub fn log(&self) -> Log {
        self.process().log.clone()
    }

    /// Where the volume is.
    pub fn volume(&self) -> &Path {
        self.setup.volume.as_ref().expect("a volume was given")
    }

    /// The address of the admin port.
    pub fn admin(&self) -> SocketAddr {
        let line = self
            .process()
            .log
            .wait_for("admin port", SOON)
            .expect("the admin port is logged");
        line.split_whitespace()
            .find_map(|word| word.strip_prefix("address="))
            .and_then(|address| address.parse().ok())
            .expect("it is logged with its address")
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a child has an id"), signal).expect("the child can be signalled");
    }

    /// SIGKILL; returns when the process is gone.
    pub fn kill(&mut self) {
        let mut process = self.process.take().expect("the broker runs");
        process.child.kill().expect("a child can be killed");
        process.child.wait().expect("a child can be waited for");
    }

    /// Waits until the process has ended on its own.
    pub fn wait(&mut self, limit: Duration) -> Ended {
        let process = self.process.as_mut().expect("the broker runs");
        let status = eventually(limit, "the broker ends", || {
            process.child.try_wait().expect("a child can be waited for")
        });
        let process = self.process.take().expect("the broker ran");
        process.log.wait_for_end(SOON);
        Ended {
            status,
            log: process.log.clone(),
        }
    }

    /// SIGTERM, and waits until the process has ended.
    pub fn stop(&mut self) -> Ended {
        self.signal(Signal::TERM);
        self.wait(SOON)
    }

    /// Starts it again on its port and volume; it must not run.
    pub fn start_again(&mut self) {
        assert!(self.process.is_none(), "the broker still runs");
        self.setup.listen = self.address.to_string();
        for _ in 0..PORT_TRIES {
            let process = self.setup.launch();
            if process.log.wait_for(" ready on ", SOON).is_some() {
                self.process = Some(process);
                return;
            }
            let is_taken = process.log.count("cannot listen on") > 0;
            assert!(is_taken, "the broker does not start again");
            pause(Duration::from_millis(50));
        }
        panic!("port {} stays taken", self.address.port());
    }

    /// The arguments `--set` of the next start.
    pub fn set(&mut self, key: &str, value: impl ToString) {
        self.setup.sets.push(format!("{key}={}", value.to_string()));
    }
}
