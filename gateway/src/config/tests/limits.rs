//! Limits, and how many workers there may be.

use std::time::Duration;

use super::{Folder, counter};
use crate::config::{ElasticSettings, ServerSettings, WorkerLimits};

fn text(num_workers: u16, settings: &str) -> String {
    counter(&format!("port: 8000\nnum_workers: {num_workers}"))
        + &format!("gateway: {{servers: {{counter: {{{settings}}}}}}}\n")
}

fn read(settings: &str) -> ServerSettings {
    Folder::new().load(&[&text(2, settings)]).unwrap().servers.remove(0).settings
}

#[test]
fn limits_are_off_unless_they_are_given() {
    assert_eq!(read("").limits, WorkerLimits::default());
    assert!(!WorkerLimits::default().replace_workers());
    let all = "max_requests: 1, max_sessions: 2, max_lifetime_seconds: 3.5, max_memory_bytes: 4, \
               max_memory_samples: 5, max_in_flight_per_worker: 6, max_queued_per_worker: 0, hang_timeout_seconds: 8";
    let limits = WorkerLimits {
        max_requests: Some(1),
        max_sessions: Some(2),
        max_lifetime: Some(Duration::from_millis(3500)),
        max_memory_bytes: Some(4),
        max_memory_samples: 5,
        max_in_flight_per_worker: Some(6),
        max_queued_per_worker: 0,
        hang_timeout: Some(Duration::from_secs(8)),
    };
    assert_eq!(read(all).limits, limits);
    let (_, keys) = read("").changed_to(&read("max_requests: 1, hang_timeout_seconds: 8, max_workers: 2"));
    assert_eq!(keys.at_once, ["max_requests", "hang_timeout_seconds", "max_workers"]);
}

#[test]
fn nothing_is_limited_to_nothing() {
    for key in [
        "max_requests",
        "max_sessions",
        "max_lifetime_seconds",
        "max_memory_bytes",
        "max_memory_samples",
        "max_in_flight_per_worker",
        "hang_timeout_seconds",
        "min_workers",
        "max_workers",
        "target_sessions_per_worker",
    ] {
        let errors = Folder::new().errors(&[&text(2, &format!("{key}: 0"))]);
        assert!(errors[0].contains(key), "{key}: {errors:?}");
    }
}

#[test]
fn the_number_of_workers_stands_between_its_bounds() {
    let elastic = |min_workers, max_workers, target_sessions_per_worker| ElasticSettings {
        min_workers,
        max_workers,
        target_sessions_per_worker,
    };
    let target = "target_sessions_per_worker: 9";
    for (settings, read_as, range) in [
        (String::new(), elastic(None, None, None), (2, 2)),
        (format!("max_workers: 8, {target}"), elastic(None, Some(8), Some(9)), (2, 8)),
        (format!("min_workers: 1, {target}"), elastic(Some(1), None, Some(9)), (1, 2)),
        ("max_workers: 8, max_in_flight_per_worker: 3".into(), elastic(None, Some(8), None), (2, 8)),
    ] {
        let config = Folder::new().load(&[&text(2, &settings)]).unwrap();
        assert_eq!(config.servers[0].settings.elastic, read_as);
        assert_eq!(config.servers[0].workers_range(), range, "{settings}");
    }
    for (settings, key, what) in [
        (format!("min_workers: 3, {target}"), "min_workers", "more than num_workers"),
        (format!("max_workers: 1, {target}"), "max_workers", "less than num_workers"),
        ("max_workers: 3".into(), "max_workers", "needs target_sessions_per_worker"),
        ("min_workers: 1".into(), "min_workers", "needs target_sessions_per_worker"),
    ] {
        let errors = Folder::new().errors(&[&text(2, &settings)]);
        assert!(errors.len() == 1 && errors[0].contains(key) && errors[0].contains(what), "{errors:?}");
    }
}

#[test]
fn a_server_that_must_have_one_worker_cannot_grow() {
    let settings =
        "max_workers: 3, target_sessions_per_worker: 9, multiple_workers_unsupported_reason: one board";
    let errors = Folder::new().errors(&[&text(1, settings)]);
    assert!(
        errors[0].contains("3 workers, but this server must have one: one board. Set max_workers: 1"),
        "{errors:?}"
    );
}
