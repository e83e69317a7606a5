//! What the server that keeps state, and types it, answers otherwise.

use super::{Case, Difference, Found, Steps};

const BOTH: &[&str] = &["counter", "counter_mcp"];
const PLAIN: &[&str] = &["counter"];
const MCP: &[&str] = &["counter_mcp"];

const SIXTY_FOUR_BITS: &str =
    "The counter is an i64, which has an end: larger numbers are refused, and the count stops there.";
const TYPED_EPISODE: &str = "An episode's seed is read as one: the body's ID is the session's, and the author's fields \
                             are in task_data. Gym's counter reads the legacy form alone.";
const ODD_COOKIE: &str =
    "A signed cookie whose content is not that of a session names none. Gym fails, by a 500.";

pub(super) const DIFFERENCES: &[Difference] = &[
    Difference {
        recordings: BOTH,
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
                 masked sample, so that nobody trains on it. Gym's counter never ends a session.",
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[("seed and count", &["the count stays"])]),
        what: &["body/count"],
        reason: "A legacy seed begins the session anew. Gym's counter keeps the first count.",
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[
            ("seeds with good values of other types", &["over 64 bits"]),
            ("bad tool calls", &["far over 64 bits"]),
        ]),
        what: &["status", "body"],
        reason: SIXTY_FOUR_BITS,
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[("bad tool calls", &["count over 63 bits", "count far over 64 bits"])]),
        what: &["body/count"],
        reason: SIXTY_FOUR_BITS,
    },
    Difference {
        recordings: MCP,
        steps: Steps::Named(&[("tool calls", &["its count"])]),
        what: &["body/result"],
        reason: SIXTY_FOUR_BITS,
    },
    Difference {
        recordings: MCP,
        steps: Steps::Named(&[("tool calls", &["count over HTTP"])]),
        what: &["body/count"],
        reason: SIXTY_FOUR_BITS,
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[("seeds with bad values", &["NaN", "Infinity", "float beyond floats"])]),
        what: &["status", "body", "cookie", "header vary"],
        reason: "NaN is no integer: 422. Gym finds that too, and then fails to write it into its reply.",
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[("seeds with bad values", &["number of 5000 digits"])]),
        what: &["status", "body"],
        reason: "A number that no type can hold is a wrong value: 422. Python does not read its digits: 400.",
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[("seeds with bad bodies", &["deep nesting"])]),
        what: &["status", "body"],
        reason: "JSON is read to a depth of 128. Python reads deeper.",
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[("episode seeds", &["episode"])]),
        what: &["cookie payload/session_id", "body/detail"],
        reason: TYPED_EPISODE,
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[("episode seeds", &["with the count"])]),
        what: &["status", "cookie payload/session_id", "body"],
        reason: TYPED_EPISODE,
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[(
            "episode seeds",
            &[
                "the same again",
                "of another episode",
                "without its other fields",
                "null ID",
                "ID of a wrong type",
            ],
        )]),
        what: &["status", "body"],
        reason: TYPED_EPISODE,
    },
    Difference {
        recordings: MCP,
        steps: Steps::Named(&[("seed replies", &["episode"])]),
        what: &["status", "body"],
        reason: TYPED_EPISODE,
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[("closes", &["empty object"])]),
        what: &["status", "body"],
        reason: "A close without an ID closes the cookie's session, for agents. Gym's needs an ID.",
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[("closes", &["attempt as a string"])]),
        what: &["status", "body"],
        reason: "A close for another episode than the one that the ID was closed for is refused. Gym's counter has no \
                 close of its own.",
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[("closes", &["seed after the close", "its count"])]),
        what: &["cookie payload/session_id"],
        reason: "A close sets no cookie, and the client keeps the one that it has.",
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[("routes that are not there", &["POST of a document"])]),
        what: &["status", "body", "header allow"],
        reason: "There are no documents: they are not found, whatever the method.",
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[("routes that are not there", &["a made-up method"])]),
        what: &["status", "body", "header allow", "header content-type", "header vary", "cookie"],
        reason: "Any method that HTTP's grammar has is read, and not allowed. uvicorn does not read it.",
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[("routes that are not there", &["percent-encoded name"])]),
        what: &["status", "body"],
        reason: "Paths are compared as they come. Starlette decodes them; no client encodes a tool's name.",
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[("rollout prefix", &["training capture"])]),
        what: &["status", "body"],
        reason: "training-token-capture/ behind a rollout is looked past, as model servers and the gateway do.",
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[
            ("seeds with cookies that name no session", &["not JSON"]),
            ("seeds with cookies of odd content", &["a list for ID", "an array", "a JSON string"]),
        ]),
        what: &["status", "body", "cookie", "header vary"],
        reason: ODD_COOKIE,
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[("seeds with cookies of odd content", &["a number for ID", "null for ID"])]),
        what: &["cookie payload/session_id"],
        reason: "A session ID is a string: other cookies name no session. Gym takes anything.",
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[("seeds with cookies of odd content", &["no session ID in it"])]),
        what: &["cookie payload/a"],
        reason: "A cookie holds a session ID and nothing besides. Gym keeps what else came.",
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[("seeds with cookies of odd content", &["more than a session ID"])]),
        what: &["cookie payload/other"],
        reason: "A cookie holds a session ID and nothing besides. Gym keeps what else came.",
    },
    Difference {
        recordings: PLAIN,
        steps: Steps::Named(&[("seeds with cookies of odd content", &["empty session ID"])]),
        what: &["status", "body"],
        reason: "A closed session is fenced, and the one with an empty ID was closed (closes / empty ID). Gym's counter \
                 has no close of its own.",
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
