//! Tools as clients list them.

use std::borrow::Cow;

use rmcp::model::Tool;

use crate::resources::{ErasedTool, ResourcesServer};
use crate::schema::{anything, pydantic};
use crate::serve::SetupError;

/// A tool as clients list it.
///
/// # Errors
/// If its arguments are no object.
pub(super) fn listed<E: ResourcesServer>(tool: &ErasedTool<E>) -> Result<Tool, SetupError> {
    let schema = tool.schema.clone().map_or_else(anything, pydantic);
    if schema.get("type").is_some_and(|kind| kind != "object") {
        return Err(SetupError::Mcp(format!(
            "the arguments of the tool {} must be an object, such as a struct with named fields",
            tool.name
        )));
    }
    Ok(Tool::new_with_raw(tool.name.clone(), tool.description.clone().map(Cow::Owned), schema))
}
