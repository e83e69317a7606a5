//! One map of the config, read key by key with the types named in errors.

use std::{ops::RangeInclusive, path::PathBuf, time::Duration};

use super::{
    files::folder,
    interpolate::{Resolver, reread},
    keys::{self, Place},
    problems::Problems,
    surroundings::Surroundings,
    yaml::{Map, Node, Position, Value},
};

/// The longest duration that makes sense: a hundred years.
const LONGEST_SECONDS: f64 = 100.0 * 365.25 * 86_400.0;

/// What every reader needs.
pub(crate) struct Context<'a> {
    pub(crate) resolver: Resolver<'a>,
    pub(crate) problems: &'a Problems,
    pub(crate) surroundings: &'a Surroundings,
}

/// Whether a duration of zero makes sense.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zero {
    Allowed,
    Refused,
}

/// One map: every reader gives `None` if the key is absent, null or wrong (then the problem is noted).
pub(crate) struct Section<'a> {
    context: &'a Context<'a>,
    map: Map,
    /// Where it really stands: relative interpolations start here.
    home: Vec<String>,
    /// The path that the user wrote, for messages.
    path: String,
    at: Position,
}

impl<'a> Section<'a> {
    /// Opens the map `node` at `path`; keys that do not belong to `place` are noted as problems.
    pub(crate) fn open(context: &'a Context<'a>, node: &Node, path: &[String], place: Place) -> Option<Self> {
        let section = Self::any(context, node, path)?;
        if place != Place::Gym {
            for entry in &section.map {
                if let Some(complaint) = keys::complaint(&entry.key, place) {
                    section.complain_at(entry.at, &entry.key, complaint);
                }
            }
        }
        Some(section)
    }

    /// Opens a map whose keys are names.
    pub(crate) fn any(context: &'a Context<'a>, node: &Node, path: &[String]) -> Option<Self> {
        let shown = path.join(".");
        let found = match context.resolver.shallow(node, path) {
            Ok(found) => found,
            Err(why) => {
                context.problems.at(node.at, &shown, why);
                return None;
            }
        };
        let map = match found.node.value {
            Value::Map(map) => map,
            Value::Null => Map::new(),
            _ => {
                context.problems.at(node.at, &shown, format!("expected a map, got {}", found.node.seen()));
                return None;
            }
        };
        Some(Self { context, map, home: found.path, path: shown, at: node.at })
    }

    /// Notes a problem with `key`.
    pub(crate) fn complain(&self, key: &str, what: impl std::fmt::Display) {
        self.complain_beside(key, key, what);
    }

    /// Notes a problem with `key` at the place of `other`.
    pub(crate) fn complain_beside(&self, other: &str, key: &str, what: impl std::fmt::Display) {
        let at = self.map.iter().find(|entry| entry.key == other).map_or(self.at, |entry| entry.at);
        self.complain_at(at, key, what);
    }

    /// Notes a problem with `key` (dots between its parts) at a place.
    pub(crate) fn complain_at(&self, at: Position, key: &str, what: impl std::fmt::Display) {
        self.context.problems.at(at, &format!("{}.{key}", self.path), what);
    }

    /// The folder of the file in which the key stands: paths are relative to it.
    pub(crate) fn beside(&self, key: &str) -> PathBuf {
        let at = self.map.iter().find(|entry| entry.key == key).map_or(self.at, |entry| entry.at);
        let working = self.context.surroundings.directory();
        self.context.problems.file(at).map_or_else(|| working.into(), |file| folder(file, working))
    }

    /// What the loader looks at outside of the files.
    pub(crate) fn surroundings(&self) -> &Surroundings {
        self.context.surroundings
    }

    /// Whether the key is there, whatever it holds.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.map.iter().any(|entry| entry.key == key && entry.node.value != Value::Null)
    }

    /// The key that is most likely a misspelling of `right`, at most `limit` edits away; none that the gateway knows.
    pub(crate) fn misspelt(&self, right: &str, limit: usize) -> Option<&str> {
        let keys = self.map.iter().map(|entry| entry.key.as_str()).filter(|key| !keys::known(key));
        let near = keys.filter_map(|key| Some((keys::near(key, right, limit)?, key)));
        near.min_by_key(|(distance, _)| *distance).map(|(_, key)| key)
    }

    /// The value as written, and its path.
    pub(crate) fn raw(&self, key: &str) -> Option<(&Node, Vec<String>)> {
        let entry = self.map.iter().find(|entry| entry.key == key)?;
        Some((&entry.node, [self.home.as_slice(), &[key.to_owned()]].concat()))
    }

    /// The value with everything in it resolved.
    pub(crate) fn node(&self, key: &str) -> Option<Node> {
        let (node, path) = self.raw(key)?;
        match self.context.resolver.deep(node, &path) {
            Ok(node) if node.value == Value::Null => None,
            Ok(node) if node.value == Value::Text("???".into()) => {
                self.complain(key, "is still to be given (`???`): give it a value");
                None
            }
            Ok(node) => Some(node),
            Err((at, why)) => {
                self.complain_at(at, key, why);
                None
            }
        }
    }

    fn expected<T>(&self, key: &str, what: &str, node: &Node) -> Option<T> {
        // A number is a secret too: not even one that is wrong is shown.
        let seen =
            if key == "session_secret" { "something else: put it in quotes".into() } else { node.seen() };
        self.complain(key, format!("expected {what}, got {seen}"));
        None
    }

    /// Text; not empty.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let text = self.any_text(key)?;
        if text.is_empty() {
            self.complain(key, "expected text, got an empty one: give it, or leave the key out");
            return None;
        }
        Some(text)
    }

    /// Text that may be empty.
    pub(crate) fn any_text(&self, key: &str) -> Option<String> {
        let node = self.node(key)?;
        match node.value {
            Value::Text(text) => Some(text),
            _ => self.expected(key, "text", &node),
        }
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        let node = reread(self.node(key)?);
        match node.value {
            Value::Bool(value) => Some(value),
            _ => self.expected(key, "true or false", &node),
        }
    }

    /// A whole number within `range`.
    pub(crate) fn whole(&self, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let node = reread(self.node(key)?);
        let Value::Whole(value) = node.value else {
            return self.expected(key, "a whole number", &node);
        };
        match u64::try_from(value) {
            Ok(value) if range.contains(&value) => Some(value),
            _ => {
                let what = format!("a whole number from {} to {}", range.start(), range.end());
                self.expected(key, &what, &node)
            }
        }
    }

    /// A duration in seconds, with or without a fraction.
    pub(crate) fn seconds(&self, key: &str, zero: Zero) -> Option<Duration> {
        let node = reread(self.node(key)?);
        let seconds = match node.value {
            Value::Whole(value) => value as f64,
            Value::Float(value) => value,
            _ => return self.expected(key, "a number of seconds", &node),
        };
        if !(0.0..=LONGEST_SECONDS).contains(&seconds) {
            return self.expected(key, "a number of seconds from 0 to a hundred years", &node);
        }
        let duration = Duration::from_secs_f64(seconds);
        if duration.is_zero() && zero == Zero::Refused {
            return self.expected(key, "more than 0 seconds", &node);
        }
        Some(duration)
    }

    /// A list of texts; numbers count as they are written.
    pub(crate) fn texts(&self, key: &str) -> Option<Vec<String>> {
        let node = self.node(key)?;
        let Value::List(list) = &node.value else {
            return self.expected(key, "a list of texts", &node);
        };
        let mut texts = Vec::new();
        for (index, item) in list.iter().enumerate() {
            match spelled(item) {
                Some(text) => texts.push(text),
                None => {
                    let name = format!("{key}[{index}]");
                    self.complain_at(
                        item.at,
                        &name,
                        format!("expected text, got {}: put it in quotes", item.seen()),
                    );
                }
            }
        }
        (texts.len() == list.len()).then_some(texts)
    }

    /// The entries of a map; none if it is something else, which is not noted.
    pub(crate) fn entries(&self, key: &str) -> Map {
        // What cannot be resolved is noted when the key's own reader comes to it; twice is once.
        self.node(key).and_then(|node| node.map().cloned()).unwrap_or_default()
    }

    /// A map of names to texts; numbers count as they are written. Maps in it are passed over: another reader's.
    pub(crate) fn text_map(&self, key: &str) -> Option<Vec<(String, String)>> {
        let node = self.node(key)?;
        let Value::Map(map) = &node.value else {
            return self.expected(key, "a map of texts", &node);
        };
        let map: Vec<_> = map.iter().filter(|entry| entry.node.map().is_none()).collect();
        let mut texts = Vec::new();
        for entry in &map {
            match spelled(&entry.node) {
                Some(text) => texts.push((entry.key.clone(), text)),
                None => {
                    let name = format!("{key}.{}", entry.key);
                    let seen = entry.node.seen();
                    self.complain_at(entry.at, &name, format!("expected text, got {seen}: put it in quotes"));
                }
            }
        }
        (texts.len() == map.len()).then_some(texts)
    }
}

/// Text, or a number in the user's own spelling.
fn spelled(node: &Node) -> Option<String> {
    match &node.value {
        Value::Text(text) => Some(text.clone()),
        Value::Whole(value) => Some(node.written.clone().unwrap_or_else(|| value.to_string())),
        Value::Float(value) => Some(node.written.clone().unwrap_or_else(|| value.to_string())),
        _ => None,
    }
}
