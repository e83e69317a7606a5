//! An example as a process, killed when the test ends.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub struct Process(Child);

impl Process {
    /// Starts it on a socket. Cargo builds examples before it runs tests.
    pub fn start(example: &str, socket: &Path, variables: &[(&str, &str)]) -> Self {
        let example = Self::example(example);
        let hint = format!("{} starts (cargo build --examples makes it)", example.display());
        let mut command = Command::new(example);
        command.envs(variables.iter().copied());
        Self::spawn(command, socket).expect(&hint)
    }

    fn example(example: &str) -> PathBuf {
        let test = std::env::current_exe().unwrap();
        test.ancestors().nth(2).unwrap().join("examples").join(example)
    }

    /// Starts another program on a socket.
    pub fn spawn(mut command: Command, socket: &Path) -> std::io::Result<Self> {
        command.env("GYM_WORKER_SOCKET", socket).env_remove("PORT").stderr(Stdio::null());
        command.spawn().map(Self)
    }

    pub fn connect(&mut self, socket: &Path) -> UnixStream {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            match UnixStream::connect(socket) {
                Ok(stream) => return stream,
                Err(error) => assert!(Instant::now() < deadline, "never listened: {error}"),
            }
            assert_eq!(self.0.try_wait().unwrap(), None, "exited instead of listening");
            std::thread::yield_now();
        }
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Sends SIGTERM.
    pub fn signal(&self) {
        let pid = nix::unistd::Pid::from_raw(self.0.id().try_into().unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    }

    pub fn has_exited(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    /// Waits until it has exited.
    pub fn wait(&mut self) -> ExitStatus {
        self.0.wait().unwrap()
    }

    /// Sends SIGTERM, and waits until it has exited.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal();
        self.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Either fails only if it has exited, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
