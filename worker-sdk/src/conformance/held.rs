//! What a server still has of a session.

use std::fmt::Display;

/// What a server holds for a session ID: what [`super::Options::holds_state`] answers.
///
/// Made from a `bool`, from an `Option<String>` (the state's name), and from a `Result` of those.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// Nothing.
    Nothing,
    /// State.
    State,
    /// State of this name, such as the ID of its container. Another name after a repeated seed is a violation: the
    /// state was made anew.
    Named(String),
    /// It could not be found out, and why. Always a violation.
    Unknown(String),
}

impl From<bool> for Held {
    fn from(holds: bool) -> Self {
        if holds { Self::State } else { Self::Nothing }
    }
}

impl From<Option<String>> for Held {
    fn from(name: Option<String>) -> Self {
        name.map_or(Self::Nothing, Self::Named)
    }
}

impl<T: Into<Self>, E: Display> From<Result<T, E>> for Held {
    fn from(result: Result<T, E>) -> Self {
        result.map_or_else(|error| Self::Unknown(error.to_string()), Into::into)
    }
}

/// What is wanted of [`Held`].
#[derive(Clone, Debug)]
pub(super) enum Holds {
    /// Nothing.
    Nothing,
    /// State, whichever.
    State,
    /// The same as before.
    Still(Held),
}

impl Holds {
    pub(super) fn describe(&self) -> &'static str {
        match self {
            Self::Nothing => "no state",
            Self::State => "state",
            Self::Still(_) => "the state that it had",
        }
    }

    /// What is wrong with it, if anything.
    pub(super) fn judge(&self, held: &Held) -> Result<(), String> {
        match (self, held) {
            (_, Held::Unknown(error)) => Err(format!("could not find out: {error}")),
            (Self::Nothing, Held::Nothing) => Ok(()),
            (Self::Nothing, _) => Err("the state was not released".into()),
            (_, Held::Nothing) => Err("there is no state".into()),
            (Self::Still(Held::Named(before)), Held::Named(now)) if before != now => {
                Err(format!("the state was made anew: it was {before}"))
            }
            (Self::State | Self::Still(_), _) => Ok(()),
        }
    }
}

impl Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => f.write_str("no state"),
            Self::State => f.write_str("state"),
            Self::Named(name) => write!(f, "state {name}"),
            Self::Unknown(_) => f.write_str("no answer"),
        }
    }
}
