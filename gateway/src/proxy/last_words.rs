//! What an MCP event stream says when its worker has exited under it.
//!
//! The stream of a POST ends with the answer to its request. A client whose stream breaks off before waits for that
//! answer, the official ones for ever; so the gateway gives it: a JSON-RPC error for the request's ID.

use bytes::Bytes;
use http::{HeaderMap, header};

use super::Refusal;

/// The end of an event stream, as long as its worker has not given it.
#[derive(Debug)]
pub(super) struct LastWords {
    /// The request's ID, as JSON.
    request: String,
    place: Place,
}

/// Where in the stream its last byte was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Between two events, or before the first.
    Between,
    /// Behind a line of an event that may have others.
    LineEnd,
    /// Behind a carriage return, which may be half of a line's end.
    HalfLineEnd,
    /// In a line.
    InLine,
}

impl LastWords {
    /// For the reply to a request with this ID; `None` if nothing can be added to it.
    pub(super) fn of(request: Option<String>, reply: &HeaderMap) -> Option<Self> {
        let kind = reply.get(header::CONTENT_TYPE)?.as_bytes();
        let is_stream = kind.get(..17).is_some_and(|kind| kind.eq_ignore_ascii_case(b"text/event-stream"));
        let is_plain =
            !reply.contains_key(header::CONTENT_ENCODING) && !reply.contains_key(header::CONTENT_LENGTH);
        (is_stream && is_plain).then_some(Self { request: request?, place: Place::Between })
    }

    /// Follows the stream.
    pub(super) fn follow(&mut self, bytes: &[u8]) {
        // Two line ends are at most four bytes, and the place says what was before them.
        let behind = bytes.len().saturating_sub(4);
        if behind > 0 {
            self.place = Place::InLine;
        }
        for &byte in &bytes[behind..] {
            self.place = match (self.place, byte) {
                (Place::Between | Place::LineEnd, b'\n') => Place::Between,
                (Place::HalfLineEnd | Place::InLine, b'\n') => Place::LineEnd,
                (Place::Between, b'\r') => Place::Between,
                (Place::LineEnd | Place::HalfLineEnd, b'\r') => Place::Between,
                (Place::InLine, b'\r') => Place::HalfLineEnd,
                _ => Place::InLine,
            };
        }
    }

    /// The bytes that end the stream: nothing of a broken event, and the answer.
    pub(super) fn say(self, refusal: &Refusal) -> Bytes {
        let error = refusal.json_rpc(&self.request);
        let error = String::from_utf8_lossy(&error);
        // A name that no client listens for lets the half event go unheard.
        let unfinished = match self.place {
            Place::Between => "",
            Place::LineEnd => "event: broken-off\n\n",
            Place::HalfLineEnd | Place::InLine => "\nevent: broken-off\n\n",
        };
        Bytes::from(format!("{unfinished}event: message\ndata: {error}\n\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session;

    fn reply(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &'static str)| {
            (header::HeaderName::from_static(name), header::HeaderValue::from_static(value))
        };
        lines.iter().map(line).collect()
    }

    fn words() -> LastWords {
        let stream = reply(&[("content-type", "text/event-stream; charset=utf-8")]);
        LastWords::of(Some("7".into()), &stream).unwrap()
    }

    #[test]
    fn only_plain_event_streams_have_them() {
        let of = |lines: &[_]| LastWords::of(Some("7".into()), &reply(lines)).is_some();
        assert!(of(&[("content-type", "Text/Event-Stream")]));
        assert!(!of(&[("content-type", "application/json")]));
        assert!(!of(&[]));
        assert!(!of(&[("content-type", "text/event-stream"), ("content-encoding", "gzip")]));
        assert!(!of(&[("content-type", "text/event-stream"), ("content-length", "7")]));
        assert!(LastWords::of(None, &reply(&[("content-type", "text/event-stream")])).is_none());
    }

    #[test]
    fn a_broken_event_goes_unheard() {
        let rows: [(&[&str], &str); 12] = [
            (&[], ""),
            (&["data: 1\n\n"], ""),
            (&["data: 1\r\n\r\n"], ""),
            (&["data: 1\r\r"], ""),
            (&["data: 1\r\n", "\r", "\n"], ""),
            (&[": ping\n\ndata: 1\n", "\n"], ""),
            (&["data: 1"], "\nevent: broken-off\n\n"),
            (&["data: 1\n\n", "d"], "\nevent: broken-off\n\n"),
            (&["data: 1\r"], "\nevent: broken-off\n\n"),
            (&["data: 1\n"], "event: broken-off\n\n"),
            (&["data: 1\r\n"], "event: broken-off\n\n"),
            (&["\n\nx\n"], "event: broken-off\n\n"),
        ];
        for (pieces, expected) in rows {
            let mut words = words();
            pieces.iter().for_each(|piece| words.follow(piece.as_bytes()));
            let lost = Refusal::Rule(session::Refusal::SessionLost(session::SessionId::new("a").unwrap()));
            let said = words.say(&lost);
            let said = std::str::from_utf8(&said).unwrap();
            let answer = said.strip_prefix(expected).unwrap_or_else(|| panic!("{pieces:?}: {said}"));
            let json = answer.strip_prefix("event: message\ndata: ").unwrap().strip_suffix("\n\n").unwrap();
            let json: serde_json::Value = serde_json::from_str(json).unwrap();
            assert_eq!((&json["id"], &json["error"]["data"]["code"]), (&7.into(), &"session_lost".into()));
        }
    }
}
