//! What is said on a WebSocket, from its session's begin to its end.

use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::Environment;
use super::frames::{self, Message, Refusal, unknown_session};
use super::live::Core;
use super::mcp::{self, Unanswered};
use super::registry::Absent;
use super::requests::reset_of_message;
use super::rpc::{self, Request, RpcError};
use super::seat::Seat;
use super::sessions::NoSession;
use super::wire::{Incoming, Wire};

/// What is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// At `/ws`: in a session of its own, or in the one of that ID.
    OpenEnv(Option<String>),
    /// At `/mcp`: JSON-RPC, in a session of its own.
    Mcp,
}

/// What is said to a message.
enum Answer {
    Frame(String),
    /// And then the socket is closed.
    Last(String),
    /// The client wants to go.
    Close,
}

/// Talks until one of both has had enough, and closes.
pub(super) async fn talk<E, S>(core: &Arc<Core<E>>, mut wire: Wire<S>, protocol: Protocol)
where
    E: Environment,
    S: AsyncRead + AsyncWrite + Unpin,
{
    let seat = match wire.during(seated(core, &protocol)).await {
        Ok(seat) => seat,
        Err(refused) => {
            let _told = wire.send(refused).await;
            return wire.close(CloseCode::Normal, "").await;
        }
    };
    let (code, reason) = answer_all(core, &mut wire, &protocol, &seat).await;
    // Before the client hears of the end: its place is free then.
    wire.during(seat.leave()).await;
    wire.close(code, reason).await;
}

/// The session, or the frame that says why there is none.
async fn seated<E: Environment>(core: &Arc<Core<E>>, protocol: &Protocol) -> Result<Seat<E>, String> {
    match protocol {
        Protocol::OpenEnv(Some(id)) => core.attach(id).map_err(|absent| {
            Refusal::Session(match absent {
                Absent::Unknown => unknown_session(id),
                Absent::Starting => format!("Session {id} is still initializing"),
                Absent::Attached => format!("Session {id} already has an attached WebSocket"),
            })
            .frame(id)
        }),
        Protocol::OpenEnv(None) => core.create(true).await.map_err(|none| Refusal::NoSession(none).frame("")),
        Protocol::Mcp => core.create(true).await.map_err(|none: NoSession| {
            let error = RpcError::server(none.to_string(), none.data());
            rpc::reply(&Value::Null, Err(error)).to_string()
        }),
    }
}

/// Answers message after message; how the socket is closed behind the last.
async fn answer_all<E, S>(
    core: &Arc<Core<E>>,
    wire: &mut Wire<S>,
    protocol: &Protocol,
    seat: &Seat<E>,
) -> (CloseCode, &'static str)
where
    E: Environment,
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let incoming = tokio::select! {
            biased;
            // What runs is answered before; what waits is not begun.
            () = core.stopping.cancelled() => return (CloseCode::Restart, "the server stops"),
            incoming = wire.next() => incoming,
        };
        let answer = match (incoming, protocol) {
            (Ok(Incoming::Text(text)), Protocol::OpenEnv(_)) => wire.during(answer(core, seat, &text)).await,
            (Ok(Incoming::Text(text)), Protocol::Mcp) => wire.during(answer_rpc(core, seat, &text)).await,
            (Ok(Incoming::Binary), _) => Answer::Last(binary(protocol)),
            (Err(_), _) => return (CloseCode::Normal, ""),
        };
        let (frame, is_last) = match answer {
            Answer::Frame(frame) => (frame, false),
            Answer::Last(frame) => (frame, true),
            Answer::Close => return (CloseCode::Normal, ""),
        };
        if wire.send(frame).await.is_err() || is_last {
            return (CloseCode::Normal, "");
        }
    }
}

/// A message of `/ws`.
async fn answer<E: Environment>(core: &Arc<Core<E>>, seat: &Seat<E>, text: &str) -> Answer {
    match try_answer(core, seat, text).await {
        Ok(answer) => answer,
        Err(refusal) => {
            let ends = refusal.ends();
            let frame = refusal.frame(&seat.id);
            if ends { Answer::Last(frame) } else { Answer::Frame(frame) }
        }
    }
}

async fn try_answer<E: Environment>(
    core: &Arc<Core<E>>,
    seat: &Seat<E>,
    text: &str,
) -> Result<Answer, Refusal> {
    let frame = match frames::read(text)? {
        Message::Close => return Ok(Answer::Close),
        Message::Reset(data) => {
            let reset = reset_of_message(data)?;
            let reset = core.operate(&seat.held, None, move |env| Box::pin(env.reset(reset)));
            frames::observation(&reset.await?)?
        }
        Message::Step(data) => {
            let (action, metadata) = core.schemas.read_action::<E>(data)?;
            let info = super::StepInfo { metadata, ..super::StepInfo::default() };
            let step = core.operate(&seat.held, None, move |env| Box::pin(env.step(action, info)));
            frames::observation(&step.await?)?
        }
        Message::State => {
            let state = core.operate(&seat.held, None, |env| Box::pin(env.state()));
            frames::state(&state.await?)?
        }
        Message::Mcp(data) => frames::mcp(&replied(core, seat, Request::read(data)).await),
    };
    Ok(Answer::Frame(frame))
}

/// A message of `/mcp`.
async fn answer_rpc<E: Environment>(core: &Arc<Core<E>>, seat: &Seat<E>, text: &str) -> Answer {
    Answer::Frame(replied(core, seat, Request::parse(text)).await.to_string())
}

async fn replied<E: Environment>(
    core: &Arc<Core<E>>,
    seat: &Seat<E>,
    request: Result<Request, RpcError>,
) -> Value {
    let (id, outcome) = match request {
        Ok(request) => (request.id.clone(), mcp::answer(core, request, Some(seat)).await),
        Err(error) => (Value::Null, Err(error.into())),
    };
    let outcome = outcome.map_err(|unanswered| match unanswered {
        Unanswered::Error(error) => error,
        Unanswered::Fault(failure) => RpcError::internal(failure.to_string()),
    });
    rpc::reply(&id, outcome)
}

fn binary(protocol: &Protocol) -> String {
    let words = "messages are text frames, and this is a binary one";
    match protocol {
        Protocol::OpenEnv(_) => Refusal::NotAnObject(words).frame(""),
        Protocol::Mcp => rpc::reply(&Value::Null, Err(RpcError::server_alone(words))).to_string(),
    }
}

#[cfg(test)]
mod tests;
