//! A keeper's own process: one thread, one `poll` loop.

use std::{
    io::{self, ErrorKind, Read},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        prctl,
        signal::{SigSet, Signal},
        signalfd::{SfdFlags, SignalFd},
    },
    unistd::{Pid, setsid},
};

use super::{
    outbox::Outbox,
    wire::{Exit, Order, Report, StartSpec},
    worker::{Worker, reap_strays},
};

/// How soon the dead are looked for again while some of the killed still live: their own children come to light only
/// when they are gone.
const SWEEP_EVERY: Duration = Duration::from_millis(10);

/// How long the killed may take to die before they are reported as left.
const SWEEP_LIMIT: Duration = Duration::from_secs(5);

/// The hidden subcommand `keeper`: standard input is the socket to the gateway. Returns when nothing of the worker is left.
pub fn run_keeper() -> ExitCode {
    match setup().and_then(|keeper| keeper.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gym-gateway keeper: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Keeper {
    control: UnixStream,
    inbox: Vec<u8>,
    outbox: Outbox,
    signals: SignalFd,
    worker: Option<Worker>,
    /// Given with the start: removed if the gateway dies.
    socket: Option<String>,
    /// Since when the worker's process is over, and everything is being killed.
    sweeping: Option<Instant>,
    /// Who lived at the last look.
    left: Vec<Pid>,
    /// The gateway is gone.
    orphaned: bool,
}

fn setup() -> io::Result<Keeper> {
    // A terminal's Ctrl-C is for the gateway, which then stops its workers in order. Fails only for a group's leader,
    // which a terminal does not reach either.
    let _ = setsid();
    prctl::set_child_subreaper(true)?;
    // A stop signal for everyone (a container's end) must not take the keeper before its worker.
    SigSet::all().thread_block()?;
    let mut child_exits = SigSet::empty();
    child_exits.add(Signal::SIGCHLD);
    let signals = SignalFd::with_flags(&child_exits, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    control.set_nonblocking(true)?;
    Ok(Keeper {
        control,
        inbox: Vec::new(),
        outbox: Outbox::default(),
        signals,
        worker: None,
        socket: None,
        sweeping: None,
        left: Vec::new(),
        orphaned: false,
    })
}

impl Keeper {
    fn run(mut self) -> io::Result<()> {
        loop {
            self.wait()?;
            self.take_orders()?;
            self.take_output()?;
            while self.signals.read_signal()?.is_some() {}
            self.look_after_worker()?;
            self.send();
            if self.is_over()? {
                return self.finish();
            }
        }
    }

    /// Waits until there is something to do.
    fn wait(&self) -> io::Result<()> {
        let mut fds: Vec<(BorrowedFd<'_>, PollFlags)> = vec![(self.signals.as_fd(), PollFlags::POLLIN)];
        if !self.orphaned {
            let mut events = PollFlags::POLLIN;
            events.set(PollFlags::POLLOUT, !self.outbox.is_empty());
            fds.push((self.control.as_fd(), events));
        }
        if let Some(worker) = &self.worker {
            fds.extend(worker.exec.iter().map(|pipe| (pipe.fd(), PollFlags::POLLIN)));
            if !self.outbox.is_full() {
                fds.extend(worker.pipes.iter().map(|pipe| (pipe.fd(), PollFlags::POLLIN)));
            }
        }
        let mut fds: Vec<PollFd<'_>> = fds.into_iter().map(|(fd, events)| PollFd::new(fd, events)).collect();
        let hurry = self.sweeping.is_some() || self.orphaned;
        let timeout =
            if hurry { SWEEP_EVERY.try_into().unwrap_or(PollTimeout::ZERO) } else { PollTimeout::NONE };
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn take_orders(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        while !self.orphaned {
            match self.control.read(&mut buffer) {
                Ok(0) => self.orphaned = true,
                Ok(n) => self.inbox.extend_from_slice(&buffer[..n]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.orphaned = true,
            }
        }
        while let Some(end) = self.inbox.iter().position(|&b| b == b'\n') {
            let line: Vec<u8> = self.inbox.drain(..=end).collect();
            match serde_json::from_slice(&line)? {
                Order::Start(spec) => self.start(spec)?,
                Order::Signal(number) => self.worker.iter().for_each(|worker| worker.signal(number)),
                Order::Kill => self.kill()?,
            }
        }
        Ok(())
    }

    fn start(&mut self, spec: StartSpec) -> io::Result<()> {
        if self.orphaned || self.worker.is_some() {
            return Ok(());
        }
        match Worker::start(&spec) {
            Ok(worker) => self.worker = Some(worker),
            Err(error) => {
                let error = format!("cannot start a process for {}: {error}", spec.argv.join(" "));
                self.outbox.push_news(&Report::StartFailed { error })?;
                self.sweeping = Some(Instant::now());
            }
        }
        self.socket = spec.socket;
        Ok(())
    }

    fn kill(&mut self) -> io::Result<()> {
        if let Some(worker) = &self.worker {
            worker.sweep()?;
        }
        Ok(())
    }

    fn take_output(&mut self) -> io::Result<()> {
        let Some(worker) = &mut self.worker else { return Ok(()) };
        if self.outbox.is_full() && !self.orphaned {
            return Ok(());
        }
        let (outbox, orphaned, mut result) = (&mut self.outbox, self.orphaned, Ok(()));
        worker.read(|stream, line| {
            if !orphaned && result.is_ok() {
                result = outbox.push(&Report::Output { stream, line });
            }
        });
        result
    }

    /// Tells of the worker's start and exit, and kills what has to go.
    fn look_after_worker(&mut self) -> io::Result<()> {
        if self.orphaned {
            self.kill()?;
        }
        let Some(worker) = &mut self.worker else { return Ok(()) };
        if let Some(outcome) = worker.exec.as_mut().and_then(|exec| exec.outcome()) {
            worker.exec = None;
            self.outbox.push_news(&match outcome {
                Ok(()) => Report::Started { pid: worker.pid().as_raw() },
                Err(error) => Report::StartFailed { error },
            })?;
        }
        if self.sweeping.is_some() {
            return Ok(());
        }
        match worker.exited() {
            None => reap_strays(worker.pid()),
            Some(exit) => self.exited(exit)?,
        }
        Ok(())
    }

    fn exited(&mut self, exit: Exit) -> io::Result<()> {
        self.outbox.push_news(&Report::Exited(exit))?;
        self.sweeping = Some(Instant::now());
        // Before the killing, which reads all of /proc.
        self.send();
        Ok(())
    }

    fn send(&mut self) {
        if !self.orphaned && self.outbox.send(&self.control).is_err() {
            self.orphaned = true;
        }
    }

    /// Whether the worker is over and nothing of it is left, or what is left will not die.
    fn is_over(&mut self) -> io::Result<bool> {
        let Some(since) = self.sweeping else { return Ok(self.orphaned && self.worker.is_none()) };
        let Some(worker) = &mut self.worker else { return Ok(true) };
        self.left = worker.sweep()?;
        Ok((self.left.is_empty() && worker.reap()?) || since.elapsed() > SWEEP_LIMIT)
    }

    /// Says the last word.
    fn finish(mut self) -> io::Result<()> {
        if let Some(Err(error)) = self.worker.as_ref().map(Worker::remove_cgroup) {
            // No reason to keep the last word back.
            eprintln!("gym-gateway keeper: cannot remove the worker's cgroup: {error}");
        }
        if self.orphaned {
            self.remove_socket();
            return Ok(());
        }
        let (outbox, mut result) = (&mut self.outbox, Ok(()));
        if let Some(mut worker) = self.worker.take() {
            worker.drain(|stream, line| {
                if result.is_ok() {
                    result = outbox.push(&Report::Output { stream, line });
                }
            });
        }
        result?;
        let left = self.left.iter().map(|pid| pid.as_raw()).collect();
        self.outbox.push(&Report::Gone { left })?;
        self.control.set_nonblocking(false)?;
        self.outbox.send(&self.control).inspect_err(|_| self.remove_socket())
    }

    /// What the gateway would have cleaned up.
    fn remove_socket(&self) {
        let Some(socket) = self.socket.as_deref().map(Path::new) else { return };
        // Neither need be there; the folder stays while another worker's socket is in it.
        let _ = std::fs::remove_file(socket);
        let _ = socket.parent().map(std::fs::remove_dir);
    }
}
