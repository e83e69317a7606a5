//! What to try when a worker failed.

use nix::sys::signal::Signal;

use super::Phase;
use crate::keeper::Exit;

/// What to try when a start failed in `phase`; `exit`: how the process ended, if that was the failure.
pub(crate) fn for_start(phase: Phase, exit: Option<&Exit>) -> &'static str {
    match (phase, exit) {
        (Phase::Spawn, _) => {
            "put right what the reason names; else see whether the system is out of processes, files or ports, and /proc is there"
        }
        (Phase::Exec, _) => {
            "see whether the program and its folder exist and may be used; set `command` or `python` right"
        }
        (_, Some(exit)) => for_death(exit),
        (Phase::Listen, None) => {
            "have it listen where {socket} or {port} in its command, or GYM_WORKER_SOCKET or PORT in its environment, says; \
             if it is only slow, raise `start_timeout_seconds`"
        }
        (Phase::Probe, None) => {
            "have it answer GET /readyz, /healthz, /health or / with a status below 400; \
             if it is only slow, raise `start_timeout_seconds`"
        }
    }
}

/// What to try when a process ended so, unasked.
pub(crate) fn for_death(exit: &Exit) -> &'static str {
    match exit {
        Exit::Signal(number) => match Signal::try_from(*number) {
            Ok(Signal::SIGKILL) => {
                "the gateway did not send this SIGKILL: see whether the system is short of memory (dmesg, a container's \
                 limit), or who else kills processes"
            }
            Ok(Signal::SIGSEGV | Signal::SIGBUS | Signal::SIGILL | Signal::SIGFPE | Signal::SIGABRT) => {
                "native code crashed: read its last output; PYTHONFAULTHANDLER=1 in its `environment` has Python say \
                 where"
            }
            _ => "the gateway did not send this signal: see who else does",
        },
        Exit::Code(126 | 127) => {
            "a shell could not run a program: read its last output, and see whether PATH and the program are right"
        }
        Exit::Code(_) => "read its last output; run the command by hand in that folder to see it fail",
        Exit::OutOfMemory { .. } => {
            "it needed more memory than `cgroup.memory_max` gives it: raise that, let it do less at a time, or have more \
             workers share the sessions"
        }
        Exit::Unknown(_) => {
            "see whether someone kills the gateway's processes, or the system is short of memory"
        }
    }
}

/// What to try when a worker answered nothing for too long.
pub(crate) const HUNG: &str = "see where it was blocked: PYTHONFAULTHANDLER=1 in its `environment` has Python say so at SIGABRT, which \
     came first; if it is only busy for that long, raise `hang_timeout_seconds`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_it_ended_says_more_than_where() {
        let started = |exit: &Exit| for_start(Phase::Listen, Some(exit));
        assert!(started(&Exit::Signal(9)).contains("memory"));
        assert!(started(&Exit::Signal(11)).contains("PYTHONFAULTHANDLER"));
        assert!(started(&Exit::Signal(15)).contains("signal"));
        assert!(started(&Exit::Code(127)).contains("PATH"));
        assert!(started(&Exit::Code(1)).contains("by hand"));
        let not_run = Exit::Unknown("cannot run /x".into());
        assert!(for_start(Phase::Exec, Some(&not_run)).contains("command"));
    }
}
