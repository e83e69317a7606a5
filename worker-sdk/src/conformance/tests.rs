use serde_json::{Value, json};

use super::{
    Seed, SeedError, Verdict,
    client::{Cookies, Reply},
    report::{Report, Step, excerpt},
    want::Want,
};

fn body() -> Value {
    json!({
        "resources_session_id": "s",
        "episode_id": {"rollout_id": "r", "attempt": 2},
        "task_id": {"taskset": "t", "task_id": "0"},
        "task_data": {"n": 1},
        "more": "kept",
    })
}

#[test]
fn derives_sessions_and_episodes_of_their_own() {
    let session = Seed::new(body()).unwrap().session("0a1b2c3d", 4);
    assert_eq!(session.id, "s-0a1b2c3ds4");
    let episode = json!({"rollout_id": "r-0a1b2c3ds4", "attempt": 2});
    assert_eq!(session.episode(), episode);
    let mut expected = body();
    expected["resources_session_id"] = json!("s-0a1b2c3ds4");
    expected["episode_id"] = episode.clone();
    assert_eq!(session.seed(&episode), expected);
    assert_eq!(session.other_rollout(), json!({"rollout_id": "r-0a1b2c3ds4-other", "attempt": 2}));
    assert_eq!(session.other_attempt(), json!({"rollout_id": "r-0a1b2c3ds4", "attempt": 3}));
    assert_eq!(
        session.close(&episode),
        json!({"resources_session_id": "s-0a1b2c3ds4", "episode_id": episode})
    );
    let verify = json!({"episode_id": {}, "resources_session_id": "x", "answer": 4});
    let expected = json!({"episode_id": episode, "resources_session_id": "s-0a1b2c3ds4", "answer": 4});
    assert_eq!(session.verify(&verify), expected);
    assert_eq!(session.verify(&json!({"answer": 4})), json!({"answer": 4}), "nothing is put in");
    assert_eq!(session.verify(&json!([])), json!([]));
}

#[test]
fn an_attempt_may_be_left_out() {
    let mut body = body();
    body["episode_id"] = json!({"rollout_id": "r"});
    assert_eq!(Seed::new(body).unwrap().session("x", 1).episode()["attempt"], 0);
}

#[test]
fn says_everything_that_is_wrong_with_a_seed() {
    let cases = [
        ("/resources_session_id", json!(""), "resources_session_id must be a text"),
        ("/resources_session_id", json!("x".repeat(201)), "longer than 200 bytes"),
        ("/resources_session_id", json!(7), "resources_session_id must be a text"),
        ("/episode_id", json!("r"), "episode_id.rollout_id must be a text"),
        ("/episode_id/attempt", json!(-1), "episode_id.attempt must be a number"),
        ("/episode_id/attempt", json!("1"), "episode_id.attempt must be a number"),
        ("/task_id/taskset", json!(null), "task_id.taskset must be a text"),
        ("/task_id/task_id", json!(3), "task_id.task_id must be a text"),
        ("/task_data", json!([]), "task_data must be an object"),
    ];
    for (path, wrong, message) in cases {
        let mut body = body();
        *body.pointer_mut(path).unwrap() = wrong;
        let error = Seed::new(body).unwrap_err().to_string();
        assert!(error.contains(message) && !error.contains("; "), "{path}: {error}");
    }
    for body in [json!({}), json!([]), json!(null), json!("seed")] {
        let SeedError::Fields(problems) = Seed::new(body).unwrap_err() else { panic!("not the fields") };
        assert_eq!(problems.len(), 5, "{problems:?}");
    }
    let error = Seed::from_json(b"{\"resources_session_id\": ").unwrap_err();
    assert!(matches!(error, SeedError::Json(_)), "{error}");
    assert_eq!(Seed::from_json(body().to_string().as_bytes()).unwrap(), Seed::new(body()).unwrap());
}

fn reply(status: u16, body: &str) -> Reply {
    Reply { status, cookies: Cookies::default(), body: body.into() }
}

#[test]
fn judges_refusals_and_successes() {
    let closed = r#"{"resources_session_id": "s"}"#;
    let cases = [
        (Want::Conflict, 409, closed, [true, true]),
        (Want::Conflict, 500, "", [true, false]),
        (Want::Conflict, 422, "", [true, false]),
        (Want::Conflict, 200, closed, [false, false]),
        (Want::Conflict, 307, "", [false, false]),
        (Want::Closed, 200, closed, [true, true]),
        (Want::Closed, 201, closed, [true, false]),
        (Want::Closed, 307, closed, [false, false]),
        (Want::Closed, 404, closed, [false, false]),
        (Want::Closed, 200, "{}", [false, false]),
        (Want::Closed, 200, r#"{"resources_session_id": "t"}"#, [false, false]),
        (Want::Closed, 200, r#"{"resources_session_id": ["s"]}"#, [false, false]),
        (Want::Closed, 200, r#"{"resources_session_id": "s", "closed": true}"#, [true, false]),
        (Want::Closed, 200, "", [false, false]),
        (Want::Closed, 200, "[]", [false, false]),
        (Want::Closed, 200, &"[".repeat(10_000), [false, false]),
        (Want::Seeded, 200, closed, [false, false]), // without a cookie
        (Want::SucceedsOrConflict, 200, closed, [true, true]),
        (Want::SucceedsOrConflict, 409, "", [true, true]),
        (Want::SucceedsOrConflict, 500, "", [true, false]),
        (Want::SucceedsOrConflict, 302, "", [false, false]),
        (
            Want::Masked,
            200,
            r#"{"mask_sample": true, "reward": 0, "failure_kind": "session_lost"}"#,
            [true, true],
        ),
        (
            Want::Masked,
            200,
            r#"{"mask_sample": true, "reward": 1, "failure_kind": "session_lost"}"#,
            [true, false],
        ),
        (Want::Masked, 200, r#"{"mask_sample": true, "reward": 0, "failure_kind": null}"#, [true, false]),
        (Want::Masked, 200, r#"{"mask_sample": 1, "reward": 0}"#, [false, false]),
        (Want::Masked, 200, r#"{"reward": 0}"#, [false, false]),
        (Want::Masked, 404, "", [false, false]),
        (Want::Verdict { keeps_state: true }, 200, r#"{"reward": 0.5}"#, [true, true]),
        (Want::Verdict { keeps_state: true }, 200, r#"{"reward": null}"#, [false, false]),
        (
            Want::Verdict { keeps_state: true },
            200,
            r#"{"reward": 0, "failure_kind": "session_lost"}"#,
            [false, false],
        ),
        (
            Want::Verdict { keeps_state: false },
            200,
            r#"{"reward": 0, "failure_kind": "session_lost"}"#,
            [true, true],
        ),
        (Want::Verdict { keeps_state: false }, 500, "", [false, false]),
        (Want::Anything, 500, "", [true, true]),
    ];
    for (want, status, body, [lenient, strict]) in cases {
        let reply = reply(status, body);
        assert_eq!(want.judge(&reply, "s", false).is_ok(), lenient, "{want:?} {status} {body:.60}");
        assert_eq!(want.judge(&reply, "s", true).is_ok(), strict, "strict: {want:?} {status} {body:.60}");
    }
}

#[test]
fn excerpts_are_short_and_fit_for_a_terminal() {
    assert_eq!(excerpt(b"a\x1b[31m\n\xff"), "a\\u{1b}[31m\\n\u{fffd}");
    let long = excerpt("é".repeat(5000).as_bytes());
    assert_eq!(long, format!("{}... (10000 bytes)", "é".repeat(400)));
    assert_eq!(excerpt("é".repeat(400).as_bytes()), "é".repeat(400));
}

#[test]
fn a_report_is_for_people_and_for_programs() {
    let step = |name, verdict| Step {
        scenario: "a session's life",
        name,
        resources_session_id: "s-1".into(),
        sent: "POST /seed_session".into(),
        wanted: "409".into(),
        came: "200 {}".into(),
        verdict,
        why: if verdict == Verdict::Ok { String::new() } else { "it is not refused".into() },
    };
    let mut report = Report::new("http://here", true, true);
    report.push(step("close", Verdict::Ok));
    assert!(report.is_ok());
    report.push(step("seed after the close", Verdict::Violation));
    report.push(step("another", Verdict::NotRun));
    assert!(!report.is_ok());
    let shown = "http://here as a server that keeps state, strict

a session's life (s-1)
  ok       close
  WRONG    seed after the close: it is not refused
             sent    POST /seed_session
             wanted  409
             came    200 {}
  not run  another: it is not refused

DOES NOT keep the contract: 1 steps ok, 1 wrong, 1 not run";
    assert_eq!(report.to_string(), shown);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((&json["ok"], &json["url"]), (&json!(false), &json!("http://here")));
    assert_eq!(json["steps"][2]["verdict"], "not_run");
    assert_eq!(json["steps"][1]["why"], "it is not refused");
}
