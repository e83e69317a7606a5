use gym_worker_sdk::{Empty, GymnasiumApp, GymnasiumServer};

struct Blackjack;

impl GymnasiumServer for Blackjack {
    const CLASS: &'static str = "BlackjackEnv";
    type Metadata = Empty;
    type State = u32;
}

fn main() {
    let _app = GymnasiumApp::new(Blackjack);
}
