//! The messages of NeMo Gym's two episode protocols: seed/verify and Gymnasium.
//!
//! What authors use is typed; everything else is kept. Each open type (those with a field `extra`) writes what it has
//! read: an unknown key stays, `null` stays `null`, an absent key stays absent. Of a repeated key the last counts, as in
//! Python. A key of a known name and a wrong type is an error that names it.

mod content;
mod episode;
mod failure;
mod gymnasium;
mod item;
mod object;
mod params;
mod python_json;
mod response;
mod session;
mod verify;

pub use content::{Content, Part};
pub use episode::{EpisodeId, InvalidId, TaskId};
pub use failure::{FailureKind, ReportedKinds};
pub use gymnasium::{
    BadReservedKey, ResetRequest, ResetResponse, StepRequest, StepResponse, ToolOutput, tool_output,
};
pub use item::{FunctionCall, FunctionCallOutput, Item, McpCall, Message, OtherItem, Reasoning, SummaryPart};
pub use params::{Input, ResponsesCreateParams, Tool};
pub use python_json::dumps;
pub use response::{IncompleteDetails, InputTokensDetails, NeMoGymResponse, OutputTokensDetails, Usage};
pub use session::{
    CloseSessionRequest, CloseSessionResponse, ConnectionKind, DirectSandboxConnection, McpAccess,
    SandboxAccess, SeedSessionRequest, SeedSessionResponse,
};
pub use verify::{Empty, Verdict, VerifyRequest, VerifyResponse};

/// A JSON object, in the order in which it came.
pub type Map = serde_json::Map<String, serde_json::Value>;

#[cfg(test)]
mod tests;
