//! A connection that changed its protocol (a WebSocket, say): bytes both ways, one owner to its end.

use std::{io, rc::Rc};

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};

use super::{observe::Account, settle::Settlement, state::Stop};

const CHUNK: usize = 16 * 1024;

/// Who sent what passes through a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Worker,
}

/// Sees every chunk before it is passed on: where a protocol's frames are read.
pub(super) trait Tap {
    fn pass(&mut self, from: Side, bytes: &[u8]);
}

/// Counts bytes.
#[derive(Debug, Default)]
struct Volume {
    from_client: u64,
    from_worker: u64,
}

impl Tap for Volume {
    fn pass(&mut self, from: Side, bytes: &[u8]) {
        match from {
            Side::Client => self.from_client += bytes.len() as u64,
            Side::Worker => self.from_worker += bytes.len() as u64,
        }
    }
}

/// A tunnel about to begin: both ends have agreed.
pub(super) struct Tunnel {
    pub(super) client: OnUpgrade,
    pub(super) worker: OnUpgrade,
    pub(super) settlement: Settlement,
    pub(super) account: Rc<Account>,
    pub(super) stop: Stop,
}

impl Tunnel {
    /// Carries bytes until both sides have ended, the worker exits, or the gateway's stop cuts it. Then the
    /// request is settled.
    pub(super) async fn run(self) {
        let exited = self.settlement.worker().exited().clone();
        let mut volume = Volume::default();
        let ended = tokio::select! {
            biased;
            () = exited.cancelled() => Err(io::Error::other("the worker exited")),
            () = self.stop.cut.cancelled() => Err(io::Error::other("the gateway stopped")),
            ended = carry(self.client, self.worker, &mut volume) => ended,
        };
        let Volume { from_client, from_worker } = volume;
        match ended {
            Ok(()) => tracing::debug!(from_client, from_worker, "tunnel ended"),
            Err(error) => tracing::debug!(from_client, from_worker, %error, "tunnel cut"),
        }
        drop((self.settlement, self.account));
    }
}

async fn carry(client: OnUpgrade, worker: OnUpgrade, tap: &mut impl Tap) -> io::Result<()> {
    let (client, worker) = tokio::try_join!(client, worker).map_err(io::Error::other)?;
    relay(ends(client), ends(worker), tap).await
}

fn ends(upgraded: Upgraded) -> (ReadHalf<TokioIo<Upgraded>>, WriteHalf<TokioIo<Upgraded>>) {
    split(TokioIo::new(upgraded))
}

/// Passes bytes both ways; one side's end is passed on too, and the other may go on.
async fn relay<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    client: (R, W),
    worker: (R, W),
    tap: &mut impl Tap,
) -> io::Result<()> {
    let tap = std::cell::RefCell::new(tap);
    let up = pump(client.0, worker.1, |bytes| tap.borrow_mut().pass(Side::Client, bytes));
    let down = pump(worker.0, client.1, |bytes| tap.borrow_mut().pass(Side::Worker, bytes));
    tokio::try_join!(up, down).map(|_| ())
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut pass: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = from.read(&mut chunk).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        pass(&chunk[..read]);
        to.write_all(&chunk[..read]).await?;
        to.flush().await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::duplex;

    #[tokio::test]
    async fn passes_both_ways_and_passes_ends_on() {
        let (mut client, gateway_client) = duplex(8);
        let (mut worker, gateway_worker) = duplex(8);
        let mut volume = Volume::default();
        let ends = async {
            client.write_all(b"longer than the pipe").await.unwrap();
            client.shutdown().await.unwrap();
            let mut all = Vec::new();
            client.read_to_end(&mut all).await.unwrap();
            all
        };
        let other = async {
            let mut all = Vec::new();
            worker.read_to_end(&mut all).await.unwrap();
            worker.write_all(b"answer").await.unwrap();
            worker.shutdown().await.unwrap();
            all
        };
        let relay = relay(split(gateway_client), split(gateway_worker), &mut volume);
        let (got, sent, relayed) = tokio::join!(ends, other, relay);
        relayed.unwrap();
        assert_eq!(
            (got.as_slice(), sent.as_slice()),
            (b"answer".as_slice(), b"longer than the pipe".as_slice())
        );
        assert_eq!((volume.from_client, volume.from_worker), (20, 6));
    }
}
