//! What a test's own thread logs.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// The log of this thread, while it lives.
pub struct Log {
    lines: Lines,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub fn new() -> Self {
        let lines = Lines::default();
        let logs = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).finish();
        Self { lines, _guard: tracing::subscriber::set_default(logs) }
    }

    /// What was logged since the last time.
    pub fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut self.lines.0.lock().unwrap())).unwrap()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
