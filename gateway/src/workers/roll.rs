//! A rolling restart: slot after slot gets a new worker, and only then loses the old one.

use std::{collections::VecDeque, sync::Arc, time::SystemTime};

use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{NotReplaced, shared::LaunchChange, slots::Slots};
use crate::{config::StartedAs, worker_id::WorkerId};

/// How far a rolling restart is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RollState {
    /// Slots are left to do.
    #[default]
    Rolling,
    /// Every slot has a new worker. Old ones may still drain.
    Done,
    /// A new worker did not start, or died soon: the slots that were left have their old ones.
    Failed,
    /// Another one, or the gateway's stop, came before its end.
    CalledOff,
}

impl RollState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rolling, Self::Done, Self::Failed, Self::CalledOff];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rolling => "rolling",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::CalledOff => "called_off",
        }
    }
}

/// A rolling restart as it is now.
#[derive(Clone, Debug, Default)]
pub struct RollStatus {
    /// Counts the server's rolling restarts, from 1.
    pub number: u64,
    /// Why.
    pub reason: String,
    /// How far it is.
    pub state: RollState,
    /// The slots that it is to go through.
    pub slots: Vec<u16>,
    /// Those that have a new worker.
    pub replaced: Vec<u16>,
    /// Those that were drained by hand meanwhile, and stay empty.
    pub skipped: Vec<u16>,
    /// Why it stopped: the report of the worker that did not start.
    pub failure: Option<String>,
    /// When it began: seconds since 1970.
    pub started_unix: u64,
    /// When it was over.
    pub ended_unix: Option<u64>,
}

/// A rolling restart under way.
pub(crate) struct Roll {
    slots: Arc<Slots>,
    todo: VecDeque<u16>,
    /// What the new workers are started as, if not as the old ones. It holds for all once the first is ready.
    started_as: Option<Arc<StartedAs>>,
    /// Until it does.
    changing: Option<LaunchChange>,
    status: watch::Sender<RollStatus>,
    cancel: CancellationToken,
    replacing: JoinSet<(u16, Result<WorkerId, NotReplaced>)>,
    /// Slots whose new worker starts.
    under_way: Vec<u16>,
    replaced: Vec<WorkerId>,
}

/// What is kept of a rolling restart.
pub(crate) struct RollHandle {
    pub(crate) status: watch::Receiver<RollStatus>,
    pub(crate) started_as: Option<Arc<StartedAs>>,
    pub(crate) cancel: CancellationToken,
}

impl Roll {
    pub(crate) fn new(
        slots: Arc<Slots>,
        todo: Vec<u16>,
        number: u64,
        reason: &str,
        started_as: Option<Arc<StartedAs>>,
    ) -> (Self, RollHandle) {
        let status = RollStatus {
            number,
            reason: reason.into(),
            slots: todo.clone(),
            started_unix: unix_now(),
            ..RollStatus::default()
        };
        let (status, receiver) = watch::channel(status);
        let cancel = CancellationToken::new();
        let handle = RollHandle { status: receiver, started_as: started_as.clone(), cancel: cancel.clone() };
        let todo = todo.into();
        let roll = Self {
            changing: started_as.as_ref().map(|_| slots.shared.change_launch()),
            slots,
            todo,
            started_as,
            status,
            cancel,
            replacing: JoinSet::new(),
            under_way: Vec::new(),
            replaced: Vec::new(),
        };
        (roll, handle)
    }

    pub(crate) async fn run(mut self) {
        let (server, reason) = (self.slots.shared.server.clone(), self.status.borrow().reason.clone());
        tracing::info!(server, reason, slots = ?self.todo, "rolling restart");
        let mut end = None;
        loop {
            self.pass_over_the_drained();
            let next = self.todo.front().copied().filter(|_| end.is_none());
            if next.is_none() && self.replacing.is_empty() {
                break;
            }
            let slots = Arc::clone(&self.slots);
            let permit = async {
                match next {
                    Some(slot) => (slot, slots.permit(slot).await),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.cancel.cancelled(), if end.is_none() => {
                    self.call_off();
                    end = Some((RollState::CalledOff, None));
                }
                () = slots.shared.stop.cancelled(), if end.is_none() => end = Some((RollState::CalledOff, None)),
                Some(result) = self.replacing.join_next(), if !self.replacing.is_empty() => match result {
                    Ok((slot, result)) => end = end.or(self.replaced(slot, result)),
                    Err(error) => end = end.or(Some((RollState::Failed, Some(error.to_string())))),
                },
                (slot, permit) = permit => match self.one_that_died() {
                    Some(why) => end = Some((RollState::Failed, Some(why))),
                    None => {
                        self.todo.pop_front();
                        self.under_way.push(slot);
                        let (started_as, reason) = (self.started_as.clone(), reason.clone());
                        self.replacing.spawn(async move {
                            (slot, slots.replace_with(slot, &reason, started_as, permit).await)
                        });
                    }
                },
            }
        }
        let (state, failure) = end.unwrap_or((RollState::Done, None));
        match &failure {
            Some(why) => tracing::error!(server, reason, "the rolling restart stopped: {why}"),
            None => tracing::info!(server, reason, state = state.as_str(), "rolling restart over"),
        }
        self.status.send_modify(|status| {
            (status.state, status.failure, status.ended_unix) = (state, failure, Some(unix_now()));
        });
    }

    /// A slot's new worker is ready, or there is none. Returns the end, if that is one.
    fn replaced(
        &mut self,
        slot: u16,
        result: Result<WorkerId, NotReplaced>,
    ) -> Option<(RollState, Option<String>)> {
        self.under_way.retain(|known| *known != slot);
        match result {
            Ok(worker) => {
                let first = self.replaced.is_empty() && !self.cancel.is_cancelled();
                if let Some(started_as) = self.started_as.as_ref().filter(|_| first) {
                    self.slots.shared.adopt_workers(started_as);
                    self.changing = None;
                }
                self.replaced.push(worker);
                self.status.send_modify(|status| status.replaced.push(slot));
                None
            }
            Err(NotReplaced::Drained | NotReplaced::NoSlot(_)) => {
                self.status.send_modify(|status| status.skipped.push(slot));
                None
            }
            // Someone else replaced it meanwhile, maybe by what this restart is to replace.
            Err(NotReplaced::CalledOff) => {
                self.todo.push_back(slot);
                None
            }
            Err(NotReplaced::Stopped) => Some((RollState::CalledOff, None)),
            Err(NotReplaced::Failed(failure)) => Some((RollState::Failed, Some(failure.to_string()))),
        }
    }

    /// What was emptied by hand stays empty.
    fn pass_over_the_drained(&mut self) {
        while let Some(slot) = self.todo.front().copied().filter(|slot| !self.slots.is_filled(*slot)) {
            self.todo.pop_front();
            self.status.send_modify(|status| status.skipped.push(slot));
        }
    }

    fn call_off(&self) {
        self.under_way.iter().for_each(|slot| self.slots.call_off(*slot));
    }

    /// A new worker that died after it had taken over is a reason to leave the other slots alone.
    fn one_that_died(&self) -> Option<String> {
        let died = self.replaced.iter().find(|worker| self.slots.has_died(**worker))?;
        Some(format!("worker {died} took over, and died; see last_failure in /status"))
    }
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}
