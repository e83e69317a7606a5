//! The dry run, with a shell in Python's place.

use std::{collections::BTreeMap, time::Duration};

use gym_gateway::{
    config::{Launch, ServerConfig},
    workers::{Asked, Refused, Unasked, ask},
};
use serde_json::json;

use crate::{config, program};

struct Server {
    config: ServerConfig,
    _folder: tempfile::TempDir,
}

impl Server {
    /// Its `app.py` is this shell script.
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("app.py"), script).unwrap();
        let mut config = config(Vec::new(), "");
        config.num_workers = 4;
        config.launch = Launch::NemoGym {
            python: "/bin/sh".into(),
            directory: folder.path().into(),
            entrypoint: "app.py".into(),
            kind_key: "resources_servers".into(),
            implementation: "example".into(),
            global_config: json!({"test": {"resources_servers": {"example": {"entrypoint": "app.py"}}}}),
            env: BTreeMap::new(),
        };
        Self { config, _folder: folder }
    }

    async fn ask(&self) -> Result<Asked, Refused> {
        ask(&self.config, &program()).await
    }
}

#[tokio::test]
async fn a_server_that_goes_through_its_dry_run_agrees() {
    let script =
        r#"case "$NEMO_GYM_CONFIG_DICT" in *'"num_workers":4'*'"dry_run":true'*) exit 0;; esac; exit 1"#;
    assert_eq!(Server::new(script).ask().await.unwrap(), Asked::Agreed);
}

#[tokio::test]
async fn a_server_s_own_words_are_the_reason_of_a_refusal() {
    let refused =
        Server::new("echo Traceback; echo 'ValueError: requires num_workers=1' >&2; exit 1").ask().await;
    let text = refused.unwrap_err().to_string();
    for part in [
        "server test: did not agree to num_workers: 4 in a dry run: it exited with status 1",
        "| ValueError: requires num_workers=1",
        "If it says that the server must have one worker, set num_workers: 1",
        "gateway.servers.test.multiple_workers_unsupported_reason: \"\"",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[tokio::test]
async fn a_server_that_breaks_down_is_not_said_to_refuse() {
    let script = r#"echo "ModuleNotFoundError: No module named 'gym'" >&2; exit 1"#;
    let text = Server::new(script).ask().await.unwrap_err().to_string();
    assert_eq!(
        text,
        "server test: did not agree to num_workers: 4 in a dry run: it exited with status 1\
         \n  its last output:\
         \n    | ModuleNotFoundError: No module named 'gym'\
         \n  what to do: read its output. If it says that the server must have one worker, set num_workers: 1 \
         (or, if you know better, gateway.servers.test.multiple_workers_unsupported_reason: \"\"). \
         If it could not start at all, such as for a missing module, mend that first: \
         gateway.servers.test.python and .directory say with what and where it runs"
    );
}

#[tokio::test]
async fn a_server_that_does_not_end_its_dry_run_is_killed() {
    let mut server = Server::new("echo $$; trap '' TERM; sleep 1000");
    server.config.settings.start_timeout = Duration::from_millis(700);
    let refused = server.ask().await.unwrap_err();
    assert_eq!(refused.seen, "it had not ended after 0.7 s");
    assert!(!crate::lives(refused.output[0].parse().unwrap()));
}

#[tokio::test]
async fn an_interpreter_that_is_not_there_is_named() {
    let mut server = Server::new("");
    if let Launch::NemoGym { python, .. } = &mut server.config.launch {
        *python = "/no/such/python".into();
    }
    assert!(server.ask().await.unwrap_err().seen.contains("cannot run /no/such/python"));
}

#[tokio::test]
async fn nobody_is_asked_who_need_not_be() {
    let mut one = Server::new("exit 1");
    one.config.num_workers = 1;
    let mut settled = Server::new("exit 1");
    settled.config.settings.multiple_workers_unsupported_reason = Some(String::new());
    for (server, why) in [(one, Unasked::OneWorker), (settled, Unasked::Reason)] {
        assert_eq!(server.ask().await.unwrap(), Asked::NotNeeded(why));
    }
    let mut command = config(vec!["false".into()], "");
    command.num_workers = 4;
    assert_eq!(ask(&command, &program()).await.unwrap(), Asked::NotNeeded(Unasked::Command));
}
