//! Every key that the gateway reads: the one table behind "did you mean" and the README's reference.

/// Where a key may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The top-level `gateway` block.
    Gateway,
    /// `gateway.servers.<name>`: a NeMo Gym server's settings for the gateway.
    Server,
    /// The block of a server of the gateway's own kinds.
    Own,
    /// The block of a NeMo Gym server; everything else there is Gym's.
    Gym,
}

impl Place {
    /// All places, in the order of the reference.
    pub const ALL: [Place; 4] = [Place::Gateway, Place::Server, Place::Own, Place::Gym];

    /// The place in a user's words.
    pub fn words(self) -> &'static str {
        match self {
            Place::Gateway => "`gateway`",
            Place::Server => "`gateway.servers.<name>`",
            Place::Own => {
                "the block of an `http_servers`, `openenv_servers`, `ors_servers` or `mcp_servers` server"
            }
            Place::Gym => "a NeMo Gym server's own block",
        }
    }
}

/// One key: where it stands and what it means.
#[derive(Clone, Copy, Debug)]
pub struct KeyDoc {
    /// The key.
    pub key: &'static str,
    /// Where it may stand.
    pub places: &'static [Place],
    /// What it takes: `seconds`, `whole number`, and so on.
    pub value: &'static str,
    /// Its default, as one would write it in YAML where that can be done.
    pub default: &'static str,
    /// What it does.
    pub text: &'static str,
}

use Place::{Gateway, Gym, Own, Server};

/// Where a server's settings for the gateway stand.
const SETTINGS: &[Place] = &[Server, Own];
/// Where a server's front stands.
const FRONT: &[Place] = &[Gym, Own];

const fn key(
    key: &'static str,
    places: &'static [Place],
    value: &'static str,
    default: &'static str,
    text: &'static str,
) -> KeyDoc {
    KeyDoc { key, places, value, default, text }
}

#[rustfmt::skip]
static KEYS: &[KeyDoc] = &[
    key("admin", &[Gateway], "host:port or `off`", "127.0.0.1:9090", "Address of `/metrics`, `/status`, `/sessions`, `/livez`, `/readyz` and the page."),
    key("threads", &[Gateway], "whole number", "the machine's cores", "Threads that carry requests."),
    key("shutdown_timeout_seconds", &[Gateway], "seconds", "30", "How long requests in flight may go on after SIGTERM."),
    key("worker_stop_timeout_seconds", &[Gateway], "seconds", "10", "How long a worker may take from SIGTERM to its end, before its process group is killed."),
    key("max_buffered_bytes", &[Gateway], "bytes", "1073741824", "Request bodies held in memory, over all requests."),
    key("access_log", &[Gateway], "true or false", "false", "One log line per request."),
    key("on_gateway_death", &[Gateway], "`kill`", "kill", "What becomes of workers when the gateway dies. This version has one answer."),
    key("servers", &[Gateway], "map", "{}", "Settings for NeMo Gym servers, by server name."),

    key("entrypoint", &[Gym], "path", "none: needed", "The script, in the server's folder. Not needed with `gateway.servers.<name>.command`."),
    key("command", SETTINGS, "list of text", "none: needed, but for NeMo Gym servers", "Program and arguments; `{socket}` and `{port}` are replaced. For a NeMo Gym server it takes the place of `entrypoint`; the worker gets its block in `GYM_SERVER_CONFIG`."),
    key("describe", SETTINGS, "true or false", "false", "Ask the command what it is before it starts: it is run once with `--describe` behind its arguments. What it says holds where a key here does not say it."),
    key("host", FRONT, "text", "127.0.0.1", "Host of the front address."),
    key("port", FRONT, "0 to 65535", "none: needed to be served", "Port of the front address; 0 takes a free one. A NeMo Gym server without it is left to Gym."),
    key("num_workers", FRONT, "1 to 1024", "1", "How many worker processes; with `min_workers` or `max_workers` how many at the start."),
    key("session_close_retry_window_seconds", FRONT, "seconds", "300", "How long an ended or claimed session is remembered after its last request. (Claimed ones of a generic server without `session_start_routes`: as long as `session_idle_timeout_seconds`.)"),

    key("python", &[Server], "path", "the folder's `.venv`, `$VIRTUAL_ENV`, `python3`", "The interpreter. A bare name is looked up on `PATH`."),
    key("directory", &[Server], "path", "`<kind>/<implementation>` beside the config, in the working directory or in site-packages; with `command` the config's folder", "The folder that workers start in, with the entrypoint."),
    key("working_directory", &[Own], "path", "the config's folder", "The folder that workers start in."),
    key("environment", SETTINGS, "map of text or `{file: PATH}`", "{}", "Environment variables of the workers, on top of the gateway's own. `{file: PATH}`: what that file holds when a worker is started, less its last line's end."),
    key("environment_files", SETTINGS, "list of paths", "[]", "Files with lines `NAME=value`, read when a worker is started; `environment` wins over them, and a later file over an earlier one."),
    key("config", &[Own], "map", "{}", "What the worker gets as JSON in `GYM_SERVER_CONFIG`."),

    key("user", SETTINGS, "name or number", "the gateway's", "The user that workers run as, with `HOME`, `USER` and `LOGNAME` set. Needs a gateway that runs as root."),
    key("group", SETTINGS, "name or number", "the user's own", "The group that workers run as."),
    key("supplementary_groups", SETTINGS, "list of names and numbers", "the user's own", "Their other groups, such as `video` for a GPU."),
    key("nice", SETTINGS, "-20 to 19", "the gateway's", "Niceness of the workers; only root may go down."),
    key("limits", SETTINGS, "map", "the gateway's", "Limits of `setrlimit`, by name, such as `{nofile: 65536, core: 0, as: 8GiB}`: a number or size for both values, a map of `soft` and `hard`, or `unlimited`. See \"Workers' processes\" above."),
    key("cgroup", SETTINGS, "map of `memory_max`, `parent`", "none", "`memory_max`: the most memory that each worker with all its processes may have (cgroup v2), such as `8GiB`; above it the kernel kills the worker. `parent`: the folder of the cgroup around theirs. See \"Workers' processes\" above."),
    key("log_file", SETTINGS, "path, or map of `path`, `max_bytes`, `keep`", "none", "A file for what workers write, besides the log; `{server}`, `{slot}` and `{generation}` in it are replaced. From `max_bytes` on (100MiB; 0: never) it is rotated, and the last `keep` (5) are kept."),

    key("session_cookie", SETTINGS, "text", "said by the server (`describe`) or learned from it; else in `http_servers` none, no sessions", "Name of the session cookie. Not for `openenv_servers`, `ors_servers` and `mcp_servers`."),
    key("session_secret", SETTINGS, "text", "the cookie's name", "Key that signs the session cookie. A server with a `command` gets it as `GYM_SESSION_SECRET`, so that it is set once for both."),
    key("protocol", &[Server], "`both`, `seed_verify` or `gymnasium`", "said by the server (`describe`), else both", "Which protocol a `resources_servers` server speaks. With `seed_verify` `POST /reset`, `/step` and `/close` are ordinary tools, with `gymnasium` `/seed_session`, `/verify` and `/close_session` are."),
    key("session_start_routes", SETTINGS, "list of paths", "[]", "More routes that start a session, by `POST`."),
    key("session_end_routes", SETTINGS, "list of paths", "[]", "More routes that end a session, by `POST`."),
    key("routes_sessions_to_owner", SETTINGS, "true or false", "true", "`false`: plain balancing, no sessions."),
    key("multiple_workers_unsupported_reason", SETTINGS, "text", "what the server says", "Why the server must have one worker; refuses more. `\"\"` overrides what the server says."),
    key("session_idle_timeout_seconds", SETTINGS, "seconds", "86400", "How long an open session may be idle before it counts as lost. `ors_servers`: 900 by default. A session of a generic server without `session_start_routes` is only claimed, and forgotten then."),
    key("lost_session_retention_seconds", SETTINGS, "seconds", "86400", "How long a lost session is answered with 410."),
    key("max_lost_sessions", SETTINGS, "whole number", "1000000", "The most lost sessions that are remembered; the oldest go first."),
    key("max_sessions_per_worker", &[Own], "whole number", "said by the server (`describe`), else no limit", "Only `openenv_servers`: how many sessions a worker takes, its own limit (`max_concurrent_envs`). A full worker is passed over; where all are, clients hear `CAPACITY_REACHED`."),
    key("max_naming_body_bytes", SETTINGS, "bytes", "67108864", "Largest body of a request that carries its session ID in the body, and of any POST to an `mcp_servers` server; above it 413."),
    key("queue_timeout_seconds", SETTINGS, "seconds", "10", "How long a request waits for a ready worker, or for room at one, before 503."),
    key("start_timeout_seconds", SETTINGS, "seconds", "120", "How long a worker may take to become ready."),
    key("worker_timeout_seconds", SETTINGS, "seconds", "no limit", "How long a worker may take for the head of its reply before 504. A verify may take hours."),
    key("worker_idle_timeout_seconds", SETTINGS, "seconds", "4", "How long an unused connection to a worker is kept (uvicorn closes after 5)."),
    key("client_idle_timeout_seconds", SETTINGS, "seconds", "75", "How long a client may take for a request's head, or leave its connection idle."),
    key("restart_backoff_seconds", SETTINGS, "seconds", "0.5", "First wait before a dead worker is started again; it doubles each time."),
    key("restart_backoff_max_seconds", SETTINGS, "seconds", "60", "Longest wait before a dead worker is started again."),
    key("max_start_failures", SETTINGS, "whole number", "10", "After so many failures of a slot in a row (starts, and workers that died before a minute of health) it is `failed`, and tried again every `failed_retry_seconds`; 0: never given up."),
    key("failed_retry_seconds", SETTINGS, "seconds", "300", "How often a `failed` slot is tried again."),
    key("drain_timeout_seconds", SETTINGS, "seconds", "3600", "How long a draining worker may keep its sessions before they are lost; 0: for ever."),
    key("max_surge", SETTINGS, "1 to 1024", "1", "How many workers a replacement may have beside the one of each slot: those that start, and those that drain since another has taken over."),
    key("min_workers", SETTINGS, "1 to 1024", "`num_workers`", "The fewest workers: while the others have room for all sessions, the emptiest is let drain. See \"As many workers as needed\" above."),
    key("max_workers", SETTINGS, "1 to 1024", "`num_workers`", "The most workers: more are started while all have `target_sessions_per_worker`, or requests wait for room (`max_in_flight_per_worker`)."),
    key("target_sessions_per_worker", SETTINGS, "whole number", "none", "How many claimed and open sessions a worker is to have before another is started."),
    key("max_requests", SETTINGS, "whole number", "no limit", "A worker is replaced, as by a rolling restart, after it has answered so many requests."),
    key("max_sessions", SETTINGS, "whole number", "no limit", "The same after it has had so many sessions, those that are over among them."),
    key("max_lifetime_seconds", SETTINGS, "seconds", "no limit", "The same after so long, less up to a fifth at random, so that not all come due at once."),
    key("max_memory_bytes", SETTINGS, "bytes", "no limit", "The same when the resident memory of its process tree was above this at `max_memory_samples` looks in a row."),
    key("max_memory_samples", SETTINGS, "1 to 3600", "3", "How many looks in a row, one a second, a worker may not be above `max_memory_bytes`."),
    key("max_in_flight_per_worker", SETTINGS, "whole number", "no limit", "How many requests a worker may have at a time. More wait, a session's for its owner, others for whoever has room first, for `queue_timeout_seconds` at most; then 503 `at_capacity`."),
    key("max_queued_per_worker", SETTINGS, "0 to 1048576", "100", "How many requests may wait for each worker because of `max_in_flight_per_worker`; more get 503 `at_capacity` at once."),
    key("hang_timeout_seconds", SETTINGS, "seconds", "no limit", "A worker that for so long has answered neither a request nor a probe is aborted: SIGABRT, and after `worker_stop_timeout_seconds` SIGKILL. Verifiers may block an event loop for minutes: longer than the longest of them."),
];

/// Every key of the gateway's, in the order of the reference.
pub fn reference() -> &'static [KeyDoc] {
    KEYS
}

/// The reference as the README has it: a table for each place.
pub fn reference_markdown() -> String {
    let mut out = String::new();
    for place in Place::ALL {
        let keys = KEYS.iter().filter(|doc| doc.places.contains(&place));
        out.push_str(&format!(
            "In {}:\n\n| key | value | default | what it does |\n|---|---|---|---|\n",
            place.words()
        ));
        for doc in keys {
            out.push_str(&format!("| `{}` | {} | {} | {} |\n", doc.key, doc.value, doc.default, doc.text));
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// What is wrong with `key` at `place`; `None` if it belongs there.
pub(crate) fn complaint(key: &str, place: Place) -> Option<String> {
    if KEYS.iter().any(|doc| doc.key == key && doc.places.contains(&place)) {
        return None;
    }
    if let Some(doc) = KEYS.iter().find(|doc| doc.key == key) {
        let right: Vec<_> = doc.places.iter().map(|place| place.words()).collect();
        return Some(format!("does not belong here but in {}: move it", right.join(" or ")));
    }
    let here: Vec<_> = KEYS.iter().filter(|doc| doc.places.contains(&place)).map(|doc| doc.key).collect();
    Some(match nearest(key, here.iter().copied()) {
        Some(right) => format!("unknown key: did you mean `{right}`?"),
        None => format!("unknown key: {} takes {}", place.words(), here.join(", ")),
    })
}

/// Whether the gateway reads such a key anywhere.
pub(crate) fn known(key: &str) -> bool {
    KEYS.iter().any(|doc| doc.key == key)
}

/// How far `word` is from `right`, if it is another word at most `limit` edits away.
pub(crate) fn near(word: &str, right: &str, limit: usize) -> Option<usize> {
    let distance = strsim::damerau_levenshtein(word, right);
    (1..=limit).contains(&distance).then_some(distance)
}

/// The candidate that `word` is most likely a misspelling of.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A missing unit or a swapped part is common: `queue_timeout` for `queue_timeout_seconds`.
    let distance = |candidate: &str| match candidate.strip_suffix("_seconds") {
        Some(bare) => {
            strsim::damerau_levenshtein(word, candidate).min(strsim::damerau_levenshtein(word, bare) + 1)
        }
        None => strsim::damerau_levenshtein(word, candidate),
    };
    let (distance, best) =
        candidates.map(|candidate| (distance(candidate), candidate)).min_by_key(|(d, _)| *d)?;
    (distance <= (best.chars().count() / 3).max(2)).then_some(best)
}
