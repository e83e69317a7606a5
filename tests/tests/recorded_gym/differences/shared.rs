//! What all servers answer otherwise.

use serde_json::{Value, json};

use super::{Case, Difference, Found, Steps};

const ALL: &[&str] = &["counter", "counter_mcp", "weather", "blackjack"];
const VERIFIED: &[&str] = &["counter", "counter_mcp", "weather"];

pub(super) const DIFFERENCES: &[Difference] = &[
    Difference {
        recordings: ALL,
        steps: Steps::Where(is_document),
        what: &["status", "header content-type"],
        reason: "There are no documents: no schema of the whole server is made, and no page that shows it.",
    },
    Difference {
        recordings: ALL,
        steps: Steps::Where(uses_no_session),
        what: &["cookie", "header vary"],
        reason: "A cookie is set on start routes and where the handler used the session, never otherwise: a gateway \
                 may take it for a session that began. Gym sets one on every reply.",
    },
    Difference {
        recordings: VERIFIED,
        steps: Steps::Where(is_echo),
        what: &["body/responses_create_params", "body/response"],
        reason: "The conversation is echoed as it came. Gym writes what pydantic made of it: absent fields with their \
                 defaults, whole floats with a fraction, items without the fields that it does not know.",
    },
];

/// Whether it is about FastAPI's description of the server.
fn is_document(case: &Case<'_>, _: &Found) -> bool {
    case.step.request.method == "GET" && ["/docs", "/redoc", "/openapi.json"].contains(&case.route())
}

/// Whether no cookie came, and no handler that uses the session was reached: not found, not allowed, redirected, refused
/// for its body, a close, a route of the server's own.
fn uses_no_session(case: &Case<'_>, found: &Found) -> bool {
    let routes = ["/", "/health", "/healthz", "/livez", "/readyz", "/docs", "/redoc", "/openapi.json"];
    let own = ["/aggregate_metrics", "/reverify_mode", "/close_session"];
    let route = case.route();
    let is_mcp = route == "/mcp" || route.starts_with("/mcp/");
    let is_refused = matches!(case.played.answer.status, 307 | 404 | 405 | 422);
    found.got.is_none() && (is_mcp || routes.contains(&route) || own.contains(&route) || is_refused)
}

/// Whether what came is what was sent, and pydantic's is but a default, the same number, or nothing.
pub(super) fn is_echo(case: &Case<'_>, found: &Found) -> bool {
    let sent = found.what.strip_prefix("body").and_then(|at| case.step.request.json.as_ref()?.pointer(at));
    let is_alike = match (&found.want, &found.got) {
        (Some(want), None) => is_default(&found.what, want),
        (Some(Value::Number(want)), Some(Value::Number(got))) => want.as_f64() == got.as_f64(),
        (None, Some(_)) => true,
        _ => false,
    };
    case.route() == "/verify" && sent == found.got.as_ref() && is_alike
}

fn is_default(what: &str, value: &Value) -> bool {
    let defaults = [
        ("/parallel_tool_calls", json!(true)),
        ("/tool_choice", json!("auto")),
        ("/tools", json!([])),
        ("/type", json!("message")),
    ];
    value.is_null() || defaults.iter().any(|(end, default)| what.ends_with(end) && value == default)
}
