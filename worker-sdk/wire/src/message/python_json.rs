//! JSON as Python's `json.dumps` writes it.

use std::fmt::LowerExp;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Python's `json.dumps(value)`: a space behind commas and colons, everything outside ASCII escaped, floats as `repr`
/// writes them. Python writes `NaN` and `Infinity`; here they are null.
///
/// ```
/// let json = gym_wire::message::dumps(&serde_json::json!({"a": [1, 2.5e20], "b": "é"}))?;
/// assert_eq!(json, r#"{"a": [1, 2.5e+20], "b": "\u00e9"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
/// If a map's keys are no strings, or `value`'s own `Serialize` fails.
pub fn dumps(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut out = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut out, Python))?;
    String::from_utf8(out).map_err(serde::ser::Error::custom)
}

struct Python;

impl Formatter for Python {
    fn write_f64<W: Write + ?Sized>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        write_float(out, &nearest(value))
    }

    fn write_f32<W: Write + ?Sized>(&mut self, out: &mut W, value: f32) -> io::Result<()> {
        write_float(out, &nearest(value))
    }

    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        // What else has to be escaped, serde_json has taken out and escapes as Python does.
        for run in text.split_inclusive(|c| !is_plain(c)) {
            let plain = run.trim_end_matches(|c| !is_plain(c));
            out.write_all(plain.as_bytes())?;
            for unit in run[plain.len()..].encode_utf16() {
                write!(out, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

/// Printable ASCII.
fn is_plain(c: char) -> bool {
    matches!(c, ' '..='~')
}

/// The shortest digits that are read as `value` again, with an exponent. Where two are as near, Rust's own formatting
/// takes the greater and Python the even one, which is what formatting to a given number of digits takes.
fn nearest(value: impl LowerExp) -> String {
    let shortest = format!("{value:e}");
    let mantissa = shortest.split('e').next().unwrap_or_default();
    let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    format!("{value:.fraction$e}")
}

/// Writes a float as Python's `repr`, given as Rust writes it with an exponent (`-1.25e-7`): the digits are the same.
fn write_float<W: Write + ?Sized>(out: &mut W, scientific: &str) -> io::Result<()> {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().map_err(io::Error::other)?;
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    if !(-4..16).contains(&exponent) {
        let sign_of_exponent = if exponent < 0 { '-' } else { '+' };
        return write!(out, "{sign}{mantissa}e{sign_of_exponent}{:02}", exponent.unsigned_abs());
    }
    let digits = mantissa.replace('.', "");
    match usize::try_from(exponent) {
        Err(_) => {
            let zeros = exponent.unsigned_abs() as usize - 1;
            write!(out, "{sign}0.{:0<zeros$}{digits}", "")
        }
        Ok(exponent) => {
            let whole = exponent + 1;
            let padded = format!("{digits:0<width$}", width = whole + 1);
            write!(out, "{sign}{}.{}", &padded[..whole], &padded[whole..])
        }
    }
}
