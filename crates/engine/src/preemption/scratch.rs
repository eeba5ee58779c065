//! Buffers of preemption searches, kept between searches so that a search does not allocate.

use crate::amount::Amount;
use crate::ids::Slot;
use crate::preemption::candidate_pool::CandidatePool;
use crate::preemption::target::PreemptionTarget;

/// Buffers of preemption searches, and the targets of the last simulation.
#[derive(Debug, Default)]
pub(crate) struct PreemptionScratch {
    pub(super) targets: Vec<PreemptionTarget>,
    /// The request that `targets` was found for; `None` if usage may have changed since.
    pub(super) found_for: Option<(Slot, Amount)>,
    pub(super) pool: CandidatePool,
}

impl PreemptionScratch {
    /// Invalidates the targets of the last simulation: another attempt begins, and usage may have changed.
    pub(crate) fn invalidate(&mut self) {
        self.found_for = None;
    }
}
