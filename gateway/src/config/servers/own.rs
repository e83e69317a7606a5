//! Servers of the gateway's own kinds: their block takes every setting.

use super::{block::Block, finish, front, json};
use crate::config::{
    keys::Place,
    launch,
    model::{Kind, Launch, ServerConfig},
    section::{Context, Section, Zero},
    settings,
};

/// A server of one of the gateway's own kinds.
pub(crate) fn own(context: &Context<'_>, block: &Block<'_>) -> Option<ServerConfig> {
    let kind_key = block.kind.key();
    if let Some(own) = block.own {
        let key = block.own_path().join(".");
        context.problems.at(
            own.at,
            &key,
            format!("an `{kind_key}` server takes its settings in its own block: move them there"),
        );
    }
    let section = Section::open(context, block.node, &block.path(), Place::Own)?;
    let front = front(&section);
    let close_retry = section.seconds("session_close_retry_window_seconds", Zero::Allowed);
    let settings = settings::server(&section, block.kind, close_retry);
    if block.kind != Kind::Generic && section.has("session_cookie") {
        section.complain(
            "session_cookie",
            format!("the protocol of `{kind_key}` names sessions without a cookie: leave it out"),
        );
    }
    let env = launch::environment(&section);
    let directory = launch::working_directory(&section, "working_directory");
    if !section.has("command") {
        section.complain(
            "command",
            "missing: give the program and its arguments, like [./server, \"{socket}\"]",
        );
    }
    let argv = launch::command(&section);
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
