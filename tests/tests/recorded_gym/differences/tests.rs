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

fn verify(sent: Value) -> Step {
    let request = json!({"method": "POST", "path": "/verify", "headers": {}, "json": sent});
    let reply = json!({"status": 200, "headers": {}, "cookie": null});
    serde_json::from_value(json!({"step": "verify", "request": request, "reply": reply})).expect("a step")
}

fn is_echo(what: &str, want: Option<Value>, got: Option<Value>) -> bool {
    let step =
        verify(json!({"response": {"id": "r", "created_at": 0, "output": [{"extra": 1}], "user": null}}));
    let answer = Answer { status: 200, headers: HeaderMap::new(), body: Bytes::new(), trailers: None };
    let played = Played { answer, session_is_open: true, found: Vec::new() };
    let case = Case { step: &step, played: &played };
    shared::is_echo(&case, &Found { what: what.into(), want, got })
}

#[test]
fn an_echo_is_what_was_sent_where_pydantic_filled_in_nothing_else() {
    assert!(is_echo("body/response/created_at", Some(json!(0.0)), Some(json!(0))));
    assert!(is_echo("body/response/model", Some(json!(null)), None));
    assert!(is_echo("body/response/tools", Some(json!([])), None));
    assert!(is_echo("body/response/output/0/extra", None, Some(json!(1))));
    assert!(!is_echo("body/response/created_at", Some(json!(0.0)), Some(json!(1))), "not what was sent");
    assert!(!is_echo("body/response/created_at", Some(json!(5.0)), Some(json!(0))), "another number");
    assert!(!is_echo("body/response/created_at", Some(json!(null)), None), "it was sent");
    assert!(!is_echo("body/response/model", Some(json!("m")), None), "no default");
    assert!(!is_echo("body/response/id", Some(json!("R")), Some(json!("r"))), "another text");
    assert!(!is_echo("body/response/output/0/more", None, Some(json!(1))), "nobody sent it");
}
