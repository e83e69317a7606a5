//! OpenEnv's own server and clients.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use gym_gateway_tests::harness::{Peers, admin, processes, soon};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use crate::{alone, front::Front, sessions::count};

const KIND: &str = "openenv_servers";
const SERVER: &str = "server.py";

async fn start(python: &Path, limit: u32, own: Value) -> Front {
    let mut block = json!({"environment": {"MAX_CONCURRENT_ENVS": limit.to_string()}});
    for (key, value) in own.as_object().into_iter().flatten() {
        block[key] = value.clone();
    }
    Front::start(python, KIND, SERVER, block).await
}

/// Runs a program of the peers to its end: whether it was content, and what it said.
async fn run(python: &Path, script: &str, args: &[&str]) -> (bool, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(python);
    command.arg(Peers::OpenEnvs.script(script)).args(args).kill_on_drop(true);
    command.env("SSL_CERT_FILE", small_store(python, folder.path()).await);
    let output = command.output().await.expect("run the peer's program");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    // Into the log of `make e2e`.
    println!("{script} {}: {said}", args.join(" "));
    (output.status.success(), said)
}

/// Certificates of one authority. A client of httpx reads its store when it is made, which takes 40 ms for the usual one:
/// two hundred of them would keep the event loop longer than OpenEnv's client waits for a handshake.
async fn small_store(python: &Path, folder: &Path) -> PathBuf {
    let file = folder.join("one.pem");
    let first = "import certifi, sys; text = open(certifi.where()).read(); end = '-----END CERTIFICATE-----\\n'; \
                 open(sys.argv[1], 'w').write(text[text.index('-----BEGIN'):text.index(end)] + end)";
    let made = Command::new(python).args(["-c", first]).arg(&file).status().await.expect("run Python");
    assert!(made.success(), "the first of certifi's certificates");
    file
}

async fn sessions(python: &Path, front: &Front, sessions: u32, modes: &str) -> (bool, Value) {
    let sessions = sessions.to_string();
    let url = front.url();
    let size = ["--sessions", &sessions, "--steps", "10", "--timeout", "600"];
    let args = [&["--base-url", &url, "--modes", modes][..], &size].concat();
    let (ok, said) = run(python, "sessions.py", &args).await;
    let tally = said.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("no tally: {said}"));
    (ok, serde_json::from_str(tally).expect("JSON"))
}

/// How many sessions the workers themselves have: as many as it takes until one says that it is full.
async fn places_taken(front: &Front, limit: usize) -> usize {
    let mut taken = 0;
    for worker in front.workers().await {
        let address = worker["address"].as_str().expect("an address").to_owned();
        taken += limit - free_places(&address).await;
    }
    taken
}

async fn free_places(address: &str) -> usize {
    use gym_gateway_tests::harness::Call;
    let address = address.trim_start_matches("tcp:").parse().expect("host and port");
    let create = json!({"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create", "params": {}});
    let mut free = 0;
    loop {
        let answer = Call::new(address, http::Method::POST, "/mcp").json(&create).send().await.assert(200);
        if answer.json()["error"].is_object() {
            return free;
        }
        free += 1;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_openenv_session_is_its_own_and_none_stays() {
    let test = "every_openenv_session_is_its_own_and_none_stays";
    let Some(python) = Peers::OpenEnvs.python(test) else { return };
    let _alone = alone().await;
    // A worker has to have room for its share of the three modes, and some for the end of those before it.
    let limit = count().max(8);
    let front = start(python, limit, json!({})).await;
    let (ok, tally) = sessions(python, &front, count(), "ws,mcp,mixed").await;
    assert!(ok, "{tally}");
    for state in ["claimed", "open"] {
        admin::sessions_become(front.gateway(), state, 0.0).await;
    }
    assert_eq!(places_taken(&front, limit as usize).await, 0, "sessions left on workers");
    front.finish().await;
}

/// What the test above is worth.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_owners_every_openenv_session_over_http_fails() {
    let test = "without_owners_every_openenv_session_over_http_fails";
    let Some(python) = Peers::OpenEnvs.python(test) else { return };
    let _alone = alone().await;
    let front = start(python, 200, json!({"routes_sessions_to_owner": false})).await;
    let (ok, tally) = sessions(python, &front, 40, "mcp").await;
    assert!(!ok);
    assert_eq!(tally["ok"], 0, "{tally}");
    front.finish().await;
}

/// All that was recorded from one server, through the gateway. The limits are those of the recording: four workers of one
/// session each, and one worker where one session is the limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_wire_is_that_of_one_server() {
    let Some(python) = Peers::OpenEnvs.python("the_wire_is_that_of_one_server") else { return };
    let _alone = alone().await;
    let command =
        |env: &str| json!([python, Peers::OpenEnvs.script(SERVER), "--env", env, "--port", "{port}"]);
    let main = start(python, 1, json!({"max_sessions_per_worker": 1})).await;
    let one = json!({"command": command("plain"), "num_workers": 1, "max_sessions_per_worker": 1});
    let plain = start(python, 1, one).await;
    let broken = start(python, 4, json!({"command": command("broken"), "num_workers": 2})).await;
    let (main_url, plain_url, broken_url) = (main.url(), plain.url(), broken.url());
    let urls = ["--base-url", &main_url, "--plain-url", &plain_url, "--broken-url", &broken_url];
    let (ok, said) = run(python, "wire_cases.py", &urls).await;
    assert!(ok && said.contains("0 failed, 0 skipped"), "{said}");
    for front in [main, plain, broken] {
        front.finish().await;
    }
}

/// `lost_clients.py` under way.
struct Lost {
    client: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Lost {
    fn start(python: &Path, front: &Front, args: &[&str]) -> Self {
        let mut client = Command::new(python)
            .arg(Peers::OpenEnvs.script("lost_clients.py"))
            .args(["--base-url", &front.url()])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("start the client");
        let lines = BufReader::new(client.stdout.take().expect("piped")).lines();
        Self { client, lines }
    }

    async fn says(&mut self, expected: &str) {
        let line = self.lines.next_line().await.expect("the client's output");
        assert_eq!(line.as_deref(), Some(expected));
    }

    async fn go_on(&mut self) {
        self.client.stdin.as_mut().expect("piped").write_all(b"\n").await.expect("tell the client");
    }

    async fn end(mut self) -> Value {
        let line = self.lines.next_line().await.expect("the client's output").expect("its last line");
        self.client.wait().await.expect("the client's end");
        println!("lost_clients.py: {line}");
        serde_json::from_str(&line).expect("JSON")
    }
}

/// Every call after the loss raises an error that names the session, and a new client gets a new one.
fn assert_said(told: &Value) {
    assert_eq!(told["before"]["count"], 5, "{told}");
    for call in told["calls"].as_array().expect("calls") {
        let error = call[1]["error"].as_str().unwrap_or_else(|| panic!("no error: {call} of {told}"));
        let named =
            told["session"].as_str().map_or("Session ".into(), |session| format!("Session {session}"));
        assert!(error.contains(&named) && error.contains("is lost"), "{call} of {told}");
    }
    assert_eq!(told["anew"]["count"], 5, "{told}");
}

async fn slot_with_a_session(front: &Front) -> usize {
    for slot in 0..crate::front::WORKERS {
        if front.sessions("open", Some(slot)).await > 0 {
            return slot;
        }
    }
    panic!("no worker has a session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openenvs_clients_hear_of_a_killed_worker_with_every_later_call() {
    let test = "openenvs_clients_hear_of_a_killed_worker_with_every_later_call";
    let Some(python) = Peers::OpenEnvs.python(test) else { return };
    let _alone = alone().await;
    let front = start(python, 10, json!({"restart_backoff_seconds": 0.1})).await;
    for client in ["generic", "sync", "mcp"] {
        let mut lost = Lost::start(python, &front, &["--client", client]);
        lost.says("held").await;
        front.kill(slot_with_a_session(&front).await).await;
        lost.go_on().await;
        assert_said(&lost.end().await);
        let mut lost = Lost::start(python, &front, &["--client", client, "--in-flight"]);
        lost.says("held").await;
        let slot = slot_with_a_session(&front).await;
        let worker = front.workers().await[slot]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        processes::signal(worker.expect("a PID"), Signal::SIGSTOP);
        lost.go_on().await;
        lost.says("under way").await;
        front.kill(slot).await;
        lost.go_on().await;
        assert_said(&soon("the end of the client", lost.end()).await);
    }
    assert_eq!(front.sessions_lost().await, 6);
    front.finish().await;
}
