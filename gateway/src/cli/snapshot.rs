//! What the admin address shows: the plant as it is now.

use std::{collections::BTreeMap, sync::Arc};

use super::plant::{Plant, Unit};
use crate::{
    admin::{
        DrainSnapshot, FailureSnapshot, GatewaySnapshot, OtherSnapshot, RollSnapshot, ServerSnapshot,
        SessionCounts, SessionQuery, SessionSnapshot, SessionState, Snapshot, WorkerSnapshot,
    },
    config::Protocol,
    proxy::ServerState,
    session::{self, SessionFilter, SessionInfo},
    worker_id::WorkerId,
    workers::{DrainStatus, Failed, LastFailure, Resident, RollStatus, RollTotals, SlotStatus, Supervisor},
};

/// The running gateway, to be looked at.
pub(super) struct Live(pub(super) Arc<Plant>);

impl Snapshot for Live {
    fn gateway(&self) -> GatewaySnapshot {
        let shared = &self.0.shared;
        GatewaySnapshot {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            uptime_seconds: shared.clock.now() as f64 / 1000.0,
            stopping: shared.stop.begun.is_cancelled(),
            buffered_bytes: shared.budget.used() as u64,
        }
    }

    fn servers(&self) -> Vec<ServerSnapshot> {
        self.0.units().iter().map(|unit| server(unit)).collect()
    }

    fn measured_servers(&self) -> Vec<ServerSnapshot> {
        let mut servers = self.servers();
        match Resident::read() {
            Ok(resident) => {
                let memory = |pid: Option<i32>| pid.and_then(|pid| resident.of_worker(pid));
                for worker in servers.iter_mut().flat_map(|server| &mut server.workers) {
                    worker.memory_bytes = memory(worker.pid);
                    worker.others.iter_mut().for_each(|other| other.memory_bytes = memory(other.pid));
                }
            }
            Err(error) => tracing::warn!(%error, "the workers' memory cannot be read"),
        }
        servers
    }

    fn sessions(&self, query: &SessionQuery) -> Vec<SessionSnapshot> {
        let now = self.0.shared.clock.now();
        let mut found = Vec::new();
        let units = self.0.units();
        for server in units.iter().map(|unit| &unit.state) {
            let name = &server.name;
            if query.server.as_ref().is_some_and(|asked| asked != name) {
                continue;
            }
            let left = query.limit.saturating_sub(found.len());
            if query.state != Some(SessionState::Lost) {
                let filter =
                    SessionFilter { state: query.state.and_then(living), ..SessionFilter::default() };
                found.extend(server.sessions.list(left, &filter, now).into_iter().map(|s| session(name, s)));
            }
            let left = query.limit.saturating_sub(found.len());
            if matches!(query.state, None | Some(SessionState::Lost)) {
                found.extend(
                    server
                        .sessions
                        .lost(left, now)
                        .into_iter()
                        .map(|(id, owner)| lost(name, id.as_str(), owner)),
                );
            }
        }
        found
    }
}

fn server(unit: &Unit) -> ServerSnapshot {
    let server = &unit.state;
    let counts = server.sessions.counts();
    let settings = server.settings();
    let supervisor = unit.supervisor();
    let slots = supervisor.map(Supervisor::status).unwrap_or_default();
    let drains = supervisor.map(Supervisor::drains).unwrap_or_default();
    let scales = supervisor.map(Supervisor::scales).unwrap_or_default();
    let range = unit.config().workers_range();
    let RollTotals { done, failed, called_off } = supervisor.map(Supervisor::rolls_ended).unwrap_or_default();
    ServerSnapshot {
        name: server.name.clone(),
        kind: server.rule.kind().name().into(),
        address: server.address.clone(),
        session_cookie: server.rule.cookie_name(),
        protocol: settings.protocol.filter(|it| *it != Protocol::Both).map(|it| it.to_string()),
        session_start_routes: settings.session_start_routes.clone(),
        session_end_routes: settings.session_end_routes.clone(),
        routes_sessions_to_owner: settings.routes_sessions_to_owner,
        waiting: server.waiting.get() as u64,
        client_connections: server.connections.get() as u64,
        sessions_lost: counts.lost_total,
        sessions_expired: counts.expired_total,
        lost_remembered: counts.lost_remembered,
        drains_cut: drains.cut,
        sessions_lost_to_drains: drains.lost,
        workers_range: (range.0 < range.1).then_some(range),
        target_sessions_per_worker: settings.elastic.target_sessions_per_worker.map(|target| target as u64),
        scaled: [("grown".to_owned(), scales.grown), ("shrunk".to_owned(), scales.shrunk)].into(),
        limits: settings.limits.values().into_iter().map(|(key, value)| (key.into(), value)).collect(),
        removed: server.removed.is_cancelled(),
        joining: unit.was_added && !supervisor.is_some_and(Supervisor::has_started),
        roll: supervisor.and_then(Supervisor::roll).map(roll),
        rolls_ended: [("done", done), ("failed", failed), ("called_off", called_off)]
            .map(|(result, count)| (result.to_owned(), count))
            .into(),
        workers: slots.into_iter().map(|slot| worker(server, &counts, slot)).collect(),
    }
}

pub(super) fn roll(roll: RollStatus) -> RollSnapshot {
    RollSnapshot {
        number: roll.number,
        reason: roll.reason,
        state: roll.state.as_str().into(),
        slots: roll.slots,
        replaced: roll.replaced,
        skipped: roll.skipped,
        failure: roll.failure,
        started_unix: roll.started_unix,
        ended_unix: roll.ended_unix,
    }
}

fn drain(drain: DrainStatus) -> DrainSnapshot {
    DrainSnapshot {
        reason: drain.reason,
        since_seconds: drain.since.as_secs_f64(),
        left_seconds: drain.left.map(|left| left.as_secs_f64()),
    }
}

/// Those of the slot's sessions whose owner is meant.
fn sessions(counts: &session::Counts, slot: u16, is_meant: impl Fn(u32) -> bool) -> SessionCounts {
    let mut sessions = SessionCounts::default();
    let owners = counts.workers.iter().filter(|owner| owner.worker.slot == slot);
    for owner in owners.filter(|owner| is_meant(owner.worker.generation)) {
        sessions.claimed += owner.claimed as u64;
        sessions.open += owner.open as u64;
        sessions.ended += owner.ended as u64;
    }
    sessions
}

fn worker(server: &ServerState, counts: &session::Counts, slot: SlotStatus) -> WorkerSnapshot {
    let SlotStatus { slot: number, others, .. } = slot;
    let counts_of = |generation| {
        let worker = server.workers.get(WorkerId { slot: number, generation });
        worker.map_or((0, 0), |worker| (worker.in_flight() as u64, worker.queued() as u64))
    };
    let id = WorkerId { slot: number, generation: slot.generation };
    let shown = server.workers.get(id);
    // What is left of workers that have exited is counted where the slot is.
    let is_other = |generation: u32| others.iter().any(|other| other.generation == generation);
    WorkerSnapshot {
        slot: number,
        generation: slot.generation,
        state: slot.state,
        pid: slot.pid,
        address: slot.address,
        restarts: slot.restarts.into(),
        oom_kills: slot.oom_kills.into(),
        started_unix: slot.started_unix,
        in_flight: counts_of(slot.generation).0,
        queued: counts_of(slot.generation).1,
        requests: shown.as_ref().map_or(0, |worker| worker.answered()),
        sessions: sessions(counts, number, |generation| !is_other(generation)),
        sessions_had: server.sessions.taken(id),
        over_limit: slot.over_limit,
        replacements: slot.replacements.by_cause(),
        memory_bytes: None,
        transitions: slot.transitions.iter().map(|(to, count)| (to.to_string(), count)).collect(),
        failures_in_a_row: slot.failures_in_a_row,
        last_exit: slot.last_exit,
        last_failure: slot.last_failure.map(failure),
        drain: slot.drain.map(drain),
        others: others
            .iter()
            .cloned()
            .map(|other| OtherSnapshot {
                generation: other.generation,
                state: other.state,
                pid: other.pid,
                address: other.address,
                started_unix: other.started_unix,
                in_flight: counts_of(other.generation).0,
                queued: counts_of(other.generation).1,
                sessions: sessions(counts, number, |generation| generation == other.generation),
                memory_bytes: None,
                drain: other.drain.map(drain),
            })
            .collect(),
    }
}

fn failure(failure: LastFailure) -> FailureSnapshot {
    let at_unix = failure.at_unix;
    match failure.what {
        Failed::Start(start) => FailureSnapshot {
            generation: start.worker.generation,
            at_unix,
            phase: start.phase.to_string(),
            seconds: start
                .spent
                .iter()
                .map(|(phase, time)| (phase.to_string(), time.as_secs_f64()))
                .collect(),
            reason: start.seen,
            exit: start.exit.map(|exit| exit.to_string()),
            command: (!start.command.is_empty()).then_some(start.command),
            output: start.output,
            advice: start.advice,
        },
        Failed::Death { worker, report, advice } => FailureSnapshot {
            generation: worker.generation,
            at_unix,
            phase: "ready".into(),
            seconds: BTreeMap::from([("ready".into(), report.ready_for.as_secs_f64())]),
            reason: format!("it {report}"),
            exit: Some(report.exit.to_string()),
            command: None,
            output: report.output,
            advice: advice.into(),
        },
    }
}

fn session(server: &str, session: SessionInfo) -> SessionSnapshot {
    SessionSnapshot {
        server: server.into(),
        id: session.id.as_str().into(),
        state: match session.state {
            session::SessionState::Claimed => SessionState::Claimed,
            session::SessionState::Open => SessionState::Open,
            session::SessionState::Ended => SessionState::Ended,
        },
        slot: session.owner.slot,
        generation: session.owner.generation,
        fenced: session.fenced,
        in_flight: session.in_flight.into(),
        idle_seconds: session.idle as f64 / 1000.0,
    }
}

fn lost(server: &str, id: &str, owner: WorkerId) -> SessionSnapshot {
    SessionSnapshot {
        server: server.into(),
        id: id.into(),
        state: SessionState::Lost,
        slot: owner.slot,
        generation: owner.generation,
        fenced: false,
        in_flight: 0,
        idle_seconds: 0.0,
    }
}

/// The rule's word for a state; a lost session is in no worker's hands.
fn living(state: SessionState) -> Option<session::SessionState> {
    match state {
        SessionState::Claimed => Some(session::SessionState::Claimed),
        SessionState::Open => Some(session::SessionState::Open),
        SessionState::Ended => Some(session::SessionState::Ended),
        SessionState::Lost => None,
    }
}
