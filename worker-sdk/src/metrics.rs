//! `/aggregate_metrics`: the same numbers as NeMo Gym's own on the same input.
//!
//! [`aggregate`] computes what every resources server answers; [`MetricsHooks`] are where an author's own metrics come
//! in, and [`pass_majority`] and what stands beside it are there to compute them.
//!
//! Differences from the Python servers (nemo-gym 0.7):
//! - They answer 500 where the numbers cannot be put in a histogram, which is never sent: an infinite number, two that
//!   are nearly but not quite the same, whole numbers above 64 bits. Here the metrics are computed.
//! - Floats are equal up to rounding: confidence intervals in their last digits, nearly all else to the bit.
//! - A 500 says what is wrong.
//! - A numeric field that is named `agent_name` is looked past; they take it for the name of the agent.
//! - `NaN` and `Infinity` are no JSON here, and the body is refused with 422. They take them in; NeMo Gym's own clients
//!   send null instead. Where a metric is infinite, both write null.
//! - In `rollout_id` a float index with an exponent is written as in JSON, not as Python prints it.
//! - Several metrics of [`MetricsHooks::compute_repeat_metrics`] stand in the order in which they are given; theirs is
//!   another in each process.
//! - They answer 500 where all `num_turns` or `total_latency_ms` of `ng_perf` are flags.

mod error;
mod hooks;
mod index;
mod pass;
mod perf;
mod repeats;
mod stats;
mod student;
mod table;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use error::MetricsError;
pub use hooks::MetricsHooks;
pub use pass::{PassMajority, Scores, accuracy, highest_k, pass_majority, subset_metrics};

use index::{Index, Sample, TASK};
use table::{MASK, Table};

/// A JSON object: a verify response, or metrics by name.
pub type Row = Map<String, Value>;

/// The body of `POST /aggregate_metrics`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct AggregateMetricsRequest {
    /// What each rollout's verify answered, with its indices.
    pub verify_responses: Vec<Row>,
}

/// The reply to `POST /aggregate_metrics`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct AggregateMetrics {
    /// One for each task, ordered by its index.
    pub group_level_metrics: Vec<Row>,
    /// Of all rollouts.
    pub agent_metrics: Row,
    /// The headline metrics among `agent_metrics`.
    pub key_metrics: Row,
    /// What the rollouts cost; null if none carried `ng_perf`.
    pub perf_summary: Option<Row>,
    /// One for each repeat, ordered by `_ng_rollout_index`; empty if there are not at least two.
    pub repeat_level_metrics: Vec<Row>,
}

/// Computes the metrics of verify responses, and the author's.
///
/// A row's numbers and flags (as 0 and 1) are measured, and those of `response.usage`; keys that start with `_` are
/// not. Rows with a true `mask_sample` only count in `coverage/...` and `perf_summary`. A missing `_ng_task_index` or
/// `_ng_rollout_index` is 0.
///
/// # Errors
/// If two rows have the same indices, indices cannot be ordered, or a `response` or its `usage` is no object.
///
/// ```
/// use gym_worker_sdk::metrics::{Row, aggregate};
/// use serde_json::json;
///
/// let rows: Vec<Row> = serde_json::from_value(json!([
///     {"_ng_task_index": 0, "_ng_rollout_index": 0, "reward": 1.0},
///     {"_ng_task_index": 1, "_ng_rollout_index": 0, "reward": 0.5},
/// ]))?;
/// let metrics = aggregate(&rows, &())?;
/// assert_eq!(metrics.key_metrics["mean/reward"], json!(0.75));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn aggregate<H: MetricsHooks + ?Sized>(
    verify_responses: &[Row],
    hooks: &H,
) -> Result<AggregateMetrics, MetricsError> {
    if verify_responses.is_empty() {
        return Ok(AggregateMetrics::default());
    }
    let samples = verify_responses.iter().map(Sample::of).collect::<Result<Vec<_>, _>>()?;
    let num_repeats = index::distinct(samples.iter().map(|sample| &sample.rollout));
    let (masked, scored): (Vec<_>, Vec<_>) =
        samples.into_iter().partition(|sample| sample.row.get(MASK).is_some_and(table::is_true));
    let coverage = coverage(&scored, &masked);
    let perf_summary = perf::summary(verify_responses);
    if scored.is_empty() {
        return Ok(AggregateMetrics {
            agent_metrics: coverage.clone(),
            key_metrics: coverage,
            perf_summary,
            ..AggregateMetrics::default()
        });
    }

    let ordered = index::ordered(&scored, &masked)?;
    let table = Table::of(&ordered)?;
    let mut groups = by_task(&table, &ordered);
    let mut agent = table.describe(0..ordered.len());
    let mut repeats = repeats::by_repeat(&table, &ordered)?;
    agent.extend(repeats::across(&repeats));
    agent.extend(coverage.clone());

    let mut own = hooks.compute_metrics(&index::by_task(&scored.iter().collect::<Vec<_>>()));
    if let Some(per_task) = own.shift_remove("per_task_metrics") {
        add_per_task(&mut groups, per_task)?;
    }
    agent.extend(own.clone());
    agent.insert("num_repeats".to_owned(), Value::from(num_repeats));

    let mut key_metrics = hooks.get_key_metrics(&agent);
    key_metrics.extend(coverage);
    repeats::add_own(hooks, &scored, &mut repeats, &mut agent, &own);
    Ok(AggregateMetrics {
        group_level_metrics: groups,
        agent_metrics: agent,
        key_metrics,
        perf_summary,
        repeat_level_metrics: repeats,
    })
}

/// Of how much the metrics are; empty if nothing is masked.
fn coverage(scored: &[Sample<'_>], masked: &[Sample<'_>]) -> Row {
    if masked.is_empty() {
        return Row::new();
    }
    let measured = index::distinct(scored.iter().map(|sample| &sample.task));
    let all = index::distinct(scored.iter().chain(masked).map(|sample| &sample.task));
    [
        ("coverage/measured_rollouts", scored.len()),
        ("coverage/masked_rollouts", masked.len()),
        ("coverage/measured_tasks", measured),
        ("coverage/fully_masked_tasks", all - measured),
    ]
    .map(|(name, n)| (name.to_owned(), Value::from(n)))
    .into_iter()
    .collect()
}

/// The metrics of each task; a null is no task.
fn by_task(table: &Table<'_>, samples: &[Sample<'_>]) -> Vec<Row> {
    let mut groups = Vec::new();
    let mut start = 0;
    for task in samples.chunk_by(|a, b| a.task == b.task) {
        let rows = start..start + task.len();
        start = rows.end;
        if let Some(first) = task.first().filter(|first| first.task != Index::Null) {
            groups.push(group(table, first.raw(TASK), rows));
        }
    }
    groups
}

fn group(table: &Table<'_>, task: Value, rows: Range<usize>) -> Row {
    let mut group = Row::new();
    group.insert(TASK.to_owned(), task);
    let count = rows.len();
    group.extend(table.describe(rows.clone()));
    let infos = table.infos.get(rows).unwrap_or_default().iter().cloned().map(Value::Object).collect();
    // Gym also counts what is missing; here every row of a request is there.
    for (name, value) in [
        ("sample", serde_json::json!({"agent_ref": {"name": "agent"}})),
        ("num_rollouts", Value::from(count)),
        ("expected_num_rollouts", Value::from(count)),
        ("missing_num_rollouts", Value::from(0)),
        ("reward_profile_completion_pct", Value::from(100.0)),
        ("rollout_infos", Value::Array(infos)),
    ] {
        group.insert(name.to_owned(), value);
    }
    group
}

fn add_per_task(groups: &mut [Row], per_task: Value) -> Result<(), MetricsError> {
    if !table::is_true(&per_task) {
        return Ok(());
    }
    let Value::Array(items) = per_task else { return Err(MetricsError::BadTaskMetrics("they are no list")) };
    // Of several for one task the last counts.
    let mut entries = BTreeMap::new();
    for item in &items {
        let Value::Object(entry) = item else { return Err(MetricsError::BadTaskMetrics("one is no object")) };
        if !entry.contains_key(TASK) {
            return Err(MetricsError::BadTaskMetrics("one has no _ng_task_index"));
        }
        entries.insert(Index::of(entry, TASK)?, entry);
    }
    for group in groups {
        let Some(entry) = entries.get(&Index::of(group, TASK)?) else { continue };
        let own = entry.iter().filter(|(key, _)| *key != TASK);
        group.extend(own.map(|(key, value)| (key.clone(), value.clone())));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
