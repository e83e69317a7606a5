//! What is told of each request: metrics, and the access log.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use prometheus::{Histogram, IntCounter};

use super::{connections::Busy, state::ServerState};
use crate::{admin::RequestMetrics, session::RouteClass};

/// The status noted for a request whose client left before the head of a reply (nginx's convention).
const CLIENT_LEFT: u16 = 499;

/// Where requests are counted.
#[derive(Clone, Debug)]
pub struct Observer {
    metrics: RequestMetrics,
    access_log: bool,
}

impl Observer {
    /// Counts in `metrics`; logs each request if `access_log`.
    pub fn new(metrics: RequestMetrics, access_log: bool) -> Self {
        Self { metrics, access_log }
    }
}

type Labels = (usize, Option<u16>, RouteClass, u16);

/// One core's handles: each series is looked up once.
#[derive(Debug)]
pub(super) struct CoreObserver {
    shared: Observer,
    requests: RefCell<HashMap<Labels, IntCounter, foldhash::fast::RandomState>>,
    durations: RefCell<HashMap<(usize, RouteClass), Histogram, foldhash::fast::RandomState>>,
}

impl CoreObserver {
    pub(super) fn new(shared: Observer) -> Self {
        Self { shared, requests: RefCell::default(), durations: RefCell::default() }
    }

    fn request(&self, server: &str, (index, slot, route, status): Labels, took: Duration) {
        self.requests
            .borrow_mut()
            .entry((index, slot, route, status))
            .or_insert_with(|| self.shared.metrics.requests(server, slot, route.as_str(), status))
            .inc();
        self.durations
            .borrow_mut()
            .entry((index, route))
            .or_insert_with(|| self.shared.metrics.duration(server, route.as_str()))
            .observe(took.as_secs_f64());
    }
}

/// One request's account: noted when it is dropped, however the request ended.
#[derive(Debug)]
pub(super) struct Account {
    core: Rc<CoreObserver>,
    server: Arc<ServerState>,
    route: RouteClass,
    started: Instant,
    /// When the request was done, where that was noted already.
    ended: Cell<Option<Instant>>,
    slot: Cell<Option<u16>>,
    status: Cell<u16>,
    /// Method and path, only where they are logged.
    line: Option<Box<(http::Method, String)>>,
    _busy: Busy,
}

impl Account {
    pub(super) fn open(
        core: &Rc<CoreObserver>,
        server: &Arc<ServerState>,
        route: RouteClass,
        method: &http::Method,
        path: &str,
        busy: Busy,
    ) -> Rc<Self> {
        let line = core.shared.access_log.then(|| Box::new((method.clone(), path.to_owned())));
        Rc::new(Self {
            core: core.clone(),
            server: server.clone(),
            route,
            started: Instant::now(),
            ended: Cell::new(None),
            slot: Cell::new(None),
            status: Cell::new(CLIENT_LEFT),
            line,
            _busy: busy,
        })
    }

    /// When the request came.
    pub(super) fn started(&self) -> Instant {
        self.started
    }

    /// Notes that the request is done.
    pub(super) fn ended(&self, now: Instant) {
        self.ended.set(Some(now));
    }

    pub(super) fn sent_to(&self, slot: u16) {
        self.slot.set(Some(slot));
    }

    pub(super) fn answered(&self, status: http::StatusCode) {
        self.status.set(status.as_u16());
    }

    pub(super) fn refused(&self, refusal: &super::Refusal) {
        self.answered(refusal.status(self.server.config.kind));
        self.core.shared.metrics.refused(&self.server.config.name, refusal.code());
        tracing::debug!(
            server = self.server.config.name,
            code = refusal.code(),
            detail = refusal.detail(),
            "refused"
        );
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let server = self.server.config.name.as_str();
        let took = self.ended.get().unwrap_or_else(Instant::now).duration_since(self.started);
        self.core.request(server, (self.server.index, self.slot.get(), self.route, self.status.get()), took);
        if let Some(line) = &self.line {
            let (method, path) = line.as_ref();
            tracing::info!(
                target: "access",
                server,
                slot = self.slot.get(),
                method = method.as_str(),
                path,
                status = self.status.get(),
                milliseconds = took.as_secs_f64() * 1000.0,
            );
        }
    }
}
