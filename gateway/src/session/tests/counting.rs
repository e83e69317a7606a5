//! What the admin address is told.

use super::super::Counts;
use super::{config, id, script::SEED, stage::Stage};
use crate::{config::Kind, worker_id::WorkerId};

#[test]
fn counts_follow() {
    let mut stage = Stage::new(&config(Kind::Resources));
    stage.play(SEED, "200");
    stage.play("POST /seed_session body=b", "500");
    stage.play("POST /close_session body=c", "200");
    stage.play("POST /tool cookie=d", "500");
    let row = |counts: &Counts, slot: usize| {
        let worker = &counts.workers[slot];
        (worker.claimed, worker.open, worker.ended)
    };
    let counts = stage.table.counts();
    assert_eq!((row(&counts, 0), row(&counts, 1)), ((0, 1, 1), (1, 0, 0)));
    assert_eq!(counts.withdrawn_total, 1);
    assert_eq!(stage.table.load(WorkerId { slot: 0, generation: 1 }), 1);
    stage.exit(0);
    stage.pass(300);
    let counts = stage.table.counts();
    assert_eq!(counts.workers.len(), 1, "{counts:?}");
    assert_eq!(row(&counts, 0), (0, 0, 0));
    assert_eq!((counts.lost_total, counts.lost_remembered, counts.forgotten_total), (1, 1, 2));
    assert_eq!(counts.expired_total, 0);
}

#[test]
fn lists_what_is_asked_for() {
    use super::super::{SessionFilter, SessionState};
    let mut stage = Stage::new(&config(Kind::Resources));
    stage.play(SEED, "200");
    stage.play("POST /seed_session body=ab", "200");
    stage.play("POST /close_session body=b", "200");
    stage.now += 1_500;
    let list = |filter: SessionFilter, limit| {
        let mut ids: Vec<_> = stage
            .table
            .list(limit, &filter, stage.now)
            .into_iter()
            .map(|session| session.id.to_string())
            .collect();
        ids.sort();
        ids
    };
    let all = SessionFilter::default();
    assert_eq!(list(all.clone(), 10), ["a", "ab", "b"]);
    assert_eq!(list(all.clone(), 2).len(), 2);
    assert_eq!(list(SessionFilter { state: Some(SessionState::Ended), ..all.clone() }, 10), ["b"]);
    assert_eq!(list(SessionFilter { slot: Some(1), ..all.clone() }, 10), ["ab"]);
    assert_eq!(list(SessionFilter { prefix: Some("a".into()), ..all }, 10), ["a", "ab"]);
    let found = stage.table.find(&id("b"), stage.now).unwrap();
    assert!(found.fenced && found.idle == 1_500 && found.in_flight == 0);
}
