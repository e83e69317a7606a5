//! The example `counting_env` as a process of its own on a port.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    thread::JoinHandle,
};

use gym_gateway_tests::harness::binary;

/// A running variant; killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    url: String,
    /// Reads what it logs: a full pipe would stop it.
    log: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a variant, `counting`, `plain` or `broken`, with these variables, and waits until it listens.
    pub(crate) async fn start(variant: &str, variables: &[(&str, &str)]) -> Self {
        let program = tokio::task::spawn_blocking(|| binary::example("counting_env"))
            .await
            .expect("the example is built");
        let mut child = Command::new(program)
            .args(["--port", "0", "--env", variant])
            .envs(variables.iter().copied())
            .env_remove("GYM_WORKER_SOCKET")
            .env_remove("PORT")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start the example");
        let mut lines = BufReader::new(child.stderr.take().expect("its log")).lines();
        let mut said = Vec::new();
        let address = loop {
            let Some(Ok(line)) = lines.next() else {
                panic!("{variant} never listened:\n{}", said.join("\n"))
            };
            if let Some((_, address)) = line.split_once("listening address=") {
                break address.trim().to_owned();
            }
            said.push(line);
        };
        let log = std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { child, url: format!("http://{address}"), log: Some(log) }
    }

    /// `http://127.0.0.1:1234`
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(log) = self.log.take() {
            let _ = log.join();
        }
    }
}
