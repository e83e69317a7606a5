//! A process's whole standard output, where it is an answer.

use std::sync::{Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

/// Keeps what a process writes on its standard output, up to a limit.
#[derive(Debug)]
pub(crate) struct Capture {
    text: Mutex<String>,
    limit: usize,
    overflow: CancellationToken,
}

impl Capture {
    pub(crate) fn new(limit: usize) -> Self {
        Self { text: Mutex::default(), limit, overflow: CancellationToken::new() }
    }

    /// Takes a line; one with which the text would be over the limit is dropped, and told.
    pub(crate) fn push(&self, line: &str) {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        if text.len() + line.len() >= self.limit {
            self.overflow.cancel();
        } else {
            text.push_str(line);
            text.push('\n');
        }
    }

    pub(crate) fn text(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn has_overflowed(&self) -> bool {
        self.overflow.is_cancelled()
    }

    /// Waits until it was too much.
    pub(crate) async fn overflowed(&self) {
        self.overflow.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_the_limit_is_not_kept() {
        let capture = Capture::new(8);
        capture.push("one");
        capture.push("two");
        assert_eq!((capture.text().as_str(), capture.has_overflowed()), ("one\ntwo\n", false));
        capture.push("");
        assert_eq!((capture.text().as_str(), capture.has_overflowed()), ("one\ntwo\n", true));
    }
}
