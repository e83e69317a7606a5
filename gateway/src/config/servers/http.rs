//! Servers of the gateway's own generic kind: their block takes every setting.

use super::{block::Block, finish, front, json};
use crate::config::{
    files::HTTP_KIND,
    keys::Place,
    launch,
    model::{Launch, ServerConfig},
    section::{Context, Section, Zero},
    settings,
};

/// A server of the gateway's own generic kind.
pub(crate) fn http(context: &Context<'_>, block: &Block<'_>) -> Option<ServerConfig> {
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
    let close_retry = section.seconds("session_close_retry_window_seconds", Zero::Allowed);
    let settings = settings::server(&section, close_retry);
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
