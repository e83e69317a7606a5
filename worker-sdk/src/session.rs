//! Sessions: whose request it is, the state that belongs to it, and what is remembered after its end.

mod caller;
mod cookie;
mod extract;
mod handle;
mod record;
mod steps;
mod store;
#[cfg(test)]
mod tests;
mod waiting;

pub(crate) use caller::Caller;
pub use cookie::SessionCookie;
pub(crate) use extract::closed_session;
pub use extract::{HasSessions, Sessions, Start};
pub(crate) use handle::unknown_session;
pub use handle::{Session, StateGuard};
pub(crate) use record::{Phase, Record, Replayable};
pub(crate) use store::{Limits, Locked, Store, shortened};

/// Why a session's state is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Released {
    /// `/close_session`, `/close` of a Gymnasium server, or `/delete` of an ORS server.
    Closed,
    /// `/verify` of a session that no episode seed opened.
    Verified,
    /// A step that was terminated or truncated.
    Terminal,
    /// A handler of the author's own called [`Session::end`], or its end route answered 2xx.
    Ended,
    /// A legacy seed or a reset began the session anew.
    Restarted,
    /// Nobody used it for the idle limit.
    Idle,
    /// The server stops.
    Shutdown,
}

/// The state of a session. Every type with a [`Default`] is one.
///
/// A state that cannot be made out of nothing, such as a browser, is one by `impl SessionState for Browser {}`; then
/// `seed_session` (or `reset`) has to be written.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a session's state yet",
    note = "derive `Default` for it, or write `impl SessionState for {Self} {{}}` and make it in `seed_session` or `reset`",
    note = "it must be `Send + 'static`"
)]
pub trait SessionState: Sized + Send + 'static {
    /// The state of a session whose author wrote no `seed_session` (or `reset`). Default: none, and the seed fails.
    fn unseeded() -> Option<Self> {
        None
    }
}

impl<T: Default + Send + 'static> SessionState for T {
    fn unseeded() -> Option<Self> {
        Some(T::default())
    }
}

/// Whether sessions of this state type hold anything: not those of `()` and the like.
pub(crate) const fn keeps_state<S>() -> bool {
    size_of::<S>() != 0
}
