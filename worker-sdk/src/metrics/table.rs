//! The rows as columns of numbers, and what is said of a column.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::{Map, Value};

use super::index::{ROLLOUT, Sample, TASK};
use super::{MetricsError, Row, stats};

/// The flag of samples that are not measured.
pub(super) const MASK: &str = "mask_sample";

/// A number of a row: a flag is 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell {
    Whole(i128),
    Float(f64),
}

impl Cell {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(flag) => Some(Self::Whole(i128::from(*flag))),
            Value::Number(number) => number.as_i128().map(Self::Whole).or(number.as_f64().map(Self::Float)),
            _ => None,
        }
    }

    fn as_f64(self) -> f64 {
        match self {
            Self::Whole(n) => n as f64,
            Self::Float(x) => x,
        }
    }
}

impl From<Cell> for Value {
    fn from(cell: Cell) -> Self {
        match cell {
            Cell::Whole(n) => serde_json::Number::from_i128(n).map_or(Self::Null, Self::Number),
            Cell::Float(x) => Self::from(x),
        }
    }
}

/// A field's numbers, one a row.
#[derive(Debug)]
pub(super) struct Column<'a> {
    pub(super) name: &'a str,
    cells: Vec<Option<Cell>>,
}

impl Column<'_> {
    /// The numbers of some rows; NaN for one that has none.
    pub(super) fn floats(&self, rows: impl IntoIterator<Item = usize>) -> Vec<f64> {
        rows.into_iter()
            .map(|row| self.cells.get(row).copied().flatten().map_or(f64::NAN, Cell::as_f64))
            .collect()
    }

    fn is_whole(&self) -> bool {
        self.cells.iter().all(|cell| matches!(cell, Some(Cell::Whole(_))))
    }

    fn whole(&self, rows: Range<usize>) -> impl Iterator<Item = i128> {
        self.cells.get(rows).unwrap_or_default().iter().filter_map(|cell| match cell {
            Some(Cell::Whole(n)) => Some(*n),
            _ => None,
        })
    }
}

/// The numeric fields of ordered samples, in the order in which rows first have them.
#[derive(Debug, Default)]
pub(super) struct Table<'a> {
    pub(super) columns: Vec<Column<'a>>,
    /// What was measured in each row.
    pub(super) infos: Vec<Row>,
    /// Whether every row has a whole number in every column.
    whole: bool,
}

impl<'a> Table<'a> {
    /// Takes every numeric field that does not start with `_`, those of `response.usage` after (and over) the rest.
    ///
    /// # Errors
    /// If a `response` or its `usage` is no object.
    pub(super) fn of(samples: &[Sample<'a>]) -> Result<Self, MetricsError> {
        let mut table = Self::default();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (row, sample) in samples.iter().enumerate() {
            let usage = usage(sample)?;
            let own = sample.row.iter().filter(|(key, _)| *key != MASK);
            for (key, value) in own.chain(usage.into_iter().flatten()) {
                if key.starts_with('_') {
                    continue;
                }
                let Some(cell) = Cell::of(value) else { continue };
                let place = *places.entry(key).or_insert_with(|| {
                    table.columns.push(Column { name: key, cells: vec![None; samples.len()] });
                    table.columns.len() - 1
                });
                if let Some(at) = table.columns.get_mut(place).and_then(|column| column.cells.get_mut(row)) {
                    *at = Some(cell);
                }
            }
            table.infos.push(info(sample, usage));
        }
        table.whole = table.columns.iter().all(Column::is_whole);
        Ok(table)
    }

    /// Mean, max, min, median and std of every column over `rows`, by `stat/column`; what is no number is left out.
    pub(super) fn describe(&self, rows: Range<usize>) -> Row {
        let floats: Vec<_> =
            self.columns.iter().map(|column| (column, column.floats(rows.clone()))).collect();
        let mut described = Map::new();
        let mut add = |stat: &str, of: &dyn Fn(&Column<'_>, &[f64]) -> Option<Value>| {
            for (column, values) in &floats {
                if let Some(value) = of(column, values) {
                    described.insert(format!("{stat}/{}", column.name), value);
                }
            }
        };
        add("mean", &|_, values| number(stats::mean(values)));
        // Whole only where all columns are: one float among them makes all floats, as in a frame.
        if self.whole {
            add("max", &|column, _| column.whole(rows.clone()).max().map(|n| Cell::Whole(n).into()));
            add("min", &|column, _| column.whole(rows.clone()).min().map(|n| Cell::Whole(n).into()));
        } else {
            add("max", &|_, values| number(stats::max(values)));
            add("min", &|_, values| number(stats::min(values)));
        }
        add("median", &|_, values| number(stats::median(values)));
        add("std", &|_, values| match values {
            // A single row does not spread.
            [value] => (!value.is_nan()).then(|| Value::from(0.0)),
            values => number(stats::std(values)),
        });
        described
    }
}

/// A number that is one. An infinite one is null in JSON, as the Python servers write it.
fn number(x: f64) -> Option<Value> {
    (!x.is_nan()).then(|| Value::from(x))
}

fn usage<'a>(sample: &Sample<'a>) -> Result<Option<&'a Row>, MetricsError> {
    let Some(response) = object(sample, "response", sample.row.get("response"))? else { return Ok(None) };
    object(sample, "response.usage", response.get("usage"))
}

/// The object at a place where only an object or something empty may be.
fn object<'a>(
    sample: &Sample<'_>,
    field: &'static str,
    value: Option<&'a Value>,
) -> Result<Option<&'a Row>, MetricsError> {
    match value {
        Some(Value::Object(map)) => Ok(Some(map)),
        Some(value) if is_true(value) => Err(MetricsError::NoObject { id: sample.id(), field }),
        _ => Ok(None),
    }
}

/// What a row measured: its indices, the reward as it came, and its numbers, those of its usage first.
fn info(sample: &Sample<'_>, usage: Option<&Row>) -> Row {
    let mut info = Map::new();
    info.insert("rollout_id".to_owned(), Value::from(sample.id()));
    info.insert(TASK.to_owned(), sample.raw(TASK));
    info.insert(ROLLOUT.to_owned(), sample.raw(ROLLOUT));
    if let Some(reward) = sample.row.get("reward") {
        info.insert("reward".to_owned(), reward.clone());
    }
    let own = sample
        .row
        .iter()
        .filter(|(key, _)| !key.starts_with('_') && !matches!(key.as_str(), "reward" | "response" | MASK));
    for (key, value) in usage.into_iter().flatten().chain(own) {
        if let Some(cell) = Cell::of(value) {
            info.insert(key.clone(), cell.into());
        }
    }
    info
}

/// Whether Python takes the value for true.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}
