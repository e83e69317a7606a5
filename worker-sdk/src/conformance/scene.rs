//! One scenario as it runs: its session, its cookies, and what may have to be closed in the end.

use serde_json::Value;

use super::{
    Held, Options, Report, Step, Verdict,
    client::{Client, Cookies, NoReply, Reply},
    held::Holds,
    report::excerpt,
    seed::Session,
    want::Want,
};

/// What all scenarios of a check share.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) client: Result<Client, NoReply>,
    pub(super) options: &'a Options,
    pub(super) report: Report,
    /// Why nothing more is sent at all.
    pub(super) stopped: Option<String>,
}

/// One scenario.
#[derive(Debug)]
pub(super) struct Scene<'r, 'a> {
    run: &'r mut Run<'a>,
    name: &'static str,
    pub(super) session: Session,
    cookies: Cookies,
    /// Why nothing more is sent in this scenario.
    broken: Option<String>,
    /// The episode of a seed that may have left a session open.
    open: Option<Value>,
    held: Option<Held>,
    /// Whether the server does not even answer a seed: other scenarios would only wait as long again.
    silent: bool,
}

/// Why nothing is sent after a seed without a reply.
const NO_ANSWER: &str = "there was no reply to a seed";

/// Which cookies go with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum With {
    /// Those of the session.
    Cookie,
    /// None, as after a lost seed reply.
    NoCookie,
}

impl<'r, 'a> Scene<'r, 'a> {
    pub(super) fn new(run: &'r mut Run<'a>, name: &'static str, session: Session) -> Self {
        let cookies = Cookies::default();
        Self { run, name, session, cookies, broken: None, open: None, held: None, silent: false }
    }

    /// Seeds the session for its own episode, and keeps the cookies; without a session the scenario is over.
    pub(super) async fn begin(&mut self) -> Option<Value> {
        let episode = self.session.episode();
        match self.seed("seed", &episode, Want::Seeded).await {
            Some(reply) if reply.status < 300 => observation(&reply),
            Some(reply) => {
                if reply.has_no_route() {
                    // The other scenarios would only say it again.
                    self.run.stopped.get_or_insert_with(|| "there is no POST /seed_session".into());
                }
                self.broken = Some("the seed failed".into());
                None
            }
            None => {
                self.broken = Some(NO_ANSWER.into());
                self.silent = true;
                None
            }
        }
    }

    /// Seeds without a cookie, as environment servers do; the reply's cookies replace those there are.
    pub(super) async fn seed(&mut self, name: &'static str, episode: &Value, want: Want) -> Option<Reply> {
        let body = self.session.seed(episode);
        let refused_as_wanted = |reply: &Reply| reply.status >= 400 && matches!(want, Want::Conflict);
        let (sends, want_refusal) = (self.sends(), matches!(want, Want::Conflict));
        let reply = self.post(name, "/seed_session", &body, With::NoCookie, want.clone()).await;
        if sends && !reply.as_ref().is_some_and(refused_as_wanted) {
            self.open = Some(episode.clone());
        }
        if let Some(reply) = reply.as_ref().filter(|reply| reply.status < 300 && !want_refusal) {
            self.cookies = reply.cookies.clone();
        }
        reply
    }

    /// Forgets the cookies, as if the seed's reply had never come.
    pub(super) fn lose_reply(&mut self) {
        self.cookies = Cookies::default();
    }

    /// Closes the session in the name of that episode.
    pub(super) async fn close(&mut self, name: &'static str, episode: &Value, with: With, want: Want) {
        let body = self.session.close(episode);
        let reply = self.post(name, "/close_session", &body, with, want).await;
        if reply.is_some_and(|reply| reply.status < 300) {
            self.open = None;
        }
    }

    /// Verifies, if there is a body for it.
    pub(super) async fn verify(&mut self, name: &'static str, want: Want) {
        if let Some(body) = &self.run.options.verify_body {
            let body = self.session.verify(body);
            self.post(name, "/verify", &body, With::Cookie, want).await;
        }
    }

    /// What a seed or a close needs that would bring back, rebind or take away the session.
    pub(super) fn conflict(&self) -> Want {
        if self.keeps_state() { Want::Conflict } else { Want::SucceedsOrConflict }
    }

    pub(super) fn keeps_state(&self) -> bool {
        self.run.options.keeps_state
    }

    /// Asks, if there is somebody to ask, whether a server that keeps state has the session's, the same as before.
    pub(super) async fn holds(&mut self, name: &'static str) {
        if self.keeps_state() {
            let want = self.held.take().map_or(Holds::State, Holds::Still);
            self.state(name, want).await;
        }
    }

    /// Asks, if there is somebody to ask, whether nothing is left of the session.
    pub(super) async fn holds_nothing(&mut self, name: &'static str) {
        self.state(name, Holds::Nothing).await;
    }

    async fn state(&mut self, name: &'static str, want: Holds) {
        if !self.run.options.asks_for_state() {
            return;
        }
        let sent = format!("holds_state({:?})", self.session.id);
        let wanted = want.describe().to_owned();
        if !self.sends() {
            return self.not_run(name, sent, wanted);
        }
        let Some(held) = self.run.options.held(&self.session.id).await else { return };
        let judged = want.judge(&held);
        let came = excerpt(held.to_string().as_bytes());
        self.held = Some(held).filter(|held| matches!(held, Held::State | Held::Named(_)));
        self.push(name, sent, wanted, came, judged);
    }

    /// Closes what a step may have left open. Whatever the answer, it is no part of the check.
    pub(super) async fn end(mut self) {
        self.broken = None;
        if let Some(episode) = self.open.take().filter(|_| self.sends()) {
            let body = self.session.close(&episode);
            self.post("clean-up", "/close_session", &body, With::Cookie, Want::Anything).await;
        }
        if self.silent {
            self.run.stopped.get_or_insert_with(|| NO_ANSWER.into());
        }
    }

    fn sends(&self) -> bool {
        self.broken.is_none() && self.run.stopped.is_none()
    }

    async fn post(
        &mut self,
        name: &'static str,
        path: &str,
        body: &Value,
        with: With,
        want: Want,
    ) -> Option<Reply> {
        let none = Cookies::default();
        let cookies = if with == With::Cookie { &self.cookies } else { &none };
        let and = if cookies.is_empty() { "without a cookie" } else { "with the seed's cookie" };
        let sent = format!("POST {path} {and}: {}", excerpt(body.to_string().as_bytes()));
        let strict = self.run.options.strict;
        let wanted = want.describe(strict);
        if !self.sends() {
            self.not_run(name, sent, wanted);
            return None;
        }
        let answer = match &self.run.client {
            Ok(client) => client.post(path, body, cookies).await,
            Err(NoReply { why, unreachable }) => Err(NoReply { why: why.clone(), unreachable: *unreachable }),
        };
        match answer {
            Ok(reply) => {
                let judged = want.judge(&reply, &self.session.id, strict);
                self.push(name, sent, wanted, format!("{} {}", reply.status, excerpt(&reply.body)), judged);
                Some(reply)
            }
            Err(NoReply { why, unreachable }) => {
                if unreachable {
                    self.run.stopped = Some("the server cannot be reached".into());
                }
                self.push(name, sent, wanted, "no reply".into(), Err(why));
                None
            }
        }
    }

    fn push(
        &mut self,
        name: &'static str,
        sent: String,
        wanted: String,
        came: String,
        judged: Result<(), String>,
    ) {
        let (verdict, why) = match judged {
            Ok(()) => (Verdict::Ok, String::new()),
            Err(why) => (Verdict::Violation, why),
        };
        let (scenario, resources_session_id) = (self.name, self.session.id.clone());
        self.run.report.push(Step { scenario, name, resources_session_id, sent, wanted, came, verdict, why });
    }

    fn not_run(&mut self, name: &'static str, sent: String, wanted: String) {
        let why = self.run.stopped.clone().or_else(|| self.broken.clone()).unwrap_or_default();
        let (scenario, resources_session_id) = (self.name, self.session.id.clone());
        let (came, verdict) = (String::new(), Verdict::NotRun);
        self.run.report.push(Step { scenario, name, resources_session_id, sent, wanted, came, verdict, why });
    }
}

/// The observation in a seed's reply.
fn observation(reply: &Reply) -> Option<Value> {
    serde_json::from_slice::<Value>(&reply.body).ok()?.get("observation").cloned()
}
