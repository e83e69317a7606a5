//! Histories: what happens to a session, and what the next request gets.

use super::super::Counts;
use super::{config, id, stage::Stage};
use crate::{config::Kind, worker_id::WorkerId};

/// One step of a history.
enum Step {
    /// Sends a request under a tag; where it goes.
    Send(&'static str, &'static str, &'static str),
    /// A reply's head; what is done to it.
    Answer(&'static str, &'static str, &'static str),
    End(&'static str),
    Over(&'static str),
    /// No byte was sent; whether another worker may be chosen.
    Withdraw(&'static str, bool),
    /// A whole request: request, reply, where it went and what was done to the reply's head.
    Play(&'static str, &'static str, &'static str),
    /// A slot's worker exits, and the next generation is ready.
    Exit(u16),
    /// What a request in flight gets whose worker has exited.
    Cut(&'static str, &'static str),
    /// Seconds go by.
    Pass(u64),
    State(&'static str, &'static str),
}

use Step::{Answer, Cut, End, Exit, Over, Pass, Play, Send, State, Withdraw};

fn tell(kind: Kind, title: &str, steps: &[Step]) {
    tell_on(Stage::new(&config(kind)), title, steps);
}

fn tell_on(mut stage: Stage, title: &str, steps: &[Step]) {
    for (n, step) in steps.iter().enumerate() {
        let place = format!("{title}, step {n}");
        match step {
            Send(tag, request, to) => assert_eq!(stage.send(tag, request), *to, "{place}"),
            Answer(tag, reply, effects) => assert_eq!(stage.answer(tag, reply), *effects, "{place}"),
            End(tag) => stage.end(tag),
            Over(tag) => stage.over(tag),
            Withdraw(tag, free) => assert_eq!(stage.withdraw(tag), *free, "{place}"),
            Play(request, reply, outcome) => assert_eq!(stage.play(request, reply), *outcome, "{place}"),
            Exit(slot) => stage.exit(*slot),
            Cut(tag, code) => assert_eq!(stage.after_exit(tag), *code, "{place}"),
            Pass(seconds) => stage.pass(*seconds),
            State(session, state) => assert_eq!(stage.state(session), *state, "{place}"),
        }
    }
}

const SEED: &str = "POST /seed_session body=a";
const CLOSE: &str = "POST /close_session body=a";
const TOOL: &str = "POST /tool cookie=a";
const VERIFY: &str = "POST /verify cookie=a";
const RESET: &str = "POST /reset cookie=a";
const STEP: &str = "POST /step cookie=a";

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

#[test]
fn when_the_owner_exits() {
    tell(
        Kind::Resources,
        "claimed and open are lost, in flight or not",
        &[
            Send("none", "POST /mcp", "0.1"),
            Play(SEED, "200", "0.1 add a"),
            Play("POST /seed_session body=b", "200", "1.1 add b"),
            Play("POST /seed_session body=c", "500", "0.1"),
            Send("1", TOOL, "0.1"),
            Exit(0),
            Cut("1", "session_lost"),
            Cut("none", "worker_error"),
            End("1"),
            End("none"),
            Send("2", TOOL, "session_lost"),
            Send("2", SEED, "session_lost"),
            Send("2", CLOSE, "session_lost"),
            Send("2", "POST /mcp token=a", "session_lost"),
            Send("2", "POST /tool cookie=c", "session_lost"),
            Play("POST /tool cookie=b", "200", "1.1"),
            Play("GET /health cookie=a", "200", "0.2"),
            Pass(86_399),
            Send("2", TOOL, "session_lost"),
            Pass(1),
            Send("2", TOOL, "0.2"),
        ],
    );
    tell(
        Kind::Resources,
        "ended stays with the dead",
        &[
            Play(CLOSE, "200", "0.1"),
            Play("POST /verify cookie=b", "200 cookie=b", "0.1"),
            Exit(0),
            State("a", "ended 0.1 fenced"),
            Send("1", SEED, "session_closed"),
            Send("1", CLOSE, "session_lost"),
            Send("1", TOOL, "session_lost"),
            Send("1", "POST /seed_session body=b", "session_lost"),
            Play("GET /health cookie=a", "200", "0.2"),
            Pass(300),
            Send("1", SEED, "0.2"),
        ],
    );
    tell(
        Kind::Resources,
        "what comes late changes nothing",
        &[
            Send("2", "POST /tool", "0.1"),
            Send("1", SEED, "0.1"),
            Exit(0),
            Answer("1", "200 cookie=t", ""),
            Answer("2", "200 cookie=u", ""),
            State("a", "lost"),
            State("t", "none"),
            State("u", "none"),
            Over("1"),
            End("1"),
            End("2"),
            State("a", "lost"),
        ],
    );
    tell(
        Kind::Resources,
        "a claim that never reached the worker is free",
        &[Send("1", SEED, "0.1"), Exit(0), Withdraw("1", true), Send("1", SEED, "0.2")],
    );
    tell(
        Kind::Resources,
        "but not if another request did",
        &[
            Send("1", SEED, "0.1"),
            Send("2", SEED, "0.1"),
            Exit(0),
            Withdraw("1", true),
            Send("1", SEED, "session_lost"),
        ],
    );
}

#[test]
fn a_worker_that_has_exited_gets_no_claim() {
    let mut stage = Stage::new(&config(Kind::Resources));
    stage.table.owner_exited(WorkerId { slot: 0, generation: 1 }, 0);
    // The choice is made from a snapshot that still has it.
    assert_eq!(stage.send("1", SEED), "wait");
    assert_eq!(stage.send("1", "POST /tool"), "wait");
    stage.ready[0] = None;
    assert_eq!(stage.send("1", SEED), "1.1");
    stage.ready[1] = None;
    assert_eq!(stage.send("2", "POST /seed_session body=b"), "wait");
    assert_eq!(stage.state("b"), "none");
}

#[test]
fn time() {
    tell(
        Kind::Resources,
        "open and idle",
        &[
            Play(SEED, "200", "0.1 add a"),
            Pass(86_399),
            Play(TOOL, "200", "0.1"),
            Pass(86_399),
            State("a", "open 0.1"),
            Send("1", TOOL, "0.1"),
            Pass(200_000),
            State("a", "open 0.1 in flight 1"),
            End("1"),
            Pass(86_399),
            State("a", "open 0.1"),
            Pass(1),
            State("a", "lost"),
            Send("2", TOOL, "session_lost"),
        ],
    );
    tell(
        Kind::Resources,
        "the window begins with the last request",
        &[
            Play(CLOSE, "200", "0.1"),
            Pass(299),
            Play(CLOSE, "200", "0.1"),
            Pass(299),
            State("a", "ended 0.1 fenced"),
            Send("1", CLOSE, "0.1"),
            Pass(1_000),
            State("a", "ended 0.1 fenced in flight 1"),
            End("1"),
            Pass(300),
            State("a", "none"),
        ],
    );
    let mut short = config(Kind::Resources);
    short.settings.session_idle_timeout = std::time::Duration::from_secs(10);
    tell_on(
        Stage::new(&short),
        "open for shorter than the window",
        &[Play(SEED, "200", "0.1 add a"), Pass(9), State("a", "open 0.1"), Pass(1), State("a", "lost")],
    );
}

#[test]
fn generic_servers() {
    tell(
        Kind::Generic,
        "any reply below 500 uses the session",
        &[
            Play("GET / raw=k", "500", "0.1"),
            State("k", "none"),
            Play("GET / raw=k", "404", "0.1"),
            State("k", "none"),
            Play("GET / raw=k", "403", "0.1"),
            State("k", "claimed 0.1"),
            Pass(86_399),
            State("k", "claimed 0.1"),
            Pass(1),
            State("k", "none"),
            Play("GET /", "200 raw=own", "0.1"),
            Play("GET /x raw=own", "200", "0.1"),
        ],
    );
    let mut config = config(Kind::Generic);
    config.settings.session_start_routes = vec!["/begin".into()];
    config.settings.session_end_routes = vec!["/finish".into()];
    tell_on(
        Stage::new(&config),
        "with routes of the config",
        &[
            Play("POST /begin", "200 raw=k", "0.1"),
            State("k", "open 0.1"),
            Play("POST /finish raw=k", "200", "0.1"),
            State("k", "ended 0.1"),
            Play("GET /x raw=l", "200", "0.1"),
            Pass(300),
            State("k", "none"),
            State("l", "none"),
        ],
    );
}

#[test]
fn counts_follow() {
    let mut stage = Stage::new(&config(Kind::Resources));
    stage.play(SEED, "200");
    stage.play("POST /seed_session body=b", "500");
    stage.play("POST /close_session body=c", "200");
    stage.play("POST /tool cookie=d", "500");
    let row = |counts: &Counts, slot: usize| {
        let worker = &counts.workers[slot];
        (worker.claimed, worker.open, worker.ended)
    };
    let counts = stage.table.counts();
    assert_eq!((row(&counts, 0), row(&counts, 1)), ((0, 1, 1), (1, 0, 0)));
    assert_eq!(counts.withdrawn_total, 1);
    assert_eq!(stage.table.load(WorkerId { slot: 0, generation: 1 }), 1);
    stage.exit(0);
    stage.pass(300);
    let counts = stage.table.counts();
    assert_eq!(counts.workers.len(), 1, "{counts:?}");
    assert_eq!(row(&counts, 0), (0, 0, 0));
    assert_eq!((counts.lost_total, counts.lost_remembered, counts.forgotten_total), (1, 1, 2));
    assert_eq!(counts.expired_total, 0);
}

#[test]
fn lists_what_is_asked_for() {
    use super::super::{SessionFilter, SessionState};
    let mut stage = Stage::new(&config(Kind::Resources));
    stage.play(SEED, "200");
    stage.play("POST /seed_session body=ab", "200");
    stage.play("POST /close_session body=b", "200");
    stage.now += 1_500;
    let list = |filter: SessionFilter, limit| {
        let mut ids: Vec<_> = stage
            .table
            .list(limit, &filter, stage.now)
            .into_iter()
            .map(|session| session.id.to_string())
            .collect();
        ids.sort();
        ids
    };
    let all = SessionFilter::default();
    assert_eq!(list(all.clone(), 10), ["a", "ab", "b"]);
    assert_eq!(list(all.clone(), 2).len(), 2);
    assert_eq!(list(SessionFilter { state: Some(SessionState::Ended), ..all.clone() }, 10), ["b"]);
    assert_eq!(list(SessionFilter { slot: Some(1), ..all.clone() }, 10), ["ab"]);
    assert_eq!(list(SessionFilter { prefix: Some("a".into()), ..all }, 10), ["a", "ab"]);
    let found = stage.table.find(&id("b"), stage.now).unwrap();
    assert!(found.fenced && found.idle == 1_500 && found.in_flight == 0);
}
