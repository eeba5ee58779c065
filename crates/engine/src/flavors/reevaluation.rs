//! Predicts without evaluation whether a Workload that was refused before would be refused again.
//!
//! It is refused as long as one of its pod sets finds, in every flavor of one resource group, a resource without
//! enough quota and without preemption: no reserving Workload of its ClusterQueue has a priority that the policy
//! allows, and the request exceeds what its side of the cohort tree owns, so there is nothing to reclaim. In every
//! other case the prediction is [`ReevaluationForecast::Open`]. Source: docs/reference/kueue.md §4.4 and §4.9, reversed.
//!
//! Cost: flavors · resources · depth, no allocation.

use crate::amount::Amount;
use crate::flavors::resource_quota::may_preempt_while_borrowing;
use crate::flavors::scan::suits;
use crate::ids::{QueueId, ResourceId, Slot, WorkloadId};
use crate::queues::cluster_queue::{ClusterQueueRecord, GroupSlots};
use crate::quota::available::{available, potential, reach};
use crate::quota::layer::QuotaLayer;
use crate::settings::EngineSettings;
use crate::spec::{PodSetSpec, PreemptionPolicy};
use crate::state::State;
use crate::workloads::usage::{SlotUsage, charge};

/// What another evaluation of a refused Workload can lead to, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReevaluationForecast {
    /// Unknown: it must be evaluated.
    Open,
    /// It is refused, but reserves quota against other ClusterQueues for the rest of the cycle.
    Reserves,
    /// It is refused without any effect.
    None,
}

/// Predicts the evaluation of a Workload whose class was refused in this ClusterQueue under the present
/// configuration.
pub(crate) fn reevaluate(state: &State, id: QueueId, workload: WorkloadId) -> ReevaluationForecast {
    let queue = state.queues.at(id);
    let priority = state.workloads.at(workload).priority;
    let class = state.workloads.class(workload);
    let plain = state.settings.flavor_fungibility
        && class.allowed.is_none()
        && !has_topology(&state.quota, queue);
    if !plain
        || has_targets_in_cluster_queue(queue, priority)
        || may_reclaim_any_quota(&state.settings, &state.quota, queue)
    {
        return ReevaluationForecast::Open;
    }
    let (mut all, mut alone) = (ReevaluationForecast::Open, true);
    for pod_set in &class.pod_sets {
        let pod_set_reevaluation = ReevaluatedPodSet { state, id, queue, pod_set };
        // Only a change of the configuration can cover the resource, and that forgets the refusal.
        if pod_set_reevaluation.requests_uncovered_resource() {
            return ReevaluationForecast::None;
        }
        for group in queue.groups.iter().filter(|group| pod_set_reevaluation.requests_from(group)) {
            let reevaluate = pod_set_reevaluation.predict_group(group);
            if reevaluate == ReevaluationForecast::Open && group.flavors.len() > 1 {
                // It may take the first flavor here and stay active to try the others.
                return ReevaluationForecast::Open;
            }
            all = all.max(reevaluate);
            alone &= pod_set_reevaluation.is_isolated(group);
        }
    }
    // A reservation of isolated quota affects only this ClusterQueue, which has no other head in
    // the cycle.
    if all == ReevaluationForecast::Reserves && alone { ReevaluationForecast::None } else { all }
}

/// Usage of a Workload and the height of the lowest subtree that it fits in, if it fits and can do so in one way
/// only.
pub(crate) fn certain_fit(
    state: &State,
    id: QueueId,
    workload: WorkloadId,
) -> Option<(u32, SlotUsage)> {
    let queue = state.queues.at(id);
    let class = state.workloads.class(workload);
    let [pod_set] = class.pod_sets.as_slice() else { return None };
    let fair = state.settings.fair_sharing.is_some();
    // A topology request in a ClusterQueue without topologies may get quota, and is refused nevertheless.
    let needs_topology = has_topology(&state.quota, queue) || pod_set.asks_for_topology();
    if fair || class.allowed.is_some() || !state.settings.flavor_fungibility || needs_topology {
        return None;
    }
    let mut usage = SlotUsage::new();
    for (resource, amount) in state.queues.requests(id, pod_set, pod_set.count) {
        let group = queue.groups.iter().find(|group| group.resources.contains(&resource))?;
        // With several flavors the scan decides, so the usage is not known in advance.
        let [flavor] = group.flavors.as_slice() else { return None };
        if !suits(state, id, pod_set, group, *flavor) {
            return None;
        }
        charge(&mut usage, group.slot(0, resource)?, amount);
    }
    let mut borrow = 0;
    for &(slot, amount) in &usage {
        let left = available(state.quota.tree(), queue.node, slot).clip();
        if amount > left.min(potential(state.quota.tree(), queue.node, slot)) {
            return None;
        }
        borrow = borrow.max(reach(state.quota.tree(), queue.node, slot, amount).height);
    }
    Some((borrow, usage))
}

/// Whether a reserving Workload of the ClusterQueue has a priority that `withinClusterQueue` allows.
fn has_targets_in_cluster_queue(queue: &ClusterQueueRecord, priority: i64) -> bool {
    let lowest = queue.priorities.lowest();
    lowest.is_some_and(|lowest| match queue.preemption.within_cluster_queue {
        PreemptionPolicy::Never => false,
        PreemptionPolicy::LowerPriority => lowest < priority,
        PreemptionPolicy::LowerOrNewerEqualPriority => lowest <= priority,
        PreemptionPolicy::Any => true,
    })
}

/// Whether it may reclaim more than its side of the cohort tree owns.
fn may_reclaim_any_quota(
    settings: &EngineSettings,
    quota: &QuotaLayer,
    queue: &ClusterQueueRecord,
) -> bool {
    queue.preemption.reclaim != PreemptionPolicy::Never
        && quota.tree().parent(queue.node).is_some()
        && (queue.preemption.borrow.is_some() || settings.fair_sharing.is_some())
}

fn has_topology(quota: &QuotaLayer, queue: &ClusterQueueRecord) -> bool {
    let mut flavors = queue.groups.iter().flat_map(|group| &group.flavors);
    flavors.any(|&id| quota.flavor(id).is_some_and(|flavor| flavor.topology.is_some()))
}

/// One pod set of the Workload in its ClusterQueue.
#[derive(Debug, Clone, Copy)]
struct ReevaluatedPodSet<'a> {
    state: &'a State,
    id: QueueId,
    queue: &'a ClusterQueueRecord,
    pod_set: &'a PodSetSpec,
}

impl<'a> ReevaluatedPodSet<'a> {
    /// Requests of the lowest number of pods that can be admitted.
    fn requests(self) -> impl Iterator<Item = (ResourceId, Amount)> + 'a {
        let partly = self.state.settings.partial_admission;
        let smallest = if partly { self.pod_set.least() } else { self.pod_set.count };
        self.state.queues.requests(self.id, self.pod_set, smallest)
    }

    /// Whether it requests a resource that no resource group covers.
    fn requests_uncovered_resource(self) -> bool {
        self.requests().any(|(resource, amount)| {
            let covers = |group: &GroupSlots| group.resources.contains(&resource);
            amount > Amount::ZERO && !self.queue.groups.iter().any(covers)
        })
    }

    fn requests_from(self, group: &GroupSlots) -> bool {
        self.requests().any(|(resource, _)| group.resources.contains(&resource))
    }

    /// The best prediction of the group's flavors.
    fn predict_group(self, group: &GroupSlots) -> ReevaluationForecast {
        let flavors = 0..group.flavors.len();
        flavors
            .map(|flavor| self.predict_flavor(group, flavor))
            .min()
            .unwrap_or(ReevaluationForecast::None)
    }

    /// The worst prediction of the flavor's resources.
    #[inline]
    fn predict_flavor(self, group: &GroupSlots, flavor: usize) -> ReevaluationForecast {
        let slots = self.requests().filter_map(|(resource, amount)| {
            group.slot(flavor, resource).map(|slot| self.predict_slot(slot, amount))
        });
        match slots.max() {
            Some(ReevaluationForecast::Open) | None
                if suits(self.state, self.id, self.pod_set, group, group.flavors[flavor]) =>
            {
                ReevaluationForecast::Open
            }
            Some(ReevaluationForecast::Open) | None => ReevaluationForecast::None,
            Some(refused) => refused,
        }
    }

    /// The prediction for one slot, along the lines of [`crate::flavors::resource_quota`].
    #[inline]
    fn predict_slot(self, slot: Slot, amount: Amount) -> ReevaluationForecast {
        let (tree, node) = (self.state.quota.tree(), self.queue.node);
        let reclaim = self.queue.preemption.reclaim;
        if amount <= available(tree, node, slot).clip() {
            return ReevaluationForecast::Open;
        }
        if amount > potential(tree, node, slot) {
            return ReevaluationForecast::None;
        }
        let owned_elsewhere = reach(tree, node, slot, amount).below_root;
        // Others may have borrowed this quota, so there may be candidates to reclaim it from.
        if owned_elsewhere && reclaim != PreemptionPolicy::Never {
            return ReevaluationForecast::Open;
        }
        let may_reserve = owned_elsewhere
            || amount <= tree.at(node, slot).nominal
            || may_preempt_while_borrowing(&self.state.settings, &self.state.queues, self.id);
        // Under Any an entry without targets reserves nothing (§4.8 step 5).
        if may_reserve && reclaim != PreemptionPolicy::Any {
            ReevaluationForecast::Reserves
        } else {
            ReevaluationForecast::None
        }
    }

    /// Whether charges here do not affect other ClusterQueues: there is no parent, or nothing is borrowed or lent.
    fn is_isolated(self, group: &GroupSlots) -> bool {
        let (tree, node) = (self.state.quota.tree(), self.queue.node);
        tree.parent(node).is_none()
            || group.slots.iter().all(|&slot| {
                let cell = tree.at(node, slot);
                cell.borrowing_limit == Some(Amount::ZERO) && cell.local >= cell.subtree
            })
    }
}
