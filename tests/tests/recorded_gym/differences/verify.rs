//! What the counter's verify and metrics answer otherwise.

use serde_json::Value;

use super::{Case, Difference, Found, Steps};

const COUNTER: &[&str] = &["counter"];

/// How far two floats may be apart, by the larger: two bits of the last.
const LAST_BITS: f64 = 4.0 * f64::EPSILON;

pub(super) const DEEP_ERROR: &str = "What is wrong in the middle of a conversation is refused with the same status, and \
                                     with other words than those of pydantic's unions.";
pub(super) const KEPT: &str = "Items, tools and parameters that the SDK does not know are kept as they came: a newer \
                               model may write them. Gym refuses them.";

pub(super) const DIFFERENCES: &[Difference] = &[
    Difference {
        recordings: COUNTER,
        steps: Steps::Named(&[
            ("verify of whole conversations", &["easy messages in the output"]),
            (
                "verify of items of other types",
                &[
                    "unknown type",
                    "no type",
                    "unknown tool in tools",
                    "unknown input item",
                    "unknown parameter",
                ],
            ),
        ]),
        what: &["status", "body"],
        reason: KEPT,
    },
    Difference {
        recordings: COUNTER,
        steps: Steps::Named(&[
            ("verify of whole conversations", &["token IDs without log probabilities"]),
            ("verify with bad bodies", &["bad object", "bad status"]),
        ]),
        what: &["status", "body"],
        reason: "Of a conversation only the types are checked that authors use. Gym checks which names a status may \
                 have, and that a message has all fields on its tokens or none.",
    },
    Difference {
        recordings: &["counter", "counter_mcp"],
        steps: Steps::Where(is_whole_input),
        what: &["body/detail"],
        reason: "For an author's field that is missing, the object without it is shown without the conversation, which \
                 may be megabytes.",
    },
    Difference {
        recordings: COUNTER,
        steps: Steps::Named(&[("verify with bad bodies", &["string as item"])]),
        what: &["body/detail/0/type", "body/detail/0/msg", "body/detail/0/ctx"],
        reason: DEEP_ERROR,
    },
    Difference {
        recordings: COUNTER,
        steps: Steps::Named(&[("verify with bad bodies", &["message without content"])]),
        what: &["body/detail/0/loc/4"],
        reason: DEEP_ERROR,
    },
    Difference {
        recordings: COUNTER,
        steps: Steps::Named(&[("verify with bad bodies", &["NaN is in it"])]),
        what: &["body/detail"],
        reason: "NaN is no number in a conversation: it could not be echoed as JSON. Gym takes it until it has to write \
                 it.",
    },
    Difference {
        recordings: COUNTER,
        steps: Steps::Named(&[("verify with bad bodies", &["bad role"])]),
        what: &["body/responses_create_params/input/0/type"],
        reason: "An item without a type is echoed without one. Gym takes this one for a list of MCP tools.",
    },
    Difference {
        recordings: &["counter", "blackjack"],
        steps: Steps::Where(is_in_the_last_bits),
        what: &["body/agent_metrics", "body/repeat_level_metrics"],
        reason: "Student's t is computed by other steps than SciPy's: the bounds of an interval may differ in the last \
                 bits.",
    },
];

/// Whether the conversation alone is not in the `input` of a missing field.
fn is_whole_input(case: &Case<'_>, found: &Found) -> bool {
    let is_input =
        found.what.ends_with("/input/responses_create_params") || found.what.ends_with("/input/response");
    case.route() == "/verify" && case.played.answer.status == 422 && is_input && found.got.is_none()
}

fn is_in_the_last_bits(case: &Case<'_>, found: &Found) -> bool {
    let number = |value: &Option<Value>| value.as_ref().and_then(Value::as_f64);
    let (Some(want), Some(got)) = (number(&found.want), number(&found.got)) else { return false };
    let is_bound = ["ci_low_95", "ci_high_95"].iter().any(|bound| found.what.contains(bound));
    case.route() == "/aggregate_metrics" && is_bound && (want - got).abs() <= LAST_BITS * want.abs()
}
