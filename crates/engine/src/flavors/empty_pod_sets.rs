//! Probes flavors for pod sets without pods: an elastic job that starts with none keeps its flavor when it grows.
//!
//! A request of zero fits in every flavor. The scan therefore prefers flavors that could hold one pod of each pod set of the group
//! without any usage. If none could, the group gets the flavor that it would get without the probe: nothing of it runs yet.
//!
//! Source: docs/reference/kueue.md §4.4 step 4. Cost: nothing for a group with pods.

use smallvec::SmallVec;

use crate::flavors::attempt::{AssignmentAttempt, PodSetRequests};
use crate::flavors::scan::FlavorRequest;
use crate::quota::available::potential;
use crate::reason::NoFitReason;
use crate::state::State;
use crate::workloads::usage::{SlotUsage, charged};

/// One pod of each pod set of a group without pods.
#[derive(Debug)]
pub(crate) struct EmptyGroupProbe {
    pub(crate) requests: PodSetRequests,
    /// What earlier pod sets of the Workload request, with what they take over from an old slice.
    pub(crate) earlier: SlotUsage,
}

/// Whether none of the pod sets has pods.
pub(crate) fn are_empty(attempt: &AssignmentAttempt<'_>, members: &[usize]) -> bool {
    members.iter().all(|&member| attempt.count(member) == 0)
}

/// Why a flavor could never hold the probe.
pub(crate) fn beyond_capacity(
    state: &State,
    flavor_request: &FlavorRequest<'_>,
    probe: &EmptyGroupProbe,
    index: usize,
) -> SmallVec<[NoFitReason; 1]> {
    let node = state.queues.at(flavor_request.attempt.queue).node;
    let beyond = |&(resource, request): &_| {
        let slot = flavor_request.group.slot(index, resource)?;
        let earlier = charged(&probe.earlier, slot);
        let maximum = potential(state.quota.tree(), node, slot);
        (earlier + request > maximum).then_some(NoFitReason::ExceedsMaximum {
            slot,
            earlier,
            request,
            maximum,
        })
    };
    probe.requests.iter().filter_map(beyond).collect()
}
