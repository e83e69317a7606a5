use gym_worker_sdk::{Empty, ResourcesApp, ResourcesServer, Result, Session, Verdict, VerifyRequest};

struct Counter;

#[derive(serde::Serialize)]
struct Details {
    count: i64,
}

impl ResourcesServer for Counter {
    const CLASS: &'static str = "CounterServer";
    type Seed = Empty;
    type State = i64;
    type Verify = Empty;
    type Details = Details;

    async fn verify(&self, _: Session<i64>, _: VerifyRequest<Empty>) -> Result<Verdict> {
        Ok(Verdict::reward(1.0))
    }
}

fn main() {
    let _app = ResourcesApp::new(Counter);
}
