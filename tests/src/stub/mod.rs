//! The stub worker: the NeMo Gym resources protocol in miniature (and ORS's and MCP's sessions), with faults on demand.
//!
//! It listens where `GYM_WORKER_SOCKET` or `PORT` (or `--socket`, `--port`) says. What a process does wrong is told by
//! [`Options`]; what a reply does wrong by the request's `X-Fault` header (`faults`). What it sees goes to the test
//! through `report`.

mod by_header;
mod connection;
mod faults;
mod options;
mod process;
mod report;
mod routes;
mod wire;

use std::{os::fd::OwnedFd, process::ExitCode, sync::Arc};

use tokio::net::{TcpListener, UnixListener, UnixSocket};

pub use options::{Behaviour, Options};
pub use process::{LAST_WORDS, SEVERAL_REFUSED};

use report::Reporter;

/// What every connection of the worker shares.
#[derive(Debug)]
pub(crate) struct Stub {
    options: Options,
    reporter: Reporter,
    state: routes::State,
}

/// Runs the worker that arguments and environment describe.
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = process::helper(&args) {
        return code;
    }
    let options = match Options::parse(&args, |name| std::env::var(name).ok()) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("stub-worker: {message}");
            return ExitCode::from(64);
        }
    };
    if let Some(code) = process::before_listening(&options) {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    runtime.block_on(run(options))
}

async fn run(options: Options) -> ExitCode {
    let reporter = Reporter::connect(&options);
    process::watch_signals(&options, &reporter);
    let event = if options.describe { "described" } else { "started" };
    reporter.event(event, &process::surroundings());
    if options.describe {
        if options.has(Behaviour::DescribeLate) {
            reporter.gate("describe").await;
        }
        println!("{}", options.describes.as_deref().unwrap_or_default());
        return ExitCode::SUCCESS;
    }
    println!("stub-worker: hello from slot {}", options.slot);
    if options.has(Behaviour::NeverListen) {
        return std::future::pending().await;
    }
    let stub = Arc::new(Stub { state: routes::State::default(), options, reporter });
    if let Some(path) = &stub.options.socket {
        let listener = listen(path, stub.options.backlog).expect("bind the socket");
        prepare_stray(&stub, || listener.as_fd_owned());
        loop {
            let (stream, _) = listener.accept().await.expect("accept");
            tokio::spawn(connection::serve(stream, stub.clone()));
        }
    }
    let port = stub.options.port.expect("neither a socket nor a port to listen on");
    let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("bind the port");
    prepare_stray(&stub, || listener.as_fd_owned());
    loop {
        let (stream, _) = listener.accept().await.expect("accept");
        tokio::spawn(connection::serve(stream, stub.clone()));
    }
}

fn listen(path: &std::path::Path, backlog: Option<u32>) -> std::io::Result<UnixListener> {
    let Some(backlog) = backlog else { return UnixListener::bind(path) };
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    socket.listen(backlog)
}

fn prepare_stray(stub: &Stub, listener: impl FnOnce() -> OwnedFd) {
    if stub.options.has(Behaviour::Stray) {
        process::fork_stray(listener(), &stub.options);
    }
}

/// A second descriptor of a listening socket.
trait AsFdOwned {
    fn as_fd_owned(&self) -> OwnedFd;
}

impl<T: std::os::fd::AsFd> AsFdOwned for T {
    fn as_fd_owned(&self) -> OwnedFd {
        self.as_fd().try_clone_to_owned().expect("dup")
    }
}
