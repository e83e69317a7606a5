//! The commands `drain`, `restart` and `reload`: have something done, and tell how it goes.

use std::{
    thread::sleep,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::json;

use super::{
    client::{self, ClientError},
    control::Reloaded,
    show,
    snapshot::{RollSnapshot, ServerSnapshot, WorkerSnapshot, WorkerState},
    text::duration,
};

/// How often one who waits looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often it looks for the beginning.
const PATIENT_LOOKS: u32 = 20;

/// Where to say something, and whether to wait for the end of it.
pub struct Waiting<'a> {
    /// The gateway's admin address.
    pub admin: &'a str,
    /// The gateway's answer as JSON, at once.
    pub json: bool,
    /// Wait until it is done, telling `tell` how it goes.
    pub wait: bool,
    /// Hears a line whenever something has changed.
    pub tell: &'a mut dyn FnMut(&str),
}

impl Waiting<'_> {
    /// Tells a line if it is another one than the last.
    fn tell_once(&mut self, last: &mut String, line: String) {
        if *last != line {
            (self.tell)(&line);
            *last = line;
        }
    }
}

/// Lets a slot's worker drain, and waits until the slot is empty. Returns what is left to say.
///
/// # Errors
/// Nothing answers, or not a gateway; no such slot; the slot was filled again meanwhile.
pub fn drain(mut waiting: Waiting<'_>, server: &str, slot: u16) -> Result<String, ClientError> {
    let admin = waiting.admin;
    let answer = client::order(admin, "/drain", &json!({"server": server, "slot": slot}), TIMEOUT)?;
    if waiting.json {
        return client::pretty(admin, &answer);
    }
    if !waiting.wait {
        return Ok(format!("{server}/{slot} drains; see status"));
    }
    let (mut last, mut looks) = (String::new(), 0);
    loop {
        looks += 1;
        // A server that was taken out of the config, or a slot that it needs no more, is gone when it is empty.
        let found = client::look(admin)?.servers.into_iter().find(|known| known.name == server);
        let worker = found.into_iter().flat_map(|server| server.workers).find(|known| known.slot == slot);
        let Some(worker) = worker else { return Ok(format!("{server}/{slot} is gone")) };
        match worker.state {
            WorkerState::Drained | WorkerState::Stopped => return Ok(format!("{server}/{slot} is empty")),
            WorkerState::Draining => waiting.tell_once(&mut last, left(server, &worker)),
            // It was heard a moment ago, and the slot may not have come to it.
            WorkerState::Ready | WorkerState::Starting if last.is_empty() && looks < PATIENT_LOOKS => {}
            WorkerState::Ready | WorkerState::Starting => {
                let what = format!("{server}/{slot} has a worker again, generation {}", worker.generation);
                return Err(ClientError::Failed(what));
            }
            // Its process has ended, and what it left behind is cleared away.
            _ => {}
        }
        sleep(LOOK_EVERY);
    }
}

/// How long the gateway may take to begin something.
const TIMEOUT: Option<Duration> = Some(Duration::from_secs(10));

fn left(server: &str, worker: &WorkerSnapshot) -> String {
    let sessions = worker.sessions;
    format!(
        "{server}/{} {}: {} claimed, {} open, {} ended sessions, {} requests in flight",
        worker.slot, worker.state, sessions.claimed, sessions.open, sessions.ended, worker.in_flight
    )
}

/// Begins a rolling restart, and waits until every slot has its new worker. Returns what is left to say.
///
/// # Errors
/// Nothing answers, or not a gateway; one is under way; a new worker did not start: its report.
pub fn restart(mut waiting: Waiting<'_>, server: &str, slot: Option<u16>) -> Result<String, ClientError> {
    let admin = waiting.admin;
    let answer = client::order(admin, "/restart", &json!({"server": server, "slot": slot}), TIMEOUT)?;
    if waiting.json {
        return client::pretty(admin, &answer);
    }
    let begun: RollSnapshot = client::read(admin, &answer)?;
    if !waiting.wait {
        return Ok(format!("the rolling restart of {} slots has begun; see status", begun.slots.len()));
    }
    let mut last = String::new();
    loop {
        let found = client::look(admin)?.servers.into_iter().find(|known| known.name == server);
        let Some(found) = found else {
            return Err(ClientError::Failed(format!("server {server} is gone")));
        };
        match found.roll.as_ref().filter(|roll| roll.number == begun.number) {
            Some(roll) if roll.ended_unix.is_none() => waiting.tell_once(&mut last, progress(&found, roll)),
            Some(roll) => return over(&found, roll),
            None => return Err(ClientError::Failed("another rolling restart has taken its place".into())),
        }
        sleep(LOOK_EVERY);
    }
}

fn progress(server: &ServerSnapshot, roll: &RollSnapshot) -> String {
    let (done, all, draining) = (roll.replaced.len(), roll.slots.len(), server.draining());
    format!("{}: {done} of {all} slots have a new worker, {draining} old ones drain", server.name)
}

fn over(server: &ServerSnapshot, roll: &RollSnapshot) -> Result<String, ClientError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    match (roll.state.as_str(), &roll.failure) {
        ("done", _) => {
            let took = duration(now.saturating_sub(roll.started_unix) as f64);
            Ok(format!("{}, done after {took}", progress(server, roll)))
        }
        (_, Some(why)) => {
            let kept = roll.slots.len() - roll.replaced.len() - roll.skipped.len();
            let what = format!(
                "the rolling restart stopped: {kept} of {} slots keep the workers that they had\n{why}",
                roll.slots.len()
            );
            Err(ClientError::Failed(what))
        }
        _ => Err(ClientError::Failed(show::roll(roll, now))),
    }
}

/// Has the gateway read its files again. Returns what has changed.
///
/// # Errors
/// Nothing answers, or not a gateway; the config is not valid; something could not be done.
pub fn reload(admin: &str, json: bool) -> Result<String, ClientError> {
    // Servers may be asked what they are, which takes as long as a start.
    let answer = client::order(admin, "/reload", &json!({}), None)?;
    if json {
        return client::pretty(admin, &answer);
    }
    let Reloaded { changed, needs_restart, failed } = client::read(admin, &answer)?;
    let mut lines = changed;
    lines.extend(needs_restart.into_iter().map(|line| format!("not changed: {line}")));
    if !failed.is_empty() {
        lines.extend(failed.into_iter().map(|line| format!("failed: {line}")));
        return Err(ClientError::Failed(lines.join("\n")));
    }
    if lines.is_empty() {
        lines.push("nothing has changed".into());
    }
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::SessionCounts;

    #[test]
    fn what_is_left_is_told_by_state() {
        let sessions = SessionCounts { claimed: 1, open: 2, ended: 3 };
        let state = WorkerState::Draining;
        let worker = WorkerSnapshot { slot: 4, state, sessions, in_flight: 5, ..WorkerSnapshot::default() };
        let told = "counter/4 draining: 1 claimed, 2 open, 3 ended sessions, 5 requests in flight";
        assert_eq!(left("counter", &worker), told);
    }
}
