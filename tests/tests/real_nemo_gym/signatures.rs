//! Session cookies, tokens, `Cookie` headers and JSON: thousands of random ones, made by either side, some of them
//! tampered with; `gym-wire` and the Python packages must make the same of each.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use fastrand::Rng;
use gym_wire::cookie::{self, Field, MAX_AGE_SECONDS, SessionCookieKey, string_field};
use gym_wire::message::dumps;
use gym_wire::token::{SessionToken, SessionTokenKey};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use gym_gateway_tests::harness::Peers;

use super::peers;

/// How many of each kind either side makes.
const COUNT: usize = 2000;
/// When cookies are read.
const TIMES: [u64; 4] = [0, 255, 1_767_225_600, 1 << 33];

/// What one side asks the other: what do you make of this?
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Case {
    Cookie {
        secret: String,
        now: u64,
        value: String,
        #[serde(skip_serializing)]
        reads: Option<CookieReads>,
        #[serde(skip_serializing)]
        written: Option<Written>,
    },
    Token {
        secret: String,
        value: String,
        #[serde(skip_serializing)]
        reads: Option<Claims>,
        #[serde(skip_serializing)]
        written: Option<Claims>,
    },
    Header {
        line: String,
        name: String,
        #[serde(skip_serializing)]
        reads: Option<String>,
    },
    Json {
        text: String,
        #[serde(skip_serializing)]
        reads: Option<String>,
    },
}

#[derive(Debug, PartialEq, Deserialize)]
struct CookieReads {
    /// Base64; null if the cookie is refused.
    payload: Option<String>,
    /// Null if it is no string, or the cookie is refused, or cannot be sent to Starlette.
    session_id: Option<String>,
}

/// What a cookie's value was made of.
#[derive(Debug, Deserialize)]
struct Written {
    unix: u64,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Claims {
    sid: String,
    tools: Option<Vec<String>>,
}

impl From<SessionToken> for Claims {
    fn from(SessionToken { sid, tools }: SessionToken) -> Self {
        Self { sid, tools }
    }
}

impl From<Claims> for SessionToken {
    fn from(Claims { sid, tools }: Claims) -> Self {
        Self { sid, tools }
    }
}

#[test]
fn both_sides_make_the_same_of_random_cookies_and_tokens() {
    let Some(python) = peers::python("both_sides_make_the_same_of_random_cookies_and_tokens") else { return };
    let seed = std::env::var("GYM_E2E_SEED").map_or_else(
        |_| u64::from(fastrand::u32(..)),
        |text| text.parse().unwrap_or_else(|_| panic!("GYM_E2E_SEED={text}: not a number")),
    );
    println!("GYM_E2E_SEED={seed} repeats this run");

    let folder = tempfile::tempdir().expect("a folder");
    let (asked, answered) = (folder.path().join("asked"), folder.path().join("answered"));
    let mut rng = Rng::with_seed(seed);
    let mut out = BufWriter::new(File::create(&asked).expect("a file"));
    for case in
        (0..COUNT).flat_map(|_| [cookie(&mut rng), token(&mut rng), header(&mut rng), any_json(&mut rng)])
    {
        serde_json::to_writer(&mut out, &case).expect("written");
        out.write_all(b"\n").expect("written");
    }
    out.into_inner().expect("written");
    let status = Command::new(python)
        .arg(Peers::NemoGym.script("signatures.py"))
        .args([seed.to_string(), COUNT.to_string()])
        .stdin(Stdio::from(File::open(&asked).expect("a file")))
        .stdout(File::create(&answered).expect("a file"))
        .status()
        .expect("run signatures.py");
    assert!(status.success(), "signatures.py failed, its own words are above: {status}");

    let mut seen = Seen::default();
    for line in BufReader::new(File::open(&answered).expect("a file")).lines() {
        let line = line.expect("a line");
        let case: Case = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        seen.check(case);
    }
    let (differences, count) = (std::mem::take(&mut seen.differences), seen.cases);
    let first = differences.iter().take(3).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} of {count} cases differ, seed {seed}:\n{first}", differences.len());
    // A generator that makes only nonsense would find both sides agree.
    println!("{seen:?}");
    assert_eq!(seen.cases, COUNT * 7);
    for (name, count, least) in [
        ("cookies taken", seen.cookies_taken, COUNT / 2),
        ("cookies refused", seen.cookies_refused, COUNT / 2),
        ("cookies that Python wrote", seen.cookies_written, COUNT / 4),
        ("tokens taken", seen.tokens_taken, COUNT / 2),
        ("tokens refused", seen.tokens_refused, COUNT / 2),
        ("plain tokens that Python wrote", seen.tokens_written, COUNT / 20),
        ("compressed tokens taken", seen.compressed, COUNT / 5),
        ("headers with the cookie", seen.headers_found, COUNT / 10),
    ] {
        assert!(count > least, "{name}: only {count}");
    }
}

/// What the cases were, so that a run that has tested nothing is noticed.
#[derive(Debug, Default)]
struct Seen {
    cases: usize,
    cookies_taken: usize,
    cookies_refused: usize,
    cookies_written: usize,
    tokens_taken: usize,
    tokens_refused: usize,
    tokens_written: usize,
    compressed: usize,
    headers_found: usize,
    differences: Vec<String>,
}

impl Seen {
    fn check(&mut self, case: Case) {
        self.cases += 1;
        let what = format!("{case:?}");
        match case {
            Case::Cookie { secret, now, value, reads, written } => {
                let key = SessionCookieKey::new(&secret);
                let payload = key.verify(&value, now, MAX_AGE_SECONDS).ok();
                *if payload.is_some() { &mut self.cookies_taken } else { &mut self.cookies_refused } += 1;
                // Starlette reads header bytes as Latin-1.
                let session_id = payload.as_deref().filter(|_| value.is_ascii()).and_then(session_id);
                let payload = payload.map(|payload| BASE64_STANDARD.encode(payload));
                self.same(&Some(CookieReads { payload, session_id }), &reads, &what);
                if let Some(Written { unix, text }) = written {
                    self.cookies_written += 1;
                    self.same(&key.sign(&text, unix), &value, &what);
                }
            }
            Case::Token { secret, value, reads, written } => {
                let key = SessionTokenKey::new(&secret);
                let claims = key.verify(&value).ok().map(Claims::from);
                *if claims.is_some() { &mut self.tokens_taken } else { &mut self.tokens_refused } += 1;
                self.compressed += usize::from(claims.is_some() && value.starts_with('.'));
                self.same(&claims, &reads, &what);
                let ours = written.map(|claims| key.sign(&claims.into()));
                // Compressors differ in their bytes; what Python makes of ours is seen in our own cases.
                if let Some(ours) = ours.filter(|ours| !ours.starts_with('.') && !value.starts_with('.')) {
                    self.tokens_written += 1;
                    self.same(&ours, &value, &what);
                }
            }
            Case::Header { line, name, reads } => {
                self.headers_found += usize::from(reads.is_some());
                self.same(&cookie::find([line.as_str()], &name).map(Cow::into_owned), &reads, &what);
            }
            Case::Json { text, reads } => {
                let value: Value = serde_json::from_str(&text).expect("our own");
                self.same(&dumps(&value).ok(), &reads, &what);
            }
        }
    }

    fn same<T: PartialEq + fmt::Debug>(&mut self, ours: &T, python: &T, what: &str) {
        if ours != python {
            self.differences.push(format!("{what}\n  ours:   {ours:?}\n  Python: {python:?}"));
        }
    }
}

fn session_id(payload: &[u8]) -> Option<String> {
    match string_field(payload, "session_id") {
        Field::Text(id) => Some(id.into_owned()),
        Field::Absent | Field::NotText => None,
    }
}

fn cookie(rng: &mut Rng) -> Case {
    let (secret, now) = (text(rng), TIMES[rng.usize(..TIMES.len())]);
    let age = [0, 0, 1, MAX_AGE_SECONDS, MAX_AGE_SECONDS + 1, rng.u64(..MAX_AGE_SECONDS)][rng.usize(..6)];
    let session = json!({"session_id": text(rng), "more": value(rng, 2)});
    let signed = SessionCookieKey::new(&secret).sign(&session.to_string(), now.saturating_sub(age));
    Case::Cookie { value: perhaps_tampered(rng, signed), secret, now, reads: None, written: None }
}

fn token(rng: &mut Rng) -> Case {
    let secret = text(rng);
    let names = (0..rng.usize(..60)).map(|_| format!("tool_{}", rng.u8(..))).collect();
    let tools = match rng.u8(..3) {
        0 => None,
        1 => Some(Vec::new()),
        _ => Some(names),
    };
    let signed = SessionTokenKey::new(&secret).sign(&SessionToken { sid: text(rng), tools });
    Case::Token { value: perhaps_tampered(rng, signed), secret, reads: None, written: None }
}

fn header(rng: &mut Rng) -> Case {
    const PIECES: [&str; 16] =
        ["s=", "s", "=", ";", "; ", " ", "\t", "\"", "\\", "\\075", "\\351", "\\0", "9", "{", ",", "a=b; "];
    let line = (0..rng.usize(..30)).map(|_| PIECES[rng.usize(..PIECES.len())]).collect();
    Case::Header { line, name: "s".into(), reads: None }
}

fn any_json(rng: &mut Rng) -> Case {
    Case::Json { text: value(rng, 3).to_string(), reads: None }
}

/// One half stays as it is.
fn perhaps_tampered(rng: &mut Rng, mut value: String) -> String {
    let at = rng.usize(..value.len());
    match rng.u8(..10) {
        0 => value.insert(at, char::from(rng.u8(b' '..=b'~'))),
        1 => value.replace_range(at..=at, &char::from(rng.u8(b' '..=b'~')).to_string()),
        2 => drop(value.remove(at)),
        3 => value.truncate(at),
        4 => value.push_str(["=", ".", " ", "A"][rng.usize(..4)]),
        _ => {}
    }
    value
}

fn value(rng: &mut Rng, depth: usize) -> Value {
    match rng.u8(..if depth == 0 { 6 } else { 8 }) {
        0 => [Value::Null, json!(true), json!(false)][rng.usize(..3)].clone(),
        1 => json!(rng.i64(..)),
        2 => json!(rng.u64(..)),
        // Any bits make a float; those that are none become null.
        3 => json!(f64::from_bits(rng.u64(..))),
        4 => json!(f64::from(rng.i32(..)) / f64::from(1 << rng.u32(..20))),
        5 => json!(text(rng)),
        6 => (0..rng.usize(..4)).map(|_| value(rng, depth - 1)).collect(),
        _ => (0..rng.usize(..4)).map(|_| (text(rng), value(rng, depth - 1))).collect(),
    }
}

fn text(rng: &mut Rng) -> String {
    let length = [0, 1, 2, 3, 36, 63, 64, 65, 256, rng.usize(..2000)][rng.usize(..10)];
    let kind = rng.u8(..4);
    (0..length)
        .map(|_| match kind {
            0 => rng.alphanumeric(),
            1 => char::from(rng.u8(b' '..=b'~')),
            2 => char::from(rng.u8(..0x80)),
            _ => rng.char(..),
        })
        .collect()
}
