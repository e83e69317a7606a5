//! Round trips, and that no input panics.

use gym_wire::cookie::{self, CookieError, Field, MAX_AGE_SECONDS, SessionCookieKey, string_field};
use gym_wire::token::{SessionToken, SessionTokenKey};
use proptest::prelude::*;

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Text that looks like a cookie or token, so that the deeper layers are reached too.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[A-Za-z0-9+/=_. \"\\\\-]{0,120}",
        "\\.?[A-Za-z0-9+/=_-]{0,60}\\.[A-Za-z0-9_-]{27}"
    ]
}

proptest! {
    #[test]
    fn a_signed_cookie_verifies_until_it_expires(secret: String, id: String, signed in 0..u64::from(u32::MAX), age in 0..2 * MAX_AGE_SECONDS) {
        let key = SessionCookieKey::new(&secret);
        let json = serde_json::json!({"session_id": id}).to_string();
        let value = key.sign(&json, signed);
        let read = key.verify(&value, signed + age, MAX_AGE_SECONDS);
        if age > MAX_AGE_SECONDS {
            prop_assert_eq!(read, Err(CookieError::Expired { age_seconds: age }));
        } else {
            let json = read.unwrap();
            prop_assert_eq!(string_field(&json, "session_id"), Field::Text(id.into()));
        }
        if age > 0 {
            let early = key.verify(&value, signed.saturating_sub(age), MAX_AGE_SECONDS);
            let refused = matches!(early, Err(CookieError::FromTheFuture { .. }));
            prop_assert!(signed == 0 || refused);
        }
        let header = format!("a=b; name={value}; c=d");
        let found = cookie::find([header.as_str()], "name");
        prop_assert_eq!(found, Some(value.into()));
    }

    #[test]
    fn a_changed_cookie_is_refused(id in "[a-z]{1,40}", place: prop::sample::Index, with in "[A-Za-z0-9]") {
        let key = SessionCookieKey::new("secret");
        let value = key.sign(&format!(r#"{{"session_id": "{id}"}}"#), 1_767_225_600);
        // The last character has two bits that no signature uses.
        let place = place.index(value.len() - 1);
        let mut changed = value.clone();
        changed.replace_range(place..=place, &with);
        prop_assume!(changed != value);
        prop_assert!(key.verify(&changed, 1_767_225_600, MAX_AGE_SECONDS).is_err());
    }

    #[test]
    fn a_signed_token_verifies(secret: String, sid: String, tools: Option<Vec<String>>) {
        let key = SessionTokenKey::new(&secret);
        let token = SessionToken { sid, tools };
        prop_assert_eq!(key.verify(&key.sign(&token)), Ok(token));
    }

    #[test]
    fn a_token_of_another_server_is_refused(sid: String) {
        let token = SessionTokenKey::new("one").sign(&SessionToken { sid, tools: None });
        prop_assert!(SessionTokenKey::new("two").verify(&token).is_err());
    }

    #[test]
    fn quoting_is_undone(text: String) {
        let quoted = quote(&text);
        prop_assert_eq!(cookie::unquote(&quoted), text);
    }

    #[test]
    fn no_input_panics(text in hostile(), bytes: Vec<u8>) {
        let key = SessionCookieKey::new("secret");
        let _ = key.verify(&text, 1_767_225_600, MAX_AGE_SECONDS);
        let _ = SessionTokenKey::new("secret").verify(&text);
        let _ = cookie::peek(&text);
        let _ = cookie::unquote(&text);
        let _ = cookie::find([text.as_str(), &text], "a");
        let _ = string_field(&bytes, "a");
        let _ = string_field(text.as_bytes(), "a");
    }

    #[test]
    fn no_payload_that_is_signed_panics(payload in prop_oneof![hostile(), Just("{\"s\":1}".to_owned())], unix: u64) {
        let key = SessionCookieKey::new("secret");
        prop_assert_eq!(key.verify(&key.sign(&payload, unix), unix, 0), Ok(payload.into_bytes()));
    }

    /// serde_json is the model where both read the same language.
    #[test]
    fn string_field_agrees_with_serde_json(object in prop::collection::btree_map("[a-c\"\\\\é]{0,2}", prop_oneof![
        any::<Option<bool>>().prop_map(|v| serde_json::json!(v)),
        any::<String>().prop_map(|v| serde_json::json!(v)),
        any::<Vec<i32>>().prop_map(|v| serde_json::json!({"a": v})),
    ], 0..6)) {
        let json = serde_json::to_vec(&object).unwrap();
        let expected = match object.get("a") {
            None => Field::Absent,
            Some(serde_json::Value::String(text)) => Field::Text(text.into()),
            Some(_) => Field::NotText,
        };
        prop_assert_eq!(string_field(&json, "a"), expected);
    }
}
