//! Repeats: every task's n-th rollout makes the n-th repeat of the whole run.

use serde_json::{Map, Value};

use super::hooks::MetricsHooks;
use super::index::{Index, ROLLOUT, Sample, by_task, distinct};
use super::table::{Column, Table};
use super::{MetricsError, Row, stats};

/// What stands between a statistic and the metric that it was taken of over the repeats.
const ACROSS: &str = "_across_repeats/";

/// One entry for each repeat; none if there are not at least two.
///
/// # Errors
/// If a rollout index is no number.
pub(super) fn by_repeat(table: &Table<'_>, samples: &[Sample<'_>]) -> Result<Vec<Row>, MetricsError> {
    let mut known: Vec<_> = samples.iter().enumerate().filter(|(_, s)| s.rollout != Index::Null).collect();
    if distinct(known.iter().map(|(_, sample)| &sample.rollout)) < 2 {
        return Ok(Vec::new());
    }
    let tasks = count_tasks(samples.iter());
    let mut columns: Vec<_> = table.columns.iter().collect();
    columns.sort_by_key(|column| column.name);

    known.sort_by(|(_, a), (_, b)| a.rollout.cmp(&b.rollout));
    let mut repeats = Vec::new();
    for repeat in known.chunk_by(|(_, a), (_, b)| a.rollout == b.rollout) {
        let Some((_, first)) = repeat.first() else { continue };
        let present = count_tasks(repeat.iter().map(|(_, sample)| *sample));
        let mut entry = Map::new();
        entry.insert(ROLLOUT.to_owned(), Value::from(first.rollout.to_whole()?));
        entry.insert("sample_count".to_owned(), Value::from(present));
        entry.insert("missing_count".to_owned(), Value::from(tasks - present));
        for column in &columns {
            summarize(&mut entry, column, repeat.iter().map(|(row, _)| *row));
        }
        repeats.push(entry);
    }
    Ok(repeats)
}

fn count_tasks<'s, 'a: 's>(samples: impl Iterator<Item = &'s Sample<'a>>) -> usize {
    distinct(samples.map(|sample| &sample.task).filter(|task| **task != Index::Null))
}

fn summarize(entry: &mut Row, column: &Column<'_>, rows: impl Iterator<Item = usize>) {
    let values = stats::present(&column.floats(rows));
    let Some(spread) = Spread::of(&values) else { return };
    let mut add = |stat: &str, x: f64| {
        entry.insert(format!("{stat}/{}", column.name), Value::from(x));
    };
    add("mean", spread.mean);
    add("median", stats::median(&values));
    add("std", spread.std);
    add("sem", spread.error);
    add("min", stats::min(&values));
    add("max", stats::max(&values));
    add("p25", stats::quantile(&values, 0.25));
    add("p75", stats::quantile(&values, 0.75));
    if let Some((low, high)) = spread.confidence {
        add("ci_low_95", low);
        add("ci_high_95", high);
    }
}

/// How numbers spread around their mean; a single number does not.
struct Spread {
    mean: f64,
    std: f64,
    error: f64,
    confidence: Option<(f64, f64)>,
}

impl Spread {
    fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        let mean = stats::mean(values);
        let std = match n {
            0 => return None,
            1 => 0.0,
            _ => stats::std(values),
        };
        let error = std / stats::count(n).sqrt();
        Some(Self { mean, std, error, confidence: stats::confidence_95(mean, error, n) })
    }
}

/// The spread of each metric over the repeats.
pub(super) fn across(repeats: &[Row]) -> Row {
    let mut names: Vec<&String> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for name in repeats.iter().flat_map(Map::keys) {
        if is_primary(name) && seen.insert(name) {
            names.push(name);
        }
    }
    let mut metrics = Map::new();
    for name in names {
        let values: Vec<f64> = repeats.iter().filter_map(|repeat| repeat.get(name).map(number)).collect();
        let Some(spread) = Spread::of(&values) else { continue };
        let mut add = |stat: &str, x: f64| {
            metrics.insert(format!("{stat}{ACROSS}{name}"), Value::from(x));
        };
        add("mean", spread.mean);
        add("median", stats::median(&values));
        add("std", spread.std);
        add("min", stats::min(&values));
        add("max", stats::max(&values));
        add("se", spread.error);
        if let Some((low, high)) = spread.confidence {
            add("ci_low_95", low);
            add("ci_high_95", high);
        }
    }
    metrics
}

/// A metric of a repeat. A null is one whose numbers add up to more than a float holds.
fn number(metric: &Value) -> f64 {
    metric.as_f64().unwrap_or(f64::INFINITY)
}

/// Whether a metric is an estimate of its own, and not a count, nor a statistic that goes with another metric.
fn is_primary(name: &str) -> bool {
    const NAMES: [&str; 7] = [
        "_ng_task_index",
        ROLLOUT,
        "_ng_attempt_index",
        "sample_count",
        "missing_count",
        "num_repeats",
        "token_usage_version",
    ];
    const PREFIXES: [&str; 11] = [
        "max/",
        "min/",
        "median/",
        "std/",
        "sem/",
        "se/",
        "p25/",
        "p75/",
        "ci_low_95/",
        "ci_high_95/",
        "histogram/",
    ];
    const SUFFIXES: [&str; 19] = [
        "/max",
        "/min",
        "/median",
        "/p5",
        "/p25",
        "/p75",
        "/p95",
        "/ci_low_95",
        "/ci_high_95",
        "/ci_lower",
        "/ci_upper",
        "_ci_lower",
        "_ci_upper",
        "_ci95_lower",
        "_ci95_upper",
        "/_ng_attempt_index",
        "/std_dev_across_runs",
        "/std_err_across_runs",
        "/avg_sample_std_dev",
    ];
    !NAMES.contains(&name)
        && !PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        && !SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
        && !name.contains(ACROSS)
}

/// Adds the author's metrics of each repeat, in place of Gym's own of the same name, and their spread.
///
/// `whole` are the author's metrics of the whole run.
pub(super) fn add_own<H: MetricsHooks + ?Sized>(
    hooks: &H,
    scored: &[Sample<'_>],
    repeats: &mut [Row],
    agent: &mut Row,
    whole: &Row,
) {
    let own: Vec<Row> = repeats
        .iter()
        .map(|repeat| {
            let index = Index::of(repeat, ROLLOUT).unwrap_or(Index::Null);
            let samples: Vec<_> = scored.iter().filter(|sample| sample.rollout == index).collect();
            hooks.compute_repeat_metrics(&by_task(&samples))
        })
        .collect();
    let mut names: Vec<&String> = Vec::new();
    for name in own.iter().flat_map(Map::keys) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return;
    }
    for name in &names {
        let values: Option<Vec<f64>> = own.iter().map(|metrics| metrics.get(*name)?.as_f64()).collect();
        let wanted = whole.get(*name).is_none_or(Value::is_number);
        for (place, repeat) in repeats.iter_mut().enumerate() {
            repeat.shift_remove(*name);
            if let Some(value) = values.as_ref().filter(|_| wanted).and_then(|values| values.get(place)) {
                repeat.insert((*name).clone(), Value::from(*value));
            }
        }
    }
    agent.retain(|key, _| key.split_once(ACROSS).is_none_or(|(_, of)| !names.iter().any(|name| *name == of)));
    agent.extend(across(repeats));
}
