//! Streams of events, in the form that the client reads.
//!
//! A result comes in pieces of 4096 characters: events `chunk`, and `end` for the last. The client strips white space at
//! the beginning of each piece, which would be lost from the middle of a text; here such a piece begins with its
//! first character written as JSON's `\u` escape.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _, stream};
use tokio::sync::watch;

use super::open::Outcome;

/// How long a stream may be silent: the client gives up after 30 s.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// In characters.
const PIECE: usize = 4096;

/// A reply with these events.
pub(super) fn reply(events: impl Stream<Item = String> + Send + 'static) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    let events = events.map(|event| Ok::<_, Infallible>(Bytes::from(event)));
    (headers, Body::from_stream(events)).into_response()
}

/// One event.
pub(super) fn event(name: &str, data: &str) -> String {
    let mut event = format!("event: {name}\r\n");
    let data = data.replace("\r\n", "\n").replace('\r', "\n");
    for line in data.split('\n') {
        event.extend(["data: ", line, "\r\n"]);
    }
    event + "\r\n"
}

/// The call's ID, signs of life, and what came of it. `in_use` is kept to the end.
pub(super) fn of_call<T: Send + 'static>(
    id: &str,
    outcome: watch::Receiver<Outcome>,
    in_use: T,
) -> impl Stream<Item = String> + Send + 'static + use<T> {
    let first = VecDeque::from([event("task_id", id)]);
    stream::unfold((first, Some(outcome), in_use), |(mut ready, mut waits, in_use)| async move {
        if let Some(event) = ready.pop_front() {
            return Some((event, (ready, waits, in_use)));
        }
        let came = tokio::select! {
            // Who calls sends it before it goes.
            came = async { waits.as_mut()?.wait_for(Option::is_some).await.ok()?.clone() } => came?,
            () = tokio::time::sleep(KEEP_ALIVE) => return Some((": ping\r\n\r\n".to_owned(), (ready, waits, in_use))),
        };
        ready = match came {
            Ok(json) => pieces(&json),
            Err(words) => VecDeque::from([event("error", &words)]),
        };
        ready.pop_front().map(|event| (event, (ready, None, in_use)))
    })
}

/// The events of a result.
fn pieces(json: &str) -> VecDeque<String> {
    let mut events = VecDeque::new();
    let mut rest = json;
    while !rest.is_empty() {
        let end = rest.char_indices().nth(PIECE).map_or(rest.len(), |(end, _)| end);
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        let name = if rest.is_empty() { "end" } else { "chunk" };
        let piece = match piece.chars().next().filter(|first| first.is_whitespace()) {
            // Between JSON's tokens there is none: it is in a string, and no escape.
            Some(first) => &format!("\\u{:04x}{}", u32::from(first), &piece[first.len_utf8()..]),
            None => piece,
        };
        events.push_back(event(name, piece));
    }
    events
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    /// What the client makes of a stream's text.
    fn read(events: impl IntoIterator<Item = String>) -> String {
        let mut whole = String::new();
        for event in events {
            for line in event.split("\r\n").filter_map(|line| line.strip_prefix("data:")) {
                whole += line.trim_start();
            }
        }
        whole
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_result_is_read_as_it_was(text in "([ \u{3000}\u{a0}\\\\\"a🦀]{0,1500}\n?){0,20}") {
            let json = serde_json::to_string(&text).unwrap();
            let events = pieces(&json);
            let read: String = serde_json::from_str(&read(events.iter().cloned())).unwrap();
            prop_assert_eq!(read, text);
            prop_assert_eq!(events.len(), json.chars().count().div_ceil(PIECE));
            prop_assert!(events.iter().rev().skip(1).all(|event| event.starts_with("event: chunk\r\n")));
            prop_assert!(events.back().unwrap().starts_with("event: end\r\n"));
        }
    }

    #[test]
    fn lines_of_an_error_are_lines_of_data() {
        assert_eq!(
            event("error", "a\nb\r\nc\rd"),
            "event: error\r\ndata: a\r\ndata: b\r\ndata: c\r\ndata: d\r\n\r\n"
        );
        assert_eq!(event("end", ""), "event: end\r\ndata: \r\n\r\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_call_shows_signs_of_life() {
        let (sender, waits) = watch::channel(None);
        let mut events = Box::pin(of_call("c1", waits, ()));
        assert_eq!(events.next().await.unwrap(), event("task_id", "c1"));
        let begin = tokio::time::Instant::now();
        for times in 1..=3 {
            assert_eq!(events.next().await.unwrap(), ": ping\r\n\r\n");
            assert_eq!(begin.elapsed(), KEEP_ALIVE * times);
        }
        sender.send_replace(Some(Ok(Arc::from("{}"))));
        assert_eq!(events.next().await.unwrap(), event("end", "{}"));
        assert_eq!(events.next().await, None);
    }
}
