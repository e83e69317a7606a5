//! Histories of the kinds whose sessions are named by a header.

use super::script::{Step::*, tell};
use crate::config::Kind;

const CREATE: &str = "POST /create sid=a";
const CALL: &str = "POST /env/call sid=a";
const PING: &str = "POST /ping sid=a";
const DELETE: &str = "POST /delete sid=a";

#[test]
fn an_ors_session() {
    tell(
        Kind::Ors,
        "create, calls, delete",
        &[
            Play("POST /create_session", "200", "0.1"),
            Send("c", CREATE, "0.1"),
            State("a", "claimed 0.1 in flight 1"),
            Answer("c", "200", ""),
            State("a", "open 0.1 in flight 1"),
            End("c"),
            // Somebody else's goes elsewhere.
            Play("POST /create sid=b", "200", "1.1"),
            Play(CALL, "200", "0.1"),
            Play("GET /env/prompt sid=a", "200", "0.1"),
            Play(DELETE, "200", "0.1"),
            State("a", "ended 0.1"),
            Play("POST /delete_session sid=a", "200", "0.1"),
            Play(PING, "404", "0.1"),
            Pass(300),
            State("a", "none"),
        ],
    );
    tell(
        Kind::Ors,
        "the second create of an ID meets the first, and may follow its end",
        &[
            Send("1", CREATE, "0.1"),
            Send("2", CREATE, "0.1"),
            Answer("1", "200", ""),
            Answer("2", "400", ""),
            End("2"),
            End("1"),
            State("a", "open 0.1"),
            Play(DELETE, "200", "0.1"),
            Play(CREATE, "200", "0.1"),
            State("a", "open 0.1"),
        ],
    );
    tell(
        Kind::Ors,
        "a create whose client leaves, and one that fails",
        &[
            Send("1", CREATE, "0.1"),
            End("1"),
            State("a", "claimed 0.1"),
            Play("POST /create sid=b", "500", "1.1"),
            State("b", "claimed 1.1"),
            Play(CREATE, "400", "0.1"),
            Pass(300),
            State("a", "none"),
            State("b", "none"),
        ],
    );
}

#[test]
fn a_ping_keeps_an_ors_session_and_an_unknown_one_is_nobodys() {
    tell(
        Kind::Ors,
        "pings move the timer",
        &[
            Play(CREATE, "200", "0.1"),
            Pass(899),
            Play(PING, "200", "0.1"),
            Pass(899),
            State("a", "open 0.1"),
            // The worker has given it up: that is no use of it.
            Play(PING, "404", "0.1"),
            Pass(1),
            State("a", "lost"),
            Send("x", CALL, "session_lost"),
            Send("x", CREATE, "session_lost"),
        ],
    );
    tell(
        Kind::Ors,
        "a long call is not idle",
        &[
            Play(CREATE, "200", "0.1"),
            Send("c", CALL, "0.1"),
            Pass(10_000),
            State("a", "open 0.1 in flight 1"),
            Answer("c", "200", ""),
            End("c"),
            Pass(899),
            State("a", "open 0.1"),
            Pass(1),
            State("a", "lost"),
        ],
    );
    tell(
        Kind::Ors,
        "an ID that no worker knows is claimed by none",
        &[
            Play(CALL, "404", "0.1"),
            State("a", "none"),
            Play(CALL, "503", "0.1"),
            State("a", "none"),
            Play(CALL, "200", "0.1"),
            State("a", "claimed 0.1"),
            Play("GET /health sid=b", "200", "1.1"),
            State("b", "none"),
        ],
    );
}

#[test]
fn an_ors_owner_exits() {
    tell(
        Kind::Ors,
        "open and claimed are lost, ended is not",
        &[
            Play(CREATE, "200", "0.1"),
            Send("c", CALL, "0.1"),
            Answer("c", "200", ""),
            Exit(0),
            Cut("c", "session_lost"),
            End("c"),
            State("a", "lost"),
            Send("x", PING, "session_lost"),
            Send("x", DELETE, "session_lost"),
            Play("GET /health sid=a", "200", "0.2"),
            Play("POST /create sid=b", "200", "0.2"),
            Play("POST /delete sid=b", "200", "0.2"),
            Exit(0),
            State("b", "ended 0.2"),
            Send("x", "POST /delete_session sid=b", "session_lost"),
        ],
    );
}

const TOOL: &str = "POST /mcp sid=a";

#[test]
fn an_mcp_session() {
    tell(
        Kind::Mcp,
        "initialize, calls, delete",
        &[
            Send("i", "POST /mcp", "0.1"),
            State("a", "none"),
            Answer("i", "200 sid=a", ""),
            State("a", "open 0.1 in flight 1"),
            // The client goes on while the reply's stream is still open.
            Play("POST /mcp sid=a", "202", "0.1"),
            End("i"),
            Play("POST /mcp", "200 sid=b", "1.1"),
            Play(TOOL, "200 sid=a", "0.1"),
            Play("DELETE /mcp sid=a", "200 sid=a", "0.1"),
            State("a", "ended 0.1"),
            Play(TOOL, "404", "0.1"),
            Pass(300),
            State("a", "none"),
            State("b", "open 1.1"),
        ],
    );
    tell(
        Kind::Mcp,
        "a refused initialize, and a server without sessions",
        &[
            Play("POST /mcp", "400 sid=a", "0.1"),
            State("a", "none"),
            Play("POST /mcp", "200", "0.1"),
            State("a", "none"),
        ],
    );
    tell(
        Kind::Mcp,
        "a late reply does not bring an ended one back",
        &[
            Play("POST /mcp", "200 sid=a", "0.1"),
            Send("t", TOOL, "0.1"),
            Play("DELETE /mcp sid=a", "200", "0.1"),
            Answer("t", "200 sid=a", ""),
            End("t"),
            State("a", "ended 0.1"),
        ],
    );
    tell(
        Kind::Mcp,
        "a server that begins a session for a request of another",
        &[
            Play("POST /mcp sid=stale", "200 sid=a", "0.1"),
            State("stale", "none"),
            State("a", "open 0.1"),
            Send("2", TOOL, "0.1"),
            Answer("2", "200 sid=b", ""),
            State("a", "open 0.1"),
            State("b", "open 0.1 in flight 1"),
            End("2"),
        ],
    );
    tell(
        Kind::Mcp,
        "two workers that give out the same ID",
        &[
            Play("POST /mcp", "200 sid=a", "0.1"),
            Play("POST /mcp", "200 sid=a", "1.1 clash"),
            State("a", "open 0.1"),
            Play(TOOL, "200 sid=a", "0.1"),
        ],
    );
    tell(
        Kind::Mcp,
        "a delete that is not allowed, or fails",
        &[
            Play("POST /mcp", "200 sid=a", "0.1"),
            Play("DELETE /mcp sid=a", "405", "0.1"),
            Play("DELETE /mcp sid=a", "500", "0.1"),
            State("a", "open 0.1"),
            Play("DELETE /mcp sid=z", "404", "1.1"),
            State("z", "none"),
        ],
    );
}

#[test]
fn an_mcp_event_stream_is_not_in_flight() {
    tell(
        Kind::Mcp,
        "a stream stays open",
        &[
            Play("POST /mcp", "200 sid=a", "0.1"),
            Send("g", "GET /mcp sid=a", "0.1"),
            Answer("g", "200 sid=a", ""),
            State("a", "open 0.1"),
            Play("DELETE /mcp sid=a", "200", "0.1"),
            Pass(300),
            State("a", "none"),
            End("g"),
            State("a", "none"),
        ],
    );
    tell(
        Kind::Mcp,
        "its owner exits",
        &[
            Play("POST /mcp", "200 sid=a", "0.1"),
            Send("g", "GET /mcp sid=a", "0.1"),
            Answer("g", "200 sid=a", ""),
            Send("t", TOOL, "0.1"),
            Exit(0),
            Cut("t", "session_lost"),
            Cut("g", "session_lost"),
            End("t"),
            End("g"),
            State("a", "lost"),
            Send("x", "GET /mcp sid=a", "session_lost"),
            Send("x", "DELETE /mcp sid=a", "session_lost"),
            Send("x", TOOL, "session_lost"),
            Play("POST /mcp", "200 sid=c", "0.2"),
            State("c", "open 0.2"),
        ],
    );
}
