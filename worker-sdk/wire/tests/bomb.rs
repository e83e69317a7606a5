//! Signed payloads that inflate to much more than they are.
#![allow(clippy::unwrap_used)] // helpers of tests

use std::io::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use gym_wire::token::{MAX_PAYLOAD_BYTES, SessionTokenKey, TokenError};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::{Digest as _, Sha1};

/// A payload that inflates to `{"sid":"aaa..."}` of `bytes` bytes.
fn packed(bytes: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(br#"{"sid":""#).unwrap();
    let block = [b'a'; 64 * 1024];
    let mut left = bytes - r#"{"sid":""}"#.len();
    while left > 0 {
        let length = left.min(block.len());
        encoder.write_all(&block[..length]).unwrap();
        left -= length;
    }
    encoder.write_all(br#""}"#).unwrap();
    encoder.finish().unwrap()
}

/// Signs a compressed payload by hand, as whoever knows the server's name can.
fn token(secret: &str, packed: &[u8]) -> String {
    let payload = format!(".{}", BASE64_URL_SAFE_NO_PAD.encode(packed));
    let key = Sha1::digest(format!("nemo-gym-mcp-session-tokensigner{secret}"));
    let signature =
        Hmac::<Sha1>::new_from_slice(&key).unwrap().chain_update(&payload).finalize().into_bytes();
    format!("{payload}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}

#[test]
fn a_payload_may_grow_to_the_bound_and_no_further() {
    let key = SessionTokenKey::new("server");
    let whole = key.verify(&token("server", &packed(MAX_PAYLOAD_BYTES))).unwrap();
    assert_eq!(whole.sid.len(), MAX_PAYLOAD_BYTES - 10);
    assert_eq!(key.verify(&token("server", &packed(MAX_PAYLOAD_BYTES + 1))), Err(TokenError::TooLarge));
}

/// The rest of the bomb is missing, which only somebody notices who inflates past the bound.
#[test]
fn a_bomb_is_not_inflated_past_the_bound() {
    let bomb = packed(64 << 20);
    assert!(bomb.len() < 70_000, "a thousandfold: {}", bomb.len());
    let token = token("server", &bomb[..bomb.len() / 2]);
    assert_eq!(SessionTokenKey::new("server").verify(&token), Err(TokenError::TooLarge));
}
