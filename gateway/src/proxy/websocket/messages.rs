//! Whole messages and control frames in a stream of WebSocket frames.

use tungstenite::protocol::frame::{
    FrameHeader,
    coding::{Control, Data, OpCode},
};

use super::frames::{BadFrame, Frames, LONGEST_CONTROL, Step, unmask};

/// What has come whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// A text or binary message; a copy, if it is short enough to be kept.
    Message(Option<Vec<u8>>),
    Ping(Vec<u8>),
    Pong,
    /// A close, with its payload.
    Close(Vec<u8>),
}

/// Reads messages as they pass.
#[derive(Debug)]
pub(super) struct Messages {
    frames: Frames,
    /// The longest message of which a copy is kept.
    limit: usize,
    copy: Option<Vec<u8>>,
    control: Vec<u8>,
    is_inside: bool,
    whole_frames: u64,
}

impl Messages {
    /// Keeps copies of messages of up to `limit` bytes; with 0 of none.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            frames: Frames::default(),
            limit,
            copy: None,
            control: Vec::new(),
            is_inside: false,
            whole_frames: 0,
        }
    }

    /// Changes the limit, from the next message on.
    pub(super) fn keep(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// What comes whole next, and `bytes` behind it; `None` if nothing does.
    ///
    /// # Errors
    /// As [`Frames::next`].
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Seen>, BadFrame> {
        while let Some(step) = self.frames.next(bytes)? {
            match step {
                Step::Begin(header) => self.begin(&header),
                Step::Payload(header, at, payload) => self.keep_payload(&header, at, payload),
                Step::End(header) => {
                    self.whole_frames += 1;
                    if let Some(seen) = self.end(&header) {
                        return Ok(Some(seen));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Whether a message has begun with a whole frame, and has not ended.
    pub(super) fn is_inside(&self) -> bool {
        self.is_inside
    }

    /// How many bytes of a frame that is not whole have passed, and how many frames were whole before it.
    pub(super) fn begun(&self) -> (u64, u64) {
        (self.frames.begun(), self.whole_frames)
    }

    fn begin(&mut self, header: &FrameHeader) {
        match header.opcode {
            OpCode::Data(Data::Continue) => {}
            OpCode::Data(_) => self.copy = (self.limit > 0).then(Vec::new),
            OpCode::Control(_) => self.control.clear(),
        }
    }

    fn keep_payload(&mut self, header: &FrameHeader, at: u64, payload: &[u8]) {
        match header.opcode {
            OpCode::Data(_) => {
                self.copy.take_if(|copy| copy.len() + payload.len() > self.limit);
                if let Some(copy) = &mut self.copy {
                    unmask(header, at, payload, copy);
                }
            }
            OpCode::Control(_) => {
                // What is longer than it may be is the receiver's to refuse.
                let room = LONGEST_CONTROL.saturating_sub(self.control.len());
                unmask(header, at, &payload[..payload.len().min(room)], &mut self.control);
            }
        }
    }

    fn end(&mut self, header: &FrameHeader) -> Option<Seen> {
        let control = |control: &mut Vec<u8>| std::mem::take(control);
        match header.opcode {
            OpCode::Data(_) => {
                self.is_inside = !header.is_final;
                header.is_final.then(|| Seen::Message(self.copy.take()))
            }
            OpCode::Control(Control::Ping) => Some(Seen::Ping(control(&mut self.control))),
            OpCode::Control(Control::Pong) => Some(Seen::Pong),
            OpCode::Control(Control::Close) => Some(Seen::Close(control(&mut self.control))),
            OpCode::Control(Control::Reserved(_)) => None,
        }
    }
}

/// The code of a close's payload, if it has one.
pub(super) fn code(payload: &[u8]) -> Option<u16> {
    payload.first_chunk().map(|code| u16::from_be_bytes(*code))
}

#[cfg(test)]
mod tests {
    use super::{super::frames::tests::frame, *};

    fn read(messages: &mut Messages, mut bytes: &[u8]) -> Vec<Seen> {
        let mut found = Vec::new();
        while let Some(seen) = messages.next(&mut bytes).unwrap() {
            found.push(seen);
        }
        found
    }

    const MASK: Option<[u8; 4]> = Some([1, 2, 3, 4]);

    #[test]
    fn a_message_may_have_fragments_and_control_frames_between_them() {
        let mut messages = Messages::new(100);
        let kept = |text: &[u8]| Seen::Message(Some(text.to_vec()));
        assert_eq!(read(&mut messages, &frame(1, false, b"one ", MASK)), []);
        assert!(messages.is_inside());
        assert_eq!(read(&mut messages, &frame(9, true, b"ping", MASK)), [Seen::Ping(b"ping".to_vec())]);
        assert!(messages.is_inside());
        assert_eq!(read(&mut messages, &frame(0, true, b"two", MASK)), [kept(b"one two")]);
        assert!(!messages.is_inside());
        assert_eq!(read(&mut messages, &frame(2, true, b"", None)), [kept(b"")]);
        let close = frame(8, true, &1000_u16.to_be_bytes(), MASK);
        let [Seen::Close(payload)] = &read(&mut messages, &close)[..] else { panic!("a close") };
        assert_eq!((code(payload), code(b"")), (Some(1000), None));
    }

    #[test]
    fn a_fragment_that_is_not_whole_does_not_count() {
        let mut messages = Messages::new(0);
        let bytes = frame(1, false, b"fragment", None);
        read(&mut messages, &bytes[..bytes.len() - 1]);
        assert!(!messages.is_inside());
        assert_eq!(messages.begun(), (bytes.len() as u64 - 1, 0));
        read(&mut messages, &bytes[bytes.len() - 1..]);
        assert!(messages.is_inside());
        assert_eq!(messages.begun(), (0, 1));
    }

    #[test]
    fn long_messages_are_not_kept() {
        let mut messages = Messages::new(10);
        assert_eq!(read(&mut messages, &frame(1, true, &[b'x'; 11], MASK)), [Seen::Message(None)]);
        let parts = [frame(1, false, &[b'x'; 6], None), frame(0, true, &[b'x'; 6], None)].concat();
        assert_eq!(read(&mut messages, &parts), [Seen::Message(None)]);
        assert_eq!(
            read(&mut messages, &frame(1, true, b"short", MASK)),
            [Seen::Message(Some(b"short".to_vec()))]
        );
        messages.keep(0);
        assert_eq!(read(&mut messages, &frame(1, true, b"short", MASK)), [Seen::Message(None)]);
    }
}
