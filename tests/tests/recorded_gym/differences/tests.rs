use bytes::Bytes;
use gym_gateway_tests::harness::Answer;
use http::HeaderMap;
use serde_json::json;

use super::*;

const TABLE: &[&[Difference]] = &[&[
    Difference {
        recordings: &["r"],
        steps: Steps::Named(&[("one", &["a", "b"]), ("two", &[])]),
        what: &["body/detail"],
        reason: "named",
    },
    Difference {
        recordings: &["r"],
        steps: Steps::Where(|case, _| case.step.reply.status == 404),
        what: &["cookie", "status"],
        reason: "where",
    },
    Difference {
        recordings: &["other"],
        steps: Steps::Where(|_, _| true),
        what: &["status"],
        reason: "other",
    },
]];

fn scenario(name: &str, step: &str, status: u16) -> Scenario {
    let request = json!({"method": "GET", "path": "/", "headers": {}});
    let reply = json!({"status": status, "headers": {}, "cookie": null});
    let steps = json!([{"step": step, "request": request, "reply": reply}]);
    serde_json::from_value(json!({"scenario": name, "steps": steps})).expect("a scenario")
}

fn reason(
    differences: &mut Differences,
    name: &str,
    step: &str,
    status: u16,
    what: &str,
) -> Option<&'static str> {
    let scenario = scenario(name, step, status);
    let answer = Answer { status, headers: HeaderMap::new(), body: Bytes::new(), trailers: None };
    let played = Played { answer, session_is_open: false, found: Vec::new() };
    differences.reason(&scenario, &scenario.steps[0], &played, &Found::of(what))
}

#[test]
fn a_listed_difference_has_its_reason_and_no_other_has() {
    let mut all = Differences::from(TABLE, "r");
    assert_eq!(reason(&mut all, "one", "a", 200, "body/detail/0/msg"), Some("named"));
    assert_eq!(reason(&mut all, "one", "c", 200, "body/detail/0/msg"), None);
    assert_eq!(reason(&mut all, "one", "a", 200, "body/details"), None);
    assert_eq!(reason(&mut all, "one", "a", 200, "body"), None);
    assert_eq!(reason(&mut all, "two", "any", 200, "body/detail"), Some("named"));
    assert_eq!(reason(&mut all, "three", "a", 404, "cookie payload/session_id"), Some("where"));
    assert_eq!(reason(&mut all, "three", "a", 200, "cookie"), None);
    assert_eq!(reason(&mut all, "three", "a", 200, "status"), None);
}

#[test]
fn what_is_listed_and_does_not_occur_is_stale() {
    let mut all = Differences::from(TABLE, "r");
    assert_eq!(all.stale().len(), 5, "{:?}", all.stale());
    reason(&mut all, "one", "a", 200, "body/detail");
    reason(&mut all, "two", "any", 200, "body/detail");
    reason(&mut all, "three", "a", 404, "status");
    let stale = all.stale();
    assert_eq!(stale.len(), 2, "{stale:?}");
    assert!(stale[0].contains("\"b\"") && stale[0].ends_with("named"), "{stale:?}");
    assert!(stale[1].starts_with("cookie") && stale[1].ends_with("where"), "{stale:?}");
}
