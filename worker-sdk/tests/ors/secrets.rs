//! A session's secrets are its environment's alone.

use std::io;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::{Request, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tower::ServiceExt as _;
use tracing_subscriber::fmt::MakeWriter;

use crate::{text_of, twin};

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_secret_is_logged_or_answered() {
    let log = Log::default();
    let everything = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone());
    let _logged = tracing::subscriber::set_default(everything.finish());
    let router = twin::server();
    let good = r#"{"key": {"value": "hush-hush", "allowed_domains": []}}"#;
    for (json, task, status) in [
        (good, r#"{"target": 5}"#, 200),
        (good, r#"{"target": 5, "begins": "failing"}"#, 500),
        (good, r#"{"target": "hush"}"#, 422),
        (r#"{"key": "hush-hush"}"#, r#"{"target": 5}"#, 400),
        (r#"{"key": {"value": "hush-hush""#, r#"{"target": 5}"#, 400),
    ] {
        let sid = format!("{status}-session");
        let request = Request::post("/create")
            .header(header::CONTENT_TYPE, "application/json")
            .header("x-session-id", sid)
            .header("x-secrets", STANDARD.encode(json));
        let request = request.body(Body::from(format!(r#"{{"task_spec": {task}}}"#))).unwrap();
        let reply = router.clone().oneshot(request).await.unwrap();
        assert_eq!(reply.status(), status);
        let said = text_of(reply).await;
        assert!(!said.contains("hush-hush"), "{said}");
    }
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("created") && logged.contains("no room"), "{logged}");
    let encoded = STANDARD.encode(good);
    assert!(!logged.contains("hush-hush") && !logged.contains(&encoded[..20]), "{logged}");
}
