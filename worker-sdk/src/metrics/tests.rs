use serde_json::json;

use crate::body::from_value;

use super::*;

fn rows(value: Value) -> Vec<Row> {
    serde_json::from_value(value).unwrap()
}

fn refused(value: Value) -> String {
    aggregate(&rows(value), &()).unwrap_err().to_string()
}

#[test]
fn nothing_gives_empty_metrics() {
    let found = serde_json::to_string(&aggregate(&[], &()).unwrap()).unwrap();
    let expected = r#"{"group_level_metrics":[],"agent_metrics":{},"key_metrics":{},"perf_summary":null,"repeat_level_metrics":[]}"#;
    assert_eq!(found, expected);
}

#[test]
fn indices_have_to_be_different_and_comparable() {
    assert!(refused(json!([{"reward": 1.0}, {"reward": 0.0}])).contains("task and rollout 0:0"));
    let masked = json!([{"reward": 1.0, "mask_sample": true}, {"reward": 0.0}]);
    assert!(refused(masked).contains("task and rollout 0:0"));
    assert!(refused(json!([{"_ng_task_index": 0}, {"_ng_task_index": "a"}])).contains("several types"));
    assert!(refused(json!([{"_ng_rollout_index": [1]}])).contains("_ng_rollout_index is [1]"));
}

#[test]
fn a_response_has_to_be_an_object() {
    assert!(refused(json!([{"response": 5}])).contains("response of the verify response 0:0"));
    assert!(refused(json!([{"response": {"usage": [1]}}])).contains("response.usage"));
    assert!(
        aggregate(&rows(json!([{"response": null}, {"_ng_task_index": 1, "response": ""}])), &()).is_ok()
    );
}

#[test]
fn what_cannot_be_put_in_a_histogram_is_measured_all_the_same() {
    let near = json!([{"reward": 0.3}, {"_ng_task_index": 1, "reward": 0.300_000_000_000_000_04}]);
    let found = aggregate(&rows(near), &()).unwrap();
    assert_eq!(found.agent_metrics["mean/reward"], json!(0.300_000_000_000_000_04));
}

#[test]
fn an_infinite_mean_is_null() {
    let found = aggregate(&rows(json!([{"x": 1e308}, {"_ng_task_index": 1, "x": 1e308}])), &()).unwrap();
    assert_eq!(found.agent_metrics["mean/x"], Value::Null);
}

struct BadTasks(Value);

impl MetricsHooks for BadTasks {
    fn compute_metrics(&self, _tasks: &[Vec<&Row>]) -> Row {
        [("per_task_metrics".to_owned(), self.0.clone())].into_iter().collect()
    }
}

#[test]
fn metrics_of_tasks_have_to_name_the_task() {
    for bad in [json!({"a": 1}), json!([1]), json!([{"x": 1}])] {
        let found = aggregate(&rows(json!([{"reward": 1.0}])), &BadTasks(bad.clone()));
        assert!(matches!(found, Err(MetricsError::BadTaskMetrics(_))), "{bad}: {found:?}");
    }
}

#[test]
fn a_body_needs_a_list_of_objects() {
    let read = |body: Value| {
        let request = from_value::<AggregateMetricsRequest>(body, &["body"]);
        request.map(|request| request.verify_responses).map_err(|invalid| json!({"detail": invalid.detail()}))
    };
    assert_eq!(read(json!({"verify_responses": [{"a": 1}], "x": 2})), Ok(rows(json!([{"a": 1}]))));
    let problem = |kind: &str, loc: Value, msg: &str, input: Value| json!({"type": kind, "loc": loc, "msg": msg, "input": input});
    let at = json!(["body", "verify_responses"]);
    let missing = problem("missing", at.clone(), "Field required", json!({"x": 2}));
    assert_eq!(read(json!({"x": 2})), Err(json!({"detail": [missing]})));
    let no_list = problem("list_type", at, "Input should be a valid list", Value::Null);
    assert_eq!(read(json!({"verify_responses": null})), Err(json!({"detail": [no_list]})));
    let no_object = |place: usize, input: Value| {
        problem(
            "dict_type",
            json!(["body", "verify_responses", place]),
            "Input should be a valid dictionary",
            input,
        )
    };
    let both = json!({"detail": [no_object(0, json!(1)), no_object(2, json!("a"))]});
    assert_eq!(read(json!({"verify_responses": [1, {}, "a"]})), Err(both));
}
