//! The check against a server with each of the contract's faults, and against one without.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

mod faulty;

use std::{collections::BTreeSet, time::Duration};

use faulty::{Fault, Faulty};
use gym_worker_sdk::conformance::{Held, Options, Report, Seed, Verdict, check_resources_session_contract};
use gym_worker_sdk::{
    Empty, GymnasiumApp, GymnasiumServer, NeMoGymResponse, Result, Session, Settings, Step,
};
use serde_json::json;

fn seed() -> Seed {
    let seed = json!({
        "resources_session_id": "session",
        "episode_id": {"rollout_id": "rollout", "attempt": 0},
        "task_id": {"taskset": "tests", "task_id": "0"},
        "task_data": {"initial_count": 3},
    });
    Seed::new(seed).unwrap()
}

fn verify_body() -> serde_json::Value {
    json!({"responses_create_params": {"input": "hello"}, "response": {"id": "r", "output": []}})
}

/// All there is to check, but for the state that the server holds.
fn options() -> Options {
    Options::new().keeps_state(true).strict(true).verify_body(verify_body())
}

fn with_state(options: Options, server: &Faulty) -> Options {
    let server = server.clone();
    options.holds_state(move |id| {
        let held = server.held(&id);
        async move { held }
    })
}

/// Checks a server with that fault.
async fn check(fault: Fault, options: Options) -> (Report, Faulty) {
    let (server, address) = Faulty::start(fault).await;
    let options = with_state(options, &server);
    (check_resources_session_contract(&format!("http://{address}"), &seed(), &options).await, server)
}

/// The steps that break the contract, as `scenario: step`.
fn wrong(report: &Report) -> Vec<String> {
    report.violations().map(|step| format!("{}: {}", step.scenario, step.name)).collect()
}

const LIFE: &str = "a session's life";
const VERIFY: &str = "a verify";
const OTHER_SEED: &str = "another episode's seed";
const OTHER_CLOSE: &str = "another episode's close";
const OVERTAKES: &str = "a close that overtakes its seed";
const LOST: &str = "a seed whose reply is lost";

/// Each fault, and every step that is to find it.
#[rustfmt::skip]
const FAULTS: &[(Fault, &[(&str, &str)])] = &[
    (Fault::SeedRefused, &[
        (LIFE, "seed"), (VERIFY, "seed"), (OTHER_SEED, "seed"), (OTHER_CLOSE, "seed"), (LOST, "seed"),
    ]),
    (Fault::SeedSetsNoCookie, &[
        (LIFE, "seed"), (LIFE, "repeated seed"), (VERIFY, "seed"), (VERIFY, "repeated seed"), (VERIFY, "verify"),
        (OTHER_SEED, "seed"), (OTHER_CLOSE, "seed"), (LOST, "seed"),
    ]),
    (Fault::SeedIsNoJson, &[
        (LIFE, "seed"), (LIFE, "repeated seed"), (VERIFY, "seed"), (VERIFY, "repeated seed"), (OTHER_SEED, "seed"),
        (OTHER_CLOSE, "seed"), (LOST, "seed"),
    ]),
    (Fault::RepeatedSeedRefused, &[(LIFE, "repeated seed"), (VERIFY, "repeated seed")]),
    (Fault::RepeatedSeedNamesAnother, &[(LIFE, "repeated seed"), (VERIFY, "repeated seed")]),
    (Fault::RepeatedSeedSetsAnotherCookie, &[(VERIFY, "verify")]),
    (Fault::RepeatedSeedResetsState, &[(LIFE, "state after the repeated seed")]),
    (Fault::RepeatedSeedObservesAnew, &[(LIFE, "repeated seed")]),
    (Fault::ConflictingSeedAccepted, &[
        (OTHER_SEED, "conflicting seed"), (OTHER_SEED, "conflicting seed, another attempt"),
        (OTHER_SEED, "state after the conflicting seeds"), (OTHER_SEED, "close"),
    ]),
    (Fault::ConflictingAttemptAccepted, &[
        (OTHER_SEED, "conflicting seed, another attempt"), (OTHER_SEED, "state after the conflicting seeds"),
        (OTHER_SEED, "close"),
    ]),
    (Fault::CloseRefused, &[
        (LIFE, "close"), (LIFE, "state after the close"), (LIFE, "repeated close"), (LIFE, "verify after the close"),
        (LIFE, "seed after the close"), (LIFE, "state after the late seed"), (VERIFY, "close after the verify"),
        (VERIFY, "state after the close"), (OTHER_SEED, "close"), (OTHER_CLOSE, "close"), (LOST, "close without a cookie"),
        (LOST, "state after the close"), (LOST, "seed after the close"), (LOST, "state after the late seed"),
    ]),
    (Fault::CloseNamesAnother, &[
        (LIFE, "close"), (LIFE, "repeated close"), (VERIFY, "close after the verify"), (OTHER_SEED, "close"),
        (OTHER_CLOSE, "close"), (OVERTAKES, "close of a never-seeded session"), (LOST, "close without a cookie"),
    ]),
    (Fault::CloseReleasesNothing, &[
        (LIFE, "state after the close"), (LIFE, "verify after the close"), (LIFE, "state after the late seed"),
        (VERIFY, "state after the close"), (LOST, "state after the close"), (LOST, "state after the late seed"),
    ]),
    (Fault::CloseNeedsCookie, &[
        (LOST, "close without a cookie"), (LOST, "state after the close"), (LOST, "seed after the close"),
        (LOST, "state after the late seed"),
    ]),
    (Fault::CloseWithoutCookieReleasesNothing, &[(LOST, "state after the close"), (LOST, "state after the late seed")]),
    (Fault::RepeatedCloseRefused, &[(LIFE, "repeated close")]),
    (Fault::CloseOfUnknownRefused, &[
        (OVERTAKES, "close of a never-seeded session"), (OVERTAKES, "seed after the close"),
        (OVERTAKES, "state after the late seed"),
    ]),
    (Fault::OtherEpisodeCloses, &[
        (OTHER_CLOSE, "close naming another episode"), (OTHER_CLOSE, "close naming another attempt"),
        (OTHER_CLOSE, "state after the wrong closes"),
    ]),
    (Fault::OtherEpisodeCloseAnswered, &[
        (OTHER_CLOSE, "close naming another episode"), (OTHER_CLOSE, "close naming another attempt"),
    ]),
    (Fault::LateSeedRecreates, &[
        (LIFE, "seed after the close"), (LIFE, "state after the late seed"), (LOST, "seed after the close"),
        (LOST, "state after the late seed"),
    ]),
    (Fault::LateSeedOfNeverSeededRecreates, &[
        (OVERTAKES, "seed after the close"), (OVERTAKES, "state after the late seed"),
    ]),
    (Fault::LateSeedRefusedButMade, &[
        (LIFE, "state after the late seed"), (OVERTAKES, "state after the late seed"), (LOST, "state after the late seed"),
    ]),
    (Fault::VerifyFindsNothing, &[(VERIFY, "verify")]),
    (Fault::VerifyAfterCloseScores, &[(LIFE, "verify after the close")]),
    (Fault::VerifyAfterCloseFails, &[(LIFE, "verify after the close")]),
];

/// Faults that a check which is not strict forgives, and the first step of a strict one that finds them.
const STRICT_FAULTS: &[(Fault, &str)] = &[
    (Fault::RefusesWithAnotherStatus, "a session's life: seed after the close"),
    (Fault::SucceedsWithAnotherStatus, "a session's life: seed"),
    (Fault::SeedHasAnotherField, "a session's life: seed"),
    (Fault::VerifyAfterCloseHasNoKind, "a session's life: verify after the close"),
];

#[tokio::test]
async fn passes_a_server_without_a_fault() {
    for strict in [true, false] {
        let (report, server) = check(Fault::None, options().strict(strict)).await;
        assert!(report.is_ok(), "{report}");
        assert!(report.steps().iter().all(|step| step.verdict == Verdict::Ok && step.why.is_empty()));
        assert_eq!(server.open(), 0, "left open");
    }
}

#[tokio::test]
async fn finds_each_fault_with_the_right_steps() {
    for (fault, steps) in FAULTS {
        let expected: Vec<String> =
            steps.iter().map(|(scenario, step)| format!("{scenario}: {step}")).collect();
        for strict in [true, false] {
            let (report, _) = check(*fault, options().strict(strict)).await;
            assert_eq!(wrong(&report), expected, "{fault:?}, strict {strict}\n{report}");
            assert!(!report.is_ok(), "{fault:?}");
        }
    }
}

#[tokio::test]
async fn strict_finds_what_is_forgiven_otherwise() {
    for (fault, first) in STRICT_FAULTS {
        let (report, _) = check(*fault, options()).await;
        assert_eq!(wrong(&report).first().map(String::as_str), Some(*first), "{fault:?}\n{report}");
        let (report, _) = check(*fault, options().strict(false)).await;
        assert!(report.is_ok(), "{fault:?}\n{report}");
    }
}

/// Without state there is nothing that a late or conflicting request could bring back, rebind or take away.
#[tokio::test]
async fn a_server_without_state_may_accept_what_one_with_state_refuses() {
    let lenient = [
        Fault::None,
        Fault::ConflictingAttemptAccepted,
        Fault::LateSeedRecreates,
        Fault::LateSeedOfNeverSeededRecreates,
        Fault::OtherEpisodeCloses,
        Fault::VerifyAfterCloseScores,
    ];
    for fault in lenient {
        let (server, address) = Faulty::start(fault).await;
        let url = format!("http://{address}");
        let report = check_resources_session_contract(&url, &seed(), &options().keeps_state(false)).await;
        let rebound = "another episode's seed: close".to_owned();
        let allowed = if fault == Fault::ConflictingAttemptAccepted { vec![rebound] } else { vec![] };
        assert_eq!(wrong(&report), allowed, "{fault:?}\n{report}");
        assert_eq!(server.open(), 0, "{fault:?}: cleaned up");
    }
    for fault in [Fault::RepeatedSeedRefused, Fault::RepeatedCloseRefused, Fault::CloseOfUnknownRefused] {
        let (report, _) = check(fault, options().keeps_state(false)).await;
        assert!(!report.is_ok(), "{fault:?}: needed with or without state");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_in_the_report() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for (url, why) in [
        (format!("http://{address}"), "Connection refused"),
        (format!("https://{address}"), "Connection refused"),
        (format!("ftp://{address}"), "only http:// and https://"),
        ("nowhere".into(), "is no URL"),
    ] {
        let report = check_resources_session_contract(&url, &seed(), &options()).await;
        assert_eq!(wrong(&report), ["a session's life: seed"], "{report}");
        let first = &report.steps()[0];
        assert!(first.why.contains(why), "{}", first.why);
        assert!(report.steps()[1..].iter().all(|step| step.verdict == Verdict::NotRun), "{report}");
        assert!(!report.is_ok());
    }
}

#[tokio::test]
async fn replies_that_never_end_are_violations() {
    let cases = [
        (Fault::CloseHangs, "operation timed out"),
        (Fault::CloseBreaksOff, "connection closed"),
        (Fault::CloseIsEndless, "a body of more than 100000 bytes"),
    ];
    for (fault, why) in cases {
        let limits = options().max_reply_bytes(100_000);
        // Only what hangs is to run into it.
        let limits =
            if fault == Fault::CloseHangs { limits.timeout(Duration::from_millis(300)) } else { limits };
        let (report, _) = check(fault, limits).await;
        let close = report.violations().find(|step| step.name == "close").expect("a violation");
        assert!(close.why.contains(why), "{fault:?}: {}", close.why);
    }
}

/// It is waited for once, and once more to close what it may have made.
#[tokio::test]
async fn a_server_that_does_not_answer_seeds_is_left_alone() {
    let (report, server) = check(Fault::SeedHangs, options().timeout(Duration::from_millis(300))).await;
    assert_eq!(wrong(&report), ["a session's life: seed"], "{report}");
    let ok: Vec<_> = report.steps().iter().filter(|step| step.verdict == Verdict::Ok).collect();
    assert_eq!((ok.len(), ok[0].name), (1, "clean-up"), "{report}");
    assert_eq!(server.requests(), 1, "the clean-up alone got through");
}

#[tokio::test]
async fn an_answer_about_state_that_never_comes_is_a_violation() {
    let (_, address) = Faulty::start(Fault::None).await;
    let url = format!("http://{address}");
    let hangs = options().timeout(Duration::from_millis(200)).holds_state(|_| std::future::pending::<bool>());
    let report = check_resources_session_contract(&url, &seed(), &hangs).await;
    let first = report.violations().next().expect("a violation");
    assert_eq!((first.name, first.came.as_str()), ("state after the seed", "no answer"));
    let fails = options().holds_state(|_| async { Err::<bool, _>("the admin address is down") });
    let report = check_resources_session_contract(&url, &seed(), &fails).await;
    assert!(report.violations().next().expect("a violation").why.contains("the admin address is down"));
    let knows = options().holds_state(|_| async { true });
    let report = check_resources_session_contract(&url, &seed(), &knows).await;
    assert!(wrong(&report).contains(&"a session's life: state after the close".to_owned()), "{report}");
    assert_eq!(Held::from(None::<String>), Held::Nothing);
}

/// The same server again: every run has sessions of its own. Without a verify body nothing is verified.
#[tokio::test]
async fn can_be_run_again_and_again() {
    let (server, address) = Faulty::start(Fault::None).await;
    let url = format!("http://{address}");
    let options = Options::new().keeps_state(true).strict(true);
    let mut sessions = BTreeSet::new();
    for run in 1..=3 {
        let report = check_resources_session_contract(&url, &seed(), &options).await;
        assert!(report.is_ok(), "{report}");
        assert!(report.steps().iter().all(|step| !step.name.contains("verify")), "{report}");
        assert_eq!(server.requests(), run * report.steps().len(), "each step is one request");
        sessions.extend(report.steps().iter().map(|step| step.resources_session_id.clone()));
    }
    assert_eq!(sessions.len(), 3 * 5, "five scenarios, each with a session of its own: {sessions:?}");
}

#[tokio::test]
async fn a_server_of_another_protocol_is_told_as_such() {
    struct Game;

    impl GymnasiumServer for Game {
        const CLASS: &'static str = "GameEnv";
        type Metadata = Empty;
        type State = u32;

        async fn step(&self, _: Session<u32>, _: NeMoGymResponse, _: Empty) -> Result<Step> {
            Ok(Step::reward(1.0).terminated())
        }
    }

    let router = GymnasiumApp::new(Game).settings(Settings::new("game")).into_router().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let report = check_resources_session_contract(&url, &seed(), &options()).await;
    assert_eq!(wrong(&report), [format!("{LIFE}: seed")], "once");
    let text = report.to_string();
    assert!(text.contains("A Gymnasium server (POST /reset and /step) has another"), "{text}");
    assert!(text.contains("there is no POST /seed_session"), "{text}");
    server.abort();
}
