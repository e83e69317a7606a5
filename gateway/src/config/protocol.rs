//! The two protocols of resources servers.

use serde::Deserialize;

/// Which of NeMo Gym's two protocols a resources server speaks: whether `POST /close`, say, is the protocol's route, or
/// a tool of the author's that happens to have that name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Either, as it comes: an unmodified server says nothing.
    #[default]
    Both,
    /// `/seed_session`, `/verify`, `/close_session`.
    SeedVerify,
    /// `/reset`, `/step`, `/close`.
    Gymnasium,
}

impl Protocol {
    /// Every protocol, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::Both, Self::SeedVerify, Self::Gymnasium];

    /// The config's word: `both`, `seed_verify`, `gymnasium`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::SeedVerify => "seed_verify",
            Self::Gymnasium => "gymnasium",
        }
    }

    /// Whether `/seed_session`, `/verify` and `/close_session` are the protocol's.
    pub fn seeds(self) -> bool {
        self != Self::Gymnasium
    }

    /// Whether `/reset`, `/step` and `/close` are the protocol's.
    pub fn resets(self) -> bool {
        self != Self::SeedVerify
    }

    /// The routes of which the protocol says what they do to a session.
    pub(super) fn session_routes(self) -> &'static [&'static str] {
        match self {
            Self::Both => {
                &["/seed_session", "/reset", "/step", "/verify", "/close_session", "/close", "/mcp", "/mcp/"]
            }
            Self::SeedVerify => &["/seed_session", "/verify", "/close_session", "/mcp", "/mcp/"],
            Self::Gymnasium => &["/reset", "/step", "/close", "/mcp", "/mcp/"],
        }
    }
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|protocol| protocol.name() == text);
        known.ok_or_else(|| {
            format!("unknown protocol {text:?}: one of {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}
