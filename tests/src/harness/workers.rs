//! The test's end of the line to its stub workers: what they saw, and gates to let them go on.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream, unix::OwnedWriteHalf},
    sync::watch,
};

use super::soon;

/// All stub workers of a test.
#[derive(Debug)]
pub struct Workers {
    path: PathBuf,
    shared: Arc<Shared>,
    count: watch::Receiver<usize>,
}

#[derive(Debug)]
struct Shared {
    events: Mutex<Vec<Value>>,
    lines: tokio::sync::Mutex<Vec<(u64, OwnedWriteHalf)>>,
    tell: watch::Sender<usize>,
}

impl Workers {
    /// Listens for workers in that folder.
    pub fn listen(directory: &Path) -> Self {
        let path = directory.join("report");
        let listener = UnixListener::bind(&path).expect("bind the report socket");
        let (tell, count) = watch::channel(0);
        let shared =
            Arc::new(Shared { events: Mutex::default(), lines: tokio::sync::Mutex::default(), tell });
        let accepting = shared.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(listen_to(stream, accepting.clone()));
            }
        });
        Self { path, shared, count }
    }

    /// What a worker takes as `--report`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Everything that was reported so far.
    pub fn events(&self) -> Vec<Value> {
        self.shared.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The first such event, past or to come.
    pub async fn event(&self, name: &str, matches: impl Fn(&Value) -> bool) -> Value {
        self.events_until(name, 1, matches).await.remove(0)
    }

    /// The first such event about the request that carries this `X-Tag`.
    pub async fn tagged(&self, name: &str, tag: &str) -> Value {
        self.event(name, |event| event["tag"] == tag).await
    }

    /// At least `n` such events.
    pub async fn events_until(&self, name: &str, n: usize, matches: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut count = self.count.clone();
        let wait = async {
            loop {
                count.borrow_and_update();
                let found = self.count_of(name, &matches);
                if found.len() >= n {
                    return found;
                }
                count.changed().await.expect("the listener lives as long as this");
            }
        };
        match tokio::time::timeout(super::DEADLINE, wait).await {
            Ok(found) => found,
            Err(_) => panic!("no {n} events {name}; there were:\n{}", self.describe()),
        }
    }

    /// Such events so far.
    pub fn count_of(&self, name: &str, matches: impl Fn(&Value) -> bool) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event"] == name && matches(event)).collect()
    }

    /// The PIDs that have ever been reported: workers, and strays that they left.
    pub fn pids(&self) -> Vec<u32> {
        let pid = |event: &Value| event["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        self.events().iter().filter_map(pid).collect()
    }

    /// The PID of the newest process of a slot.
    pub fn pid(&self, slot: u16) -> u32 {
        let started = self.count_of("started", |event| event["slot"] == slot);
        let newest = started.last().and_then(|event| event["pid"].as_u64()).expect("a worker of that slot");
        u32::try_from(newest).expect("a PID")
    }

    /// Lets one waiter pass the gate in every worker, now or later.
    pub async fn open(&self, gate: &str) {
        self.order(None, json!({"open": gate, "times": 1})).await;
    }

    /// The same for ever.
    pub async fn open_wide(&self, gate: &str) {
        self.order(None, json!({"open": gate, "times": 1_000_000})).await;
    }

    /// The same for ever, in the workers of one slot.
    pub async fn open_wide_on(&self, slot: u64, gate: &str) {
        self.order(Some(slot), json!({"open": gate, "times": 1_000_000})).await;
    }

    async fn order(&self, slot: Option<u64>, order: Value) {
        let text = format!("{order}\n");
        let mut lines = self.shared.lines.lock().await;
        for (_, line) in lines.iter_mut().filter(|(of, _)| slot.is_none_or(|slot| slot == *of)) {
            // A worker that has exited needs no gates.
            let _ = soon("a worker to take an order", line.write_all(text.as_bytes())).await;
        }
    }

    /// The events as text, for a failed test.
    pub fn describe(&self) -> String {
        self.events().iter().map(|event| format!("{event}\n")).collect()
    }
}

async fn listen_to(stream: UnixStream, shared: Arc<Shared>) {
    let (read, write) = stream.into_split();
    let mut write = Some(write);
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let event: Value = serde_json::from_str(&line).expect("an event in JSON");
        if let Some(write) = write.take() {
            shared.lines.lock().await.push((event["slot"].as_u64().unwrap_or(0), write));
        }
        let mut events = shared.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.push(event);
        shared.tell.send_replace(events.len());
    }
}
