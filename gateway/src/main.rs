//! The `gym-gateway` command.

use std::process::ExitCode;

use gym_gateway::keeper;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next().as_deref().and_then(|arg| arg.to_str()) {
        Some("keeper") => keeper::run_keeper(),
        Some("exec-worker") => keeper::exec_worker(args),
        _ => ExitCode::from(2),
    }
}
