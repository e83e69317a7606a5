//! Sessions at the same time, driven by OpenEnv's own clients: each sees its own counter.

use std::process::Stdio;

use gym_gateway_tests::harness::Peers;

use crate::server::Server;

/// `GYM_OPENENV_SESSIONS`, or few enough for any machine.
fn sessions() -> usize {
    std::env::var("GYM_OPENENV_SESSIONS")
        .map_or(40, |count| count.parse().expect("GYM_OPENENV_SESSIONS: a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_isolated_and_none_is_left() {
    let Some(python) = Peers::OpenEnvs.python("sessions_are_isolated_and_none_is_left") else { return };
    // Room for one run and no more: a session that is left would leave the next run too little.
    let most = sessions().to_string();
    let server = Server::start("counting", &[("MAX_CONCURRENT_ENVS", &most)]).await;
    // One kind of client after the other: together they are too much for the one thread on which all clients run.
    for mode in ["ws", "mcp", "mixed", "ws"] {
        let played = tokio::process::Command::new(python)
            .arg(Peers::OpenEnvs.script("sessions.py"))
            .args(["--base-url", server.url(), "--sessions", &most, "--steps", "10", "--modes", mode])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .expect("run sessions.py");
        let (said, why) = (String::from_utf8_lossy(&played.stdout), String::from_utf8_lossy(&played.stderr));
        assert!(played.status.success(), "{mode}: {said}{why}");
        println!("{mode}: {}", said.trim_end());
    }
}
