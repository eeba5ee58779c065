//! One head of a cycle, or one Workload whose node failed, with everything that was decided about it.

use std::sync::Arc;

use crate::flavors::assignment::Assignment;
use crate::ids::{ClusterId, QueueId, RequeueKey, WorkloadId};
use crate::preemption::target::PreemptionTarget;
use crate::state::State;
use crate::workloads::equivalence_class::EquivalenceClass;

/// The decision about a head, or about a Workload with a failed node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CycleOutcome {
    /// Nominated, or about to be; not processed yet.
    #[default]
    Nominated,
    /// Quota is reserved, and a cluster if the placer chose one.
    Reserved {
        /// The worker cluster; `None` without dispatch.
        cluster: Option<ClusterId>,
    },
    /// The targets are to be preempted first.
    Preempting,
    /// Preemption is allowed, but there are no candidates.
    NoCandidates,
    /// It does not fit.
    NoFit,
    /// It needs preemption, but a preemption gate is closed.
    PreemptionGated,
    /// Heads processed earlier took the quota or topology domains, or overlap in preemption targets.
    Skipped,
    /// Another variant of the same Workload is admitted with a better flavor.
    BetterVariantAdmitted,
    /// It fits. Another variant of the same Workload, which is admitted with a worse flavor, must go first.
    Migrating {
        /// The variant to evict.
        from: WorkloadId,
    },
    /// It fits, but its flavor is beyond the last acceptable one for a migration.
    MigrationRefused,
    /// It fits once the preemption targets of another head are gone, or pods have left their nodes.
    Deferred,
    /// Quota is available, but no cluster has capacity. The Workload is requeued under the key.
    NoClusterCapacity(RequeueKey),
    /// An AdmissionCheck is in state Retry or Rejected.
    FailedCheck,
    /// The ClusterQueue's namespace selector does not match.
    NamespaceMismatch,
    /// The Workload is invalid, e.g. its requests exceed its limits.
    Invalid,
    /// A reserving Workload: its pods on a failed node got a replacement, which is in the assignment.
    NodeReplaced,
    /// A reserving Workload: there is no replacement for the failed node yet.
    NodeNotReplaced,
    /// A reserving Workload to evict: several nodes failed, or there is no replacement.
    NodesFailed,
}

impl CycleOutcome {
    /// Whether the entry is about a Workload that already has a quota reservation.
    pub fn concerns_reserving_workload(self) -> bool {
        matches!(self, Self::NodeReplaced | Self::NodeNotReplaced | Self::NodesFailed)
    }
}

/// A head, or a reserving Workload with a failed node, and everything decided about it.
#[derive(Debug, Clone)]
pub struct CycleEntry {
    /// The Workload.
    pub workload: WorkloadId,
    /// Its ClusterQueue.
    pub queue: QueueId,
    /// The decision.
    pub outcome: CycleOutcome,
    /// What it is assigned, or would be.
    pub assignment: Assignment,
    /// Workloads to preempt for it.
    pub targets: Vec<PreemptionTarget>,
    /// The slice whose quota it takes over. If the reservation is written, the old slice is to be finished.
    pub replaced_slice: Option<WorkloadId>,
    /// It was evaluated again, because its targets overlapped those of an entry that was processed earlier.
    pub targets_recomputed: bool,
    /// It was skipped because one of its targets belongs to an entry that was processed earlier.
    pub(crate) targets_taken: bool,
    /// Where the head was requeued, if it got no quota.
    pub requeue: RequeueDestination,
    /// Requeue keys of other flavors that no cluster has capacity in, beside that of the outcome.
    pub further_keys: Vec<RequeueKey>,
    /// No cluster takes it with the flavors that fit, and other flavors lack quota.
    pub(crate) lacks_quota: bool,
    /// Height of the lowest subtree that its usage fits in, at nomination: the first key of the processing order.
    pub(crate) nominated_borrow: u32,
    /// Its topology domains stay charged until the end of the cycle although it got no quota.
    pub(crate) reserved: bool,
    /// The ClusterQueue's generation at nomination.
    pub(crate) generation: u64,
    pub(crate) class: Arc<EquivalenceClass>,
}

impl CycleEntry {
    /// An entry for a head that is not processed yet.
    pub(super) fn new(state: &State, queue: QueueId, workload: WorkloadId) -> Self {
        Self {
            workload,
            queue,
            outcome: CycleOutcome::Nominated,
            assignment: Assignment::default(),
            targets: Vec::new(),
            replaced_slice: None,
            targets_recomputed: false,
            targets_taken: false,
            requeue: RequeueDestination::NotRequeued,
            further_keys: Vec::new(),
            lacks_quota: false,
            nominated_borrow: 0,
            reserved: false,
            generation: state.queues.at(queue).generation,
            class: state.class_of(workload),
        }
    }

    /// Resets a used entry and keeps its buffers.
    pub(super) fn renew(&mut self, state: &State, queue: QueueId, workload: WorkloadId) {
        let (mut assignment, mut targets) =
            (std::mem::take(&mut self.assignment), std::mem::take(&mut self.targets));
        // The buffers of an earlier cycle are reused, so that a head in balance allocates nothing.
        assignment.clear();
        targets.clear();
        *self = Self { assignment, targets, ..Self::new(state, queue, workload) };
    }
}

/// Where a head without quota was requeued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequeueDestination {
    /// Nowhere: it got quota, or the entry is not about a head.
    #[default]
    NotRequeued,
    /// To the active Workloads: it is evaluated again in the next cycle.
    Active,
    /// To the inadmissible Workloads, until a requeue.
    Inadmissible,
    /// To the inadmissible Workloads, together with its equivalence class.
    InadmissibleClass,
}
