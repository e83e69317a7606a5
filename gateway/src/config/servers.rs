//! The server blocks: which of them are served, and how.

mod block;
mod gym;
mod near;
mod own;

use self::block::{Block, Taken, take_apart};
use super::{
    elastic,
    files::kinds,
    keys::nearest,
    listen,
    model::{Kind, Launch, Listen, ServerConfig, ServerSettings},
    section::{Context, Section},
    yaml::{Entry, Map, Node},
};

/// What the files hold.
#[derive(Default)]
pub(crate) struct Found {
    /// To be served.
    pub(crate) servers: Vec<ServerConfig>,
    /// Left to Gym.
    pub(crate) left_to_gym: Vec<String>,
}

/// Reads every server of the united tree. `own` is `gateway.servers`.
pub(crate) fn read(context: &Context<'_>, root: &Map, own: Option<&Node>) -> Found {
    let mut found = Found::default();
    let mut known = Vec::new();
    let global = std::cell::OnceCell::new();
    for entry in root.iter().filter(|entry| entry.key != "gateway") {
        let kinds = kinds(&entry.node);
        if kinds.is_empty() {
            // Else it would be one of Gym's own global values, and pass in silence.
            if near::complain(context, entry) {
                known.push(entry.key.as_str());
            }
            continue;
        }
        known.push(entry.key.as_str());
        let own = own.and_then(|own| own.get(&entry.key));
        match take_apart(context, entry, &kinds, own) {
            Taken::Block(block) if !block.kind.is_nemo_gym() => found.servers.extend(own::own(context, &block)),
            Taken::Block(block) => {
                let Some(section) = Section::any(context, block.node, &block.path()) else { continue };
                if !section.has("port") && own.is_none() {
                    found.left_to_gym.push(entry.key.clone());
                    continue;
                }
                let global = || global.get_or_init(|| global_config(context, root)).clone();
                found.servers.extend(gym::gym(context, &block, &section, global));
            }
            Taken::Gyms if own.is_none() => found.left_to_gym.push(entry.key.clone()),
            Taken::Gyms => context.problems.at(
                entry.at,
                &entry.key,
                "Gym composes this server from another (`_inherit_from` and the like), which the gateway does not: write its block out to have it served",
            ),
            Taken::Wrong => {}
        }
    }
    unknown_servers(context, own, &known);
    addresses(context, &found.servers);
    found
}

/// The front address and the number of workers.
fn front(section: &Section<'_>) -> Option<(Listen, u16)> {
    let host = section.text("host").unwrap_or_else(|| "127.0.0.1".into());
    let workers = if section.has("num_workers") { section.whole("num_workers", 1..=1024) } else { Some(1) };
    match section.misspelt("port", 2) {
        _ if section.has("port") => {}
        Some(key) => {
            section.complain_beside(key, "port", format!("missing; there is `{key}`: did you mean `port`?"));
        }
        None => section.complain("port", "missing: give the port of the front address, like 8000"),
    }
    let port = section.whole("port", 0..=65_535).and_then(|port| u16::try_from(port).ok())?;
    let key = if section.has("host") { "host" } else { "port" };
    match listen::host_port(&host, port) {
        Ok(listen) => Some((listen, workers.and_then(|n| u16::try_from(n).ok())?)),
        Err(why) => {
            section.complain(key, why);
            None
        }
    }
}

fn finish(
    context: &Context<'_>,
    block: &Block<'_>,
    front: Option<(Listen, u16)>,
    launch: Option<Launch>,
    settings: ServerSettings,
) -> Option<ServerConfig> {
    if block.name.is_empty()
        || block.name.len() > 128
        || block.name.contains(|c: char| c == '/' || c.is_control())
    {
        context.problems.at(
            block.entry.at,
            block.name,
            "a server's name has 1 to 128 bytes, no `/` and no control characters",
        );
    }
    let (listen, num_workers) = front?;
    let (most, key) = match settings.elastic.max_workers {
        Some(most) => (most, "max_workers"),
        None => (num_workers, "num_workers"),
    };
    if let Some(reason) =
        settings.multiple_workers_unsupported_reason.as_deref().filter(|reason| !reason.is_empty())
        && most > 1
    {
        let what = format!("{most} workers, but this server must have one: {reason}. Set {key}: 1");
        context.problems.at(block.entry.at, &format!("{}.{key}", block.path().join(".")), what);
    }
    if let Some((key, why)) = elastic::complaint(num_workers, &settings) {
        let key = format!("{}.{key}", block.path().join("."));
        context.problems.at(block.entry.at, &key, why);
    }
    let file = Some(block.file(context));
    Some(ServerConfig {
        name: block.name.into(),
        kind: block.kind,
        file,
        listen,
        num_workers,
        launch: launch?,
        settings,
    })
}

fn json(context: &Context<'_>, node: &Node, key: &str) -> Option<serde_json::Value> {
    node.to_json().map_err(|(at, why)| context.problems.at(at, key, why)).ok()
}

/// What NeMo Gym workers get: everything that is not the gateway's, as written.
fn global_config(context: &Context<'_>, root: &Map) -> serde_json::Value {
    let gyms = |entry: &&Entry| {
        let kinds = kinds(&entry.node);
        entry.key != "gateway" && (kinds.is_empty() || kinds.into_iter().any(Kind::is_nemo_gym))
    };
    let entries = root.iter().filter(gyms);
    let object =
        entries.filter_map(|entry| Some((entry.key.clone(), json(context, &entry.node, &entry.key)?)));
    serde_json::Value::Object(object.collect())
}

fn unknown_servers(context: &Context<'_>, own: Option<&Node>, known: &[&str]) {
    for entry in own.and_then(Node::map).into_iter().flatten() {
        if known.contains(&entry.key.as_str()) {
            continue;
        }
        let hint = match nearest(&entry.key, known.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None if known.is_empty() => "the files describe none".into(),
            None => format!("the files describe {}", known.join(", ")),
        };
        context.problems.at(
            entry.at,
            &format!("gateway.servers.{}", entry.key),
            format!("no such server: {hint}"),
        );
    }
}

fn addresses(context: &Context<'_>, servers: &[ServerConfig]) {
    for (index, server) in servers.iter().enumerate() {
        let taken =
            servers[..index].iter().find(|other| listen::clash(other.listen.address, server.listen.address));
        if let (Some(other), Some(file)) = (taken, &server.file) {
            context.problems.general(format!(
                "{}: {}: the address {} is also that of {} ({}): change one port",
                file.display(),
                server.name,
                server.listen.written,
                other.name,
                other.listen.written
            ));
        }
    }
}
