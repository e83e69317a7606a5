use gym_worker_sdk::{GymnasiumApp};

struct Blackjack;

fn main() {
    let _app = GymnasiumApp::new(Blackjack);
}
