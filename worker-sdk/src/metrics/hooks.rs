//! What an author adds to the metrics.

use serde_json::Map;

use super::Row;

/// An author's own metrics, beside or in place of those that every server has. By default there are none: `()` has none.
///
/// The rows that a hook is given are verify responses as they came: `reward`, the author's own fields,
/// `_ng_task_index` and `_ng_rollout_index` (each 0 if missing), and of `response` what the client left of it (NeMo
/// Gym: `usage` and `incomplete_details`). Masked samples are not among them. `tasks[i]` are the rows of one task, in
/// the order in which they came; tasks are ordered by their index.
///
/// ```
/// use gym_worker_sdk::metrics::{MetricsHooks, Row, accuracy, highest_k, pass_majority};
///
/// struct Graded;
///
/// impl MetricsHooks for Graded {
///     fn compute_metrics(&self, tasks: &[Vec<&Row>]) -> Row {
///         pass_majority(tasks, accuracy, Some("answer")).metrics
///     }
///
///     fn get_key_metrics(&self, agent_metrics: &Row) -> Row {
///         highest_k(agent_metrics, "pass@{k}", Some(&["accuracy"]), &[])
///     }
/// }
/// ```
pub trait MetricsHooks {
    /// Metrics of the whole run, such as [`pass_majority`](super::pass_majority). Called once; not if every sample is
    /// masked.
    ///
    /// They are added to `agent_metrics`, over those of the same name. The key `per_task_metrics` is not: it may hold
    /// a list of objects, each with the `_ng_task_index` of a task, whose other keys are added to that task's
    /// `group_level_metrics`.
    fn compute_metrics(&self, tasks: &[Vec<&Row>]) -> Row {
        let _ = tasks;
        Map::new()
    }

    /// Metrics of one repeat: `tasks` holds only rows of one `_ng_rollout_index`. Called once for each repeat, and
    /// only if there are at least two.
    ///
    /// They replace those of the same name in `repeat_level_metrics`, and their spread over the repeats goes to
    /// `agent_metrics` (`mean_across_repeats/...` and so on). A metric is kept only if it is a finite number in every
    /// repeat, and [`compute_metrics`](Self::compute_metrics) gives a finite number, or nothing, under its name.
    fn compute_repeat_metrics(&self, tasks: &[Vec<&Row>]) -> Row {
        let _ = tasks;
        Map::new()
    }

    /// The headline metrics, chosen from `agent_metrics`, which do not hold the spreads over repeats of
    /// [`compute_repeat_metrics`](Self::compute_repeat_metrics) yet. By default those that start with `mean/`.
    ///
    /// What is masked is added to them (`coverage/...`), whatever is chosen.
    fn get_key_metrics(&self, agent_metrics: &Row) -> Row {
        agent_metrics
            .iter()
            .filter(|(name, _)| name.starts_with("mean/"))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

impl MetricsHooks for () {}
