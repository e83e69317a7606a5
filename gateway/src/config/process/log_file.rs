//! `log_file`.

use super::{LogFileSettings, entries, size};
use crate::config::{
    interpolate::reread,
    section::Section,
    yaml::{Entry, Node, Position, Value},
};

const MAX_BYTES: u64 = 100 << 20;
const KEEP: u32 = 5;
/// The least size of a file that is rotated: below it, it would be rotated all the time.
const LEAST_BYTES: u64 = 4096;

const PLACEHOLDERS: [&str; 3] = ["{server}", "{slot}", "{generation}"];

/// A path alone, or a map.
pub(super) fn read(section: &Section<'_>) -> Option<LogFileSettings> {
    let node = section.node("log_file")?;
    let (at, mut settings) =
        (node.at, LogFileSettings { path: String::new(), max_bytes: MAX_BYTES, keep: KEEP });
    if matches!(node.value, Value::Map(_)) {
        for Entry { key, at, node } in entries(section, "log_file", &["path", "max_bytes", "keep"])? {
            match key.as_str() {
                "path" => settings.path = path(section, at, "log_file.path", &node)?,
                "max_bytes" => settings.max_bytes = max_bytes(section, at, node)?,
                _ => settings.keep = keep(section, at, node)?,
            }
        }
        if settings.path.is_empty() {
            section.complain("log_file", "has no `path`: give it, like {path: \"logs/{slot}.log\"}");
            return None;
        }
    } else {
        settings.path = path(section, at, "log_file", &node)?;
    }
    Some(settings)
}

/// Relative to the config's folder.
fn path(section: &Section<'_>, at: Position, key: &str, node: &Node) -> Option<String> {
    let complain = |what: String| {
        section.complain_at(at, key, what);
        None
    };
    let Value::Text(text) = &node.value else {
        return complain(format!(
            "expected a path, like \"logs/{{server}}-{{slot}}.log\", got {}",
            node.seen()
        ));
    };
    let bare = PLACEHOLDERS.iter().fold(text.clone(), |text, placeholder| text.replace(placeholder, ""));
    if bare.contains(['{', '}', '\0']) {
        return complain(format!("{text:?}: in braces it takes {} alone", PLACEHOLDERS.join(", ")));
    }
    if text.is_empty() || text.ends_with('/') {
        return complain(format!("{text:?} names no file: give one, like \"logs/{{server}}-{{slot}}.log\""));
    }
    match section.beside("log_file").join(text).into_os_string().into_string() {
        Ok(path) => Some(path),
        Err(path) => complain(format!("{} is not UTF-8: choose another", path.display())),
    }
}

fn max_bytes(section: &Section<'_>, at: Position, node: Node) -> Option<u64> {
    let seen = node.seen();
    let bytes = size::read(node).filter(|bytes| *bytes == 0 || *bytes >= LEAST_BYTES);
    if bytes.is_none() {
        let what =
            format!("expected {}, at least {LEAST_BYTES}, or 0 for no end, got {seen}", size::EXPECTED);
        section.complain_at(at, "log_file.max_bytes", what);
    }
    bytes
}

fn keep(section: &Section<'_>, at: Position, node: Node) -> Option<u32> {
    let node = reread(node);
    match node.value {
        Value::Whole(count @ 0..=1000) => u32::try_from(count).ok(),
        _ => {
            let seen = node.seen();
            section.complain_at(
                at,
                "log_file.keep",
                format!("expected a whole number from 0 to 1000, got {seen}"),
            );
            None
        }
    }
}
