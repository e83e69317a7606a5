//! The admin address in front of a made-up gateway, asked over a real socket.

use std::{net::SocketAddr, sync::Arc};

use prometheus::{Registry, proto::MetricFamily};
use serde_json::{Value, json};

use super::{
    METRICS, RequestMetrics, RollSnapshot, WorkerState,
    client::{self, SessionsQuery},
    collect, metrics_markdown, router,
};

mod fake;
mod orders;

use self::fake::{Fake, fake};

fn populated() -> Registry {
    let registry = Registry::new();
    let metrics = RequestMetrics::register(&registry).unwrap();
    metrics.requests("counter", Some(0), "verify", 200).inc();
    metrics.requests("counter", None, "verify", 503).inc();
    metrics.duration("counter", "verify").observe(0.2);
    metrics.refused("counter", "no_worker");
    metrics.reloaded("applied");
    registry
}

/// Serves `fake` on a free port for as long as the test's runtime lives.
async fn serve(fake: Fake) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = router(Arc::new(fake), Arc::new(orders::Orders::default()), populated());
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Status, content type and body.
async fn get(address: SocketAddr, path: &str) -> (u16, String, String) {
    let url = format!("http://{address}{path}");
    let ask = move || {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().new_agent();
        let mut answer = agent.get(url).call().unwrap();
        let kind = answer.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
        (answer.status().as_u16(), kind.unwrap_or_default(), answer.body_mut().read_to_string().unwrap())
    };
    tokio::task::spawn_blocking(ask).await.unwrap()
}

async fn get_json(address: SocketAddr, path: &str) -> (u16, Value) {
    let (status, _, body) = get(address, path).await;
    (status, serde_json::from_str(&body).unwrap())
}

#[test]
fn every_metric_is_in_the_table_with_its_type_and_labels() {
    let families = collect::families(&fake(), &populated());
    let mut seen: Vec<_> = families.iter().map(described).collect();
    let mut documented: Vec<_> = METRICS
        .iter()
        .map(|doc| {
            let mut labels: Vec<_> = doc.labels.iter().map(ToString::to_string).collect();
            labels.sort();
            (doc.name.to_owned(), doc.kind.as_str().to_owned(), doc.help.to_owned(), labels)
        })
        .collect();
    documented.sort();
    seen.sort();
    assert_eq!(seen, documented);
    for doc in METRICS {
        assert!(
            metrics_markdown().contains(&format!("| `{}` | {} |", doc.name, doc.kind.as_str())),
            "{}",
            doc.name
        );
        assert_eq!(doc.name.ends_with("_total"), doc.kind.as_str() == "counter", "{}", doc.name);
    }
}

fn described(family: &MetricFamily) -> (String, String, String, Vec<String>) {
    let kind = format!("{:?}", family.get_field_type()).to_lowercase();
    let of = |metric: &prometheus::proto::Metric| -> Vec<String> {
        let mut labels: Vec<_> = metric.get_label().iter().map(|label| label.name().to_owned()).collect();
        labels.sort();
        labels
    };
    let labels = of(&family.get_metric()[0]);
    assert!(family.get_metric().iter().all(|metric| of(metric) == labels), "{}", family.name());
    (family.name().into(), kind, family.help().into(), labels)
}

#[test]
fn metrics_are_registered_once() {
    assert!(RequestMetrics::register(&populated()).is_err());
}

#[tokio::test]
async fn metrics_are_text_with_what_was_counted_and_what_is_read() {
    let (status, kind, body) = get(serve(fake()).await, "/metrics").await;
    assert_eq!((status, kind.as_str()), (200, "text/plain; version=0.0.4"));
    for line in [
        "gym_gateway_build_info{version=\"1.2.3\"} 1",
        "gym_gateway_buffered_bytes 1024",
        "gym_gateway_requests_total{route=\"verify\",server=\"counter\",slot=\"0\",status=\"200\"} 1",
        "gym_gateway_requests_total{route=\"verify\",server=\"counter\",slot=\"\",status=\"503\"} 1",
        "gym_gateway_request_duration_seconds_bucket{route=\"verify\",server=\"counter\",le=\"0.1\"} 0",
        "gym_gateway_request_duration_seconds_bucket{route=\"verify\",server=\"counter\",le=\"0.25\"} 1",
        "gym_gateway_request_duration_seconds_bucket{route=\"verify\",server=\"counter\",le=\"3600\"} 1",
        "gym_gateway_refusals_total{code=\"no_worker\",server=\"counter\"} 1",
        "gym_gateway_worker_up{server=\"counter\",slot=\"0\"} 1",
        "gym_gateway_worker_up{server=\"counter\",slot=\"1\"} 0",
        "gym_gateway_worker_restarts_total{server=\"counter\",slot=\"1\"} 2",
        "gym_gateway_worker_oom_kills_total{server=\"counter\",slot=\"1\"} 1",
        "gym_gateway_worker_transitions_total{server=\"counter\",slot=\"1\",to=\"failed\"} 4",
        "gym_gateway_worker_resident_memory_bytes{server=\"counter\",slot=\"1\"} 314572800",
        "gym_gateway_worker_start_time_seconds{server=\"counter\",slot=\"0\"} 1700000000",
        "gym_gateway_sessions{server=\"counter\",slot=\"0\",state=\"open\"} 7",
        "gym_gateway_sessions{server=\"counter\",slot=\"1\",state=\"open\"} 5",
        "gym_gateway_requests_in_flight{server=\"counter\",slot=\"0\"} 8",
        "gym_gateway_worker_resident_memory_bytes{server=\"counter\",slot=\"0\"} 419430400",
        "gym_gateway_workers_draining{server=\"counter\"} 1",
        "gym_gateway_drains_cut_total{server=\"counter\"} 5",
        "gym_gateway_sessions_lost_to_drains_total{server=\"counter\"} 6",
        "gym_gateway_rolling_restarts_total{server=\"counter\",result=\"failed\"} 1",
        "gym_gateway_reloads_total{result=\"applied\"} 1",
        "gym_gateway_sessions_lost_total{server=\"counter\"} 13",
        "gym_gateway_requests_waiting{server=\"counter\"} 11",
        "# TYPE gym_gateway_sessions_expired_total counter",
    ] {
        assert!(body.lines().any(|seen| seen == line), "{line} is not in\n{body}");
    }
}

#[tokio::test]
async fn ready_means_every_server_has_a_worker_and_nothing_stops() {
    let address = serve(fake()).await;
    assert_eq!(get_json(address, "/readyz").await, (200, json!({"ready": true, "reasons": []})));
    assert_eq!(get_json(address, "/livez").await.0, 200);
    let mut none = fake();
    none.servers[0].workers.remove(0);
    none.gateway.stopping = true;
    let address = serve(none).await;
    let reasons = ["the gateway is stopping", "server counter has no ready worker: failed"];
    assert_eq!(get_json(address, "/readyz").await, (503, json!({"ready": false, "reasons": reasons})));
    assert_eq!(get_json(address, "/livez").await.0, 200);
    for (removed, joining) in [(true, false), (false, true)] {
        let mut comes_or_goes = fake();
        let first = &mut comes_or_goes.servers[0];
        (first.removed, first.joining) = (removed, joining);
        first.workers.remove(0);
        assert_eq!(get_json(serve(comes_or_goes).await, "/readyz").await.0, 200);
    }
}

#[tokio::test]
async fn status_tells_everything_as_json() {
    let (status, body) = get_json(serve(fake()).await, "/status").await;
    assert_eq!(status, 200);
    assert_eq!(body["gateway"]["version"], "1.2.3");
    let worker = json!({
        "slot": 1, "generation": 3, "state": "failed", "pid": 4242, "address": "unix:/run/w.sock", "restarts": 2, "oom_kills": 1,
        "started_unix": 1_700_000_000, "in_flight": 7, "queued": 6, "requests": 41, "sessions": {"claimed": 1, "open": 5, "ended": 9}, "sessions_had": 15,
        "over_limit": null, "replacements": {"max_requests": 1}, "memory_bytes": 300 << 20,
        "transitions": {"backoff": 4, "died": 4, "drained": 4, "draining": 4, "exited": 4, "failed": 4, "ready": 4, "starting": 4, "stopped": 4},
        "failures_in_a_row": 6, "last_exit": "killed by <SIGKILL>\nmore",
        "last_failure": {
            "generation": 2, "at_unix": body["servers"][0]["workers"][1]["last_failure"]["at_unix"], "phase": "listen",
            "seconds": {"listen": 1.5, "spawn": 0.25}, "reason": "killed by <SIGKILL>\nmore",
            "exit": "was killed by SIGKILL", "command": "./server (in /)", "output": ["loading"], "advice": "see dmesg",
        },
        "drain": null, "others": [],
    });
    assert_eq!(body["servers"][0]["workers"][1], worker);
    assert_eq!(body["servers"][0]["waiting"], 11);
    let other = &body["servers"][0]["workers"][0]["others"][0];
    assert_eq!((&other["generation"], &other["drain"]["left_seconds"]), (&json!(2), &json!(3475.0)));
    assert_eq!(body["servers"][0]["roll"]["replaced"], json!([0]));
}

#[tokio::test]
async fn sessions_are_shortened_filtered_and_limited() {
    let address = serve(fake()).await;
    let (_, all) = get_json(address, "/sessions").await;
    assert_eq!(all.as_array().unwrap().len(), 4);
    let first = json!({
        "server": "counter", "id": "0234567…", "state": "claimed", "slot": 1, "generation": 3, "fenced": false,
        "in_flight": 2, "idle_seconds": 65.0,
    });
    assert_eq!(all[0], first);
    let (_, full) = get_json(address, "/sessions?full=true&state=ended&server=counter").await;
    assert_eq!((full[0]["id"].as_str(), full.as_array().unwrap().len()), (Some("22345678-whole"), 1));
    assert_eq!(get_json(address, "/sessions?limit=2").await.1.as_array().unwrap().len(), 2);
    for (path, status, code) in [
        ("/sessions?state=asleep", 400, "bad_query"),
        ("/sessions?limit=many", 400, "bad_query"),
        ("/sessions?sate=open", 400, "bad_query"),
        ("/sessions?server=none", 404, "unknown_server"),
        ("/nothing", 404, "not_found"),
        ("/drain", 405, "method_not_allowed"),
    ] {
        let (seen, body) = get_json(address, path).await;
        assert_eq!((seen, body["code"].as_str()), (status, Some(code)), "{path}: {body}");
    }
}

#[tokio::test]
async fn the_page_shows_workers_and_loads_nothing() {
    let (status, kind, body) = get(serve(fake()).await, "/").await;
    assert_eq!((status, kind.as_str()), (200, "text/html; charset=utf-8"));
    assert!(body.contains("1 of 2 workers ready"), "{body}");
    assert!(body.contains("killed by &lt;SIGKILL&gt;"), "{body}");
    assert!(body.contains("has taken over: new &lt;code&gt;"), "{body}");
    assert!(!body.contains("http:") && !body.contains("src="), "{body}");
}

#[tokio::test]
async fn the_commands_print_tables_and_json() {
    let address = serve(fake()).await.to_string();
    let asked = tokio::task::spawn_blocking(move || {
        let query = SessionsQuery { server: None, state: Some("open".into()), limit: 1, full: false };
        let wrong = SessionsQuery { state: Some("asleep".into()), ..query.clone() };
        (
            client::status(&address, false).unwrap(),
            client::status(&address, true).unwrap(),
            client::sessions(&address, &query, false).unwrap(),
            client::sessions(&address, &wrong, false).unwrap_err().to_string(),
        )
    });
    let (status, json, sessions, wrong) = asked.await.unwrap();
    assert_eq!(
        status,
        "gym-gateway 1.2.3, pid 77, up 1 h 1 min

counter (resources) on 127.0.0.1:8000: 1 of 2 workers ready, 11 waiting, 12 connections, 13 sessions lost
session cookie Counter___counter; sessions also started by /begin; sessions also ended by /finish, /give_up
1 to 8 workers as needed, 16 sessions each; so far 3 more, 2 less
slot  gen  state     pid   claimed  open  ended  in flight  memory   restarts
0     3    ready     4242  1        5     9      7          300 MiB  2
      2    draining  4141  0        2     3      1          100 MiB
1     3    failed    4242  1        5     9      7          300 MiB  2
rolling restart (new code) begun 3 h 0 min ago: 1 of 2 slots have a new worker
slot 0, generation 2 drains for 2 min 5 s, at most 57 min 55 s more: worker 0.3 has taken over: new <code>
slot 0, generation 3 is to be replaced: it has answered 41 requests (max_requests: 40)
slot 0, last failure: generation 2, 3 h 0 min ago, listen: killed by <SIGKILL>
slot 1, last failure: generation 2, 3 h 0 min ago, listen: killed by <SIGKILL>
  6 in a row; what to do: see dmesg"
    );
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["gateway"]["pid"], 77);
    assert_eq!(
        sessions,
        "server   id        state  worker  fenced  in flight  idle
counter  1234567…  open   1.3     no      2          1 min 5 s
(the first 1; --limit shows more)"
    );
    assert!(
        wrong.contains("answered 400: unknown state \"asleep\": one of claimed, open, ended, lost"),
        "{wrong}"
    );
}

#[test]
fn nothing_there_is_said_plainly() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let error = client::status(&free, false).unwrap_err().to_string();
    assert!(error.starts_with(&format!("no gateway answers at {free}: ")), "{error}");
    assert!(error.contains("--admin HOST:PORT"), "{error}");
}
