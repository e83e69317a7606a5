//! Seeding and closing a session.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::episode::non_empty;
use super::{EpisodeId, Map, TaskId};

/// The body of an episode's `/seed_session` (`ResourcesSeedSessionRequest`). Other keys are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedSessionRequest {
    /// The session's ID, which the caller chose; not empty.
    #[serde(deserialize_with = "non_empty")]
    pub resources_session_id: String,
    /// The attempt that the session is for.
    pub episode_id: EpisodeId,
    /// The task that it is about.
    pub task_id: TaskId,
    /// The task's own fields.
    pub task_data: Map,
}

/// The reply to an episode's `/seed_session` (`ResourcesSeedSessionResponse`).
///
/// ```
/// use gym_wire::message::SeedSessionResponse;
///
/// let plain = SeedSessionResponse::new("s1");
/// let json = r#"{"resources_session_id":"s1","resources_tools":null,"sandbox_access":null}"#;
/// assert_eq!(serde_json::to_string(&plain)?, json);
///
/// let seen = SeedSessionResponse { observation: Some(Some("A room.".into())), ..plain };
/// assert!(serde_json::to_string(&seen)?.ends_with(r#","observation":"A room."}"#));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedSessionResponse {
    /// The request's.
    pub resources_session_id: String,
    /// How the agent reaches the tools over MCP, if the server offers that. Null if not.
    #[serde(default)]
    pub resources_tools: Option<McpAccess>,
    /// How the agent reaches the sandbox, if there is one. Null if not.
    #[serde(default)]
    pub sandbox_access: Option<SandboxAccess>,
    /// What the agent is shown first. `None` leaves the key out, `Some(None)` writes null.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub observation: Option<Option<String>>,
}

/// How one session reaches a server's tools over MCP (`MCPServerMetadata`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpAccess {
    /// The server's name.
    pub server_name: String,
    /// `/mcp` by default.
    #[serde(default = "mcp_path")]
    pub url_path: String,
    /// `http` by default.
    #[serde(default = "http")]
    pub transport: String,
    /// The headers to send, the session's token among them.
    pub headers: BTreeMap<String, String>,
}

/// How an agent reaches a sandbox that the environment owns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxAccess {
    /// Where it is.
    pub connection: DirectSandboxConnection,
    /// The folder to work in.
    pub workdir: String,
}

/// A sandbox that is reached through a provider's configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectSandboxConnection {
    /// Always `direct`.
    #[serde(default)]
    pub kind: ConnectionKind,
    /// The top-level name of the provider's configuration.
    pub provider_config_ref: String,
    /// What the provider finds the sandbox by.
    pub descriptor: Map,
}

/// How a sandbox is reached: there is one way so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionKind {
    /// `direct`.
    #[default]
    Direct,
}

/// The body of an episode's `/close_session` (`ResourcesCloseSessionRequest`). Other keys are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloseSessionRequest {
    /// The session's ID.
    pub resources_session_id: String,
    /// The attempt that it was seeded for.
    pub episode_id: EpisodeId,
}

/// The reply to an episode's `/close_session` (`ResourcesCloseSessionResponse`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseSessionResponse {
    /// The request's.
    pub resources_session_id: String,
}

impl SeedSessionResponse {
    /// A reply that grants nothing but the session.
    pub fn new(resources_session_id: impl Into<String>) -> Self {
        Self {
            resources_session_id: resources_session_id.into(),
            resources_tools: None,
            sandbox_access: None,
            observation: None,
        }
    }
}

impl McpAccess {
    /// Access at `/mcp` over HTTP.
    pub fn new(server_name: impl Into<String>, headers: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            server_name: server_name.into(),
            url_path: mcp_path(),
            transport: http(),
            headers: headers.into_iter().collect(),
        }
    }
}

fn mcp_path() -> String {
    "/mcp".to_owned()
}

fn http() -> String {
    "http".to_owned()
}

/// Tells a null from an absent key.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}
