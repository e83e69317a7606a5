//! The syntax of Python's `json`: what it takes beyond the standard, and what it says of what it does not take.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::errors::{Invalid, Problem};

/// Deeper nesting is not looked into: each level is a call.
const MAX_DEPTH: usize = 512;

/// Rewrites what Python takes and the standard does not: NaN and infinities, too large numbers (as strings), and halves of
/// surrogate pairs. Or says what Python says.
pub(super) fn normalize(text: &str) -> Result<Cow<'_, str>, Invalid> {
    let mut scanner =
        Scanner { text, bytes: text.as_bytes(), at: 0, depth: 0, written: String::new(), copied: 0 };
    scanner.whole()?;
    if scanner.copied == 0 {
        return Ok(Cow::Borrowed(text));
    }
    scanner.written.push_str(&text[scanner.copied..]);
    Ok(Cow::Owned(scanner.written))
}

/// What Python's own words for the error are: `Expecting value: line 1 column 2 (char 1)`.
#[cfg(any(feature = "mcp", feature = "openenv"))]
pub(crate) fn python_error(text: &str, invalid: &Invalid) -> String {
    let problem = invalid.problems().first();
    let error = problem.and_then(|problem| problem.ctx.as_ref()?["error"].as_str());
    let at = problem.and_then(|problem| usize::try_from(problem.loc.get(1)?.as_u64()?).ok());
    let (Some(error), Some(at)) = (error, at) else { return "nested too deep to be read".to_owned() };
    let before = text.chars().take(at);
    let (line, column) = before.fold((1, 1), |(line, column), c| match c {
        '\n' => (line + 1, 1),
        _ => (line, column + 1),
    });
    format!("{error}: line {line} column {column} (char {at})")
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// The next byte to look at.
    at: usize,
    depth: usize,
    written: String,
    /// How much of `text` is in `written`, rewritten.
    copied: usize,
}

impl Scanner<'_> {
    fn whole(&mut self) -> Result<(), Invalid> {
        self.skip_space();
        self.value()?;
        self.skip_space();
        if self.at < self.bytes.len() { Err(self.error("Extra data", self.at)) } else { Ok(()) }
    }

    fn value(&mut self) -> Result<(), Invalid> {
        const WORDS: [(&str, Option<&str>); 6] = [
            ("null", None),
            ("true", None),
            ("false", None),
            ("NaN", Some("\"NaN\"")),
            ("Infinity", Some("\"Infinity\"")),
            ("-Infinity", Some("\"-Infinity\"")),
        ];
        match self.peek() {
            Some(b'"') => return self.string(),
            Some(b'{') => return self.nested(Self::object),
            Some(b'[') => return self.nested(Self::array),
            _ => {}
        }
        for (word, instead) in WORDS {
            if self.bytes[self.at..].starts_with(word.as_bytes()) {
                let start = self.at;
                self.at += word.len();
                if let Some(instead) = instead {
                    self.replace(start, instead);
                }
                return Ok(());
            }
        }
        self.number()
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<(), Invalid>) -> Result<(), Invalid> {
        self.at += 1;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Invalid::unreadable());
        }
        self.skip_space();
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn object(&mut self) -> Result<(), Invalid> {
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.error("Expecting property name enclosed in double quotes", self.at));
            }
            self.string()?;
            self.skip_space();
            if !self.take(b':') {
                return Err(self.error("Expecting ':' delimiter", self.at));
            }
            self.skip_space();
            self.value()?;
            if self.ends(b'}', "Illegal trailing comma before end of object")? {
                return Ok(());
            }
        }
    }

    fn array(&mut self) -> Result<(), Invalid> {
        if self.take(b']') {
            return Ok(());
        }
        loop {
            self.value()?;
            if self.ends(b']', "Illegal trailing comma before end of array")? {
                return Ok(());
            }
        }
    }

    /// After an element: whether it was the last; the next one begins where it stops.
    fn ends(&mut self, close: u8, trailing: &str) -> Result<bool, Invalid> {
        self.skip_space();
        if self.take(close) {
            return Ok(true);
        }
        let comma = self.at;
        if !self.take(b',') {
            return Err(self.error("Expecting ',' delimiter", comma));
        }
        self.skip_space();
        if self.peek() == Some(close) { Err(self.error(trailing, comma)) } else { Ok(false) }
    }

    fn number(&mut self) -> Result<(), Invalid> {
        let start = self.at;
        self.take(b'-');
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.skip_digits(),
            _ => return Err(self.error("Expecting value", start)),
        }
        if self.peek() == Some(b'.') && self.is_digit(self.at + 1) {
            self.at += 1;
            self.skip_digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            let signed = matches!(self.bytes.get(self.at + 1), Some(b'+' | b'-'));
            let digits = self.at + if signed { 2 } else { 1 };
            if self.is_digit(digits) {
                self.at = digits;
                self.skip_digits();
            }
        }
        let is_finite = self.text[start..self.at].parse().is_ok_and(f64::is_finite);
        if !is_finite {
            let instead = if self.bytes[start] == b'-' { "\"-Infinity\"" } else { "\"Infinity\"" };
            self.replace(start, instead);
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), Invalid> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(self.error("Unterminated string starting at", start)),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape(start)?,
                Some(0..=0x1f) => return Err(self.error("Invalid control character at", self.at)),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self, string: usize) -> Result<(), Invalid> {
        let start = self.at;
        match self.bytes.get(start + 1) {
            None => Err(self.error("Unterminated string starting at", string)),
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => {
                let unit = self.hex(start)?;
                self.at += 6;
                let is_pair = (0xd800..0xdc00).contains(&unit)
                    && self.bytes[self.at..].starts_with(b"\\u")
                    && (0xdc00..0xe000).contains(&self.hex(self.at)?);
                if is_pair {
                    self.at += 6;
                } else if (0xd800..0xe000).contains(&unit) {
                    self.replace(start, "\\ufffd");
                }
                Ok(())
            }
            Some(_) => Err(self.error("Invalid \\escape", start)),
        }
    }

    /// The number in the `\uXXXX` at `start`. Python wants a byte after it, too.
    fn hex(&self, start: usize) -> Result<u32, Invalid> {
        let digits = self.bytes.get(start + 2..start + 6).filter(|_| start + 6 < self.bytes.len());
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let unit = digits.and_then(|digits| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        unit.ok_or_else(|| self.error("Invalid \\uXXXX escape", start + 1))
    }

    /// Puts `instead` for the text from `start` to here.
    fn replace(&mut self, start: usize, instead: &str) {
        self.written.push_str(&self.text[self.copied..start]);
        self.written.push_str(instead);
        self.copied = self.at;
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn is_digit(&self, at: usize) -> bool {
        self.bytes.get(at).is_some_and(u8::is_ascii_digit)
    }

    fn skip_digits(&mut self) {
        while self.is_digit(self.at) {
            self.at += 1;
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Python counts characters. `at` is always the start of one.
    fn error(&self, error: &str, at: usize) -> Invalid {
        let position = self.text[..at].chars().count();
        Problem {
            kind: "json_invalid",
            loc: vec![json!("body"), Value::from(position)],
            msg: "JSON decode error".to_owned(),
            input: json!({}),
            ctx: Some(json!({"error": error})),
        }
        .into()
    }
}
