use std::collections::BTreeMap;

use super::*;

fn id(n: usize) -> SessionId {
    SessionId::new(&n.to_string()).unwrap()
}

fn due(timers: &Timers, now: Millis) -> Vec<String> {
    let mut due = Vec::new();
    timers.each_due(now, |id| due.push(id.as_str().to_owned()));
    due.sort();
    due
}

/// Drives timers as the table does: what comes out early is set again.
fn fired(
    timers: &Timers,
    deadlines: &mut BTreeMap<String, (TimerHandle, Millis)>,
    now: Millis,
) -> (Vec<String>, usize) {
    let (mut fired, mut looks) = (Vec::new(), 0);
    timers.each_due(now, |id| {
        looks += 1;
        let (timer, deadline) = deadlines.get_mut(id.as_str()).unwrap();
        if *deadline <= now {
            fired.push(id.as_str().to_owned());
        } else {
            timers.set(&id, timer, *deadline);
        }
    });
    (fired, looks)
}

#[test]
fn comes_out_at_its_time_and_once() {
    let timers = Timers::new();
    let mut timer = NO_TIMER;
    timers.set(&id(1), &mut timer, 1_000);
    assert!(due(&timers, 0).is_empty());
    assert!(due(&timers, 999).is_empty());
    assert_eq!(due(&timers, 1_000), ["1"]);
    assert!(due(&timers, 100_000).is_empty());
    assert_eq!(timers.len(), 0);
}

#[test]
fn a_deadline_of_the_past_comes_out_at_the_next_tick() {
    let timers = Timers::new();
    assert!(due(&timers, 10_000).is_empty());
    timers.set(&id(1), &mut { NO_TIMER }, 5);
    assert!(due(&timers, 10_000).is_empty());
    assert_eq!(due(&timers, 10_000 + TICK), ["1"]);
}

#[test]
fn moves_and_clears() {
    let timers = Timers::new();
    let (mut a, mut b, mut c) = (NO_TIMER, NO_TIMER, NO_TIMER);
    timers.set(&id(1), &mut a, 86_400_000);
    timers.set(&id(2), &mut b, 500);
    timers.set(&id(3), &mut c, 500);
    timers.set(&id(1), &mut a, 300);
    timers.clear(&id(2), b);
    timers.clear(&id(2), b);
    assert_eq!(timers.len(), 2);
    assert_eq!(due(&timers, 10_000), ["1", "3"]);
    assert!(due(&timers, 90_000_000).is_empty(), "nothing stays behind where it was moved from");
}

#[test]
fn a_stale_handle_touches_no_other_session() {
    let timers = Timers::new();
    for n in 0..100 {
        let mut old = NO_TIMER;
        timers.set(&id(n), &mut old, 200);
        assert_eq!(due(&timers, 200 + n as u64 * 1_000), [n.to_string()]);
        // The node is free, or another's by now.
        timers.set(&id(1_000), &mut { NO_TIMER }, u64::MAX);
        timers.clear(&id(n), old);
        assert_eq!(timers.len(), n + 1, "the other one is still set");
    }
}

#[test]
fn nodes_are_used_again() {
    let timers = Timers::new();
    for round in 1..1_000_u64 {
        let mut timer = NO_TIMER;
        timers.set(&id(round as usize), &mut timer, round * 1_000 + 86_400_000);
        timers.clear(&id(round as usize), timer);
    }
    let nodes: usize = timers.wheels.iter().map(|wheel| lock(wheel).nodes.len()).sum();
    assert!(nodes <= WHEELS, "{nodes}");
}

#[test]
fn far_and_endless_deadlines_are_kept() {
    let timers = Timers::new();
    timers.set(&id(1), &mut { NO_TIMER }, u64::MAX);
    let year = 365 * 86_400_000;
    assert!(due(&timers, year).is_empty());
    assert_eq!(timers.len(), 1);
}

#[test]
fn a_day_long_timer_is_looked_at_a_few_times_only() {
    let timers = Timers::new();
    let mut deadlines = BTreeMap::new();
    for n in 0..1_000 {
        let deadline = 86_400_000 + n * 37;
        let mut timer = NO_TIMER;
        timers.set(&id(n as usize), &mut timer, deadline);
        deadlines.insert(n.to_string(), (timer, deadline));
    }
    let (mut out, mut looks) = (0, 0);
    for second in 0..86_500 {
        let (fired, looked) = fired(&timers, &mut deadlines, second * 1_000);
        out += fired.len();
        looks += looked;
    }
    assert_eq!(out, 1_000);
    assert!(looks <= 5_000, "{looks} looks: one a level at most");
}

proptest::proptest! {
    /// Never early, never more than a tick late, whatever is set, moved and cleared in between.
    #[test]
    fn keeps_to_deadlines(
        steps in proptest::collection::vec((0..20_usize, 0..5_u8, 1..5_000_000_u64, 1..200_000_u64), 1..150),
    ) {
        let timers = Timers::new();
        let mut deadlines: BTreeMap<String, (TimerHandle, Millis)> = BTreeMap::new();
        let mut now = 0;
        for (n, action, ahead, pass) in steps {
            let name = n.to_string();
            if action == 0 {
                if let Some((timer, _)) = deadlines.remove(&name) {
                    timers.clear(&id(n), timer);
                }
            } else {
                let ahead = if action < 3 { ahead % 2_000 + 1 } else { ahead };
                let entry = deadlines.entry(name).or_insert((NO_TIMER, 0));
                entry.1 = now + ahead;
                timers.set(&id(n), &mut entry.0, entry.1);
            }
            now += pass;
            let (fired, _) = fired(&timers, &mut deadlines, now);
            for name in fired {
                let (_, deadline) = deadlines.remove(&name).unwrap();
                proptest::prop_assert!(deadline <= now);
            }
            for (name, (_, deadline)) in &deadlines {
                proptest::prop_assert!(deadline.div_ceil(TICK) * TICK > now - now % TICK, "{} overdue", name);
            }
            proptest::prop_assert_eq!(timers.len(), deadlines.len());
        }
    }
}
