//! `run`: a configuration from the command line alone.

use std::{collections::BTreeMap, net::SocketAddr};

use super::{
    interpolate::Resolver,
    launch, listen,
    model::{Config, ErrorList, GatewaySettings, Kind, Launch, LeftOpen, ServerConfig, ServerSettings},
    problems::Problems,
    section::Context,
    surroundings::Surroundings,
    yaml::{Map, Node, Position, Value},
};

/// What `run` was told.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The protocol; `None`: what the server says if it is asked to describe itself, else generic.
    pub kind: Option<Kind>,
    /// The front address: `127.0.0.1:8000`, `[::1]:0`, `localhost:8000`.
    pub listen: String,
    /// How many workers: 1 to 1024.
    pub num_workers: u32,
    /// Name of the session cookie; `None`: the kind's own way (generic: no sessions).
    pub cookie: Option<String>,
    /// Key that signs the session cookie; `None`: the cookie's name.
    pub session_secret: Option<String>,
    /// The admin address; `None` switches it off.
    pub admin: Option<SocketAddr>,
    /// The server's name in logs and metrics; `None`: `server`.
    pub name: Option<String>,
    /// Program and arguments of a worker; `{socket}` and `{port}` are replaced.
    pub argv: Vec<String>,
    /// The command is asked to describe itself before it is started.
    pub describe: bool,
    /// One log line per request.
    pub access_log: bool,
}

/// Makes a configuration with one server from the command line.
///
/// # Errors
/// Everything that is wrong, each with the option's name.
pub fn from_command(options: RunOptions) -> Result<Config, ErrorList> {
    from_command_in(options, &Surroundings::real())
}

pub(crate) fn from_command_in(options: RunOptions, surroundings: &Surroundings) -> Result<Config, ErrorList> {
    let problems = Problems::new(&[]);
    let config = {
        let root = Node::new(Value::Map(Map::new()), Position::default());
        let context =
            Context { resolver: Resolver::new(&root, surroundings), problems: &problems, surroundings };
        config(options, &context)
    };
    problems.finish(config)
}

fn config(options: RunOptions, context: &Context<'_>) -> Option<Config> {
    let note = |option: &str, why: String| context.problems.general(format!("{option}: {why}"));
    let listen = listen::parse(&options.listen).map_err(|why| note("--listen", why)).ok();
    let num_workers = u16::try_from(options.num_workers).ok().filter(|n| (1..=1024).contains(n));
    if num_workers.is_none() {
        note("--num-workers", format!("expected a whole number from 1 to 1024, got {}", options.num_workers));
    }
    let directory = context.surroundings.directory().to_owned();
    let argv = launch::program(context.surroundings, &options.argv, &directory)
        .map_err(|why| note("command", why))
        .ok();
    if let Some(cookie) = options.cookie.as_deref().filter(|cookie| !super::settings::is_cookie_name(cookie))
    {
        note("--cookie", format!("{cookie:?} cannot be a cookie's name"));
    }
    let listen = listen?;
    if options.admin.is_some_and(|admin| listen::clash(admin, listen.address)) {
        note("--admin", format!("is the front address {} too: change one port", listen.written));
    }
    let left_open = LeftOpen {
        kind: options.kind.is_none(),
        session_start_routes: true,
        session_end_routes: true,
        routes_sessions_to_owner: true,
    };
    let kind = options.kind.unwrap_or(Kind::Generic);
    let settings = ServerSettings {
        describe: options.describe.then_some(left_open),
        session_cookie: options.cookie,
        session_secret: options.session_secret,
        ..ServerSettings::of(kind)
    };
    let server = ServerConfig {
        name: options.name.unwrap_or_else(|| "server".into()),
        kind,
        file: None,
        listen,
        num_workers: num_workers?,
        launch: Launch::Command {
            argv: argv?,
            directory,
            env: BTreeMap::new(),
            server_config: serde_json::json!({}),
        },
        settings,
    };
    let gateway = GatewaySettings {
        admin: options.admin,
        access_log: options.access_log,
        ..GatewaySettings::default()
    };
    Some(Config { gateway, servers: vec![server], left_to_gym: Vec::new() })
}
