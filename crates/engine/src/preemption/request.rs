//! The request that a preemption search makes room for.

use crate::amount::Amount;
use crate::flavors::assignment::Assignment;
use crate::flavors::attempt::AssignmentAttempt;
use crate::ids::Slot;

/// What room is made for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PreemptionRequest<'a> {
    pub(crate) attempt: &'a AssignmentAttempt<'a>,
    pub(crate) usage: &'a [(Slot, Amount)],
    /// The slots for which somebody has to go.
    pub(crate) contested: &'a [Slot],
    /// The assignment whose pods must find a place too.
    pub(crate) assignment: Option<&'a Assignment>,
}
