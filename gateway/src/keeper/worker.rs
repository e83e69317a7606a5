//! The one worker of a keeper: its process, its pipes, its end.

use std::{
    ffi::{OsStr, OsString},
    io::{self, PipeReader, Read},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::{Child, Command, Stdio},
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    sys::{
        signal::{Signal, kill, killpg},
        wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid},
    },
    unistd::{Pid, getpid},
};

use super::{
    cgroup::Cgroup,
    conditions::Conditions,
    family,
    lines::Lines,
    shim::ShimArgs,
    wire::{Exit, StartSpec, Stream},
};

/// Ask for an end without waiting for it, and without reaping.
const ANY_END: WaitPidFlag = WaitPidFlag::WEXITED.union(WaitPidFlag::WNOHANG).union(WaitPidFlag::WNOWAIT);

/// How much is read of a pipe before the others have their turn.
const READ_AT_ONCE: usize = 64 * 1024;

/// A started worker. Its process ID, and so its group's, stays its own until [`Worker::reap`].
#[derive(Debug)]
pub(crate) struct Worker {
    child: Child,
    cgroup: Option<Cgroup>,
    pid: Pid,
    reaped: bool,
    pub(crate) pipes: Vec<Pipe>,
    pub(crate) exec: Option<ExecPipe>,
}

/// Where the shim says what went wrong; closed by a successful `exec`.
#[derive(Debug)]
pub(crate) struct ExecPipe {
    reader: PipeReader,
    message: Vec<u8>,
}

/// One of the worker's output streams.
#[derive(Debug)]
pub(crate) struct Pipe {
    stream: Stream,
    reader: std::fs::File,
    lines: Lines,
}

impl Worker {
    /// Starts the shim that becomes the worker.
    pub(crate) fn start(spec: &StartSpec) -> io::Result<Self> {
        let args = ShimArgs {
            keeper: getpid(),
            nofile: spec.nofile,
            conditions: Conditions::clone(&spec.conditions),
            directory: spec.directory.clone().into(),
            argv: spec.argv.iter().map(Into::into).collect(),
        }
        .write()?;
        let cgroup = spec.conditions.cgroup.clone();
        if let Some(cgroup) = &cgroup {
            cgroup.create().map_err(io::Error::other)?;
        }
        let started = Self::start_shim(args, spec, cgroup.clone());
        if let (Err(_), Some(cgroup)) = (&started, &cgroup) {
            // Nobody has joined it.
            let _ = cgroup.remove();
        }
        started
    }

    fn start_shim(args: Vec<OsString>, spec: &StartSpec, cgroup: Option<Cgroup>) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        // By this name it is the same binary even if the file was replaced meanwhile.
        let mut child = Command::new("/proc/self/exe")
            .arg0("gym-gateway")
            .arg("exec-worker")
            .args(args)
            .envs(spec.env.iter().map(|(name, value)| (OsStr::new(name), OsStr::new(value))))
            .process_group(0)
            .stdin(writer)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let pid = Pid::from_raw(child.id().cast_signed());
        let mut pipes = Vec::new();
        pipes.extend(child.stdout.take().map(|out| Pipe::new(Stream::Stdout, out.into())));
        pipes.extend(child.stderr.take().map(|err| Pipe::new(Stream::Stderr, err.into())));
        for fd in pipes.iter().map(|pipe| pipe.reader.as_fd()).chain([reader.as_fd()]) {
            fcntl(fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        Ok(Self {
            child,
            cgroup,
            pid,
            reaped: false,
            pipes,
            exec: Some(ExecPipe { reader, message: Vec::new() }),
        })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Whether the process has exited, and how; it is not reaped.
    pub(crate) fn exited(&self) -> Option<Exit> {
        match waitid(Id::Pid(self.pid), ANY_END) {
            Ok(WaitStatus::StillAlive) => None,
            Ok(WaitStatus::Exited(_, code)) => Some(Exit::Code(code)),
            Ok(WaitStatus::Signaled(_, Signal::SIGKILL, _)) => Some(self.killed()),
            Ok(WaitStatus::Signaled(_, signal, _)) => Some(Exit::Signal(signal as i32)),
            Ok(other) => Some(Exit::Unknown(format!("ended in an unknown way ({other:?})"))),
            // A real-time signal, for which the crate has no name.
            Err(Errno::EINVAL) => Some(Exit::Unknown("was killed by a real-time signal".into())),
            Err(error) => Some(Exit::Unknown(format!("cannot be waited for: {error}"))),
        }
    }

    /// By whom: the kernel counts what it kills for want of memory.
    fn killed(&self) -> Exit {
        match &self.cgroup {
            Some(cgroup) if cgroup.oom_kills() > 0 => Exit::OutOfMemory { limit: cgroup.memory_max },
            _ => Exit::Signal(Signal::SIGKILL as i32),
        }
    }

    pub(crate) fn signal(&self, number: i32) {
        if let Ok(signal) = Signal::try_from(number) {
            // It may have exited; then there is nothing to tell it.
            let _ = kill(self.pid, signal);
        }
    }

    /// Kills the group, and every child of this keeper: those that left the group and lost their parent are among
    /// them, and the children of the killed will be. Reaps the dead, but never the worker. Returns who still lives.
    pub(crate) fn sweep(&self) -> io::Result<Vec<Pid>> {
        if !self.reaped {
            // No such group: nobody is in it any more.
            let _ = killpg(self.pid, Signal::SIGKILL);
        }
        let mut alive = Vec::new();
        for child in family::children_of(getpid())? {
            if child == self.pid && self.exited().is_some() {
                continue;
            }
            // It is a child of ours and not reaped yet: the process ID is still its own.
            let _ = kill(child, Signal::SIGKILL);
            if child == self.pid || waitpid(child, Some(WaitPidFlag::WNOHANG)) == Ok(WaitStatus::StillAlive) {
                alive.push(child);
            }
        }
        Ok(alive)
    }

    /// Gives the process ID of an exited worker back. Returns whether no child at all is left.
    pub(crate) fn reap(&mut self) -> io::Result<bool> {
        if !self.reaped {
            self.child.wait()?;
            self.reaped = true;
        }
        Ok(waitid(Id::All, ANY_END) == Err(Errno::ECHILD))
    }

    /// Removes its cgroup, if it has one of its own.
    pub(crate) fn remove_cgroup(&self) -> io::Result<()> {
        self.cgroup.as_ref().map_or(Ok(()), Cgroup::remove)
    }

    /// Reads what is there of the streams, a piece of each.
    pub(crate) fn read(&mut self, mut line: impl FnMut(Stream, String)) {
        self.pipes.retain_mut(|pipe| pipe.read(&mut line) != Took::End);
    }

    /// Reads all that is in the pipes now, and ends the last line, whoever else may still hold them open.
    pub(crate) fn drain(&mut self, mut line: impl FnMut(Stream, String)) {
        for pipe in &mut self.pipes {
            while pipe.read(&mut line) == Took::Some {}
            let stream = pipe.stream;
            pipe.lines.finish(|text| line(stream, text));
        }
        self.pipes.clear();
    }
}

/// Reaps dead strays while the worker lives.
pub(crate) fn reap_strays(worker: Pid) {
    while let Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..)) = waitid(Id::All, ANY_END) {
        if pid == worker || waitpid(pid, Some(WaitPidFlag::WNOHANG)).is_err() {
            return;
        }
    }
}

/// What one read of a pipe gave.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Took {
    Some,
    NothingNow,
    End,
}

impl Pipe {
    fn new(stream: Stream, fd: OwnedFd) -> Self {
        Self { stream, reader: fd.into(), lines: Lines::default() }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    fn read(&mut self, line: &mut impl FnMut(Stream, String)) -> Took {
        let mut buffer = [0; READ_AT_ONCE];
        let stream = self.stream;
        match self.reader.read(&mut buffer) {
            Ok(0) => {
                self.lines.finish(|text| line(stream, text));
                Took::End
            }
            Ok(n) => {
                self.lines.feed(&buffer[..n], |text| line(stream, text));
                Took::Some
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Took::NothingNow,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Took::Some,
            Err(_) => Took::End,
        }
    }
}

impl ExecPipe {
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    /// `None`: not known yet. Else whether the worker's command runs, or why not.
    pub(crate) fn outcome(&mut self) -> Option<Result<(), String>> {
        match self.reader.read_to_end(&mut self.message) {
            Ok(_) if self.message.is_empty() => Some(Ok(())),
            Ok(_) => Some(Err(String::from_utf8_lossy(&self.message).into_owned())),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => None,
            Err(e) => Some(Err(format!("cannot hear from the worker's start: {e}"))),
        }
    }
}
