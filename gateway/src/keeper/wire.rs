//! What gateway and keeper say to each other: one JSON object a line, both ways.

use std::fmt;

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use super::{conditions::Conditions, limits::NofileLimit};

/// How to start a worker.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct StartSpec {
    /// Program and arguments; the program is looked up in the worker's `PATH`.
    pub argv: Vec<String>,
    /// Working directory.
    pub directory: String,
    /// Environment variables on top of the gateway's own.
    pub env: Vec<(String, String)>,
    /// The limit on open files that the worker gets back; `None`: the gateway's.
    pub nofile: Option<NofileLimit>,
    /// What its process is to be besides.
    #[serde(default)]
    pub conditions: Box<Conditions>,
    /// The worker's Unix socket: its file, and then its folder if empty, are removed should the gateway die.
    pub socket: Option<String>,
}

/// From the gateway to a keeper.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Start the worker. The first order, and given once.
    Start(StartSpec),
    /// Send this signal to the worker's process, not to its group.
    Signal(i32),
    /// Kill the worker, its group and all that descends from it.
    Kill,
}

/// From a keeper to the gateway.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The worker's command runs.
    Started {
        /// Its process ID, which is also its group's.
        pid: i32,
    },
    /// The worker's command could not be run. `Gone` follows.
    StartFailed {
        /// What was tried, and the system's reason.
        error: String,
    },
    /// A line of the worker's output, without its end.
    Output {
        /// Where it was written.
        stream: Stream,
        /// The text: at most 64 KiB (a longer line comes in pieces), with what is not UTF-8 replaced.
        line: String,
    },
    /// The worker's process exited. Goes ahead of output that waits to be sent.
    Exited(Exit),
    /// Nothing of the worker is left, and all its output has been sent: the keeper's last word.
    Gone {
        /// Processes that could not be killed.
        left: Vec<i32>,
    },
}

/// One of a worker's two output streams.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// As it is written in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// How a worker's process ended.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It exited with this status.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
    /// The kernel killed it because the memory of its cgroup had run out.
    OutOfMemory {
        /// The limit (`memory.max`), in bytes.
        limit: u64,
    },
    /// It is gone, and nobody could ask how: why.
    Unknown(String),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with status {code}"),
            Self::Signal(number) => match Signal::try_from(*number) {
                Ok(signal) => write!(f, "was killed by {signal}"),
                Err(_) => write!(f, "was killed by signal {number}"),
            },
            Self::OutOfMemory { limit } => {
                write!(f, "was killed by the kernel: memory.max of {limit} bytes reached")
            }
            Self::Unknown(why) => f.write_str(why),
        }
    }
}

/// One message as it goes over the socket.
pub(crate) fn encode(message: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(message)?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_is_told_in_words() {
        assert_eq!(Exit::Code(3).to_string(), "exited with status 3");
        assert_eq!(Exit::Signal(9).to_string(), "was killed by SIGKILL");
        let out_of_memory = Exit::OutOfMemory { limit: 1024 }.to_string();
        assert_eq!(out_of_memory, "was killed by the kernel: memory.max of 1024 bytes reached");
        assert_eq!(Exit::Signal(40).to_string(), "was killed by signal 40");
    }

    #[test]
    fn a_message_is_one_line() {
        let report = Report::Output { stream: Stream::Stderr, line: "a\nb\u{2028}\0".into() };
        let bytes = encode(&report).unwrap();
        assert_eq!(bytes.iter().filter(|&&b| b == b'\n').count(), 1);
        assert_eq!(serde_json::from_slice::<Report>(&bytes).unwrap(), report);
    }
}
