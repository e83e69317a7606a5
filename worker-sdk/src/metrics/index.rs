//! Task and rollout indices: what groups the rows and orders them.

use std::cmp::Ordering;

use serde_json::Value;

use super::{MetricsError, Row};

/// The key of a row's task.
pub(super) const TASK: &str = "_ng_task_index";
/// The key of a row's rollout: which repeat of its task it is.
pub(super) const ROLLOUT: &str = "_ng_rollout_index";

/// An index, by value: `1`, `1.0` and `true` are the same, as in Python.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Index<'a> {
    Null,
    Number(Number),
    Text(&'a str),
}

#[derive(Clone, Debug)]
pub(super) enum Number {
    Whole(i128),
    /// Never a whole number.
    Fraction(f64),
}

impl<'a> Index<'a> {
    /// The index at `key`; 0 if the row has none.
    pub(super) fn of(row: &'a Row, key: &'static str) -> Result<Self, MetricsError> {
        match row.get(key) {
            None => Ok(Self::whole(0)),
            Some(Value::Null) => Ok(Self::Null),
            Some(Value::Bool(flag)) => Ok(Self::whole(i128::from(*flag))),
            Some(Value::String(text)) => Ok(Self::Text(text)),
            Some(Value::Number(number)) => Ok(Self::Number(Number::from(number))),
            Some(found @ (Value::Array(_) | Value::Object(_))) => {
                Err(MetricsError::BadIndex { key, found: found.to_string() })
            }
        }
    }

    /// The index `n`.
    pub(super) fn whole(n: i128) -> Self {
        Self::Number(Number::Whole(n))
    }

    /// As a whole number: a fraction loses what follows the point, a text is read.
    pub(super) fn to_whole(&self) -> Result<i64, MetricsError> {
        let whole = match self {
            Self::Null => None,
            Self::Number(Number::Whole(n)) => i64::try_from(*n).ok(),
            Self::Number(Number::Fraction(x)) => Some(*x as i64),
            Self::Text(text) => text.trim().parse().ok(),
        };
        whole.ok_or_else(|| MetricsError::BadIndex { key: ROLLOUT, found: format!("{self:?}") })
    }

    /// Whether the two can be ordered: numbers among numbers, texts among texts.
    pub(super) fn is_comparable(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl From<&serde_json::Number> for Number {
    fn from(number: &serde_json::Number) -> Self {
        if let Some(n) = number.as_i128() {
            return Self::Whole(n);
        }
        let x = number.as_f64().unwrap_or(f64::NAN);
        // Beyond 2^53 every double is whole, and `as` keeps its value up to i128's own bounds.
        let whole = x as i128;
        if x.fract() == 0.0 { Self::Whole(whole) } else { Self::Fraction(x) }
    }
}

impl Number {
    fn as_f64(&self) -> f64 {
        match self {
            Self::Whole(n) => *n as f64,
            Self::Fraction(x) => *x,
        }
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => a.cmp(b),
            _ => self.as_f64().total_cmp(&other.as_f64()),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Number {}

/// A row with its indices.
#[derive(Clone, Debug)]
pub(super) struct Sample<'a> {
    pub(super) row: &'a Row,
    pub(super) task: Index<'a>,
    pub(super) rollout: Index<'a>,
}

impl<'a> Sample<'a> {
    pub(super) fn of(row: &'a Row) -> Result<Self, MetricsError> {
        Ok(Self { row, task: Index::of(row, TASK)?, rollout: Index::of(row, ROLLOUT)? })
    }

    pub(super) fn key(&self) -> (&Index<'a>, &Index<'a>) {
        (&self.task, &self.rollout)
    }

    /// The index as the row has it.
    pub(super) fn raw(&self, key: &str) -> Value {
        self.row.get(key).cloned().unwrap_or_else(|| Value::from(0))
    }

    /// `task:rollout`, as Python writes the two.
    pub(super) fn id(&self) -> String {
        format!("{}:{}", text(&self.raw(TASK)), text(&self.raw(ROLLOUT)))
    }
}

/// A value as Python's `str` writes it, but for floats with an exponent and for lists and objects.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Orders the scored samples by task and rollout.
///
/// # Errors
/// If indices cannot be ordered, or two samples have the same ones (a scored and a masked one too).
pub(super) fn ordered<'a>(
    scored: &[Sample<'a>],
    masked: &[Sample<'a>],
) -> Result<Vec<Sample<'a>>, MetricsError> {
    let mut all = scored.to_vec();
    all.sort_by(|a, b| a.key().cmp(&b.key()));
    let mut taken: Vec<_> = masked.iter().map(Sample::key).collect();
    taken.sort();
    for sample in &all {
        if taken.binary_search(&sample.key()).is_ok() {
            return Err(MetricsError::Repeated { id: sample.id() });
        }
    }
    for pair in all.windows(2) {
        let [before, after] = pair else { continue };
        if before.key() == after.key() {
            return Err(MetricsError::Repeated { id: after.id() });
        }
        for (a, b, key) in [(&before.task, &after.task, TASK), (&before.rollout, &after.rollout, ROLLOUT)] {
            if !a.is_comparable(b) {
                return Err(MetricsError::MixedIndices { key });
            }
        }
    }
    Ok(all)
}

/// The samples' rows by task; tasks in their order, rows of one in the order of `samples`.
pub(super) fn by_task<'a>(samples: &[&Sample<'a>]) -> Vec<Vec<&'a Row>> {
    let mut sorted: Vec<_> = samples.iter().collect();
    sorted.sort_by(|a, b| a.task.cmp(&b.task));
    sorted
        .chunk_by(|a, b| a.task == b.task)
        .map(|task| task.iter().map(|sample| sample.row).collect())
        .collect()
}

/// How many different indices there are.
pub(super) fn distinct<'a>(indices: impl Iterator<Item = &'a Index<'a>>) -> usize {
    indices.collect::<std::collections::BTreeSet<_>>().len()
}
