//! What a request is answered.

use axum::http::StatusCode;
use gym_wire::message::dumps;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientRequest, Content, ErrorCode, ErrorData, Implementation,
    InitializeRequestParams, InitializeResult, ListToolsResult, ProtocolVersion, ServerCapabilities,
    ServerResult, ToolsCapability,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Exposed;
use super::claim::Claim;
use crate::Failure;
use crate::errors::{Invalid, catch_panic, explained};
use crate::repr::{repr, sorted};
use crate::resources::{Core, ErasedTool, ResourcesServer, ToolError};
use crate::session::Caller;

/// The versions of the protocol that NeMo Gym's servers speak, oldest first.
pub(super) const VERSIONS: [ProtocolVersion; 4] = [
    ProtocolVersion::V_2024_11_05,
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
];

/// The result of a request, or the error in its place.
pub(super) async fn answer<E: ResourcesServer>(
    core: &Core<E>,
    exposed: &Exposed,
    claim: &Claim,
    request: ClientRequest,
) -> Result<ServerResult, ErrorData> {
    match request {
        ClientRequest::PingRequest(_) => Ok(ServerResult::empty(())),
        ClientRequest::InitializeRequest(request) => Ok(initialize(exposed, request.params).into()),
        ClientRequest::ListToolsRequest(_) => {
            let tools = exposed.tools.iter().filter(|tool| claim.lists(&tool.name));
            Ok(ListToolsResult::with_all_items(tools.cloned().collect()).into())
        }
        ClientRequest::CallToolRequest(request) => Ok(core.call_over_mcp(claim, request.params).await.into()),
        // Of an unknown method, or one whose parameters are not what it takes.
        ClientRequest::CustomRequest(_) => {
            Err(ErrorData::invalid_params("Invalid request parameters", Some(json!(""))))
        }
        // Resources, prompts and the like.
        _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "Method not found", None)),
    }
}

fn initialize(exposed: &Exposed, client: InitializeRequestParams) -> InitializeResult {
    let mut capabilities = ServerCapabilities::default();
    capabilities.experimental = Some(Default::default());
    capabilities.tools = Some(ToolsCapability { list_changed: Some(false) });
    let asked = client.protocol_version;
    let version = if VERSIONS.contains(&asked) { asked } else { ProtocolVersion::V_2025_11_25 };
    let server = Implementation::new(exposed.server_name.as_str(), env!("CARGO_PKG_VERSION"));
    InitializeResult::new(capabilities).with_protocol_version(version).with_server_info(server)
}

impl<E: ResourcesServer> Core<E> {
    /// Calls a tool for the session that is claimed. What fails is a result too: the model reads it.
    async fn call_over_mcp(&self, claim: &Claim, asked: CallToolRequestParams) -> CallToolResult {
        let name = &*asked.name;
        let Some(tool) = self.tools.get(name) else {
            let available = sorted(self.tools.iter().map(|tool| tool.name.as_str()));
            return failed(format!("Unknown tool: {}. Available tools: {available}", repr(name)));
        };
        let claimed = match claim {
            Claim::Session(claimed) => claimed,
            Claim::None(reason) => return failed(reason.to_string()),
        };
        if !claimed.allows(name) {
            return failed(format!("Tool {} is not allowed for this session.", repr(name)));
        }
        let arguments = Value::Object(asked.arguments.unwrap_or_default());
        match self.call_caught(tool, &claimed.caller, arguments).await {
            Ok(result) => succeeded(&result),
            Err(error) => {
                let (status, detail) = told(error);
                failed(format!("HTTP {} from POST /{name}: {detail}", status.as_u16()))
            }
        }
    }

    /// A panic is the tool's failure, not the transport's.
    async fn call_caught(
        &self,
        tool: &ErasedTool<E>,
        caller: &Caller,
        arguments: Value,
    ) -> Result<Box<RawValue>, ToolError> {
        let called = catch_panic(self.call(tool, caller, arguments, &[])).await;
        called.unwrap_or_else(|panicked| Err(ToolError::Failure(panicked)))
    }
}

fn failed(words: String) -> CallToolResult {
    CallToolResult::error(vec![Content::text(words)])
}

/// A text is itself, everything else its JSON; an object is there as data too.
fn succeeded(result: &RawValue) -> CallToolResult {
    let json = result.get();
    let (text, data) = match json.as_bytes().first() {
        Some(b'"') => (serde_json::from_str(json).unwrap_or_else(|_| json.to_owned()), None),
        Some(b'{') => (json.to_owned(), serde_json::from_str(json).ok()),
        _ => (json.to_owned(), None),
    };
    let mut succeeded = CallToolResult::success(vec![Content::text(text)]);
    succeeded.structured_content = data;
    succeeded
}

/// What the tool's own route would have answered.
fn told(error: ToolError) -> (StatusCode, String) {
    match error {
        ToolError::Invalid(invalid) => (invalid.status(), problems(&invalid)),
        ToolError::Failure(failure) => {
            failure.log_if_fault();
            (failure.status(), failure.to_string())
        }
    }
}

/// pydantic's own list.
fn problems(invalid: &Invalid) -> String {
    let detail = explained(invalid);
    if let Some(words) = detail.as_str() {
        return words.to_owned();
    }
    // It came out of JSON: it goes in again.
    dumps(&detail).unwrap_or_else(|_| Failure::from(invalid.clone()).to_string())
}
