//! Fits one request into the quota of one (flavor, resource). Kueue: `fitsResourceQuota`.
//!
//! Source: docs/reference/kueue.md §4.4 steps 4 and 6. Cost: O(depth), plus a preemption search if the quota is in use.

use crate::amount::Amount;
use crate::flavors::attempt::AssignmentAttempt;
use crate::flavors::granular_mode::{GranularMode, PreemptionMode};
use crate::ids::{QueueId, Slot};
use crate::preemption::search;
use crate::queues::layer::QueueLayer;
use crate::quota::available::{available, potential, reach};
use crate::reason::{NoFitReason, PendingReason};
use crate::settings::EngineSettings;
use crate::spec::{PreemptionPolicy, PreemptionSpec};
use crate::state::State;

/// Fits `request` on top of `earlier`, the usage of the same slot by earlier pod sets of the Workload.
pub(crate) fn fit_resource_quota(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    slot: Slot,
    earlier: Amount,
    request: Amount,
) -> (GranularMode, Option<NoFitReason>) {
    // Earlier pod sets of the Workload are not charged yet, so they are added to the request.
    let total = earlier + request;
    let node = state.queues.at(attempt.queue).node;
    let maximum = potential(state.quota.tree(), node, slot);
    // The tree does not offer that much even without usage, so preemption cannot help.
    if total > maximum {
        let reason = NoFitReason::ExceedsMaximum { slot, earlier, request, maximum };
        return (GranularMode::no_fit(PendingReason::ExceedsMaxQuota), Some(reason));
    }
    let reach = reach(state.quota.tree(), node, slot, total);
    let left = available(state.quota.tree(), node, slot).clip();
    if total <= left {
        return (GranularMode { preemption_mode: PreemptionMode::Fit, borrow: reach.height }, None);
    }
    let reason = Some(NoFitReason::InUse { slot, missing: total - left });
    let within_nominal = total <= state.quota.tree().at(node, slot).nominal;
    // Preemption can free the ClusterQueue's nominal quota and quota that others borrowed from a
    // subtree below the root; any other quota only if it may preempt while borrowing (§4.4 step 4).
    if within_nominal
        || reach.below_root
        || may_preempt_while_borrowing(&state.settings, &state.queues, attempt.queue)
    {
        return (search::simulate(state, attempt, slot, total), reason);
    }
    (GranularMode::no_fit(PendingReason::WaitingForQuota), reason)
}

/// Whether a borrowing ClusterQueue may preempt in others.
pub(crate) fn may_preempt_while_borrowing(
    settings: &EngineSettings,
    queues: &QueueLayer,
    queue: QueueId,
) -> bool {
    let PreemptionSpec { borrow, reclaim, .. } = queues.at(queue).preemption;
    let fair = settings.fair_sharing.is_some() && reclaim != PreemptionPolicy::Never;
    borrow.is_some() || fair
}
