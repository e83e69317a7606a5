//! Finds the end of an episode in a `/step` reply as it passes.

/// Finds `"terminated": true` or `"truncated": true` at the top level of a JSON reply as it passes, without
/// keeping it. The last duplicate of a key counts, as in Python.
#[derive(Debug, Default)]
pub struct StepWatch {
    state: State,
    /// Objects and arrays that are open, the outermost included.
    depth: usize,
    /// The current top-level key as written, up to [`KEY_LIMIT`] bytes.
    key: Vec<u8>,
    /// Which flag the current top-level value is for.
    flag: Option<Flag>,
    terminated: bool,
    truncated: bool,
}

/// The longest key that can be one of the two: ten letters, each as `\uXXXX`.
const KEY_LIMIT: usize = 60;

const TRUE: &[u8] = b"true";

#[derive(Clone, Copy, Debug)]
enum Flag {
    Terminated,
    Truncated,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Before the outermost `{`.
    #[default]
    Start,
    /// Before a top-level key, or the end of an empty object.
    BeforeKey,
    /// In a top-level key; behind a backslash?
    Key { escaped: bool },
    /// Before a top-level colon.
    Colon,
    /// Before a top-level value.
    BeforeValue,
    /// In a top-level literal that is `true` so far: how many letters of it.
    True(usize),
    /// In any other top-level number or literal.
    Scalar,
    /// In a string value, at any depth; behind a backslash?
    Text { escaped: bool },
    /// Inside a nested object or array, outside its strings.
    Nested,
    /// Behind a top-level value.
    AfterValue,
    /// Behind the outermost `}`.
    Done,
    /// Not a JSON object: nothing is to be found.
    Broken,
}

impl StepWatch {
    /// Reads on.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((&byte, behind)) = rest.split_first() {
            rest = behind;
            self.state = match self.state {
                State::Done | State::Broken => return,
                // Observations are long: step over what is inside of strings at once.
                State::Text { escaped: false } if !matches!(byte, b'"' | b'\\') => {
                    let plain = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                    rest = &rest[plain..];
                    continue;
                }
                _ => self.step(byte),
            };
        }
    }

    /// Whether the reply was a whole JSON object that says that the episode is over.
    pub fn is_over(&self) -> bool {
        self.state == State::Done && (self.terminated || self.truncated)
    }

    fn step(&mut self, byte: u8) -> State {
        match (self.state, byte) {
            (State::Text { escaped: true }, _) => State::Text { escaped: false },
            (State::Text { .. }, b'\\') => State::Text { escaped: true },
            (State::Text { .. }, b'"') => self.after_value(),
            (State::Key { escaped }, _) => self.key(escaped, byte),
            (State::Nested, _) => self.nested(byte),
            (State::True(letters), _) if TRUE.get(letters) == Some(&byte) => State::True(letters + 1),
            (State::True(_) | State::Scalar, b',' | b'}') => {
                self.end_scalar();
                self.delimiter(byte)
            }
            (State::True(_) | State::Scalar, b' ' | b'\t' | b'\n' | b'\r') => {
                self.end_scalar();
                State::AfterValue
            }
            (State::True(_) | State::Scalar, _) => State::Scalar,
            (state, b' ' | b'\t' | b'\n' | b'\r') => state,
            (State::Start, b'{') => {
                self.depth = 1;
                State::BeforeKey
            }
            (State::BeforeKey, b'"') => {
                self.key.clear();
                State::Key { escaped: false }
            }
            (State::BeforeKey | State::AfterValue, b'}') => State::Done,
            (State::Colon, b':') => State::BeforeValue,
            (State::BeforeValue, _) => self.value(byte),
            (State::AfterValue, b',') => State::BeforeKey,
            _ => State::Broken,
        }
    }

    fn key(&mut self, escaped: bool, byte: u8) -> State {
        if byte == b'"' && !escaped {
            self.flag = flag(&self.key);
            return State::Colon;
        }
        if self.key.len() <= KEY_LIMIT {
            self.key.push(byte);
        }
        State::Key { escaped: byte == b'\\' && !escaped }
    }

    /// The first byte of a top-level value. Any value but `true` takes back what a duplicate said.
    fn value(&mut self, first: u8) -> State {
        self.set(false);
        match first {
            b'"' => State::Text { escaped: false },
            b'{' | b'[' => {
                self.depth += 1;
                State::Nested
            }
            b't' => State::True(1),
            b'}' | b']' | b',' | b':' => State::Broken,
            _ => State::Scalar,
        }
    }

    fn nested(&mut self, byte: u8) -> State {
        match byte {
            b'"' => return State::Text { escaped: false },
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth -= 1,
            _ => {}
        }
        self.after_value()
    }

    fn after_value(&self) -> State {
        if self.depth == 1 { State::AfterValue } else { State::Nested }
    }

    fn end_scalar(&mut self) {
        if self.state == State::True(TRUE.len()) {
            self.set(true);
        }
    }

    fn delimiter(&self, byte: u8) -> State {
        if byte == b',' { State::BeforeKey } else { State::Done }
    }

    fn set(&mut self, value: bool) {
        match self.flag {
            Some(Flag::Terminated) => self.terminated = value,
            Some(Flag::Truncated) => self.truncated = value,
            None => {}
        }
    }
}

/// Which flag a key as written (without its quotes) stands for.
fn flag(written: &[u8]) -> Option<Flag> {
    let mut decoded = String::new();
    let key = if written.contains(&b'\\') {
        let quoted = [b"\"", written, b"\""].concat();
        // A key that cannot be read is none of the two.
        decoded.push_str(jiter::Jiter::new(&quoted).next_str().ok()?);
        decoded.as_bytes()
    } else {
        written
    };
    match key {
        b"terminated" => Some(Flag::Terminated),
        b"truncated" => Some(Flag::Truncated),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
