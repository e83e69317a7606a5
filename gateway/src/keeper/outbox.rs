//! What a keeper has yet to send.

use std::{
    collections::VecDeque,
    io::{self, Write},
};

use super::wire::{Report, encode};

/// From here on the worker's output is left in its pipes, so that a worker that writes faster than the gateway reads
/// has to wait, as it would with any other reader.
const FULL: usize = 256 * 1024;

/// Encoded messages: news first, then output, each in order.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    current: Vec<u8>,
    sent_of_current: usize,
    news: VecDeque<Vec<u8>>,
    output: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
}

impl Outbox {
    /// Queues a message behind all others.
    pub(crate) fn push(&mut self, report: &Report) -> io::Result<()> {
        let message = encode(report)?;
        self.waiting_bytes += message.len();
        self.output.push_back(message);
        Ok(())
    }

    /// Queues a message ahead of the output that is not on its way yet.
    pub(crate) fn push_news(&mut self, report: &Report) -> io::Result<()> {
        let message = encode(report)?;
        self.waiting_bytes += message.len();
        self.news.push_back(message);
        Ok(())
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting_bytes == 0 && self.sent_of_current == self.current.len()
    }

    /// Whether no more output should be read.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting_bytes >= FULL
    }

    /// Writes as much as `to` takes.
    ///
    /// # Errors
    /// The writer's, but for `WouldBlock`: the rest then stays queued.
    pub(crate) fn send(&mut self, mut to: impl Write) -> io::Result<()> {
        while !self.is_empty() {
            if self.sent_of_current == self.current.len() {
                self.current = self.news.pop_front().or_else(|| self.output.pop_front()).unwrap_or_default();
                self.waiting_bytes -= self.current.len();
                self.sent_of_current = 0;
            }
            match to.write(&self.current[self.sent_of_current..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => self.sent_of_current += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keeper::wire::{Exit, Stream};

    /// Takes so many bytes, then would block.
    struct Narrow(usize, Vec<u8>);

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.0);
            if n == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.0 -= n;
            self.1.extend_from_slice(&bytes[..n]);
            Ok(n)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn news_goes_ahead_of_output_but_not_into_the_middle_of_a_message() {
        let line = |text: &str| Report::Output { stream: Stream::Stdout, line: text.into() };
        let mut outbox = Outbox::default();
        outbox.push(&line("one")).unwrap();
        outbox.push(&line("two")).unwrap();
        let mut socket = Narrow(5, Vec::new());
        outbox.send(&mut socket).unwrap();
        outbox.push_news(&Report::Started { pid: 7 }).unwrap();
        outbox.push_news(&Report::Exited(Exit::Code(0))).unwrap();
        assert!(!outbox.is_empty());
        socket.0 = usize::MAX;
        outbox.send(&mut socket).unwrap();
        let sent: Vec<Report> =
            socket.1.split(|&b| b == b'\n').filter_map(|l| serde_json::from_slice(l).ok()).collect();
        assert_eq!(
            sent,
            [line("one"), Report::Started { pid: 7 }, Report::Exited(Exit::Code(0)), line("two")]
        );
        assert!(outbox.is_empty());
    }
}
