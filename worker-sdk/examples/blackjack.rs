//! Blackjack: the model hits or stands until the hand ends. 1 for a win, 0 for a draw, -1 for a loss.
//!
//! The twin of NeMo Gym's `blackjack`. Its config may hold a `deck`, a list of cards that are dealt over and over, to all
//! sessions in turn, instead of random ones: `GYM_SERVER_CONFIG='{"deck": ["10", "7", "9", "8"]}'`.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use gym_worker_sdk::{
    Empty, GymnasiumApp, GymnasiumServer, NeMoGymResponse, Reset, ResetInfo, Result, Session, SessionState,
    Settings, Step,
};
use regex::Regex;
use serde::Deserialize;

const RANKS: [&str; 13] = ["2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K", "A"];

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    deck: Vec<String>,
}

struct Blackjack {
    deck: Vec<String>,
    dealt: AtomicUsize,
    action: Regex,
}

struct Hand(Vec<String>);

struct Table {
    player: Hand,
    dealer: Hand,
}

impl SessionState for Table {}

impl Blackjack {
    fn new(config: Config) -> Result<Self, Box<dyn Error>> {
        if let Some(card) = config.deck.iter().find(|card| !RANKS.contains(&card.as_str())) {
            return Err(format!("the config's deck: {card:?} is no card: use {}", RANKS.join(", ")).into());
        }
        let action = Regex::new(r"(?i)<action>\s*(hit|stand)\s*</action>")?;
        Ok(Self { deck: config.deck, dealt: AtomicUsize::new(0), action })
    }

    fn deal(&self) -> String {
        if self.deck.is_empty() {
            return RANKS[fastrand::usize(..RANKS.len())].to_owned();
        }
        self.deck[self.dealt.fetch_add(1, Ordering::Relaxed) % self.deck.len()].clone()
    }

    /// Whoever says neither stands.
    fn is_hit(&self, text: &str) -> bool {
        self.action.captures(text).is_some_and(|found| found[1].eq_ignore_ascii_case("hit"))
    }
}

impl Hand {
    fn value(&self) -> u32 {
        let worth = |card: &str| match card {
            "J" | "Q" | "K" => 10,
            "A" => 11,
            number => number.parse().unwrap_or(0),
        };
        let mut value = self.0.iter().map(|card| worth(card)).sum();
        for _ in self.0.iter().filter(|card| *card == "A") {
            if value > 21 {
                value -= 10;
            }
        }
        value
    }
}

impl fmt::Display for Hand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.0.join(", "))
    }
}

impl Table {
    fn shown(&self) -> String {
        let Self { player, dealer } = self;
        format!(
            "Your hand: {player} = {}\nDealer shows: {}\nRespond with <action>hit</action> or <action>stand</action>.",
            player.value(),
            dealer.0[0],
        )
    }
}

impl GymnasiumServer for Blackjack {
    const CLASS: &'static str = "BlackjackEnv";
    type Metadata = Empty;
    type State = Table;

    async fn reset(&self, _: ResetInfo, _: Empty) -> Result<Reset<Table>> {
        let two = || Hand(vec![self.deal(), self.deal()]);
        let table = Table { player: two(), dealer: two() };
        let shown = table.shown();
        Ok(Reset::new(table).observation(shown))
    }

    async fn step(&self, session: Session<Table>, action: NeMoGymResponse, _: Empty) -> Result<Step> {
        let mut table = session.state().await?;
        if self.is_hit(&action.output_text()) {
            table.player.0.push(self.deal());
            let value = table.player.value();
            if value <= 21 {
                return Ok(Step::reward(0.0).observation(table.shown()));
            }
            let bust = Step::reward(-1.0).terminated().info("result", "bust");
            return Ok(bust.info("player", table.player.to_string()).info("value", value));
        }
        while table.dealer.value() < 17 {
            table.dealer.0.push(self.deal());
        }
        let (player, dealer) = (table.player.value(), table.dealer.value());
        let (reward, result) = match player {
            _ if dealer > 21 || player > dealer => (1.0, "win"),
            _ if player == dealer => (0.0, "draw"),
            _ => (-1.0, "loss"),
        };
        Ok(Step::reward(reward)
            .terminated()
            .info("result", result)
            .info("player", table.player.to_string())
            .info("player_value", player)
            .info("dealer", table.dealer.to_string())
            .info("dealer_value", dealer))
    }
}

fn app() -> Result<GymnasiumApp<Blackjack>, Box<dyn Error>> {
    let settings = Settings::from_env("blackjack")?;
    let server = Blackjack::new(settings.config()?)?;
    Ok(GymnasiumApp::new(server).settings(settings))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match app() {
        Ok(app) => app.run().await,
        Err(error) => {
            eprintln!("blackjack: {error}");
            ExitCode::FAILURE
        }
    }
}
