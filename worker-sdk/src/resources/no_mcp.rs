//! A server built without the feature `mcp`: its tools are served over HTTP alone.

use gym_wire::message::{McpAccess, NeMoGymResponse};
use serde_json::{Map, Value};

use super::{Core, ResourcesServer};
use crate::session::Caller;

impl<E: ResourcesServer> Core<E> {
    pub(crate) fn tool_access(&self, _: &Caller, _: &Map<String, Value>) -> Option<McpAccess> {
        None
    }

    pub(crate) fn restore_tool_names(&self, _: &mut NeMoGymResponse) {}
}
