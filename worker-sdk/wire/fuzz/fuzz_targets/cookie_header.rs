//! `Cookie` headers: what is found is the last pair of that name; quotes come off without a panic, and only there.
#![no_main]

use gym_wire::cookie::{find, unquote};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    let found = find(lines.iter().copied(), "s");
    assert_eq!(found, model(&lines));
    if let Ok(text) = std::str::from_utf8(data) {
        let quoted = format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        assert_eq!(unquote(&quoted), text);
        assert!(unquote(text).len() <= text.len());
        let line = format!("a=1; s={}", text.replace([';', '\n'], ""));
        assert!(find([line.as_str()], "s").is_some());
    }
});

/// The same, as plainly as can be.
fn model<'a>(lines: &[&'a [u8]]) -> Option<std::borrow::Cow<'a, str>> {
    let pairs = lines.iter().flat_map(|line| line.split(|byte| *byte == b';'));
    let mut last = None;
    for pair in pairs {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        if let (Some(name), Some(value)) = (halves.next(), halves.next())
            && name.trim_ascii() == b"s"
        {
            last = Some(value.trim_ascii());
        }
    }
    Some(unquote(std::str::from_utf8(last?).ok()?))
}
