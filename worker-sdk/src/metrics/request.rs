//! The body of `POST /aggregate_metrics`.

use serde_json::Value;

use super::Row;
use crate::errors::{Invalid, Problem};

/// Takes the verify responses out of a request's body. Other keys are looked past.
///
/// # Errors
/// If `verify_responses` is missing, no list, or not of objects: every such item is named, as pydantic names it.
pub fn verify_responses(mut body: Row) -> Result<Vec<Row>, Invalid> {
    const FIELD: &str = "verify_responses";
    let problem = |kind, loc: Vec<Value>, msg: &str, input| {
        let loc = [Value::from("body"), Value::from(FIELD)].into_iter().chain(loc).collect();
        Problem { kind, loc, msg: msg.to_owned(), input }
    };
    let items = match body.shift_remove(FIELD) {
        Some(Value::Array(items)) => items,
        Some(other) => return Err(problem("list_type", vec![], "Input should be a valid list", other).into()),
        None => return Err(problem("missing", vec![], "Field required", Value::Object(body)).into()),
    };
    let mut rows = Vec::with_capacity(items.len());
    let mut detail = Vec::new();
    for (place, item) in items.into_iter().enumerate() {
        match item {
            Value::Object(row) => rows.push(row),
            other => {
                detail.push(problem(
                    "dict_type",
                    vec![Value::from(place)],
                    "Input should be a valid dictionary",
                    other,
                ));
            }
        }
    }
    if detail.is_empty() { Ok(rows) } else { Err(Invalid { detail }) }
}
