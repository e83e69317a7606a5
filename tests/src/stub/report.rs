//! The line to the test: events out, gates in, both JSON, one a line, over a Unix socket on which the test listens.
//!
//! A gate is a named count: `{"open": "name", "times": n}` lets `n` waiters pass, now or later.

use std::{
    collections::HashMap,
    io::Write,
    os::unix::net::UnixStream as StdStream,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::UnixStream,
    sync::Semaphore,
};

use super::Options;

/// A handle on the line; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    line: Option<Arc<Mutex<StdStream>>>,
    gates: Arc<Mutex<HashMap<String, Arc<Semaphore>>>>,
    slot: u16,
    generation: u32,
}

impl Reporter {
    /// Connects, if there is a test to report to, and begins to listen for gates.
    pub(super) fn connect(options: &Options) -> Self {
        let gates: Arc<Mutex<HashMap<_, _>>> = Arc::default();
        let line = options.report.as_ref().and_then(|path| StdStream::connect(path).ok());
        if let Some(line) = &line {
            let reader = line.try_clone().expect("dup");
            reader.set_nonblocking(true).expect("non-blocking");
            let reader = UnixStream::from_std(reader).expect("register");
            tokio::spawn(read_gates(reader, gates.clone()));
        }
        let line = line.map(|line| Arc::new(Mutex::new(line)));
        Self { line, gates, slot: options.slot, generation: options.generation }
    }

    /// Tells the test that something happened. A test that is gone is not an error.
    pub(super) fn event(&self, name: &str, fields: &[(&str, Value)]) {
        let Some(line) = &self.line else { return };
        let mut event = json!({"event": name, "slot": self.slot, "generation": self.generation});
        for (key, value) in fields {
            event[*key] = value.clone();
        }
        let text = format!("{event}\n");
        let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = text.as_bytes();
        // The descriptor is shared with the non-blocking reader.
        while !rest.is_empty() {
            match line.write(rest) {
                Ok(n) => rest = &rest[n..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(_) => return,
            }
        }
    }

    /// Waits until the test opens the gate once for this caller.
    pub(super) async fn gate(&self, name: &str) {
        let semaphore = gate_of(&self.gates, name);
        semaphore.acquire().await.expect("never closed").forget();
    }

    /// Whether the gate would let a caller pass now; takes nothing.
    pub(super) fn is_open(&self, name: &str) -> bool {
        gate_of(&self.gates, name).available_permits() > 0
    }
}

fn gate_of(gates: &Mutex<HashMap<String, Arc<Semaphore>>>, name: &str) -> Arc<Semaphore> {
    let mut gates = gates.lock().unwrap_or_else(PoisonError::into_inner);
    gates.entry(name.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(0))).clone()
}

async fn read_gates(line: UnixStream, gates: Arc<Mutex<HashMap<String, Arc<Semaphore>>>>) {
    let mut lines = BufReader::new(line).lines();
    while let Ok(Some(text)) = lines.next_line().await {
        let Ok(order) = serde_json::from_str::<Value>(&text) else { continue };
        if let Some(name) = order["open"].as_str() {
            let times = order["times"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
            gate_of(&gates, name).add_permits(times);
        }
    }
}
