//! The finder of one string in a JSON object agrees with serde_json, where both take the text.
#![no_main]

use gym_wire::cookie::{Field, string_field};
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let found = string_field(data, "session_id");
    match serde_json::from_slice::<Value>(data) {
        Ok(Value::Object(object)) => match object.get("session_id") {
            None => assert_eq!(found, Field::Absent),
            Some(Value::String(text)) => assert_eq!(found, Field::Text(text.into())),
            Some(_) => assert_eq!(found, Field::NotText),
        },
        Ok(_) => assert_eq!(found, Field::Absent),
        // It also steps over numbers that do not fit and halves of surrogate pairs, as Python does, and so does serde_json
        // where it only looks for the end.
        Err(_) => {
            let is_json =
                serde_json::from_slice::<IgnoredAny>(data).is_ok() && std::str::from_utf8(data).is_ok();
            let is_python_s =
                [&b"NaN"[..], b"Infinity"].iter().any(|word| data.windows(word.len()).any(|at| at == *word));
            assert!(is_json || is_python_s || found == Field::Absent);
        }
    }
});
