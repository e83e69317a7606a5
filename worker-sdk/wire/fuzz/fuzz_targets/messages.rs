//! Messages: what is read is written the same, to the last null.
#![no_main]

use std::fmt::Debug;

use gym_wire::message::{
    Item, Map, NeMoGymResponse, ResetRequest, ResponsesCreateParams, SeedSessionRequest, SeedSessionResponse,
    StepRequest, StepResponse, VerifyRequest, dumps,
};
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Ok(json) = serde_json::from_slice::<Value>(data) else { return };
    same::<Item>(data, &json);
    same::<NeMoGymResponse>(data, &json);
    same::<ResponsesCreateParams>(data, &json);
    same::<ResetRequest>(data, &json);
    stable::<StepRequest>(data);
    stable::<VerifyRequest<Map>>(data);
    stable::<SeedSessionRequest>(data);
    stable::<SeedSessionResponse>(data);
    if let Some(mut step) = stable::<StepResponse>(data) {
        let _ = step.lift_reserved();
    }
    // What Python would write is the same JSON.
    let written = dumps(&json).expect("a value is JSON");
    assert!(written.is_ascii());
    assert_eq!(serde_json::from_str::<Value>(&written).expect("it is JSON"), json);
});

/// Written as it came.
fn same<T: DeserializeOwned + Serialize>(data: &[u8], json: &Value) {
    if let Ok(read) = serde_json::from_slice::<T>(data) {
        assert_eq!(serde_json::to_value(&read).expect("it is JSON"), *json);
    }
}

/// What was written is read as the same again.
fn stable<T: DeserializeOwned + Serialize + PartialEq + Debug>(data: &[u8]) -> Option<T> {
    let read = serde_json::from_slice::<T>(data).ok()?;
    let written = serde_json::to_string(&read).expect("it is JSON");
    let again: T = serde_json::from_str(&written).expect("it was read before");
    assert_eq!(serde_json::to_string(&again).expect("it is JSON"), written);
    Some(read)
}
