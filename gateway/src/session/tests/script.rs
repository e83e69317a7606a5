//! The words that histories are told in.

use super::{config, stage::Stage};
use crate::config::Kind;

/// One step of a history.
pub(super) enum Step {
    /// Sends a request under a tag; where it goes.
    Send(&'static str, &'static str, &'static str),
    /// A reply's head; what is done to it.
    Answer(&'static str, &'static str, &'static str),
    /// What the answer's body, or a WebSocket's message, says.
    Said(&'static str, &'static str),
    /// The state of the session that a request in flight has, whatever its ID.
    StateOf(&'static str, &'static str),
    /// How many sessions a slot's worker has.
    Load(u16, usize),
    End(&'static str),
    Over(&'static str),
    /// No byte was sent; whether another worker may be chosen.
    Withdraw(&'static str, bool),
    /// A whole request: request, reply, where it went and what was done to the reply's head.
    Play(&'static str, &'static str, &'static str),
    /// A slot's worker exits, and the next generation is ready.
    Exit(u16),
    /// What a request in flight gets whose worker has exited.
    Cut(&'static str, &'static str),
    /// Seconds go by.
    Pass(u64),
    State(&'static str, &'static str),
}

use Step::*;

pub(super) fn tell(kind: Kind, title: &str, steps: &[Step]) {
    tell_on(Stage::new(&config(kind)), title, steps);
}

pub(super) fn tell_on(mut stage: Stage, title: &str, steps: &[Step]) {
    for (n, step) in steps.iter().enumerate() {
        let place = format!("{title}, step {n}");
        match step {
            Send(tag, request, to) => assert_eq!(stage.send(tag, request), *to, "{place}"),
            Answer(tag, reply, effects) => assert_eq!(stage.answer(tag, reply), *effects, "{place}"),
            Said(tag, said) => stage.said(tag, said),
            StateOf(tag, state) => {
                let session = stage.session_of(tag);
                assert_eq!(stage.state(session.as_str()), *state, "{place}");
            }
            Load(slot, load) => {
                let generation = stage.ready[usize::from(*slot)].unwrap();
                let worker = crate::worker_id::WorkerId { slot: *slot, generation };
                assert_eq!(stage.table.load(worker), *load, "{place}");
            }
            End(tag) => stage.end(tag),
            Over(tag) => stage.over(tag),
            Withdraw(tag, free) => assert_eq!(stage.withdraw(tag), *free, "{place}"),
            Play(request, reply, outcome) => assert_eq!(stage.play(request, reply), *outcome, "{place}"),
            Exit(slot) => stage.exit(*slot),
            Cut(tag, code) => assert_eq!(stage.after_exit(tag), *code, "{place}"),
            Pass(seconds) => stage.pass(*seconds),
            State(session, state) => assert_eq!(stage.state(session), *state, "{place}"),
        }
    }
}

pub(super) const SEED: &str = "POST /seed_session body=a";
pub(super) const CLOSE: &str = "POST /close_session body=a";
pub(super) const TOOL: &str = "POST /tool cookie=a";
pub(super) const VERIFY: &str = "POST /verify cookie=a";
pub(super) const RESET: &str = "POST /reset cookie=a";
pub(super) const STEP: &str = "POST /step cookie=a";
