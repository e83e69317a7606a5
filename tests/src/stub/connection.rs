//! One connection: requests one after another, each answered as its faults say.

use std::{io, sync::Arc};

use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    Behaviour, Stub,
    faults::{self, Faults},
    routes,
    wire::{Body, Head, Wire},
};

/// Whether the connection can carry another request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Keep,
    Close,
}

/// Serves one connection until it closes.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: S, stub: Arc<Stub>) {
    let mut wire = Wire::new(stream);
    let mut closed_after = None;
    while let Ok(Some(head)) = wire.head().await {
        let flow = answer(&mut wire, &head, &stub).await;
        if let Err(error) = &flow {
            stub.report("broken", &head, &[("error", error.to_string().into())]);
        }
        if !matches!(flow, Ok(Flow::Keep)) || stub.options.has(Behaviour::CloseIdle) {
            closed_after = Some(head);
            break;
        }
    }
    drop(wire);
    if let Some(head) = closed_after {
        stub.report("closed", &head, &[]);
    }
}

async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    head: &Head,
    stub: &Stub,
) -> io::Result<Flow> {
    if stub.options.has(Behaviour::NeverAnswer) {
        wire.closed().await;
        return Ok(Flow::Close);
    }
    let faults = Faults::of(head);
    if let Some(flow) = faults::before_body(wire, head, &faults, stub).await? {
        return Ok(flow);
    }
    let body = match wire.body(head).await {
        Ok(body) => body,
        Err(error) => {
            stub.report("cut", head, &[("error", error.to_string().into())]);
            return Ok(Flow::Close);
        }
    };
    if !routes::is_probe(head) {
        stub.report("request", head, &[("length", body.bytes.len().into())]);
    }
    if let Some(gate) = faults.get("gate")
        && !pass_gate(wire, head, gate, stub).await
    {
        return Ok(Flow::Close);
    }
    if let Some(flow) = faults::instead_of_reply(wire, head, &faults, stub).await? {
        return Ok(flow);
    }
    reply(wire, head, &body, &faults, stub).await
}

async fn reply<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    head: &Head,
    body: &Body,
    faults: &Faults,
    stub: &Stub,
) -> io::Result<Flow> {
    let mut reply = routes::respond(stub, head, body, faults);
    let flow = faults.adjust(&mut reply);
    wire.write(&reply.bytes(head.method == "HEAD")).await?;
    Ok(flow)
}

/// Waits for the gate, or for the client to leave: whether the gate opened.
pub(super) async fn pass_gate<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    head: &Head,
    gate: &str,
    stub: &Stub,
) -> bool {
    stub.report("waiting", head, &[("gate", gate.into())]);
    tokio::select! {
        () = stub.reporter.gate(gate) => true,
        () = wire.closed() => {
            stub.report("cancelled", head, &[("gate", gate.into())]);
            false
        }
    }
}

impl Stub {
    /// Reports something about a request.
    pub(super) fn report(&self, event: &str, head: &Head, fields: &[(&str, serde_json::Value)]) {
        let mut all = vec![
            ("method", json!(head.method)),
            ("target", json!(head.target)),
            ("tag", json!(head.header("x-tag"))),
            ("session", json!(routes::session_of(self, head))),
        ];
        all.extend_from_slice(fields);
        self.reporter.event(event, &all);
    }
}
