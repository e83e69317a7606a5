//! What the Gymnasium server answers otherwise.

use super::{Case, Difference, Found, Steps, verify};

const BLACKJACK: &[&str] = &["blackjack"];

pub(super) const DIFFERENCES: &[Difference] = &[
    Difference {
        recordings: BLACKJACK,
        steps: Steps::Where(is_unknown_to_a_step),
        what: &["status", "body", "cookie", "header vary"],
        reason: "A step of a session that was not begun, or has ended, is answered 404 with the code unknown_session. \
                 Gym's blackjack plays an empty hand, or fails.",
    },
    Difference {
        recordings: BLACKJACK,
        steps: Steps::Named(&[
            ("an easy message in the output", &["hit"]),
            ("an unknown item in the output", &["unknown item"]),
            ("a reset with an unknown parameter", &["reset"]),
        ]),
        what: &["status", "body"],
        reason: verify::KEPT,
    },
    Difference {
        recordings: BLACKJACK,
        steps: Steps::Named(&[("bad steps", &["message without content"])]),
        what: &["body/detail/0/loc/4"],
        reason: verify::DEEP_ERROR,
    },
];

/// Whether a step does not know the session, and need not.
fn is_unknown_to_a_step(case: &Case<'_>, _: &Found) -> bool {
    case.route() == "/step" && !case.played.session_is_open && case.reply()["code"] == "unknown_session"
}
