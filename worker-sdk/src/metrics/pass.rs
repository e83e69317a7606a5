//! pass@k and majority@k, for the hooks of authors: the numbers of Gym's own helpers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::index::text;
use super::stats::{count, exact_sum};
use super::{Row, table};

/// A rollout's scores by name: 0 and 1, or anything between or beyond.
pub type Scores = BTreeMap<String, f64>;

/// The reward as `accuracy`: the score if an author has none of their own. A rollout without a reward has none.
pub fn accuracy(row: &Row) -> Scores {
    row.get("reward").and_then(float).map(|reward| ("accuracy".to_owned(), reward)).into_iter().collect()
}

/// A number, or a flag as 0 or 1.
fn float(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_bool().map(f64::from))
}

/// What [`pass_majority`] computed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PassMajority {
    /// The metrics by name; `per_sample_aggregate` holds, by score, the average of each repeat.
    pub metrics: Row,
    /// The scores of each task's rollouts.
    pub scores: Vec<Vec<Scores>>,
    /// The names of all scores, in order.
    pub names: Vec<String>,
    /// The most rollouts that a task has.
    pub max_k: usize,
}

/// Computes pass@k and majority@k, in percent, of tasks as [`MetricsHooks`](super::MetricsHooks) get them.
///
/// For each k up to the most rollouts of a task, and each score of `score` (such as [`accuracy`]):
/// - `pass@{k}/{score}`: how likely at least one of k rollouts passes, estimated from all rollouts of a task, if its
///   scores are 0 and 1; else the best of the first k. Tasks with fewer than k rollouts are left out.
/// - `pass@1[avg-of-{k}]/{score}`: the average of the first k rollouts, from k = 2 on also with
///   `/std_dev_across_runs` and `/std_err_across_runs`.
/// - `majority@{k}/{score}`: the score of the most frequent answer among the first k, the average of all such answers
///   in a tie. Only if `answer_key` says which field holds the answer; then the share of rollouts without one (missing
///   or null) is a score too, `no_answer`.
pub fn pass_majority(
    tasks: &[Vec<&Row>],
    score: impl Fn(&Row) -> Scores,
    answer_key: Option<&str>,
) -> PassMajority {
    let Some(max_k) = tasks.iter().map(Vec::len).max() else { return PassMajority::default() };
    let answers: Vec<Vec<&Value>> = tasks
        .iter()
        .map(|rows| {
            rows.iter().map(|row| answer_key.and_then(|key| row.get(key)).unwrap_or(&Value::Null)).collect()
        })
        .collect();
    let mut scores: Vec<Vec<Scores>> =
        tasks.iter().map(|rows| rows.iter().map(|row| score(row)).collect()).collect();
    if answer_key.is_some() {
        for (scores, answer) in scores.iter_mut().flatten().zip(answers.iter().flatten()) {
            scores.insert("no_answer".to_owned(), f64::from(answer.is_null()));
        }
    }
    let names: BTreeSet<_> = scores.iter().flatten().flat_map(BTreeMap::keys).cloned().collect();
    let names: Vec<_> = names.into_iter().collect();

    let mut metrics = Map::new();
    for k in 1..=max_k {
        for name in &names {
            let mut add = |mode: &str, values: &[f64]| {
                if !values.is_empty() {
                    metrics.insert(format!("{mode}/{name}"), Value::from(percent(values)));
                }
            };
            add(&format!("pass@{k}"), &pass(&scores, name, k));
            add(&format!("pass@1[avg-of-{k}]"), &averages(&scores, name, k));
            if answer_key.is_some() {
                add(&format!("majority@{k}"), &majorities(&scores, &answers, name, k));
            }
        }
    }
    add_spread(&mut metrics, &scores, &names, max_k);
    PassMajority { metrics, scores, names, max_k }
}

impl PassMajority {
    /// Adds `pass@1[avg-of-{k}]/{score}/avg_sample_std_dev`, from k = 2 on: how much the first k rollouts of a task
    /// spread, averaged over tasks.
    pub fn add_avg_sample_std_dev(&mut self) {
        for k in 2..=self.max_k {
            for name in &self.names {
                let spreads: Vec<_> =
                    self.scores.iter().filter_map(|task| sample_std(&first(task, name, k))).collect();
                if !spreads.is_empty() {
                    let key = format!("pass@1[avg-of-{k}]/{name}/avg_sample_std_dev");
                    self.metrics.insert(key, Value::from(average(&spreads)));
                }
            }
        }
    }
}

fn average(values: &[f64]) -> f64 {
    exact_sum(values) / count(values.len())
}

fn percent(values: &[f64]) -> f64 {
    100.0 * exact_sum(values) / count(values.len())
}

fn sample_std(values: &[f64]) -> Option<f64> {
    let mean = average(values);
    let squares: Vec<_> = values.iter().map(|x| (x - mean) * (x - mean)).collect();
    (values.len() > 1).then(|| (exact_sum(&squares) / count(values.len() - 1)).sqrt())
}

/// The score of a task's first k rollouts, where they have it.
fn first(task: &[Scores], name: &str, k: usize) -> Vec<f64> {
    task.iter().take(k).filter_map(|scores| scores.get(name)).copied().collect()
}

fn pass(scores: &[Vec<Scores>], name: &str, k: usize) -> Vec<f64> {
    let of_task = |task: &Vec<Scores>| {
        let values = first(task, name, usize::MAX);
        if k > values.len() {
            return None;
        }
        if !values.iter().all(|x| *x == 0.0 || *x == 1.0) {
            return values.iter().take(k).copied().reduce(f64::max);
        }
        let failed = values.iter().filter(|x| **x == 0.0).count();
        // The part of all choices of k rollouts that hold only failed ones.
        let none: f64 = (0..k)
            .map(|i| failed.checked_sub(i).map_or(0.0, |left| count(left) / count(values.len() - i)))
            .product();
        Some(1.0 - none)
    };
    scores.iter().filter_map(of_task).collect()
}

fn averages(scores: &[Vec<Scores>], name: &str, k: usize) -> Vec<f64> {
    let of_task = |task: &Vec<Scores>| {
        let values = first(task, name, k);
        (!values.is_empty()).then(|| average(&values))
    };
    scores.iter().filter_map(of_task).collect()
}

fn majorities(scores: &[Vec<Scores>], answers: &[Vec<&Value>], name: &str, k: usize) -> Vec<f64> {
    let of_task = |(task, answers): (&Vec<Scores>, &Vec<&Value>)| {
        let mut votes: Vec<(&Value, f64, usize)> = Vec::new();
        for (scores, answer) in task.iter().zip(answers).take(k) {
            let Some(score) = scores.get(name).filter(|_| !answer.is_null()) else { continue };
            match votes.iter_mut().find(|(known, of, _)| of == score && same(known, answer)) {
                Some((.., n)) => *n += 1,
                None => votes.push((*answer, *score, 1)),
            }
        }
        let Some(most) = votes.iter().map(|(.., n)| *n).max() else { return 0.0 };
        let tied: Vec<_> = votes.iter().filter(|(.., n)| *n == most).map(|(_, score, _)| *score).collect();
        average(&tied)
    };
    scores.iter().zip(answers).map(of_task).collect()
}

/// Whether Python takes two answers for equal: `1`, `1.0` and `true` are.
fn same(a: &Value, b: &Value) -> bool {
    a == b || float(a).is_some_and(|a| float(b) == Some(a))
}

/// Adds the average of each repeat, and how these spread.
fn add_spread(metrics: &mut Row, scores: &[Vec<Scores>], names: &[String], max_k: usize) {
    let runs: Vec<(&String, Vec<f64>)> = names
        .iter()
        .map(|name| {
            let run = |i: usize| -> Vec<f64> {
                scores.iter().filter_map(|task| task.get(i)?.get(name)).copied().collect()
            };
            let runs = (0..max_k).map(run).filter(|values| !values.is_empty());
            (name, runs.map(|values| percent(&values)).collect())
        })
        .collect();
    let aggregate: Row =
        runs.iter().map(|(name, runs)| ((*name).clone(), Value::from(runs.clone()))).collect();
    metrics.insert("per_sample_aggregate".to_owned(), Value::Object(aggregate));
    for k in 2..=max_k {
        for (name, runs) in &runs {
            let runs = runs.get(..k).unwrap_or(runs);
            let Some(std) = sample_std(runs) else { continue };
            let key = format!("pass@1[avg-of-{k}]/{name}");
            metrics.insert(format!("{key}/std_dev_across_runs"), Value::from(std));
            metrics.insert(format!("{key}/std_err_across_runs"), Value::from(std / count(runs.len()).sqrt()));
        }
    }
}

/// [`pass_majority`] of each subset of the tasks, as `{subset}/{metric}`, without `per_sample_aggregate`.
///
/// A task's subset is what the first of its rollouts that has something there (not null, false, 0 or empty) has in the
/// field `subset_key`; a task without is in none.
pub fn subset_metrics(
    tasks: &[Vec<&Row>],
    subset_key: &str,
    score: impl Fn(&Row) -> Scores,
    answer_key: Option<&str>,
) -> Row {
    let mut subsets: Vec<(&Value, Vec<Vec<&Row>>)> = Vec::new();
    for task in tasks {
        let found = task.iter().filter_map(|row| row.get(subset_key)).find(|value| table::is_true(value));
        let Some(value) = found else { continue };
        match subsets.iter_mut().find(|(known, _)| same(known, value)) {
            Some((_, tasks)) => tasks.push(task.clone()),
            None => subsets.push((value, vec![task.clone()])),
        }
    }
    let mut metrics = Map::new();
    for (value, tasks) in subsets {
        let subset = text(value);
        for (key, value) in pass_majority(&tasks, &score, answer_key).metrics {
            if key != "per_sample_aggregate" {
                metrics.insert(format!("{subset}/{key}"), value);
            }
        }
    }
    metrics
}

/// The metrics of one kind at the highest k that it has, such as `pass@{k}` or `pass@1[avg-of-{k}]` (`pattern`), for
/// [`get_key_metrics`](super::MetricsHooks::get_key_metrics).
///
/// `only` names the scores to take (none: all), `except` those to leave out. How metrics spread (`std_dev_across_runs`
/// and so on) is never taken.
pub fn highest_k(agent_metrics: &Row, pattern: &str, only: Option<&[&str]>, except: &[&str]) -> Row {
    const SPREADS: [&str; 3] = ["std_dev_across_runs", "std_err_across_runs", "avg_sample_std_dev"];
    let Some((before, after)) = pattern.split_once("{k}") else { return Map::new() };
    let of = |key: &str| -> Option<usize> {
        let rest = key.strip_prefix(before)?;
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (k, rest) = rest.split_at(digits);
        let name = rest.strip_prefix(after)?.strip_prefix('/')?;
        let wanted = !name.is_empty()
            && !SPREADS.iter().any(|spread| name.ends_with(spread))
            && only.is_none_or(|only| only.contains(&name))
            && !except.contains(&name);
        k.parse().ok().filter(|_| wanted)
    };
    let highest = agent_metrics.keys().filter_map(|key| of(key)).max();
    agent_metrics
        .iter()
        .filter(|(key, _)| of(key).is_some_and(|k| Some(k) == highest))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
