use serde_json::{Value, json};

use super::{
    super::{frames::tests::frame, messages::Messages},
    *,
};

const MASK: Option<[u8; 4]> = Some([9, 8, 7, 6]);

fn id() -> SessionId {
    SessionId::new("s-1").unwrap()
}

/// What a client gets to see: answers as JSON, `pong`, `close CODE REASON`.
fn seen(bytes: &[u8]) -> Vec<Value> {
    let (mut messages, mut rest, mut all) = (Messages::new(1 << 20), bytes, Vec::new());
    while let Some(seen) = messages.next(&mut rest).unwrap() {
        all.push(match seen {
            Seen::Message(text) => serde_json::from_slice(&text.unwrap()).unwrap(),
            Seen::Pong => json!("pong"),
            Seen::Ping(_) => json!("ping"),
            Seen::Close(payload) => {
                let reason = std::str::from_utf8(&payload[2..]).unwrap();
                json!(format!("close {} {reason}", code(&payload).unwrap()).trim_end())
            }
        });
    }
    assert!(rest.is_empty() && messages.begun().0 == 0, "whole frames");
    all
}

/// A socket whose worker has gone after the client sent this; and what it says at once.
fn lost(channel: Channel, sent: &[Vec<u8>], half_sent: HalfSent) -> (Alone, Vec<Value>) {
    let mut upstream = Upstream::new(channel);
    upstream.feed(&sent.concat());
    let mut out = Vec::new();
    let alone = Alone::lost(channel, id(), upstream, half_sent, &mut out);
    (alone, seen(&out))
}

fn ask(alone: &mut Alone, bytes: &[u8]) -> Vec<Value> {
    let mut out = Vec::new();
    alone.feed(bytes, &mut out);
    seen(&out)
}

fn text(text: &str) -> Vec<u8> {
    frame(1, true, text.as_bytes(), MASK)
}

fn is_loss(answer: &Value) -> bool {
    answer["type"] == "error"
        && answer["data"]["code"] == "SESSION_ERROR"
        && answer["data"]["message"].as_str().unwrap().contains("Session s-1 is lost")
}

#[test]
fn what_waits_and_what_comes_later_is_answered_until_the_client_closes() {
    let step = text(r#"{"type":"step"}"#);
    let (mut alone, first) = lost(Channel::Ws, &[step.clone(), step.clone()], HalfSent::Nothing);
    assert_eq!(first.iter().filter(|answer| is_loss(answer)).count(), 2, "{first:?}");
    for _ in 0..3 {
        assert!(matches!(&ask(&mut alone, &step)[..], [answer] if is_loss(answer)));
    }
    let binary = frame(2, true, b"\xff", MASK);
    assert!(matches!(&ask(&mut alone, &binary)[..], [answer] if is_loss(answer)));
    assert_eq!(ask(&mut alone, &frame(9, true, b"x", MASK)), [json!("pong")]);
    assert_eq!(ask(&mut alone, &frame(10, true, b"x", MASK)), [json!(null); 0]);
    assert_eq!(ask(&mut alone, &frame(8, true, &1001_u16.to_be_bytes(), MASK)), [json!("close 1001")]);
    assert_eq!(alone.progress(), Progress::Over);
}

#[test]
fn an_idle_socket_hears_nothing_that_it_did_not_ask() {
    let (alone, first) = lost(Channel::Ws, &[], HalfSent::Nothing);
    assert_eq!((first, alone.progress()), (vec![], Progress::Answering));
}

#[test]
fn a_request_that_was_half_sent_to_the_worker_is_answered_when_it_is_whole() {
    let step = text(r#"{"type":"step"}"#);
    let (first, rest) = step.split_at(7);
    let (mut alone, said) = lost(Channel::Ws, &[first.to_vec()], HalfSent::Nothing);
    assert_eq!(said, [json!(null); 0]);
    assert!(matches!(&ask(&mut alone, rest)[..], [answer] if is_loss(answer)));
}

#[test]
fn a_ping_that_the_worker_did_not_answer_is_answered() {
    let sent = [frame(9, true, b"1", MASK), frame(9, true, b"2", MASK)];
    assert_eq!(lost(Channel::Ws, &sent, HalfSent::Nothing).1, [json!("pong")]);
}

#[test]
fn json_rpc_is_answered_by_its_ids() {
    let create = text(r#"{"jsonrpc":"2.0","id":"a","method":"x"}"#);
    let (mut alone, first) = lost(Channel::Mcp, &[create], HalfSent::Nothing);
    assert_eq!((&first[0]["id"], &first[0]["error"]["code"]), (&json!("a"), &json!(-32000)));
    let second = ask(&mut alone, &text(r#"{"id":7,"type":"close"}"#));
    assert_eq!((&second[0]["id"], &second[0]["error"]["data"]["session_id"]), (&json!(7), &json!("s-1")));
}

#[test]
fn a_goodbye_gets_the_close_that_the_worker_would_have_sent() {
    let (mut alone, _) = lost(Channel::Ws, &[], HalfSent::Nothing);
    assert_eq!(ask(&mut alone, &text(r#"{"type":"close"}"#)), [json!("close 1000")]);
    assert_eq!(alone.progress(), Progress::Closing);
    assert_eq!(ask(&mut alone, &text(r#"{"type":"step"}"#)), [json!(null); 0], "nothing behind a close");
    assert_eq!(ask(&mut alone, &frame(8, true, &1000_u16.to_be_bytes(), MASK)), [json!(null); 0]);
    assert_eq!(alone.progress(), Progress::Over);
}

#[test]
fn inside_of_a_message_only_a_close_can_be_said_and_inside_of_a_frame_nothing() {
    let step = text(r#"{"type":"step"}"#);
    let (alone, said) = lost(Channel::Ws, std::slice::from_ref(&step), HalfSent::Message);
    assert_eq!(said, [json!("close 1011 Session s-1 is lost: its worker is no longer running")]);
    assert_eq!(alone.progress(), Progress::Closing);
    let (alone, said) = lost(Channel::Ws, &[step], HalfSent::Frame);
    assert_eq!((said, alone.progress()), (vec![], Progress::Over));
}

#[test]
fn a_client_that_was_closing_gets_its_close() {
    let sent = [frame(8, true, &1000_u16.to_be_bytes(), MASK)];
    let (alone, said) = lost(Channel::Ws, &sent, HalfSent::Nothing);
    assert_eq!((said, alone.progress()), (vec![json!("close 1000")], Progress::Over));
}

#[test]
fn noise_ends_it() {
    let (mut alone, _) = lost(Channel::Ws, &[], HalfSent::Nothing);
    assert_eq!(ask(&mut alone, b"\x83\x00"), [json!("close 1002")]);
    assert_eq!(alone.progress(), Progress::Over);
}
