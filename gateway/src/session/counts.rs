//! What the admin address shows.

use std::sync::atomic::Ordering;

use super::{
    Millis, SessionId, SessionState, SessionTable,
    record::{Entry, Record},
};
use crate::worker_id::WorkerId;

/// A server's sessions by numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By owner, in the order of slots and generations. Exited ones only while they have ended sessions.
    pub workers: Vec<WorkerCounts>,
    /// Lost sessions that are remembered, aliases among them; as of the last [`SessionTable::expire`].
    pub lost_remembered: u64,
    /// Sessions lost since the start: by their owner's exit, or expired.
    pub lost_total: u64,
    /// Of `lost_total`: open sessions that were idle for too long.
    pub expired_total: u64,
    /// Of `lost_total`: claims that turned out never to have reached their worker, and were free again.
    pub undone_total: u64,
    /// Claimed and ended sessions forgotten after the close-retry window since the start.
    pub forgotten_total: u64,
    /// Claims withdrawn since the start: no byte was sent, or no reply used the session.
    pub withdrawn_total: u64,
}

/// One owner's sessions by state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerCounts {
    /// The owner.
    pub worker: WorkerId,
    /// Whether it has exited.
    pub exited: bool,
    /// Sessions that requests name and no start has opened.
    pub claimed: usize,
    /// Started sessions.
    pub open: usize,
    /// Ended sessions that are still remembered.
    pub ended: usize,
}

/// One session, for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its first ID.
    pub id: SessionId,
    /// Where it is in its life.
    pub state: SessionState,
    /// The worker that holds it.
    pub owner: WorkerId,
    /// Whether that worker has exited (ended sessions only).
    pub owner_exited: bool,
    /// Whether it can never be started again.
    pub fenced: bool,
    /// Requests in flight.
    pub in_flight: u32,
    /// Milliseconds since its last use; 0 while requests are in flight.
    pub idle: Millis,
    /// How many other IDs it has.
    pub aliases: usize,
}

/// Which sessions to list. The default lists all.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Only those in this state.
    pub state: Option<SessionState>,
    /// Only those of this slot's workers.
    pub slot: Option<u16>,
    /// Only those whose first ID begins so.
    pub prefix: Option<String>,
}

impl SessionFilter {
    fn takes(&self, id: &SessionId, record: &Record) -> bool {
        self.state.is_none_or(|state| state == record.state())
            && self.slot.is_none_or(|slot| slot == record.owner.id.slot)
            && self.prefix.as_deref().is_none_or(|prefix| id.as_str().starts_with(prefix))
    }
}

impl SessionTable {
    /// Counts, without looking at the sessions.
    pub fn counts(&self) -> Counts {
        let total = |total: &std::sync::atomic::AtomicU64| total.load(Ordering::Relaxed);
        let workers = self.owners.all().into_iter().map(|owner| WorkerCounts {
            worker: owner.id,
            exited: owner.has_exited(),
            claimed: owner.count(SessionState::Claimed),
            open: owner.count(SessionState::Open),
            ended: owner.count(SessionState::Ended),
        });
        Counts {
            workers: workers.filter(|worker| !worker.exited || worker.ended > 0).collect(),
            lost_remembered: self.losses.len(),
            lost_total: total(&self.totals.lost),
            expired_total: total(&self.totals.expired),
            undone_total: total(&self.totals.undone),
            forgotten_total: total(&self.totals.forgotten),
            withdrawn_total: total(&self.totals.withdrawn),
        }
    }

    /// Up to `limit` sessions, in no order. Looks through the table until it has them, a shard at a time.
    pub fn list(&self, limit: usize, filter: &SessionFilter, now: Millis) -> Vec<SessionInfo> {
        let found = self.sessions.iter().filter_map(|entry| match entry.value() {
            Entry::Session(record) if filter.takes(entry.key(), record) => {
                Some(info(entry.key(), record, now))
            }
            _ => None,
        });
        found.take(limit).collect()
    }

    /// Up to `limit` lost sessions that are remembered, and the workers that held them; in no order.
    pub fn lost(&self, limit: usize, now: Millis) -> Vec<(SessionId, WorkerId)> {
        self.losses.list(limit, now)
    }

    /// One session, by any of its IDs.
    pub fn find(&self, id: &SessionId, now: Millis) -> Option<SessionInfo> {
        let first = self.first_id(id)?;
        match self.sessions.get(&first)?.value() {
            Entry::Session(record) => Some(info(&first, record, now)),
            Entry::Alias(_) => None,
        }
    }
}

fn info(id: &SessionId, record: &Record, now: Millis) -> SessionInfo {
    SessionInfo {
        id: id.clone(),
        state: record.state(),
        owner: record.owner.id,
        owner_exited: record.owner.has_exited(),
        fenced: record.fenced,
        in_flight: record.in_flight,
        idle: if record.in_flight > 0 { 0 } else { now.saturating_sub(record.last) },
        aliases: record.aliases().len(),
    }
}
