//! Histories of OpenEnv's sessions: over HTTP, over WebSockets, and over both.

use super::{
    config,
    script::{Step::*, tell, tell_on},
    stage::Stage,
};
use crate::config::Kind;

const CREATE: &str = "POST /mcp create";
const CALL: &str = "POST /mcp rpc=a";
const WS: &str = "GET /ws upgrade";
const MCP_WS: &str = "GET /mcp upgrade";
const ATTACH: &str = "GET /ws?session_id=a upgrade";

fn made(title: &str, rest: Vec<super::script::Step>) {
    let mut steps = vec![
        Send("create", CREATE, "0.1"),
        StateOf("create", "claimed 0.1 in flight 1"),
        Answer("create", "200", ""),
        StateOf("create", "claimed 0.1 in flight 1"),
        Said("create", "created=a"),
        StateOf("create", "open 0.1 in flight 1"),
        State("a", "open 0.1 in flight 1"),
        End("create"),
        State("a", "open 0.1"),
    ];
    steps.extend(rest);
    tell(Kind::OpenEnv, title, &steps);
}

#[test]
fn a_session_over_http() {
    made(
        "create, call, close",
        vec![
            Send("other", CREATE, "1.1"),
            Said("other", "created=b"),
            End("other"),
            Play(CALL, "200", "0.1"),
            Play("POST /mcp rpc=b", "200", "1.1"),
            State("a", "open 0.1"),
            Send("close", CALL, "0.1"),
            Answer("close", "200", ""),
            Said("close", "closed=a"),
            State("a", "ended 0.1 in flight 1"),
            End("close"),
            Load(0, 0),
            Load(1, 1),
            // Its worker says that it does not know it any more.
            Play(CALL, "200", "0.1"),
            State("a", "ended 0.1"),
            Pass(300),
            State("a", "none"),
        ],
    );
}

#[test]
fn what_nobody_created_is_balanced_and_claims_nothing() {
    tell(
        Kind::OpenEnv,
        "unknown IDs, and requests without any",
        &[
            Send("x", "POST /mcp rpc=x", "0.1"),
            State("x", "none"),
            Answer("x", "200", ""),
            End("x"),
            State("x", "none"),
            Send("ws", "GET /ws?session_id=x upgrade", "0.1"),
            Answer("ws", "101", ""),
            End("ws"),
            State("x", "none"),
            Play("POST /mcp", "200", "0.1"),
            Play("POST /reset", "200", "0.1"),
            Play("GET /health", "200", "0.1"),
            Load(0, 0),
        ],
    );
    tell(
        Kind::OpenEnv,
        "a create that fails leaves nothing",
        &[
            Send("full", CREATE, "0.1"),
            Answer("full", "200", ""),
            Load(0, 1),
            End("full"),
            Load(0, 0),
            Send("unsent", CREATE, "0.1"),
            Withdraw("unsent", true),
            Load(0, 0),
            Send("ws", WS, "0.1"),
            Answer("ws", "403", ""),
            End("ws"),
            Load(0, 0),
        ],
    );
}

#[test]
fn errors_change_nothing() {
    made(
        "answers that say nothing",
        vec![
            Send("call", CALL, "0.1"),
            Answer("call", "200", ""),
            End("call"),
            State("a", "open 0.1"),
            Play(CALL, "500", "0.1"),
            State("a", "open 0.1"),
            // Another worker's session cannot be closed by this one.
            Send("other", CREATE, "1.1"),
            Said("other", "closed=a"),
            Said("other", "closing=a"),
            State("a", "open 0.1"),
        ],
    );
}

#[test]
fn a_websocket_is_a_session_while_it_lasts() {
    for socket in [WS, MCP_WS] {
        tell(
            Kind::OpenEnv,
            socket,
            &[
                Send("one", socket, "0.1"),
                Send("two", socket, "1.1"),
                Answer("one", "101", ""),
                StateOf("one", "open 0.1 in flight 1"),
                Pass(100_000),
                StateOf("one", "open 0.1 in flight 1"),
                Load(0, 1),
                End("one"),
                Load(0, 0),
                Answer("two", "101", ""),
                End("two"),
                Load(1, 0),
            ],
        );
    }
}

#[test]
fn a_websocket_s_own_id_can_be_learned() {
    tell(
        Kind::OpenEnv,
        "create over a WebSocket",
        &[
            Send("ws", WS, "0.1"),
            Answer("ws", "101", ""),
            Said("ws", "created=a"),
            Said("ws", "created=a"),
            State("a", "open 0.1 in flight 1"),
            Load(0, 1),
            Play(CALL, "200", "0.1"),
            Send("second", ATTACH, "0.1"),
            Answer("second", "101", ""),
            End("second"),
            State("a", "open 0.1 in flight 1"),
            End("ws"),
            State("a", "ended 0.1"),
            Load(0, 0),
            Play(CALL, "200", "0.1"),
            Pass(300),
            State("a", "none"),
        ],
    );
}

#[test]
fn detaching_keeps_a_session_unless_it_is_closing() {
    made(
        "attach and detach",
        vec![
            Send("ws", ATTACH, "0.1"),
            Answer("ws", "101", ""),
            State("a", "open 0.1 in flight 1"),
            Load(0, 1),
            End("ws"),
            State("a", "open 0.1"),
            Send("ws", ATTACH, "0.1"),
            Answer("ws", "101", ""),
            Send("close", CALL, "0.1"),
            Said("close", "closing=a"),
            End("close"),
            State("a", "open 0.1 in flight 1"),
            // A second one, which its worker refuses once it is open, is no detach.
            Send("refused", ATTACH, "0.1"),
            Answer("refused", "101", ""),
            End("refused"),
            State("a", "open 0.1 in flight 1"),
            End("ws"),
            State("a", "ended 0.1"),
        ],
    );
    made(
        "the answer to a close is overtaken by the detach",
        vec![
            Send("ws", ATTACH, "0.1"),
            Answer("ws", "101", ""),
            Send("close", CALL, "0.1"),
            End("ws"),
            State("a", "open 0.1 in flight 1"),
            Said("close", "closing=a"),
            State("a", "ended 0.1 in flight 1"),
            End("close"),
        ],
    );
}

#[test]
fn what_an_exit_loses() {
    made(
        "the owner exits",
        vec![
            Send("ws", ATTACH, "0.1"),
            Answer("ws", "101", ""),
            Send("call", CALL, "0.1"),
            Exit(0),
            Cut("call", "session_lost"),
            End("call"),
            End("ws"),
            State("a", "lost"),
            Send("late", CALL, "session_lost"),
            Send("late", ATTACH, "session_lost"),
            Load(0, 0),
            Pass(86_400),
            Play(CALL, "200", "0.2"),
        ],
    );
    tell(
        Kind::OpenEnv,
        "a session that nobody has heard of can be asked for again",
        &[Send("create", CREATE, "0.1"), Exit(0), Cut("create", "worker_error"), End("create"), Load(0, 0)],
    );
    tell(
        Kind::OpenEnv,
        "the owner exits while it tells the ID",
        &[
            Send("ws", WS, "0.1"),
            Answer("ws", "101", ""),
            Exit(0),
            Said("ws", "created=a"),
            State("a", "none"),
            End("ws"),
            Load(0, 0),
        ],
    );
}

#[test]
fn a_full_worker_is_passed_over() {
    let mut config = config(Kind::OpenEnv);
    config.settings.max_sessions_per_worker = Some(2);
    tell_on(
        Stage::new(&config),
        "two sessions on each of two workers",
        &[
            Send("1", WS, "0.1"),
            Send("2", CREATE, "1.1"),
            Send("3", MCP_WS, "0.1"),
            Said("2", "created=a"),
            End("2"),
            Exit(0),
            Send("4", WS, "0.2"),
            Send("5", WS, "0.2"),
            Send("6", WS, "1.1"),
            Send("full", WS, "capacity_reached"),
            Send("full", CREATE, "capacity_reached"),
            // What begins no session needs no room.
            Play(CALL, "200", "1.1"),
            Play("POST /reset", "200", "0.2"),
            End("4"),
            Send("7", CREATE, "0.2"),
            Send("full", WS, "capacity_reached"),
            Send("close", CALL, "1.1"),
            Said("close", "closed=a"),
            Send("8", WS, "1.1"),
        ],
    );
}

#[test]
fn plain_balancing_has_no_sessions() {
    let mut config = config(Kind::OpenEnv);
    config.settings.routes_sessions_to_owner = false;
    config.settings.max_sessions_per_worker = Some(1);
    tell_on(
        Stage::new(&config),
        "switched off",
        &[
            Send("1", WS, "0.1"),
            Send("2", WS, "0.1"),
            Answer("1", "101", ""),
            Said("1", "created=a"),
            State("a", "none"),
        ],
    );
}
