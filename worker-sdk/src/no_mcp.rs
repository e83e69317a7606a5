//! In place of `mcp.rs` where the crate's feature `mcp` is off.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use gym_wire::message::{McpAccess, NeMoGymResponse};
use serde_json::{Map, Value};

use crate::resources::{Core, ResourcesServer, Tools};
use crate::serve::{Settings, SetupError};
use crate::session::{Caller, SessionCookie};

/// Never there.
pub(crate) struct Exposed(#[allow(dead_code)] Infallible);

impl Exposed {
    pub(crate) fn of<E: ResourcesServer>(
        settings: &Settings,
        _: &SessionCookie,
        _: &Tools<E>,
    ) -> Result<Option<Self>, SetupError> {
        match settings.expose_tools_over_mcp {
            true => Err(SetupError::Mcp("build gym-worker-sdk with its feature `mcp`".to_owned())),
            false => Ok(None),
        }
    }
}

pub(crate) fn routes<E: ResourcesServer>() -> Router<Arc<Core<E>>> {
    Router::new()
}

pub(crate) fn is_mcp(path: &str) -> bool {
    path.strip_prefix("/mcp").is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

impl<E: ResourcesServer> Core<E> {
    pub(crate) fn tool_access(&self, _: &Caller, _: &Map<String, Value>) -> Option<McpAccess> {
        None
    }

    pub(crate) fn restore_tool_names(&self, _: &mut NeMoGymResponse) {}
}
