//! Histories of what happens without a request: exits, and time.

use std::time::Duration;

use super::{
    config,
    script::{CLOSE, SEED, Step::*, TOOL, tell, tell_on},
    stage::Stage,
};
use crate::{config::Kind, worker_id::WorkerId};

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
fn a_mark_is_enough_for_requests_until_the_sweep_comes() {
    let mut stage = Stage::new(&config(Kind::Resources));
    let gone = WorkerId { slot: 0, generation: 1 };
    stage.play(SEED, "200 cookie=t");
    stage.send("1", TOOL);
    stage.play("POST /seed_session body=b", "200");
    assert_eq!(stage.send("2", "POST /seed_session body=c"), "0.1");
    stage.table.mark_exited(gone);
    stage.ready[0] = Some(2);
    assert_eq!(stage.after_exit("1"), "session_lost");
    stage.answer("1", "200 says=ended");
    assert_eq!(stage.state("a"), "open 0.1 in flight 1", "what comes late changes nothing");
    assert_eq!(stage.send("3", TOOL), "session_lost");
    assert_eq!(stage.send("3", "POST /tool cookie=t"), "session_lost");
    assert_eq!(stage.play("GET /health cookie=a", "200"), "0.2");
    assert_eq!(stage.play("POST /tool cookie=b", "200"), "1.1");
    stage.end("1");
    stage.table.owner_exited(gone, stage.now);
    assert_eq!((stage.state("a").as_str(), stage.state("t").as_str()), ("lost", "lost"));
    assert!(stage.withdraw("2"), "never reached its worker, so it is free");
    assert_eq!(stage.state("c"), "none");
    assert_eq!(stage.table.load(gone), 0);
}

#[test]
fn what_ends_between_the_mark_and_the_sweep_is_lost_as_well() {
    let mut stage = Stage::new(&config(Kind::Resources));
    let gone = WorkerId { slot: 0, generation: 1 };
    assert_eq!(stage.send("1", TOOL), "0.1");
    assert_eq!(stage.send("2", "POST /tool cookie=b"), "1.1");
    assert_eq!(stage.send("3", "POST /tool cookie=c"), "0.1");
    assert_eq!(stage.send("4", "POST /tool cookie=c"), "0.1");
    stage.table.mark_exited(gone);
    stage.ready[0] = Some(2);
    assert_eq!(stage.after_exit("1"), "session_lost");
    stage.end("1");
    stage.end("3");
    assert_eq!(stage.send("1", TOOL), "session_lost");
    stage.table.owner_exited(gone, stage.now);
    assert_eq!((stage.state("a").as_str(), stage.state("c").as_str()), ("lost", "lost"));
    assert!(stage.withdraw("4"));
    assert_eq!(stage.state("c"), "lost", "the other one may have reached the worker");
    assert_eq!((stage.table.counts().lost_total, stage.table.load(gone)), (2, 0));
}

#[test]
fn a_websocket_that_ends_between_the_mark_and_the_sweep_counts_as_lost() {
    let mut stage = Stage::new(&config(Kind::OpenEnv));
    let gone = WorkerId { slot: 0, generation: 1 };
    assert_eq!(stage.send("ws", "GET /ws upgrade"), "0.1");
    stage.answer("ws", "101");
    stage.table.mark_exited(gone);
    stage.end("ws");
    stage.table.owner_exited(gone, stage.now);
    assert_eq!((stage.table.counts().lost_total, stage.table.load(gone)), (1, 0));
}

#[test]
fn a_websocket_to_which_its_worker_says_goodbye_is_lost_before_the_exit() {
    let mut stage = Stage::new(&config(Kind::OpenEnv));
    let leaving = WorkerId { slot: 0, generation: 1 };
    for tag in ["ws", "other"] {
        assert_eq!(stage.send(tag, "GET /ws upgrade"), if tag == "ws" { "0.1" } else { "1.1" });
        stage.answer(tag, "101");
    }
    stage.lose("ws");
    assert_eq!((stage.table.counts().lost_total, stage.table.load(leaving)), (1, 0));
    stage.table.owner_exited(leaving, stage.now);
    assert_eq!(stage.table.counts().lost_total, 1, "counted once");
    stage.end("other");
    assert_eq!(stage.table.counts().lost_total, 1, "an end of its own is no loss");
}

#[test]
fn a_shorter_time_holds_for_the_sessions_that_there_are() {
    let config = config(Kind::Resources);
    let mut stage = Stage::new(&config);
    stage.send("1", "POST /seed_session cookie=a");
    stage.answer("1", "200");
    stage.end("1");
    stage.table.expire(stage.now);
    let mut settings = config.settings.clone();
    settings.session_idle_timeout *= 2;
    assert!(!stage.table.set_limits(&settings), "nothing is due earlier");
    settings.session_idle_timeout = Duration::from_secs(5);
    assert!(stage.table.set_limits(&settings));
    stage.table.set_timers_anew(stage.now);
    stage.table.expire(stage.now + 4_900);
    assert_eq!(stage.state("a"), "open 0.1");
    stage.table.expire(stage.now + 5_200);
    assert_eq!(stage.state("a"), "lost");
}
