//! Error replies in the shapes of FastAPI and NeMo Gym, so that clients of the Python servers understand them.
//!
//! | status | JSON | when |
//! |---|---|---|
//! | 404, 405 | `{"detail": "Not Found"}`, `{"detail": "Method Not Allowed"}` | no such route: [`not_found`], [`method_not_allowed`] |
//! | 422 | `{"detail": [{"type", "loc", "msg", "input"}]}` | a body that is not what the handler needs: [`Invalid`] |
//! | any | `{"detail": ...}` | a handler's own answer: [`Failure::new`], FastAPI's `HTTPException` |
//! | 500 | `"what went wrong"` | a handler's error or panic: [`Failure::from`], [`catch_panic`]; as NeMo Gym answers an unhandled exception |

use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::json;

mod failure;
mod invalid;
mod pydantic;

pub use failure::{Failure, catch_panic};
pub use invalid::{Invalid, Problem};
#[cfg(any(feature = "mcp", feature = "openenv"))]
pub(crate) use pydantic::explained;
#[cfg(feature = "openenv")]
pub(crate) use pydantic::told;

/// A fallback for routers: 404 as FastAPI answers it.
pub async fn not_found() -> Response {
    detail(StatusCode::NOT_FOUND, "Not Found")
}

/// A fallback for routers: 405 as FastAPI answers it.
pub async fn method_not_allowed() -> Response {
    detail(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed")
}

/// The router, with [`not_found`] and [`method_not_allowed`] for its fallbacks, and `Allow` as Starlette writes it:
/// `GET, POST` and not `GET,POST`, and without the `HEAD` that axum adds to every `GET`.
pub fn with_fallbacks(router: Router) -> Router {
    let router = router.fallback(not_found).method_not_allowed_fallback(method_not_allowed);
    // axum adds `Allow` around the layers of its routes: only a router around the router sees it.
    Router::new().fallback_service(router).layer(map_response(spell_allow))
}

/// Writes the `Allow` of a 405 as Starlette does: `GET, POST` and not `GET,HEAD,POST`.
pub(crate) async fn spell_allow(mut reply: Response) -> Response {
    if reply.status() == StatusCode::METHOD_NOT_ALLOWED
        && let Some(allow) = reply.headers().get(header::ALLOW).and_then(|allow| allow.to_str().ok())
    {
        let methods: Vec<&str> = allow.split(',').map(str::trim).collect();
        let has_get = methods.contains(&"GET");
        let spelled: Vec<&str> =
            methods.into_iter().filter(|method| !(has_get && *method == "HEAD")).collect();
        if let Ok(spelled) = HeaderValue::from_str(&spelled.join(", ")) {
            reply.headers_mut().insert(header::ALLOW, spelled);
        }
    }
    reply
}

/// `{"detail": ...}`.
pub(crate) fn detail(status: StatusCode, detail: &str) -> Response {
    (status, Json(json!({"detail": detail}))).into_response()
}

#[cfg(test)]
mod tests;
