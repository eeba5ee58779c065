//! One head of a cycle, or one Workload whose node failed, with everything that was decided about it.

use std::sync::Arc;

use crate::equivalence_class::EquivalenceClass;
use crate::flavors::assignment::Assignment;
use crate::ids::{ClusterId, QueueId, RequeueKey, WorkloadId};
use crate::preemption::target::PreemptionTarget;
use crate::state::State;

/// What became of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CycleOutcome {
    /// Not processed yet.
    #[default]
    Nominated,
    /// Quota is reserved, together with a cluster if the placer names one.
    Reserved {
        /// Where it will run.
        cluster: Option<ClusterId>,
    },
    /// Victims must go first.
    Preempting,
    /// Preemption would help, but there is nobody to preempt.
    NoCandidates,
    /// It does not fit.
    NoFit,
    /// Somebody would have to go for it, but its preemption gates are closed.
    PreemptionGated,
    /// Heads processed before took what it needed.
    Skipped,
    /// Another variant of the same Workload is admitted with a better flavor.
    BetterVariantAdmitted,
    /// It fits. Another variant of the same Workload, which is admitted with a worse flavor, must go first.
    Migrating {
        /// Which.
        from: WorkloadId,
    },
    /// It fits, but variants do not move to its flavor any more.
    MigrationRefused,
    /// It fits once the victims of another head are gone.
    Deferred,
    /// The quota is there, a cluster with room is not.
    NoClusterCapacity(RequeueKey),
    /// A check asks to start over, or is rejected for good.
    FailedCheck,
    /// Its namespace may not use the queue.
    NamespaceMismatch,
    /// It is invalid in itself.
    Invalid,
    /// A holder: a machine failed under it, and its pods there got other places. They are in the assignment.
    NodeReplaced,
    /// A holder: a machine failed under it, and there is no other for its pods yet.
    NodeNotReplaced,
    /// A holder that must go: too many machines failed under it, or there is no other for the one that did.
    NodesFailed,
}

impl CycleOutcome {
    /// Whether it is about a Workload that holds quota already, and not about a head.
    pub fn concerns_reserving_workload(self) -> bool {
        matches!(self, Self::NodeReplaced | Self::NodeNotReplaced | Self::NodesFailed)
    }
}

/// A head, or a holder whose machine failed, and everything decided about it.
#[derive(Debug, Clone)]
pub struct CycleEntry {
    /// The Workload.
    pub workload: WorkloadId,
    /// The queue it was the head of.
    pub queue: QueueId,
    /// What became of it.
    pub outcome: CycleOutcome,
    /// What it gets or would get.
    pub assignment: Assignment,
    /// Who has to go for it.
    pub targets: Vec<PreemptionTarget>,
    /// The slice whose quota it takes over, if it gets quota: whoever writes that finishes the old slice then.
    pub replaced_slice: Option<WorkloadId>,
    /// Where it went, if it got nothing.
    pub requeue: RequeueDestination,
    /// How far up the tree it reached when it was nominated: the key of the order.
    pub(crate) nominated_borrow: u32,
    /// It keeps places in a topology until the end of the cycle, although it waits.
    pub(crate) reserved: bool,
    /// The queue's generation when it was nominated.
    pub(crate) generation: u64,
    pub(crate) class: Arc<EquivalenceClass>,
}

impl CycleEntry {
    /// A head about which nothing is decided yet.
    pub(super) fn new(state: &State, queue: QueueId, workload: WorkloadId) -> Self {
        Self {
            workload,
            queue,
            outcome: CycleOutcome::Nominated,
            assignment: Assignment::default(),
            targets: Vec::new(),
            replaced_slice: None,
            requeue: RequeueDestination::NotRequeued,
            nominated_borrow: 0,
            reserved: false,
            generation: state.queue(queue).generation,
            class: state.class_of(workload),
        }
    }

    /// The same in a used entry, whose buffers stay.
    pub(super) fn renew(&mut self, state: &State, queue: QueueId, workload: WorkloadId) {
        let (mut assignment, mut targets) =
            (std::mem::take(&mut self.assignment), std::mem::take(&mut self.targets));
        assignment.clear();
        targets.clear();
        *self = Self { assignment, targets, ..Self::new(state, queue, workload) };
    }
}

/// Where a head went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequeueDestination {
    /// It got what it wanted.
    #[default]
    NotRequeued,
    /// Back in line: it is evaluated again in the next cycle.
    Active,
    /// Inadmissible until something changes.
    Inadmissible,
    /// Inadmissible, and with it everybody of its shape.
    InadmissibleClass,
}
