//! What came of a check.

use std::fmt;

use serde::Serialize;

/// What a check sent and what came, step by step. `Display` is for people, `Serialize` for programs.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The server.
    pub url: String,
    /// Whether it was checked as one that keeps state.
    pub keeps_state: bool,
    /// Whether statuses and bodies had to be exactly the documented ones.
    pub strict: bool,
    /// As [`Report::is_ok`], for readers of the JSON.
    ok: bool,
    steps: Vec<Step>,
}

/// One request of a check, or one question to its `holds_state`.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// What the steps around it are about; they share a session.
    pub scenario: &'static str,
    /// What it is; no two steps of a scenario have the same name.
    pub name: &'static str,
    /// The session.
    pub resources_session_id: String,
    /// What was sent, or would have been, in words and shortened.
    pub sent: String,
    /// What the contract wants.
    pub wanted: String,
    /// What came, shortened; empty if nothing was sent.
    pub came: String,
    /// Whether that is what is wanted.
    pub verdict: Verdict,
    /// What is wrong, or why it was not tried; empty for an ok step.
    pub why: String,
}

/// What a [`Step`] showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As the contract wants it.
    Ok,
    /// Otherwise, or there was no answer.
    Violation,
    /// Not tried, because a step before it went wrong.
    NotRun,
}

impl Report {
    pub(super) fn new(url: &str, keeps_state: bool, strict: bool) -> Self {
        Self { url: url.into(), keeps_state, strict, ok: true, steps: Vec::new() }
    }

    pub(super) fn push(&mut self, step: Step) {
        self.ok &= step.verdict == Verdict::Ok;
        self.steps.push(step);
    }

    /// Whether every step was run and is as the contract wants it.
    pub fn is_ok(&self) -> bool {
        self.ok
    }

    /// Every step, in the order in which they were run.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The steps that break the contract.
    pub fn violations(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.verdict == Verdict::Violation)
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.steps.iter().filter(|step| step.verdict == verdict).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.keeps_state { "keeps state" } else { "keeps no state" };
        let strict = if self.strict { ", strict" } else { "" };
        writeln!(f, "{} as a server that {state}{strict}", self.url)?;
        let mut scenario = "";
        for step in &self.steps {
            if step.scenario != scenario {
                scenario = step.scenario;
                writeln!(f, "\n{scenario} ({})", step.resources_session_id)?;
            }
            writeln!(f, "{step}")?;
        }
        let (ok, wrong, not_run) =
            (self.count(Verdict::Ok), self.count(Verdict::Violation), self.count(Verdict::NotRun));
        let verdict = if self.ok { "keeps the contract" } else { "DOES NOT keep the contract" };
        write!(f, "\n{verdict}: {ok} steps ok, {wrong} wrong, {not_run} not run")
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.verdict {
            Verdict::Ok => write!(f, "  ok       {}", self.name),
            Verdict::NotRun => write!(f, "  not run  {}: {}", self.name, self.why),
            Verdict::Violation => {
                writeln!(f, "  WRONG    {}: {}", self.name, self.why)?;
                writeln!(f, "             sent    {}", self.sent)?;
                writeln!(f, "             wanted  {}", self.wanted)?;
                write!(f, "             came    {}", self.came)
            }
        }
    }
}

/// The beginning of a text, fit for a terminal.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const MOST: usize = 400;
    let head = &bytes[..bytes.len().min(4 * MOST)];
    let text = String::from_utf8_lossy(head);
    let mut shown = String::new();
    for (n, char) in text.chars().enumerate() {
        if n == MOST {
            break;
        }
        if char.is_control() {
            shown.extend(char.escape_default());
        } else {
            shown.push(char);
        }
    }
    if text.chars().nth(MOST).is_some() {
        shown.push_str(&format!("... ({} bytes)", bytes.len()));
    }
    shown
}
