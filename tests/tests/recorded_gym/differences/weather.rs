//! What the server without state answers otherwise.

use super::{Case, Difference, Found, Steps};

const WEATHER: &[&str] = &["weather"];

const STATELESS: &str = "A server without state remembers no sessions, and answers every seed and close, as the \
                         document says. Gym's base class refuses, by a 500.";

pub(super) const DIFFERENCES: &[Difference] = &[
    Difference {
        recordings: WEATHER,
        steps: Steps::Where(|case, found| {
            case.route() == "/seed_session" && found.got.as_ref() == body_id(case)
        }),
        what: &["cookie payload/session_id", "token"],
        reason: "The session of an episode's seed is the one that its body names, as the document says. Gym's cookie \
                 and token name another one.",
    },
    Difference {
        recordings: WEATHER,
        steps: Steps::Named(&[("an episode", &["seed again without a cookie"])]),
        what: &["body/resources_tools/headers/X-NeMo-Gym-Session-Token"],
        reason: "A repeated seed names the same session, whose token is the same. Gym's names a new one without a cookie.",
    },
    Difference {
        recordings: WEATHER,
        steps: Steps::Where(uses_no_state),
        what: &["cookie", "header vary"],
        reason: "No cookie is set where the handler did not use the session: this server keeps no state.",
    },
    Difference {
        recordings: WEATHER,
        steps: Steps::Named(&[
            ("an episode", &["seed after the close"]),
            ("conflicts", &["other episode", "other task", "its late seed"]),
        ]),
        what: &["status", "body", "cookie", "header vary"],
        reason: STATELESS,
    },
    Difference {
        recordings: WEATHER,
        steps: Steps::Named(&[("conflicts", &["close for another episode"])]),
        what: &["status", "body"],
        reason: STATELESS,
    },
    Difference {
        recordings: WEATHER,
        steps: Steps::Named(&[("episode seeds with good values", &["session of a cookie"])]),
        what: &["status", "body"],
        reason: "409 if cookie and body name different sessions, as the document says.",
    },
    Difference {
        recordings: WEATHER,
        steps: Steps::Named(&[(
            "seeds that are of the legacy form",
            &[
                "without episode_id",
                "without task_id",
                "without task_data",
                "extra field",
                "null ID",
                "empty ID",
                "number for ID",
                "null episode",
                "empty rollout",
                "rollout with a slash",
                "rollout with a reserved end",
                "negative attempt",
                "extra field in the episode",
                "empty taskset",
                "number for task",
                "null task data",
                "list for task data",
            ],
        )]),
        what: &["status", "body"],
        reason: "A seed with resources_session_id is an episode's, and what is wrong with it is said. Gym takes it for a \
                 legacy one, in silence.",
    },
    Difference {
        recordings: WEATHER,
        steps: Steps::Named(&[("seeds with bad bodies", &["array", "string", "null", "text"])]),
        what: &["body/detail"],
        reason: "A body that is no object is refused once. Gym refuses it as both forms of a seed.",
    },
];

fn body_id<'a>(case: &'a Case<'_>) -> Option<&'a serde_json::Value> {
    case.step.request.json.as_ref()?.get("resources_session_id")
}

/// Whether no cookie came, and the handler has no use for a session.
fn uses_no_state(case: &Case<'_>, found: &Found) -> bool {
    found.got.is_none() && ["/get_weather", "/verify"].contains(&case.route())
}
