//! Many clients on few sessions, at random, with clients that leave in the middle.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use common::{Client, close, seed, verify};
use gym_worker_sdk::{
    Empty, Failure, Released, ResourcesApp, ResourcesServer, Result, SeedError, SeedInfo, Seeded, Session,
    SessionState, Settings, Verdict, VerifyRequest,
};
use serde::Deserialize;
use serde_json::json;

/// What was made, and what was given back.
#[derive(Default)]
struct Books {
    made: AtomicUsize,
    released: AtomicUsize,
    dropped: AtomicUsize,
}

/// A state that knows whose it is, and what became of it.
struct Lent {
    id: Arc<str>,
    is_lent: Arc<AtomicBool>,
    released: bool,
    books: Arc<Books>,
}

impl SessionState for Lent {}

impl Drop for Lent {
    fn drop(&mut self) {
        self.books.dropped.fetch_add(usize::from(self.released), Ordering::SeqCst);
    }
}

struct Lender(Arc<Books>);

#[derive(Deserialize)]
struct Mood {
    mood: u8,
}

/// Gives others a turn, or fails, or panics.
async fn act(mood: u8) -> Result<()> {
    for _ in 0..mood % 8 {
        tokio::task::yield_now().await;
    }
    match mood {
        250.. => panic!("a bad mood"),
        240.. => Err(Failure::new(503, "another mood")),
        _ => Ok(()),
    }
}

/// Alone with the state, until dropped.
struct Alone(Arc<AtomicBool>);

impl Alone {
    fn with(lent: &Lent, id: &str) -> Self {
        assert_eq!(&*lent.id, id);
        assert!(!lent.is_lent.swap(true, Ordering::SeqCst), "two have the state");
        Self(lent.is_lent.clone())
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

async fn borrow(session: &Session<Lent>, mood: u8) -> Result<()> {
    let lent = session.state().await?;
    let alone = Alone::with(&lent, session.id());
    act(mood).await?;
    drop(alone);
    drop(lent);
    act(mood).await
}

impl ResourcesServer for Lender {
    const CLASS: &'static str = "LenderServer";
    type Seed = Mood;
    type State = Lent;
    type Verify = Mood;
    type Details = Empty;

    async fn seed_session(&self, info: SeedInfo, seed: Mood) -> Result<Seeded<Lent>, SeedError> {
        act(seed.mood).await?;
        self.0.made.fetch_add(1, Ordering::SeqCst);
        let books = self.0.clone();
        Ok(Lent { id: info.id, is_lent: Arc::default(), released: false, books }.into())
    }

    async fn verify(&self, session: Session<Lent>, request: VerifyRequest<Mood>) -> Result<Verdict> {
        borrow(&session, request.body.mood).await?;
        match request.body.mood % 16 {
            0 => session.keep_open(),
            1 => session.end().await,
            _ => {}
        }
        Ok(Verdict::reward(1.0))
    }

    async fn close_session(&self, id: &str, lent: &mut Lent) -> Result<()> {
        let _alone = Alone::with(lent, id);
        act(fastrand::u8(..)).await
    }

    async fn release(&self, id: Arc<str>, mut lent: Lent, _: Released) {
        let alone = Alone::with(&lent, &id);
        assert!(!std::mem::replace(&mut lent.released, true), "released twice");
        self.0.released.fetch_add(1, Ordering::SeqCst);
        drop((alone, lent));
        // What is left of it may fail as well.
        let _mood = act(fastrand::u8(..)).await;
    }
}

async fn tool(session: Session<Lent>, Mood { mood }: Mood) -> Result<()> {
    borrow(&session, mood).await
}

impl schemars::JsonSchema for Mood {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Mood".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        u8::json_schema(generator)
    }
}

async fn one_request(client: &mut Client) {
    let (id, mood) = (format!("s{}", fastrand::u8(..6)), fastrand::u8(..));
    let rollout = format!("r{}", fastrand::u8(..2));
    if fastrand::u8(..4) == 0 {
        client.cookie = None;
    }
    let (path, body) = match fastrand::u8(..10) {
        0..3 => ("/seed_session", seed(&id, &rollout, json!({"mood": mood}))),
        3 => ("/seed_session", json!({"mood": mood})),
        4 => ("/close_session", close(&id, &rollout)),
        5 => ("/close_session", json!({})),
        6..8 => ("/verify", verify(json!({"mood": mood}))),
        _ => ("/tool", json!({"mood": mood})),
    };
    let polls = fastrand::usize(..12);
    let asked = client.post(path, body);
    if fastrand::bool() {
        let reply = asked.await;
        let status = reply.status.as_u16();
        assert!(matches!(status, 200 | 404 | 409 | 500 | 503), "{path}: {reply:?}");
        if status == 500 {
            assert!(reply.body.as_str().unwrap().ends_with("a bad mood"), "{path}: {reply:?}");
        }
        return;
    }
    // A client that leaves.
    let mut asked = Box::pin(asked);
    for _ in 0..polls {
        if futures_util::poll!(asked.as_mut()).is_ready() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_state_is_one_session_s_and_is_released_once() {
    // The moods' panics are many.
    let shown = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| match panic.payload_as_str() {
        Some("a bad mood") => {}
        _ => shown(panic),
    }));
    let books = Arc::new(Books::default());
    let mut settings = Settings::new("lender");
    // Everything that nobody uses is reclaimed, and forgotten, all the time.
    (settings.session_idle_timeout, settings.session_close_retry_window) =
        (Duration::from_nanos(1), Duration::ZERO);
    let app = ResourcesApp::new(Lender(books.clone())).tool("tool", tool).settings(settings);
    let router = app.into_router().unwrap();
    let clients = (0..32).map(|_| {
        let mut client = Client::new(router.clone());
        tokio::spawn(async move {
            for _ in 0..150 {
                one_request(&mut client).await;
            }
        })
    });
    futures_util::future::try_join_all(clients).await.unwrap();
    let all_back = || {
        let made = books.made.load(Ordering::SeqCst);
        made == books.dropped.load(Ordering::SeqCst)
    };
    for _ in 0..1000 {
        if all_back() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let counts = [&books.made, &books.released, &books.dropped].map(|count| count.load(Ordering::SeqCst));
    assert!(counts[0] > 100, "{counts:?}");
    assert_eq!(counts, [counts[0]; 3]);
}
