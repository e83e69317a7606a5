//! pydantic's own errors, where FastAPI does not shorten them.

use serde_json::Value;

use super::{Invalid, Problem};
use crate::repr;

/// Where pydantic explains its errors.
const EXPLAINED: &str = "https://errors.pydantic.dev/2.14/v/";
/// How much of a value its text shows, in characters: more is cut out of its middle.
const SHOWN: usize = 50;

/// pydantic's `errors()`: the reply's `detail` with the links that FastAPI leaves out; words if the body could not be read.
pub(crate) fn explained(invalid: &Invalid) -> Value {
    let mut detail = invalid.detail();
    for problem in detail.as_array_mut().into_iter().flatten() {
        let link = problem["type"].as_str().map(|kind| format!("{EXPLAINED}{kind}"));
        problem["url"] = link.into();
    }
    detail
}

/// The text of pydantic's `ValidationError` of a model of that title.
pub(crate) fn told(title: &str, problems: &[Problem]) -> String {
    let count = problems.len();
    let errors = if count == 1 { "error" } else { "errors" };
    let mut text = format!("{count} validation {errors} for {title}");
    for Problem { kind, loc, msg, input, .. } in problems {
        if !loc.is_empty() {
            let steps: Vec<String> = loc.iter().map(repr::str_of).collect();
            text += &format!("\n{}", steps.join("."));
        }
        let (value, of) = (shortened(&repr::of(input)), repr::type_of(input));
        text += &format!("\n  {msg} [type={kind}, input_value={value}, input_type={of}]");
        text += &format!("\n    For further information visit {EXPLAINED}{kind}");
    }
    text
}

fn shortened(text: &str) -> String {
    let length = text.chars().count();
    if length <= SHOWN {
        return text.to_owned();
    }
    let start: String = text.chars().take(SHOWN / 2).collect();
    let end: String = text.chars().skip(length - (SHOWN / 2 - 1)).collect();
    format!("{start}...{end}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What Python printed for the same input.
    #[test]
    fn the_text_is_pydantics() {
        let problem = |kind, loc: &[&str], msg: &str, input| Problem {
            kind,
            loc: loc.iter().map(|step| json!(step)).collect(),
            msg: msg.to_owned(),
            input,
            ctx: None,
        };
        let missing = problem("missing", &["jsonrpc"], "Field required", json!({"method": "x"}));
        assert_eq!(
            told("JsonRpcRequest", &[missing]),
            "1 validation error for JsonRpcRequest\njsonrpc\n  Field required [type=missing, input_value={'method': 'x'}, \
             input_type=dict]\n    For further information visit https://errors.pydantic.dev/2.14/v/missing"
        );
        let one = problem("string_type", &["id", "str"], "Input should be a valid string", json!(1.5));
        let two = problem("none_required", &[], "Input should be None", json!([null, true]));
        let text = told("M", &[one, two]);
        assert!(text.starts_with("2 validation errors for M\nid.str\n  Input should be a valid string [type=string_type, input_value=1.5, input_type=float]\n"), "{text}");
        assert!(text.contains("none_required, input_value=[None, True], input_type=list]"), "{text}");
    }

    #[test]
    fn long_values_lose_their_middle() {
        let text = shortened(&"abcdefghij".repeat(6));
        assert_eq!(text, format!("{}...{}", "abcdefghijabcdefghijabcde", "ghijabcdefghijabcdefghij"));
    }
}
