//! Where the Rust server answers otherwise than the Python one, and why.
//!
//! A difference that is not here fails the replay, and so does one that is here and does not occur.

/// One step's difference.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) scenario: &'static str,
    pub(crate) step: &'static str,
    /// Every part of the reply that differs.
    pub(crate) what: &'static [&'static str],
    /// What the reply's body has instead.
    pub(crate) ours: &'static str,
    pub(crate) _reason: &'static str,
}

const fn at(
    scenario: &'static str,
    step: &'static str,
    what: &'static [&'static str],
    ours: &'static str,
    reason: &'static str,
) -> Difference {
    Difference { scenario, step, what, ours, _reason: reason }
}

const NO_CLASS: &str = "an error in Rust has words and no class; the client's exception has the same words";
const NO_SECRETS: &str = "what is wrong is the client's header, which is no fault of the server's: 400. The Python server says \
                          in which of its lines the header failed";
const X_SECRETS: &str = "X-Secrets must be base64 of a JSON object";

pub(crate) const DIFFERENCES: &[Difference] = &[
    at(
        "server",
        "version",
        &["body"],
        concat!("\"version\":\"", env!("CARGO_PKG_VERSION"), "\""),
        "it is the version of the SDK that serves; the client only shows it",
    ),
    at(
        "server",
        "docs",
        &["status", "header content-type", "body"],
        "Not Found",
        "there are no pages of documentation; no client asks for them",
    ),
    at(
        "long_results",
        "space_at_the_edge",
        &["body"],
        "event: chunk\r\ndata: \\u0020 ",
        "the client strips white space at the beginning of each piece, and the text would lose it: it is escaped there",
    ),
    at(
        "create_bodies",
        "no_such_toolset",
        &["body"],
        "unknown toolset 'hammer'; valid options are []",
        "the Python package's own sets of tools for its sandboxes are not here",
    ),
    at(
        "create_bodies",
        "spec_without_target",
        &["status", "body"],
        r#"{"type":"missing","loc":["body","task_spec","target"]"#,
        "the task has a type, which says what is missing and that the request is at fault; Python's fails where it is used",
    ),
    at("create_bodies", "making_fails", &["body"], r#"{"detail":"no room"}"#, NO_CLASS),
    at(
        "create_bodies",
        "latin",
        &["status", "body"],
        r#"{"sid":"cé"}"#,
        "an ID may have any characters; the Python server fails to log this one",
    ),
    at("secrets", "no_base64", &["status", "body"], X_SECRETS, NO_SECRETS),
    at("secrets", "no_json", &["status", "body"], X_SECRETS, NO_SECRETS),
    at("secrets", "no_object", &["status", "body"], X_SECRETS, NO_SECRETS),
    at("secrets", "no_value", &["status", "body"], X_SECRETS, NO_SECRETS),
    at("secrets", "no_inner", &["status", "body"], X_SECRETS, NO_SECRETS),
    at("setup", "failing_prompt", &["body"], r#"{"detail":"no sandbox"}"#, NO_CLASS),
    at("setup", "failing_messages", &["body"], r#"{"detail":"no sandbox"}"#, NO_CLASS),
    at("setup", "failing_tools", &["body"], r#"{"detail":"no sandbox"}"#, NO_CLASS),
    at("setup", "failing_call", &["body"], r#"{"detail":"no sandbox"}"#, NO_CLASS),
    at(
        "groups",
        "bad_body",
        &["status", "body"],
        "does not implement score_group",
        "environments cannot compare candidates here, so nobody looks at them",
    ),
];
