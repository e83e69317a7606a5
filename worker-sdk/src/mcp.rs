//! `expose_tools_over_mcp`: the server's tools at `/mcp` too, for agents that find and call tools by the Model Context
//! Protocol.
//!
//! A seed's reply says where, and carries a token that names the session; tools are listed for anyone and called for the
//! token's session. The messages are typed by the official SDK (rmcp). Its HTTP service is not used: what NeMo Gym's
//! servers take and answer (an `Accept` of JSON alone, `GET` without a session, errors as JSON-RPC) it refuses.

mod answer;
mod claim;
mod endpoint;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::routing::any;
use gym_wire::message::{Item, McpAccess, NeMoGymResponse};
use gym_wire::token::{SessionToken, SessionTokenKey};
use serde_json::{Map, Value};

use crate::resources::{Core, ErasedTool, ResourcesServer, Tools};
use crate::schema::{anything, pydantic};
use crate::serve::{Settings, SetupError};
use crate::session::{Caller, SessionCookie};

const PATH: &str = "/mcp";
/// The header with the session's token; in requests in any case.
const TOKEN_HEADER: &str = "X-NeMo-Gym-Session-Token";

/// What is served at `/mcp`.
pub(crate) struct Exposed {
    key: SessionTokenKey,
    server_name: String,
    /// As clients list them, in the order in which the author added them.
    tools: Vec<rmcp::model::Tool>,
}

impl Exposed {
    /// What the settings say; `None` if the tools are not exposed.
    ///
    /// # Errors
    /// If a tool's arguments are nothing that MCP has.
    pub(crate) fn of<E: ResourcesServer>(
        settings: &Settings,
        cookie: &SessionCookie,
        tools: &Tools<E>,
    ) -> Result<Option<Self>, SetupError> {
        if !settings.expose_tools_over_mcp {
            return Ok(None);
        }
        let tools: Result<Vec<_>, SetupError> = tools.iter().map(|tool| listed(tool)).collect();
        Ok(Some(Self {
            key: SessionTokenKey::new(settings.session_secret.as_deref().unwrap_or(cookie.name())),
            server_name: settings.name.clone(),
            tools: tools?,
        }))
    }
}

/// A tool as clients list it.
///
/// # Errors
/// If its arguments are no object.
fn listed<E: ResourcesServer>(tool: &ErasedTool<E>) -> Result<rmcp::model::Tool, SetupError> {
    let schema = tool.schema.clone().map_or_else(anything, pydantic);
    if schema.get("type").is_some_and(|kind| kind != "object") {
        return Err(SetupError::Mcp(format!(
            "the arguments of the tool {} must be an object, such as a struct with named fields",
            tool.name
        )));
    }
    let description = tool.description.clone().map(Cow::Owned);
    Ok(rmcp::model::Tool::new_with_raw(tool.name.clone(), description, schema))
}

/// The routes of the MCP server: the path itself, and everything below it.
pub(crate) fn routes<E: ResourcesServer>() -> Router<Arc<Core<E>>> {
    let endpoint = any(endpoint::endpoint::<E>);
    Router::new()
        .route(PATH, endpoint.clone())
        .route("/mcp/", endpoint.clone())
        .route("/mcp/{*below}", endpoint)
}

/// Whether a path is the MCP server's, and cannot be the author's.
pub(crate) fn is_mcp(path: &str) -> bool {
    path.strip_prefix(PATH).is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

impl<E: ResourcesServer> Core<E> {
    /// How the session's agent reaches the tools; `None` if they are not exposed.
    pub(crate) fn tool_access(&self, caller: &Caller, seed: &Map<String, Value>) -> Option<McpAccess> {
        let exposed = self.mcp.as_ref()?;
        let tools = self.server.allowed_tools(seed);
        let token = exposed.key.sign(&SessionToken { sid: caller.id().to_string(), tools });
        Some(McpAccess {
            server_name: exposed.server_name.clone(),
            url_path: PATH.to_owned(),
            transport: "http".to_owned(),
            headers: BTreeMap::from([(TOKEN_HEADER.to_owned(), token)]),
        })
    }

    /// Takes this server's MCP namespace, `mcp__<server name>__`, off the tool names of a trajectory that `verify` is
    /// about to see: it scores the same, over whichever way the tools were called.
    pub(crate) fn restore_tool_names(&self, response: &mut NeMoGymResponse) {
        let Some(exposed) = &self.mcp else { return };
        let namespace = format!("mcp__{}__", exposed.server_name);
        for item in &mut response.output {
            if let Item::FunctionCall(call) = item
                && let Some(bare) = call.name.strip_prefix(&namespace)
            {
                call.name = bare.to_owned();
            }
        }
    }
}
