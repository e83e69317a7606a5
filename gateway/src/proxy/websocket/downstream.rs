//! From the worker to the client: frames go on when they are whole, so that between any two of them the gateway can
//! say something itself.

use bytes::BytesMut;

use super::{
    super::budget::Held,
    messages::{Messages, Seen, code},
};

/// The longest message of which a copy is kept. Those that say something of a session are short.
const KEPT_MESSAGE: usize = 4096;

/// The most of a frame that is held until it is whole. What is longer passes as it comes.
const MOST_HELD: u64 = 16 * 1024 * 1024;

/// Going away, and service restart: what uvicorn says when its process is told to end.
const LEAVING: [u16; 2] = [1001, 1012];

/// What the client has seen a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HalfSent {
    /// Nothing: the next frame may be any.
    Nothing,
    /// A message, by whole frames: only control frames may come now.
    Message,
    /// A frame, or what is none: nothing may come but its rest.
    Frame,
}

/// What a worker has sent, for the one who carries it.
#[derive(Debug)]
pub(super) struct Downstream {
    messages: Messages,
    /// What may go to the client, and behind it what is held.
    buffer: BytesMut,
    held: usize,
    budget: Held,
    /// How much of the frame that is not whole has gone on.
    passed: u64,
    whole_frames: u64,
    /// The worker has sent a close.
    pub(super) has_closed: bool,
    /// It has sent one that the client must not hear: it goes, and the client would start anew.
    pub(super) has_left: bool,
    is_noise: bool,
}

/// What a worker has said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// A message; a copy, if it is short.
    Message(Option<Vec<u8>>),
    Pong,
    /// The last that it says.
    Close,
}

impl Downstream {
    pub(super) fn new(budget: Held) -> Self {
        Self {
            messages: Messages::new(KEPT_MESSAGE),
            buffer: BytesMut::new(),
            held: 0,
            budget,
            passed: 0,
            whole_frames: 0,
            has_closed: false,
            has_left: false,
            is_noise: false,
        }
    }

    /// Takes what the worker sent, and tells what it says, before any of it can go on.
    pub(super) fn feed(&mut self, bytes: &[u8], mut hear: impl FnMut(Heard)) {
        self.buffer.extend_from_slice(bytes);
        let mut rest = bytes;
        while !self.has_ended() {
            match self.messages.next(&mut rest) {
                Ok(None) => break,
                Ok(Some(Seen::Message(text))) => hear(Heard::Message(text)),
                Ok(Some(Seen::Pong)) => hear(Heard::Pong),
                Ok(Some(Seen::Ping(_))) => {}
                Ok(Some(Seen::Close(payload)))
                    if code(&payload).is_some_and(|code| LEAVING.contains(&code)) =>
                {
                    // A server's frames have no masks, and a control frame's length is one byte.
                    let close = rest.len() + payload.len() + 2;
                    match self.buffer.len().checked_sub(close) {
                        Some(before) => {
                            self.buffer.truncate(before);
                            self.has_left = true;
                        }
                        // The client has a part of it already, for want of memory to hold it.
                        None => self.is_noise = true,
                    }
                }
                Ok(Some(Seen::Close(_))) => {
                    self.has_closed = true;
                    hear(Heard::Close);
                }
                Err(_) => self.is_noise = true,
            }
        }
        self.hold();
    }

    /// Nothing more is read.
    fn has_ended(&self) -> bool {
        self.is_noise || self.has_closed || self.has_left
    }

    /// Settles how much of the buffer's end is held.
    fn hold(&mut self) {
        let (begun, whole_frames) = self.messages.begun();
        if whole_frames != self.whole_frames {
            (self.whole_frames, self.passed) = (whole_frames, 0);
        }
        self.budget.give_back_all();
        let wanted = if self.has_ended() { 0 } else { begun - self.passed };
        let fits = begun <= MOST_HELD && self.budget.take(wanted as usize);
        if fits {
            self.held = wanted as usize;
        } else {
            (self.held, self.passed) = (0, begun);
        }
    }

    /// Takes out what may go to the client now.
    pub(super) fn take_ready(&mut self) -> BytesMut {
        match self.buffer.len() - self.held {
            // Not even an empty part: while there is one, the buffer is copied whenever it grows.
            0 => BytesMut::new(),
            _ if self.held == 0 => std::mem::take(&mut self.buffer),
            ready => self.buffer.split_to(ready),
        }
    }

    /// What the client has seen a part of, once it has all that [`Downstream::take_ready`] gave.
    pub(super) fn half_sent(&self) -> HalfSent {
        match () {
            () if self.is_noise || self.passed > 0 => HalfSent::Frame,
            () if self.messages.is_inside() => HalfSent::Message,
            () => HalfSent::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{super::Budget, frames::tests::frame},
        *,
    };

    fn downstream(budget: usize) -> Downstream {
        Downstream::new(Held::none(Budget::new(budget)))
    }

    /// What goes on, and what was heard, of these bytes.
    fn pass(down: &mut Downstream, bytes: &[u8]) -> (Vec<u8>, Vec<Heard>) {
        let mut heard = Vec::new();
        down.feed(bytes, |one| heard.push(one));
        (down.take_ready().to_vec(), heard)
    }

    fn said(text: &[u8]) -> Vec<Heard> {
        vec![Heard::Message(Some(text.to_vec()))]
    }

    #[test]
    fn frames_go_on_when_they_are_whole() {
        let mut down = downstream(1 << 20);
        let (one, two) = (frame(1, true, b"one", None), frame(1, true, &[b'x'; 300], None));
        assert_eq!(pass(&mut down, &[one.as_slice(), &two[..5]].concat()), (one, said(b"one")));
        assert_eq!((down.held, down.half_sent()), (5, HalfSent::Nothing));
        assert_eq!(pass(&mut down, &two[5..200]), (Vec::new(), Vec::new()));
        assert_eq!(pass(&mut down, &two[200..]), (two, said(&[b'x'; 300])));
        assert_eq!((down.held, down.half_sent()), (0, HalfSent::Nothing));
    }

    #[test]
    fn what_is_too_long_to_be_held_passes_as_it_comes() {
        for (budget, length) in [(1 << 30, 17_000_000), (100, 5000)] {
            let mut down = downstream(budget);
            let long = frame(2, true, &vec![7; length], None);
            let (first, rest) = long.split_at(length - 10);
            assert_eq!(pass(&mut down, first), (first.to_vec(), Vec::new()));
            assert_eq!(down.half_sent(), HalfSent::Frame);
            let next = frame(1, true, b"next", None);
            let (gone, heard) = pass(&mut down, &[rest, &next[..3]].concat());
            assert_eq!((gone, heard), (rest.to_vec(), vec![Heard::Message(None)]));
            assert_eq!((down.held, down.half_sent()), (3, HalfSent::Nothing));
            assert_eq!(pass(&mut down, &next[3..]), (next, said(b"next")));
        }
    }

    #[test]
    fn what_is_held_is_not_copied_with_each_read() {
        let mut down = downstream(1 << 30);
        let (mut to_client, mut copies, mut room) = (BytesMut::new(), 0, 0);
        let long = frame(2, true, &vec![7; 4_000_000], None);
        for read in [frame(1, true, b"before", None).as_slice()].into_iter().chain(long.chunks(4096)) {
            down.feed(read, |_| ());
            to_client.unsplit(down.take_ready());
            copies += u32::from(down.buffer.capacity() > room);
            room = down.buffer.capacity();
            to_client.clear();
        }
        assert!(copies < 30, "{copies} times in {} reads", long.len() / 4096);
    }

    #[test]
    fn a_close_for_a_restart_of_which_a_part_has_passed_breaks_off() {
        let mut down = downstream(0);
        let close = frame(8, true, &[&1012_u16.to_be_bytes(), "why".as_bytes()].concat(), None);
        assert_eq!(pass(&mut down, &close[..3]).0, close[..3]);
        pass(&mut down, &close[3..]);
        assert_eq!(down.half_sent(), HalfSent::Frame);
    }

    #[test]
    fn a_fragment_leaves_a_message_half_sent() {
        let mut down = downstream(1 << 20);
        let (one, two) = (frame(1, false, b"one", None), frame(0, true, b"two", None));
        assert_eq!(pass(&mut down, &[one.as_slice(), &two[..2]].concat()).0, one);
        assert_eq!(down.half_sent(), HalfSent::Message);
        assert_eq!(pass(&mut down, &two[2..]), (two, said(b"onetwo")));
        assert_eq!(down.half_sent(), HalfSent::Nothing);
    }

    #[test]
    fn a_close_passes_and_one_for_a_restart_does_not() {
        for (code, leaves) in [(1000_u16, false), (1011, false), (1012, true), (1001, true)] {
            let mut down = downstream(1 << 20);
            let one = frame(1, true, b"one", None);
            let close = frame(8, true, &[&code.to_be_bytes(), "why".as_bytes()].concat(), None);
            let (gone, told) = pass(&mut down, &[one.as_slice(), &close].concat());
            let mut heard = said(b"one");
            heard.extend((!leaves).then_some(Heard::Close));
            let expected = if leaves { one } else { [one, close].concat() };
            assert_eq!((gone, told), (expected, heard));
            assert_eq!((down.has_left, down.has_closed), (leaves, !leaves));
        }
    }

    #[test]
    fn what_is_no_websocket_passes_too() {
        let mut down = downstream(1 << 20);
        assert_eq!(pass(&mut down, b"\x83\x00noise"), (b"\x83\x00noise".to_vec(), Vec::new()));
        assert_eq!(pass(&mut down, b"more"), (b"more".to_vec(), Vec::new()));
        assert_eq!(down.half_sent(), HalfSent::Frame);
    }
}
