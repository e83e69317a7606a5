//! Slots, generations, readiness, restart. Knows no sessions.

use std::{net::SocketAddr, path::PathBuf, sync::{Arc, atomic::AtomicUsize}};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::worker_id::WorkerId;

/// Where a worker listens; belongs to one generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address { Unix(PathBuf), Tcp(SocketAddr) }

/// One ready worker process, as the proxy sees it.
#[derive(Debug)]
pub struct Worker { pub id: WorkerId, pub address: Address, pub(crate) exited: CancellationToken, pub(crate) in_flight: AtomicUsize }

impl Worker {
    /// Cancelled when the process has exited, after `WorkerEvents::exited` returned.
    pub fn exited(&self) -> &CancellationToken { &self.exited }
    pub fn in_flight(&self) -> &AtomicUsize { &self.in_flight }
}

/// A server's ready workers: read on every request, written when one comes or goes.
#[derive(Debug)]
pub struct WorkerSet;

impl WorkerSet {
    pub fn ready(&self) -> Arc<Vec<Arc<Worker>>> { unimplemented!() }
    pub fn get(&self, _id: WorkerId) -> Option<Arc<Worker>> { unimplemented!() }
    /// Changes whenever a worker becomes ready or exits.
    pub fn changes(&self) -> watch::Receiver<u64> { unimplemented!() }
}
