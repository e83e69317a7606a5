use gym_worker_sdk::{ResourcesApp};

struct Counter;

fn main() {
    let _app = ResourcesApp::new(Counter);
}
