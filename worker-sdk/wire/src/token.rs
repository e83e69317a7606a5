//! NeMo Gym's MCP session token: itsdangerous' `URLSafeSerializer` over `{"sid": ..., "tools": ...}`, minted by
//! `/seed_session` and sent back in `X-NeMo-Gym-Session-Token`.

use std::fmt;
use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;
use jiter::{Jiter, JiterError, Peek};

use crate::b64;
use crate::signature::Key;

/// What a compressed payload may grow to. Anyone who knows the server's name can sign one.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 20;

/// NeMo Gym's `_MCP_TOKEN_SALT`.
const SALT: &str = "nemo-gym-mcp-session-token";

/// The key of one server's session tokens, derived from the secret of its session cookies.
///
/// ```
/// use gym_wire::token::{SessionToken, SessionTokenKey};
///
/// let key = SessionTokenKey::new("CounterResourcesServer___counter");
/// let token = SessionToken { sid: "abc".into(), tools: None };
/// assert_eq!(key.verify(&key.sign(&token))?, token);
/// # Ok::<(), gym_wire::token::TokenError>(())
/// ```
#[derive(Clone)]
pub struct SessionTokenKey(Key);

/// What a session token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionToken {
    /// The session ID.
    pub sid: String,
    /// The tools that the session may call; `None` for all.
    pub tools: Option<Vec<String>>,
}

/// Why a token names no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The token has no signature behind a dot.
    #[error("the token is not signed")]
    NotSigned,
    /// The signature is not the one that the secret gives.
    #[error("the token's signature is wrong: it was changed, cut, or signed with another secret")]
    BadSignature,
    /// The payload is not base64.
    #[error("the token's payload is not base64")]
    BadPayload,
    /// The payload is said to be compressed, and cannot be inflated.
    #[error("the token's compressed payload is damaged")]
    BadCompression,
    /// The payload inflates to more than [`MAX_PAYLOAD_BYTES`].
    #[error("the token's payload inflates to more than {MAX_PAYLOAD_BYTES} bytes")]
    TooLarge,
    /// The payload is not a JSON object with a string `sid` and, if at all, a list of strings `tools`.
    #[error(
        "the token's payload does not name a session: it needs a string `sid` and a list of names `tools`"
    )]
    NotASession,
}

impl SessionTokenKey {
    /// Derives the key from the server's secret, which NeMo Gym's servers also sign their session cookie with.
    pub fn new(secret: &str) -> Self {
        Self(Key::derive(secret, SALT))
    }

    /// Checks a token and reads it. Tokens have no age.
    ///
    /// # Errors
    /// Where `URLSafeSerializer.loads` raises, or the payload is too large or of another shape.
    pub fn verify(&self, token: &str) -> Result<SessionToken, TokenError> {
        let (payload, signature) = token.rsplit_once('.').ok_or(TokenError::NotSigned)?;
        if !self.0.verify(payload, signature) {
            return Err(TokenError::BadSignature);
        }
        let (text, compressed) = match payload.strip_prefix('.') {
            Some(text) => (text, true),
            None => (payload, false),
        };
        let bytes = b64::decode_url_safe(text.as_bytes()).ok_or(TokenError::BadPayload)?;
        let json = if compressed { inflate(&bytes)? } else { bytes };
        // jiter does not look into the strings that it steps over.
        std::str::from_utf8(&json).map_err(|_| TokenError::NotASession)?;
        read(&json).map_err(|_| TokenError::NotASession)?.ok_or(TokenError::NotASession)
    }

    /// The token that NeMo Gym mints: compressed if that makes it shorter by at least two bytes.
    pub fn sign(&self, token: &SessionToken) -> String {
        let json = write(token);
        let packed = deflate(json.as_bytes()).filter(|packed| packed.len() + 1 < json.len());
        let mut out = String::with_capacity(json.len().div_ceil(3) * 4 + 29);
        match packed {
            Some(packed) => {
                out.push('.');
                b64::encode_url_safe(&packed, &mut out);
            }
            None => b64::encode_url_safe(json.as_bytes(), &mut out),
        }
        self.0.sign(&mut out);
        out
    }
}

impl fmt::Debug for SessionTokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionTokenKey(..)")
    }
}

fn inflate(bytes: &[u8]) -> Result<Vec<u8>, TokenError> {
    let mut json = Vec::new();
    let limit = MAX_PAYLOAD_BYTES as u64 + 1;
    ZlibDecoder::new(bytes).take(limit).read_to_end(&mut json).map_err(|_| TokenError::BadCompression)?;
    if json.len() > MAX_PAYLOAD_BYTES { Err(TokenError::TooLarge) } else { Ok(json) }
}

/// `None` if the compressor fails, which it has no reason to when it writes to memory: the plain form does as well.
fn deflate(json: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(json).ok()?;
    encoder.finish().ok()
}

/// `json.dumps` with compact separators and `ensure_ascii=False`, which is how serde_json writes too.
fn write(token: &SessionToken) -> String {
    serde_json::json!({"sid": token.sid, "tools": token.tools}).to_string()
}

/// Reads the payload; `None` if it has no `sid`. The last duplicate of a key counts, as in Python.
fn read(json: &[u8]) -> Result<Option<SessionToken>, JiterError> {
    let mut jiter = Jiter::new(json).with_allow_inf_nan();
    let (mut sid, mut tools) = (None, None);
    let mut key = jiter.next_object()?.map(Name::of);
    while let Some(name) = key {
        match name {
            Name::Sid => sid = Some(jiter.next_str()?.to_owned()),
            Name::Tools => tools = names(&mut jiter)?,
            Name::Other => jiter.next_skip()?,
        }
        key = jiter.next_key()?.map(Name::of);
    }
    jiter.finish()?;
    Ok(sid.map(|sid| SessionToken { sid, tools }))
}

/// A list of strings, or null.
fn names(jiter: &mut Jiter<'_>) -> Result<Option<Vec<String>>, JiterError> {
    if jiter.peek()? == Peek::Null {
        jiter.known_null()?;
        return Ok(None);
    }
    let mut names = Vec::new();
    let mut next = jiter.next_array()?;
    while next.is_some() {
        names.push(jiter.next_str()?.to_owned());
        next = jiter.array_step()?;
    }
    Ok(Some(names))
}

/// A key of the payload.
enum Name {
    Sid,
    Tools,
    Other,
}

impl Name {
    fn of(key: &str) -> Self {
        match key {
            "sid" => Self::Sid,
            "tools" => Self::Tools,
            _ => Self::Other,
        }
    }
}
