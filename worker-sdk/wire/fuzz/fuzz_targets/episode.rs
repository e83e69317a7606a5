//! Identities: read as they are made, and each with a capture key of its own.
#![no_main]

use gym_wire::message::{EpisodeId, FailureKind, TaskId};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: (&str, u64, &str, u64)| {
    let (one, attempt, two, other) = data;
    let ids = [(one, attempt), (two, other)].map(|(text, attempt)| {
        let id = EpisodeId::new(text, attempt).ok();
        let json = serde_json::json!({"rollout_id": text, "attempt": attempt}).to_string();
        assert_eq!(serde_json::from_str(&json).ok(), id);
        let _ = serde_json::from_str::<EpisodeId>(text);
        let _ = serde_json::from_str::<TaskId>(text);
        if let Some(id) = &id {
            assert_eq!(serde_json::to_string(id).unwrap(), json);
        }
        id
    });
    if let [Some(one), Some(two)] = ids {
        assert_eq!(one.capture_key() == two.capture_key(), one == two);
    }
    let kind = FailureKind::from(one.to_owned());
    assert!(!(kind.is_registered() && kind.is_namespaced()));
});
