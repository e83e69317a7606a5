use axum::http::HeaderMap;
use futures_util::stream;
use serde_json::{Value, json};

use super::*;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

#[derive(Debug, Deserialize)]
struct Input {
    count: i64,
    #[serde(default)]
    inner: Vec<Inner>,
    #[serde(default)]
    echo: Option<Object>,
}

#[derive(Debug, Deserialize)]
struct Inner {
    #[allow(dead_code)] // only its type is tested
    echo: Object,
}

fn request(body: impl Into<HttpBody>, limit: Option<usize>) -> Request {
    let mut request = Request::new(body.into());
    request.headers_mut().insert(CONTENT_TYPE, JSON);
    if let Some(limit) = limit {
        request.extensions_mut().insert(BodyLimit(limit));
    }
    request
}

async fn read(
    body: impl Into<HttpBody>,
    limit: Option<usize>,
) -> Result<Input, (StatusCode, HeaderMap, Value)> {
    match Body::<Input>::from_request(request(body, limit), &()).await {
        Ok(Body(input)) => Ok(input),
        Err(reply) => {
            let (parts, body) = reply.into_parts();
            let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
            Err((parts.status, parts.headers, serde_json::from_slice(&bytes).unwrap()))
        }
    }
}

/// A body whose length is not declared.
fn chunks(chunks: &[&'static str], error: Option<&'static str>) -> HttpBody {
    let chunks: Vec<Result<Bytes, std::io::Error>> =
        chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk.as_bytes()))).collect();
    let error = error.map(|words| Err(std::io::Error::other(words)));
    HttpBody::from_stream(stream::iter(chunks.into_iter().chain(error)))
}

#[tokio::test]
async fn reads_what_fits_and_looks_past_the_rest() {
    let body = r#"{"count": "3", "more": [1], "echo":  {"a":  1.50} }"#;
    let input = read(body, None).await.unwrap();
    assert_eq!((input.count, input.inner.len()), (3, 0));
    assert_eq!(serde_json::to_string(&input.echo).unwrap(), r#"{"a":  1.50}"#, "byte for byte");
    let input = read(r#"{"count": 1, "inner": [{"echo": {"a":  1.50}}]}"#, None).await.unwrap();
    assert_eq!(input.inner[0].echo.get(), r#"{"a":1.5}"#, "deeper: written anew");
}

#[tokio::test]
async fn refuses_with_422() {
    let (status, _, reply) = read(r#"{"echo": [1]}"#, None).await.unwrap_err();
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let input = json!({"echo": [1]});
    let count = json!({"type": "missing", "loc": ["body", "count"], "msg": "Field required", "input": input});
    let msg = "Input should be a valid dictionary";
    let echo = json!({"type": "dict_type", "loc": ["body", "echo"], "msg": msg, "input": [1]});
    assert_eq!(reply, json!({"detail": [count, echo]}));
}

#[tokio::test]
async fn what_cannot_be_read_at_all_is_400() {
    let deep = format!(r#"{{"count": {}}}"#, "[".repeat(100_000) + &"]".repeat(100_000));
    for body in [b"{\"count\": \"\xff\"}".to_vec(), deep.into_bytes()] {
        let (status, _, reply) = read(body, None).await.unwrap_err();
        let expected = json!({"detail": "There was an error parsing the body"});
        assert_eq!((status, reply), (StatusCode::BAD_REQUEST, expected));
    }
}

#[tokio::test]
async fn collects_bodies_up_to_the_limit() {
    let body = || chunks(&["{\"cou", "nt\":", " 7}"], None);
    assert_eq!(read(body(), Some(12)).await.unwrap().count, 7);
    for over in [body(), HttpBody::from(r#"{"count": 7}"#)] {
        let (status, headers, reply) = read(over, Some(11)).await.unwrap_err();
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(
            (&reply["code"], &headers[CONNECTION]),
            (&json!("body_too_large"), &"close".parse().unwrap())
        );
        assert!(reply["detail"].as_str().unwrap().contains("11 bytes"), "{reply}");
    }
    assert!(collect(HttpBody::empty(), 0).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_body_that_breaks_off_is_no_body() {
    let (status, headers, reply) = read(chunks(&["{\"count\": 7}"], Some("reset")), None).await.unwrap_err();
    assert_eq!((status, &headers[CONNECTION]), (StatusCode::BAD_REQUEST, &"close".parse().unwrap()));
    assert_eq!(reply, json!({"detail": "There was an error parsing the body"}));
}

#[test]
fn fields_are_as_they_came_and_the_last_of_equal_keys_counts() {
    let text = r#" {"a": 1.50 , "b\u00e9": {"x":  [1, 2e3]}, "a" : "z"} "#;
    let split = fields(text.as_bytes(), Some(&JSON)).unwrap();
    let split: Vec<_> = split.iter().map(|(key, raw)| (key.as_ref(), raw.get())).collect();
    assert_eq!(split, [("a", r#""z""#), ("bé", r#"{"x":  [1, 2e3]}"#)]);
    let split = fields(r#"{"a": [NaN, -Infinity, 1e999], "b": 1.50}"#.as_bytes(), Some(&JSON)).unwrap();
    assert_eq!(split["a"].get(), r#"["NaN", "-Infinity", "Infinity"]"#);
    assert_eq!(split["b"].get(), "1.50");
}

#[test]
fn fields_borrow_what_they_can() {
    let text = format!(r#"{{"a": "{}"}}"#, "x".repeat(1000));
    let split = fields(text.as_bytes(), Some(&JSON)).unwrap();
    let (key, raw) = split.get_index(0).unwrap();
    assert!(matches!(key, std::borrow::Cow::Borrowed(_)));
    assert!(text.as_bytes().as_ptr_range().contains(&raw.get().as_ptr()));
}
