//! `perf_summary`: what the rollouts cost, from each one's `ng_perf`.

use serde_json::{Map, Value};

use super::{Row, stats};

/// Summarizes the `ng_perf` objects of all rows, masked ones too; none if no row has one.
///
/// Each statistic is there only if a row reports what it is taken of.
pub(super) fn summary(rows: &[Row]) -> Option<Row> {
    let records: Vec<&Row> = rows.iter().filter_map(|row| row.get("ng_perf")?.as_object()).collect();
    if records.is_empty() {
        return None;
    }
    let total = stats::count(rows.len());
    let with_tokens = records
        .iter()
        .filter(|record| record.get("token_observability_coverage").and_then(float).is_some_and(|x| x > 0.0))
        .count();
    let mut summary = Map::new();
    let mut add = |name: String, value: Option<Value>| {
        if let Some(value) = value {
            summary.insert(name, value);
        }
    };
    let share = |n| Some(Value::from(stats::count(n) / total));
    add("overall_observability_coverage".to_owned(), share(records.len()));
    add("token_observability_coverage".to_owned(), share(with_tokens));

    for field in ["prompt_tokens", "cached_prompt_tokens", "completion_tokens", "reasoning_tokens"] {
        let values = Numbers::of(&records, field);
        add(format!("mean_{field}"), values.mean());
        add(format!("median_{field}"), values.median());
        add(format!("total_{field}"), values.total());
    }
    let turns = Numbers::of(&records, "num_turns");
    add("mean_num_turns".to_owned(), turns.mean());
    add("median_num_turns".to_owned(), turns.median());
    add("std_num_turns".to_owned(), turns.population_std());
    add("min_num_turns".to_owned(), turns.min());
    add("p90_num_turns".to_owned(), turns.quantile(0.9));
    add("max_num_turns".to_owned(), turns.max());

    let per_turn = Numbers(records.iter().filter_map(|record| per_turn(record)).collect());
    add("mean_tokens_per_turn".to_owned(), per_turn.mean());
    add("median_tokens_per_turn".to_owned(), per_turn.median());

    let latency = Numbers::of(&records, "total_latency_ms");
    add("total_latency_p50_ms".to_owned(), latency.quantile(0.5));
    add("total_latency_p90_ms".to_owned(), latency.quantile(0.9));
    add("total_latency_p99_ms".to_owned(), latency.quantile(0.99));
    add("total_latency_mean_ms".to_owned(), latency.mean());
    Some(summary)
}

fn per_turn(record: &Row) -> Option<Value> {
    let tokens = float(record.get("completion_tokens")?)?;
    let turns = float(record.get("num_turns")?)?;
    (turns > 0.0).then(|| Value::from(tokens / turns))
}

/// A number, or a flag as 0 or 1.
fn float(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_bool().map(f64::from))
}

/// The numbers and flags of a field, as they came: what is picked from them (not computed) stays as it is.
struct Numbers(Vec<Value>);

impl Numbers {
    fn of(records: &[&Row], field: &str) -> Self {
        let found = records.iter().filter_map(|record| record.get(field));
        Self(found.filter(|value| float(value).is_some()).cloned().collect())
    }

    fn floats(&self) -> Vec<f64> {
        self.0.iter().filter_map(float).collect()
    }

    /// What `compute` says of the numbers, if there are any.
    fn with(&self, compute: impl FnOnce(&[f64]) -> f64) -> Option<Value> {
        (!self.0.is_empty()).then(|| Value::from(compute(&self.floats())))
    }

    fn mean(&self) -> Option<Value> {
        self.with(|values| stats::exact_sum(values) / stats::count(values.len()))
    }

    fn population_std(&self) -> Option<Value> {
        self.with(stats::population_std)
    }

    fn quantile(&self, q: f64) -> Option<Value> {
        self.with(|values| stats::quantile(values, q))
    }

    fn total(&self) -> Option<Value> {
        let whole: Option<i128> = self.0.iter().map(whole).sum();
        match whole.and_then(serde_json::Number::from_i128) {
            Some(total) if !self.0.is_empty() => Some(Value::Number(total)),
            _ => self.with(stats::exact_sum),
        }
    }

    fn sorted(&self) -> Vec<(f64, &Value)> {
        let mut sorted: Vec<_> = self.0.iter().filter_map(|value| Some((float(value)?, value))).collect();
        sorted.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        sorted
    }

    fn median(&self) -> Option<Value> {
        match self.sorted().get(self.0.len() / 2) {
            Some((_, middle)) if self.0.len() % 2 == 1 => Some((*middle).clone()),
            _ => self.with(stats::median),
        }
    }

    fn min(&self) -> Option<Value> {
        self.sorted().first().map(|(_, value)| (*value).clone())
    }

    /// The first of the largest, where they differ only in kind (`1`, `1.0`).
    fn max(&self) -> Option<Value> {
        let sorted = self.sorted();
        let (largest, _) = sorted.last()?;
        sorted.iter().find(|(x, _)| x == largest).map(|(_, value)| (*value).clone())
    }
}

fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::Bool(flag) => Some(i128::from(*flag)),
        Value::Number(number) => number.as_i128(),
        _ => None,
    }
}
