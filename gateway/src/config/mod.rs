//! The configuration: YAML files (or the command line of `run`) to validated types.

mod model;

pub use model::{Config, ErrorList, GatewaySettings, Kind, Launch, Listen, ServerConfig, ServerSettings};
