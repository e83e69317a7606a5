//! `--describe`, with a shell in the server's place.

use std::time::Duration;

use gym_gateway::{
    config::{Description, Kind, LeftOpen, ServerConfig},
    workers::{Undescribed, describe},
};
use tokio_util::sync::CancellationToken;

use crate::{config, program};

const ANSWER: &str = r#"{"kind": "generic", "session_cookie": "sid"}"#;

/// A server whose command is this shell script; its arguments are behind it.
fn server(script: &str) -> ServerConfig {
    let argv = ["/bin/sh", "-c", script, "server"].map(str::to_owned).to_vec();
    let mut config = config(argv, "any");
    config.num_workers = 4;
    config.settings.describe = Some(LeftOpen::default());
    config
}

async fn ask(server: &ServerConfig) -> Result<Description, Undescribed> {
    describe(server, &program(), &CancellationToken::new()).await
}

fn answered(answer: Result<Description, Undescribed>) {
    let told = answer.unwrap();
    assert_eq!((told.kind, told.session_cookie.as_deref()), (Kind::Generic, Some("sid")));
}

#[tokio::test]
async fn a_server_is_asked_as_a_worker_is_started_but_for_where_to_listen() {
    let script = format!(
        r#"[ "$*" = --describe ] && [ "$GYM_NUM_WORKERS $GYM_SERVER_NAME $GYM_SERVER_CONFIG" = '4 test {{}}' ] \
           && [ "$BEHAVIOUR" = any ] && [ -z "$GYM_WORKER_SOCKET$GYM_WORKER_SLOT" ] && echo '{ANSWER}'"#
    );
    answered(ask(&server(&script)).await);
}

#[tokio::test]
async fn what_stands_on_standard_error_is_no_part_of_the_answer() {
    answered(ask(&server(&format!("echo loading >&2; echo '{ANSWER}'; echo '{{}}' >&2"))).await);
}

#[tokio::test]
async fn a_command_that_does_not_know_the_question_is_told_of_with_what_to_do() {
    let server = server("echo \"error: unexpected argument '$1'\" >&2; exit 2");
    let text = ask(&server).await.unwrap_err().to_string();
    assert_eq!(
        text,
        "server test: was asked with --describe what it is: it exited with status 2\
         \n  command: /bin/sh -c echo \"error: unexpected argument '$1'\" >&2; exit 2 server --describe (in /)\
         \n  its last output:\
         \n    | error: unexpected argument '--describe'\
         \n  what to do: a server of the worker SDK prints one JSON object then, and exits with 0. If this one does \
         not know the question, take `describe: true` out (run: --describe), and set session_cookie, \
         session_start_routes and session_end_routes yourself where it needs them. Else run the command by hand \
         in that folder to see it fail"
    );
}

#[tokio::test]
async fn an_answer_that_is_none_is_said_and_shown() {
    for (script, seen, output) in [
        ("echo listening", "its standard output does not end in a JSON object", vec!["listening"]),
        ("exit 0", "it wrote nothing on its standard output, where one JSON object was expected", vec![]),
        ("kill -9 $$", "it was killed by SIGKILL", vec![]),
        ("echo '{}'", "what it wrote is no description: missing field `kind`", vec!["{}"]),
    ] {
        let error = ask(&server(script)).await.unwrap_err();
        assert_eq!(
            (error.seen.as_str(), error.output),
            (seen, output.into_iter().map(str::to_owned).collect())
        );
    }
    let mut missing = server("");
    if let gym_gateway::config::Launch::Command { argv, .. } = &mut missing.launch {
        argv[0] = "/no/such/server".into();
    }
    let error = ask(&missing).await.unwrap_err();
    assert!(error.seen.contains("cannot run /no/such/server"), "{error}");
}

#[tokio::test]
async fn an_answer_with_a_failure_behind_it_does_not_count() {
    let error = ask(&server(&format!("echo '{ANSWER}'; exit 3"))).await.unwrap_err();
    assert_eq!(error.seen, "it exited with status 3");
}

#[tokio::test]
async fn a_command_that_hangs_is_killed() {
    let mut server = server(&format!("echo $$; echo '{ANSWER}'; trap '' TERM; sleep 1000"));
    server.settings.start_timeout = Duration::from_millis(700);
    let error = ask(&server).await.unwrap_err();
    assert_eq!(error.seen, "it had not ended after 0.7 s (start_timeout_seconds)");
    assert!(!crate::lives(error.output[0].parse().unwrap()));
}

#[tokio::test]
async fn a_command_that_says_too_much_is_killed() {
    // A line without an end, and lines without one.
    for script in ["echo $$ >&2; tr '\\0' x </dev/zero", "echo $$ >&2; yes"] {
        let error = ask(&server(script)).await.unwrap_err();
        assert_eq!(error.seen, "it wrote more than 65536 bytes on its standard output");
        assert!(error.output.iter().map(String::len).sum::<usize>() < 32 * 1024);
    }
}

#[tokio::test]
async fn what_it_forked_ends_with_it_and_does_not_hold_the_answer_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = format!("setsid sleep 1000 & echo $! >{}; echo '{ANSWER}'", file.display());
    answered(ask(&server(&script)).await);
    let pid = std::fs::read_to_string(&file).unwrap();
    assert!(!crate::lives(pid.trim().parse().unwrap()));
}

#[tokio::test]
async fn a_stop_ends_the_question() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let server = server(&format!("echo $$ >{0}.new; mv {0}.new {0}; sleep 1000", file.display()));
    let stop = CancellationToken::new();
    let (stopping, seen) = (stop.clone(), file.clone());
    let stopper = tokio::task::spawn_blocking(move || {
        crate::until("it runs", || seen.exists());
        stopping.cancel();
    });
    let error = describe(&server, &program(), &stop).await.unwrap_err();
    stopper.await.unwrap();
    assert_eq!(error.seen, "the gateway was stopped");
    assert!(!crate::lives(std::fs::read_to_string(&file).unwrap().trim().parse().unwrap()));
}
