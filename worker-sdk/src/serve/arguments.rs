//! What a server's program is asked on its command line.

/// What `--help` prints.
pub(super) const HELP: &str = "\
Serves an RL environment until SIGTERM or SIGINT.

  --port PORT    where to listen, if neither GYM_WORKER_SOCKET nor PORT is set; 0 takes a free port
  --host HOST    127.0.0.1
  --describe     prints what the gateway asks, as one JSON object, and serves nothing
  --help         prints this

Environment: GYM_WORKER_SOCKET or PORT, GYM_SERVER_NAME, GYM_SERVER_CONFIG (JSON), GYM_SESSION_SECRET, RUST_LOG;
of an OpenEnv environment also MAX_CONCURRENT_ENVS, SESSION_TIMEOUT, OPENENV_MODE.
";

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Serve,
    Describe,
    Help,
}

/// What the arguments ask, and those that say nothing to this program: a misspelt one, or one of the author's own.
pub(super) fn asked(arguments: impl Iterator<Item = String>) -> (Asked, Vec<String>) {
    let (mut asked, mut unknown) = (Asked::Serve, Vec::new());
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--help" | "-h" => return (Asked::Help, unknown),
            "--describe" => asked = Asked::Describe,
            // Its value, which may look like anything.
            "--host" | "--port" => drop(arguments.next()),
            other if other.starts_with("--host=") || other.starts_with("--port=") => {}
            _ => unknown.push(argument),
        }
    }
    (asked, unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_told_apart() {
        for (line, wanted, strange) in [
            ("", Asked::Serve, ""),
            ("--port 8000 --host=0.0.0.0", Asked::Serve, ""),
            ("--prot 8000", Asked::Serve, "--prot 8000"),
            ("--mine --describe", Asked::Describe, "--mine"),
            ("--describe --help", Asked::Help, ""),
            ("--host --describe", Asked::Serve, ""),
        ] {
            let (asked, unknown) = asked(line.split_whitespace().map(str::to_owned));
            assert_eq!((asked, unknown.join(" ").as_str()), (wanted, strange), "{line}");
        }
    }
}
