//! Histories: what happens to a session, and what the next request gets.

use super::script::{CLOSE, RESET, SEED, STEP, Step::*, TOOL, VERIFY, tell};
use crate::config::Kind;

#[test]
fn an_episode_by_body_id() {
    tell(
        Kind::Resources,
        "seed, tools, verify, close",
        &[
            Send("s", SEED, "0.1"),
            State("a", "claimed 0.1 in flight 1"),
            Answer("s", "200 cookie=a", ""),
            State("a", "open 0.1 in flight 1"),
            End("s"),
            Play(TOOL, "200 cookie=a", "0.1"),
            Play(VERIFY, "200 cookie=a", "0.1"),
            State("a", "open 0.1"),
            Play(CLOSE, "200 cookie=a", "0.1"),
            State("a", "ended 0.1 fenced"),
            Play(CLOSE, "200", "0.1"),
            Send("late", SEED, "session_closed"),
            Send("late", RESET, "session_closed"),
            Play(TOOL, "200", "0.1"),
            Pass(299),
            State("a", "ended 0.1 fenced"),
            Pass(1),
            State("a", "none"),
        ],
    );
    tell(
        Kind::Resources,
        "the gateway adds a cookie that the worker does not set",
        &[
            Play(SEED, "200", "0.1 add a"),
            Play(SEED, "200 raw=junk", "0.1"),
            Play(SEED, "500", "0.1"),
            Play("POST /verify cookie=a", "200", "0.1"),
        ],
    );
}

#[test]
fn legacy_and_gymnasium_episodes() {
    tell(
        Kind::Resources,
        "verify ends what no body ID seeded",
        &[
            Play("POST /seed_session cookie=a", "200 cookie=a", "0.1"),
            State("a", "open 0.1"),
            Play(VERIFY, "200 cookie=a says=open", "0.1"),
            State("a", "open 0.1"),
            Play(VERIFY, "500 cookie=a", "0.1"),
            State("a", "open 0.1"),
            Play(VERIFY, "200 cookie=a", "0.1"),
            State("a", "ended 0.1"),
            Play("POST /seed_session cookie=a", "200 cookie=a", "0.1"),
            State("a", "open 0.1"),
        ],
    );
    tell(
        Kind::Resources,
        "a terminal step of what reset began",
        &[
            Play(RESET, "200 cookie=a", "0.1"),
            Send("1", STEP, "0.1"),
            Answer("1", "200 cookie=a", ""),
            Over("1"),
            State("a", "ended 0.1 in flight 1"),
            End("1"),
            Play(RESET, "200 cookie=a", "0.1"),
            State("a", "open 0.1"),
            Send("2", STEP, "0.1"),
            Answer("2", "422 cookie=a", ""),
            Over("2"),
            State("a", "open 0.1 in flight 1"),
            End("2"),
            Play("POST /close cookie=a", "200", "0.1"),
            State("a", "ended 0.1"),
            Play(RESET, "200 cookie=a", "0.1"),
            State("a", "open 0.1"),
        ],
    );
    tell(
        Kind::Resources,
        "a terminal step of what a seed began",
        &[
            Play(SEED, "200 cookie=a", "0.1"),
            Play(RESET, "200 cookie=a", "0.1"),
            Send("1", STEP, "0.1"),
            Answer("1", "200 cookie=a", ""),
            Over("1"),
            End("1"),
            Play(VERIFY, "200", "0.1"),
            State("a", "open 0.1"),
        ],
    );
    tell(
        Kind::Resources,
        "a worker says that it ended",
        &[
            Play(SEED, "200 cookie=a", "0.1"),
            Play(TOOL, "500 says=ended", "0.1"),
            State("a", "open 0.1"),
            Play(TOOL, "200 says=ended", "0.1"),
            State("a", "ended 0.1"),
        ],
    );
}

#[test]
fn claims_and_what_becomes_of_them() {
    tell(
        Kind::Resources,
        "two first requests meet at one worker",
        &[
            Send("1", SEED, "0.1"),
            Send("2", SEED, "0.1"),
            Send("b", "POST /seed_session body=b", "1.1"),
            Withdraw("1", false),
            Withdraw("2", true),
            State("a", "none"),
        ],
    );
    tell(
        Kind::Resources,
        "no reply used it",
        &[
            Send("1", TOOL, "0.1"),
            Send("2", TOOL, "0.1"),
            Answer("1", "500", ""),
            End("1"),
            State("a", "claimed 0.1 in flight 1"),
            End("2"),
            State("a", "none"),
        ],
    );
    tell(
        Kind::Resources,
        "a reply used it",
        &[Play(TOOL, "422 cookie=a", "0.1"), State("a", "claimed 0.1"), Pass(300), State("a", "none")],
    );
    tell(
        Kind::Resources,
        "a start or close counts, with a reply or without",
        &[
            Send("1", SEED, "0.1"),
            End("1"),
            State("a", "claimed 0.1"),
            Play("POST /close_session body=b", "500", "1.1"),
            State("b", "claimed 1.1"),
            Play(SEED, "200 cookie=a", "0.1"),
            State("a", "open 0.1"),
        ],
    );
    tell(
        Kind::Resources,
        "404 and 405 have no session",
        &[
            Play(TOOL, "404 cookie=a", "0.1 drop"),
            State("a", "none"),
            Play(SEED, "405 cookie=a", "0.1 drop"),
            State("a", "none"),
            Play("POST /tool", "404 cookie=t", "0.1 drop"),
            State("t", "none"),
            Play(SEED, "200 cookie=a", "0.1"),
            Pass(80_000),
            Play(TOOL, "404 cookie=a", "0.1 drop"),
            Pass(6_400),
            State("a", "lost"),
        ],
    );
    tell(
        Kind::Resources,
        "a close of what nobody seeded",
        &[
            Play(CLOSE, "200 cookie=a", "0.1"),
            State("a", "ended 0.1 fenced"),
            Send("1", SEED, "session_closed"),
        ],
    );
    tell(
        Kind::Resources,
        "a close overtakes a seed",
        &[
            Send("1", SEED, "0.1"),
            Play(CLOSE, "200", "0.1"),
            Answer("1", "200 cookie=a", ""),
            End("1"),
            State("a", "ended 0.1 fenced"),
        ],
    );
    tell(
        Kind::Resources,
        "a close that fails fences nothing",
        &[Play(SEED, "200", "0.1 add a"), Play(CLOSE, "500", "0.1"), State("a", "open 0.1")],
    );
}

#[test]
fn requests_without_a_session() {
    tell(
        Kind::Resources,
        "takes the ID of its reply's cookie",
        &[
            Send("1", "POST /tool", "0.1"),
            Answer("1", "200 cookie=t", ""),
            State("t", "claimed 0.1 in flight 1"),
            Send("2", "POST /tool cookie=t", "0.1"),
            End("1"),
            End("2"),
            State("t", "claimed 0.1"),
        ],
    );
    tell(
        Kind::Agent,
        "an agent's session",
        &[
            Play("POST /v1/agent_sessions body=a", "200", "0.1"),
            State("a", "open 0.1"),
            Play("POST /v1/agent_sessions/close body=a", "200", "0.1"),
            Send("1", "POST /v1/agent_sessions body=a", "session_closed"),
        ],
    );
    tell(
        Kind::Resources,
        "a close that only its reply names",
        &[Play("POST /close_session", "200 cookie=t", "0.1"), State("t", "ended 0.1 fenced")],
    );
    tell(
        Kind::Resources,
        "session-less routes",
        &[
            Play("GET /health", "200 cookie=t", "0.1 drop"),
            State("t", "none"),
            Play("GET /health cookie=a", "200 cookie=a", "0.1 drop"),
            State("a", "none"),
            Play(SEED, "200", "0.1 add a"),
            Play("GET /health", "200", "1.1"),
            Pass(86_399),
            Send("h", "GET /health cookie=a", "0.1"),
            State("a", "open 0.1"),
            Pass(1),
            End("h"),
            State("a", "lost"),
            Play("GET /health cookie=a", "200", "0.1"),
        ],
    );
    tell(
        Kind::Resources,
        "the reply's cookie is another worker's session",
        &[Play(SEED, "200", "0.1 add a"), Play("POST /tool", "200 cookie=a", "1.1"), State("a", "open 0.1")],
    );
}

#[test]
fn mcp() {
    tell(
        Kind::Resources,
        "by token alone",
        &[
            Play("POST /mcp cookie=a", "200 cookie=t", "0.1"),
            State("a", "none"),
            State("t", "none"),
            Play(SEED, "200", "0.1 add a"),
            Play("POST /mcp token=a", "200 cookie=t", "0.1"),
            Play("POST /mcp/ token=a cookie=z", "200 cookie=t", "0.1"),
            State("t", "none"),
            Play("POST /mcp", "200", "1.1"),
            Play("POST /mcp token=b", "400", "1.1"),
            State("b", "none"),
            Play("POST /mcp token=b", "200", "1.1"),
            State("b", "claimed 1.1"),
            Play("POST /tool token=b", "200 cookie=t", "1.1"),
            State("t", "claimed 1.1"),
        ],
    );
    tell(
        Kind::Resources,
        "an event stream is not in flight",
        &[
            Play(SEED, "200", "0.1 add a"),
            Send("1", "GET /mcp token=a", "0.1"),
            Answer("1", "200", ""),
            State("a", "open 0.1"),
            Play(CLOSE, "200", "0.1"),
            Pass(300),
            State("a", "none"),
            End("1"),
            State("a", "none"),
        ],
    );
}
