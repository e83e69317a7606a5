//! A keeper as the gateway sees it.

use std::{
    io,
    os::unix::{net::UnixStream as StdUnixStream, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use super::{
    reaper::{KnownChild, spawn_known, sweep_strays},
    wire::{Order, Report, encode},
};

/// A running keeper. Dropping it makes the keeper kill its worker, and everything that the worker forked.
#[derive(Debug)]
pub struct Keeper {
    child: KnownChild,
    orders: OwnedWriteHalf,
    reports: BufReader<OwnedReadHalf>,
    line: Vec<u8>,
    worker: Option<i32>,
    gone: Option<Vec<i32>>,
}

/// How a keeper ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// It said that nothing of the worker was left before it ended.
    pub orderly: bool,
    /// Processes of the worker's family that could not be killed.
    pub left: Vec<i32>,
}

/// This process' own program, for [`Keeper::spawn`]. By this name it is the same one even if its file was replaced or
/// removed since it was started, by a new build, say: slots are filled again, and keeper and gateway speak alike.
pub fn own_binary() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

impl Keeper {
    /// Starts a keeper. `binary` is the `gym-gateway` program; the gateway's own is [`own_binary`].
    ///
    /// # Errors
    /// The system's: no such program, no more processes or file descriptors.
    pub async fn spawn(binary: &Path) -> io::Result<Self> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut command = Command::new(binary);
        command
            .arg0("gym-gateway")
            .arg("keeper")
            .stdin(std::os::fd::OwnedFd::from(theirs))
            .stdout(Stdio::null());
        // What a service manager tells the gateway is for the gateway alone, not for what it starts.
        for variable in crate::systemd::VARIABLES {
            command.env_remove(variable);
        }
        // Waits while the strays of another keeper are being swept.
        let child = tokio::task::spawn_blocking(move || spawn_known(&mut command)).await??;
        let (reports, orders) = UnixStream::from_std(ours)?.into_split();
        Ok(Self {
            child,
            orders,
            reports: BufReader::new(reports),
            line: Vec::new(),
            worker: None,
            gone: None,
        })
    }

    /// The keeper's process ID: its worker, and all that descends from the worker, is in the tree below it.
    pub fn pid(&self) -> i32 {
        self.child.pid()
    }

    /// Gives an order.
    ///
    /// # Errors
    /// The keeper is gone; [`Keeper::next`] then says `None`.
    pub async fn order(&mut self, order: &Order) -> io::Result<()> {
        self.orders.write_all(&encode(order)?).await
    }

    /// The next report; `None` when the keeper has ended. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<Report> {
        match self.reports.read_until(b'\n', &mut self.line).await {
            Ok(n) if n > 0 && self.line.ends_with(b"\n") => {}
            _ => return None,
        }
        let report = serde_json::from_slice(&self.line).ok();
        self.line.clear();
        match &report {
            Some(Report::Started { pid }) => self.worker = Some(*pid),
            Some(Report::Gone { left }) => self.gone = Some(left.clone()),
            _ => {}
        }
        report
    }

    /// Waits for the keeper's end, killing it if it has not ended by itself, and kills what it left behind.
    ///
    /// # Errors
    /// The system's, if processes cannot be waited for or `/proc` cannot be read.
    pub async fn end(mut self) -> io::Result<Ending> {
        tokio::task::spawn_blocking(move || {
            self.child.kill_and_wait()?;
            match self.gone {
                Some(left) => Ok(Ending { orderly: true, left }),
                None => Ok(Ending { orderly: false, left: sweep_strays(self.worker)? }),
            }
        })
        .await?
    }
}
