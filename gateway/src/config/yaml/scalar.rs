//! What a plain scalar means, as OmegaConf's loader over PyYAML has it (YAML 1.1, without timestamps).

use super::Value;

/// Reads a plain (unquoted) scalar: `yes` is a truth value, `0777` is octal, `1:30` is 90, `1e3` is a number.
pub(crate) fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Value::Bool(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Value::Bool(false),
        _ => number(text).unwrap_or_else(|| Value::Text(text.into())),
    }
}

/// A number as YAML 1.1 writes it, or `None`.
pub(crate) fn number(text: &str) -> Option<Value> {
    whole(text).map(Value::Whole).or_else(|| float(text).map(Value::Float))
}

fn sign(text: &str) -> (i128, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn whole(text: &str) -> Option<i128> {
    let (sign, digits) = sign(text);
    let of_radix = |digits: &str, radix: u32| {
        let allowed = digits.chars().all(|c| c == '_' || c.is_digit(radix));
        let bare = digits.replace('_', "");
        if !allowed || digits.is_empty() { None } else { i128::from_str_radix(&bare, radix).ok() }
    };
    let value = if let Some(binary) = digits.strip_prefix("0b") {
        of_radix(binary, 2)
    } else if let Some(hex) = digits.strip_prefix("0x") {
        of_radix(hex, 16)
    } else if digits == "0" {
        Some(0)
    } else if let Some(octal) = digits.strip_prefix('0') {
        of_radix(octal, 8)
    } else if digits.starts_with('_') {
        None
    } else if digits.contains(':') {
        sexagesimal(digits)
    } else {
        of_radix(digits, 10)
    };
    value.map(|value| sign * value)
}

/// `1:30:00`, base 60; each part but the first is below 60.
fn sexagesimal(text: &str) -> Option<i128> {
    let mut parts = text.split(':');
    let first = parts.next()?;
    if !first.chars().all(|c| c == '_' || c.is_ascii_digit()) {
        return None;
    }
    parts.try_fold(first.replace('_', "").parse().ok()?, |sum: i128, part| {
        let small = matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
        if small { sum.checked_mul(60)?.checked_add(part.parse().ok()?) } else { None }
    })
}

fn float(text: &str) -> Option<f64> {
    let (sign, digits) = sign(text);
    let sign = sign as f64;
    match digits {
        ".inf" | ".Inf" | ".INF" => return Some(sign * f64::INFINITY),
        ".nan" | ".NaN" | ".NAN" if digits.len() == text.len() => return Some(f64::NAN),
        _ => {}
    }
    let (mantissa, exponent) = match digits.find(['e', 'E']) {
        Some(at) => (&digits[..at], Some(&digits[at + 1..])),
        None => (digits, None),
    };
    if let Some(exponent) = exponent {
        let (_, power) = self::sign(exponent);
        if power.is_empty() || !power.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
    }
    if mantissa.contains(':') {
        return if exponent.is_none() { sexagesimal_float(mantissa).map(|value| sign * value) } else { None };
    }
    let (before, after) = match mantissa.split_once('.') {
        Some((before, after)) => (before, Some(after)),
        None => (mantissa, None),
    };
    let allowed = |part: &str| part.bytes().all(|b| b == b'_' || b.is_ascii_digit());
    if !allowed(before) || !after.is_none_or(allowed) {
        return None;
    }
    let shape = match (before.as_bytes().first(), after) {
        // `.5` takes no sign, needs a digit first, and a sign in its exponent (PyYAML).
        (None, Some(after)) => {
            let signed = exponent.is_none_or(|exponent| exponent.starts_with(['+', '-']));
            digits.len() == text.len() && after.starts_with(|c: char| c.is_ascii_digit()) && signed
        }
        (Some(b'0'..=b'9'), Some(_)) => true,
        // `1e3`: OmegaConf's addition to PyYAML; underscores stand between digits.
        (Some(b'0'..=b'9'), None) => exponent.is_some() && !before.ends_with('_') && !before.contains("__"),
        _ => false,
    };
    if shape { digits.replace('_', "").parse::<f64>().ok().map(|value| sign * value) } else { None }
}

fn sexagesimal_float(text: &str) -> Option<f64> {
    let (parts, fraction) = text.split_once('.')?;
    if !fraction.bytes().all(|b| b == b'_' || b.is_ascii_digit())
        || !parts.starts_with(|c: char| c.is_ascii_digit())
    {
        return None;
    }
    let fraction: f64 = format!("0.{}", fraction.replace('_', "")).parse().ok()?;
    sexagesimal(parts).map(|whole| whole as f64 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_scalar_means_what_omegaconf_makes_of_it() {
        // Seen from OmegaConf 2.3.1 over PyYAML 6.0.4.
        let whole: &[(&str, i128)] = &[
            ("0", 0),
            ("8000", 8000),
            ("-3", -3),
            ("+3", 3),
            ("1_000", 1000),
            ("0777", 511),
            ("0x1F", 31),
            ("0b101", 5),
            ("1:30", 90),
            ("1:00:00", 3600),
        ];
        for (text, expected) in whole {
            assert_eq!(plain(text), Value::Whole(*expected), "{text}");
        }
        let float: &[(&str, f64)] =
            &[("1.5", 1.5), ("1.", 1.0), (".5", 0.5), ("1e3", 1000.0), ("1e-05", 1e-5), ("-2.5e+3", -2500.0)];
        for (text, expected) in float {
            assert_eq!(plain(text), Value::Float(*expected), "{text}");
        }
        assert_eq!(plain("-.inf"), Value::Float(f64::NEG_INFINITY));
        for text in ["yes", "On", "TRUE"] {
            assert_eq!(plain(text), Value::Bool(true), "{text}");
        }
        for text in ["no", "OFF", "false"] {
            assert_eq!(plain(text), Value::Bool(false), "{text}");
        }
        for text in ["~", "", "Null"] {
            assert_eq!(plain(text), Value::Null, "{text}");
        }
        for text in [
            "y",
            "N",
            "tRUE",
            "0o17",
            "08",
            "2024-01-01",
            "1.2.3",
            "127.0.0.1",
            "_1",
            "e3",
            "1e",
            "+",
            "-",
            ".",
            "0x",
            "1:70",
            "?",
        ] {
            assert_eq!(plain(text), Value::Text(text.into()), "{text}");
        }
    }
}
