//! A server's entry, taken apart: `{name: {kind: {implementation: {...}}}}`.

use std::path::PathBuf;

use crate::config::{
    files::folder,
    model::Kind,
    section::Context,
    yaml::{Entry, Node, Value},
};

/// One server's entry, taken apart.
pub(crate) struct Block<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: Kind,
    pub(crate) implementation: &'a str,
    pub(crate) node: &'a Node,
    /// The entry's own place.
    pub(crate) entry: &'a Entry,
    /// `gateway.servers.<name>`.
    pub(crate) own: Option<&'a Node>,
}

impl Block<'_> {
    pub(crate) fn path(&self) -> Vec<String> {
        [self.name, self.kind.key(), self.implementation].map(str::to_owned).to_vec()
    }

    pub(crate) fn own_path(&self) -> Vec<String> {
        ["gateway", "servers", self.name].map(str::to_owned).to_vec()
    }

    /// The file that it stands in.
    pub(crate) fn file(&self, context: &Context<'_>) -> PathBuf {
        context.problems.file(self.entry.at).cloned().unwrap_or_default()
    }

    /// The folder of that file.
    pub(crate) fn folder(&self, context: &Context<'_>) -> PathBuf {
        folder(&self.file(context), context.surroundings.directory())
    }
}

/// What an entry turns out to be.
pub(crate) enum Taken<'a> {
    /// A server.
    Block(Block<'a>),
    /// Gym's own composition.
    Gyms,
    /// Wrong; the problem is noted.
    Wrong,
}

const SHAPE: &str = "{kind: {implementation: {...}}}";

/// Finds implementation and block of an entry that has the keys of these kinds.
pub(crate) fn take_apart<'a>(
    context: &Context<'_>,
    entry: &'a Entry,
    kinds: &[Kind],
    own: Option<&'a Node>,
) -> Taken<'a> {
    let wrong = |at, what: String| {
        context.problems.at(at, &entry.key, what);
        Taken::Wrong
    };
    let ([kind_entry], &[kind]) = (entries(&entry.node), kinds) else {
        if composed(&entry.node) {
            return Taken::Gyms;
        }
        let keys: Vec<_> = entries(&entry.node).iter().map(|entry| entry.key.as_str()).collect();
        let keys = keys.join(", ");
        return wrong(
            entry.at,
            format!(
                "expected one key, the server's kind, got {keys}: settings go into its implementation's block"
            ),
        );
    };
    let (at, key) = (kind_entry.at, &kind_entry.key);
    match entries(&kind_entry.node) {
        // Text may be an interpolation; what comes out of it is looked at when the block is opened.
        [Entry { key, node, .. }] if matches!(node.value, Value::Map(_) | Value::Null | Value::Text(_)) => {
            Taken::Block(Block { name: &entry.key, kind, implementation: key, node, entry, own })
        }
        _ if composed(&kind_entry.node) => Taken::Gyms,
        [] => wrong(at, format!("{key}: expected {SHAPE}, got {}", kind_entry.node.seen())),
        several => {
            let seen: Vec<_> =
                several.iter().map(|entry| format!("`{}`: {}", entry.key, entry.node.seen())).collect();
            let seen = seen.join(", ");
            wrong(at, format!("{key}: expected one implementation with its block, {SHAPE}, got {seen}"))
        }
    }
}

fn entries(node: &Node) -> &[Entry] {
    node.map().map_or(&[], Vec::as_slice)
}

/// Whether Gym makes this from something else: `_inherit_from`, `_copy`, `_delete_key`.
fn composed(node: &Node) -> bool {
    entries(node).iter().any(|entry| entry.key.starts_with('_'))
}
