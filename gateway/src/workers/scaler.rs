//! Looks at how busy a server's workers are, and starts more or lets some drain.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{
    elastic::{Load, Patience, Rules, Step, View, wish},
    slots::Slots,
};

/// How often workers are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often the number of a server's workers was changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScaleTotals {
    /// Workers that were started since there was too much to do.
    pub grown: u64,
    /// Workers that were let drain since there was too little.
    pub shrunk: u64,
}

/// The same, while it is counted.
#[derive(Debug, Default)]
pub(crate) struct Scales {
    grown: AtomicU64,
    shrunk: AtomicU64,
}

impl Scales {
    pub(crate) fn totals(&self) -> ScaleTotals {
        ScaleTotals { grown: self.grown.load(Ordering::Relaxed), shrunk: self.shrunk.load(Ordering::Relaxed) }
    }
}

/// One server's watch over the number of its workers.
pub(crate) struct Scaler {
    slots: Arc<Slots>,
    patience: Patience,
}

impl Scaler {
    pub(crate) fn new(slots: Arc<Slots>) -> Self {
        Self { slots, patience: Patience::default() }
    }

    /// Until the stop.
    pub(crate) async fn run(mut self) {
        let stop = self.slots.shared.stop.clone();
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = look.tick() => self.look(),
            }
        }
    }

    fn look(&mut self) {
        let shared = Arc::clone(&self.slots.shared);
        let config = shared.config();
        let (min, max) = config.workers_range();
        // Workers that a rolling restart does not know of would keep the old way of being started.
        if min == max || self.slots.is_emptied() || shared.is_changing_launch() {
            self.patience = Patience::default();
            return;
        }
        let target = config.settings.elastic.target_sessions_per_worker;
        let rules = Rules { min: min.into(), max: max.into(), target };
        let view = self.view();
        let Some(step) = self.patience.step(wish(&rules, &view), Instant::now()) else { return };
        let server = &shared.server;
        match step {
            Step::Grow(count, why) => {
                let added = self.slots.grow(count);
                shared.scales.grown.fetch_add(added.len() as u64, Ordering::Relaxed);
                tracing::info!(server, slots = ?added, workers = view.slots + added.len(), "more workers: {why}");
            }
            Step::Shrink(slot, why) => {
                if self.slots.remove(slot, &format!("fewer workers: {why}")) {
                    shared.scales.shrunk.fetch_add(1, Ordering::Relaxed);
                    tracing::info!(
                        server,
                        slot,
                        workers = view.slots - 1,
                        "fewer workers, slot {slot} drains: {why}"
                    );
                }
            }
        }
    }

    fn view(&self) -> View {
        let shared = &self.slots.shared;
        let (slots, starting) = self.slots.filled_and_starting();
        let workers = shared.workers.ready();
        let serving =
            workers.iter().filter(|worker| !worker.is_draining() && slots.contains(&worker.id.slot));
        let load = |worker: &Arc<super::Worker>| {
            let held = shared.events.sessions(worker.id);
            Load { slot: worker.id.slot, sessions: held.claimed + held.open, in_flight: worker.in_flight() }
        };
        let serving = serving.map(load).collect();
        View { serving, slots: slots.len(), starting, queued: shared.workers.queued() }
    }
}
