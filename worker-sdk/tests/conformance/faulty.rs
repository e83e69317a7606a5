//! A server that keeps the contract of episode sessions, but for one fault that is put in on purpose.
#![allow(dead_code, reason = "each test that includes it uses a part")]

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use gym_worker_sdk::conformance::Held;
use serde_json::{Value, json};

/// What is wrong with the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    SeedRefused,
    SeedSetsNoCookie,
    SeedIsNoJson,
    SeedHasAnotherField,
    RepeatedSeedRefused,
    RepeatedSeedNamesAnother,
    RepeatedSeedSetsAnotherCookie,
    RepeatedSeedResetsState,
    RepeatedSeedObservesAnew,
    ConflictingSeedAccepted,
    ConflictingAttemptAccepted,
    CloseRefused,
    CloseNamesAnother,
    CloseReleasesNothing,
    CloseNeedsCookie,
    CloseWithoutCookieReleasesNothing,
    RepeatedCloseRefused,
    CloseOfUnknownRefused,
    OtherEpisodeCloses,
    OtherEpisodeCloseAnswered,
    LateSeedRecreates,
    LateSeedOfNeverSeededRecreates,
    LateSeedRefusedButMade,
    VerifyFindsNothing,
    VerifyAfterCloseScores,
    VerifyAfterCloseFails,
    VerifyAfterCloseHasNoKind,
    RefusesWithAnotherStatus,
    SucceedsWithAnotherStatus,
    SeedHangs,
    CloseHangs,
    CloseBreaksOff,
    CloseIsEndless,
}

use Fault as F;

#[derive(Debug)]
struct Session {
    episode: Value,
    /// Counts what was made, so that state which was made anew has another name.
    made: u64,
}

#[derive(Debug, Default)]
struct Inner {
    sessions: HashMap<String, Session>,
    closed: HashSet<String>,
    made: u64,
    cookies: u64,
    /// The paths that were asked, and the sessions made, in that order.
    log: Vec<String>,
}

/// The server, until it is dropped with its runtime.
#[derive(Clone, Debug)]
pub(crate) struct Faulty {
    fault: Fault,
    inner: Arc<Mutex<Inner>>,
}

impl Faulty {
    /// Listens on a port of its own.
    pub(crate) async fn start(fault: Fault) -> (Self, SocketAddr) {
        let server = Self { fault, inner: Arc::default() };
        let router = Router::new()
            .route("/seed_session", post(seed))
            .route("/close_session", post(close))
            .route("/verify", post(verify))
            .with_state(server.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        tokio::spawn(async move { axum::serve(listener, router).await });
        (server, address)
    }

    /// What it holds for that session.
    pub(crate) fn held(&self, id: &str) -> Held {
        self.with(|inner| inner.sessions.get(id).map(|session| format!("number {}", session.made))).into()
    }

    /// How many sessions it holds.
    pub(crate) fn open(&self) -> usize {
        self.with(|inner| inner.sessions.len())
    }

    /// How many requests came.
    pub(crate) fn requests(&self) -> usize {
        self.with(|inner| inner.log.iter().filter(|entry| entry.starts_with('/')).count())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn refuse(&self) -> Response {
        let status = if self.fault == F::RefusesWithAnotherStatus {
            StatusCode::BAD_REQUEST
        } else {
            StatusCode::CONFLICT
        };
        (status, Json(json!({"detail": "no"}))).into_response()
    }

    fn succeed(&self, body: Value) -> Response {
        let status =
            if self.fault == F::SucceedsWithAnotherStatus { StatusCode::CREATED } else { StatusCode::OK };
        (status, Json(body)).into_response()
    }
}

async fn seed(State(server): State<Faulty>, Json(body): Json<Value>) -> Response {
    let (id, episode) = (id_of(&body), body["episode_id"].clone());
    let fault = server.fault;
    if fault == F::SeedHangs {
        std::future::pending::<()>().await;
    }
    server.with(|inner| {
        inner.log.push("/seed_session".into());
        let repeated = match inner.sessions.get(&id) {
            _ if fault == F::SeedRefused => return server.refuse(),
            Some(session) if session.episode == episode => true,
            Some(session) if !rebinds(fault, &session.episode, &episode) => return server.refuse(),
            Some(_) => false,
            None => false,
        };
        if inner.closed.contains(&id) {
            let never_seeded = !inner.log.iter().any(|entry| *entry == format!("made {id}"));
            let made = match fault {
                F::LateSeedRecreates => !never_seeded,
                F::LateSeedOfNeverSeededRecreates => never_seeded,
                F::LateSeedRefusedButMade => {
                    make(inner, &id, &episode);
                    false
                }
                _ => false,
            };
            if !made {
                return server.refuse();
            }
        }
        if repeated && fault == F::RepeatedSeedRefused {
            return server.refuse();
        }
        if !repeated || fault == F::RepeatedSeedResetsState {
            make(inner, &id, &episode);
        }
        seeded(&server, inner, &id, repeated)
    })
}

fn rebinds(fault: Fault, bound: &Value, to: &Value) -> bool {
    fault == F::ConflictingSeedAccepted
        || fault == F::ConflictingAttemptAccepted && bound["rollout_id"] == to["rollout_id"]
}

fn make(inner: &mut Inner, id: &str, episode: &Value) {
    inner.made += 1;
    inner.log.push(format!("made {id}"));
    inner.sessions.insert(id.into(), Session { episode: episode.clone(), made: inner.made });
}

fn seeded(server: &Faulty, inner: &mut Inner, id: &str, repeated: bool) -> Response {
    inner.cookies += 1;
    let observation = if server.fault == F::RepeatedSeedObservesAnew {
        format!("seed {}", inner.cookies)
    } else {
        "go".into()
    };
    let named = if repeated && server.fault == F::RepeatedSeedNamesAnother { "another" } else { id };
    let mut body = json!({"resources_session_id": named, "observation": observation});
    if server.fault == F::SeedHasAnotherField {
        body["more"] = json!(1);
    }
    let mut reply = match server.fault {
        F::SeedIsNoJson => "seeded".into_response(),
        _ => server.succeed(body),
    };
    let cookie = match server.fault {
        F::SeedSetsNoCookie => return reply,
        F::RepeatedSeedSetsAnotherCookie if repeated => format!("sid=fresh-{}; Path=/", inner.cookies),
        _ => format!("sid={id}; Path=/; HttpOnly"),
    };
    reply.headers_mut().insert(header::SET_COOKIE, cookie.parse().expect("a header's value"));
    reply
}

async fn close(State(server): State<Faulty>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let (id, episode, cookie) = (id_of(&body), &body["episode_id"], cookie(&headers));
    match server.fault {
        F::CloseHangs => std::future::pending().await,
        // As a panic does, but without the hook, which takes its time over a backtrace.
        F::CloseBreaksOff => std::panic::resume_unwind(Box::new("the connection breaks off, on purpose")),
        F::CloseIsEndless => return endless(),
        _ => {}
    }
    server.with(|inner| {
        inner.log.push("/close_session".into());
        let (known, closed) = (inner.sessions.get(&id), inner.closed.contains(&id));
        let other = known.is_some_and(|session| session.episode != *episode);
        let fault = server.fault;
        if other && fault == F::OtherEpisodeCloseAnswered {
            return server.succeed(json!({"resources_session_id": id}));
        }
        if other && fault != F::OtherEpisodeCloses {
            return server.refuse();
        }
        let refused = match fault {
            F::CloseRefused => known.is_some(),
            F::RepeatedCloseRefused => closed,
            F::CloseOfUnknownRefused => known.is_none() && !closed,
            F::CloseNeedsCookie => known.is_some() && cookie.is_none(),
            _ => false,
        };
        if refused {
            return server.refuse();
        }
        let keeps = fault == F::CloseReleasesNothing
            || fault == F::CloseWithoutCookieReleasesNothing && cookie.is_none();
        if !keeps {
            inner.sessions.remove(&id);
        }
        inner.closed.insert(id.clone());
        let named = if fault == F::CloseNamesAnother { "another" } else { &id };
        server.succeed(json!({"resources_session_id": named}))
    })
}

fn endless() -> Response {
    let chunks = futures_util::stream::repeat_with(|| Ok::<_, std::convert::Infallible>("x".repeat(1 << 16)));
    axum::body::Body::from_stream(chunks).into_response()
}

async fn verify(State(server): State<Faulty>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    server.with(|inner| {
        inner.log.push("/verify".into());
        let id = cookie(&headers).unwrap_or_default();
        let open = inner.sessions.contains_key(&id) && server.fault != F::VerifyFindsNothing;
        let (lost, kind) = match server.fault {
            F::VerifyAfterCloseScores => (false, Value::Null),
            F::VerifyAfterCloseFails if !open => {
                return (StatusCode::INTERNAL_SERVER_ERROR, "Oops").into_response();
            }
            F::VerifyAfterCloseHasNoKind => (!open, Value::Null),
            _ => (!open, if open { Value::Null } else { json!("session_lost") }),
        };
        let reward = if lost { 0.0 } else { 1.0 };
        server.succeed(json!({
            "responses_create_params": body["responses_create_params"],
            "response": body["response"],
            "reward": reward,
            "mask_sample": lost,
            "failure_kind": kind,
            "failure_reason": null,
        }))
    })
}

fn id_of(body: &Value) -> String {
    body["resources_session_id"].as_str().expect("an episode's body").to_owned()
}

fn cookie(headers: &HeaderMap) -> Option<String> {
    let line = headers.get(header::COOKIE)?.to_str().ok()?;
    line.split("; ").find_map(|pair| pair.strip_prefix("sid=")).map(str::to_owned)
}
