//! `expose_tools_over_mcp`: the server's tools at `/mcp`.

use std::sync::Arc;

use axum::Router;
use gym_wire::message::{McpAccess, NeMoGymResponse};
use serde_json::{Map, Value};

use crate::resources::{Core, ResourcesServer};
use crate::session::Caller;

/// The routes of the MCP server.
pub(crate) fn routes<E: ResourcesServer>(core: &Arc<Core<E>>) -> Router<Arc<Core<E>>> {
    let _ = core;
    Router::new()
}

impl<E: ResourcesServer> Core<E> {
    /// How the session's agent reaches the tools; `None` if they are not exposed.
    pub(crate) fn tool_access(&self, caller: &Caller, seed: &Map<String, Value>) -> Option<McpAccess> {
        let _ = (caller, seed);
        None
    }

    /// Takes the MCP namespace off the tool names of a trajectory that `verify` is about to see.
    pub(crate) fn restore_tool_names(&self, response: &mut NeMoGymResponse) {
        let _ = response;
    }
}
