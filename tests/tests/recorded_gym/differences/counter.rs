//! What the server that keeps state, and types it, answers otherwise.

use super::{Case, Difference, Found, Steps};

const BOTH: &[&str] = &["counter", "counter_mcp"];
const PLAIN: &[&str] = &["counter"];

pub(super) const DIFFERENCES: &[Difference] = &[
    Difference {
        recordings: PLAIN,
        steps: Steps::Where(is_unknown_to_a_tool),
        what: &["status", "body", "cookie", "header vary"],
        reason: "A tool call of a session that is not open is answered 404 with the code unknown_session. Gym's counter \
                 begins to count.",
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Where(is_masked),
        what: &[
            "body/reward",
            "body/mask_sample",
            "body/failure_kind",
            "body/failure_reason",
            "cookie",
            "header vary",
        ],
        reason: "A verify of a session that is not open, such as one that was verified before, is answered with a \
                 masked sample, so that nobody trains on it. Gym's counter counts from 0 and never ends a session.",
    },
];

/// Whether a tool does not know the session, and need not.
fn is_unknown_to_a_tool(case: &Case<'_>, _: &Found) -> bool {
    let is_tool = ["/get_counter_value", "/increment_counter"].contains(&case.route());
    is_tool && !case.played.session_is_open && case.reply()["code"] == "unknown_session"
}

/// Whether a verify does not know the session, and need not.
fn is_masked(case: &Case<'_>, _: &Found) -> bool {
    let is_verify = case.route() == "/verify" && case.played.answer.status == 200;
    is_verify && !case.played.session_is_open && case.reply()["failure_kind"] == "session_lost"
}
