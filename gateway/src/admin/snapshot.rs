//! What the gateway knows of itself at one moment, read when somebody asks: the hot path updates no gauges.

use std::{collections::BTreeMap, str::FromStr};

use serde::{Deserialize, Serialize};

/// A slot's state.
pub use crate::workers::SlotState as WorkerState;

/// Reads the gateway's state. Called for every request to the admin address, so it should not wait.
pub trait Snapshot: Send + Sync + 'static {
    /// The gateway itself.
    fn gateway(&self) -> GatewaySnapshot;
    /// Every server with its workers, in the order of the config, without `memory_bytes`.
    fn servers(&self) -> Vec<ServerSnapshot>;
    /// The same with `memory_bytes`, which reads `/proc`.
    fn measured_servers(&self) -> Vec<ServerSnapshot>;
    /// The sessions that `query` asks for, at most `query.limit`, with whole IDs.
    fn sessions(&self, query: &SessionQuery) -> Vec<SessionSnapshot>;
}

/// The gateway itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewaySnapshot {
    /// Its version.
    pub version: String,
    /// Its process ID.
    pub pid: u32,
    /// Seconds since it started.
    pub uptime_seconds: f64,
    /// It was told to stop, and finishes what is in flight.
    pub stopping: bool,
    /// Bytes of request bodies in memory.
    pub buffered_bytes: u64,
}

/// One server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerSnapshot {
    /// Its name in the config.
    pub name: String,
    /// Its kind: `resources`, `agent`, `environment`, `model`, `openenv`, `ors`, `mcp`, `generic`.
    pub kind: String,
    /// Its front address.
    pub address: String,
    /// Its session cookie's name, once it is known: from the config, from the server's own word, or learned.
    pub session_cookie: Option<String>,
    /// Which of a resources server's two protocols it speaks: `seed_verify` or `gymnasium`, once it or the config says so.
    #[serde(default)]
    pub protocol: Option<String>,
    /// Routes that start a session, beside the kind's own.
    pub session_start_routes: Vec<String>,
    /// Routes that end a session, beside the kind's own.
    pub session_end_routes: Vec<String>,
    /// Whether a session's requests go to its owner; else every request is balanced.
    pub routes_sessions_to_owner: bool,
    /// Requests that wait for a ready worker, or for room at one.
    pub waiting: u64,
    /// Connections of clients.
    pub client_connections: u64,
    /// Sessions lost since the start: by their owner's exit, or expired.
    pub sessions_lost: u64,
    /// Of those: open sessions that were idle for too long.
    pub sessions_expired: u64,
    /// Lost sessions that are still answered with 410.
    pub lost_remembered: u64,
    /// Drains since the start that took `drain_timeout_seconds`, with something left.
    pub drains_cut: u64,
    /// Of `sessions_lost`: those that were left then.
    pub sessions_lost_to_drains: u64,
    /// The fewest and the most workers, if their number is not fixed.
    pub workers_range: Option<(u16, u16)>,
    /// How many sessions a worker is to have before another is started.
    pub target_sessions_per_worker: Option<u64>,
    /// How often the number of workers was changed by what there was to do: `grown`, `shrunk`, in workers.
    pub scaled: BTreeMap<String, u64>,
    /// Its limits, by key; null: none.
    pub limits: BTreeMap<String, Option<f64>>,
    /// It was taken out of the config: its workers drain, then its front is closed.
    pub removed: bool,
    /// A reload has added it, and none of its workers has been ready yet.
    pub joining: bool,
    /// The newest rolling restart.
    pub roll: Option<RollSnapshot>,
    /// How many rolling restarts ended, by how: `done`, `failed`, `called_off`.
    pub rolls_ended: BTreeMap<String, u64>,
    /// One for each slot.
    pub workers: Vec<WorkerSnapshot>,
}

/// A rolling restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RollSnapshot {
    /// Counts the server's rolling restarts, from 1.
    pub number: u64,
    /// Why it was begun.
    pub reason: String,
    /// `rolling`, `done`, `failed` or `called_off`.
    pub state: String,
    /// The slots that it goes through.
    pub slots: Vec<u16>,
    /// Those that have a new worker.
    pub replaced: Vec<u16>,
    /// Those that were drained by hand meanwhile, and stay empty.
    pub skipped: Vec<u16>,
    /// Why it failed.
    pub failure: Option<String>,
    /// When it was begun: seconds since 1970.
    pub started_unix: u64,
    /// When it was over.
    pub ended_unix: Option<u64>,
}

impl ServerSnapshot {
    /// How many workers take requests.
    pub fn ready(&self) -> usize {
        self.workers.iter().filter(|worker| worker.state == WorkerState::Ready).count()
    }

    /// How many workers keep their sessions and get no new ones.
    pub fn draining(&self) -> u64 {
        let states = |worker: &WorkerSnapshot| {
            let others = worker.others.iter().map(|other| other.state);
            others.chain([worker.state]).filter(|state| *state == WorkerState::Draining).count()
        };
        self.workers.iter().map(states).sum::<usize>() as u64
    }
}

/// A worker's drain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DrainSnapshot {
    /// Why it drains.
    pub reason: String,
    /// For how long it has, in seconds.
    pub since_seconds: f64,
    /// In how many seconds what is left is lost; null: never.
    pub left_seconds: Option<f64>,
}

/// A slot's worker that is not the one which the slot goes by: it is to take over, or drains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherSnapshot {
    /// Which of the slot's processes.
    pub generation: u32,
    /// `starting` or `draining`.
    pub state: WorkerState,
    /// Its process ID, while it runs.
    pub pid: Option<i32>,
    /// Where it listens.
    pub address: Option<String>,
    /// When it was started: seconds since 1970.
    pub started_unix: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// The sessions that it owns.
    pub sessions: SessionCounts,
    /// Requests that wait for room at it.
    pub queued: u64,
    /// Resident memory of its process tree.
    pub memory_bytes: Option<u64>,
    /// Its drain.
    pub drain: Option<DrainSnapshot>,
}

/// A slot and the worker that it goes by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerSnapshot {
    /// The slot, from 0.
    pub slot: u16,
    /// The process that the slot goes by, from 1; 0 before the first. The newest, but for one that is to take over.
    pub generation: u32,
    /// What it is doing.
    pub state: WorkerState,
    /// Its process ID, while it runs.
    pub pid: Option<i32>,
    /// Where it listens, while it is ready.
    pub address: Option<String>,
    /// Processes started after the first one.
    pub restarts: u64,
    /// Processes that the kernel killed because the memory of their cgroup had run out.
    #[serde(default)]
    pub oom_kills: u64,
    /// When that process was started: seconds since 1970; 0 before the first.
    pub started_unix: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Requests that wait for room at it.
    pub queued: u64,
    /// Requests that it has answered.
    pub requests: u64,
    /// The sessions that it owns.
    pub sessions: SessionCounts,
    /// How many sessions it has had, those that are over among them.
    pub sessions_had: u64,
    /// The limit that it is over, for which it is to be replaced.
    pub over_limit: Option<String>,
    /// Resident memory of its process tree, while it runs; what processes share counts for each of them.
    pub memory_bytes: Option<u64>,
    /// How often the slot's workers were replaced for a limit, by cause.
    pub replacements: BTreeMap<String, u64>,
    /// How often the slot came into each state.
    pub transitions: BTreeMap<String, u64>,
    /// Processes in a row that did not become ready, or died before a minute of health.
    pub failures_in_a_row: u32,
    /// How the process before ended, or why it did not start.
    pub last_exit: Option<String>,
    /// The slot's last failure; one that was overcome stays.
    pub last_failure: Option<FailureSnapshot>,
    /// Its drain.
    pub drain: Option<DrainSnapshot>,
    /// The slot's other living workers. What is counted above does not count theirs.
    pub others: Vec<OtherSnapshot>,
}

impl WorkerSnapshot {
    /// The sum over all living workers of the slot.
    pub fn sum(&self, own: u64, others: fn(&OtherSnapshot) -> u64) -> u64 {
        own + self.others.iter().map(others).sum::<u64>()
    }
}

/// A slot's last failure: of a start, or of a ready worker that died.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FailureSnapshot {
    /// The process that failed.
    pub generation: u32,
    /// When it was seen: seconds since 1970.
    pub at_unix: u64,
    /// How far it had come: `spawn`, `exec`, `listen`, `probe`, or `ready`.
    pub phase: String,
    /// Seconds in each phase that it came to.
    pub seconds: BTreeMap<String, f64>,
    /// What was seen: of an exit its status or signal.
    pub reason: String,
    /// How the process ended, if that was the failure: its exit status or signal.
    pub exit: Option<String>,
    /// The command and its folder; absent where a ready worker died.
    pub command: Option<String>,
    /// The last lines of its output.
    pub output: Vec<String>,
    /// What to try.
    pub advice: String,
}

/// A worker's sessions by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCounts {
    /// Named by requests, not opened by a start.
    pub claimed: u64,
    /// Started.
    pub open: u64,
    /// Ended, and still remembered.
    pub ended: u64,
}

/// Where a session is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Named by requests, not opened by a start.
    Claimed,
    /// Started.
    Open,
    /// Ended, and still remembered.
    Ended,
    /// Its owner exited, or it expired.
    Lost,
}

impl SessionState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Claimed, Self::Open, Self::Ended, Self::Lost];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Open => "open",
            Self::Ended => "ended",
            Self::Lost => "lost",
        }
    }
}

impl FromStr for SessionState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::as_str).join(", ");
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| format!("unknown state {text:?}: one of {}", known()))
    }
}

/// Which sessions to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionQuery {
    /// Only this server's.
    pub server: Option<String>,
    /// Only those in this state.
    pub state: Option<SessionState>,
    /// At most so many; default 1000.
    pub limit: usize,
}

/// One session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionSnapshot {
    /// The server that it belongs to.
    pub server: String,
    /// Its ID; `/sessions` shortens it unless asked for whole.
    pub id: String,
    /// Where it is in its life.
    pub state: SessionState,
    /// The slot of its owner.
    pub slot: u16,
    /// The generation of its owner.
    pub generation: u32,
    /// It can never be started again.
    pub fenced: bool,
    /// Requests in flight.
    pub in_flight: u64,
    /// Seconds since its last request; 0 while one is in flight.
    pub idle_seconds: f64,
}
