//! A server without a gateway.

use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use super::soon;

/// A program that listens on `PORT`; killed when dropped.
#[derive(Debug)]
pub struct Alone {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Alone {
    /// Starts it on a free port, and waits until it listens.
    pub async fn start(program: &Path) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let address = free.expect("a free port");
        let mut command = Command::new(program);
        command.env_remove("GYM_WORKER_SOCKET").env("PORT", address.port().to_string());
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("start the program");
        let mut alone = Self { child, address };
        soon("the program listens", async {
            while TcpStream::connect(address).is_err() {
                let ended = alone.child.try_wait().expect("its state");
                assert_eq!(ended, None, "exited instead of listening");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        alone
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        // Either fails only if it has exited, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
