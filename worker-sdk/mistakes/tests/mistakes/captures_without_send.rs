use std::rc::Rc;

use gym_worker_sdk::{ResourcesApp, Result};

#[path = "../server.rs"]
mod server;
use server::Counter;

async fn add(by: i64) -> Result<i64> {
    Ok(by)
}

fn main() {
    let step = Rc::new(1);
    let _app = ResourcesApp::new(Counter).tool("add", move |by: server::By| {
        let by = by.count + *step;
        add(by)
    });
}
