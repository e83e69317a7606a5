//! The hooks of `data/metrics/make.py`, in Rust.

use gym_worker_sdk::metrics::{
    MetricsHooks, Row, Scores, accuracy, highest_k, pass_majority, subset_metrics,
};
use serde_json::{Value, json};

/// The hooks of this name.
pub(crate) fn named(name: &str) -> &'static dyn MetricsHooks {
    match name {
        "Plain" => &(),
        "Own" => &Own,
        "Collide" => &Collide,
        "Partial" => &Partial,
        "Pass" => &Pass,
        "Subsets" => &Subsets,
        other => panic!("no hooks are named {other}"),
    }
}

fn row(value: Value) -> Row {
    serde_json::from_value(value).unwrap()
}

fn best(tasks: &[Vec<&Row>]) -> f64 {
    tasks.iter().flatten().map(|row| row["reward"].as_f64().unwrap()).fold(f64::NEG_INFINITY, f64::max)
}

struct Own;

impl MetricsHooks for Own {
    fn compute_metrics(&self, tasks: &[Vec<&Row>]) -> Row {
        let per_task = |task: &Vec<&Row>| {
            let index = task[0].get("_ng_task_index").cloned().unwrap_or(json!(0));
            json!({"_ng_task_index": index, "rows": task.len(), "mean/reward": -2.0})
        };
        row(json!({
            "tasks": tasks.len(),
            "best": best(tasks),
            "mean/reward": -1.0,
            "first": tasks[0][0].get("note"),
            "per_task_metrics": tasks.iter().skip(1).map(per_task).collect::<Vec<_>>(),
        }))
    }

    fn compute_repeat_metrics(&self, tasks: &[Vec<&Row>]) -> Row {
        row(json!({"best": best(tasks)}))
    }

    fn get_key_metrics(&self, agent_metrics: &Row) -> Row {
        row(json!({"names": agent_metrics.len(), "best": agent_metrics["best"]}))
    }
}

struct Collide;

impl MetricsHooks for Collide {
    fn compute_repeat_metrics(&self, tasks: &[Vec<&Row>]) -> Row {
        row(json!({"mean/reward": tasks.len() as f64}))
    }
}

struct Partial;

impl MetricsHooks for Partial {
    fn compute_metrics(&self, _tasks: &[Vec<&Row>]) -> Row {
        row(json!({"unsure": null}))
    }

    fn compute_repeat_metrics(&self, tasks: &[Vec<&Row>]) -> Row {
        let mut metrics =
            row(json!({"mean/reward": true, "unsure": 2.0, "sure": tasks.len(), "sure/max": 5}));
        if tasks.len() > 1 {
            metrics.insert("sometimes".to_owned(), json!(1.0));
        }
        metrics
    }
}

struct Pass;

fn score(row: &Row) -> Scores {
    let mut scores = accuracy(row);
    scores.extend(row.get("correct").map(|flag| ("correct".to_owned(), f64::from(flag.as_bool().unwrap()))));
    scores
}

impl MetricsHooks for Pass {
    fn compute_metrics(&self, tasks: &[Vec<&Row>]) -> Row {
        let mut found = pass_majority(tasks, score, Some("answer"));
        found.add_avg_sample_std_dev();
        found.metrics
    }

    fn compute_repeat_metrics(&self, tasks: &[Vec<&Row>]) -> Row {
        let found = pass_majority(tasks, score, None);
        row(json!({"pass@1/accuracy": found.metrics["pass@1/accuracy"]}))
    }

    fn get_key_metrics(&self, agent_metrics: &Row) -> Row {
        let mut metrics = highest_k(agent_metrics, "pass@{k}", None, &["no_answer"]);
        metrics.extend(highest_k(agent_metrics, "pass@1[avg-of-{k}]", Some(&["accuracy"]), &[]));
        metrics
    }
}

struct Subsets;

impl MetricsHooks for Subsets {
    fn compute_metrics(&self, tasks: &[Vec<&Row>]) -> Row {
        let mut metrics = subset_metrics(tasks, "difficulty", accuracy, None);
        metrics.extend(pass_majority(tasks, accuracy, None).metrics);
        metrics
    }
}
