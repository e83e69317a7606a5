//! Failure kinds that NeMo Gym does not know are logged, once each, and never rejected.

use std::sync::LazyLock;

use gym_wire::message::{FailureKind, ReportedKinds};

static REPORTED: LazyLock<ReportedKinds> = LazyLock::new(ReportedKinds::default);

/// Says so if `kind` is of neither form that NeMo Gym knows, the first time that it is seen.
pub(crate) fn report(kind: Option<&FailureKind>) {
    if let Some(kind) = kind.filter(|kind| REPORTED.is_news(kind)) {
        tracing::warn!(
            "unregistered failure_kind {kind:?}: use a registered one, or <server>:<kind>; said once for each name"
        );
    }
}
