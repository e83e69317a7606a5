use std::fmt;

use serde::de::{Expected, Unexpected};
use serde_json::{Value, json};

use super::{NOT_A_DICT, NOT_A_MODEL};

/// One step of a `loc`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
    /// A map's key itself, after its `Key`.
    TheKey,
}

impl From<Step> for Value {
    fn from(step: Step) -> Self {
        match step {
            Step::Key(key) => key.into(),
            Step::Index(index) => index.into(),
            Step::TheKey => "[key]".into(),
        }
    }
}

/// What the next reading does at an error's place, to find the errors after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fix {
    /// A made-up value stands there; of which type is a guess where serde does not say.
    Placeholder(Guess),
    /// The key is not there.
    Absent,
}

/// A type that serde may want where it does not say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Guess {
    Null,
    Text,
    Number,
    Bool,
    Array,
    Object,
}

impl Guess {
    fn next(self) -> Option<Self> {
        Some(match self {
            Self::Null => Self::Text,
            Self::Text => Self::Number,
            Self::Number => Self::Bool,
            Self::Bool => Self::Array,
            Self::Array => Self::Object,
            Self::Object => return None,
        })
    }
}

impl Fix {
    /// What to try if it does not help.
    pub(super) fn next(self) -> Option<Self> {
        match self {
            Self::Placeholder(guess) => Some(guess.next().map_or(Self::Absent, Self::Placeholder)),
            Self::Absent => None,
        }
    }
}

/// An error on its way up from where it was seen. Boxed: readings that succeed carry its size around, too.
pub(super) struct Error(pub(super) Box<Seen>);

pub(super) struct Seen {
    pub(super) kind: &'static str,
    pub(super) msg: String,
    pub(super) ctx: Option<Value>,
    /// The value in question; set by the first that knows it.
    pub(super) input: Option<Value>,
    /// The field in question, of the value that is being read.
    pub(super) field: Option<String>,
    /// From the innermost outwards, each with its rank among its siblings.
    pub(super) path: Vec<(Step, usize)>,
    pub(super) fix: Fix,
    /// A made-up value was not taken.
    pub(super) is_made_up: bool,
}

impl Error {
    pub(super) fn new(kind: &'static str, msg: impl Into<String>) -> Self {
        Self(Box::new(Seen {
            kind,
            msg: msg.into(),
            ctx: None,
            input: None,
            field: None,
            path: Vec::new(),
            fix: Fix::Placeholder(Guess::Null),
            is_made_up: false,
        }))
    }

    pub(super) fn with_ctx(mut self, ctx: Value) -> Self {
        self.0.ctx = Some(ctx);
        self
    }

    pub(super) fn made_up(mut self) -> Self {
        self.0.is_made_up = true;
        self
    }

    /// It happened while the value `input` was read, whose fields `rank` orders.
    pub(super) fn within(mut self, input: impl FnOnce() -> Value, rank: impl FnOnce(&str) -> usize) -> Self {
        let seen = &mut *self.0;
        if seen.input.is_none() {
            let whole = input();
            let field = seen.field.take();
            let is_extra = seen.fix == Fix::Absent;
            let at_field = field.as_ref().filter(|_| is_extra).and_then(|field| whole.get(field)).cloned();
            seen.input = Some(at_field.unwrap_or(whole));
            if let Some(field) = field {
                // Keys too many come last.
                let rank = if is_extra { usize::MAX } else { rank(&field) };
                seen.path.push((Step::Key(field), rank));
            }
        }
        self
    }

    /// The struct that is being read has no such field, which holds `value`.
    pub(super) fn extra(mut self, key: &str, value: Value) -> Self {
        self.0.field = None;
        self.0.input = Some(value);
        // After the fields that it has.
        self.at(Step::Key(key.to_owned()), usize::MAX)
    }

    /// The value that was read stands at `step`.
    pub(super) fn at(mut self, step: Step, rank: usize) -> Self {
        self.0.path.push((step, rank));
        self
    }

    /// A name that is none of those.
    pub(super) fn literal(names: &[&str]) -> Self {
        let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let expected = match names.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, names)) => format!("{} or {last}", names.join(", ")),
            None => String::new(),
        };
        Self::new("literal_error", format!("Input should be {expected}"))
            .with_ctx(json!({"expected": expected}))
    }
}

/// What pydantic's own words on a number's bounds mean, which an author's check may use.
fn of_number(msg: &str) -> Option<(&'static str, Value)> {
    let rest = msg.strip_prefix("Input should be ")?;
    let (kind, key, bound) = [
        ("greater_than_equal", "ge", "greater than or equal to "),
        ("less_than_equal", "le", "less than or equal to "),
        ("greater_than", "gt", "greater than "),
        ("less_than", "lt", "less than "),
    ]
    .into_iter()
    .find_map(|(kind, key, words)| Some((kind, key, rest.strip_prefix(words)?)))?;
    let bound: serde_json::Number = bound.parse().ok()?;
    Some((kind, json!({key: bound})))
}

/// What pydantic's own words on a string's length or pattern mean, which an author's check may use.
fn of_string(msg: &str) -> Option<(&'static str, Value)> {
    let rest = msg.strip_prefix("String should ")?;
    if let Some(pattern) = rest.strip_prefix("match pattern '").and_then(|rest| rest.strip_suffix('\'')) {
        return Some(("string_pattern_mismatch", json!({"pattern": pattern})));
    }
    let (kind, key, rest) = if let Some(rest) = rest.strip_prefix("have at least ") {
        ("string_too_short", "min_length", rest)
    } else {
        ("string_too_long", "max_length", rest.strip_prefix("have at most ")?)
    };
    let length: u64 = rest.strip_suffix(" characters").or(rest.strip_suffix(" character"))?.parse().ok()?;
    Some((kind, json!({key: length})))
}

/// As Python's `repr` has a string.
fn quoted(name: &str) -> String {
    if name.contains('\'') && !name.contains('"') {
        format!("\"{name}\"")
    } else {
        format!("'{}'", name.replace('\'', "\\'"))
    }
}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(msg: T) -> Self {
        let msg = msg.to_string();
        if let Some((kind, ctx)) = of_string(&msg).or_else(|| of_number(&msg)) {
            return Self::new(kind, msg).with_ctx(ctx);
        }
        Self::new("value_error", format!("Value error, {msg}")).with_ctx(json!({"error": {}}))
    }

    /// Only from what serde buffered: it expects what [`super::Lax`] was not asked for.
    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let wanted = expected.to_string();
        let (kind, msg) = match wanted.as_str() {
            "i8" | "i16" | "i32" | "i64" | "i128" | "isize" | "u8" | "u16" | "u32" | "u64" | "u128"
            | "usize" => ("int_type", "Input should be a valid integer"),
            "f32" | "f64" => ("float_type", "Input should be a valid number"),
            "a boolean" => ("bool_type", "Input should be a valid boolean"),
            "a string" | "a borrowed string" => ("string_type", "Input should be a valid string"),
            "a sequence" => ("list_type", "Input should be a valid list"),
            "a map" => ("dict_type", NOT_A_DICT),
            "a JSON number" if matches!(unexpected, Unexpected::Str(_)) => {
                let msg = "Input should be a valid number, unable to parse string as a number";
                ("float_parsing", msg)
            }
            "a JSON number" => ("float_type", "Input should be a valid number"),
            model if model.starts_with("struct ") => ("model_attributes_type", NOT_A_MODEL),
            _ => return Self::custom(format_args!("invalid type: {unexpected}, expected {expected}")),
        };
        Self::new(kind, msg)
    }

    fn missing_field(field: &'static str) -> Self {
        let mut error = Self::new("missing", "Field required");
        error.0.field = Some(field.to_owned());
        error
    }

    fn unknown_field(field: &str, _expected: &'static [&'static str]) -> Self {
        let mut error = Self::new("extra_forbidden", "Extra inputs are not permitted");
        error.0.field = Some(field.to_owned());
        error.0.fix = Fix::Absent;
        error
    }

    fn unknown_variant(_variant: &str, expected: &'static [&'static str]) -> Self {
        Self::literal(expected)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.msg)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind, self.0.msg)
    }
}

impl std::error::Error for Error {}
