//! The rule and the table: what a request costs, among how many sessions, and what a million of them weigh.
//!
//! `cargo bench -p gym-gateway --bench session`; printed before criterion's figures: the resident memory, and the table
//! and the decision among 1,000, 100,000 and 1,000,000 sessions side by side. Requests come in between the measured
//! times, a few at once and each of a session at random.

// What fails here fails the benchmark, as in a test.
#![allow(clippy::expect_used)]

use std::{hint::black_box, time::Duration};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use gym_gateway::{
    config::{Kind, Launch, Listen, ServerConfig, ServerSettings},
    session::{Dispatch, Named, Reply, Route, Rule, SessionId, SessionTable},
    worker_id::WorkerId,
};
use gym_wire::cookie::SessionCookieKey;
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{COOKIE, SET_COOKIE},
};

const NAME: &str = "CounterResourcesServer___counter";
const UNIX: u64 = 1_767_225_600;
const WORKERS: u16 = 4;

fn config() -> ServerConfig {
    ServerConfig {
        name: "counter".into(),
        kind: Kind::Resources,
        file: None,
        listen: Listen { written: "127.0.0.1:0".into(), address: ([127, 0, 0, 1], 0).into() },
        num_workers: WORKERS,
        launch: Launch::Command {
            argv: vec!["server".into()],
            directory: "/".into(),
            env: Default::default(),
            server_config: serde_json::Value::Null,
        },
        settings: ServerSettings { session_cookie: Some(NAME.into()), ..ServerSettings::default() },
    }
}

struct Bench {
    rule: Rule,
    table: SessionTable,
    ids: Vec<String>,
}

impl Bench {
    /// A table with this many open sessions, seeded as an environment server does.
    fn filled(sessions: usize) -> Self {
        let config = config();
        let mut bench = Self { rule: Rule::new(&config), table: SessionTable::new(&config), ids: Vec::new() };
        bench.fill(sessions);
        bench
    }

    fn fill(&mut self, sessions: usize) {
        let route = self.rule.route(&Method::POST, "/seed_session");
        for _ in 0..sessions {
            let id = uuid::Uuid::new_v4().to_string();
            let body = format!("{{\"resources_session_id\":\"{id}\"}}");
            let named = self.rule.name(route, &HeaderMap::new(), None, Some(body.as_bytes()), UNIX);
            self.settle(&named.expect("a good ID"), route);
            self.ids.push(id);
        }
    }

    fn settle(&self, named: &Named, route: Route) {
        let sent = self.table.dispatch(named, route, 0, &mut |_| self.least());
        let Ok(Dispatch::To(mut ticket)) = sent else { panic!("{sent:?}") };
        let reply =
            Reply { status: StatusCode::OK, cookie: named.session.clone(), sets_cookie: true, says: None };
        black_box(self.table.reply(&mut ticket, &reply, 0));
        self.table.finish(ticket, 0);
    }

    /// What the proxy does with a request's head until it knows the worker, and the request's end.
    fn decide(&self, head: &HeaderMap) {
        let route = self.rule.route(&Method::POST, "/increment");
        let expect = |id: &SessionId| self.table.expect(id);
        let named = self.rule.name_expecting(route, head, None, None, UNIX, expect).expect("no refusal");
        self.give_back(&named, route);
    }

    fn give_back(&self, named: &Named, route: Route) {
        let sent = self.table.dispatch(named, route, 0, &mut |_| None);
        let Ok(Dispatch::To(ticket)) = sent else { panic!("{sent:?}") };
        self.table.finish(ticket, 0);
    }

    fn least(&self) -> Option<WorkerId> {
        let workers = (0..WORKERS).map(|slot| WorkerId { slot, generation: 1 });
        workers.min_by_key(|worker| self.table.load(*worker))
    }

    /// Requests of sessions at random, as their heads come in.
    fn heads(&self, many: usize) -> Vec<HeaderMap> {
        let key = SessionCookieKey::new(NAME);
        let head = |_| {
            let id = &self.ids[fastrand::usize(..self.ids.len())];
            let value = key.sign(&format!("{{\"session_id\": \"{id}\"}}"), UNIX);
            let line = HeaderValue::from_str(&format!("{NAME}={value}")).expect("base64");
            HeaderMap::from_iter([(COOKIE, line)])
        };
        (0..many).map(head).collect()
    }
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}

/// Prints what a million open sessions weigh. Runs first, in a heap without holes.
fn memory(_: &mut Criterion) {
    const SESSIONS: usize = 1_000_000;
    let mut bench = Bench::filled(0);
    // The bench's own list of IDs does not count.
    let route = bench.rule.route(&Method::POST, "/seed_session");
    let before = resident_kib();
    for n in 0..SESSIONS {
        // 36 bytes, as a UUID has.
        let body = format!("{{\"resources_session_id\":\"{n:036}\"}}");
        let named = bench.rule.name(route, &HeaderMap::new(), None, Some(body.as_bytes()), UNIX);
        bench.settle(&named.expect("a good ID"), route);
    }
    let kib = resident_kib() - before;
    let a_session = kib * 1024 / SESSIONS as u64;
    println!(
        "{SESSIONS} open sessions: {} MiB resident, {a_session} bytes each, IDs of 36 bytes included",
        kib / 1024
    );
    let start = std::time::Instant::now();
    bench.table.expire(1_000);
    println!("a call of expire with none due: {:?}", start.elapsed());
    let start = std::time::Instant::now();
    bench.table.owner_exited(WorkerId { slot: 0, generation: 1 }, 1_000);
    println!("a worker with {} of them exits: {:?}", SESSIONS / usize::from(WORKERS), start.elapsed());
    let start = std::time::Instant::now();
    bench.table.expire(86_399_000);
    println!("all looks at the others' timers in a day, in one call: {:?}", start.elapsed());
    bench.ids.clear();
}

const SIZES: [(usize, &str); 3] = [(1_000, "1k"), (100_000, "100k"), (1_000_000, "1M")];

/// A table, and the requests for it that have just come in.
struct Load {
    label: &'static str,
    bench: Bench,
    route: Route,
    heads: Vec<HeaderMap>,
    names: Vec<Named>,
}

/// How many requests come in at a time: few enough to be in the cache as a head is that has just been parsed, so that
/// what is fetched from memory is the table's and not the benchmark's own.
const AT_ONCE: usize = 64;

impl Load {
    fn new((sessions, label): (usize, &'static str)) -> Self {
        let bench = Bench::filled(sessions);
        let route = bench.rule.route(&Method::POST, "/increment");
        Self { label, bench, route, heads: Vec::new(), names: Vec::new() }
    }

    fn come_in(&mut self) {
        self.heads = self.bench.heads(AT_ONCE);
        let name = |head| self.bench.rule.name(self.route, head, None, None, UNIX).expect("no body");
        self.names = self.heads.iter().map(name).collect();
    }

    fn table(&self) {
        for named in &self.names {
            self.bench.settle(named, self.route);
        }
    }

    fn decision(&self) {
        for head in &self.heads {
            self.bench.decide(head);
        }
    }

    /// Has requests come in and measures what they take, as often as it is told.
    fn measure(&mut self, times: u64, work: Work) -> Duration {
        let once = |_| {
            self.come_in();
            let start = processor_time();
            work(self);
            processor_time() - start
        };
        (0..times).map(once).sum()
    }
}

/// What is measured, of all requests that have come in.
type Work = fn(&Load);

/// The first is the worst case, which the gateway never meets: one lookup after the other and nothing between them, so
/// that each waits for memory. The second is what the gateway does: a request's place in the table is fetched while its
/// cookie's signature is checked.
const WORKS: [(&str, Work); 2] = [
    ("table: dispatch, reply, finish", Load::table),
    ("decision: route, name, dispatch, finish", Load::decision),
];

/// Of the thread that asks: what other processes on a busy machine take does not count.
fn processor_time() -> Duration {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux").into()
}

/// Prints what the sizes cost beside each other: medians of rounds in turn, so that a change of the machine's speed
/// meets all of them alike.
fn side_by_side(_: &mut Criterion) {
    const ROUNDS: usize = 31;
    const TIMES: u32 = 100;
    let mut loads = SIZES.map(Load::new);
    for (what, work) in WORKS {
        let mut times: [Vec<Duration>; SIZES.len()] = Default::default();
        for _ in 0..ROUNDS {
            for (load, times) in loads.iter_mut().zip(&mut times) {
                let took = load.measure(TIMES.into(), work);
                times.push(took / TIMES / AT_ONCE as u32);
            }
        }
        for (load, times) in loads.iter().zip(&mut times) {
            times.sort_unstable();
            println!("{what}, among {}: {:?} of processor time", load.label, times[ROUNDS / 2]);
        }
    }
}

fn requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("session");
    group.throughput(Throughput::Elements(AT_ONCE as u64));
    for size in SIZES {
        let mut load = Load::new(size);
        let label = load.label;
        for (what, work) in WORKS {
            group.bench_function(format!("{AT_ONCE} times {what}, among {label}"), |bencher| {
                bencher.iter_custom(|times| load.measure(times, work));
            });
        }
    }
    group.finish();
}

fn heads(criterion: &mut Criterion) {
    let bench = Bench::filled(1);
    let head = bench.heads(1).remove(0);
    let route = bench.rule.route(&Method::POST, "/increment");
    let value = head[COOKIE].to_str().expect("ASCII");
    let set = HeaderValue::from_str(&format!("{value}; path=/; Max-Age=1209600; httponly")).expect("ASCII");
    let reply = HeaderMap::from_iter([(SET_COOKIE, set)]);
    criterion.bench_function("rule: name by a signed cookie", |bencher| {
        bencher.iter(|| bench.rule.name(route, black_box(&head), None, None, UNIX));
    });
    criterion.bench_function("rule: read a reply's cookie", |bencher| {
        bencher.iter(|| bench.rule.read_reply(route, StatusCode::OK, black_box(&reply), || UNIX));
    });
}

fn seeds(criterion: &mut Criterion) {
    let bench = Bench::filled(1_000);
    let route = bench.rule.route(&Method::POST, "/seed_session");
    let mut number = 0_u64;
    criterion.bench_function("table: a new session, seeded and closed", |bencher| {
        let close = bench.rule.route(&Method::POST, "/close_session");
        let name = || {
            number += 1;
            let body = format!("{{\"resources_session_id\":\"{number:036}\"}}");
            bench.rule.name(route, &HeaderMap::new(), None, Some(body.as_bytes()), UNIX).expect("a good ID")
        };
        bencher.iter_batched(
            name,
            |named| {
                bench.settle(&named, route);
                bench.settle(&named, close);
            },
            BatchSize::SmallInput,
        );
    });

    let text = "All work and no play makes Jack a dull boy.\\n\\\"quoted\\\" ".repeat(1 << 20 >> 6);
    let words = "[\"word\", {\"n\": 1.5, \"b\": [true, null]}], ".repeat(1 << 20 >> 6);
    let mut group = criterion.benchmark_group("body");
    for (label, value) in
        [("one long text", format!("\"{text}\"")), ("many small values", format!("[{words}0]"))]
    {
        let body = format!("{{\"task_data\":{value},\"resources_session_id\":\"a\"}}");
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(format!("1 MB with the ID last: {label}"), |bencher| {
            bencher.iter(|| {
                bench.rule.name(route, &HeaderMap::new(), None, Some(black_box(body.as_bytes())), UNIX)
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(3)).warm_up_time(Duration::from_secs(1)).sample_size(30);
    targets = memory, side_by_side, requests, heads, seeds
}
criterion_main!(benches);
