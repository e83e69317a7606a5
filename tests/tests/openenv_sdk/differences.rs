//! Where the Rust server answers otherwise than the real one, and why.
//!
//! A difference that is not here fails the replay, and so does one that is here and does not occur.

use std::collections::BTreeSet;

use crate::cases::Found;

/// A difference that is meant.
#[derive(Debug)]
struct Difference {
    case: &'static str,
    step: usize,
    /// Where in the answer; each of them differs.
    places: &'static [&'static str],
    reason: &'static str,
}

/// The table. All are of cases that are accidents of the Python server.
const DIFFERENCES: &[Difference] = &[
    Difference {
        case: "task-huge-index",
        step: 0,
        places: &[".status", ".json.detail"],
        reason: "Integers have 64 bits here: a longer one is refused with 422 before any environment is asked. Python's \
                 have no end, and its environment finds this one out of range.",
    },
    Difference {
        case: "ws-frame-not-an-object",
        step: 1,
        places: &[".frame.data.message"],
        reason: "Python says with what error its code fell over a list; here it is said what a message is.",
    },
    Difference {
        case: "ws-binary-frame",
        step: 1,
        places: &[".frame.data.message"],
        reason: "Python shows the key that its code missed; here it is said that messages are text frames.",
    },
    Difference {
        case: "mcp-session-id-not-a-string",
        step: 1,
        places: &[".status", ".type", ".text", ".json"],
        reason: "A list cannot be a key of Python's dict, which is a 500; here it is an unknown session like any other.",
    },
];

/// The table, and which of it occurred.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    seen: BTreeSet<(usize, &'static str)>,
}

impl Differences {
    /// Whether this one is listed.
    pub(crate) fn explain(&mut self, found: &Found) -> bool {
        let is_it = |one: &&Difference| one.case == found.case && one.step == found.step;
        let listed = DIFFERENCES.iter().enumerate().filter(|(_, one)| is_it(one));
        for (i, one) in listed {
            if let Some(place) = one.places.iter().find(|place| **place == found.place) {
                self.seen.insert((i, place));
                return true;
            }
        }
        false
    }

    /// What is listed and did not occur.
    pub(crate) fn stale(&self) -> Vec<String> {
        let all = DIFFERENCES
            .iter()
            .enumerate()
            .flat_map(|(i, one)| one.places.iter().map(move |place| (i, *place)));
        let stale = all.filter(|listed| !self.seen.contains(listed));
        let line = |(i, place): (usize, &str)| {
            let Difference { case, step, reason, .. } = &DIFFERENCES[i];
            format!("{case}: step {step} {place}: {reason}")
        };
        stale.map(line).collect()
    }
}
