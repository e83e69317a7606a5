//! itsdangerous' default signature: HMAC-SHA1 with a key derived from secret and salt ("django-concat").

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::{Digest as _, Sha1};

use crate::b64;

/// A derived key with both HMAC pads already absorbed.
#[derive(Clone)]
pub(crate) struct Key(Hmac<Sha1>);

impl Key {
    /// `sha1(salt + "signer" + secret)` is the HMAC key, as in itsdangerous' `Signer.derive_key`.
    pub(crate) fn derive(secret: &str, salt: &str) -> Self {
        let derived = Sha1::new().chain_update(salt).chain_update("signer").chain_update(secret).finalize();
        // HMAC pads a short key with zeros to the hash's block.
        let mut block = [0; 64];
        block[..derived.len()].copy_from_slice(&derived);
        Self(Hmac::new(&block.into()))
    }

    /// Whether `signature` (URL-safe base64) is `value`'s. Compares in constant time.
    pub(crate) fn verify(&self, value: &str, signature: &str) -> bool {
        let mut bytes = [0; 20];
        let length = b64::decode_url_safe_into(signature.as_bytes(), &mut bytes);
        length == Some(bytes.len()) && self.0.clone().chain_update(value).verify(&bytes.into()).is_ok()
    }

    /// Appends `.` and the signature of what `value` holds.
    pub(crate) fn sign(&self, value: &mut String) {
        let signature = self.0.clone().chain_update(value.as_bytes()).finalize().into_bytes();
        value.push('.');
        b64::encode_url_safe(&signature, value);
    }
}
