//! Session cookies: arbitrary ones, and arbitrary payloads with the right signature, of which the payload is read.
#![no_main]

use gym_wire::cookie::{MAX_AGE_SECONDS, SessionCookieKey, peek};
use gym_wire_fuzz::sign;
use libfuzzer_sys::fuzz_target;

const NOW: u64 = 1_767_225_600;
/// Not the one that the seeds of the corpus were signed with.
const SECRET: &str = "fuzz";

fuzz_target!(|data: &str| {
    let key = SessionCookieKey::new(SECRET);
    // Whoever has no key makes no session.
    assert!(key.verify(data, NOW, MAX_AGE_SECONDS).is_err());
    let _ = peek(data);

    // Arbitrary bytes in place of payload and timestamp, signed.
    let signed = sign("itsdangerous.Signer", SECRET, data);
    let verified = key.verify(&signed, NOW, MAX_AGE_SECONDS);
    if let Ok(payload) = &verified {
        assert_eq!(peek(&signed).as_ref(), Ok(payload));
    }
    // An arbitrary payload with a good timestamp.
    let good = key.sign(data, NOW);
    let now = sign("itsdangerous.Signer", SECRET, &format!("{data}.{}", good.rsplit('.').nth(1).unwrap()));
    assert_eq!(key.verify(&now, NOW, MAX_AGE_SECONDS), peek(&now));

    assert_eq!(key.verify(&good, NOW, 0).as_deref(), Ok(data.as_bytes()));
    // The last character has two bits that no signature uses.
    let at = data.len() % (good.len() - 1);
    let changed = if good.as_bytes()[at] == b'A' { "B" } else { "A" };
    let mut forged = good;
    forged.replace_range(at..=at, changed);
    assert!(key.verify(&forged, NOW, MAX_AGE_SECONDS).is_err());
});
