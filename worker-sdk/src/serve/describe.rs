//! What a server says of itself to the gateway, without listening.

use serde::Serialize;

/// What `--describe` prints, as one JSON object.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Description {
    /// The kind, in the gateway's words.
    pub(crate) kind: &'static str,
    /// Which of the kind's two: the gateway takes the routes of the other one for ordinary tools.
    pub(crate) protocol: &'static str,
    pub(crate) session_cookie: String,
    /// Beyond the kind's own.
    pub(crate) session_start_routes: Vec<String>,
    /// Beyond the kind's own.
    pub(crate) session_end_routes: Vec<String>,
    pub(crate) routes_sessions_to_owner: bool,
    pub(crate) multiple_workers_unsupported_reason: Option<String>,
    /// Whether whoever knows the cookie's name can make one. Not for the gateway: it is warned of at the start.
    #[serde(skip)]
    pub(crate) is_forgeable: bool,
}

/// A server's name if nobody gave it one: its class's in lower case, such as `calculator` of `CalculatorServer`.
pub(crate) fn default_name(class: &str) -> String {
    let stem = ["ResourcesServer", "Server", "Env"].iter().find_map(|end| class.strip_suffix(end));
    let mut name = String::new();
    for letter in stem.filter(|stem| !stem.is_empty()).unwrap_or(class).chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_classes() {
        for (class, name) in [
            ("CalculatorServer", "calculator"),
            ("StatefulCounterResourcesServer", "stateful_counter"),
            ("BlackjackEnv", "blackjack"),
            ("Server", "server"),
            ("Plain", "plain"),
        ] {
            assert_eq!(default_name(class), name);
        }
    }
}
