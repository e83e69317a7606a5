use gym_worker_sdk::{Empty, ResourcesApp, ResourcesServer, Result, Session, Verdict, VerifyRequest};

struct Counter;

impl ResourcesServer for Counter {
    const CLASS: &'static str = "CounterServer";
    type Seed = Empty;
    type State = i64;
    type Verify = Empty;
    type Details = Empty;

    async fn verify(&self, session: Session<i64>, _: VerifyRequest<Empty>) -> Result<Verdict> {
        let best = std::rc::Rc::new(10);
        let is_best = *session.state().await? == *best;
        Ok(Verdict::reward(f64::from(is_best)))
    }
}

fn main() {
    let _app = ResourcesApp::new(Counter);
}
