use futures_util::stream::SplitStream;
use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::*;

/// A client, and the server's side.
async fn pair() -> (WebSocketStream<DuplexStream>, Wire<DuplexStream>) {
    let (client, server) = duplex(64 << 10);
    let config = WebSocketConfig::default().max_frame_size(None).max_message_size(None);
    let client = WebSocketStream::from_raw_socket(client, Role::Client, Some(config)).await;
    (client, Wire::new(server).await)
}

fn text(text: &str) -> Message {
    Message::Text(text.into())
}

/// Whatever the client is sent, to the end.
async fn rest(client: &mut SplitStream<WebSocketStream<DuplexStream>>) -> Vec<Message> {
    let mut all = Vec::new();
    while let Some(Ok(message)) = client.next().await {
        all.push(message);
    }
    all
}

fn code(message: &Message) -> Option<CloseCode> {
    match message {
        Message::Close(Some(frame)) => Some(frame.code),
        _ => None,
    }
}

#[tokio::test]
async fn texts_go_both_ways_in_their_order() {
    let (mut client, mut wire) = pair().await;
    for message in ["a", "b"] {
        client.send(text(message)).await.unwrap();
    }
    assert_eq!(wire.next().await, Ok(Incoming::Text("a".into())));
    wire.send("A".to_owned()).await.unwrap();
    assert_eq!(wire.next().await, Ok(Incoming::Text("b".into())));
    client.send(Message::Binary(Bytes::from_static(b"x"))).await.unwrap();
    assert_eq!(wire.next().await, Ok(Incoming::Binary));
    assert_eq!(client.next().await.unwrap().unwrap(), text("A"));
}

#[tokio::test]
async fn fragments_are_one_message() {
    let (mut client, mut wire) = pair().await;
    let part = |bytes: &'static [u8], of, is_last| {
        Message::Frame(Frame::message(Bytes::from_static(bytes), OpCode::Data(of), is_last))
    };
    client.send(part(b"{\"ty", Data::Text, false)).await.unwrap();
    client.send(Message::Ping(Bytes::from_static(b"between"))).await.unwrap();
    client.send(part(b"pe\": ", Data::Continue, false)).await.unwrap();
    client.send(part(b"1}", Data::Continue, true)).await.unwrap();
    assert_eq!(wire.next().await, Ok(Incoming::Text("{\"type\": 1}".into())));
    wire.send("seen".to_owned()).await.unwrap();
    assert_eq!(client.next().await.unwrap().unwrap(), Message::Pong(Bytes::from_static(b"between")));
}

#[tokio::test]
async fn a_message_may_be_as_long_as_the_limit_and_no_longer() {
    let (client, mut wire) = pair().await;
    let (mut write, mut read) = client.split();
    let writes = tokio::spawn(async move {
        write.send(text(&"a".repeat(LONGEST))).await.unwrap();
        // It may be closed under this one, or take all of it.
        let _taken = write.send(text(&"a".repeat(LONGEST + 1))).await;
        write
    });
    let Ok(Incoming::Text(longest)) = wire.next().await else { panic!("no text") };
    assert_eq!(longest.len(), LONGEST);
    assert_eq!(wire.next().await, Err(Over::Refused(CloseCode::Size, "message too big")));
    let closes = tokio::spawn(wire.close(CloseCode::Normal, ""));
    let said = rest(&mut read).await;
    assert_eq!(said.iter().filter_map(code).collect::<Vec<_>>(), [CloseCode::Size]);
    drop((writes.await.unwrap(), read));
    closes.await.unwrap();
}

#[tokio::test]
async fn fragments_are_too_long_together() {
    let (client, mut wire) = pair().await;
    let (mut write, _read) = client.split();
    let writes = tokio::spawn(async move {
        let half = Bytes::from(vec![b'a'; LONGEST / 2 + 1]);
        for (of, is_last) in [(Data::Text, false), (Data::Continue, true)] {
            let frame = Frame::message(half.clone(), OpCode::Data(of), is_last);
            let _taken = write.send(Message::Frame(frame)).await;
        }
    });
    assert_eq!(wire.next().await, Err(Over::Refused(CloseCode::Size, "message too big")));
    drop(wire);
    writes.await.unwrap();
}

#[tokio::test]
async fn what_breaks_the_protocol_has_its_code() {
    let text_frame = |byte: u8| [0x81, 0x81, 0, 0, 0, 0, byte];
    for (sent, expected) in [
        (&text_frame(0xff)[..], CloseCode::Invalid),
        // Without a mask.
        (&[0x81, 0x01, b'a'], CloseCode::Protocol),
        // An opcode that is none.
        (&[0x83, 0x80, 0, 0, 0, 0], CloseCode::Protocol),
    ] {
        let (mut client, server) = duplex(1 << 10);
        let mut wire = Wire::new(server).await;
        client.write_all(sent).await.unwrap();
        let Err(Over::Refused(code, _)) = wire.next().await else { panic!("{sent:?} is taken") };
        assert_eq!(code, expected);
        let closes = tokio::spawn(wire.close(CloseCode::Normal, ""));
        let mut answer = [0; 4];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!((answer[0], u16::from_be_bytes([answer[2], answer[3]])), (0x88, expected.into()));
        drop(client);
        closes.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_without_a_sign_of_life_is_given_up() {
    let (mut client, server) = duplex(1 << 10);
    let mut wire = Wire::new(server).await;
    let start = Instant::now();
    assert_eq!(wire.next().await, Err(Over::Refused(CloseCode::Error, "keepalive ping timeout")));
    assert_eq!(start.elapsed(), PING * 2);
    let closes = tokio::spawn(wire.close(CloseCode::Normal, ""));
    let mut ping = [0; 6];
    client.read_exact(&mut ping).await.unwrap();
    assert_eq!(&ping, b"\x89\x04ping");
    let mut close = [0; 4];
    client.read_exact(&mut close).await.unwrap();
    assert_eq!(u16::from_be_bytes([close[2], close[3]]), 1011);
    drop(client);
    closes.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn pings_are_sent_and_answered_while_something_runs() {
    let (client, mut wire) = pair().await;
    let (mut write, mut read) = client.split();
    write.send(Message::Ping(Bytes::from_static(b"mine"))).await.unwrap();
    let reads = tokio::spawn(async move {
        let mut seen = Vec::new();
        // Reading answers the pings.
        while let Some(Ok(message)) = read.next().await {
            seen.push(message);
        }
        seen
    });
    wire.during(tokio::time::sleep(PING * 5 + PING / 2)).await;
    let closes = tokio::spawn(wire.close(CloseCode::Normal, ""));
    let seen = reads.await.unwrap();
    let pings = seen.iter().filter(|message| matches!(message, Message::Ping(_))).count();
    assert_eq!(pings, 5);
    assert!(seen.contains(&Message::Pong(Bytes::from_static(b"mine"))), "{seen:?}");
    drop(write);
    closes.await.unwrap();
}

#[tokio::test]
async fn what_runs_ends_though_its_client_is_gone() {
    let (client, mut wire) = pair().await;
    let (is_done, done) = oneshot::channel();
    drop(client);
    let runs = tokio::spawn(async move { (wire.during(done).await.unwrap(), wire.next().await) });
    is_done.send(7).unwrap();
    assert_eq!(runs.await.unwrap(), (7, Err(Over::Gone)));
}

#[tokio::test]
async fn a_client_that_asks_ahead_is_read_no_faster_than_it_is_answered() {
    let (mut client, mut wire) = pair().await;
    for i in 0..100 {
        client.feed(text(&i.to_string())).await.unwrap();
    }
    client.flush().await.unwrap();
    let looks = poll_fn(|context| {
        // Nothing happens any more once there is no room.
        while wire.poll_turn(context).is_ready() {}
        Poll::Ready(wire.came.len())
    });
    assert_eq!(looks.await, AHEAD);
    for i in 0..100 {
        assert_eq!(wire.next().await, Ok(Incoming::Text(i.to_string().into())));
    }
    assert_eq!(wire.length, 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_not_read_is_not_given_up() {
    let (mut client, mut wire) = pair().await;
    for _ in 0..=AHEAD {
        client.feed(text("x")).await.unwrap();
    }
    client.flush().await.unwrap();
    wire.during(tokio::time::sleep(PING * 10)).await;
    assert_eq!(wire.next().await, Ok(Incoming::Text("x".into())));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_asks_ahead_and_takes_nothing_is_given_up() {
    let (mut client, mut wire) = pair().await;
    for _ in 0..=AHEAD {
        client.feed(text("x")).await.unwrap();
    }
    client.flush().await.unwrap();
    assert_eq!(wire.next().await, Ok(Incoming::Text("x".into())));
    wire.during(tokio::time::sleep(PING * 5 / 2)).await;
    let start = Instant::now();
    let sent = wire.send("a".repeat(1 << 20)).await;
    assert_eq!(sent, Err(Over::Refused(CloseCode::Error, "keepalive ping timeout")));
    assert_eq!(start.elapsed(), PING * 3 / 2);
    drop(client);
}

#[tokio::test]
async fn a_client_that_pings_and_takes_no_pong_is_read_no_further() {
    const PINGS: usize = 4000;
    let (client, mut wire) = pair().await;
    let (mut write, mut read) = client.split();
    let mut pings = tokio::spawn(async move {
        for _ in 0..PINGS {
            write.feed(Message::Ping(Bytes::from_static(&[b'p'; 125]))).await.unwrap();
        }
        write.flush().await.unwrap();
        write
    });
    // More than the connection holds: they are not all taken while no pong is.
    let looks = poll_fn(|context| {
        while wire.poll_turn(context).is_ready() {}
        if wire.has_room() { Poll::Pending } else { Poll::Ready(()) }
    });
    looks.await;
    assert!(!pings.is_finished());
    let pongs = async {
        for _ in 0..PINGS {
            assert!(matches!(read.next().await, Some(Ok(Message::Pong(_)))));
        }
    };
    wire.during(pongs).await;
    drop((&mut pings).await.unwrap());
}

#[tokio::test]
async fn a_close_is_answered_with_its_code() {
    let (client, mut wire) = pair().await;
    let (mut write, mut read) = client.split();
    let frame = CloseFrame { code: CloseCode::Away, reason: Utf8Bytes::default() };
    write.send(Message::Close(Some(frame))).await.unwrap();
    assert_eq!(wire.next().await, Err(Over::Closed));
    assert_eq!(wire.send("late".to_owned()).await, Err(Over::Closed));
    wire.close(CloseCode::Normal, "").await;
    assert_eq!(rest(&mut read).await.iter().filter_map(code).collect::<Vec<_>>(), [CloseCode::Away]);
}

#[tokio::test(start_paused = true)]
async fn an_end_does_not_wait_for_ever() {
    let (client, wire) = pair().await;
    let start = Instant::now();
    wire.close(CloseCode::Restart, "the server stops").await;
    assert_eq!(start.elapsed(), LINGER);
    drop(client);
}

#[tokio::test]
async fn nothing_is_lost_when_waiting_is_given_up() {
    let (mut client, mut wire) = pair().await;
    for round in 0..50 {
        let sends = client.send(text(&round.to_string()));
        // Given up as soon as it has been looked at.
        let (_, given_up) = tokio::join!(sends, async {
            tokio::select! { biased; next = wire.next() => Some(next), () = std::future::ready(()) => None }
        });
        let next = match given_up {
            Some(next) => next,
            None => wire.next().await,
        };
        assert_eq!(next, Ok(Incoming::Text(round.to_string().into())));
    }
}
