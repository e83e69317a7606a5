//! The configuration: YAML files (or the command line of `run`) to validated types.
//!
//! The way of a value: `yaml` reads it with its line, `files` unites the files, `section` reads it with its type
//! and resolves what is interpolated, `settings`, `servers` and `launch` say what it means, `model` holds it.

mod changes;
mod command;
mod describe;
mod described;
mod elastic;
mod files;
mod interpolate;
mod keys;
mod launch;
mod limits;
mod listen;
mod model;
mod problems;
mod process;
mod protocol;
mod section;
mod servers;
mod settings;
mod surroundings;
mod yaml;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use changes::{ChangedKeys, StartedAs};
pub use command::{RunOptions, from_command};
pub use describe::describe;
pub use described::{Contradiction, Description};
pub use elastic::ElasticSettings;
pub use keys::{KeyDoc, Place, reference, reference_markdown};
pub use limits::WorkerLimits;
pub use model::{
    Config, ErrorList, GatewaySettings, Kind, Launch, LeftOpen, Listen, ServerConfig, ServerSettings,
};
pub(crate) use process::from_files;
pub use process::{CgroupSettings, LogFileSettings, ProcessSettings, User};
pub use protocol::Protocol;

use self::{
    interpolate::Resolver,
    problems::Problems,
    section::{Context, Section},
    surroundings::Surroundings,
    yaml::{Map, Node, Position, Value},
};

/// Reads and validates the files as one configuration.
///
/// # Errors
/// Everything that is wrong, each with its file, line and key, what was seen and what to do.
pub fn load(files: &[PathBuf]) -> Result<Config, ErrorList> {
    load_in(files, &Surroundings::real())
}

fn load_in(files: &[PathBuf], surroundings: &Surroundings) -> Result<Config, ErrorList> {
    if files.is_empty() {
        return Err(ErrorList(vec!["no config file given: name at least one".into()]));
    }
    let problems = Problems::new(files);
    let root = files::read(files, &problems);
    let config = {
        let context =
            Context { resolver: Resolver::new(&root, surroundings), problems: &problems, surroundings };
        config(&context, &root)
    };
    problems.finish(config)
}

fn config(context: &Context<'_>, root: &Node) -> Option<Config> {
    let empty = Node::new(Value::Map(Map::new()), Position { file: 0, line: 1 });
    let block = root.get("gateway").unwrap_or(&empty);
    let section = Section::open(context, block, &["gateway".into()], Place::Gateway)?;
    let gateway = settings::gateway(&section);
    let own = section.raw("servers").and_then(|(node, path)| {
        // Opened for its complaint; a map's children are read where the servers are.
        Section::any(context, node, &path)?;
        context.resolver.shallow(node, &path).ok()
    });
    let found = servers::read(context, root.map()?, own.as_ref().map(|found| &found.node));
    for server in &found.servers {
        if gateway.admin.is_some_and(|admin| listen::clash(admin, server.listen.address)) {
            section.complain(
                "admin",
                format!("is also the address of the server {}: change one port", server.name),
            );
        }
    }
    if found.servers.is_empty() && context.problems.is_empty() {
        context.problems.general(nothing_to_serve(context.problems.files(), &found.left_to_gym));
    }
    Some(Config { gateway, servers: found.servers, left_to_gym: found.left_to_gym })
}

fn nothing_to_serve(files: &[PathBuf], left_to_gym: &[String]) -> String {
    let files = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
    let hint = "a server is served if its block `{name: {kind: {implementation: {...}}}}` has a `port`";
    match left_to_gym {
        [] => format!("{files}: no server to serve, since none is described; {hint}"),
        names => format!(
            "{files}: no server to serve: {hint}; without one, and so left to Gym: {}",
            names.join(", ")
        ),
    }
}
