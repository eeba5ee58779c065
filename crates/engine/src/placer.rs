//! Reservation only together with a cluster that has room. Source: docs/reference/dispatch.md §1.

use crate::cycle::entry::CycleEntry;
use crate::ids::{ClusterId, RequeueKey};

/// Chooses a cluster for a Workload whose quota fits.
pub trait Placer {
    /// `Ok` reserves, with a cluster or without one. `Err` names what the Workload waits for; it holds nothing then.
    ///
    /// # Errors
    /// When no cluster has room.
    fn place(&mut self, entry: &CycleEntry) -> Result<Option<ClusterId>, RequeueKey>;
}

/// Says yes to everything: plain Kueue.
#[derive(Debug, Clone, Copy, Default)]
pub struct AcceptAll;

impl Placer for AcceptAll {
    fn place(&mut self, _: &CycleEntry) -> Result<Option<ClusterId>, RequeueKey> {
        Ok(None)
    }
}
