//! What the targets share: signatures by hand, over text that the crate's own API would never sign.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::{Digest as _, Sha1};

/// `value.signature`, as itsdangerous signs it.
pub fn sign(salt: &str, secret: &str, value: &str) -> String {
    let key = Sha1::digest(format!("{salt}signer{secret}"));
    let mac = Hmac::<Sha1>::new_from_slice(&key).expect("any length will do").chain_update(value).finalize();
    format!("{value}.{}", url_safe(&mac.into_bytes()))
}

/// URL-safe base64 without padding.
pub fn url_safe(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}
