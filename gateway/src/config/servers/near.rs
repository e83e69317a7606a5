//! Top-level entries that are almost the gateway's.

use crate::config::{
    keys::near,
    model::Kind,
    section::Context,
    yaml::{Entry, Value},
};

/// How many edits make a misspelling.
const LIMIT: usize = 2;

/// Notes that an entry without a kind's key is most likely a misspelt `gateway` block or a server of a misspelt kind.
/// Returns whether it is the latter.
pub(crate) fn complain(context: &Context<'_>, entry: &Entry) -> bool {
    // `Gateway` differs by its case alone. A plain value is Gym's, whatever its name.
    let lower = entry.key.to_lowercase();
    let is_block = matches!(entry.node.value, Value::Map(_) | Value::Null);
    if is_block && (lower == "gateway" || near(&lower, "gateway", LIMIT).is_some()) {
        context.problems.at(entry.at, &entry.key, "unknown key: did you mean `gateway`?");
        return false;
    }
    let mut found = false;
    for child in entry.node.map().into_iter().flatten() {
        if let (Value::Map(_), Some(kind)) = (&child.node.value, kind(&child.key)) {
            let key = format!("{}.{}", entry.key, child.key);
            context.problems.at(child.at, &key, format!("no such kind: did you mean `{}`?", kind.key()));
            found = true;
        }
    }
    found
}

/// The kind that `key` is most likely a misspelling of.
fn kind(key: &str) -> Option<Kind> {
    let near = Kind::ALL.into_iter().filter_map(|kind| Some((near(key, kind.key(), LIMIT)?, kind)));
    near.min_by_key(|(distance, _)| *distance).map(|(_, kind)| kind)
}
