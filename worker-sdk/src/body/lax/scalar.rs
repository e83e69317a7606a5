//! pydantic's conversions between scalars.

use serde_json::{Number, Value, json};

use super::error::Error;

/// Python's own limit on the digits of an integer.
const MAX_DIGITS: usize = 4300;

/// The range of an integer type.
pub(super) struct Range {
    pub(super) least: i128,
    pub(super) most: i128,
}

pub(super) fn integer(value: &Value, range: Range) -> Result<i128, Error> {
    let integer = match value {
        Value::Number(number) => from_number(number)?,
        Value::Bool(is_true) => i128::from(*is_true),
        Value::String(text) => from_text(text)?,
        Value::Null | Value::Array(_) | Value::Object(_) => {
            return Err(Error::new("int_type", "Input should be a valid integer"));
        }
    };
    let Range { least, most } = range;
    if integer < least {
        let msg = format!("Input should be greater than or equal to {least}");
        return Err(Error::new("greater_than_equal", msg).with_ctx(json!({"ge": bound(least)})));
    }
    if integer > most {
        let msg = format!("Input should be less than or equal to {most}");
        return Err(Error::new("less_than_equal", msg).with_ctx(json!({"le": bound(most)})));
    }
    Ok(integer)
}

/// JSON's numbers have 64 bits here; wider ones are written out.
fn bound(bound: i128) -> Value {
    match (i64::try_from(bound), u64::try_from(bound)) {
        (Ok(bound), _) => bound.into(),
        (_, Ok(bound)) => bound.into(),
        _ => bound.to_string().into(),
    }
}

fn from_number(number: &Number) -> Result<i128, Error> {
    if let Some(integer) = number.as_i128() {
        return Ok(integer);
    }
    let float = number.as_f64().unwrap_or(f64::NAN);
    if float.fract() != 0.0 {
        let msg = "Input should be a valid integer, got a number with a fractional part";
        return Err(Error::new("int_from_float", msg));
    }
    whole(float).map(i128::from).ok_or_else(too_large)
}

/// The integer that a float is, short of where integers of JSON come as floats.
#[allow(clippy::cast_possible_truncation)] // exact: whole, and within the range
fn whole(float: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (float.fract() == 0.0 && float.abs() < LIMIT).then_some(float as i64)
}

fn too_large() -> Error {
    Error::new("int_parsing_size", "Unable to parse input string as an integer, exceeded maximum size")
}

fn from_text(text: &str) -> Result<i128, Error> {
    if text.len() > MAX_DIGITS {
        return Err(too_large());
    }
    let msg = "Input should be a valid integer, unable to parse string as an integer";
    let not_one = || Error::new("int_parsing", msg);
    let text = text.trim();
    let (is_negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let digits = match digits.split_once('.') {
        Some((_, zeros)) if zeros.is_empty() || zeros.bytes().any(|byte| byte != b'0') => {
            return Err(not_one());
        }
        Some((digits, _)) => digits,
        None => digits,
    };
    let digits = without_underscores(digits).filter(|digits| !digits.is_empty()).ok_or_else(not_one)?;
    if digits.bytes().any(|byte| !byte.is_ascii_digit()) {
        return Err(not_one());
    }
    let size: i128 = digits.parse().unwrap_or(i128::MAX);
    Ok(if is_negative { -size } else { size })
}

/// `None` if they stand elsewhere than between two others.
fn without_underscores(digits: &str) -> Option<std::borrow::Cow<'_, str>> {
    if !digits.contains('_') {
        return Some(digits.into());
    }
    let is_between = !digits.starts_with('_') && !digits.ends_with('_') && !digits.contains("__");
    is_between.then(|| digits.replace('_', "").into())
}

pub(super) fn float(value: &Value) -> Result<f64, Error> {
    let parsed = match value {
        Value::Number(number) => return number.as_f64().ok_or_else(too_large),
        Value::Bool(is_true) => return Ok(f64::from(u8::from(*is_true))),
        Value::String(text) => without_underscores(text.trim()).and_then(|text| text.parse().ok()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            return Err(Error::new("float_type", "Input should be a valid number"));
        }
    };
    let msg = "Input should be a valid number, unable to parse string as a number";
    parsed.ok_or_else(|| Error::new("float_parsing", msg))
}

pub(super) fn boolean(value: &Value) -> Result<bool, Error> {
    const TRUE: [&str; 6] = ["1", "true", "t", "yes", "y", "on"];
    const FALSE: [&str; 6] = ["0", "false", "f", "no", "n", "off"];
    let is_one_of = |text: &str, words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    let meant = match value {
        Value::Bool(is_true) => Some(*is_true),
        Value::String(text) if is_one_of(text, &TRUE) => Some(true),
        Value::String(text) if is_one_of(text, &FALSE) => Some(false),
        Value::String(_) => None,
        Value::Number(number) => match number.as_i64().or_else(|| number.as_f64().and_then(whole)) {
            Some(0) => Some(false),
            Some(1) => Some(true),
            Some(_) => None,
            None => return Err(not_boolean()),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => return Err(not_boolean()),
    };
    let msg = "Input should be a valid boolean, unable to interpret input";
    meant.ok_or_else(|| Error::new("bool_parsing", msg))
}

fn not_boolean() -> Error {
    Error::new("bool_type", "Input should be a valid boolean")
}
