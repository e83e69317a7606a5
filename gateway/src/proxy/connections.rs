//! One core's client connections: which are idle, and which are to end.
//!
//! A connection's task is told through its waker, and looks at two cells when it runs: timers or signals of its own
//! would be paid for with every request.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    task::{Context, Waker},
    time::{Duration, Instant},
};

use slab::Slab;

/// What a connection is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Go on.
    Serve,
    /// End after the request in flight.
    End,
    /// End after an answer of the gateway's own to the request in flight.
    Cut,
    /// End now: it was idle for too long.
    Close,
}

#[derive(Debug)]
struct State {
    /// The number of the server that it belongs to.
    server: usize,
    waker: RefCell<Option<Waker>>,
    order: Cell<Order>,
    requests: Cell<usize>,
    idle_since: Cell<Instant>,
    idle_limit: Duration,
}

/// All client connections of a core.
#[derive(Debug)]
pub(super) struct Connections {
    all: RefCell<Slab<Rc<State>>>,
    stopping: Cell<bool>,
    /// The time of the last look around; exact enough for idle limits.
    now: Cell<Instant>,
}

impl Connections {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self { all: RefCell::default(), stopping: Cell::new(false), now: Cell::new(Instant::now()) })
    }

    /// A new connection, which may wait for the head of a request for `idle_limit`.
    pub(super) fn enter(self: &Rc<Self>, server: usize, idle_limit: Duration) -> Entered {
        let state = Rc::new(State {
            server,
            waker: RefCell::default(),
            order: Cell::new(if self.stopping.get() { Order::End } else { Order::Serve }),
            requests: Cell::new(0),
            idle_since: Cell::new(Instant::now()),
            idle_limit,
        });
        let key = self.all.borrow_mut().insert(state.clone());
        Entered { connections: self.clone(), state, key }
    }

    /// Ends all connections, each after its requests in flight.
    pub(super) fn end_all(&self) {
        self.stopping.set(true);
        for (_, state) in self.all.borrow().iter() {
            state.tell(Order::End);
        }
    }

    /// Ends the connections of the servers that are meant, each after its requests in flight.
    pub(super) fn end_those(&self, is_meant: impl Fn(usize) -> bool) {
        for (_, state) in self.all.borrow().iter() {
            if state.order.get() == Order::Serve && is_meant(state.server) {
                state.tell(Order::End);
            }
        }
    }

    /// Cuts the requests in flight of all connections short.
    pub(super) fn cut_all(&self) {
        for (_, state) in self.all.borrow().iter() {
            state.tell(Order::Cut);
        }
    }

    /// Closes those that have waited for a request for too long.
    pub(super) fn close_idle(&self) {
        let now = Instant::now();
        self.now.set(now);
        for (_, state) in self.all.borrow().iter() {
            if state.requests.get() == 0 && now.duration_since(state.idle_since.get()) >= state.idle_limit {
                state.tell(Order::Close);
            }
        }
    }
}

impl State {
    fn tell(&self, order: Order) {
        self.order.set(order);
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

/// One connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Entered {
    connections: Rc<Connections>,
    state: Rc<State>,
    key: usize,
}

impl Entered {
    /// What the connection is told; its task is woken when that changes.
    pub(super) fn order(&self, cx: &Context<'_>) -> Order {
        let mut waker = self.state.waker.borrow_mut();
        if waker.is_none() {
            *waker = Some(cx.waker().clone()); // a spawned task's waker stays the same
        }
        self.state.order.get()
    }

    /// How its requests count themselves.
    pub(super) fn requests(&self) -> Requests {
        Requests { connections: self.connections.clone(), state: self.state.clone() }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.connections.all.borrow_mut().try_remove(self.key);
    }
}

/// A connection's requests in flight.
#[derive(Debug)]
pub(super) struct Requests {
    connections: Rc<Connections>,
    state: Rc<State>,
}

impl Requests {
    /// One more, until the guard is dropped.
    pub(super) fn enter(&self) -> Busy {
        self.state.requests.set(self.state.requests.get() + 1);
        Busy { connections: self.connections.clone(), state: self.state.clone() }
    }

    /// Whether they are to be cut short. The connection's task is woken when that changes.
    pub(super) fn are_cut(&self) -> bool {
        self.state.order.get() == Order::Cut
    }
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct Busy {
    connections: Rc<Connections>,
    state: Rc<State>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.state.requests.set(self.state.requests.get() - 1);
        self.state.idle_since.set(self.connections.now.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Context;

    fn order(entered: &Entered) -> Order {
        entered.order(&Context::from_waker(Waker::noop()))
    }

    #[test]
    fn an_idle_connection_is_closed_and_a_busy_one_is_not() {
        let connections = Connections::new();
        let (idle, busy) = (connections.enter(0, Duration::ZERO), connections.enter(0, Duration::ZERO));
        let request = busy.requests().enter();
        let patient = connections.enter(0, Duration::from_secs(3600));
        connections.close_idle();
        assert_eq!((order(&idle), order(&busy), order(&patient)), (Order::Close, Order::Serve, Order::Serve));
        drop(request);
        connections.close_idle();
        assert_eq!(order(&busy), Order::Close);
    }

    #[test]
    fn one_servers_connections_end_and_no_others() {
        let connections = Connections::new();
        let limit = Duration::from_secs(1);
        let (gone, stays) = (connections.enter(3, limit), connections.enter(4, limit));
        connections.end_those(|server| server == 3);
        assert_eq!((order(&gone), order(&stays)), (Order::End, Order::Serve));
    }

    #[test]
    fn a_stop_reaches_all_and_those_to_come() {
        let connections = Connections::new();
        let before = connections.enter(0, Duration::from_secs(1));
        drop(connections.enter(0, Duration::from_secs(1)));
        connections.end_all();
        assert_eq!(
            (order(&before), order(&connections.enter(0, Duration::from_secs(1)))),
            (Order::End, Order::End)
        );
        drop(before);
        assert!(connections.all.borrow().is_empty());
    }
}
