//! Sends a scenario's steps, keeps its cookie, and knows what the placeholders stand for.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use gym_gateway_tests::harness::{Answer, Call, Http1, cookie};
use http::{HeaderMap, Method};

use crate::{
    compare::{self, Found},
    recording::{Request, Step},
    sessions::{Sessions, named},
};

/// The `Host` of every request, as in the recordings.
const HOST: &str = "gym.test";

/// One scenario at play.
#[derive(Debug)]
pub(crate) struct Player {
    socket: PathBuf,
    cookie: String,
    jar: Option<String>,
    names: Names,
    sessions: Sessions,
}

/// A step as it went.
#[derive(Debug)]
pub(crate) struct Played {
    /// What came.
    pub(crate) answer: Answer,
    /// Whether the session that the request names was open.
    pub(crate) session_is_open: bool,
    /// Where the reply is not the recorded one.
    pub(crate) found: Vec<Found>,
}

/// What placeholders stand for: `{{session:1}}` and the like.
#[derive(Debug, Default)]
pub(crate) struct Names(pub(crate) BTreeMap<String, String>);

impl Names {
    /// The text with every placeholder replaced that stands for something.
    pub(crate) fn fill(&self, text: &str) -> String {
        let replace = |text: String, (name, value): (&String, &String)| text.replace(name, value);
        if text.contains("{{") { self.0.iter().fold(text.to_owned(), replace) } else { text.to_owned() }
    }
}

impl Player {
    /// For one scenario; `cookie` is the name of the server's cookie and its secret.
    pub(crate) fn new(socket: PathBuf, cookie: String) -> Self {
        let names = Names([("{{name}}".to_owned(), cookie.clone())].into());
        Self { socket, cookie, jar: None, names, sessions: Sessions::default() }
    }

    /// Sends the step's request and compares the reply.
    pub(crate) async fn play(&mut self, step: &Step) -> Played {
        self.sign(&step.request);
        let headers = self.headers(&step.request);
        let session = named(&step.request, &headers, &self.cookie);
        let session_is_open = self.sessions.is_open(session.as_ref());
        let answer = self.send(&step.request, &headers).await;
        self.sessions.note(&step.request, session, &answer, &self.cookie);
        let found = compare::reply(&step.reply, &answer, &self.cookie, &mut self.names);
        if step.request.keep_cookie
            && let Some((value, _)) = set_cookie(&answer.headers, &self.cookie)
        {
            self.jar = Some(value);
        }
        Played { answer, session_is_open, found }
    }

    async fn send(&self, request: &Request, headers: &[(String, String)]) -> Answer {
        let call = call(request, headers);
        let mut connection = Http1::connect_unix(&self.socket).await;
        if request.omit.as_deref() == Some("endless") {
            let head = connection.open(&call).await;
            let (status, headers) = (head.status().as_u16(), head.headers().clone());
            return Answer { status, headers, body: bytes::Bytes::new(), trailers: None };
        }
        connection.send(&call).await
    }

    fn headers(&self, request: &Request) -> Vec<(String, String)> {
        let filled = request.headers.iter().map(|(name, value)| (name.clone(), self.names.fill(value)));
        let own = || self.jar.as_ref().map(|jar| format!("{}={jar}", self.cookie));
        let line = match &request.cookie {
            None => own(),
            Some(template) => template.as_ref().map(|template| self.names.fill(template)),
        };
        filled.chain(line.map(|line| ("cookie".to_owned(), line))).collect()
    }

    /// Makes what the request's templates name.
    fn sign(&mut self, request: &Request) {
        let names = &mut self.names.0;
        names.insert("{{jar}}".into(), self.jar.clone().unwrap_or_default());
        if let Some(signed) = &request.signed {
            let secret = signed.secret.as_ref().unwrap_or(&self.cookie);
            let at = cookie::unix().checked_add_signed(-signed.age).expect("a time after 1970");
            names.insert("{{signed}}".into(), cookie::sign(secret, &signed.payload, at));
        }
        if let Some(token) = &request.token {
            let secret = token.secret.as_ref().unwrap_or(&self.cookie);
            names.insert("{{mcp}}".into(), cookie::token(secret, &token.sid, token.tools.clone()));
        }
    }
}

fn call(request: &Request, headers: &[(String, String)]) -> Call {
    let method = Method::from_bytes(request.method.as_bytes()).expect("a method");
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut call = Call::new(nowhere, method, &request.path).header("host", HOST);
    for (name, value) in headers {
        call = call.header(name, value);
    }
    match (&request.json, &request.body) {
        (Some(json), _) => call.body(json.to_string()),
        (None, Some(text)) => call.body(text.clone()),
        (None, None) => call,
    }
}

/// The value and the attributes of the cookie of that name that a reply sets.
pub(crate) fn set_cookie(headers: &HeaderMap, name: &str) -> Option<(String, String)> {
    headers.get_all("set-cookie").iter().find_map(|line| {
        let (pair, attributes) = line.to_str().ok()?.split_once("; ")?;
        let value = pair.strip_prefix(name)?.strip_prefix('=')?;
        Some((value.to_owned(), attributes.to_owned()))
    })
}
