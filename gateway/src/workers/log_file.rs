//! A worker's log file: written by a thread of its own, so that a disk that is full, or does not answer, never keeps a worker's
//! output from being read. What cannot be written is counted, and said in the gateway's log.

mod rotate;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        oneshot,
    },
    time::timeout,
};

use self::rotate::RotatingFile;
use crate::{config::LogFileSettings, worker_id::WorkerId};

/// The most that waits to be written; what comes then is dropped.
const LONGEST_QUEUE: usize = 8 << 20;
/// What a waiting line takes besides its text.
const OVERHEAD: usize = 64;
/// How much is written at once.
const BATCH: usize = 64 * 1024;
/// How soon a file that could not be written is tried again.
const TRY_EVERY: Duration = Duration::from_secs(1);
/// How long the end of a worker waits for the last of its lines to be written.
const FLUSH_LIMIT: Duration = Duration::from_secs(5);

/// A log file that is being written. Dropping the last handle ends its thread.
#[derive(Debug)]
pub(crate) struct LogFile {
    queue: UnboundedSender<Entry>,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: AtomicUsize,
    /// Lines that were not written, since it was last said.
    dropped: AtomicU64,
}

#[derive(Debug)]
enum Entry {
    Line(String),
    /// Answered when all that came before is written, or cannot be.
    Flush(oneshot::Sender<()>),
}

/// The files that are open, by path: generations of a slot that overlap write to the same one.
static OPEN: Mutex<Option<HashMap<PathBuf, Weak<LogFile>>>> = Mutex::new(None);

impl LogFile {
    /// The log file of a worker.
    ///
    /// # Errors
    /// The system's: no more threads.
    pub(crate) fn of(settings: &LogFileSettings, server: &str, id: WorkerId) -> std::io::Result<Arc<Self>> {
        // A server's name has no `/`, but may be `..`.
        let server = if server.starts_with('.') { server.replacen('.', "_", 1) } else { server.to_owned() };
        let path = settings
            .path
            .replace("{server}", &server)
            .replace("{slot}", &id.slot.to_string())
            .replace("{generation}", &id.generation.to_string());
        Self::open(path.into(), settings)
    }

    fn open(path: PathBuf, settings: &LogFileSettings) -> std::io::Result<Arc<Self>> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.get_or_insert_default();
        open.retain(|_, file| file.strong_count() > 0);
        if let Some(file) = open.get(&path).and_then(Weak::upgrade) {
            return Ok(file);
        }
        let (queue, entries) = unbounded_channel();
        let state = Arc::new(State::default());
        let writer = Writer {
            file: RotatingFile::new(path.clone(), settings.max_bytes, settings.keep),
            state: Arc::clone(&state),
            failing: None,
        };
        std::thread::Builder::new().name("log-file".into()).spawn(move || writer.run(entries))?;
        let file = Arc::new(Self { queue, state });
        open.insert(path, Arc::downgrade(&file));
        Ok(file)
    }

    /// Queues a line; drops it if too much waits already.
    pub(crate) fn line(&self, line: &str) {
        let size = line.len() + OVERHEAD;
        if self.state.waiting.fetch_add(size, Ordering::Relaxed) + size > LONGEST_QUEUE {
            self.state.waiting.fetch_sub(size, Ordering::Relaxed);
            self.state.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // Its thread lives as long as this.
        let _ = self.queue.send(Entry::Line(line.to_owned()));
    }

    /// Queues a line of the gateway's own.
    pub(crate) fn mark(&self, what: &str) {
        self.line(&format!("[gym-gateway] {}: {what}", httpdate::fmt_http_date(SystemTime::now())));
    }

    /// Waits until all lines are written, or cannot be.
    pub(crate) async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        if self.queue.send(Entry::Flush(done)).is_ok() && timeout(FLUSH_LIMIT, wait).await.is_err() {
            tracing::warn!("a log file's disk does not answer; its last lines are not waited for");
        }
    }
}

struct Writer {
    file: RotatingFile,
    state: Arc<State>,
    /// When it last failed.
    failing: Option<Instant>,
}

impl Writer {
    fn run(mut self, mut entries: UnboundedReceiver<Entry>) {
        // No more than a file may hold.
        let at_once = self.file.max_bytes().map_or(BATCH, |max| BATCH.min(max));
        let (mut batch, mut lines) = (Vec::new(), 0);
        while let Some(first) = entries.blocking_recv() {
            let mut next = Some(first);
            while let Some(entry) = next {
                match entry {
                    Entry::Line(line) => {
                        self.state.waiting.fetch_sub(line.len() + OVERHEAD, Ordering::Relaxed);
                        if batch.len() + line.len() >= at_once {
                            self.write(&mut batch, &mut lines);
                        }
                        batch.extend_from_slice(line.as_bytes());
                        batch.push(b'\n');
                        lines += 1;
                    }
                    Entry::Flush(done) => {
                        self.write(&mut batch, &mut lines);
                        // Who asked may have given up.
                        let _ = done.send(());
                    }
                }
                next = entries.try_recv().ok();
            }
            self.write(&mut batch, &mut lines);
        }
    }

    /// Writes the batch, and says so when that begins or ceases to fail.
    fn write(&mut self, batch: &mut Vec<u8>, lines: &mut u64) {
        if batch.is_empty() {
            return;
        }
        let soon_again = self.failing.is_some_and(|since| since.elapsed() < TRY_EVERY);
        if soon_again {
            self.state.dropped.fetch_add(*lines, Ordering::Relaxed);
        } else {
            match self.file.write(batch) {
                Ok(()) => self.written(),
                Err(error) => self.failed(&error, *lines),
            }
        }
        batch.clear();
        *lines = 0;
    }

    fn written(&mut self) {
        let rotation_failure = self.file.take_rotation_failure();
        let path = self.file.path().display();
        let dropped = self.state.dropped.swap(0, Ordering::Relaxed);
        if self.failing.take().is_some() {
            tracing::info!(
                "the log file {path} is written again; {dropped} lines of workers' output are not in it"
            );
        } else if dropped > 0 {
            tracing::warn!(
                "the log file {path} is too slow: {dropped} lines of workers' output are not in it"
            );
        }
        if let Some(error) = rotation_failure {
            tracing::error!("the log file {path} cannot be rotated, and grows: {error}");
        }
    }

    fn failed(&mut self, error: &std::io::Error, lines: u64) {
        self.state.dropped.fetch_add(lines, Ordering::Relaxed);
        if self.failing.replace(Instant::now()).is_none() {
            let path = self.file.path().display();
            tracing::error!(
                "cannot write the log file {path}: {error}; workers go on, and their output is in this log alone until it can \
                 be written again"
            );
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let dropped = self.state.dropped.load(Ordering::Relaxed);
        if dropped > 0 {
            let path = self.file.path().display();
            tracing::warn!("{dropped} lines of workers' output are not in the log file {path}");
        }
    }
}

#[cfg(test)]
mod tests;
