//! Nomination: what a head would get if it were alone in this cycle.
//!
//! Source: docs/reference/kueue.md §4.2.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::checks;
use crate::cycle::requeue::RequeueDestination;
use crate::equivalence_class::EquivalenceClass;
use crate::flavors::assign::{Assignment, AssignmentAttempt, FlavorAssignmentMode, assign};
use crate::flavors::podset_reducer;
use crate::ids::{ClusterId, FlavorId, QueueId, ResourceId, WorkloadId};
use crate::placer::RequeueKey;
use crate::preemption::{self, PreemptionTarget};
use crate::slices;
use crate::state::{State, namespace_matches};
use crate::topology;
use crate::workload::{ScanMemory, Workload};

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

/// Takes a head out of its line and computes assignment and victims.
pub(super) fn nominate(state: &mut State, entry: &mut CycleEntry) {
    crate::pending::dequeue(state, entry.workload);
    entry.outcome = rejection(state, entry.queue, entry.workload);
    if entry.outcome == CycleOutcome::Nominated {
        let tried = tried(state, entry.queue, entry.workload);
        compute(state, entry, &tried, None);
        place(state, entry);
        entry.nominated_borrow = entry.assignment.borrow;
    }
}

/// Whether a Workload is not rejected before anything is computed.
pub(super) fn is_valid(state: &State, queue: QueueId, workload: &Workload) -> bool {
    workload.invalid.is_none()
        && checks::failed(workload).is_none()
        && namespace_matches(&state.queue(queue).namespaces, &state.namespaces, workload)
}

fn rejection(state: &State, queue: QueueId, id: WorkloadId) -> CycleOutcome {
    let workload = state.workloads.at(id);
    if checks::failed(workload).is_some() {
        CycleOutcome::FailedCheck
    } else if !namespace_matches(&state.queue(queue).namespaces, &state.namespaces, workload) {
        CycleOutcome::NamespaceMismatch
    } else if workload.invalid.is_some() {
        CycleOutcome::Invalid
    } else {
        CycleOutcome::Nominated
    }
}

/// Where earlier scans of flavors stopped, if that is still worth something: nothing was freed since, or it was in the
/// cycle directly before.
fn tried(state: &State, queue: QueueId, id: WorkloadId) -> TriedFlavors {
    let workload = state.workloads.at(id);
    let valid = |memory: &&ScanMemory| {
        let fresh = state.settings.flavor_fungibility_preserve_scan_progress
            && memory.cycle + 1 == state.cycle;
        fresh || memory.generation >= state.queue(queue).generation
    };
    workload.scan.as_deref().filter(valid).map(|memory| memory.tried.clone()).unwrap_or_default()
}

type TriedFlavors = SmallVec<[(u16, ResourceId, u16); 4]>;

/// Places for a head that waits for victims, as if they were gone.
pub(super) fn place(state: &mut State, entry: &mut CycleEntry) {
    if entry.assignment.mode() != FlavorAssignmentMode::Preempt || !state.topologies.any() {
        return;
    }
    let class = Arc::clone(&entry.class);
    let (workload, queue) = (entry.workload, entry.queue);
    let old = entry.replaced_slice;
    let attempt = AssignmentAttempt {
        workload,
        queue,
        class: &class,
        counts: None,
        tried: &[],
        old,
        pins: None,
    };
    let (gone, assignment) = (preemption::ids(&entry.targets), &mut entry.assignment);
    preemption::without(state, &gone, |state| {
        topology::assign_assuming_preemption(state, &attempt, assignment, gone.is_empty());
    });
}

/// Computes the assignment, its topology and the victims; a smaller Workload if the whole does not fit.
pub(super) fn compute(
    state: &mut State,
    entry: &mut CycleEntry,
    tried: &[(u16, ResourceId, u16)],
    pins: Option<&[(u16, ResourceId, FlavorId)]>,
) {
    let class = Arc::clone(&entry.class);
    let (workload, queue) = (entry.workload, entry.queue);
    let old = slices::replaced(state, workload, queue);
    entry.replaced_slice = old;
    let attempt =
        AssignmentAttempt { workload, queue, class: &class, counts: None, tried, old, pins };
    attempt_with(state, &attempt, &mut entry.assignment, &mut entry.targets);
    if works(&entry.assignment, &entry.targets) || !state.settings.partial_admission {
        return;
    }
    let mut best = None;
    let found = podset_reducer::search(&class, |counts| {
        let attempt = AssignmentAttempt { counts: Some(counts), ..attempt };
        let (mut assignment, mut targets) = (Assignment::default(), Vec::new());
        attempt_with(state, &attempt, &mut assignment, &mut targets);
        let works = works(&assignment, &targets);
        if works {
            best = Some((assignment, targets));
        }
        works
    });
    if found && let Some((assignment, targets)) = best {
        (entry.assignment, entry.targets) = (assignment, targets);
    }
}

/// Whether an assignment leads somewhere: it fits, or there is somebody to preempt for it.
fn works(assignment: &Assignment, targets: &[PreemptionTarget]) -> bool {
    match assignment.mode() {
        FlavorAssignmentMode::Fit | FlavorAssignmentMode::DeferredFit => true,
        FlavorAssignmentMode::Preempt => !targets.is_empty(),
        FlavorAssignmentMode::NoFit => false,
    }
}

fn attempt_with(
    state: &mut State,
    attempt: &AssignmentAttempt<'_>,
    assignment: &mut Assignment,
    targets: &mut Vec<PreemptionTarget>,
) {
    targets.clear();
    state.scratch.forget();
    assign(state, attempt, assignment);
    checks::put_off_places(state, attempt.queue, assignment);
    topology::assign(state, attempt, assignment);
    if assignment.mode() == FlavorAssignmentMode::Preempt {
        preemption::find_for(state, attempt, assignment, targets);
    }
}
