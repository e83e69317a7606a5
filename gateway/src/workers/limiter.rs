//! Watches a server's workers, and replaces those that are over a limit, the rolling way.

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::Arc,
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};

use super::{
    NotReplaced, Resident, Worker,
    backoff::{Backoff, Next},
    limits::{Cause, Gauge, Used},
    shared::Shared,
    slots::Slots,
};
use crate::{config::WorkerLimits, worker_id::WorkerId};

/// How often workers are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// One server's watch over its workers' limits.
pub(crate) struct Limiter {
    slots: Arc<Slots>,
    gauges: HashMap<WorkerId, Gauge>,
    /// Workers that are being replaced.
    under_way: HashSet<WorkerId>,
    replacing: JoinSet<Replacement>,
    /// By slot: how often in a row the new worker did not start, or was over a limit itself within a minute; and when the
    /// next is tried.
    waits: HashMap<u16, (Backoff, Instant)>,
    /// The memory could not be read, and that was said.
    is_blind: bool,
}

/// A replacement that is over.
struct Replacement {
    worker: WorkerId,
    /// For how long it was ready when it was first over a limit.
    age: Duration,
    cause: Cause,
    result: Result<WorkerId, NotReplaced>,
}

impl Limiter {
    pub(crate) fn new(slots: Arc<Slots>) -> Self {
        Self {
            slots,
            gauges: HashMap::new(),
            under_way: HashSet::new(),
            replacing: JoinSet::new(),
            waits: HashMap::new(),
            is_blind: false,
        }
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
                Some(replaced) = self.replacing.join_next(), if !self.replacing.is_empty() => match replaced {
                    Ok(replacement) => self.replaced(replacement),
                    Err(error) => self.panicked(&error),
                },
                _ = look.tick() => self.look().await,
            }
        }
    }

    /// Looks at every worker that takes new sessions.
    async fn look(&mut self) {
        let shared = Arc::clone(&self.slots.shared);
        let limits = shared.config().settings.limits.clone();
        let workers = shared.workers.ready();
        let serving: Vec<_> = workers.iter().filter(|worker| !worker.is_draining()).collect();
        self.gauges.retain(|id, _| serving.iter().any(|worker| worker.id == *id));
        if !limits.replace_workers() {
            serving.iter().for_each(|worker| self.slots.over_limit(worker.id, None));
            return;
        }
        let memory = if limits.max_memory_bytes.is_some() { self.memory().await } else { None };
        for worker in serving {
            let used = used(&shared, worker, memory.as_ref());
            self.judge(worker.id, &limits, &used);
        }
    }

    fn judge(&mut self, id: WorkerId, limits: &WorkerLimits, used: &Used) {
        let gauge = self.gauges.entry(id).or_insert_with(|| Gauge::new(fastrand::f64()));
        let over = gauge.look(limits, used);
        let age = gauge.over_at().unwrap_or(used.age);
        self.slots.over_limit(id, over.as_ref().map(|(_, why)| why.as_str()));
        let Some((cause, why)) = over else { return };
        let is_early = self.waits.get(&id.slot).is_some_and(|(_, next)| Instant::now() < *next);
        if is_early || !self.under_way.insert(id) {
            return;
        }
        let (server, slot, generation) = (&self.slots.shared.server, id.slot, id.generation);
        tracing::info!(
            server,
            slot,
            generation,
            cause = cause.as_str(),
            "worker {id} is over a limit, and is replaced: {why}"
        );
        let slots = Arc::clone(&self.slots);
        self.replacing.spawn(async move {
            let result = slots.replace_worker(id, &why).await;
            Replacement { worker: id, age, cause, result }
        });
    }

    fn replaced(&mut self, Replacement { worker, age, cause, result }: Replacement) {
        self.under_way.remove(&worker);
        let (WorkerId { slot, generation }, cause_word) = (worker, cause.as_str());
        match result {
            Ok(_) => {
                self.slots.count_replacement(slot, cause);
                let Some(wait) = self.wait(slot, Some(age)) else { return };
                tracing::warn!(
                    server = self.slots.shared.server,
                    slot,
                    generation,
                    cause = cause_word,
                    "worker {worker} was over a limit {:.1} s after it was ready: is the limit too low? The next one may \
                     stay {:.1} s at least",
                    age.as_secs_f64(),
                    wait.as_secs_f64()
                );
            }
            Err(NotReplaced::Failed(failure)) => {
                let wait = self.wait(slot, None).unwrap_or_default();
                tracing::warn!(
                    server = self.slots.shared.server,
                    slot,
                    generation,
                    cause = cause_word,
                    "worker {worker} is over a limit and serves on: the one that was to take over did not start; \
                     the next is tried in {:.1} s: {failure}",
                    wait.as_secs_f64()
                );
            }
            // Somebody else has replaced it, or it is to end: the next look tells.
            Err(
                NotReplaced::CalledOff | NotReplaced::Drained | NotReplaced::Stopped | NotReplaced::NoSlot(_),
            ) => {}
        }
    }

    /// Lets a slot be for a while after one that was over a limit at that age (`None`: after one that did not start), as
    /// after a worker's death: a limit that is too low is not to start one after another. How long; `None`: not at all.
    fn wait(&mut self, slot: u16, age: Option<Duration>) -> Option<Duration> {
        let (now, times) = (Instant::now(), self.slots.shared.setup.load().times.backoff);
        let (backoff, next) = self.waits.entry(slot).or_insert_with(|| (Backoff::new(times), now));
        backoff.set_times(times);
        match backoff.next(age) {
            Next::Now => {
                self.waits.remove(&slot);
                None
            }
            Next::Wait(wait) | Next::GiveUp(wait) => {
                *next = now + wait;
                Some(wait)
            }
        }
    }

    /// A fault of the gateway's own. Which one it was is not known, so all are tried again.
    fn panicked(&mut self, error: &tokio::task::JoinError) {
        tracing::error!(server = self.slots.shared.server, "a replacement's task failed: {error}");
        self.under_way.clear();
    }

    async fn memory(&mut self) -> Option<Resident> {
        let spawner = Arc::clone(&self.slots.shared.spawner);
        let read = tokio::task::spawn_blocking(move || spawner.resident()).await;
        match read.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(resident) => {
                self.is_blind = false;
                Some(resident)
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_blind, true) {
                    tracing::warn!(
                        server = self.slots.shared.server,
                        "max_memory_bytes cannot be held to: the workers' memory cannot be read: {error}"
                    );
                }
                None
            }
        }
    }
}

fn used(shared: &Shared, worker: &Worker, memory: Option<&Resident>) -> Used {
    Used {
        requests: worker.answered(),
        sessions: shared.events.taken(worker.id),
        age: worker.ready_for(),
        memory: memory.zip(worker.pid()).and_then(|(memory, pid)| memory.of_worker(pid)),
    }
}
