//! The parser's events to a tree: anchors, merge keys and duplicate keys.

use std::{borrow::Cow, collections::HashMap};

use granit_parser::{Event, Parser, ScalarStyle, Span, StrInput, Tag, options};

use super::{Entry, Map, Node, Position, Value, plain};

/// The most values that one file may have once its aliases are followed: a few nested aliases make billions.
const MOST_NODES: usize = 1_000_000;

/// A fault of the file: where and what.
pub(crate) type Fault = (Position, String);

/// Reads the one document of `text`, the `file`th of the given files. An empty file is an empty map.
///
/// # Errors
/// Bad YAML, a repeated key (both places are named), several documents, an unknown tag or alias.
pub(crate) fn parse(text: &str, file: usize) -> Result<Node, Fault> {
    let parser = Parser::new_from_str_with_options(text, options! { emit_comments: false });
    let mut builder = Builder { parser, file, anchors: HashMap::new(), nodes: 0 };
    builder.document()
}

struct Builder<'a> {
    parser: Parser<'a, StrInput<'a>>,
    file: usize,
    anchors: HashMap<usize, Node>,
    nodes: usize,
}

impl<'a> Builder<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Position), Fault> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, self.at(&span))),
            Some(Err(error)) => {
                let at = Position { file: self.file, line: error.marker().line() };
                Err((at, format!("not valid YAML: {} (column {})", error.info(), error.marker().col() + 1)))
            }
            None => Ok((Event::StreamEnd, Position { file: self.file, line: 1 })),
        }
    }

    fn at(&self, span: &Span) -> Position {
        Position { file: self.file, line: span.start.line() }
    }

    fn document(&mut self) -> Result<Node, Fault> {
        let mut root = None;
        loop {
            let (event, at) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentEnd => {}
                Event::StreamEnd => break,
                Event::DocumentStart(..) if root.is_some() => {
                    return Err((at, "a second YAML document: keep one document in a file".into()));
                }
                Event::DocumentStart(..) => {
                    let (event, at) = self.next()?;
                    root = Some(self.node(event, at)?);
                }
                other => return Err((at, format!("unexpected {other:?}"))),
            }
        }
        let empty = Node::new(Value::Map(Map::new()), Position { file: self.file, line: 1 });
        Ok(root.filter(|node| node.value != Value::Null).unwrap_or(empty))
    }

    fn node(&mut self, event: Event<'a>, at: Position) -> Result<Node, Fault> {
        self.count(1, at)?;
        let (anchor, node) = match event {
            Event::Scalar(text, style, anchor, tag) => (anchor, scalar(text, style, tag.as_deref(), at)?),
            Event::SequenceStart(_, anchor, tag) => {
                known_tag(tag.as_deref(), "seq", at)?;
                (anchor, Node::new(Value::List(self.list()?), at))
            }
            Event::MappingStart(_, anchor, tag) => {
                known_tag(tag.as_deref(), "map", at)?;
                (anchor, Node::new(Value::Map(self.mapping()?), at))
            }
            Event::Alias(id) => {
                let node = self.anchors.get(&id).cloned();
                let node = node
                    .ok_or((at, "an alias inside of what it stands for: write the value out".to_owned()))?;
                self.count(size(&node), at)?;
                (0, node)
            }
            other => return Err((at, format!("unexpected {other:?}"))),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn count(&mut self, nodes: usize, at: Position) -> Result<(), Fault> {
        self.nodes += nodes;
        if self.nodes > MOST_NODES {
            return Err((at, format!("more than {MOST_NODES} values, aliases followed: write less")));
        }
        Ok(())
    }

    fn list(&mut self) -> Result<Vec<Node>, Fault> {
        let mut list = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(list),
                (event, at) => list.push(self.node(event, at)?),
            }
        }
    }

    fn mapping(&mut self) -> Result<Map, Fault> {
        let (mut map, mut merged) = (Map::new(), Map::new());
        let mut places: HashMap<String, Position> = HashMap::new();
        loop {
            let (event, at) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            let key = key(self.node(event, at)?)?;
            let (event, value_at) = self.next()?;
            let node = self.node(event, value_at)?;
            if merge {
                merged.extend(merge_sources(node)?);
                continue;
            }
            if let Some(first) = places.insert(key.clone(), at) {
                return Err((
                    at,
                    format!("the key `{key}` stands twice, here and in line {}: keep one", first.line),
                ));
            }
            map.push(Entry { key, at, node });
        }
        // As PyYAML: own keys win, then the earlier source.
        for entry in merged {
            if !map.iter().any(|own| own.key == entry.key) {
                map.push(entry);
            }
        }
        Ok(map)
    }
}

fn size(node: &Node) -> usize {
    1 + match &node.value {
        Value::List(list) => list.iter().map(size).sum(),
        Value::Map(map) => map.iter().map(|entry| size(&entry.node)).sum(),
        _ => 0,
    }
}

fn merge_sources(node: Node) -> Result<Map, Fault> {
    match node.value {
        Value::Map(map) => Ok(map),
        Value::List(list) => {
            list.into_iter().map(merge_sources).collect::<Result<Vec<_>, _>>().map(|m| m.concat())
        }
        _ => Err((node.at, format!("`<<` takes a map or a list of maps, got {}", node.seen()))),
    }
}

/// A key as JSON writes it: workers get their config as JSON, whose keys are text.
fn key(node: Node) -> Result<String, Fault> {
    match node.value {
        Value::Text(text) => Ok(text),
        Value::Null => Ok("null".into()),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Whole(value) => Ok(value.to_string()),
        Value::Float(value) => Ok(value.to_string()),
        _ => Err((node.at, format!("a key must be text, got {}", node.seen()))),
    }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>, at: Position) -> Result<Node, Fault> {
    let value = match tag.map(short) {
        None if style == ScalarStyle::Plain => plain(&text),
        None => Value::Text(text.to_string()),
        Some(tag) => tagged(&tag, &text)
            .ok_or_else(|| (at, format!("{text:?} with the tag `{tag}`: not supported")))?,
    };
    let written = (style == ScalarStyle::Plain).then(|| text.into_owned());
    Ok(Node { written, ..Node::new(value, at) })
}

/// A scalar with a standard tag of YAML.
fn tagged(tag: &str, text: &str) -> Option<Value> {
    match (tag, plain(text)) {
        ("!!str", _) => Some(Value::Text(text.into())),
        // PyYAML looks past the tag that says nothing.
        ("!", value) => Some(value),
        ("!!null", _) => Some(Value::Null),
        ("!!bool", value @ Value::Bool(_)) | ("!!int", value @ Value::Whole(_)) => Some(value),
        ("!!float", Value::Whole(value)) => Some(Value::Float(value as f64)),
        ("!!float", value @ Value::Float(_)) => Some(value),
        _ => None,
    }
}

fn known_tag(tag: Option<&Tag>, expected: &str, at: Position) -> Result<(), Fault> {
    match tag.map(short) {
        Some(tag) if tag != format!("!!{expected}") => {
            Err((at, format!("the tag `{tag}` is not supported here")))
        }
        _ => Ok(()),
    }
}

/// `!!str` for `tag:yaml.org,2002:str`.
fn short(tag: &Tag) -> String {
    format!("{}{}", tag.handle(), tag.suffix()).replace("tag:yaml.org,2002:", "!!")
}
