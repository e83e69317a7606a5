use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use crate::{
    config::WorkerLimits,
    worker_id::WorkerId,
    workers::{Address, Entry, InFlight, Turn, Worker, WorkerSet},
};

fn limits(max_in_flight: Option<usize>, max_queued: usize) -> WorkerLimits {
    WorkerLimits {
        max_in_flight_per_worker: max_in_flight,
        max_queued_per_worker: max_queued,
        ..WorkerLimits::default()
    }
}

fn set(workers: u16, max_in_flight: usize, max_queued: usize) -> (WorkerSet, Vec<Arc<Worker>>) {
    let set = WorkerSet::default();
    set.set_limits(&limits(Some(max_in_flight), max_queued));
    let workers: Vec<_> = (0..workers).map(|slot| worker(&set, slot)).collect();
    workers.iter().for_each(|worker| set.add(worker));
    (set, workers)
}

fn worker(set: &WorkerSet, slot: u16) -> Arc<Worker> {
    let id = WorkerId { slot, generation: 1 };
    Arc::new(Worker::new(id, Address::Unix("/s".into())).in_set(set))
}

fn enter(worker: &Arc<Worker>) -> Option<InFlight> {
    match worker.enter_if_room() {
        Entry::Entered(in_flight) => Some(in_flight),
        Entry::Full | Entry::Closed => None,
    }
}

/// The room that it was given, if it was.
fn given(turn: &mut Turn) -> Option<InFlight> {
    match pin!(turn.room()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(room) => Some(room),
        Poll::Pending => None,
    }
}

#[test]
fn a_place_goes_to_the_first_in_line() {
    let (_set, workers) = set(1, 2, 10);
    let worker = &workers[0];
    let (one, two) = (enter(worker).unwrap(), enter(worker).unwrap());
    assert!(!worker.has_room() && enter(worker).is_none());
    let (mut first, mut second) = (worker.queue().unwrap(), worker.queue().unwrap());
    assert!(given(&mut first).is_none());
    drop(one);
    assert!(enter(worker).is_none(), "it is the first one's already");
    assert!(given(&mut second).is_none());
    let first = given(&mut first).unwrap();
    drop(two);
    let _second = given(&mut second).unwrap();
    assert_eq!((worker.in_flight(), worker.queued()), (2, 0));
    drop(first);
    assert_eq!(worker.in_flight(), 1);
    assert!(enter(worker).is_some());
}

#[test]
fn as_many_wait_as_may_and_who_leaves_makes_place() {
    let (set, workers) = set(2, 1, 2);
    let _all: Vec<_> = workers.iter().map(|worker| enter(worker).unwrap()).collect();
    let (first, _second) = (workers[0].queue().unwrap(), workers[0].queue().unwrap());
    assert!(workers[0].queue().is_none());
    assert!(workers[1].queue().is_some());
    drop(first);
    assert_eq!(workers[0].queued(), 1);
    assert!(workers[0].queue().is_some());
    let common: Vec<_> = (0..4).map(|_| set.queue().unwrap()).collect();
    assert!(set.queue().is_none(), "two for each worker");
    drop(common);
    assert!(set.queue().is_some());
}

#[test]
fn a_worker_s_own_come_first_and_then_those_who_take_any() {
    let (set, workers) = set(2, 1, 10);
    let mut all: Vec<_> = workers.iter().map(|worker| enter(worker).unwrap()).collect();
    let (mut any, mut own) = (set.queue().unwrap(), workers[0].queue().unwrap());
    assert_eq!((set.queued(), workers[0].queued()), (1, 1));
    drop(all.remove(0));
    assert!(given(&mut any).is_none());
    let own = given(&mut own).unwrap();
    drop(all.remove(0));
    assert_eq!(given(&mut any).unwrap().worker().id.slot, 1);
    drop(own);
    assert_eq!(set.queued(), 0);
}

#[test]
fn room_that_was_given_to_one_who_left_goes_on() {
    let (_set, workers) = set(1, 1, 10);
    let one = enter(&workers[0]).unwrap();
    let (first, mut second) = (workers[0].queue().unwrap(), workers[0].queue().unwrap());
    drop(one);
    drop(first);
    assert!(given(&mut second).is_some());
    assert_eq!((workers[0].in_flight(), workers[0].queued()), (0, 0));
}

#[test]
fn a_worker_that_drains_serves_its_own_and_a_new_one_those_who_take_any() {
    let (set, workers) = set(1, 1, 10);
    let one = enter(&workers[0]).unwrap();
    let (mut any, mut own) = (set.queue().unwrap(), workers[0].queue().unwrap());
    workers[0].drain();
    drop(one);
    drop(given(&mut own).unwrap());
    assert!(given(&mut any).is_none());
    let next = worker(&set, 1);
    set.add(&next);
    assert_eq!(given(&mut any).unwrap().worker().id, next.id);
}

#[test]
fn a_higher_limit_is_room_and_a_lower_one_holds_for_those_to_come() {
    let (set, workers) = set(1, 1, 10);
    let one = enter(&workers[0]).unwrap();
    let (mut first, mut second) = (workers[0].queue().unwrap(), workers[0].queue().unwrap());
    set.set_limits(&limits(Some(2), 10));
    let first = given(&mut first).unwrap();
    assert!(given(&mut second).is_none());
    set.set_limits(&limits(None, 10));
    let second = given(&mut second).unwrap();
    assert!(enter(&workers[0]).is_some());
    set.set_limits(&limits(Some(1), 10));
    drop((one, first));
    assert!(enter(&workers[0]).is_none(), "one is there still");
    drop(second);
    assert!(enter(&workers[0]).is_some());
}

#[test]
fn nobody_waits_beside_a_free_place_whatever_the_threads_do() {
    let (set, workers) = set(2, 2, 1000);
    let (set, workers) = (Arc::new(set), Arc::new(workers));
    let one = |number: usize| {
        let (set, workers) = (set.clone(), workers.clone());
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            for round in 0..2000 {
                let worker = &workers[(number + round) % 2];
                let room = match enter(worker) {
                    Some(room) => room,
                    None if round % 3 == 0 => runtime.block_on(set.queue().unwrap().room()),
                    // Some leave the line.
                    None if round % 3 == 1 => match given(&mut worker.queue().unwrap()) {
                        Some(room) => room,
                        None => continue,
                    },
                    None => runtime.block_on(worker.queue().unwrap().room()),
                };
                assert!(room.worker().in_flight() <= 2);
            }
        }
    };
    let threads: Vec<_> = (0..6).map(|number| std::thread::spawn(one(number))).collect();
    // Whoever waits beside a free place waits for ever: the test would not end.
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(workers.iter().all(|worker| worker.in_flight() == 0));
    assert_eq!(set.queued(), 0);
}
