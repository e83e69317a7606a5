//! What may happen in a random history.

use http::StatusCode;
use proptest::prelude::*;

use super::super::super::{RouteClass, Says};
use crate::config::Protocol;

pub(super) const NAMES: [&str; 4] = ["a", "b", "c", "d"];
pub(super) const WINDOW: u64 = 300_000;
pub(super) const IDLE: u64 = 86_400_000;
pub(super) const RETENTION: u64 = 86_400_000;

#[derive(Clone, Debug)]
pub(super) enum Op {
    /// A request that names this session (`None`: none) on this route.
    Send {
        name: Option<usize>,
        route: usize,
    },
    Answer {
        which: usize,
        status: usize,
        cookie: Option<usize>,
        says: Option<Says>,
    },
    Over(usize),
    Finish(usize),
    Withdraw(usize),
    Exit(u16),
    /// Time goes by, in tenths of a second.
    Pass(u64),
}

pub(super) const ROUTES: [&str; 8] =
    ["/seed_session", "/reset", "/step", "/verify", "/close_session", "/close", "/tool", "/health"];
/// What a route is: by the protocol's own names, and by no others.
pub(super) fn class(protocol: Protocol, path: &str) -> RouteClass {
    let gymnasium =
        [("/reset", RouteClass::Reset), ("/step", RouteClass::Step), ("/close", RouteClass::Close)];
    let seed_verify = [
        ("/seed_session", RouteClass::Seed),
        ("/verify", RouteClass::Verify),
        ("/close_session", RouteClass::CloseSession),
    ];
    let own = match protocol {
        Protocol::Both => [seed_verify, gymnasium].concat(),
        Protocol::SeedVerify => seed_verify.to_vec(),
        Protocol::Gymnasium => gymnasium.to_vec(),
    };
    let class = own.into_iter().find(|(name, _)| *name == path).map(|(_, class)| class);
    class.unwrap_or(if path == "/health" { RouteClass::SessionLess } else { RouteClass::Other })
}

pub(super) const STATUSES: [StatusCode; 4] = [
    StatusCode::OK,
    StatusCode::NOT_FOUND,
    StatusCode::UNPROCESSABLE_ENTITY,
    StatusCode::INTERNAL_SERVER_ERROR,
];

pub(super) fn op() -> impl Strategy<Value = Op> {
    let says = prop_oneof![6 => Just(None), 1 => Just(Some(Says::Open)), 1 => Just(Some(Says::Ended))];
    let name = || proptest::option::weighted(0.8, 0..NAMES.len());
    prop_oneof![
        8 => (name(), 0..ROUTES.len()).prop_map(|(name, route)| Op::Send { name, route }),
        6 => (any::<usize>(), prop_oneof![4 => Just(0_usize), 1 => 1..4_usize], name(), says)
            .prop_map(|(which, status, cookie, says)| Op::Answer { which, status, cookie, says }),
        1 => any::<usize>().prop_map(Op::Over),
        6 => any::<usize>().prop_map(Op::Finish),
        1 => any::<usize>().prop_map(Op::Withdraw),
        1 => (0..2_u16).prop_map(Op::Exit),
        1 => prop_oneof![4 => 1..4_000_u64, 1 => 1..1_000_000_u64].prop_map(Op::Pass),
    ]
}
