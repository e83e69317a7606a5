//! What a server says of itself, and how it goes together with the config.

use std::{fmt, num::NonZeroUsize};

use serde::Deserialize;

use super::{
    Protocol,
    model::{Kind, Launch, LeftOpen, ServerConfig, ServerSettings},
    settings::{is_cookie_name, is_route},
};

/// The answer of a command to `--describe`: one JSON object. Only `kind` is needed; null is as absent, and keys that
/// this version does not know are passed over.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Description {
    /// The protocol: `resources` and so on, or the config's key for it.
    #[serde(deserialize_with = "kind")]
    pub kind: Kind,
    /// The session cookie's name.
    #[serde(default)]
    pub session_cookie: Option<String>,
    /// Which of their two protocols a resources server speaks. Null for any other kind.
    #[serde(default)]
    pub protocol: Option<Protocol>,
    /// How many sessions a worker takes, its own limit. Null for any kind but openenv.
    #[serde(default)]
    pub max_sessions_per_worker: Option<NonZeroUsize>,
    /// Routes that start a session. Those of the protocol itself may be among them and change nothing.
    #[serde(default)]
    pub session_start_routes: Option<Vec<String>>,
    /// Routes that end a session, likewise.
    #[serde(default)]
    pub session_end_routes: Option<Vec<String>>,
    /// Whether a session's requests have to go to its owner.
    #[serde(default)]
    pub routes_sessions_to_owner: Option<bool>,
    /// Why the server must have one worker; absent or empty: it can have several.
    #[serde(default)]
    pub multiple_workers_unsupported_reason: Option<String>,
}

fn kind<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Kind, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

impl Description {
    /// Reads a command's standard output: one JSON object. Lines before it, which libraries may print while they are
    /// loaded, are passed over.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn read(output: &str) -> Result<Self, String> {
        let object = last_object(output).ok_or(match output.trim() {
            "" => "it wrote nothing on its standard output, where one JSON object was expected",
            _ => "its standard output does not end in a JSON object",
        })?;
        let mut told: Self = serde_json::from_value(object)
            .map_err(|error| format!("what it wrote is no description: {error}"))?;
        if let Some(name) = told.session_cookie.as_deref().filter(|name| !is_cookie_name(name)) {
            return Err(format!("its session_cookie {name:?} cannot be a cookie's name"));
        }
        if let Some(protocol) = told.protocol.filter(|_| told.kind != Kind::Resources) {
            return Err(format!(
                "it says that it is of kind {} and that its protocol is {protocol}, which is one of resources servers",
                told.kind
            ));
        }
        if told.max_sessions_per_worker.is_some() && told.kind != Kind::OpenEnv {
            return Err(format!(
                "it says that it is of kind {} and has max_sessions_per_worker, a limit of openenv servers",
                told.kind
            ));
        }
        for routes in [&told.session_start_routes, &told.session_end_routes] {
            if let Some(route) = routes.iter().flatten().find(|route| !is_route(route)) {
                return Err(format!("its route {route:?} is no path that begins with `/`, without a query"));
            }
        }
        told.multiple_workers_unsupported_reason.take_if(|reason| reason.trim().is_empty());
        Ok(told)
    }
}

/// The JSON object that reaches from some line's beginning to the end.
fn last_object(output: &str) -> Option<serde_json::Value> {
    let mut rest = output.trim();
    loop {
        if rest.starts_with('{')
            && let Ok(object) = serde_json::from_str(rest)
        {
            return Some(object);
        }
        rest = rest.split_once('\n')?.1.trim_start();
    }
}

/// A server that cannot be as the config has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The server's name.
    pub server: String,
    /// What the config and the server say.
    pub seen: String,
    /// What to do about it.
    pub advice: String,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, seen, advice } = self;
        write!(f, "server {server}: {seen}\n  what to do: {advice}")
    }
}

impl std::error::Error for Contradiction {}

impl ServerConfig {
    /// Settles by what the server says of itself what the config leaves open; what the config sets stays. Returns
    /// where the two differ and the config wins, a sentence each.
    ///
    /// `environment_secret` is `GYM_SESSION_SECRET` of the gateway's own environment, which the workers inherit.
    ///
    /// # Errors
    /// It is of another kind, must have one worker, or signs with another secret than the gateway is told.
    pub fn settle(
        &mut self,
        told: &Description,
        environment_secret: Option<String>,
    ) -> Result<Vec<String>, Contradiction> {
        let open = self.settings.describe.unwrap_or_default();
        if open.kind {
            self.kind = told.kind;
            // `run` has no option for it: it was the default of another kind.
            self.settings.session_idle_timeout = ServerSettings::of(told.kind).session_idle_timeout;
        }
        self.check_kind(told.kind)?;
        self.check_several(told)?;
        self.settle_secret(environment_secret)?;
        Ok(self.settle_sessions(told, open))
    }

    fn settle_sessions(&mut self, told: &Description, open: LeftOpen) -> Vec<String> {
        let (name, kind, settings) = (&self.name, self.kind, &mut self.settings);
        let mut overruled = Vec::new();
        let mut differs = |key: &str, ours: String, theirs: String| {
            if ours != theirs {
                overruled
                    .push(format!("server {name} says {key}: {theirs}, and the config {ours}, which holds"));
            }
        };
        match (&settings.session_cookie, &told.session_cookie) {
            (Some(ours), Some(theirs)) => differs("session_cookie", ours.clone(), theirs.clone()),
            (None, theirs) => settings.session_cookie.clone_from(theirs),
            (Some(_), None) => {}
        }
        match (settings.protocol, told.protocol) {
            (Some(ours), Some(theirs)) => differs("protocol", ours.to_string(), theirs.to_string()),
            (None, theirs) => settings.protocol = theirs,
            (Some(_), None) => {}
        }
        match (settings.max_sessions_per_worker, told.max_sessions_per_worker.map(NonZeroUsize::get)) {
            (Some(ours), Some(theirs)) => {
                differs("max_sessions_per_worker", ours.to_string(), theirs.to_string());
            }
            (None, theirs) => settings.max_sessions_per_worker = theirs,
            (Some(_), None) => {}
        }
        let own = kind.session_routes(settings.protocol.unwrap_or_default());
        let (starts, ends) = (&mut settings.session_start_routes, &mut settings.session_end_routes);
        for (key, is_open, ours, theirs) in [
            ("session_start_routes", open.session_start_routes, starts, &told.session_start_routes),
            ("session_end_routes", open.session_end_routes, ends, &told.session_end_routes),
        ] {
            match theirs.as_ref().map(|theirs| beyond(own, theirs)) {
                Some(theirs) if is_open => *ours = theirs,
                Some(theirs) => differs(key, list(ours), list(&theirs)),
                None => {}
            }
        }
        let ours = &mut settings.routes_sessions_to_owner;
        match told.routes_sessions_to_owner {
            Some(theirs) if open.routes_sessions_to_owner => *ours = theirs,
            Some(theirs) => differs("routes_sessions_to_owner", ours.to_string(), theirs.to_string()),
            None => {}
        }
        overruled
    }

    fn check_kind(&self, told: Kind) -> Result<(), Contradiction> {
        if told == self.kind {
            return Ok(());
        }
        let (ours, theirs) = (self.kind, told);
        let advice = match self.file {
            Some(_) => format!(
                "put its block under `{}`, or give the `command` of a server of kind {ours}",
                theirs.key()
            ),
            None => format!("leave --kind out, or say --kind {theirs}"),
        };
        let seen = format!("it says that it is of kind {theirs}, and the config says {ours}");
        Err(self.contradiction(seen, advice))
    }

    fn check_several(&self, told: &Description) -> Result<(), Contradiction> {
        let workers = self.most_workers();
        let Some(reason) = &told.multiple_workers_unsupported_reason else { return Ok(()) };
        if workers <= 1 || self.settings.multiple_workers_unsupported_reason.is_some() {
            return Ok(());
        }
        let key = "multiple_workers_unsupported_reason: \"\"";
        let advice = match (&self.file, self.kind) {
            (None, _) => "leave --num-workers out, so that it has one".into(),
            (Some(_), kind) if kind.is_nemo_gym() => {
                let place = format!("gateway.servers.{}", self.name);
                format!("set num_workers: 1 (or, if you know better, {place}.{key})")
            }
            (Some(_), _) => {
                format!("set num_workers: 1 (or, if you know better, {key} in the same block)")
            }
        };
        Err(self.contradiction(format!("did not agree to num_workers: {workers}: {reason}"), advice))
    }

    /// The worker takes its secret from its own config before its environment.
    fn settle_secret(&mut self, environment: Option<String>) -> Result<(), Contradiction> {
        let Launch::Command { server_config, .. } = &self.launch else { return Ok(()) };
        let own = server_config.get("session_secret").and_then(serde_json::Value::as_str);
        let own = own.filter(|secret| !secret.is_empty()).map(str::to_owned);
        match (&self.settings.session_secret, own) {
            (Some(ours), Some(theirs)) if *ours != theirs => {
                let seen =
                    "the server's own config has another session_secret than its settings for the gateway";
                Err(self.contradiction(
                    seen.into(),
                    "keep one of them: the gateway hands its own on to the server".into(),
                ))
            }
            (Some(_), _) => Ok(()),
            (None, own) => {
                self.settings.session_secret = own.or(environment.filter(|secret| !secret.is_empty()));
                Ok(())
            }
        }
    }

    fn contradiction(&self, seen: String, advice: String) -> Contradiction {
        Contradiction { server: self.name.clone(), seen, advice }
    }
}

/// The routes of which the protocol does not say itself what they do.
fn beyond(own: &[&str], routes: &[String]) -> Vec<String> {
    routes.iter().filter(|route| !own.contains(&route.as_str())).cloned().collect()
}

fn list(routes: &[String]) -> String {
    format!("[{}]", routes.join(", "))
}

#[cfg(test)]
mod tests;
