//! The page at `/`: one table for each server, without any resource from the network.

use std::fmt::Write;

use super::{
    snapshot::{GatewaySnapshot, OtherSnapshot, ServerSnapshot, WorkerSnapshot},
    text::{duration, size},
};

/// How often the page loads itself anew, in seconds.
const REFRESH: u32 = 3;

const STYLE: &str = "body{font:15px/1.4 system-ui,sans-serif;margin:2em;color:#222}\
h2{margin:1.5em 0 .3em}table{border-collapse:collapse}\
th,td{padding:.25em .8em;text-align:right;border-bottom:1px solid #ddd}\
th{font-weight:600}td.t,th.t{text-align:left}\
.ready{color:#17733b}.starting,.draining,.exited,.backoff,.drained{color:#8a6100}.died,.failed,.stopped{color:#a11}";

const HEADINGS: &str = "<tr><th>slot<th>generation<th class=t>state<th>pid<th>restarts<th>claimed<th>open<th>ended\
<th>in flight<th>memory<th class=t>address<th class=t>last exit";

/// The whole page.
pub(crate) fn render(gateway: &GatewaySnapshot, servers: &[ServerSnapshot]) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_page(&mut out, gateway, servers);
    out
}

fn write_page(out: &mut String, gateway: &GatewaySnapshot, servers: &[ServerSnapshot]) -> std::fmt::Result {
    write!(
        out,
        "<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content={REFRESH}>\
         <title>Gym Gateway</title><link rel=icon href=\"data:,\"><style>{STYLE}</style><h1>Gym Gateway</h1>\
         <p>version {}, pid {}, up {}{}; <a href=/metrics>metrics</a>, <a href=/status>status</a>, \
         <a href=/sessions>sessions</a>",
        escaped(&gateway.version),
        gateway.pid,
        duration(gateway.uptime_seconds),
        if gateway.stopping { ", <b>stopping</b>" } else { "" },
    )?;
    for server in servers {
        write!(
            out,
            "<h2>{}</h2><p>{} on {}: {} of {} workers ready, {} requests waiting, {} connections, {} sessions lost\
             <table>{HEADINGS}",
            escaped(&server.name),
            escaped(&server.kind),
            escaped(&server.address),
            server.ready(),
            server.workers.len(),
            server.waiting,
            server.client_connections,
            server.sessions_lost,
        )?;
        for worker in &server.workers {
            write_row(out, worker)?;
            for other in &worker.others {
                write_other(out, other)?;
            }
        }
        out.push_str("</table>");
    }
    out.push_str("</html>\n");
    Ok(())
}

fn write_row(out: &mut String, worker: &WorkerSnapshot) -> std::fmt::Result {
    let state = worker.state;
    let pid = worker.pid.map(|pid| pid.to_string()).unwrap_or_default();
    write!(
        out,
        "<tr><td>{}<td>{}<td class=\"t {state}\">{state}<td>{pid}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td class=t>{}<td class=t>{}",
        worker.slot,
        worker.generation,
        worker.restarts,
        worker.sessions.claimed,
        worker.sessions.open,
        worker.sessions.ended,
        worker.in_flight,
        worker.memory_bytes.map(size).unwrap_or_default(),
        escaped(worker.address.as_deref().unwrap_or_default()),
        escaped(worker.last_exit.as_deref().unwrap_or_default()),
    )
}

/// A slot's other worker: one that is to take over, or drains.
fn write_other(out: &mut String, other: &OtherSnapshot) -> std::fmt::Result {
    let state = other.state;
    let pid = other.pid.map(|pid| pid.to_string()).unwrap_or_default();
    let reason = other.drain.as_ref().map(|drain| drain.reason.as_str()).unwrap_or_default();
    write!(
        out,
        "<tr><td><td>{}<td class=\"t {state}\">{state}<td>{pid}<td><td>{}<td>{}<td>{}<td>{}<td>{}<td class=t>{}<td class=t>{}",
        other.generation,
        other.sessions.claimed,
        other.sessions.open,
        other.sessions.ended,
        other.in_flight,
        other.memory_bytes.map(size).unwrap_or_default(),
        escaped(other.address.as_deref().unwrap_or_default()),
        escaped(reason),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
