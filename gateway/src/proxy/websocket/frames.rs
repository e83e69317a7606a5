//! WebSocket frames (RFC 6455, 5) in a stream of bytes: where they begin and end, while the bytes pass as they are.

use std::io::Cursor;

use tungstenite::protocol::frame::{
    Frame, FrameHeader,
    coding::{Control, Data, OpCode},
};

/// The longest header: two bytes, eight of length, four of mask.
const LONGEST_HEADER: usize = 14;

/// The longest payload of a control frame.
pub(super) const LONGEST_CONTROL: usize = 125;

/// What comes is no WebSocket frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadFrame;

/// One step through a stream of frames.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// A frame begins.
    Begin(FrameHeader),
    /// Some of its payload, as it came: masked, if the frame is. The offset is that in the payload.
    Payload(FrameHeader, u64, &'a [u8]),
    /// The frame is whole.
    End(FrameHeader),
}

/// Steps through frames. Keeps no payload.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// A header that is not whole.
    partial: Vec<u8>,
    frame: Option<Passing>,
}

#[derive(Debug)]
struct Passing {
    header: FrameHeader,
    header_length: usize,
    length: u64,
    passed: u64,
    told: bool,
}

impl Frames {
    /// The next step, and `bytes` without what it took; `None` if there are too few.
    ///
    /// # Errors
    /// If no frame begins so. Nothing can be read from then on.
    pub(super) fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<Step<'a>>, BadFrame> {
        if self.frame.is_none() {
            let Some((header, length, header_length)) = self.header(bytes)? else { return Ok(None) };
            self.frame = Some(Passing { header, header_length, length, passed: 0, told: false });
        }
        let is_whole = |frame: &mut Passing| frame.told && frame.passed == frame.length;
        if let Some(whole) = self.frame.take_if(is_whole) {
            return Ok(Some(Step::End(whole.header)));
        }
        let Some(frame) = &mut self.frame else { return Ok(None) };
        if !frame.told {
            frame.told = true;
            return Ok(Some(Step::Begin(frame.header.clone())));
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let left = usize::try_from(frame.length - frame.passed).unwrap_or(usize::MAX);
        let (payload, rest) = bytes.split_at(left.min(bytes.len()));
        *bytes = rest;
        let at = frame.passed;
        frame.passed += payload.len() as u64;
        Ok(Some(Step::Payload(frame.header.clone(), at, payload)))
    }

    /// How many bytes of a frame that is not whole have passed.
    pub(super) fn begun(&self) -> u64 {
        let partial = self.partial.len() as u64;
        self.frame.as_ref().map_or(partial, |frame| frame.header_length as u64 + frame.passed)
    }

    fn header(&mut self, bytes: &mut &[u8]) -> Result<Option<(FrameHeader, u64, usize)>, BadFrame> {
        let before = self.partial.len();
        // A copy of the header alone: it may lie in two reads.
        let taken = bytes.len().min(LONGEST_HEADER - before);
        self.partial.extend_from_slice(&bytes[..taken]);
        let mut cursor = Cursor::new(&self.partial);
        match FrameHeader::parse(&mut cursor) {
            Err(_) => Err(BadFrame),
            Ok(None) => {
                *bytes = &bytes[taken..];
                Ok(None)
            }
            Ok(Some((header, length))) => {
                let header_length = cursor.position() as usize;
                *bytes = &bytes[header_length - before..];
                self.partial.clear();
                Ok(Some((header, length, header_length)))
            }
        }
    }
}

/// Appends some payload without its mask.
pub(super) fn unmask(header: &FrameHeader, at: u64, payload: &[u8], into: &mut Vec<u8>) {
    match header.mask {
        None => into.extend_from_slice(payload),
        Some(mask) => {
            let from = (at % 4) as usize;
            into.extend(payload.iter().zip(mask.iter().cycle().skip(from)).map(|(byte, mask)| byte ^ mask));
        }
    }
}

/// Appends a text frame, as a server sends it.
pub(super) fn text(text: String, into: &mut Vec<u8>) {
    put(Frame::message(text, OpCode::Data(Data::Text), true), into);
}

/// Appends a pong.
pub(super) fn pong(payload: Vec<u8>, into: &mut Vec<u8>) {
    put(Frame::pong(payload), into);
}

/// Appends a close with a code and as much of the reason as there is room for.
pub(super) fn close(code: u16, reason: &str, into: &mut Vec<u8>) {
    let mut payload = code.to_be_bytes().to_vec();
    let end = reason.floor_char_boundary((LONGEST_CONTROL - payload.len()).min(reason.len()));
    payload.extend_from_slice(&reason.as_bytes()[..end]);
    let header = FrameHeader { opcode: OpCode::Control(Control::Close), ..FrameHeader::default() };
    put(Frame::from_payload(header, payload.into()), into);
}

fn put(frame: Frame, into: &mut Vec<u8>) {
    // Into memory: nothing can fail.
    let _ = frame.format(into);
}

#[cfg(test)]
pub(super) mod tests;
