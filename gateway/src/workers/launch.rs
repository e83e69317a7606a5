//! From a server's config to the command of one of its workers.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use super::{
    address::{Places, ReservedPort},
    conditions,
};
use crate::{
    config::{Launch, ServerConfig},
    keeper::{StartSpec, original_nofile},
    worker_id::WorkerId,
};

/// The argument with which a command is asked what it is.
pub(crate) const DESCRIBE: &str = "--describe";

/// A worker's command, and where it was told to listen.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) spec: StartSpec,
    pub(crate) places: Places,
}

/// What a server's own config says besides the address: for a worker, or for the dry run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GymRun {
    pub(crate) num_workers: u16,
    pub(crate) dry_run: bool,
}

/// Plans a worker. `socket` is where its Unix socket would be.
///
/// # Errors
/// No free port; a path that is not UTF-8; a config without the server's block; a file with variables that cannot be read;
/// a cgroup that cannot be had.
pub(crate) fn plan(server: &ServerConfig, id: WorkerId, socket: PathBuf) -> io::Result<Plan> {
    let mut plan = match &server.launch {
        Launch::NemoGym { .. } => plan_gym(server, GymRun { num_workers: 1, dry_run: false })?,
        Launch::Command { .. } => plan_command(server, socket)?,
    };
    let settings = &server.settings.process;
    plan.spec.conditions.cgroup =
        conditions::own_cgroup(settings, &server.name, id).map_err(io::Error::other)?;
    plan.spec.env.extend(server_env(server));
    plan.spec.env.extend([
        ("GYM_WORKER_SLOT".into(), id.slot.to_string()),
        ("GYM_WORKER_GENERATION".into(), id.generation.to_string()),
    ]);
    Ok(plan)
}

/// Plans the question to a command what it is.
///
/// # Errors
/// A path that is not UTF-8; the server has no command.
pub(crate) fn plan_describe(server: &ServerConfig) -> io::Result<StartSpec> {
    // An argument that wants a number gets one. A server that does not know the question and listens after all fails at
    // once on that socket.
    let mut spec = fill_command(server, Some("/dev/null/nowhere"), Some("0"))?;
    spec.env.extend(server_env(server));
    spec.argv.push(DESCRIBE.into());
    Ok(spec)
}

/// What every process of a server is told.
fn server_env(server: &ServerConfig) -> [(String, String); 2] {
    [
        ("GYM_NUM_WORKERS".into(), server.num_workers.to_string()),
        ("GYM_SERVER_NAME".into(), server.name.clone()),
    ]
}

/// Plans an unmodified NeMo Gym server's process.
///
/// # Errors
/// As [`plan`]; also if the server is none.
pub(crate) fn plan_gym(server: &ServerConfig, run: GymRun) -> io::Result<Plan> {
    let Launch::NemoGym { python, directory, entrypoint, kind_key, implementation, global_config, env: own } =
        &server.launch
    else {
        return Err(io::Error::other(format!("server {} is not a NeMo Gym server", server.name)));
    };
    let port = ReservedPort::new()?;
    let mut config = global_config.clone();
    let block = config
        .get_mut(&server.name)
        .and_then(|instance| instance.get_mut(kind_key))
        .and_then(|kind| kind.get_mut(implementation))
        .and_then(Value::as_object_mut)
        .ok_or_else(|| {
            io::Error::other(format!("no {}.{kind_key}.{implementation} in the config", server.name))
        })?;
    block.insert("host".into(), json!("127.0.0.1"));
    block.insert("port".into(), json!(port.address.port()));
    block.insert("num_workers".into(), json!(run.num_workers));
    if let Some(top) = config.as_object_mut() {
        complete(top, run.dry_run);
    }
    let env = [
        ("NEMO_GYM_CONFIG_DICT", config.to_string()),
        ("NEMO_GYM_CONFIG_PATH", server.name.clone()),
        ("PYTHONUNBUFFERED", "1".into()),
    ];
    let mut spec = StartSpec {
        argv: vec![utf8(python)?, utf8(entrypoint)?],
        directory: utf8(directory)?,
        env: own.clone().into_iter().chain(env.map(|(name, value)| (name.into(), value))).collect(),
        nofile: original_nofile(),
        conditions: Box::default(),
        socket: None,
    };
    conditions::apply(&server.settings.process, &mut spec)?;
    Ok(Plan { spec, places: Places { socket: None, port: Some(port) } })
}

/// What Gym's own launcher adds to a config, and its servers do not start without.
fn complete(top: &mut Map<String, Value>, dry_run: bool) {
    top.entry("head_server").or_insert_with(|| json!({"host": "127.0.0.1", "port": 11000}));
    top.entry("default_host").or_insert_with(|| json!("127.0.0.1"));
    if dry_run {
        top.insert("dry_run".into(), json!(true));
    } else {
        top.entry("dry_run").or_insert_with(|| json!(false));
    }
}

fn plan_command(server: &ServerConfig, socket: PathBuf) -> io::Result<Plan> {
    let Launch::Command { argv, env, .. } = &server.launch else {
        return Err(io::Error::other(format!("server {} has no command", server.name)));
    };
    let named = |placeholder: &str| argv.iter().chain(env.values()).any(|text| text.contains(placeholder));
    // Told neither way, a worker goes by its environment, and may choose.
    let either = !named("{port}") && !named("{socket}");
    let port = if either || named("{port}") { Some(ReservedPort::new()?) } else { None };
    let socket = (either || named("{socket}")).then_some(socket);
    let socket_text = socket.as_deref().map(utf8).transpose()?;
    let port_text = port.as_ref().map(|port| port.address.port().to_string());
    let mut spec = fill_command(server, socket_text.as_deref(), port_text.as_deref())?;
    spec.env.extend(socket_text.iter().map(|text| ("GYM_WORKER_SOCKET".into(), text.clone())));
    spec.env.extend(port_text.map(|text| ("PORT".into(), text)));
    spec.socket = socket_text;
    Ok(Plan { spec, places: Places { socket, port } })
}

/// A server's command with these in the places of `{socket}` and `{port}`.
fn fill_command(server: &ServerConfig, socket: Option<&str>, port: Option<&str>) -> io::Result<StartSpec> {
    let Launch::Command { argv, directory, env, server_config } = &server.launch else {
        return Err(io::Error::other(format!("server {} has no command", server.name)));
    };
    let fill = |text: &String| {
        let text = text.replace("{socket}", socket.unwrap_or_default());
        text.replace("{port}", port.unwrap_or_default())
    };
    let mut all: Vec<(String, String)> =
        env.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
    all.push(("GYM_SERVER_CONFIG".into(), server_config.to_string()));
    // In the environment, for a command line can be read by everyone on the machine.
    all.extend(server.settings.session_secret.clone().map(|secret| ("GYM_SESSION_SECRET".into(), secret)));
    let mut spec = StartSpec {
        argv: argv.iter().map(fill).collect(),
        directory: utf8(directory)?,
        env: all,
        nofile: original_nofile(),
        conditions: Box::default(),
        socket: None,
    };
    conditions::apply(&server.settings.process, &mut spec)?;
    Ok(spec)
}

fn utf8(path: &Path) -> io::Result<String> {
    let text = path.to_str().ok_or_else(|| io::Error::other(format!("{}: not UTF-8", path.display())))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests;
