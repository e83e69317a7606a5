use gym_worker_sdk::{Empty, ResourcesApp, ResourcesServer, Result, Session, Verdict, VerifyRequest};

struct Counter;

impl ResourcesServer for Counter {
    const CLASS: &'static str = "CounterServer";
    type Seed = Empty;
    type State = i64;
    type Verify = Empty;
    type Details = Empty;

    async fn verify(&self, _: Session<u64>, _: VerifyRequest<Empty>) -> Result<Verdict> {
        Ok(Verdict::reward(1.0))
    }
}

fn main() {
    let _app = ResourcesApp::new(Counter);
}
