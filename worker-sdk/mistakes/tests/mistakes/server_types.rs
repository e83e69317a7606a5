use gym_worker_sdk::{Empty, ResourcesApp, ResourcesServer, Result, Session, Verdict, VerifyRequest};

struct Browser;

struct Seed {
    _page: String,
}

struct Details {
    _clicks: u32,
}

struct Surfing;

impl ResourcesServer for Surfing {
    const CLASS: &'static str = "SurfingServer";
    type Seed = Seed;
    type State = Browser;
    type Verify = Empty;
    type Details = Details;

    async fn verify(&self, _: Session<Browser>, _: VerifyRequest<Empty>) -> Result<Verdict<Details>> {
        Ok(Verdict::reward(1.0).with(Details { _clicks: 1 }))
    }
}

fn main() {
    let _app = ResourcesApp::new(Surfing);
}
