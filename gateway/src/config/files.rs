//! The files, read and united into one tree.

use std::path::{Path, PathBuf};

use super::{
    model::Kind,
    problems::Problems,
    yaml::{self, Entry, Map, Node, Position, Value},
};

/// The kinds that an entry has keys of, in its order.
pub(crate) fn kinds(node: &Node) -> Vec<Kind> {
    let kind = |entry: &Entry| Kind::ALL.into_iter().find(|kind| kind.key() == entry.key);
    node.map().into_iter().flatten().filter_map(kind).collect()
}

/// Reads all files and unites their top-level entries. What is wrong goes to `problems`; the rest is still returned.
pub(crate) fn read(files: &[PathBuf], problems: &Problems) -> Node {
    let mut root = Map::new();
    for (index, file) in files.iter().enumerate() {
        if files[..index].contains(file) {
            problems.general(format!("{}: given twice: name each file once", file.display()));
            continue;
        }
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) => {
                problems.general(format!("{}: cannot be read: {error}", file.display()));
                continue;
            }
        };
        match yaml::parse(&text, index).map(|node| (node.seen(), node.at, node.value)) {
            Ok((_, _, Value::Map(map))) => {
                map.into_iter().for_each(|entry| unite(&mut root, entry, problems))
            }
            Ok((seen, at, _)) => {
                problems.at(at, "", format!("expected a map of servers at the top, got {seen}"))
            }
            Err((at, why)) => problems.at(at, "", why),
        }
    }
    Node::new(Value::Map(root), Position { file: 0, line: 1 })
}

fn unite(root: &mut Map, entry: Entry, problems: &Problems) {
    let Some(first) = root.iter_mut().find(|known| known.key == entry.key) else {
        root.push(entry);
        return;
    };
    if entry.key == "gateway" {
        merge(&mut first.node, entry.node, "gateway", problems);
    } else if !kinds(&first.node).is_empty() || !kinds(&entry.node).is_empty() {
        let place = problems.place(first.at);
        problems.at(
            entry.at,
            &entry.key,
            format!("the server `{}` already stands in {place}: rename one", entry.key),
        );
    } else if first.node != entry.node {
        let place = problems.place(first.at);
        problems.at(entry.at, &entry.key, format!("already set to another value in {place}: keep one"));
    }
}

/// Unites two `gateway` maps; the same key with two values is an error.
fn merge(first: &mut Node, second: Node, path: &str, problems: &Problems) {
    match (&mut first.value, second.value) {
        (Value::Map(ours), Value::Map(theirs)) => {
            for entry in theirs {
                let path = format!("{path}.{}", entry.key);
                match ours.iter_mut().find(|known| known.key == entry.key) {
                    Some(known) => merge(&mut known.node, entry.node, &path, problems),
                    None => ours.push(entry),
                }
            }
        }
        (Value::Null, theirs) => *first = Node { value: theirs, at: second.at, ..first.clone() },
        (_, Value::Null) => {}
        (ours, theirs) if *ours == theirs => {}
        _ => {
            let place = problems.place(first.at);
            problems.at(second.at, path, format!("already set to another value in {place}: keep one"));
        }
    }
}

/// The folder of a file, for the paths that stand in it.
pub(crate) fn folder(file: &Path, working: &Path) -> PathBuf {
    let folder = file.parent().unwrap_or(Path::new(""));
    let joined = working.join(folder);
    // Without `.` and doubled slashes, for messages; links stay as they are.
    joined.components().collect()
}
