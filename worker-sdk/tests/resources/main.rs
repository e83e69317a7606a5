//! The seed/verify protocol, asked without a socket.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

#[path = "../common/mod.rs"]
mod common;
mod episodes;
mod lives;
mod requests;

use std::sync::{Arc, Mutex};

use axum::Json;
use axum::routing::post;
use common::Client;
use gym_worker_sdk::{
    Failure, Released, ResourcesApp, ResourcesServer, Result, SeedError, SeedInfo, Seeded, Session, Settings,
    Start, Verdict, VerifyRequest,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Every state that was released, and why.
type Releases = Arc<Mutex<Vec<(String, Released)>>>;

/// Keeps a word for each session; the reward is 1 for who names it.
#[derive(Default)]
struct Vault {
    released: Releases,
}

#[derive(Deserialize)]
struct Word {
    word: String,
    #[serde(default)]
    observation: Option<String>,
    #[serde(default)]
    keep_open: bool,
}

#[derive(Deserialize)]
struct Guess {
    guess: String,
}

#[derive(Serialize)]
struct Details {
    length: usize,
}

struct Kept {
    word: String,
    keep_open: bool,
    close_fails: bool,
}

impl gym_worker_sdk::SessionState for Kept {}

impl ResourcesServer for Vault {
    const CLASS: &'static str = "VaultServer";
    type Seed = Word;
    type State = Kept;
    type Verify = Guess;
    type Details = Details;

    async fn seed_session(&self, _: SeedInfo, seed: Word) -> Result<Seeded<Kept>, SeedError> {
        match seed.word.as_str() {
            "" => return Err(SeedError::rejected("an empty word")),
            "taken" => return Err(SeedError::conflict("that word is taken")),
            "panic" => panic!("no such word"),
            _ => {}
        }
        let close_fails = seed.word == "sticky";
        let seeded = Seeded::new(Kept { word: seed.word, keep_open: seed.keep_open, close_fails });
        Ok(match seed.observation {
            Some(text) => seeded.observation(text).field("hint", 1),
            None => seeded,
        })
    }

    async fn verify(
        &self,
        session: Session<Kept>,
        request: VerifyRequest<Guess>,
    ) -> Result<Verdict<Details>> {
        let kept = session.state().await?;
        match request.body.guess.as_str() {
            "panic" => panic!("no such guess"),
            "fail" => return Err(Failure::new(418, "a teapot")),
            "nan" => return Ok(Verdict::reward(f64::NAN).with(Details { length: 0 })),
            _ => {}
        }
        if kept.keep_open {
            session.keep_open();
        }
        let is_right = kept.word == request.body.guess;
        Ok(Verdict::reward(f64::from(is_right)).with(Details { length: kept.word.len() }))
    }

    async fn close_session(&self, _: &str, kept: &mut Kept) -> Result<()> {
        match std::mem::take(&mut kept.close_fails) {
            true => Err(Failure::new(503, "not now")),
            false => Ok(()),
        }
    }

    async fn release(&self, _: Arc<str>, kept: Kept, why: Released) {
        self.released.lock().unwrap().push((kept.word, why));
    }
}

#[derive(Deserialize, JsonSchema)]
struct Append {
    text: String,
}

async fn append(session: Session<Kept>, Append { text }: Append) -> Result<String> {
    let mut kept = session.state().await?;
    kept.word += &text;
    Ok(kept.word.clone())
}

async fn read(session: Session<Kept>) -> Result<String> {
    Ok(session.state().await?.word.clone())
}

async fn double(Append { text }: Append) -> Result<String> {
    Ok(text.repeat(2))
}

async fn broken() -> Result<()> {
    Err(std::io::Error::other("the disk is on fire").into())
}

fn server(settings: Settings) -> (Client, Releases) {
    let vault = Vault::default();
    let released = vault.released.clone();
    let begin = async |start: Start<Kept>, Json(word): Json<Word>| -> Result<Json<String>> {
        let kept = Kept { word: word.word, keep_open: false, close_fails: false };
        Ok(Json(start.open(kept).await?.id().to_owned()))
    };
    let router = ResourcesApp::new(vault)
        .tool("append", append)
        .tool("read", read)
        .tool("double", double)
        .tool("broken", |_: Arc<Vault>| broken())
        .start_route("/begin", post(begin))
        .end_route("/leave", post(async |session: Session<Kept>| session.end().await))
        .route("/peek", post(async |session: Session<Kept>| Json(session.id().to_owned())))
        .settings(settings)
        .into_router()
        .unwrap();
    (Client::new(router), released)
}

fn vault() -> (Client, Releases) {
    server(Settings::new("vault"))
}

fn word(word: &str) -> Value {
    json!({"word": word})
}
