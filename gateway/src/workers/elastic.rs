//! How many workers a server is to have: a decision without clock or system, and the patience before it is carried out.

use std::time::Duration;

use tokio::time::Instant;

/// How long there have to be too few workers before more are started.
const GROW_AFTER: Duration = Duration::from_secs(2);
/// How long there have to be too many before one goes. Starting a worker costs far more than keeping one.
const SHRINK_AFTER: Duration = Duration::from_secs(60);
/// Up to which part of the target the workers that stay are to be filled: far enough below it that they do not grow again.
const ROOMY: f64 = 0.75;

/// What the config says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) min: usize,
    pub(crate) max: usize,
    /// Sessions that a worker is to have at most; `None`: whatever comes.
    pub(crate) target: Option<usize>,
}

/// A worker that takes new sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) slot: u16,
    /// Claimed and open.
    pub(crate) sessions: usize,
    pub(crate) in_flight: usize,
}

/// A server at one moment.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) serving: Vec<Load>,
    /// Slots that are to have a worker, those above among them.
    pub(crate) slots: usize,
    /// Of those: slots whose worker starts, or is about to.
    pub(crate) starting: usize,
    /// Requests that wait for room.
    pub(crate) queued: usize,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// So many more.
    Grow(usize, String),
    /// This slot less.
    Shrink(u16, String),
}

/// What would be right now, if it stayed so; the flag: whatever else, since the config's bounds say so.
pub(crate) fn wish(rules: &Rules, view: &View) -> Option<(Step, bool)> {
    let Rules { min, max, target } = *rules;
    let View { serving, slots, starting, queued } = view;
    let (slots, queued) = (*slots, *queued);
    if slots < min {
        return Some((Step::Grow(min - slots, format!("min_workers is {min}")), true));
    }
    let emptiest = serving.iter().min_by_key(|load| (load.sessions, load.in_flight, u16::MAX - load.slot));
    if slots > max {
        return emptiest.map(|load| (Step::Shrink(load.slot, format!("max_workers is {max}")), true));
    }
    // Those that are to come may be enough.
    if *starting > 0 || serving.is_empty() {
        return None;
    }
    let sessions: usize = serving.iter().map(|load| load.sessions).sum();
    let all_full = target.filter(|target| serving.iter().all(|load| load.sessions >= *target));
    if (all_full.is_some() || queued > 0) && slots < max {
        let why = match all_full {
            Some(target) => {
                format!("every worker has {target} sessions (target_sessions_per_worker) or more")
            }
            None => format!("{queued} requests wait for room"),
        };
        // Faster where there is far too little, and never by more than half.
        let needed = target.map_or(1, |target| (sessions + queued).div_ceil(target).saturating_sub(slots));
        let most = (slots / 2).max(1).min(max - slots);
        return Some((Step::Grow(needed.clamp(1, most), why), false));
    }
    let emptiest = emptiest.filter(|_| slots > min && queued == 0 && serving.len() > 1)?;
    let why = match target {
        Some(target) => {
            let room = target as f64 * ROOMY * (serving.len() - 1) as f64;
            (sessions as f64 <= room)
                .then(|| format!("{sessions} sessions need no {} workers of {target}", serving.len()))
        }
        None => {
            (emptiest.sessions == 0 && emptiest.in_flight == 0).then(|| "a worker has nothing to do".into())
        }
    }?;
    Some((Step::Shrink(emptiest.slot, why), false))
}

/// Carries out only what has been right for a while, so that workers do not come and go with every wave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Patience {
    grow_since: Option<Instant>,
    shrink_since: Option<Instant>,
}

impl Patience {
    /// What is to be done now.
    pub(crate) fn step(&mut self, wish: Option<(Step, bool)>, now: Instant) -> Option<Step> {
        let (grows, shrinks) = match &wish {
            Some((Step::Grow(..), _)) => (true, false),
            Some((Step::Shrink(..), _)) => (false, true),
            None => (false, false),
        };
        let began = |since: Option<Instant>, goes_on: bool| goes_on.then(|| since.unwrap_or(now));
        self.grow_since = began(self.grow_since, grows);
        self.shrink_since = began(self.shrink_since, shrinks);
        let (step, at_once) = wish?;
        let is_due = |since: Option<Instant>, after| since.is_some_and(|since| now - since >= after);
        let due = at_once || is_due(self.grow_since, GROW_AFTER) || is_due(self.shrink_since, SHRINK_AFTER);
        // The next one has to wait as long again.
        due.then(|| {
            *self = Self::default();
            step
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn rules(min: usize, max: usize, target: impl Into<Option<usize>>) -> Rules {
        Rules { min, max, target: target.into() }
    }

    /// Workers with so many sessions, each with a request in flight for each.
    fn view(sessions: &[usize]) -> View {
        let load = |(slot, sessions): (usize, &usize)| Load {
            slot: u16::try_from(slot).unwrap(),
            sessions: *sessions,
            in_flight: *sessions,
        };
        let serving: Vec<_> = sessions.iter().enumerate().map(load).collect();
        View { slots: serving.len(), serving, starting: 0, queued: 0 }
    }

    /// `+n`: grow, `-slot`: shrink.
    fn decided(rules: Rules, view: &View) -> String {
        match wish(&rules, view) {
            None => "stay".into(),
            Some((Step::Grow(count, _), _)) => format!("+{count}"),
            Some((Step::Shrink(slot, _), _)) => format!("-{slot}"),
        }
    }

    #[test]
    fn it_grows_when_all_are_full_and_shrinks_when_the_others_have_room() {
        let rows: [(Rules, View, &str); 22] = [
            (rules(1, 8, 10), view(&[10, 10]), "+1"),
            (rules(1, 8, 10), view(&[10, 9]), "stay"),
            (rules(1, 2, 10), view(&[10, 10]), "stay"),
            (rules(1, 8, 10), view(&[40, 40, 40, 40]), "+2"),
            (rules(1, 5, 10), view(&[40, 40, 40, 40]), "+1"),
            (rules(1, 8, 10), View { starting: 1, slots: 3, ..view(&[10, 10]) }, "stay"),
            (rules(1, 8, 10), View { queued: 3, ..view(&[5, 5]) }, "+1"),
            (rules(1, 8, None), View { queued: 300, ..view(&[5, 5]) }, "+1"),
            (rules(1, 8, None), view(&[500, 500]), "stay"),
            // 15 sessions fill two workers to three quarters.
            (rules(1, 8, 10), view(&[5, 4, 6]), "-1"),
            (rules(1, 8, 10), view(&[5, 5, 6]), "stay"),
            (rules(3, 8, 10), view(&[0, 0, 0]), "stay"),
            (rules(1, 8, 10), view(&[0, 0, 0]), "-2"),
            (rules(1, 8, 10), View { queued: 1, ..view(&[0, 0]) }, "+1"),
            (rules(1, 8, 10), View { starting: 1, slots: 3, ..view(&[0, 0]) }, "stay"),
            (rules(1, 8, None), view(&[0, 3]), "-0"),
            (rules(1, 8, None), view(&[1, 3]), "stay"),
            (rules(4, 8, 10), view(&[10, 0]), "+2"),
            (rules(1, 2, 10), view(&[10, 3, 10]), "-1"),
            (rules(1, 2, 10), view(&[1]), "stay"),
            (rules(1, 2, 10), View { slots: 2, ..view(&[]) }, "stay"),
            // A slot that has failed is there, and no worker.
            (rules(1, 8, 10), View { slots: 3, ..view(&[10, 10]) }, "+1"),
        ];
        for (rules, view, right) in rows {
            assert_eq!(decided(rules, &view), right, "{rules:?} {view:?}");
        }
    }

    #[test]
    fn what_has_grown_does_not_shrink_by_the_same_load() {
        for target in 1..20 {
            for workers in 1..20 {
                for more in 0..2 * target {
                    let full: Vec<_> = vec![target + more; workers];
                    let Some((Step::Grow(count, _), _)) = wish(&rules(1, 1000, target), &view(&full)) else {
                        panic!("{workers} workers with {} of {target} are full", target + more)
                    };
                    let grown = [full, vec![0; count]].concat();
                    let next = wish(&rules(1, 1000, target), &view(&grown));
                    assert!(!matches!(next, Some((Step::Shrink(..), _))), "{target} {workers} {more}");
                }
            }
        }
    }

    #[test]
    fn only_what_lasts_is_done() {
        let start = Instant::now();
        let mut patience = Patience::default();
        let mut look = |second: u32, sessions: &[usize]| {
            let wish = wish(&rules(1, 8, 10), &view(sessions));
            patience.step(wish, start + second * SECOND).is_some()
        };
        let (full, idle, right): (&[usize], &[usize], &[usize]) = (&[10, 10], &[0, 0], &[8, 8]);
        assert!(!look(0, full) && !look(1, right) && !look(2, full) && !look(3, full));
        assert!(look(4, full), "for two seconds");
        assert!(!look(5, full) && !look(6, full) && look(7, full), "and again");
        assert!(!look(10, idle) && !look(69, idle) && look(70, idle), "for a minute");
        assert!(!look(71, idle) && !look(100, right) && !look(101, idle) && !look(131, idle));
    }

    #[test]
    fn the_bounds_hold_at_once() {
        let now = Instant::now();
        for (rules, view) in [(rules(4, 8, 10), view(&[5, 5])), (rules(1, 2, 10), view(&[5, 5, 5]))] {
            assert!(Patience::default().step(wish(&rules, &view), now).is_some());
        }
    }
}
