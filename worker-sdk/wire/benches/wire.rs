//! What the wire formats cost a request: run with `cargo bench -p gym-wire`.
#![allow(missing_docs, clippy::unwrap_used)] // macros and set-up of a benchmark

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use gym_wire::cookie::{self, MAX_AGE_SECONDS, SessionCookieKey, string_field};
use gym_wire::token::{SessionToken, SessionTokenKey};

const NOW: u64 = 1_767_225_600;
const SECRET: &str = "CounterResourcesServer___counter";
const SID: &str = "0d9e8f5c-5f3b-4a53-9a35-6c1a9d6c1f11";

fn cookies(c: &mut Criterion) {
    let key = SessionCookieKey::new(SECRET);
    let json = format!(r#"{{"session_id": "{SID}"}}"#);
    let value = key.sign(&json, NOW);
    let forged = format!("{}A{}", &value[..10], &value[11..]);
    let header = format!("SimpleAgent___agent={value}; {SECRET}={value}");
    c.bench_function("cookie verify", |b| {
        b.iter(|| key.verify(black_box(&value), NOW, MAX_AGE_SECONDS).unwrap())
    });
    c.bench_function("cookie verify, forged", |b| {
        b.iter(|| key.verify(black_box(&forged), NOW, MAX_AGE_SECONDS).unwrap_err())
    });
    c.bench_function("cookie find", |b| {
        b.iter(|| cookie::find([black_box(header.as_str())], SECRET).unwrap())
    });
    c.bench_function("cookie sign", |b| b.iter(|| key.sign(black_box(&json), NOW)));
    c.bench_function("string_field", |b| b.iter(|| string_field(black_box(json.as_bytes()), "session_id")));
}

fn tokens(c: &mut Criterion) {
    let key = SessionTokenKey::new(SECRET);
    let token = |tools| key.sign(&SessionToken { sid: SID.to_owned(), tools });
    let plain = token(None);
    let packed = token(Some((0..40).map(|i| format!("workplace_assistant_tool_{i}")).collect()));
    assert!(packed.starts_with('.') && !plain.starts_with('.'));
    c.bench_function("token verify", |b| b.iter(|| key.verify(black_box(&plain)).unwrap()));
    c.bench_function("token verify, compressed", |b| b.iter(|| key.verify(black_box(&packed)).unwrap()));
}

criterion_group!(benches, cookies, tokens);
criterion_main!(benches);
