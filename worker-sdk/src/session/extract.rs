//! Sessions in handlers of the author's own routes.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};

use super::caller::Caller;
use super::handle::{Session, unknown_session};
use super::record::{Phase, Record};
use super::store::{Locked, Store, shortened};
use super::{SessionState, keeps_state};
use crate::errors::Failure;

impl<S: SessionState> Store<S> {
    /// The caller's open session. A server that keeps no state makes one for the request, which is in no table.
    ///
    /// # Errors
    /// 404 if it is unknown to a server that keeps state.
    pub(crate) fn session(self: &Arc<Self>, caller: &Caller) -> Result<Session<S>, Failure> {
        let id = caller.id();
        let record = if keeps_state::<S>() {
            self.find_open(id).ok_or_else(unknown_session)?
        } else {
            let state =
                S::unseeded().ok_or_else(|| Failure::fault("a state without content needs a Default"))?;
            Arc::new(Record::opened(id.clone(), state))
        };
        Ok(Session::new(caller.clone(), record, self.clone()))
    }

    /// The caller's open session, if a cookie names one that is kept here.
    pub(crate) fn open_session(self: &Arc<Self>, caller: &Caller) -> Option<Session<S>> {
        let record = self.find_open(caller.cookie_id()?)?;
        Some(Session::new(caller.clone(), record, self.clone()))
    }
}

/// What a handler of a start route of the author's own takes: it opens the caller's session.
pub struct Start<S: SessionState> {
    caller: Caller,
    store: Arc<Store<S>>,
}

impl<S: SessionState> Start<S> {
    /// The ID that the session will have: that of the cookie, or a new one.
    pub fn id(&self) -> &str {
        self.caller.id()
    }

    /// Opens the session anew with this state. What it held before is released first.
    ///
    /// # Errors
    /// 409 if the session was closed, or an episode's seed opened it.
    pub async fn open(self, state: S) -> Result<Session<S>, Failure> {
        let mut locked = self.store.lock(&self.caller).await;
        locked.may_start_anew()?;
        locked.open(state, None);
        // Its cookie goes out also where the route was not declared as a start.
        self.caller.uses();
        let session = Session::new(self.caller, locked.record.clone(), self.store);
        drop(locked);
        Ok(session)
    }
}

impl<S: SessionState> fmt::Debug for Start<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Start").field(&self.caller).finish()
    }
}

impl<S: Send + 'static> Locked<S> {
    /// Whether a legacy seed, a reset, or a start route of the author's own may begin the session.
    ///
    /// # Errors
    /// 409 if it was closed, or an episode's seed opened it.
    pub(crate) fn may_start_anew(&self) -> Result<(), Failure> {
        match self.record.phase() {
            Phase::Closed => Err(closed_session(&self.record.id)),
            Phase::Open if self.inner.episode.is_some() => {
                let reason = "an episode's seed opened this session; start another one";
                Err(Failure::conflict(reason).with_code("session_conflict"))
            }
            Phase::Fresh | Phase::Open | Phase::Ended => Ok(()),
        }
    }
}

/// 409: the session was closed, and its fence stands.
pub(crate) fn closed_session(id: &str) -> Failure {
    let reason = format!("session {}... was closed; start another one", shortened(id));
    Failure::conflict(reason).with_code("session_closed")
}

/// The axum state of a server's own routes, by which the compiler knows whose sessions their handlers may take: those
/// with the state `S`.
pub struct Sessions<S>(PhantomData<fn() -> S>);

impl<S> Sessions<S> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<S> Clone for Sessions<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Sessions<S> {}

impl<S> fmt::Debug for Sessions<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions")
    }
}

/// An axum state whose routes belong to a server with sessions of the state `S`: that of a server's own routes, and any
/// of the author's that says so, for handlers that take both a [`Session`] and an `axum::extract::State`:
///
/// ```
/// use axum::{extract::State, routing::post};
/// use gym_worker_sdk::{Result, Session, session::HasSessions};
///
/// #[derive(Clone)]
/// struct Prices(u32);
///
/// impl HasSessions<i64> for Prices {}
///
/// async fn pay(session: Session<i64>, State(prices): State<Prices>) -> Result<()> {
///     *session.state().await? -= i64::from(prices.0);
///     Ok(())
/// }
///
/// # fn route<E: gym_worker_sdk::ResourcesServer<State = i64>>(app: gym_worker_sdk::ResourcesApp<E>) {
/// app.route("/pay", post(pay).with_state(Prices(5)));
/// # }
/// ```
///
/// Where it is said of the wrong `S`, such a handler answers 500.
#[diagnostic::on_unimplemented(
    message = "routes with the axum state `{Self}` have no `Session<{S}>` and no `Start<{S}>`",
    note = "they take the server's own type `State`; where `{Self}` is a state of yours, write `impl HasSessions<{S}> for {Self} {{}}`"
)]
pub trait HasSessions<S> {}

impl<S> HasSessions<S> for Sessions<S> {}

fn given<S: SessionState>(parts: &Parts) -> Result<(Caller, Arc<Store<S>>), Failure> {
    let caller = parts.extensions.get::<Caller>().cloned();
    let store = parts.extensions.get::<Arc<Store<S>>>().cloned();
    caller.zip(store).ok_or_else(|| {
        let what =
            format!("no sessions of {} here: its server's State is another type", std::any::type_name::<S>());
        Failure::fault(what)
    })
}

impl<S: SessionState, R: HasSessions<S> + Send + Sync> FromRequestParts<R> for Session<S> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &R) -> Result<Self, Response> {
        let session = given::<S>(parts).and_then(|(caller, store)| store.session(&caller));
        session.map_err(IntoResponse::into_response)
    }
}

impl<S: SessionState, R: HasSessions<S> + Send + Sync> FromRequestParts<R> for Start<S> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &R) -> Result<Self, Response> {
        let (caller, store) = given::<S>(parts).map_err(IntoResponse::into_response)?;
        Ok(Self { caller, store })
    }
}
