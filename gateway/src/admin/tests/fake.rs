//! A made-up gateway.

use std::time::{SystemTime, UNIX_EPOCH};

use super::super::{
    DrainSnapshot, FailureSnapshot, GatewaySnapshot, OtherSnapshot, RollSnapshot, ServerSnapshot,
    SessionCounts, SessionQuery, SessionSnapshot, SessionState, Snapshot, WorkerSnapshot, WorkerState,
};
use crate::workers::SlotState;

#[derive(Clone)]
pub(super) struct Fake {
    pub(super) gateway: GatewaySnapshot,
    pub(super) servers: Vec<ServerSnapshot>,
}

impl Snapshot for Fake {
    fn gateway(&self) -> GatewaySnapshot {
        self.gateway.clone()
    }

    fn servers(&self) -> Vec<ServerSnapshot> {
        self.servers.clone()
    }

    fn measured_servers(&self) -> Vec<ServerSnapshot> {
        let mut servers = self.servers();
        for worker in &mut servers[0].workers {
            worker.memory_bytes = Some(300 << 20);
        }
        servers
    }

    fn sessions(&self, query: &SessionQuery) -> Vec<SessionSnapshot> {
        let session = |(number, state): (usize, SessionState)| SessionSnapshot {
            server: "counter".into(),
            id: format!("{number}2345678-whole"),
            state,
            slot: 1,
            generation: 3,
            fenced: state == SessionState::Ended,
            in_flight: 2,
            idle_seconds: 65.0,
        };
        let all = SessionState::ALL.into_iter().enumerate().map(session);
        all.filter(|session| query.state.is_none_or(|state| state == session.state)).collect()
    }
}

pub(super) fn fake() -> Fake {
    // Three hours ago, and half a minute that a slow test may take.
    let at_unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() - 3 * 3600 - 30;
    let worker = |slot: u16, state| WorkerSnapshot {
        slot,
        generation: 3,
        state,
        pid: Some(4242),
        address: Some("unix:/run/w.sock".into()),
        restarts: 2,
        oom_kills: 1,
        started_unix: 1_700_000_000,
        in_flight: 7,
        queued: 6,
        sessions: SessionCounts { claimed: 1, open: 5, ended: 9 },
        memory_bytes: None,
        requests: 41,
        sessions_had: 15,
        over_limit: (slot == 0).then(|| "it has answered 41 requests (max_requests: 40)".into()),
        replacements: [("max_requests".into(), 1)].into(),
        transitions: SlotState::ALL.map(|state| (state.to_string(), 4)).into(),
        failures_in_a_row: 6,
        last_exit: Some("killed by <SIGKILL>\nmore".into()),
        last_failure: Some(FailureSnapshot {
            generation: 2,
            at_unix,
            phase: "listen".into(),
            seconds: [("spawn".into(), 0.25), ("listen".into(), 1.5)].into(),
            reason: "killed by <SIGKILL>\nmore".into(),
            exit: Some("was killed by SIGKILL".into()),
            command: Some("./server (in /)".into()),
            output: vec!["loading".into()],
            advice: "see dmesg".into(),
        }),
        drain: None,
        others: Vec::new(),
    };
    let draining = OtherSnapshot {
        generation: 2,
        state: WorkerState::Draining,
        pid: Some(4141),
        address: Some("unix:/run/v.sock".into()),
        started_unix: 1_600_000_000,
        in_flight: 1,
        queued: 2,
        sessions: SessionCounts { claimed: 0, open: 2, ended: 3 },
        memory_bytes: Some(100 << 20),
        drain: Some(DrainSnapshot {
            reason: "worker 0.3 has taken over: new <code>".into(),
            since_seconds: 125.0,
            left_seconds: Some(3475.0),
        }),
    };
    let server = ServerSnapshot {
        name: "counter".into(),
        kind: "resources".into(),
        address: "127.0.0.1:8000".into(),
        session_cookie: Some("Counter___counter".into()),
        protocol: None,
        session_start_routes: vec!["/begin".into()],
        session_end_routes: vec!["/finish".into(), "/give_up".into()],
        routes_sessions_to_owner: true,
        workers_range: Some((1, 8)),
        target_sessions_per_worker: Some(16),
        scaled: [("grown".into(), 3), ("shrunk".into(), 2)].into(),
        limits: [("max_requests".into(), Some(40.0))].into(),
        waiting: 11,
        client_connections: 12,
        sessions_lost: 13,
        sessions_expired: 3,
        lost_remembered: 4,
        drains_cut: 5,
        sessions_lost_to_drains: 6,
        removed: false,
        joining: false,
        roll: Some(RollSnapshot {
            number: 3,
            reason: "new code".into(),
            state: "rolling".into(),
            slots: vec![0, 1],
            replaced: vec![0],
            started_unix: at_unix,
            ..RollSnapshot::default()
        }),
        rolls_ended: [("done".into(), 2), ("failed".into(), 1), ("called_off".into(), 0)].into(),
        workers: vec![
            WorkerSnapshot { others: vec![draining], ..worker(0, WorkerState::Ready) },
            worker(1, WorkerState::Failed),
        ],
    };
    let gateway = GatewaySnapshot {
        version: "1.2.3".into(),
        pid: 77,
        uptime_seconds: 3700.0,
        stopping: false,
        buffered_bytes: 1024,
    };
    Fake { gateway, servers: vec![server] }
}
