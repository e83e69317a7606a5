//! The gateway's log, collected line by line as it comes.

use std::{
    io::{BufRead, BufReader, Read},
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;
use tokio::sync::watch;

use super::soon;

/// Lines of a child's output, kept while the child lives and after.
#[derive(Clone, Debug)]
pub struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    count: watch::Receiver<usize>,
}

impl Log {
    /// Begins to read on a thread of its own.
    pub fn of(source: impl Read + Send + 'static) -> Self {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let (tell, count) = watch::channel(0);
        let kept = lines.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(source).lines().map_while(Result::ok) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push(line);
                // Nobody waits any more: the test is over.
                let _ = tell.send(kept.len());
            }
        });
        Self { lines, count }
    }

    /// Everything so far.
    pub fn text(&self) -> String {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    /// The events so far that are JSON objects, their fields beside their message.
    pub fn events(&self) -> Vec<Value> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter_map(|line| serde_json::from_str(line).ok()).map(flatten).collect()
    }

    /// The first event that matches, past or to come; `None` if the output ends without one.
    pub async fn event(&self, what: &str, matches: impl Fn(&Value) -> bool) -> Option<Value> {
        let mut count = self.count.clone();
        let wait = async {
            loop {
                count.borrow_and_update();
                if let Some(event) = self.events().into_iter().find(&matches) {
                    return Some(event);
                }
                if count.changed().await.is_err() {
                    return self.events().into_iter().find(&matches);
                }
            }
        };
        soon(&format!("a log line: {what}"), wait).await
    }

    /// Waits until the output has ended.
    pub async fn ended(&self) {
        let mut count = self.count.clone();
        soon("the end of the log", async { while count.changed().await.is_ok() {} }).await;
    }
}

fn flatten(mut event: Value) -> Value {
    if let Some(Value::Object(fields)) = event.get("fields").cloned() {
        for (key, value) in fields {
            event[key] = value;
        }
    }
    event
}
