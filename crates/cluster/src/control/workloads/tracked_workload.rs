//! A Workload as the machine keeps it: the object, its phase, and the transitions that are not written yet.

use std::sync::Arc;

use crds::{
    meta::{find, is_true},
    names::{
        check_states::READY, conditions::QUOTA_RESERVED, gates::CONCURRENT_ADMISSION,
        labels::JOB_UID,
    },
    v1beta2::Workload,
};
use engine::{Time, ids::WorkloadId};
use jiff::{SignedDuration, Timestamp};
use runtime::api_object::ApiObject;

use super::{
    phase::WorkloadPhase,
    reason_period::ReasonPeriod,
    transition::{PendingMessage, PendingTransitions, Transition},
};
use crate::control::outbox::{Stamp, Tracked};

/// One Workload with its phase and pending transitions.
#[derive(Debug)]
pub(crate) struct TrackedWorkload {
    tracked: Tracked<Workload>,
    /// Its number in the engine, until that is released: then it is the number of another Workload.
    id: Option<WorkloadId>,
    phase: WorkloadPhase,
    transitions: PendingTransitions,
    reason_period: ReasonPeriod,
    /// The value of its WorkloadPriorityClass that its priority has followed last; `None` before the first one, after a change of
    /// its class, and while the priority is being written.
    followed_class: Option<i32>,
}

impl TrackedWorkload {
    pub(super) fn new(object: Arc<Workload>, id: WorkloadId) -> Self {
        let phase = WorkloadPhase::of(&object.status.conditions);
        let transitions = PendingTransitions::default();
        let reason_period = ReasonPeriod::default();
        let (tracked, id) = (Tracked::new(object), Some(id));
        Self { tracked, id, phase, transitions, reason_period, followed_class: None }
    }

    /// Its number in the engine; `None` for a Workload that is finished.
    pub(crate) fn id(&self) -> Option<WorkloadId> {
        self.id
    }

    pub(super) fn release_id(&mut self) {
        self.id = None;
    }

    pub(crate) fn object(&self) -> &Arc<Workload> {
        self.tracked.object()
    }

    pub(crate) fn version(&self) -> u64 {
        self.tracked.version()
    }

    pub(crate) fn stamp(&self) -> Stamp {
        self.tracked.stamp()
    }

    pub(crate) fn phase(&self) -> WorkloadPhase {
        self.phase
    }

    pub(crate) fn transitions(&self) -> &PendingTransitions {
        &self.transitions
    }

    pub(super) fn transitions_mut(&mut self) -> &mut PendingTransitions {
        &mut self.transitions
    }

    pub(super) fn propose(&mut self, transition: Transition) {
        self.transitions.propose(transition);
    }

    /// Why it is pending. The period between two reasons goes on, unless one follows from an object: that cuts the period short once in
    /// a while (`reason_period`).
    pub(super) fn explain(&mut self, pending: PendingMessage) {
        let known = self.transitions.pending_message().map(|known| known.not_before);
        let cuts_short = self.follows_from_object(&pending)
            && self.reason_period.may_be_cut_short(pending.not_before);
        let kept = known.filter(|known| !cuts_short || *known < pending.not_before);
        let not_before = kept.unwrap_or(pending.not_before);
        self.propose(Transition::Wait(PendingMessage { not_before, ..pending }));
    }

    /// The reason was written.
    pub(super) fn reason_written(&mut self, now: Timestamp) {
        if let Some(pending) = self.transitions.pending_message().cloned() {
            let not_before = self.reason_period.begin(now);
            self.propose(Transition::Wait(PendingMessage { not_before, ..pending }));
        }
    }

    /// The clock jumped: its reason is written when it would have been.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        let Self { tracked: _, id: _, phase: _, transitions, reason_period, followed_class: _ } =
            self;
        reason_period.clock_jumped(by);
        transitions.clock_jumped(by);
    }

    /// Whether a reason follows from an object: a spec that the last one was not about, gates, or queues. Others change with every pod of a
    /// busy queue.
    fn follows_from_object(&self, pending: &PendingMessage) -> bool {
        let object = self.object();
        let known = find(&object.status.conditions, QUOTA_RESERVED);
        let generation = object.metadata.generation.unwrap_or_default();
        !pending.by_cycle || known.is_some_and(|one| one.observed_generation < generation)
    }

    /// Records an observation. Returns whether it is newer.
    pub(super) fn observe(&mut self, object: Arc<Workload>) -> bool {
        let newer = self.tracked.observe(object);
        self.parse_if(newer)
    }

    /// Records the object that a write was answered with. Returns whether it is newer.
    pub(super) fn observe_answer(&mut self, answer: &ApiObject) -> bool {
        let newer = self.tracked.observe_answer(answer);
        self.parse_if(newer)
    }

    /// The priority that is to be written: the value of its WorkloadPriorityClass, once per change of class or value. A priority that is
    /// edited afterwards stays.
    pub(super) fn priority_to_follow(&mut self, class: Option<i32>) -> Option<i32> {
        if class.is_none() || class == self.object().spec.priority {
            self.followed_class = class;
        } else if class != self.followed_class {
            // The class may change back before the answer to the write: its value is then written again.
            self.followed_class = None;
            return class;
        }
        None
    }

    /// Another class counts as changed, whatever its value.
    pub(super) fn forget_followed_class(&mut self) {
        self.followed_class = None;
    }

    /// Removes transitions that the status shows by now.
    pub(super) fn settle_transitions(&mut self) {
        let status = &self.tracked.object().status;
        let cluster = status.cluster_name.as_deref();
        let all_ready = status.admission_checks.iter().all(|check| check.state == READY);
        self.transitions.settle(self.phase, cluster, all_ready);
        if status.open_gate(CONCURRENT_ADMISSION).is_some() {
            self.transitions.end_opening();
        }
    }

    /// Whether it holds quota in the API, or in the engine with a write on its way.
    pub(crate) fn holds_or_reserves(&self) -> bool {
        self.phase.holds_quota() || self.transitions.reservation().is_some()
    }

    /// Whether it is evicted or about to be.
    pub(crate) fn is_leaving(&self) -> bool {
        self.phase.is_evicted() || self.transitions.eviction().is_some()
    }

    /// Uids of the Workload and of its job, as messages name them.
    pub(crate) fn uids(&self) -> (&str, &str) {
        let metadata = &self.object().metadata;
        let job = metadata.labels.as_ref().and_then(|labels| labels.get(JOB_UID));
        (metadata.uid.as_deref().unwrap_or_default(), job.map_or("", String::as_str))
    }

    /// From when its run time counts: its admission, else its reservation, else the beginning of time.
    pub(crate) fn started_at(&self) -> Time {
        let since = self.object().status.started_at();
        since.map(crate::control::time::engine_time).unwrap_or_default()
    }

    /// Whether a condition is true.
    pub(crate) fn is(&self, condition: &str) -> bool {
        is_true(&self.object().status.conditions, condition)
    }

    /// Parses the phase of a newer object.
    fn parse_if(&mut self, newer: bool) -> bool {
        if newer {
            self.phase = WorkloadPhase::of(&self.tracked.object().status.conditions);
        }
        newer
    }
}
