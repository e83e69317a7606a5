use gym_worker_sdk::{GymnasiumApp, GymnasiumServer, NeMoGymResponse, Result, Session, Step};

struct Hand;

struct Row {
    _deck: Vec<u8>,
}

struct Blackjack;

impl GymnasiumServer for Blackjack {
    const CLASS: &'static str = "BlackjackEnv";
    type Metadata = Row;
    type State = Hand;

    async fn step(&self, _: Session<Hand>, _: NeMoGymResponse, _: Row) -> Result<Step> {
        Ok(Step::reward(1.0).terminated())
    }
}

fn main() {
    let _app = GymnasiumApp::new(Blackjack);
}
