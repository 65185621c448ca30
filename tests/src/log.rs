//! What a process wrote to stdout and stderr, line by line, as it comes.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::time::Stopwatch;

/// The lines of one process so far. Clones are the same log.
#[derive(Clone, Default)]
pub struct Log {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lines: Vec<String>,
    open: usize,
}

impl Log {
    /// Reads `source` to its end on a thread of its own.
    pub fn follow(&self, source: impl Read + Send + 'static) {
        let shared = Arc::clone(&self.shared);
        shared.state.lock().expect("no reader panics").open += 1;
        std::thread::spawn(move || {
            let mut source = BufReader::new(source);
            let mut line = Vec::new();
            // An error is the end of the process, as the end of its output is.
            while let Ok(1..) = source.read_until(b'\n', &mut line) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                shared
                    .state
                    .lock()
                    .expect("no reader panics")
                    .lines
                    .push(text);
                shared.changed.notify_all();
            }
            shared.state.lock().expect("no reader panics").open -= 1;
            shared.changed.notify_all();
        });
    }

    /// The first line that contains `text`; `None` if the output ends or `limit` passes before.
    pub fn wait_for(&self, text: &str, limit: Duration) -> Option<String> {
        let watch = Stopwatch::start();
        let mut state = self.shared.state.lock().expect("no reader panics");
        let mut seen = 0;
        loop {
            let found = state.lines[seen..].iter().find(|line| line.contains(text));
            if let Some(line) = found {
                return Some(line.clone());
            }
            seen = state.lines.len();
            if state.open == 0 {
                return None;
            }
            let left = watch.left_of(limit)?;
            state = self
                .shared
                .changed
                .wait_timeout(state, left)
                .expect("no reader panics")
                .0;
        }
    }

    /// Waits until the output has ended.
    pub(crate) fn wait_for_end(&self, limit: Duration) {
        let watch = Stopwatch::start();
        let mut state = self.shared.state.lock().expect("no reader panics");
        while state.open > 0 {
            let Some(left) = watch.left_of(limit) else {
                return;
            };
            state = self
                .shared
                .changed
                .wait_timeout(state, left)
                .expect("no reader panics")
                .0;
        }
    }

    pub fn lines(&self) -> Vec<String> {
        let state = self.shared.state.lock().expect("no reader panics");
        state.lines.clone()
    }

    /// The lines behind the first `seen`.
    pub fn lines_after(&self, seen: usize) -> Vec<String> {
        let state = self.shared.state.lock().expect("no reader panics");
        state.lines[seen..].to_vec()
    }

    /// How many lines contain `text`.
    pub fn count(&self, text: &str) -> usize {
        let state = self.shared.state.lock().expect("no reader panics");
        state
            .lines
            .iter()
            .filter(|line| line.contains(text))
            .count()
    }

    pub fn text(&self) -> String {
        self.lines().join("\n")
    }
}
