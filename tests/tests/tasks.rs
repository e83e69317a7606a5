//! `gym-gateway tasks`: its lines, and its exit codes.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it stands")]

use std::{path::Path, process::Stdio, sync::Arc};

use axum::{Json, Router, routing::get};
use gym_gateway_tests::harness::{binary, soon};
use gym_worker_sdk::tasks::{Split, TaskApi, TaskError, TaskProvider, TaskRange};
use serde_json::{Value, json};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

struct Rows;

impl TaskProvider for Rows {
    type Task = Value;

    async fn list_splits(&self) -> Result<Vec<Split>, TaskError> {
        Ok(vec!["train".into(), "holdout".into()])
    }

    async fn num_tasks(&self, split: &str) -> Result<u64, TaskError> {
        match split {
            "train" | "stream" => Ok(1234),
            _ => Err(TaskError::failed("unknown split")),
        }
    }

    async fn get_task_range(&self, split: &str, range: TaskRange) -> Result<Vec<Value>, TaskError> {
        let rows = range.within(self.num_tasks(split).await?);
        if split == "stream" || rows.end - rows.start > 100 {
            return Err(TaskError::NotSupported);
        }
        Ok(rows.map(|index| json!({"id": format!("{split}-{index}"), "index": index})).collect())
    }
}

/// What the command said.
struct Said {
    code: i32,
    lines: Vec<Value>,
    err: String,
}

async fn tasks(args: &[&str]) -> Said {
    tasks_trusting(args, None).await
}

/// Trusts one certificate instead of the system's.
async fn tasks_trusting(args: &[&str], certificate: Option<&Path>) -> Said {
    let mut command = tokio::process::Command::new(binary::gateway());
    command.arg("tasks").args(args).stdin(Stdio::null()).kill_on_drop(true);
    command.envs(certificate.map(|file| ("SSL_CERT_FILE", file)));
    let output = soon("the end of tasks", command.output()).await.expect("run tasks");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    let lines = text(output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Said { code: output.status.code().expect("a code"), lines, err: text(output.stderr) }
}

async fn serve(routes: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(tokio::spawn(async move { axum::serve(listener, routes).await }));
    address.to_string()
}

async fn rows() -> String {
    serve(TaskApi::new(|| Rows).named("rows_env").into_router()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_given_is_listed() {
    let url = format!("http://{}", rows().await);
    let said = tasks(&[&url]).await;
    assert_eq!((said.code, &said.err[..], said.lines), (0, "", vec![json!({"env": "rows_env"})]));
    let said = tasks(&[&url, "--env", "Rows_Env"]).await;
    let splits =
        [json!({"name": "train", "type": "train"}), json!({"name": "holdout", "type": "validation"})];
    assert_eq!((said.code, &said.err[..], &said.lines[..]), (0, "", &splits[..]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_are_lines() {
    let url = format!("ws://{}/ws", rows().await);
    let said = tasks(&[&url, "--split", "train"]).await;
    assert_eq!((said.code, &said.err[..]), (0, ""), "no bar where nobody sees it");
    let indices: Vec<u64> = said.lines.iter().map(|task| task["index"].as_u64().unwrap()).collect();
    assert!(indices.into_iter().eq(0..1234), "of the only environment");
    for (range, rows) in [("3:5", 3..5), ("-2:", 1232..1234), (":2", 0..2), ("5:3", 0..0)] {
        let said = tasks(&[&url, "--env", "rows_env", "--split", "train", "--range", range]).await;
        let ids: Vec<&str> = said.lines.iter().map(|task| task["id"].as_str().unwrap()).collect();
        let expected: Vec<String> = rows.map(|index| format!("train-{index}")).collect();
        assert_eq!((said.code, &said.err[..], ids), (0, "", expected.iter().map(String::as_str).collect()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_listed_is_told() {
    let url = format!("http://{}", rows().await);
    let two = serve(Router::new().route("/list_environments", get(async || Json(["a", "b"])))).await;
    let two = format!("http://{two}");
    for (args, code, why) in [
        (&[&url[..], "--env", "other"][..], 1, "answers 404: unknown environment 'other'"),
        (&[&url, "--split", "nope"], 1, "answers 500: Internal Server Error"),
        (&[&url, "--split", "stream"], 1, "get_task_range is not supported for this environment"),
        (&["http://127.0.0.1:1"], 1, "no reply"),
        (&[&two, "--split", "train"], 2, "choose one with --env: a, b"),
        (&["https://127.0.0.1:1"], 1, "no reply"),
        (&["ftp://127.0.0.1:1"], 2, "ftp is not supported"),
        (&[&url, "--range", "0:1"], 2, "--split"),
        (&[&url, "--split", "train", "--range", "1"], 2, "expected A:B"),
        (&[&url, "--split", "train", "--range", "a:"], 2, "\"a\" is no row"),
    ] {
        let said = tasks(args).await;
        assert_eq!((said.code, said.lines), (code, vec![]), "{args:?}: {}", said.err);
        assert!(said.err.contains(why), "{args:?}: {}", said.err);
    }
}

/// A key and its certificate, for 127.0.0.1 and tests alone.
fn tls(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/tls").join(file)
}

/// Puts TLS in front of a server; returns its address.
async fn behind_tls(server: String) -> String {
    let certificate = CertificateDer::from_pem_file(tls("certificate.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(tls("key.pem")).unwrap();
    let config =
        ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            // A client that does not trust the certificate breaks off.
            let Ok(mut client) = acceptor.accept(client).await else { continue };
            let mut server = tokio::net::TcpStream::connect(&server).await.unwrap();
            let _ended = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        }
    });
    address.to_string()
}

#[tokio::test]
async fn a_server_behind_tls_is_asked_if_its_certificate_is_trusted() {
    let address = behind_tls(rows().await).await;
    for url in [format!("https://{address}"), format!("wss://{address}/ws")] {
        let args = [&url[..], "--split", "train", "--range", "7:9"];
        let said = tasks_trusting(&args, Some(&tls("certificate.pem"))).await;
        assert_eq!(said.code, 0, "{url}: {}", said.err);
        assert_eq!(said.lines.len(), 2, "{:?}", said.lines);
        let said = tasks(&args).await;
        assert_eq!((said.code, said.lines), (1, vec![]), "{}", said.err);
        assert!(said.err.contains("certificate"), "{}", said.err);
    }
}
