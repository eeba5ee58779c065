//! The search for changes that make a pending Workload admissible. It runs within a what-if.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::amount::Amount;
use crate::apply;
use crate::cycle::alone::{Admissibility, evaluate_alone};
use crate::cycle::preparation::apply_configuration;
use crate::event::Event;
use crate::explain::admission_explanation::{FlavorAmount, SufficientChange, WorkloadEnd};
use crate::explain::explanation::{PodSetExplanation, TopologyExplanation};
use crate::explain::short_flavors::{ShortFlavors, ShortSlot};
use crate::ids::{QueueId, Slot, WorkloadId};
use crate::preemption::simulation::{remove_workload, restore_workload};
use crate::slices::SliceClaims;
use crate::spec::{ClusterQueueInfo, PreemptionSpec};
use crate::state::State;
use crate::workloads::equivalence_class::EquivalenceClass;
use crate::workloads::record::{ScanProgress, WorkloadRecord};
use crate::workloads::usage::charged;

/// Evaluations of a Workload for one explanation.
const MAX_EVALUATIONS: usize = 16;

/// Workloads of which the end is tried.
const MAX_ENDS: usize = 4;

/// One search. A Workload that is searched for is in no pending queue.
pub(super) struct ChangeSearch<'a> {
    state: &'a mut State,
    queue: QueueId,
    workload: WorkloadId,
    /// Evaluations that are left.
    left: usize,
}

impl<'a> ChangeSearch<'a> {
    pub(super) fn new(state: &'a mut State, queue: QueueId, workload: WorkloadId) -> Self {
        Self { state, queue, workload, left: MAX_EVALUATIONS }
    }

    pub(super) fn state(&self) -> &State {
        self.state
    }

    /// Evaluates the Workload; `None` also if no evaluation is left.
    pub(super) fn evaluate(&mut self) -> Option<Admissibility> {
        self.left = self.left.checked_sub(1)?;
        evaluate_alone(self.state, self.queue, self.workload)
    }

    /// Per choice of flavors the least quota that helps.
    pub(super) fn more_quota(&mut self, short: &[ShortFlavors]) -> Vec<SufficientChange> {
        let Some(spec) = self.state.queues.at(self.queue).spec.clone() else {
            return Vec::new();
        };
        let found: Vec<SufficientChange> =
            short.iter().filter_map(|one| self.more_quota_in(&spec, one)).collect();
        if !short.is_empty() {
            self.set_queue(spec);
        }
        found
    }

    fn more_quota_in(
        &mut self,
        spec: &ClusterQueueInfo,
        short: &ShortFlavors,
    ) -> Option<SufficientChange> {
        let amounts = |amount: fn(&ShortSlot) -> Amount| {
            let all = short.slots.iter().map(|one| (one.slot, amount(one)));
            all.filter(|one| one.1 > Amount::ZERO).collect::<Vec<(Slot, Amount)>>()
        };
        // With the maximum that it needs, the Workload may be able to preempt for the rest.
        let mut tried = vec![amounts(|one| one.beyond_maximum), amounts(|one| one.missing)];
        tried.dedup();
        tried.into_iter().filter(|added| !added.is_empty()).find_map(|added| {
            self.set_queue(Box::new(self.with_more(spec, &added)?));
            let found = self.evaluate()?;
            Some(SufficientChange::MoreQuota(self.named(&added), found))
        })
    }

    /// The ClusterQueue with more nominal quota.
    fn with_more(
        &self,
        spec: &ClusterQueueInfo,
        added: &[(Slot, Amount)],
    ) -> Option<ClusterQueueInfo> {
        let mut spec = spec.clone();
        for &(slot, amount) in added {
            let (flavor, resource) = self.state.quota.tree().flavor_and_resource(slot);
            let mut quotas = spec.groups.iter_mut().flat_map(|group| &mut group.flavors);
            let quotas = quotas.find(|one| one.flavor == flavor)?;
            let quota = quotas.resources.iter_mut().find(|one| one.resource == resource)?;
            quota.nominal += amount;
        }
        Some(spec)
    }

    fn named(&self, amounts: &[(Slot, Amount)]) -> Vec<FlavorAmount> {
        let named = amounts.iter().map(|&(slot, amount)| {
            let (flavor, resource) = self.state.quota.tree().flavor_and_resource(slot);
            (flavor, resource, amount)
        });
        named.collect()
    }

    fn set_queue(&mut self, spec: Box<ClusterQueueInfo>) {
        apply::apply(self.state, Event::ClusterQueue(self.queue, Some(spec)));
        apply_configuration(self.state);
    }

    /// The end of the Workload with the least usage that helps.
    pub(super) fn end(
        &mut self,
        short: &[ShortFlavors],
        pod_sets: &[PodSetExplanation],
    ) -> Option<SufficientChange> {
        let mut ends: Vec<WorkloadEnd> = Vec::new();
        for one in short.iter().map(|one| self.ends_in(one)).chain([self.ends_on_nodes(pod_sets)]) {
            let known = |id| ends.iter().any(|end| end.workload == id);
            let new: Vec<_> = one.into_iter().filter(|one| !known(one.workload)).collect();
            ends.extend(new);
        }
        ends.retain(|end| !self.is_slice(end.workload));
        ends.truncate(MAX_ENDS);
        ends.into_iter().find(|end| self.fits_without(end.workload)).map(SufficientChange::End)
    }

    /// Whether a Workload shares its quota with another slice of its job, which keeps the quota when one of them ends.
    fn is_slice(&self, id: WorkloadId) -> bool {
        let State { names, workloads, .. } = &*self.state;
        let claims = SliceClaims::new(names, workloads);
        let hands_over = |old| claims.quota_successor(old).is_some();
        hands_over(id) || claims.replaced_reservation(id).is_some_and(hands_over)
    }

    fn fits_without(&mut self, ended: WorkloadId) -> bool {
        remove_workload(self.state, ended);
        let fits = self.evaluate().is_some();
        restore_workload(self.state, ended);
        fits
    }

    /// Workloads in the cohort tree with at least the missing usage: those that are leaving first, then the least usage.
    fn ends_in(&self, short: &ShortFlavors) -> Vec<WorkloadEnd> {
        let workloads = &self.state.workloads;
        let mut found = Vec::new();
        for (queue, id) in self.reserving_in_tree() {
            let Some(admission) = workloads.admission(id) else { continue };
            let usage = short.slots.iter().map(|one| charged(&admission.usage, one.slot));
            let usage: Vec<Amount> = usage.collect();
            if usage.iter().zip(&short.slots).all(|(used, short)| *used >= short.missing) {
                let name = self.state.names.workloads.name(id);
                let rank = (Reverse(admission.evicted), usage, admission.reserved_at, name);
                found.push((rank, WorkloadEnd { workload: id, queue }));
            }
        }
        found.sort_by(|left, right| left.0.cmp(&right.0));
        found.into_iter().map(|one| one.1).take(MAX_ENDS).collect()
    }

    fn reserving_in_tree(&self) -> impl Iterator<Item = (QueueId, WorkloadId)> + '_ {
        self.queues_in_tree().flat_map(|queue| {
            self.state.queues.at(queue).reserving.iter().map(move |&id| (queue, id))
        })
    }

    fn queues_in_tree(&self) -> impl Iterator<Item = QueueId> + '_ {
        let tree = self.state.quota.tree();
        let all = tree.tree_of(self.state.queues.at(self.queue).node);
        all.filter_map(|node| tree.node(node).queue)
    }

    /// Workloads on the nodes that lack room.
    fn ends_on_nodes(&self, pod_sets: &[PodSetExplanation]) -> Vec<WorkloadEnd> {
        let all = pod_sets.iter().flat_map(|one| &one.flavors).filter(|one| one.has_quota());
        let users = all.filter_map(|flavor| match &flavor.topology {
            TopologyExplanation::Shortfall(shortfall) => Some(&shortfall.users),
            _ => None,
        });
        let ends = users.flatten().filter_map(|user| {
            let workload = user.workload?;
            let queue = self.state.workloads.admission(workload)?.queue;
            Some((user.amount, WorkloadEnd { workload, queue }))
        });
        let mut ends: Vec<(Amount, WorkloadEnd)> = ends.collect();
        ends.sort_by_key(|one| one.0);
        ends.into_iter().map(|one| one.1).take(MAX_ENDS).collect()
    }

    /// The lowest priority with which the Workload finds preemption targets, among those that make a difference.
    pub(super) fn priority(&mut self) -> Option<SufficientChange> {
        let preempts = self.state.queues.at(self.queue).preemption != PreemptionSpec::default();
        if !preempts || self.state.is_preemption_gated(self.workload) {
            return None;
        }
        let priorities = self.telling_priorities();
        // The highest one first: most often none helps.
        let highest = *priorities.last()?;
        self.fits_with(highest)?;
        let (mut from, mut to) = (0, priorities.len() - 1);
        while from < to {
            let middle = from.midpoint(to);
            // Without an evaluation left, a priority that was not tried would not be known to be needless.
            if self.left == 0 {
                return None;
            }
            match self.fits_with(priorities[middle]) {
                Some(_) => to = middle,
                None => from = middle + 1,
            }
        }
        Some(SufficientChange::Priority(priorities[to]))
    }

    /// Higher priorities from which on a Workload in the tree has an equal or a lower one.
    fn telling_priorities(&self) -> Vec<i64> {
        let own = self.state.workloads.at(self.workload).priority;
        let queues = self.queues_in_tree();
        let present = queues.flat_map(|queue| self.state.queues.at(queue).priorities.all());
        let telling = present.flat_map(|one| [one, one.saturating_add(1)]);
        telling.filter(|&one| one > own).collect::<BTreeSet<i64>>().into_iter().collect()
    }

    fn fits_with(&mut self, priority: i64) -> Option<Admissibility> {
        let workloads = &mut self.state.workloads;
        let class = EquivalenceClass { priority, ..(**workloads.class(self.workload)).clone() };
        let class = workloads.acquire_class(class);
        let record = WorkloadRecord { priority, class, ..workloads.at(self.workload).clone() };
        workloads.replace(self.workload, record, ScanProgress::Kept);
        self.evaluate()
    }
}
