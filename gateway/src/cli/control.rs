//! What the admin address has done.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    plant::Unit,
    snapshot::{Live, roll},
};
use crate::{
    admin::{Control, Refused, Reloaded, RollSnapshot},
    workers::{NotRolling, Supervisor},
};

/// The reason that is given for what somebody asks for by hand.
const BY_HAND: &str = "asked for";

impl Live {
    fn unit(&self, server: &str) -> Result<Arc<Unit>, Refused> {
        let units = self.0.units();
        units.iter().find(|unit| unit.state.name == server).cloned().ok_or_else(|| {
            let known: Vec<_> = units.iter().map(|unit| unit.state.name.as_str()).collect();
            Refused::UnknownServer { server: server.into(), known: known.join(", ") }
        })
    }

    fn supervised<'a>(&self, unit: &'a Unit) -> Result<&'a Supervisor, Refused> {
        if self.0.shared.stop.begun.is_cancelled() {
            return Err(Refused::NotNow("stopping"));
        }
        unit.supervisor().ok_or(Refused::NotNow("starting"))
    }
}

#[async_trait]
impl Control for Live {
    fn drain(&self, server: &str, slot: u16) -> Result<(), Refused> {
        let unit = self.unit(server)?;
        let drained = self.supervised(&unit)?.drain(slot, BY_HAND);
        drained.map_err(|_| Refused::UnknownSlot { server: server.into(), slot })
    }

    fn restart(&self, server: &str, slot: Option<u16>) -> Result<RollSnapshot, Refused> {
        let unit = self.unit(server)?;
        match self.supervised(&unit)?.restart(slot, BY_HAND) {
            Ok(status) => Ok(roll(status)),
            Err(NotRolling::NoSlot(slot)) => Err(Refused::UnknownSlot { server: server.into(), slot }),
            Err(error @ NotRolling::UnderWay(_)) => {
                Err(Refused::UnderWay(format!("server {server}: {error}")))
            }
        }
    }

    async fn reload(&self) -> Result<Reloaded, Refused> {
        self.0.reload().await
    }
}
