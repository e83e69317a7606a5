//! Kinds whose sessions are named by a header: Open Reward Standard and Model Context Protocol.

use http::{HeaderMap, StatusCode, header::HeaderName};

use super::{By, MAX_HEADER_ID_BYTES, Named, Refusal, Reply, Says, SessionId};
use crate::config::Kind;

/// Names an ORS session in every request of it. The server hands out an ID at `/create_session` and forgets it: what
/// makes the session is `/create` with that ID, or with any other that the client likes.
static X_SESSION_ID: HeaderName = HeaderName::from_static("x-session-id");

/// Names an MCP session: in the reply to `initialize`, whose server chooses the ID, and in every request after it.
static MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// How the requests of a kind name their session by a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionHeader {
    name: &'static HeaderName,
    /// A reply names a new session.
    in_replies: bool,
}

impl SessionHeader {
    /// That of a kind; `None`: its sessions are not named by a header.
    pub(super) fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Ors => Some(Self { name: &X_SESSION_ID, in_replies: false }),
            Kind::Mcp => Some(Self { name: &MCP_SESSION_ID, in_replies: true }),
            Kind::Resources
            | Kind::Agent
            | Kind::Environment
            | Kind::Model
            | Kind::OpenEnv
            | Kind::Generic => None,
        }
    }

    /// The session that a request names. Without one it is balanced, as one that may begin a session if its reply can.
    ///
    /// # Errors
    /// [`Refusal::InvalidSessionId`] if the ID is too long. It cannot be looked past: other workers do not know the
    /// session, and might begin one of its name.
    pub(super) fn name(self, headers: &HeaderMap) -> Result<Named, Refusal> {
        let by = if self.in_replies { By::Both } else { By::InFlight };
        let named = Named { adopts: self.in_replies, ..Named::nothing(by) };
        match id(headers, self.name) {
            Found::Nothing => Ok(named),
            Found::Id(session) => Ok(Named { session: Some(session), ..named }),
            Found::TooLong(bytes) => Err(Refusal::InvalidSessionId(format!(
                "The session ID in {} must have {MAX_HEADER_ID_BYTES} bytes at most; it has {bytes}.",
                self.name
            ))),
        }
    }

    /// What a reply says. The names in replies of requests that named their session already are passed over by the
    /// table.
    pub(super) fn read_reply(self, status: StatusCode, headers: &HeaderMap) -> Reply {
        let named = match id(headers, self.name) {
            Found::Id(session) if self.in_replies && status.is_success() => Some(session),
            _ => None,
        };
        Reply { status, cookie: named, sets_cookie: false, says: Says::read(headers) }
    }
}

enum Found {
    Nothing,
    Id(SessionId),
    TooLong(usize),
}

/// Of several lines the first counts, as in Starlette; an empty one is none.
fn id(headers: &HeaderMap, name: &HeaderName) -> Found {
    let Some(value) = headers.get(name) else { return Found::Nothing };
    let bytes = value.as_bytes();
    if bytes.len() > MAX_HEADER_ID_BYTES {
        return Found::TooLong(bytes.len());
    }
    SessionId::from_header(bytes).map_or(Found::Nothing, Found::Id)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn request(lines: &[&[u8]]) -> HeaderMap {
        let value = |line: &&[u8]| HeaderValue::from_bytes(line).unwrap();
        lines.iter().map(|line| (X_SESSION_ID.clone(), value(line))).collect()
    }

    fn named(lines: &[&[u8]]) -> Result<Option<String>, Refusal> {
        let header = SessionHeader::of(Kind::Ors).unwrap();
        Ok(header.name(&request(lines))?.session.map(|session| session.to_string()))
    }

    #[test]
    fn the_first_line_counts_as_it_came() {
        let long = [b'x'; MAX_HEADER_ID_BYTES];
        let rows: [(&[&[u8]], Option<&str>); 7] = [
            (&[], None),
            (&[b""], None),
            (&[b" \t"], None),
            (&[b" A%20b "], Some("A%20b")),
            (&[b"a", b"b"], Some("a")),
            (&[b"\xe9"], Some("\u{e9}")),
            (&[&long], Some(std::str::from_utf8(&long).unwrap())),
        ];
        for (lines, expected) in rows {
            assert_eq!(named(lines).unwrap().as_deref(), expected, "{lines:?}");
        }
        assert!(matches!(named(&[&[b'x'; MAX_HEADER_ID_BYTES + 1]]), Err(Refusal::InvalidSessionId(_))));
    }

    #[test]
    fn bytes_that_differ_are_other_ids() {
        let all: Vec<_> =
            [b"\xc3\xa9".as_slice(), b"\xe9", b"\xc3"].map(|line| named(&[line]).unwrap()).into();
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2], "{all:?}");
    }
}
