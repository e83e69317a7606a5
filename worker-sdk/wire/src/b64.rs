//! base64 as CPython's `binascii.a2b_base64` reads it: characters outside the alphabet are skipped, and the first
//! complete padding ends the data.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Like Python, takes a last character whose unused bits are set.
const READ: GeneralPurposeConfig = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    READ.with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);
const URL_SAFE: GeneralPurpose =
    GeneralPurpose::new(&alphabet::URL_SAFE, READ.with_decode_padding_mode(DecodePaddingMode::RequireNone));
const URL_SAFE_WRITE: GeneralPurpose = base64::engine::general_purpose::URL_SAFE_NO_PAD;
const STANDARD_WRITE: GeneralPurpose = base64::engine::general_purpose::STANDARD;

/// Python's `base64.b64decode(text)`. `None` where that raises.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok().or_else(|| decode_leniently(text.iter().copied()))
}

/// itsdangerous' `base64_decode(text)`: the URL-safe alphabet beside the standard one, padding added.
pub(crate) fn decode_url_safe(text: &[u8]) -> Option<Vec<u8>> {
    URL_SAFE.decode(text).ok().or_else(|| decode_url_safe_leniently(text))
}

/// The same into `out`, without allocation where the text is as itsdangerous writes it. Returns the length; `None` also
/// if `out` is too small.
pub(crate) fn decode_url_safe_into(text: &[u8], out: &mut [u8]) -> Option<usize> {
    if let Ok(length) = URL_SAFE.decode_slice(text, out) {
        return Some(length);
    }
    let bytes = decode_url_safe_leniently(text)?;
    out.get_mut(..bytes.len())?.copy_from_slice(&bytes);
    Some(bytes.len())
}

/// Appends `bytes` in the standard alphabet, padded.
pub(crate) fn encode(bytes: &[u8], out: &mut String) {
    STANDARD_WRITE.encode_string(bytes, out);
}

/// Appends `bytes` in the URL-safe alphabet, without padding.
pub(crate) fn encode_url_safe(bytes: &[u8], out: &mut String) {
    URL_SAFE_WRITE.encode_string(bytes, out);
}

fn decode_url_safe_leniently(text: &[u8]) -> Option<Vec<u8>> {
    let padding = text.len().wrapping_neg() % 4;
    let standard = text.iter().map(|byte| match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => *other,
    });
    decode_leniently(standard.chain(std::iter::repeat_n(b'=', padding)))
}

fn decode_leniently(text: impl Iterator<Item = u8>) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.size_hint().0 / 4 * 3 + 3);
    let (mut in_quad, mut pads, mut left) = (0, 0, 0);
    for byte in text {
        if byte == b'=' {
            pads += usize::from(in_quad >= 2);
            if in_quad + pads >= 4 {
                return Some(out);
            }
            continue;
        }
        let Some(bits) = sextet(byte) else { continue };
        pads = 0;
        match in_quad {
            0 => {}
            1 => out.push((left << 2) | (bits >> 4)),
            2 => out.push((left << 4) | (bits >> 2)),
            _ => out.push((left << 6) | bits),
        }
        left = bits;
        in_quad = (in_quad + 1) % 4;
    }
    (in_quad == 0).then_some(out)
}

fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inputs and results taken from CPython 3.13's `base64.b64decode`.
    #[test]
    fn reads_what_python_reads() {
        let cases: &[(&str, Option<&[u8]>)] = &[
            ("", Some(b"")),
            ("YWJj", Some(b"abc")),
            ("YW Jj", Some(b"abc")),
            ("YW==Jj", Some(b"a")),
            ("YQ==YQ==", Some(b"a")),
            ("=YWJj", Some(b"abc")),
            ("YWJj====", Some(b"abc")),
            ("YR==", Some(b"a")),
            ("Y=Q==", Some(b"a")),
            ("YQ=\n=", Some(b"a")),
            ("YQ=QY", Some(b"a\x04\x18")),
            ("====", Some(b"")),
            ("YW=I=", Some(b"ab")),
            ("YWI=Y", Some(b"ab")),
            ("YQ=a", None),
            ("YQ", None),
            ("YQ=", None),
            ("Y===", None),
            ("YWJjY===", None),
            ("Y=Q=", None),
            ("_-8=", None),
        ];
        for (text, expected) in cases {
            assert_eq!(decode(text.as_bytes()).as_deref(), *expected, "{text:?}");
        }
    }

    #[test]
    fn reads_url_safe_text_of_either_alphabet_with_or_without_padding() {
        for text in ["_-8", "_-8=", "/+8", "/+8=", "_-8 ="] {
            assert_eq!(decode_url_safe(text.as_bytes()).as_deref(), Some(&b"\xff\xef"[..]), "{text:?}");
            let mut out = [0; 2];
            assert_eq!(decode_url_safe_into(text.as_bytes(), &mut out), Some(2), "{text:?}");
            assert_eq!(out, *b"\xff\xef", "{text:?}");
        }
        assert_eq!(decode_url_safe_into(b"_-8", &mut [0; 1]), None, "two bytes are not one");
        assert_eq!(decode_url_safe(b"_ -8"), None, "padding is counted with the space");
        assert_eq!(decode_url_safe(b"A"), None);
    }
}
