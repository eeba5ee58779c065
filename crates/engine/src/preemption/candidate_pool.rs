//! Candidates of one preemption search, sorted lazily.
//!
//! A search usually ends after a few candidates, so they are kept in a heap and drawn as far as the search gets. A second
//! run reads the drawn ones again. Source: docs/reference/kueue.md §4.9.

use std::cmp::{Ordering, Reverse};

use crate::ids::{NodeId, QueueId, WorkloadId};
use crate::preemption::tables::CandidateTables;
use crate::queues::heap::Heap;
use crate::queues::layer::QueueLayer;
use crate::reason::PreemptionReason;
use crate::time::Time;
use crate::workloads::layer::WorkloadLayer;

/// Why the policies allow a candidate. Kueue: `preemptionVariant`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreemptionVariant {
    /// It is in the preemptor's ClusterQueue.
    WithinClusterQueue,
    /// Its quota belongs to the preemptor's side of the cohort tree.
    HierarchicalReclaim,
    /// It may be reclaimed only if the preemptor does not borrow.
    ReclaimWithoutBorrowing,
    /// It may be reclaimed even if the preemptor borrows.
    ReclaimWhileBorrowing,
}

impl PreemptionVariant {
    pub(super) fn reason(self) -> PreemptionReason {
        match self {
            Self::WithinClusterQueue => PreemptionReason::InClusterQueue,
            Self::HierarchicalReclaim | Self::ReclaimWithoutBorrowing => {
                PreemptionReason::InCohortReclamation
            }
            Self::ReclaimWhileBorrowing => PreemptionReason::InCohortReclaimWhileBorrowing,
        }
    }
}

/// A Workload that the preemptor may preempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PreemptionCandidate {
    pub(super) workload: WorkloadId,
    pub(super) queue: QueueId,
    pub(super) variant: PreemptionVariant,
    /// The lowest common ancestor with the preemptor's ClusterQueue; `None` within that ClusterQueue.
    pub(super) common_ancestor: Option<NodeId>,
    pub(super) order: CandidateOrder,
}

/// Sort key of a candidate without LocalQueue usage and uid: evicted ones first, then by variant, lower priority, later
/// quota reservation.
type CandidateOrder = ((bool, u8), (i64, Reverse<Time>));

impl PreemptionCandidate {
    pub(super) fn new(
        workloads: &WorkloadLayer,
        queue: QueueId,
        workload: WorkloadId,
        variant: PreemptionVariant,
    ) -> Self {
        let one = workloads.at(workload);
        let group = match variant {
            PreemptionVariant::HierarchicalReclaim => 0,
            PreemptionVariant::ReclaimWithoutBorrowing
            | PreemptionVariant::ReclaimWhileBorrowing => 1,
            PreemptionVariant::WithinClusterQueue => 2,
        };
        let admission = one.admission.as_deref();
        let (evicted, reserved_at) =
            admission.map_or((false, Time(0)), |one| (one.evicted, one.reserved_at));
        // A candidate that is evicted already goes first: its usage is released anyway.
        let order = ((!evicted, group), (one.priority, Reverse(reserved_at)));
        Self { workload, queue, variant, common_ancestor: None, order }
    }

    #[inline]
    fn goes_before(&self, tables: CandidateTables<'_>, other: &Self, fair_sharing: bool) -> bool {
        let uid = |one: &Self| &tables.workloads.at(one.workload).uid;
        // Usage is read only where it can differ; without admission fair sharing the stored key
        // suffices.
        let order = if fair_sharing {
            self.cmp_with_usage(tables, other)
        } else {
            self.order.cmp(&other.order)
        };
        order.then_with(|| uid(self).cmp(uid(other))).is_lt()
    }

    /// Compares two candidates if a ClusterQueue has admission fair sharing: more LocalQueue usage goes before priority.
    fn cmp_with_usage(&self, tables: CandidateTables<'_>, other: &Self) -> Ordering {
        let of_queue = |one: &Self| (one.queue, one.workload);
        let (left, right) = (self.order, other.order);
        left.0
            .cmp(&right.0)
            .then_with(|| {
                by_usage(tables.queues, tables.workloads, of_queue(self), of_queue(other))
            })
            .then(left.1.cmp(&right.1))
    }
}

/// Compares two Workloads of one ClusterQueue with admission fair sharing: more LocalQueue usage first. Others are equal.
pub(super) fn by_usage(
    queues: &QueueLayer,
    workloads: &WorkloadLayer,
    (queue, left): (QueueId, WorkloadId),
    (other, right): (QueueId, WorkloadId),
) -> Ordering {
    let pending = &queues.at(queue).pending;
    if queue != other || !pending.has_fair_sharing() {
        return Ordering::Equal;
    }
    let usage = |id| pending.share(workloads.at(id));
    usage(right).cmp(&usage(left))
}

/// The candidates of one search.
#[derive(Debug, Default)]
pub(crate) struct CandidatePool {
    heap: Heap<PreemptionCandidate>,
    drawn: Vec<PreemptionCandidate>,
    /// Some candidate is in another ClusterQueue.
    pub(super) has_reclaim: bool,
    /// Some candidate is a hierarchical reclaim.
    pub(super) has_hierarchical: bool,
    /// Some ClusterQueue of a candidate has admission fair sharing.
    fair_sharing: bool,
}

impl CandidatePool {
    pub(super) fn clear(&mut self) {
        self.heap.clear();
        self.drawn.clear();
        (self.has_reclaim, self.has_hierarchical, self.fair_sharing) = (false, false, false);
    }

    #[inline]
    pub(super) fn add(&mut self, tables: CandidateTables<'_>, candidate: PreemptionCandidate) {
        self.has_reclaim |= candidate.variant != PreemptionVariant::WithinClusterQueue;
        self.has_hierarchical |= candidate.variant == PreemptionVariant::HierarchicalReclaim;
        let fair_sharing = self.fair_sharing;
        self.heap.push(candidate, |left, right| left.goes_before(tables, &right, fair_sharing));
    }

    /// Announces candidates of a ClusterQueue. The order of those already added does not depend on usage and stays.
    pub(super) fn enter(&mut self, queues: &QueueLayer, queue: QueueId) {
        self.fair_sharing |= queues.at(queue).pending.has_fair_sharing();
    }

    /// The candidate at `position` of the order, `None` behind the last.
    pub(super) fn at(
        &mut self,
        tables: CandidateTables<'_>,
        position: usize,
    ) -> Option<PreemptionCandidate> {
        // Drawn candidates are kept: the second run starts again at the first one.
        if position == self.drawn.len() {
            let fair_sharing = self.fair_sharing;
            let next =
                self.heap.pop(|left, right| left.goes_before(tables, &right, fair_sharing))?;
            self.drawn.push(next);
        }
        self.drawn.get(position).copied()
    }
}
