//! What is answered otherwise over MCP.

use super::{Difference, Steps};

pub(super) const DIFFERENCES: &[Difference] = &[
    Difference {
        recordings: &["counter_mcp"],
        steps: Steps::Where(|_, _| true),
        what: &["body/result/serverInfo/version"],
        reason: "The version that a server gives over MCP is the SDK's; Gym's is that of the package mcp.",
    },
    Difference {
        recordings: &["counter_mcp"],
        steps: Steps::Named(&[(
            "transport",
            &["array", "batch", "not JSON-RPC", "version 1.0", "no version", "number for method"],
        )]),
        what: &["body/error/message"],
        reason: "What is wrong with a message of JSON-RPC is said in other words than pydantic's on its classes.",
    },
];
