//! The request that a preemption search makes room for.

use crate::amount::Amount;
use crate::flavors::assignment::Assignment;
use crate::flavors::attempt::AssignmentAttempt;
use crate::ids::Slot;

/// The request that targets are searched for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PreemptionRequest<'a> {
    pub(crate) attempt: &'a AssignmentAttempt<'a>,
    pub(crate) usage: &'a [(Slot, Amount)],
    /// The slots that need preemption.
    pub(crate) contested: &'a [Slot],
    /// The assignment whose pods must also fit in their topologies; `None` to simulate quota only.
    pub(crate) assignment: Option<&'a Assignment>,
}
