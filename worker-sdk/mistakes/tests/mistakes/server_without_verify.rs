use gym_worker_sdk::{Empty, ResourcesApp, ResourcesServer};

struct Counter;

impl ResourcesServer for Counter {
    const CLASS: &'static str = "CounterServer";
    type Seed = Empty;
    type Verify = Empty;
    type Details = Empty;
}

fn main() {
    let _app = ResourcesApp::new(Counter);
}
