use proptest::{collection::vec, prelude::*};

use super::*;

/// A frame as it goes over the wire.
pub(in super::super) fn frame(opcode: u8, is_final: bool, payload: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
    let header = FrameHeader { is_final, opcode: opcode.into(), mask, ..FrameHeader::default() };
    let mut bytes = Vec::new();
    Frame::from_payload(header, payload.to_vec().into()).format(&mut bytes).unwrap();
    bytes
}

/// What a stream has, whatever pieces it comes in: opcode, whether it is the last of a message, payload.
fn read(frames: &mut Frames, mut bytes: &[u8], found: &mut Vec<(u8, bool, Vec<u8>)>) -> Result<(), BadFrame> {
    while let Some(step) = frames.next(&mut bytes)? {
        match step {
            Step::Begin(header) => found.push((header.opcode.into(), header.is_final, Vec::new())),
            Step::Payload(header, at, payload) => {
                unmask(&header, at, payload, &mut found.last_mut().unwrap().2)
            }
            Step::End(header) => assert_eq!(found.last().unwrap().0, u8::from(header.opcode)),
        }
    }
    assert!(bytes.is_empty(), "all is taken");
    Ok(())
}

type Sent = (u8, bool, Vec<u8>, Option<[u8; 4]>);

fn sent() -> impl Strategy<Value = Vec<Sent>> {
    let payload = prop_oneof![8 => vec(any::<u8>(), 0..140), 1 => vec(any::<u8>(), 65_530..65_560)];
    let opcode = prop::sample::select(vec![0_u8, 1, 2, 8, 9, 10]);
    vec((opcode, any::<bool>(), payload, any::<Option<[u8; 4]>>()), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn frames_are_found_whatever_pieces_they_come_in(sent in sent(), pieces in 1_usize..300) {
        let stream: Vec<u8> =
            sent.iter().flat_map(|(opcode, last, payload, mask)| frame(*opcode, *last, payload, *mask)).collect();
        let (mut frames, mut found) = (Frames::default(), Vec::new());
        for piece in stream.chunks(pieces) {
            read(&mut frames, piece, &mut found).unwrap();
        }
        prop_assert_eq!(frames.begun(), 0);
        let expected: Vec<_> = sent.into_iter().map(|(opcode, last, payload, _)| (opcode, last, payload)).collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn what_has_begun_is_counted_byte_by_byte() {
    let bytes = frame(1, true, &[7; 300], Some([1, 2, 3, 4]));
    let mut frames = Frames::default();
    for (n, byte) in bytes.iter().enumerate() {
        assert_eq!(frames.begun(), n as u64);
        read(&mut frames, &[*byte], &mut vec![(1, true, Vec::new())]).unwrap();
    }
    assert_eq!(frames.begun(), 0);
}

#[test]
fn what_is_no_frame_is_an_error() {
    assert_eq!(read(&mut Frames::default(), b"\x83\x00", &mut Vec::new()), Err(BadFrame));
}

#[test]
fn a_long_reason_is_cut_between_characters() {
    let mut bytes = Vec::new();
    close(1011, &"é".repeat(100), &mut bytes);
    let mut found = Vec::new();
    read(&mut Frames::default(), &bytes, &mut found).unwrap();
    let (opcode, last, payload) = &found[0];
    assert_eq!((*opcode, *last, payload.len()), (8, true, 124));
    assert_eq!(u16::from_be_bytes([payload[0], payload[1]]), 1011);
    assert_eq!(std::str::from_utf8(&payload[2..]).unwrap(), "é".repeat(61));
}
