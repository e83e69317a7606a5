//! Session tokens: arbitrary ones, and arbitrary payloads with the right signature, compressed ones among them.
#![no_main]

use gym_wire::token::{SessionToken, SessionTokenKey};
use gym_wire_fuzz::{sign, url_safe};
use libfuzzer_sys::fuzz_target;

const SALT: &str = "nemo-gym-mcp-session-token";
/// Not the one that the seeds of the corpus were signed with.
const SECRET: &str = "fuzz";

fuzz_target!(|data: &[u8]| {
    let key = SessionTokenKey::new(SECRET);
    if let Ok(text) = std::str::from_utf8(data) {
        // Whoever has no key makes no token.
        assert!(key.verify(text).is_err());
        let _ = key.verify(&sign(SALT, SECRET, text));
        let tools = text.contains('\n').then(|| text.split('\n').map(str::to_owned).collect());
        let token = SessionToken { sid: text.to_owned(), tools };
        assert_eq!(key.verify(&key.sign(&token)), Ok(token));
    }
    // The bytes as JSON, and as compressed JSON.
    for dot in ["", "."] {
        let signed = sign(SALT, SECRET, &format!("{dot}{}", url_safe(data)));
        if let Ok(token) = key.verify(&signed) {
            assert_eq!(key.verify(&key.sign(&token)), Ok(token));
        }
    }
});
