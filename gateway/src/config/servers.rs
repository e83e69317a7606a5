//! The server blocks: which of them are served, and how.

use std::path::{Path, PathBuf};

use super::{
    files::{GYM_KINDS, HTTP_KIND, folder, kind_keys},
    keys::{Place, nearest},
    launch, listen,
    model::{Kind, Launch, Listen, ServerConfig, ServerSettings},
    section::{Context, Section, Zero},
    settings,
    yaml::{Entry, Map, Node, Value},
};

/// What the files hold.
#[derive(Default)]
pub(crate) struct Found {
    /// To be served.
    pub(crate) servers: Vec<ServerConfig>,
    /// Left to Gym.
    pub(crate) left_to_gym: Vec<String>,
}

/// One server's entry, taken apart.
struct Block<'a> {
    name: &'a str,
    kind: Kind,
    implementation: &'a str,
    node: &'a Node,
    /// The entry's own place.
    entry: &'a Entry,
    /// `gateway.servers.<name>`.
    own: Option<&'a Node>,
}

impl Block<'_> {
    fn path(&self) -> Vec<String> {
        [self.name, self.kind.key(), self.implementation].map(str::to_owned).to_vec()
    }

    fn own_path(&self) -> Vec<String> {
        ["gateway", "servers", self.name].map(str::to_owned).to_vec()
    }

    fn file(&self, context: &Context<'_>) -> PathBuf {
        context.problems.file(self.entry.at).cloned().unwrap_or_default()
    }
}

/// Reads every server of the united tree. `own` is `gateway.servers`.
pub(crate) fn read(context: &Context<'_>, root: &Map, own: Option<&Node>) -> Found {
    let mut found = Found::default();
    let mut known = Vec::new();
    let global = std::cell::OnceCell::new();
    for entry in root.iter().filter(|entry| entry.key != "gateway") {
        if kind_keys(&entry.node).is_empty() {
            continue;
        }
        known.push(entry.key.as_str());
        let own = own.and_then(|own| own.get(&entry.key));
        match take_apart(context, entry, own) {
            Taken::Block(block) if block.kind == Kind::Generic => found.servers.extend(http(context, &block)),
            Taken::Block(block) => {
                let Some(section) = Section::any(context, block.node, &block.path()) else { continue };
                if !section.has("port") && own.is_none() {
                    found.left_to_gym.push(entry.key.clone());
                    continue;
                }
                let global = || global.get_or_init(|| global_config(context, root)).clone();
                found.servers.extend(gym(context, &block, &section, global));
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

enum Taken<'a> {
    Block(Block<'a>),
    /// Gym's own composition.
    Gyms,
    Wrong,
}

fn take_apart<'a>(context: &Context<'_>, entry: &'a Entry, own: Option<&'a Node>) -> Taken<'a> {
    let wrong = |at, what: String| {
        context.problems.at(at, &entry.key, what);
        Taken::Wrong
    };
    let gyms = |map: &Map| map.iter().any(|entry| entry.key.starts_with('_'));
    let Some([kind_entry]) = entry.node.map().map(Vec::as_slice) else {
        let keys: Vec<_> = entry.node.map().into_iter().flatten().map(|entry| entry.key.as_str()).collect();
        if entry.node.map().is_some_and(gyms) {
            return Taken::Gyms;
        }
        return wrong(
            entry.at,
            format!(
                "expected one key, the server's kind, got {}: settings go into its implementation's block",
                keys.join(", ")
            ),
        );
    };
    let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.key() == kind_entry.key) else {
        return wrong(
            kind_entry.at,
            format!(
                "{}: this version does not serve that kind yet: it serves {}",
                kind_entry.key,
                Kind::ALL.map(Kind::key).join(", ")
            ),
        );
    };
    let shape = "{kind: {implementation: {...}}}";
    match kind_entry.node.map().map(Vec::as_slice) {
        Some([implementation])
            if matches!(implementation.node.value, Value::Map(_) | Value::Null | Value::Text(_)) =>
        {
            Taken::Block(Block {
                name: &entry.key,
                kind,
                implementation: &implementation.key,
                node: &implementation.node,
                entry,
                own,
            })
        }
        Some(_) if kind_entry.node.map().is_some_and(gyms) => Taken::Gyms,
        Some(map) => wrong(
            kind_entry.at,
            format!(
                "{}: expected one implementation with its block, {shape}, got {}",
                kind_entry.key,
                map.iter()
                    .map(|entry| format!("`{}`: {}", entry.key, entry.node.seen()))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        ),
        None => wrong(
            kind_entry.at,
            format!("{}: expected {shape}, got {}", kind_entry.key, kind_entry.node.seen()),
        ),
    }
}

/// A NeMo Gym server with a port, or named under `gateway.servers`.
fn gym(
    context: &Context<'_>,
    block: &Block<'_>,
    section: &Section<'_>,
    global: impl FnOnce() -> serde_json::Value,
) -> Option<ServerConfig> {
    let empty = Node::new(Value::Map(Map::new()), block.entry.at);
    let own = Section::open(context, block.own.unwrap_or(&empty), &block.own_path(), Place::Server)?;
    let front = front(section);
    let file = block.file(context);
    let beside = folder(&file, context.surroundings.directory());
    let close_retry = section.seconds("session_close_retry_window_seconds", Zero::Allowed);
    let settings = settings::server(&own, close_retry);
    let env = launch::environment(&own);
    let launch = if own.has("command") {
        if own.has("python") {
            own.complain("python", "stands beside `command`, which needs no interpreter: keep one of them");
        }
        let beside = context
            .problems
            .file(own.at())
            .map_or(beside, |file| folder(file, context.surroundings.directory()));
        let directory = launch::working_directory(&own, "directory", &beside);
        let argv = launch::command(context, &own, &beside);
        let server_config = block_config(context, block);
        Some(Launch::Command { argv: argv?, directory: directory?, env, server_config: server_config? })
    } else {
        let entrypoint = entrypoint(section);
        entrypoint.and_then(|entrypoint| {
            let server = (block.kind.key(), block.implementation, entrypoint.as_str());
            let script = launch::script(context, &own, server, &beside)?;
            Some(Launch::NemoGym {
                python: script.python,
                directory: script.directory,
                entrypoint: entrypoint.into(),
                kind_key: block.kind.key().into(),
                implementation: block.implementation.into(),
                global_config: global(),
                env,
            })
        })
    };
    finish(context, block, front, launch, settings)
}

fn entrypoint(section: &Section<'_>) -> Option<String> {
    if !section.has("entrypoint") {
        section.complain(
            "entrypoint",
            "missing: give the script, like app.py (or `gateway.servers.<name>.command`)",
        );
        return None;
    }
    let entrypoint = section.text("entrypoint")?;
    if Path::new(&entrypoint).is_absolute() {
        section.complain("entrypoint", format!("expected a path inside of the server's folder, got {entrypoint:?}: give its folder as `gateway.servers.<name>.directory`"));
        return None;
    }
    Some(entrypoint)
}

/// A server of the gateway's own generic kind.
fn http(context: &Context<'_>, block: &Block<'_>) -> Option<ServerConfig> {
    if let Some(own) = block.own {
        let key = block.own_path().join(".");
        context.problems.at(
            own.at,
            &key,
            format!("an `{HTTP_KIND}` server takes its settings in its own block: move them there"),
        );
    }
    let section = Section::open(context, block.node, &block.path(), Place::Http)?;
    let front = front(&section);
    let beside = folder(&block.file(context), context.surroundings.directory());
    let close_retry = section.seconds("session_close_retry_window_seconds", Zero::Allowed);
    let settings = settings::server(&section, close_retry);
    let env = launch::environment(&section);
    let directory = launch::working_directory(&section, "working_directory", &beside);
    if !section.has("command") {
        section.complain(
            "command",
            "missing: give the program and its arguments, like [./server, \"{socket}\"]",
        );
    }
    let argv = launch::command(context, &section, &beside);
    let server_config = match section.node("config") {
        Some(node) if node.map().is_some() => json(context, &node, "config"),
        Some(node) => {
            section.complain("config", format!("expected a map, got {}", node.seen()));
            None
        }
        None => Some(serde_json::json!({})),
    };
    let launch = argv.zip(directory).zip(server_config);
    let launch = launch.map(|((argv, directory), server_config)| Launch::Command {
        argv,
        directory,
        env,
        server_config,
    });
    finish(context, block, front, launch, settings)
}

/// The front address and the number of workers.
fn front(section: &Section<'_>) -> Option<(Listen, u16)> {
    let host = section.text("host").unwrap_or_else(|| "127.0.0.1".into());
    let workers = if section.has("num_workers") { section.whole("num_workers", 1..=1024) } else { Some(1) };
    if !section.has("port") {
        section.complain("port", "missing: give the port of the front address, like 8000");
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
    if let Some(reason) =
        settings.multiple_workers_unsupported_reason.as_deref().filter(|reason| !reason.is_empty())
        && num_workers > 1
    {
        let key = format!("{}.num_workers", block.path().join("."));
        context.problems.at(
            block.entry.at,
            &key,
            format!("{num_workers} workers, but this server must have one: {reason}. Set num_workers: 1"),
        );
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

/// A NeMo Gym server's own block as JSON, resolved: a worker that is not Gym's cannot resolve it.
fn block_config(context: &Context<'_>, block: &Block<'_>) -> Option<serde_json::Value> {
    let path = block.path();
    match context.resolver.deep(block.node, &path) {
        Ok(node) => json(context, &node, &path.join(".")),
        Err((at, why)) => {
            context.problems.at(at, &path.join("."), why);
            None
        }
    }
}

fn json(context: &Context<'_>, node: &Node, key: &str) -> Option<serde_json::Value> {
    node.to_json().map_err(|(at, why)| context.problems.at(at, key, why)).ok()
}

/// What NeMo Gym workers get: everything that is not the gateway's, as written.
fn global_config(context: &Context<'_>, root: &Map) -> serde_json::Value {
    let gyms = |entry: &&Entry| {
        let kinds = kind_keys(&entry.node);
        entry.key != "gateway" && (kinds.is_empty() || kinds.iter().any(|kind| GYM_KINDS.contains(kind)))
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
