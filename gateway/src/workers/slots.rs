//! A server's slots: which there are, and what is told to each.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use super::{
    NotReplaced, SlotState, SlotStatus,
    limits::Cause,
    shared::Shared,
    slot::{Cell, Command, Replace, Slot},
    surge::{Permit, Surge},
};
use crate::{config::StartedAs, worker_id::WorkerId};

/// A server's slots. A slot that is needed no more keeps its task, for its number may be needed again, and its generations
/// go on then.
pub(crate) struct Slots {
    pub(crate) shared: Arc<Shared>,
    surge: Arc<Surge>,
    /// Where the slots' tasks run, whoever calls.
    runtime: Handle,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    slots: BTreeMap<u16, One>,
    tasks: Vec<JoinHandle<()>>,
}

struct One {
    cell: Arc<Cell>,
    commands: mpsc::UnboundedSender<Command>,
    /// The server needs it.
    needed: bool,
    /// It was emptied by hand.
    drained: bool,
}

impl One {
    fn tell(&self, command: Command) {
        // Its task takes nothing more once it stops.
        let _ = self.commands.send(command);
    }
}

/// What a change of the number of slots comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resized {
    /// Slots that have a worker started.
    pub added: Vec<u16>,
    /// Slots whose worker drains.
    pub removed: Vec<u16>,
}

impl Slots {
    /// None yet; to be called in a tokio runtime.
    pub(crate) fn new(shared: Arc<Shared>) -> Arc<Self> {
        Arc::new(Self { shared, surge: Surge::new(), runtime: Handle::current(), known: Mutex::default() })
    }

    /// Makes it `count` slots, 0 to `count - 1`: the highest go, by draining.
    pub(crate) fn resize(&self, count: u16, reason: &str) -> Resized {
        let mut resized = Resized::default();
        let mut known = self.lock();
        for (slot, one) in known.slots.iter_mut().filter(|(slot, one)| **slot >= count && one.needed) {
            one.needed = false;
            one.tell(Command::Drain { reason: reason.into(), for_good: true });
            resized.removed.push(*slot);
        }
        for slot in 0..count {
            match known.slots.get_mut(&slot) {
                Some(one) if one.needed => continue,
                Some(one) => {
                    (one.needed, one.drained) = (true, false);
                    one.tell(Command::Fill);
                }
                None => self.open(&mut known, slot),
            }
            resized.added.push(slot);
        }
        resized
    }

    /// So many slots more: the lowest that are not needed.
    pub(crate) fn grow(&self, count: usize) -> Vec<u16> {
        let mut added = Vec::new();
        let mut known = self.lock();
        for slot in 0..u16::MAX {
            if added.len() == count {
                break;
            }
            match known.slots.get_mut(&slot) {
                Some(one) if one.needed => continue,
                Some(one) => {
                    (one.needed, one.drained) = (true, false);
                    one.tell(Command::Fill);
                }
                None => self.open(&mut known, slot),
            }
            added.push(slot);
        }
        added
    }

    /// One slot less, by draining. Whether it was needed.
    pub(crate) fn remove(&self, slot: u16, reason: &str) -> bool {
        let mut known = self.lock();
        let Some(one) = known.slots.get_mut(&slot).filter(|one| one.needed) else { return false };
        one.needed = false;
        one.tell(Command::Drain { reason: reason.into(), for_good: true });
        true
    }

    /// Slots that are needed and not emptied by hand, and how many of them are about to have a worker.
    pub(crate) fn filled_and_starting(&self) -> (Vec<u16>, usize) {
        let known = self.lock();
        let filled = || known.slots.iter().filter(|(_, one)| one.needed && !one.drained);
        let starts =
            |one: &One| !matches!(one.cell.snapshot(None).state, SlotState::Ready | SlotState::Failed);
        (filled().map(|(slot, _)| *slot).collect(), filled().filter(|(_, one)| starts(one)).count())
    }

    /// Whether the server is to have no workers any more.
    pub(crate) fn is_emptied(&self) -> bool {
        self.lock().slots.values().all(|one| !one.needed)
    }

    fn open(&self, known: &mut Known, slot: u16) {
        let (commands, orders) = mpsc::unbounded_channel();
        let cell = Arc::new(Cell::new(&self.shared.server, slot));
        let task = Slot::new(Arc::clone(&self.shared), slot, Arc::clone(&cell), orders);
        known.tasks.push(self.runtime.spawn(task.run()));
        known.slots.insert(slot, One { cell, commands, needed: true, drained: false });
    }

    /// Every slot as it is now; of those that are needed no more the ones that still have a process.
    pub(crate) fn status(&self) -> Vec<SlotStatus> {
        let limit = self.shared.drain_timeout();
        let known = self.lock();
        let shown = known.slots.values().filter(|one| one.needed || *one.cell.living().borrow() > 0);
        shown.map(|one| one.cell.snapshot(limit)).collect()
    }

    /// Slots that are needed and not emptied by hand.
    pub(crate) fn filled(&self) -> Vec<u16> {
        let known = self.lock();
        let filled = known.slots.iter().filter(|(_, one)| one.needed && !one.drained);
        filled.map(|(slot, _)| *slot).collect()
    }

    pub(crate) fn is_filled(&self, slot: u16) -> bool {
        self.lock().slots.get(&slot).is_some_and(|one| one.needed && !one.drained)
    }

    /// Lets the slot count as one that is to have a worker, in whatever way it gets one. Whether there is such a slot.
    pub(crate) fn mean_to_fill(&self, slot: u16) -> bool {
        let mut known = self.lock();
        let Some(one) = known.slots.get_mut(&slot).filter(|one| one.needed) else { return false };
        one.drained = false;
        true
    }

    /// Whether this worker, once ready, has died.
    pub(crate) fn has_died(&self, worker: WorkerId) -> bool {
        let status = self.lock().slots.get(&worker.slot).map(|one| one.cell.snapshot(None));
        status.and_then(|status| status.last_failure).is_some_and(|failure| failure.worker() == worker)
    }

    /// Starts a new process for the slot and, when it is ready, lets it take over: the old one drains. Returns then; if it
    /// does not start, nothing has changed. A slot that was emptied by hand is filled. Waits until `max_surge` allows for
    /// one more worker.
    pub(crate) async fn replace(
        &self,
        slot: u16,
        reason: &str,
        started_as: Option<Arc<StartedAs>>,
    ) -> Result<WorkerId, NotReplaced> {
        let permit = tokio::select! {
            biased;
            () = self.shared.stop.cancelled() => return Err(NotReplaced::Stopped),
            permit = self.permit(slot) => permit,
        };
        self.replace_with(slot, reason, started_as, permit).await
    }

    /// [`Slots::replace`], with the permit.
    pub(crate) async fn replace_with(
        &self,
        slot: u16,
        reason: &str,
        started_as: Option<Arc<StartedAs>>,
        permit: Option<Permit>,
    ) -> Result<WorkerId, NotReplaced> {
        let (done, answer) = oneshot::channel();
        {
            let mut known = self.lock();
            let Some(one) = known.slots.get_mut(&slot).filter(|one| one.needed) else {
                return Err(NotReplaced::NoSlot(slot));
            };
            one.drained = false;
            let reason = reason.into();
            one.tell(Command::Replace(Replace { reason, instead_of: None, started_as, permit, done }));
        }
        // Dropped unanswered with the slot's task.
        answer.await.unwrap_or(Err(NotReplaced::Stopped))
    }

    /// [`Slots::replace`], if the slot still goes by this worker when its turn comes, and nobody else is replacing it.
    pub(crate) async fn replace_worker(
        &self,
        worker: WorkerId,
        reason: &str,
    ) -> Result<WorkerId, NotReplaced> {
        let permit = tokio::select! {
            biased;
            () = self.shared.stop.cancelled() => return Err(NotReplaced::Stopped),
            permit = self.permit(worker.slot) => permit,
        };
        let (done, answer) = oneshot::channel();
        {
            let known = self.lock();
            let Some(one) = known.slots.get(&worker.slot).filter(|one| one.needed && !one.drained) else {
                return Err(NotReplaced::Drained);
            };
            let (reason, instead_of) = (reason.into(), Some(worker.generation));
            one.tell(Command::Replace(Replace { reason, instead_of, started_as: None, permit, done }));
        }
        answer.await.unwrap_or(Err(NotReplaced::Stopped))
    }

    /// Notes the limit that a worker is over, if it is over one.
    pub(crate) fn over_limit(&self, worker: WorkerId, why: Option<&str>) {
        if let Some(one) = self.lock().slots.get(&worker.slot) {
            one.cell.over_limit(worker, why);
        }
    }

    pub(crate) fn count_replacement(&self, slot: u16, cause: Cause) {
        if let Some(one) = self.lock().slots.get(&slot) {
            one.cell.replaced(cause);
        }
    }

    /// Waits until one more worker may be there; `None`: the slot has none that serves, so a new one is not one more.
    pub(crate) async fn permit(&self, slot: u16) -> Option<Permit> {
        let serves = |one: &One| one.cell.snapshot(None).state == SlotState::Ready;
        if !self.lock().slots.get(&slot).is_some_and(serves) {
            return None;
        }
        Some(self.surge.take(|| self.shared.max_surge()).await)
    }

    /// The limit of extra workers may have changed.
    pub(crate) fn look_at_surge(&self) {
        self.surge.look_again();
    }

    /// Ends a replacement that is under way.
    pub(crate) fn call_off(&self, slot: u16) {
        if let Some(one) = self.lock().slots.get(&slot) {
            one.tell(Command::CallOff);
        }
    }

    /// Lets the slot's worker drain, after which it stays empty. Whether there is such a slot.
    pub(crate) fn drain(&self, slot: u16, reason: &str) -> bool {
        let mut known = self.lock();
        let Some(one) = known.slots.get_mut(&slot).filter(|one| one.needed) else { return false };
        one.drained = true;
        one.tell(Command::Drain { reason: reason.into(), for_good: false });
        true
    }

    /// Waits until no process lives. Slots that are added meanwhile are not looked at.
    pub(crate) async fn emptied(&self) {
        let cells: Vec<_> = self.lock().slots.values().map(|one| one.cell.living()).collect();
        for mut living in cells {
            // Its sender lives as long as the slot is known.
            let _ = living.wait_for(|living| *living == 0).await;
        }
    }

    /// The slots' tasks, to be waited for.
    pub(crate) fn take_tasks(&self) -> Vec<JoinHandle<()>> {
        std::mem::take(&mut self.lock().tasks)
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut known = self.lock();
        // Rolling restarts come and go for as long as the gateway runs.
        known.tasks.retain(|task| !task.is_finished());
        known.tasks.push(self.runtime.spawn(task));
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
