//! `${a.b}`, `${.sibling}`, `${oc.env:NAME}` and `${oc.env:NAME,default}`, as OmegaConf resolves them.

use std::borrow::Cow;

use super::{
    surroundings::Surroundings,
    yaml::{Node, Position, Value, plain},
};

/// How deep interpolations may lead into one another; a cycle is found before this in any real file.
const DEEPEST: usize = 64;
/// The most values that one setting may have once resolved: a few maps that hold each other twice make billions.
const MOST_NODES: usize = 100_000;

/// The united tree of all files, in which interpolations are looked up.
pub(crate) struct Resolver<'a> {
    root: &'a Node,
    surroundings: &'a Surroundings,
}

/// A value without interpolation at its top, and the keys that lead to where it really stands.
pub(crate) struct Found {
    /// The value; a map's or list's children are as written.
    pub(crate) node: Node,
    /// Where relative interpolations below it start from.
    pub(crate) path: Vec<String>,
}

impl<'a> Resolver<'a> {
    /// Looks interpolations up in `root`, and variables in `surroundings`.
    pub(crate) fn new(root: &'a Node, surroundings: &'a Surroundings) -> Self {
        Self { root, surroundings }
    }

    /// Resolves `node`, which stands at `path`; its children stay as written.
    pub(crate) fn shallow(&self, node: &Node, path: &[String]) -> Result<Found, String> {
        self.follow(node, path, &mut Vec::new())
    }

    /// Resolves `node` and everything below it.
    pub(crate) fn deep(&self, node: &Node, path: &[String]) -> Result<Node, (Position, String)> {
        let mut left = MOST_NODES;
        self.descend(node, path, 0, &mut left)
    }

    fn descend(
        &self,
        node: &Node,
        path: &[String],
        depth: usize,
        left: &mut usize,
    ) -> Result<Node, (Position, String)> {
        *left = left.saturating_sub(1);
        if depth > 2 * DEEPEST || *left == 0 {
            return Err((node.at, "interpolations that contain themselves, or each other too often".into()));
        }
        let found = self.shallow(node, path).map_err(|why| (node.at, why))?;
        let mut whole = found.node;
        match &mut whole.value {
            Value::Map(map) => {
                for entry in map {
                    let path = [found.path.as_slice(), std::slice::from_ref(&entry.key)].concat();
                    entry.node = self.descend(&entry.node, &path, depth + 1, left)?;
                }
            }
            Value::List(list) => {
                for (index, item) in list.iter_mut().enumerate() {
                    let path = [found.path.as_slice(), &[index.to_string()]].concat();
                    *item = self.descend(item, &path, depth + 1, left)?;
                }
            }
            _ => {}
        }
        Ok(whole)
    }

    fn follow(&self, node: &Node, path: &[String], trail: &mut Vec<String>) -> Result<Found, String> {
        let text = match &node.value {
            Value::Text(text) if text.contains("${") => text,
            _ => return Ok(Found { node: node.clone(), path: path.to_vec() }),
        };
        let here = path.join(".");
        if trail.contains(&here) {
            return Err(format!("interpolations in a circle: {} → {here}", trail.join(" → ")));
        }
        if trail.len() >= DEEPEST {
            return Err(format!("more than {DEEPEST} interpolations lead into one another"));
        }
        trail.push(here);
        let mut found = self.text(text, path, trail)?;
        trail.pop();
        found.node.at = node.at;
        found.node.interpolated = true;
        Ok(found)
    }

    /// Resolves a text with interpolations in it. One that is nothing but an interpolation keeps the type it finds.
    fn text(&self, text: &str, path: &[String], trail: &mut Vec<String>) -> Result<Found, String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let (before, inside) = (&rest[..at], &rest[at + 2..]);
            // `\${` is a plain `${`; `\\${` is a backslash and an interpolation.
            let slashes = before.len() - before.trim_end_matches('\\').len();
            out.push_str(&before[..before.len() - slashes.div_ceil(2)]);
            if slashes % 2 == 1 {
                out.push_str("${");
                rest = inside;
                continue;
            }
            let end = closing(inside).ok_or_else(|| format!("`${{` without its `}}` in {text:?}"))?;
            let found = self.expression(&inside[..end], path, trail)?;
            rest = &inside[end + 1..];
            if at == 0 && out.is_empty() && rest.is_empty() {
                return Ok(found);
            }
            out.push_str(&as_text(&found.node, &inside[..end])?);
        }
        out.push_str(rest);
        Ok(Found { node: Node::new(Value::Text(out), Position::default()), path: path.to_vec() })
    }

    /// What stands between `${` and `}`.
    fn expression(&self, inside: &str, path: &[String], trail: &mut Vec<String>) -> Result<Found, String> {
        let inner = self.text(inside, path, trail)?;
        let inner = as_text(&inner.node, inside)?;
        match inner.split_once(':') {
            Some(("oc.env", arguments)) => self.variable(arguments, path),
            Some((name, _)) => Err(format!(
                "`${{{inside}}}`: the gateway does not know the resolver `{name}` (it knows `${{a.b}}` and `${{oc.env:NAME,default}}`): write the value out"
            )),
            None => self.reference(inner.trim(), path, trail),
        }
    }

    fn variable(&self, arguments: &str, path: &[String]) -> Result<Found, String> {
        let (name, default) = match arguments.split_once(',') {
            Some((name, default)) => (name.trim(), Some(unquoted(default.trim()))),
            None => (arguments.trim(), None),
        };
        let value = match (self.surroundings.variable(name), default) {
            (Some(value), _) => Value::Text(value),
            (None, Some("null")) => Value::Null,
            (None, Some(default)) => Value::Text(default.into()),
            (None, None) => {
                return Err(format!(
                    "the environment variable {name} is not set: set it, or write `${{oc.env:{name},default}}`"
                ));
            }
        };
        Ok(Found { node: Node::new(value, Position::default()), path: path.to_vec() })
    }

    /// `a.b`, `a[0]`, `.sibling`, `..uncle`.
    fn reference(&self, written: &str, path: &[String], trail: &mut Vec<String>) -> Result<Found, String> {
        let dots = written.len() - written.trim_start_matches('.').len();
        if dots > path.len() {
            return Err(format!("`${{{written}}}` leads above the top of the file"));
        }
        let mut keys: Vec<String> = if dots > 0 { path[..path.len() - dots].to_vec() } else { Vec::new() };
        let names = written[dots..].replace('[', ".").replace(']', "");
        keys.extend(names.split('.').filter(|key| !key.is_empty()).map(str::to_owned));
        let mut node = Cow::Borrowed(self.root);
        let mut path = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            let child = match &node {
                Cow::Borrowed(node) => child(node, key).map(Cow::Borrowed),
                Cow::Owned(node) => child(node, key).cloned().map(Cow::Owned),
            };
            node = child.ok_or_else(|| {
                format!("`${{{written}}}` names `{}`, which does not exist", keys[..=index].join("."))
            })?;
            path.push(key.clone());
            if matches!(&node.value, Value::Text(_)) {
                let found = self.follow(&node, &path, trail)?;
                (node, path) = (Cow::Owned(found.node), found.path);
            }
        }
        let found = Found { node: node.into_owned(), path };
        match &found.node.value {
            Value::Text(text) if text == "???" => {
                Err(format!("`${{{written}}}` names a value that is still to be given (`???`): give it"))
            }
            _ => Ok(found),
        }
    }
}

fn child<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    match &node.value {
        Value::List(list) => list.get(key.parse::<usize>().ok()?),
        _ => node.get(key),
    }
}

/// Where the `}` of an expression stands, past the ones inside.
fn closing(inside: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn unquoted(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

/// A value inside of a longer text, as Python's `str` writes it.
fn as_text(node: &Node, expression: &str) -> Result<String, String> {
    match &node.value {
        Value::Text(text) => Ok(text.clone()),
        Value::Null => Ok("None".into()),
        Value::Bool(true) => Ok("True".into()),
        Value::Bool(false) => Ok("False".into()),
        Value::Whole(value) => Ok(value.to_string()),
        Value::Float(value) => Ok(format!("{value:?}")),
        Value::List(_) | Value::Map(_) => {
            Err(format!("`${{{expression}}}` stands inside of a text but is {}", node.seen()))
        }
    }
}

/// A value that came out of an interpolation as text may stand for a number or a truth value.
pub(crate) fn reread(node: Node) -> Node {
    match &node.value {
        Value::Text(text) if node.interpolated => Node { value: plain(text), ..node },
        _ => node,
    }
}
