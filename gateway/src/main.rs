//! The `gym-gateway` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    gym_gateway::cli::main()
}
