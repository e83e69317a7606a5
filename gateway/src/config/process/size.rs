//! Sizes: a number of bytes, or text with a unit.

use crate::config::{
    interpolate::reread,
    yaml::{Node, Value},
};

/// Units, each 1024 of the one before.
const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];

/// What a size looks like, for messages.
pub(super) const EXPECTED: &str = "a number of bytes, or one with KiB, MiB, GiB or TiB";

/// Reads a size; `None`: it is none.
pub(super) fn read(node: Node) -> Option<u64> {
    match reread(node).value {
        Value::Whole(bytes) => u64::try_from(bytes).ok(),
        Value::Text(text) => parse(&text),
        _ => None,
    }
}

fn parse(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    let power = UNITS.iter().position(|name| *name == unit.trim_start())? + 1;
    number.parse::<u64>().ok()?.checked_mul(1024_u64.pow(u32::try_from(power).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024_by_their_whole_names() {
        assert_eq!(parse("8GiB"), Some(8 << 30));
        assert_eq!(parse("64 KiB"), Some(65_536));
        for text in ["8GB", "8G", "8gib", "GiB", "-1MiB", "1.5GiB", "", "99999999999TiB"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
