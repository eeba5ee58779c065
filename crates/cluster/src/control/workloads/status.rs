//! The next status of a Workload, in one write.
//!
//! All pending transitions are applied in the order of a Workload's life, and with them what follows at once: quota and
//! Ready checks are admission, the end of a backoff is a requeue. A finished Workload never changes.
//! Source: docs/reference/kueue.md §2.

use std::time::Duration;

use ::jobs::pods::group::ReplacementCondition;
use crds::{
    names::{
        conditions::{DEACTIVATION_TARGET, PODS_READY, QUOTA_RESERVED},
        reasons,
    },
    v1beta2::{PodSetRequest, Workload, WorkloadStatus},
};
use index::{
    GATED_BY,
    status::{self, StatusStamp},
};
use jiff::Timestamp;
use provisioning::CheckUpdate;
use variants::VariantAdmission;

use super::{
    phase::WorkloadPhase, pods_ready_policy::PodsReadyPolicy, status_draft::StatusDraft,
    stop_policy::StopPolicy, time_limit_enforcement, tracked_workload::TrackedWorkload,
    transition::PendingMessage,
};
use crate::control::{
    outbox::{Purpose, after},
    pod_failure::PodFailure,
    start_failure::PodStarts,
};

/// What decides beside the Workload itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct StatusInputs {
    /// The message that names its admission gates, if it has any.
    pub(crate) gated: Option<String>,
    pub(crate) stop: StopPolicy,
    /// The MultiKueue check, if the Workload is dispatched to workers.
    pub(crate) multikueue_check: Option<String>,
    /// The admission checks that its ClusterQueue requires; `None` where there is no ClusterQueue to ask.
    pub(crate) required_checks: Option<Vec<String>>,
    /// The next states of its provisioning checks.
    pub(crate) check_updates: Vec<CheckUpdate>,
    /// The admission of the variant that a parent runs as from now on.
    pub(crate) variant: Option<Box<VariantAdmission>>,
    /// The nodes that failed under the Workload; `None` where no node is watched for it.
    pub(crate) unhealthy_nodes: Option<Vec<String>>,
    /// It has variants that compete in its place.
    pub(crate) is_parent: bool,
    /// Nothing of a dispatched Workload runs on any worker.
    pub(crate) withdrawn: bool,
    /// The value of its WorkloadPriorityClass, if its priority follows that.
    pub(crate) class_priority: Option<i32>,
    /// Requests, as the status of a pending Workload shows them.
    pub(crate) requests: Vec<PodSetRequest>,
    /// Whether the pods of its job are ready, where a PodsReady policy is set.
    pub(crate) pods_ready: Option<bool>,
    /// Whether pods of a group are missing, if that changed.
    pub(crate) replacement: Option<ReplacementCondition>,
    pub(crate) policy: Option<PodsReadyPolicy>,
    /// An evicted Workload of a single pod is requeued like any other.
    pub(crate) requeues_pods: bool,
    /// Its only pod is being deleted, so that nothing would run with quota that it gets again.
    pub(crate) pod_leaves: bool,
    /// How long a finished Workload stays; for ever if unset.
    pub(crate) retention: Option<Duration>,
    /// The PodsReady timeout and the maximum execution time are enforced by this process.
    pub(crate) enforces_time_limits: bool,
    /// Reasons of conditions are those of before the gate UnadmittedWorkloadsObservability.
    pub(crate) legacy_reasons: bool,
    /// A Workload that no cycle has evaluated yet says so.
    pub(crate) explicit_status: bool,
    /// A pod that no node takes, on an agent's cluster.
    pub(crate) pod_failure: Option<PodFailure>,
    /// Whether its pods fail to start: on an agent's cluster, or as the recorded worker shows it.
    pub(crate) pod_starts: PodStarts,
}

/// What follows for the status.
#[derive(Debug, PartialEq)]
pub(crate) enum NextStatus {
    /// This status is to be written.
    Write { purpose: Purpose, status: Box<WorkloadStatus> },
    /// This status says why the Workload is pending, and changes nothing else.
    Explain(Box<WorkloadStatus>),
    /// A write is allowed at this time.
    Wait(Timestamp),
    /// The status shows everything.
    Nothing,
}

/// Whether `spec.active` is to be set to false: a check or a limit set the DeactivationTarget. After the eviction for it the
/// Workload was activated again.
pub(crate) fn needs_deactivation(record: &TrackedWorkload) -> bool {
    let workload = record.object();
    workload.is_active()
        && record.is(DEACTIVATION_TARGET)
        && !status::was_deactivated(&workload.status)
}

/// Whether the object rules a pending reservation out: it is finished, deleted, deactivated, gated or on hold, or about to be.
pub(crate) fn rules_out_reservation(record: &TrackedWorkload, inputs: &StatusInputs) -> bool {
    let workload = record.object();
    inputs.gated.is_some()
        || record.phase() == WorkloadPhase::Finished
        || workload.metadata.deletion_timestamp.is_some()
        || !workload.is_active()
        || record.transitions().finish().is_some()
        || record.transitions().hold().is_some()
        || workload.status.is_on_hold() && !record.transitions().ends_hold()
}

/// The next status of a Workload, or when it changes.
pub(crate) fn next_status(
    record: &TrackedWorkload,
    inputs: &StatusInputs,
    now: Timestamp,
) -> NextStatus {
    let workload = record.object();
    if record.phase() == WorkloadPhase::Finished {
        return NextStatus::Nothing;
    }
    let before = &workload.status;
    // The end of the job overrides every other pending transition.
    if let Some((reason, message)) = record.transitions().finish() {
        let at = at(workload, now);
        let status = status::pods_not_failing(before.clone(), at);
        let status = status::finished(status, reason, message, at);
        return write(before, status, Purpose::Finish);
    }
    let mut draft = StatusDraft::new(workload, now).gated_by(inputs);
    draft.reserve(record.transitions().reservation());
    draft.admit_as(inputs.variant.as_deref());
    draft.open_gate(record.transitions());
    draft.nominate(record.transitions().nomination(), inputs.multikueue_check.as_deref());
    // Each step sees what the steps before it changed: a check that becomes Retry here evicts in
    // the same write.
    draft.update_checks(inputs.required_checks.as_deref());
    draft.update_provisioning_checks(&inputs.check_updates);
    draft.update_check(record.transitions().check(), inputs.multikueue_check.as_deref());
    draft.assign_topology(record.transitions(), inputs.unhealthy_nodes.as_deref());
    draft.reject();
    draft.admit_before_stop(record.transitions(), inputs.stop);
    draft.delay_retry();
    draft.evict(record.transitions().eviction(), inputs.stop);
    draft.release(record.transitions(), inputs);
    draft.remove_stale_admission();
    draft.hold(record.transitions());
    draft.deactivate_without_quota();
    draft.requeue(inputs);
    draft.wait_for_replacement(inputs.replacement.as_ref());
    draft.admit();
    time_limit_enforcement::apply(&mut draft, inputs);
    draft.show_failing_pods(&inputs.pod_starts);
    if let Some((purpose, status)) = draft.into_changes() {
        let status = time_limit_enforcement::with_pods_ready(status, workload, inputs, now);
        return write(before, with_reasons(status, inputs, false), purpose);
    }
    // A deactivated Workload has its reason from the draft. That of an earlier cycle would replace it.
    if !record.phase().holds_quota() && workload.is_active() {
        return explain(record, inputs, now);
    }
    NextStatus::Nothing
}

/// The time and generation that conditions are stamped with.
pub(super) fn at(workload: &Workload, now: Timestamp) -> StatusStamp {
    StatusStamp { now, generation: workload.metadata.generation.unwrap_or_default() }
}

/// The status with the reasons that the gate selects.
fn with_reasons(status: WorkloadStatus, inputs: &StatusInputs, by_cycle: bool) -> WorkloadStatus {
    if inputs.legacy_reasons { status::with_legacy_reasons(status, by_cycle) } else { status }
}

/// The message of a Workload that no cycle has evaluated yet.
pub(super) const NOT_EVALUATED: &str = "Workload is pending evaluation in the scheduling queue";

/// What a Workload says that no cycle has evaluated yet.
pub(crate) fn not_evaluated(not_before: Timestamp) -> PendingMessage {
    PendingMessage {
        reason: reasons::PENDING_EVALUATION.to_owned(),
        message: NOT_EVALUATED.to_owned(),
        gated: false,
        by_cycle: false,
        not_before,
    }
}

/// Whether a pending Workload still names admission gates that are gone.
fn shows_ended_gates(status: &WorkloadStatus, inputs: &StatusInputs) -> bool {
    let known = status::find(&status.conditions, QUOTA_RESERVED);
    let names_gates =
        known.is_some_and(|one| one.status == "False" && one.message.starts_with(GATED_BY));
    names_gates && inputs.gated.is_none()
}

/// The message of a pending Workload after its last admission gate is gone.
pub(crate) fn gates_cleared(now: Timestamp) -> PendingMessage {
    let message = "AdmissionGatedBy cleared, waiting for quota reservation".to_owned();
    PendingMessage { message, ..not_evaluated(now) }
}

fn write(before: &WorkloadStatus, status: WorkloadStatus, purpose: Purpose) -> NextStatus {
    if status == *before {
        return NextStatus::Nothing;
    }
    NextStatus::Write { purpose, status: Box::new(status) }
}

fn explanation(before: &WorkloadStatus, status: WorkloadStatus) -> NextStatus {
    if status == *before {
        return NextStatus::Nothing;
    }
    NextStatus::Explain(Box::new(status))
}

/// How long a new Workload may be without any condition and its list of checks. Most are admitted before, which says more.
const UNEXPLAINED_AFTER: Duration = Duration::from_secs(5);

/// The list of checks and PodsReady=False of a Workload that no cycle explains, as of one that waits behind an equal one.
fn show_unexplained(workload: &Workload, inputs: &StatusInputs, now: Timestamp) -> NextStatus {
    let before = &workload.status;
    let ready_unknown =
        inputs.pods_ready.is_some() && status::find(&before.conditions, PODS_READY).is_none();
    let required = inputs.required_checks.as_deref();
    let checks_unknown = required.is_some_and(|required| !status::lists_checks(before, required));
    let created = workload.metadata.creation_timestamp.as_ref();
    let Some(created) = created.filter(|_| ready_unknown || checks_unknown) else {
        return NextStatus::Nothing;
    };
    let due = after(created.0, UNEXPLAINED_AFTER);
    if due > now {
        return NextStatus::Wait(due);
    }
    let status = with_required_checks(before.clone(), inputs, at(workload, now));
    let status = time_limit_enforcement::with_pods_ready(status, workload, inputs, now);
    explanation(before, status)
}

fn with_required_checks(
    status: WorkloadStatus,
    inputs: &StatusInputs,
    at: StatusStamp,
) -> WorkloadStatus {
    match &inputs.required_checks {
        Some(required) => status::with_checks(status, required, at),
        None => status,
    }
}

/// Why the Workload is pending, once it has been pending for a while.
fn explain(record: &TrackedWorkload, inputs: &StatusInputs, now: Timestamp) -> NextStatus {
    let workload = record.object();
    let before = &workload.status;
    // No cycle and no queue decides about it until the hold ends.
    if before.is_on_hold() {
        return NextStatus::Nothing;
    }
    let unknown = status::find(&before.conditions, QUOTA_RESERVED).is_none();
    let first = (inputs.explicit_status && unknown).then(|| not_evaluated(now));
    // Before the reason that a cycle may have given meanwhile: that waits for a while.
    let first = first.or_else(|| shows_ended_gates(before, inputs).then(|| gates_cleared(now)));
    let Some(pending) = first.as_ref().or(record.transitions().pending_message()) else {
        return show_unexplained(workload, inputs, now);
    };
    // Only a cycle counts requests; what keeps a Workload from all cycles leaves them as they are.
    let requests = if pending.by_cycle { &inputs.requests } else { &before.resource_requests };
    let (requests, at) = (requests.clone(), at(workload, now));
    let explain = if pending.gated { status::gated } else { status::pending };
    let PendingMessage { reason, message, .. } = pending;
    let cause = status::PendingCause { reason, message, requests };
    let status = explain(before.clone(), cause, at);
    // The list of checks of a pending Workload goes out with its reason and causes no write of its own.
    let status = with_required_checks(status, inputs, at);
    let status = with_reasons(status, inputs, pending.by_cycle);
    // PodsReady=False alone causes no write, unless the pods came after the reason.
    if status == *before && status::find(&before.conditions, PODS_READY).is_some() {
        return NextStatus::Nothing;
    }
    let status = time_limit_enforcement::with_pods_ready(status, workload, inputs, now);
    match explanation(before, status) {
        NextStatus::Explain(_) if pending.not_before > now => NextStatus::Wait(pending.not_before),
        next => next,
    }
}
