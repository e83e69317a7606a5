//! A changed config: more or fewer workers, workers that are started in another way.

use super::*;
use crate::{
    config::StartedAs,
    workers::{Reconfigured, Resized, RollState},
};

const MINUTE: Duration = Duration::from_secs(60);

fn config(num_workers: u16, program: &str) -> ServerConfig {
    let mut config = testing::server("fake", num_workers);
    if let Launch::Command { argv, .. } = &mut config.launch {
        *argv = vec![program.into()];
    }
    config
}

impl Play {
    fn reconfigure(&self, config: &ServerConfig) -> Reconfigured {
        let is_another = |new: &ServerConfig, than: &StartedAs| new.started_as() != *than;
        self.supervisor.reconfigure(config, &testing::gateway(), is_another, "the config has changed")
    }
}

#[tokio::test(start_paused = true)]
async fn fewer_workers_are_the_lowest_slots_and_a_slot_that_comes_back_counts_on() {
    let mut stage = play(1);
    let _one = stage.ready(0, 1).await;
    let change = stage.reconfigure(&config(3, "true"));
    assert_eq!(
        change,
        Reconfigured { resized: Resized { added: vec![1, 2], removed: vec![] }, rolls: false }
    );
    let (mut two, mut three) = (stage.ready(1, 1).await, stage.ready(2, 1).await);
    stage.hold(1, 1, 1);
    stage.hold(2, 1, 1);
    assert_eq!(stage.reconfigure(&config(1, "true")).resized.removed, [1, 2]);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(
        (stage.serving(), stage.supervisor.status().len()),
        (vec![id(0, 1)], 3),
        "what drains is shown"
    );
    stage.hold(1, 1, 0);
    two.is_asked_to_end().await;
    stage.settle().await;
    assert_eq!(stage.supervisor.status().len(), 2);

    assert_eq!(stage.reconfigure(&config(3, "true")).resized.added, [1, 2]);
    let (_two, _three) = (stage.ready(1, 2).await, stage.ready(2, 2).await);
    assert_eq!(stage.serving(), [id(0, 1), id(1, 2), id(2, 2)]);
    assert_eq!(stage.status(2).others[0].state, SlotState::Draining, "the first one of slot 2");
    stage.hold(2, 1, 0);
    three.is_asked_to_end().await;
}

#[tokio::test(start_paused = true)]
async fn another_command_rolls_and_holds_for_all_once_one_is_ready() {
    let mut stage = play(3);
    let mut old = stage.all_ready(3).await;
    assert!(stage.reconfigure(&config(3, "new")).rolls);
    let mut first = stage.start(0, 2).await;
    assert_eq!(first.argv, ["new"]);
    // Nobody knows yet whether the new command is any good.
    old[2].ends(Exit::Code(1));
    stage.settle().await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(stage.start(2, 2).await.argv, ["true"]);
    first.becomes_ready();
    old[0].is_asked_to_end().await;
    let second = stage.ready(1, 2).await;
    assert_eq!(second.argv, ["new"]);
    second.ends(Exit::Code(1));
    assert_eq!(stage.supervisor.config().launch, config(3, "new").launch);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_cannot_start_changes_nothing() {
    let mut stage = play(2);
    let old = stage.all_ready(2).await;
    assert!(stage.reconfigure(&config(2, "broken")).rolls);
    stage.start(0, 2).await.ends(Exit::Code(127));
    stage.settle().await;
    assert_eq!(stage.roll_state(), RollState::Failed);
    assert_eq!(stage.serving(), [id(0, 1), id(1, 1)]);
    old[1].ends(Exit::Code(1));
    assert_eq!(stage.start(1, 2).await.argv, ["true"], "a worker that dies is started as before");
    assert!(stage.reconfigure(&config(2, "broken")).rolls, "it is tried again by the next reload");
}

#[tokio::test(start_paused = true)]
async fn a_change_during_a_roll_calls_it_off_if_it_leads_elsewhere() {
    let mut stage = play(2);
    let _old = stage.all_ready(2).await;
    assert!(stage.reconfigure(&config(2, "one")).rolls);
    let mut one = stage.start(0, 2).await;
    let mut same = config(2, "one");
    same.settings.max_surge = 2;
    assert!(!stage.reconfigure(&same).rolls, "that one is under way");
    let mut other = stage.start(1, 2).await;
    assert_eq!(other.argv, ["one"], "max_surge holds at once");
    assert!(stage.reconfigure(&config(2, "two")).rolls);
    one.is_asked_to_end().await;
    other.is_asked_to_end().await;
    let two = stage.start(0, 3).await;
    assert_eq!(two.argv, ["two"]);
    assert!(!stage.reconfigure(&config(2, "true")).rolls, "back to what runs");
    stage.settle().await;
    assert_eq!(stage.roll_state(), RollState::CalledOff);
    assert_eq!(stage.serving(), [id(0, 1), id(1, 1)]);
}

impl Play {
    fn roll_state(&self) -> RollState {
        self.supervisor.roll().expect("a rolling restart").state
    }
}
