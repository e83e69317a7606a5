//! NeMo Gym servers: five keys of their block are read, the rest is Gym's.

use std::path::Path;

use super::{block::Block, finish, front, json};
use crate::config::{
    keys::Place,
    launch::{self, Script},
    model::{Kind, Launch, ServerConfig},
    section::{Context, Section, Zero},
    settings,
    yaml::{Map, Node, Value},
};

/// A NeMo Gym server with a port, or named under `gateway.servers`.
pub(crate) fn gym(
    context: &Context<'_>,
    block: &Block<'_>,
    section: &Section<'_>,
    global: impl FnOnce() -> serde_json::Value,
) -> Option<ServerConfig> {
    let empty = Node::new(Value::Map(Map::new()), block.entry.at);
    let own = Section::open(context, block.own.unwrap_or(&empty), &block.own_path(), Place::Server)?;
    if !section.has("num_workers")
        && let Some(key) = section.misspelt("num_workers", 1)
    {
        section.complain(key, "unknown key: did you mean `num_workers`?");
    }
    let front = front(section);
    let close_retry = section.seconds("session_close_retry_window_seconds", Zero::Allowed);
    let settings = settings::server(&own, block.kind, close_retry);
    if own.has("protocol") && block.kind != Kind::Resources {
        own.complain(
            "protocol",
            format!("only servers under `resources_servers` have a choice of protocols, and this one is of kind {}: leave it out", block.kind),
        );
    }
    let launch = if own.has("command") {
        other_program(context, block, &own)
    } else {
        unmodified(context, block, section, &own, global)
    };
    finish(context, block, front, launch, settings)
}

/// A server that is not Gym's own script, such as one in Rust.
fn other_program(context: &Context<'_>, block: &Block<'_>, own: &Section<'_>) -> Option<Launch> {
    if own.has("python") {
        own.complain("python", "stands beside `command`, which needs no interpreter: keep one of them");
    }
    let env = launch::environment(own);
    let directory = launch::working_directory(own, "directory");
    let argv = launch::command(own);
    let server_config = block_config(context, block);
    Some(Launch::Command { argv: argv?, directory: directory?, env, server_config: server_config? })
}

fn unmodified(
    context: &Context<'_>,
    block: &Block<'_>,
    section: &Section<'_>,
    own: &Section<'_>,
    global: impl FnOnce() -> serde_json::Value,
) -> Option<Launch> {
    let env = launch::environment(own);
    let entrypoint = entrypoint(section)?;
    let relative = Path::new(block.kind.key()).join(block.implementation);
    let Script { python, directory } = launch::script(own, &relative, &entrypoint, &block.folder(context))?;
    Some(Launch::NemoGym {
        python,
        directory,
        entrypoint: entrypoint.into(),
        kind_key: block.kind.key().into(),
        implementation: block.implementation.into(),
        global_config: global(),
        env,
    })
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
        section.complain(
            "entrypoint",
            format!(
                "expected a path inside of the server's folder, got {entrypoint:?}: give its folder as `gateway.servers.<name>.directory`"
            ),
        );
        return None;
    }
    Some(entrypoint)
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
