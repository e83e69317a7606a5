//! `reload` and SIGHUP: reads the config's files again, and applies what has changed and nothing else.

use std::{collections::BTreeMap, net::TcpListener, path::PathBuf, sync::Arc};

use tokio::task::JoinSet;

use super::{
    describe,
    plant::{Plant, Unit},
};
use crate::{
    admin::{Refused, Reloaded},
    config::{self, ChangedKeys, Config, ServerConfig},
    proxy::{self, Address},
    systemd,
    workers::{Reconfigured, ask},
};

/// Why workers are replaced.
const REASON: &str = "the config starts workers in another way";

/// Reads the files and applies what has changed. Everything is checked before anything is.
///
/// # Errors
/// The files are not valid, or a server does not agree; nothing has changed then.
pub(super) async fn reload(plant: Arc<Plant>) -> Result<Reloaded, Refused> {
    let _one = plant.changing.lock().await;
    systemd::reloading();
    let result = check(&plant).await.map(|config| apply(&plant, config));
    let word = match &result {
        Ok(reloaded) => {
            reloaded.changed.iter().for_each(|line| tracing::info!("reload: {line}"));
            reloaded.needs_restart.iter().for_each(|line| tracing::warn!("reload: not changed: {line}"));
            reloaded.failed.iter().for_each(|line| tracing::error!("reload: failed: {line}"));
            if *reloaded == Reloaded::default() {
                tracing::info!("reload: nothing has changed");
            }
            if reloaded.failed.is_empty() { "applied" } else { "failed" }
        }
        Err(refused) => {
            tracing::error!("reload: {refused}");
            "refused"
        }
    };
    plant.metrics.reloaded(word);
    if !plant.shared.stop.begun.is_cancelled() {
        systemd::ready(&plant.serving());
    }
    result
}

/// Reads the files, and asks the servers that are to be asked.
async fn check(plant: &Arc<Plant>) -> Result<Config, Refused> {
    let files = plant.files.clone().ok_or(Refused::NoFiles)?;
    let mut config = read(files).await?;
    let stop = plant.shared.stop.begun.clone();
    // Told to stop, it ends those that it asks first.
    let told = describe::settle_all(&mut config.servers, &plant.binary, &stop.child_token()).await;
    if stop.is_cancelled() {
        return Err(Refused::NotNow("stopping"));
    }
    told.map_err(|why| Refused::InvalidConfig(vec![why]))?;
    let refused = tokio::select! {
        biased;
        () = stop.cancelled() => return Err(Refused::NotNow("stopping")),
        refused = ask_all(plant, &config.servers) => refused,
    };
    if refused.is_empty() { Ok(config) } else { Err(Refused::InvalidConfig(refused)) }
}

/// Asks the servers that have not agreed yet to have as many workers. Returns what those said that do not.
async fn ask_all(plant: &Plant, servers: &[ServerConfig]) -> Vec<String> {
    let mut asked = JoinSet::new();
    for server in servers.iter().filter(|server| is_to_be_asked(plant, server)) {
        let (server, binary) = (server.clone(), plant.binary.clone());
        asked.spawn(async move { ask(&server, &binary).await.map_err(|error| error.to_string()) });
    }
    let mut refused = Vec::new();
    while let Some(answer) = asked.join_next().await {
        refused.extend(answer.map_err(|error| error.to_string()).and_then(|answer| answer.map(drop)).err());
    }
    refused
}

async fn read(files: Vec<PathBuf>) -> Result<Config, Refused> {
    let loaded = tokio::task::spawn_blocking(move || config::load(&files)).await;
    match loaded {
        Ok(Ok(config)) => Ok(config),
        Ok(Err(errors)) => Err(Refused::InvalidConfig(errors.0)),
        Err(error) => Err(Refused::InvalidConfig(vec![format!("the config could not be read: {error}")])),
    }
}

/// Whether it has not agreed yet to have as many workers.
fn is_to_be_asked(plant: &Plant, server: &ServerConfig) -> bool {
    let known = plant.units().iter().find(|unit| unit.state.name == server.name).map(|unit| unit.config());
    known.is_none_or(|known| known.most_workers() <= 1 || server.starts_otherwise(&known.started_as()))
}

/// Applies a config that was checked. Servers do not depend on each other: what cannot be done is said, and the rest goes on.
fn apply(plant: &Arc<Plant>, config: Config) -> Reloaded {
    let mut said = Reloaded::default();
    let (settings, keys) = plant.gateway.load().changed_to(&config.gateway);
    say_keys(&mut said, "gateway", &keys);
    plant.shared.budget.set_limit(settings.max_buffered_bytes);
    plant.shared.observer.set_access_log(settings.access_log);
    plant.gateway.store(Arc::new(settings));

    let mut before: BTreeMap<String, Arc<Unit>> =
        plant.units().iter().map(|unit| (unit.state.name.clone(), unit.clone())).collect();
    let mut after = Vec::new();
    // First, so that a server that is to listen where one of these does hears why it cannot.
    let stays = |name: &String| config.servers.iter().any(|server| server.name == *name);
    let gone: Vec<_> = before.extract_if(.., |name, _| !stays(name)).map(|(_, unit)| unit).collect();
    for unit in &gone {
        if !unit.state.removed.is_cancelled() {
            said.changed.push(remove(plant, unit.clone()));
        }
    }
    for server in config.servers {
        match before.remove(&server.name) {
            Some(unit) if unit.state.removed.is_cancelled() => {
                said.failed.push(format!(
                    "{}: the one that was removed still drains; reload again when it is gone",
                    server.name
                ));
                after.push(unit);
            }
            Some(unit) => {
                change(plant, &unit, &server, &mut said);
                after.push(unit);
            }
            None => match add(plant, server) {
                Ok((unit, line)) => {
                    said.changed.push(line);
                    after.push(unit);
                }
                Err(why) => said.failed.push(why),
            },
        }
    }
    after.extend(gone);
    plant.set_units(after);
    said
}

fn say_keys(said: &mut Reloaded, who: &str, keys: &ChangedKeys) {
    let ChangedKeys { at_once, after_restart } = keys;
    if !at_once.is_empty() {
        said.changed.push(format!("{who}: {} changed", at_once.join(", ")));
    }
    if !after_restart.is_empty() {
        let what = after_restart.join(", ");
        said.needs_restart.push(format!("{who}: {what}: needs a restart of the gateway"));
    }
}

/// A server that there was.
fn change(plant: &Plant, unit: &Unit, new: &ServerConfig, said: &mut Reloaded) {
    let (old, name) = (unit.config(), &new.name);
    if old.kind != new.kind || old.listen != new.listen {
        let key = if old.kind == new.kind { "host, port" } else { "its kind" };
        let what = "needs a restart of the gateway; nothing of this server was changed";
        return said.needs_restart.push(format!("{name}: {key}: {what}"));
    }
    let Some(supervisor) = unit.supervisor() else { return };
    let (settings, keys) = old.settings.changed_to(&new.settings);
    say_keys(said, name, &keys);
    if unit.state.set(settings.clone()) {
        let (state, now) = (unit.state.clone(), plant.shared.clock.now());
        // A second for each million of sessions.
        tokio::task::spawn_blocking(move || state.sessions.set_timers_anew(now));
    }
    let held = ServerConfig { settings, ..new.clone() };
    let gateway = plant.gateway.load();
    let Reconfigured { resized, rolls } =
        supervisor.reconfigure(&held, &gateway, ServerConfig::starts_otherwise, REASON);
    if old.num_workers != new.num_workers {
        let mut line = format!("{name}: num_workers {} -> {}", old.num_workers, new.num_workers);
        for (slots, what) in [(resized.added, "is started"), (resized.removed, "drains")] {
            let slots: Vec<_> = slots.iter().map(|slot| format!("slot {slot} {what}")).collect();
            line.push_str(&slots.iter().map(|text| format!(", {text}")).collect::<String>());
        }
        said.changed.push(line);
    }
    if rolls {
        said.changed.push(format!("{name}: {REASON}: a rolling restart has begun, see status"));
    }
}

/// A server that is new: its front is opened, its workers are started.
fn add(plant: &Arc<Plant>, server: ServerConfig) -> Result<(Arc<Unit>, String), String> {
    let listener = bind(plant, &server)?;
    let address = listener.local_addr().map_err(|error| format!("{}: {error}", server.name))?;
    let (name, num_workers) = (server.name.clone(), server.num_workers);
    let unit = plant.unit(server, true);
    plant.start_workers(&unit)?;
    let opener = plant.opener.get().ok_or("the gateway has no front")?;
    opener.open(Address { listener, server: unit.state.clone() });
    tracing::info!(server = name, kind = ?unit.config().kind, %address, "listening");
    tokio::spawn(tell_of_the_start(unit.clone()));
    Ok((unit, format!("{name}: added: listens on {address}, {num_workers} workers are started")))
}

fn bind(plant: &Plant, server: &ServerConfig) -> Result<TcpListener, String> {
    let units = plant.units();
    let has_it = |unit: &&Arc<Unit>| unit.config().listen.address == server.listen.address;
    proxy::bind(server).map_err(|error| match units.iter().find(has_it).map(|unit| &unit.state) {
        Some(own) if own.removed.is_cancelled() => {
            format!("{error} (the server {} was removed, and drains there until then)", own.name)
        }
        Some(own) => format!("{error} (the server {} of this gateway does)", own.name),
        None => error.to_string(),
    })
}

/// A failed start is said; the slots go on trying.
async fn tell_of_the_start(unit: Arc<Unit>) {
    let Some(supervisor) = unit.supervisor() else { return };
    match supervisor.started().await {
        Ok(()) => tracing::info!(server = unit.state.name, "ready"),
        Err(failure) => {
            tracing::error!(server = unit.state.name, "no worker of the added server has started: {failure}");
        }
    }
}

/// A server that is gone from the files: its sessions are kept until they are over, then its front is closed.
fn remove(plant: &Arc<Plant>, unit: Arc<Unit>) -> String {
    unit.state.removed.cancel();
    let line = format!(
        "{}: removed: no new sessions, its front closes when its workers have drained",
        unit.state.name
    );
    let plant = plant.clone();
    tokio::spawn(async move {
        if let Some(supervisor) = unit.supervisor() {
            supervisor.empty("the server was removed from the config").await;
        }
        unit.state.closed.cancel();
        if let Some(supervisor) = unit.supervisor() {
            supervisor.stop().await;
        }
        let _one = plant.changing.lock().await;
        let left = plant.units().iter().filter(|known| !Arc::ptr_eq(known, &unit)).cloned().collect();
        plant.set_units(left);
        tracing::info!(server = unit.state.name, "removed: its workers are gone and its front is closed");
    });
    line
}
