//! Starlette's session cookie, `base64(JSON).timestamp.signature`, as `starlette.middleware.sessions` writes it
//! with itsdangerous' `TimestampSigner`.

mod field;
mod header;

use std::fmt;

pub use field::{Field, string_field};
pub use header::{find, set_cookie, unquote};

use crate::b64;
use crate::signature::Key;

/// How long Starlette's cookies are valid by default: 14 days, in seconds.
pub const MAX_AGE_SECONDS: u64 = 14 * 86400;

/// The salt that itsdangerous' signers use unless told otherwise.
const SALT: &str = "itsdangerous.Signer";

/// The key of one server's session cookies, derived from its secret.
///
/// ```
/// use gym_wire::cookie::{Field, MAX_AGE_SECONDS, SessionCookieKey, string_field};
///
/// let key = SessionCookieKey::new("CounterResourcesServer___counter");
/// let value = key.sign(r#"{"session_id": "abc"}"#, 1_767_225_600);
/// let json = key.verify(&value, 1_767_225_601, MAX_AGE_SECONDS)?;
/// assert_eq!(string_field(&json, "session_id"), Field::Text("abc".into()));
/// # Ok::<(), gym_wire::cookie::CookieError>(())
/// ```
#[derive(Clone)]
pub struct SessionCookieKey(Key);

/// Why a cookie's value names no session. Starlette begins an empty session on each of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CookieError {
    /// The value has no signature behind a dot.
    #[error("the cookie is not signed")]
    NotSigned,
    /// The signature is not the one that the secret gives.
    #[error("the cookie's signature is wrong: it was changed, cut, or signed with another secret")]
    BadSignature,
    /// The signed part has no timestamp behind a dot, or one of more than eight bytes.
    #[error("the cookie's timestamp is missing or malformed")]
    BadTimestamp,
    /// Signed longer ago than the maximal age.
    #[error("the cookie has expired: it was signed {age_seconds} s ago")]
    Expired {
        /// Seconds since it was signed.
        age_seconds: u64,
    },
    /// Signed in the future, which itsdangerous refuses.
    #[error("the cookie was signed {ahead_seconds} s in the future: compare the clocks")]
    FromTheFuture {
        /// Seconds until the time that it bears.
        ahead_seconds: u64,
    },
    /// The payload is not base64.
    #[error("the cookie's payload is not base64")]
    BadPayload,
}

impl SessionCookieKey {
    /// Derives the key from Starlette's `secret_key`; NeMo Gym's is the cookie's own name.
    pub fn new(secret: &str) -> Self {
        Self(Key::derive(secret, SALT))
    }

    /// Checks a cookie's value (unquoted) and returns the payload, which should be JSON.
    ///
    /// `unix` is the current time in seconds. It must not lag behind the signer's clock: a cookie from one second
    /// ahead is refused. `max_age_seconds` is usually [`MAX_AGE_SECONDS`].
    ///
    /// # Errors
    /// Where itsdangerous' `TimestampSigner.unsign` or Python's `b64decode` raises.
    pub fn verify(&self, value: &str, unix: u64, max_age_seconds: u64) -> Result<Vec<u8>, CookieError> {
        let payload = self.payload(value, unix, max_age_seconds)?;
        b64::decode(payload.as_bytes()).ok_or(CookieError::BadPayload)
    }

    /// Checks a cookie's value as [`SessionCookieKey::verify`] does, but for the payload: for a caller that has read it
    /// by [`peek`] and has been doing something harmless with it meanwhile.
    ///
    /// # Errors
    /// Where itsdangerous' `TimestampSigner.unsign` raises.
    pub fn check(&self, value: &str, unix: u64, max_age_seconds: u64) -> Result<(), CookieError> {
        self.payload(value, unix, max_age_seconds).map(|_| ())
    }

    /// The payload of a cookie whose signature and age are good.
    fn payload<'a>(&self, value: &'a str, unix: u64, max_age_seconds: u64) -> Result<&'a str, CookieError> {
        let (signed, signature) = value.rsplit_once('.').ok_or(CookieError::NotSigned)?;
        if !self.0.verify(signed, signature) {
            return Err(CookieError::BadSignature);
        }
        let (payload, timestamp) = signed.rsplit_once('.').ok_or(CookieError::BadTimestamp)?;
        let signed_at = read_timestamp(timestamp)?;
        let age_seconds = unix
            .checked_sub(signed_at)
            .ok_or(CookieError::FromTheFuture { ahead_seconds: signed_at.wrapping_sub(unix) })?;
        if age_seconds > max_age_seconds {
            return Err(CookieError::Expired { age_seconds });
        }
        Ok(payload)
    }

    /// The cookie value that Starlette writes for `json` at `unix` seconds.
    pub fn sign(&self, json: &str, unix: u64) -> String {
        // Base64 of JSON and timestamp, signature, two dots.
        let mut value = String::with_capacity(json.len().div_ceil(3) * 4 + 11 + 27 + 2);
        b64::encode(json.as_bytes(), &mut value);
        value.push('.');
        let bytes = unix.to_be_bytes();
        b64::encode_url_safe(&bytes[unix.leading_zeros() as usize / 8..], &mut value);
        self.0.sign(&mut value);
        value
    }
}

impl fmt::Debug for SessionCookieKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionCookieKey(..)")
    }
}

/// Returns a cookie's payload without checking signature and age: for servers whose secret is unknown.
///
/// # Errors
/// If the value does not have the three parts of a signed cookie, or its payload is not base64.
pub fn peek(value: &str) -> Result<Vec<u8>, CookieError> {
    let (signed, _signature) = value.rsplit_once('.').ok_or(CookieError::NotSigned)?;
    let (payload, _timestamp) = signed.rsplit_once('.').ok_or(CookieError::BadTimestamp)?;
    b64::decode(payload.as_bytes()).ok_or(CookieError::BadPayload)
}

/// Big-endian seconds without leading zero bytes, in URL-safe base64.
fn read_timestamp(text: &str) -> Result<u64, CookieError> {
    let mut bytes = [0; 8];
    let length = b64::decode_url_safe_into(text.as_bytes(), &mut bytes).ok_or(CookieError::BadTimestamp)?;
    Ok(bytes[..length].iter().fold(0, |seconds, byte| (seconds << 8) | u64::from(*byte)))
}
