//! A status in the making: the transitions that one write carries.

use ::jobs::pods::group::ReplacementCondition;
use crds::{
    meta::{Condition, controller, is_true},
    names::{
        check_states::READY,
        conditions::{
            ADMITTED, DEACTIVATION_TARGET, EVICTED, QUOTA_RESERVED, REQUEUED,
            WAITING_FOR_REPLACEMENT_PODS,
        },
        gates::CONCURRENT_ADMISSION,
        reasons,
    },
    v1beta2::{AdmissionCheckState, Workload, WorkloadStatus},
};
use index::status::{self, Eviction, QuotaReservation, ShownVariant, StatusStamp};
use jiff::Timestamp;
use provisioning::CheckUpdate;
use variants::VariantAdmission;

use super::{
    status::{NOT_EVALUATED, StatusInputs, at},
    stop_policy::StopPolicy,
    transition::{
        EvictionRequest, NominationChange, PendingTransitions, ReservedQuota, Transition,
    },
};
use crate::control::{
    outbox::Purpose,
    start_failure::{PodStarts, StartFailure},
};

/// The next status of one Workload, built transition by transition.
pub(super) struct StatusDraft<'a> {
    status: WorkloadStatus,
    /// That of the first transition. The delay of a Retry has none.
    purpose: Option<Purpose>,
    now: Timestamp,
    workload: &'a Workload,
    /// The message about admission gates that keep the Workload from its admission.
    gated: Option<&'a str>,
}

impl<'a> StatusDraft<'a> {
    pub(super) fn new(workload: &'a Workload, now: Timestamp) -> Self {
        Self { status: workload.status.clone(), purpose: None, now, workload, gated: None }
    }

    /// With its admission gates. They change nothing once worker clusters are nominated: a copy may run there, and the reservation
    /// ends with the copies only.
    pub(super) fn gated_by(self, inputs: &'a StatusInputs) -> Self {
        let status = &self.workload.status;
        let is_dispatched =
            !status.nominated_cluster_names.is_empty() || status.cluster_name.is_some();
        let may_run = inputs.multikueue_check.is_some() && is_dispatched;
        Self { gated: inputs.gated.as_deref().filter(|_| !may_run), ..self }
    }

    /// Purpose and status of the write; `None` if nothing changes.
    pub(super) fn into_changes(self) -> Option<(Purpose, WorkloadStatus)> {
        let changed = self.status != self.workload.status;
        changed.then(|| (self.purpose.unwrap_or(Purpose::Requeue), self.status))
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    pub(super) fn workload(&self) -> &'a Workload {
        self.workload
    }

    pub(super) fn status(&self) -> &WorkloadStatus {
        &self.status
    }

    pub(super) fn at(&self) -> StatusStamp {
        at(self.workload, self.now)
    }

    pub(super) fn is(&self, condition: &str) -> bool {
        is_true(&self.status.conditions, condition)
    }

    /// Admitted, with quota that it is not about to lose.
    pub(super) fn runs(&self) -> bool {
        self.is(ADMITTED) && self.keeps_quota()
    }

    /// With quota that it is not about to lose.
    pub(super) fn keeps_quota(&self) -> bool {
        self.holds_quota() && !self.is(EVICTED) && self.workload.is_active()
    }

    /// Applies a transition. Its purpose names the write unless an earlier transition did.
    pub(super) fn apply(&mut self, status: WorkloadStatus, purpose: Purpose) {
        if status != self.status {
            self.purpose.get_or_insert(purpose);
        }
        self.status = status;
    }

    pub(super) fn reserve(&mut self, reservation: Option<&ReservedQuota>) {
        let Some(reservation) = reservation.filter(|_| !self.holds_quota()) else {
            return;
        };
        // A further check comes first; the cluster is nominated when that is Ready
        // (docs/reference/multikueue.md §2.4).
        let only_check = reservation.checks.len() <= 1;
        let cluster = reservation.cluster.iter().filter(|_| only_check);
        let nominated: Vec<String> = cluster.map(ToString::to_string).collect();
        let written = QuotaReservation {
            admission: reservation.admission.clone(),
            checks: &reservation.checks,
            nominated: &nominated,
        };
        let status = status::quota_reserved(self.status.clone(), written, self.at());
        self.apply(status, Purpose::Reserve);
    }

    /// Admits a parent as its variant, unless its pods still run as another one.
    pub(super) fn admit_as(&mut self, variant: Option<&VariantAdmission>) {
        let is_leaving = self.holds_quota() && self.is(EVICTED);
        if let Some(variant) = variant.filter(|_| !is_leaving) {
            let shown = ShownVariant {
                name: &variant.variant,
                admission: &variant.admission,
                checks: &variant.checks,
            };
            let status = status::admitted_as_variant(self.status.clone(), shown, self.at());
            self.apply(status, Purpose::AdmitParent);
        }
    }

    /// Opens the preemption gate of a variant that would have to preempt.
    pub(super) fn open_gate(&mut self, transitions: &PendingTransitions) {
        if transitions.opens_gate() && !self.holds_quota() {
            let status =
                status::with_open_gate(self.status.clone(), CONCURRENT_ADMISSION, self.at());
            self.apply(status, Purpose::OpenGate);
        }
    }

    /// Updates topology assignments, and the nodes that failed. Of an evicted Workload neither matters.
    pub(super) fn assign_topology(
        &mut self,
        transitions: &PendingTransitions,
        failed: Option<&[String]>,
    ) {
        if !self.holds_quota() || self.is(EVICTED) {
            return;
        }
        if let Some(failed) = failed {
            let status = status::with_unhealthy_nodes(self.status.clone(), failed);
            self.apply(status, Purpose::UnhealthyNodes);
        }
        if let Some(topologies) = transitions.topology() {
            let status = status::with_topologies(self.status.clone(), topologies);
            self.apply(status, Purpose::AssignTopology);
        }
    }

    /// Updates the list of checks of a Workload with quota to those that its ClusterQueue requires now.
    pub(super) fn update_checks(&mut self, required: Option<&[String]>) {
        // A reservation of this draft has its list already.
        let held = self.workload.has_quota_reservation();
        if let Some(required) = required.filter(|_| held && !self.is(EVICTED)) {
            let status = status::with_checks(self.status.clone(), required, self.at());
            self.apply(status, Purpose::Admit);
        }
    }

    /// Nominates worker clusters, if no check but the MultiKueue check is open. Nominated ones stay, because they may have a copy, unless
    /// the change names them.
    pub(super) fn nominate(&mut self, change: Option<&NominationChange>, check: Option<&str>) {
        let (Some(change), Some(check)) = (change, check) else {
            return;
        };
        // A check that went back meanwhile, or an eviction, takes the decision back.
        let mut nominated = self.status.nominated_cluster_names.iter();
        let open = self.holds_quota()
            && !self.is(EVICTED)
            && nominated.all(|one| change.knows(one))
            && !status::awaits_other_checks(&self.status, check);
        if open {
            self.apply(status::nominated(self.status.clone(), &change.clusters), Purpose::Reserve);
        }
    }

    /// Sets the state of the MultiKueue check.
    pub(super) fn update_check(&mut self, next: Option<&Transition>, check: Option<&str>) {
        let Some(check) = check.filter(|_| self.holds_quota()) else {
            return;
        };
        let (status, at) = (self.status.clone(), self.at());
        let begins_eviction =
            self.is(EVICTED) && !is_true(&self.workload.status.conditions, EVICTED);
        match next {
            // It says what the end of an eviction waits for, too. One from before the eviction is late.
            Some(Transition::PendingMessage(message)) if !begins_eviction => {
                let after = status::with_pending_message(status, check, message);
                self.apply(after, Purpose::Dispatched);
            }
            // The eviction has reset the check. A late decision about the old copies must not set it
            // again.
            _ if self.is(EVICTED) => {}
            Some(Transition::CheckRejected(message)) => {
                self.apply(
                    status::with_check_rejected(status, check, message, at),
                    Purpose::Reject,
                );
            }
            Some(Transition::CheckRetry(retry)) => {
                let retried = status::with_check_retry(status, check, &retry.message, at);
                self.apply(retried, Purpose::Retry);
            }
            Some(Transition::CheckReady(cluster)) => {
                self.apply(
                    status::admitted_on_cluster(status, cluster, check, at),
                    Purpose::Dispatched,
                );
            }
            Some(Transition::CheckMessage(message)) => {
                self.apply(status::with_ready_message(status, check, message), Purpose::Dispatched);
            }
            _ => {}
        }
    }

    /// Sets the states of provisioning checks.
    pub(super) fn update_provisioning_checks(&mut self, updates: &[CheckUpdate]) {
        // They were decided for the reservation that the object shows.
        let holds = self.workload.has_quota_reservation();
        if !holds || !self.holds_quota() || self.is(EVICTED) {
            return;
        }
        for update in updates {
            let (status, at) = (self.status.clone(), self.at());
            let next = AdmissionCheckState {
                name: update.check.clone(),
                state: update.state.to_owned(),
                message: update.message.clone(),
                pod_set_updates: update.pod_set_updates.clone(),
                requeue_after_seconds: update.requeue_after_seconds,
                ..AdmissionCheckState::default()
            };
            self.apply(status::with_check_state(status, next, at), Purpose::ProvisioningCheck);
        }
    }

    /// Marks a Workload with a Rejected check for deactivation (docs/reference/kueue.md §2.2).
    pub(super) fn reject(&mut self) {
        // Without quota a Rejected check deactivates nothing: the nomination refuses the Workload
        // (docs/reference/kueue.md §4.2).
        let active = self.workload.is_active();
        if !active || !self.holds_quota() || self.is(DEACTIVATION_TARGET) {
            return;
        }
        // Its checks are repeated after a deactivation that is taken back. Any other eviction would end with a requeue, and the release
        // sets the check back to Pending (kueue#10807).
        if status::was_deactivated(&self.status) {
            return;
        }
        if let Some(message) = status::checks_in_state(&self.status, status::REJECTED) {
            let (status, reason) = (self.status.clone(), reasons::ADMISSION_CHECK);
            let status = status::deactivation_target(status, reason, &message, self.at());
            self.apply(status, Purpose::DeactivationTarget);
        }
    }

    /// Explains why a deactivated Workload without quota is pending.
    pub(super) fn deactivate_without_quota(&mut self) {
        let inactive = !self.workload.is_active();
        if inactive && !self.holds_quota() && !self.leaves_without_quota() {
            let status = status::deactivated_without_quota(self.status.clone(), self.at());
            self.apply(status, Purpose::Pending);
        }
    }

    /// Records whether pods of a group are missing.
    pub(super) fn wait_for_replacement(&mut self, changed: Option<&ReplacementCondition>) {
        let Some(ReplacementCondition { status: waits, reason, message }) = changed else {
            return;
        };
        let mut status = self.status.clone();
        let kind = WAITING_FOR_REPLACEMENT_PODS;
        status::set(
            &mut status.conditions,
            status::NewCondition { kind, status: *waits, reason, message },
            self.at(),
        );
        self.apply(status, Purpose::Replacement);
    }

    /// Admits a Workload with Ready checks before a queue that stopped meanwhile ends its reservation: an admitted one
    /// stays, or is evicted (docs/reference/kueue.md §2.5).
    pub(super) fn admit_before_stop(&mut self, transitions: &PendingTransitions, stop: StopPolicy) {
        let is_leaving = !self.workload.is_active()
            || self.is_to_be_deactivated()
            || transitions.eviction().is_some()
            || transitions.unreserve().is_some()
            || transitions.hold().is_some();
        if stop != StopPolicy::default() && !is_leaving {
            self.admit();
        }
    }

    /// Sets `requeueAt` to the end of the longest delay that a check in Retry asks for, or keeps a later time.
    ///
    /// Before each transition that sets checks back to Pending, and whether the Retry evicts or not: a Workload that is
    /// evicted for another reason, or has no quota, waits as well (docs/reference/kueue.md §2.3, §2.4).
    pub(super) fn delay_retry(&mut self) {
        // Deactivation clears the backoff.
        if !self.workload.is_active() || self.is_to_be_deactivated() {
            return;
        }
        if let Some(until) = status::retry_at(&self.status).filter(|until| *until > self.now) {
            self.status = status::back_off(self.status.clone(), until, false);
        }
    }

    pub(super) fn evict(&mut self, request: Option<&EvictionRequest>, stop: StopPolicy) {
        if self.is(EVICTED) {
            return self.name_deactivation();
        }
        // Deactivation comes before any requested eviction: it alone clears DeactivationTarget and
        // requeueState (docs/reference/kueue.md §2.4). It evicts a pending Workload, too.
        if !self.workload.is_active() && !self.leaves_without_quota() {
            let status = status::deactivated(self.status.clone(), self.at());
            return self.apply(status, Purpose::Evict);
        }
        // After another eviction nothing would take the mark off again.
        if !self.holds_quota() || self.is_to_be_deactivated() {
            return;
        }
        let Some(request) = request.cloned().or_else(|| self.eviction_by_status(stop)) else {
            return;
        };
        let (status, at) = (self.status.clone(), self.at());
        let status = match &request.preemption {
            Some(one) => status::preempted(status, one.reason, &request.message, at),
            None => {
                let EvictionRequest { reason, message, .. } = &request;
                status::evicted(status, Eviction { reason, cause: "", message }, at)
            }
        };
        self.apply(status, Purpose::Evict);
    }

    /// Names a deactivation with a cause as the reason of the eviction that it found. The condition is its only lasting record.
    fn name_deactivation(&mut self) {
        let has_cause = self.is(DEACTIVATION_TARGET) && !status::was_deactivated(&self.status);
        if has_cause && !self.workload.is_active() && !self.leaves_without_quota() {
            let status = status::with_cause_of_deactivation(self.status.clone(), self.at());
            self.apply(status, Purpose::Evict);
        }
    }

    /// Whether it is to be deactivated: that evicts it next.
    fn is_to_be_deactivated(&self) -> bool {
        let active = self.workload.is_active();
        active && self.is(DEACTIVATION_TARGET) && !status::was_deactivated(&self.status)
    }

    /// Evictions that follow from the status itself: a check in Retry, a stopped queue.
    fn eviction_by_status(&self, stop: StopPolicy) -> Option<EvictionRequest> {
        // Retry also evicts a Workload that is not admitted yet (docs/reference/kueue.md §2.2).
        if let Some(checks) = status::checks_in_state(&self.status, status::RETRY) {
            let message = format!("Evicted due to {checks}");
            return Some(EvictionRequest::new(reasons::ADMISSION_CHECK, message));
        }
        let (reason, message) = stop.eviction()?;
        // A Workload that is not admitted drops its reservation without Evicted
        // (docs/reference/kueue.md §2.2), in `release`.
        self.is(ADMITTED).then(|| EvictionRequest::new(reason, message))
    }

    /// Releases quota once no pod is left; of a dispatched Workload, once nothing of it is left on any worker.
    pub(super) fn release(&mut self, transitions: &PendingTransitions, inputs: &StatusInputs) {
        let withdrawn = inputs.multikueue_check.is_none() || inputs.withdrawn;
        // Gates count only where no worker cluster is nominated yet.
        let is_undispatched = self.gated.is_some() && !self.is(EVICTED);
        if !self.holds_quota() || !(withdrawn || is_undispatched) {
            return;
        }
        if self.is(EVICTED) {
            // The release would requeue a Workload that is to be deactivated while it is active. One that is being deleted is not
            // deactivated any more.
            let awaits_deactivation =
                self.is_to_be_deactivated() && self.workload.metadata.deletion_timestamp.is_none();
            // The job asks for the release once its pods are gone (docs/reference/kueue.md §7.3 row 6).
            if transitions.releases() && !awaits_deactivation {
                let for_good = !inputs.requeues_pods && is_of_single_pod(self.workload);
                let release = if for_good {
                    status::quota_released_without_requeue
                } else {
                    status::quota_released
                };
                self.apply(release(self.status.clone(), self.at()), Purpose::Release);
            }
        } else if let Some(message) = transitions.unreserve() {
            // Nothing of it ran on a worker, so there is nothing to evict.
            let status = status::nomination_cancelled(self.status.clone(), message, self.at());
            self.apply(status, Purpose::Unplace);
        } else if !self.is(ADMITTED) {
            self.end_reservation(inputs.stop);
        }
    }

    /// Admission gates, or a queue that is stopped or gone, end a reservation without Evicted, and checks stay as they are
    /// (docs/reference/kueue.md §2.2, §2.5).
    fn end_reservation(&mut self, stop: StopPolicy) {
        let admission = self.status.admission.as_ref();
        let cluster_queue = admission.map_or("", |one| one.cluster_queue.as_str());
        let queues = (self.workload.spec.queue_name.as_str(), cluster_queue);
        let gated = self.gated.map(|message| (reasons::ADMISSION_GATED, message.to_owned()));
        if let Some((reason, message)) = gated.or_else(|| stop.end_of_reservation(queues)) {
            let status = status::reservation_dropped(self.status.clone(), &message, self.at());
            let cause = status::PendingCause::new(reason, &message);
            let status = status::pending(status, cause, self.at());
            self.apply(status, Purpose::Suspend);
        }
    }

    /// Removes admission and failed nodes that an apply has left beside QuotaReserved=False, since another field manager has set
    /// them, too.
    ///
    /// Upstream's manager may have written it with another field manager before a takeover. Alone the removal is a merge
    /// patch, which removes a field whatever owns it.
    pub(super) fn remove_stale_admission(&mut self) {
        let known = status::find(&self.workload.status.conditions, QUOTA_RESERVED);
        if known.is_some_and(|one| one.status == "False") && !self.holds_quota() {
            let (admission, unhealthy_nodes) = (None, Vec::new());
            let status = WorkloadStatus { admission, unhealthy_nodes, ..self.status.clone() };
            self.apply(status, Purpose::Release);
        }
    }

    /// Takes a Workload out of its queue while its job is on hold, with the quota that it has, and puts it back afterwards.
    pub(super) fn hold(&mut self, transitions: &PendingTransitions) {
        if let Some(message) = transitions.hold() {
            let mut status = self.status.clone();
            if self.holds_quota() {
                status = status::quota_released(status, self.at());
            }
            let cause = status::PendingCause::new(reasons::ON_HOLD, message);
            let status = status::pending(status, cause, self.at());
            self.apply(status, Purpose::Hold);
        } else if transitions.ends_hold() && self.status.is_on_hold() {
            let cause = status::PendingCause::new(reasons::PENDING_EVALUATION, NOT_EVALUATED);
            let status = status::pending(self.status.clone(), cause, self.at());
            self.apply(status, Purpose::Hold);
        }
    }

    /// Requeues an evicted Workload when its backoff, its deactivation or the stop of its queue is over.
    pub(super) fn requeue(&mut self, inputs: &StatusInputs) {
        self.end_backoff();
        self.end_what_keeps_out(inputs);
        self.reset_retries(inputs);
    }

    fn end_backoff(&mut self) {
        if self.workload.is_active() {
            let mut status = self.status.clone();
            if !self.holds_quota() || self.is_kept_by_backoff() {
                status = status::backoff_ended(status, self.now);
            }
            // Until the release the time of the eviction is not accumulated yet.
            if status::was_deactivated(&status) && !self.holds_quota() {
                status = status::reactivated(status);
            }
            self.apply(status, Purpose::Requeue);
        } else if self.status.requeue_state.is_some() {
            // Also after an eviction for another reason, before the quota is released.
            self.apply(
                WorkloadStatus { requeue_state: None, ..self.status.clone() },
                Purpose::Requeue,
            );
        }
    }

    fn end_what_keeps_out(&mut self, inputs: &StatusInputs) {
        let may_return = !inputs.pod_leaves && !self.holds_quota();
        let Some(kept) = self.kept_out().filter(|_| may_return) else {
            return;
        };
        if let Some(reason) = self.reason_to_requeue(&kept.reason, inputs.stop) {
            let status = status::requeued(self.status.clone(), reason, self.at());
            self.apply(status, Purpose::Requeue);
        }
    }

    /// Repeats the checks in Retry of a Workload without quota once their delay is over. They were set after the release, so that no
    /// eviction resets them, and the nomination refuses the Workload while they stay (docs/reference/kueue.md §2.3).
    fn reset_retries(&mut self, inputs: &StatusInputs) {
        let delayed =
            self.status.requeue_state.as_ref().is_some_and(|one| one.requeue_at.is_some());
        let stays_out = delayed || self.kept_out().is_some() || self.is_to_be_deactivated();
        let is_leaving = !self.workload.is_active() || self.leaves_without_quota();
        // The checks of a parent are those of its variant.
        if self.holds_quota() || stays_out || is_leaving || inputs.is_parent {
            return;
        }
        let status = status::with_retries_reset(self.status.clone(), self.at());
        self.apply(status, Purpose::Requeue);
    }

    /// The condition Requeued while it is False.
    fn kept_out(&self) -> Option<&Condition> {
        status::find(&self.status.conditions, REQUEUED).filter(|one| one.status == "False")
    }

    /// Whether a backoff keeps the Workload out of its queue.
    fn is_kept_by_backoff(&self) -> bool {
        self.kept_out().is_some_and(|one| {
            matches!(&*one.reason, reasons::PODS_READY_TIMEOUT | reasons::ADMISSION_CHECK)
        })
    }

    /// The reason of the requeue; `None` while what keeps the Workload from its queue still holds.
    fn reason_to_requeue(&self, kept: &str, stop: StopPolicy) -> Option<&'static str> {
        let backoff = self.status.requeue_state.as_ref().and_then(|one| one.requeue_at.as_ref());
        let (over, reason) = match kept {
            // The reason may carry its cause: `DeactivatedDueTo<cause>`.
            kept if kept.starts_with(reasons::DEACTIVATED) => {
                (self.workload.is_active(), reasons::REACTIVATED)
            }
            reasons::CLUSTER_QUEUE_STOPPED => {
                (!stop.stops_cluster_queue(), reasons::CLUSTER_QUEUE_RESTARTED)
            }
            reasons::LOCAL_QUEUE_STOPPED => {
                (!stop.stops_local_queue(), reasons::LOCAL_QUEUE_RESTARTED)
            }
            // Requeued at the release, or never.
            reasons::PREEMPTED | reasons::NODE_FAILURES => return None,
            _ => (backoff.is_none_or(|at| at.0 <= self.now), reasons::BACKOFF_FINISHED),
        };
        over.then_some(reason)
    }

    /// Admits a Workload that holds quota and whose checks are all Ready.
    pub(super) fn admit(&mut self) {
        let ready = self.status.admission_checks.iter().all(|check| check.state == READY);
        let may_run = ready && self.gated.is_none();
        if self.holds_quota() && may_run && !self.is(ADMITTED) && !self.is(EVICTED) {
            self.apply(status::admitted(self.status.clone(), self.at()), Purpose::Admit);
        }
    }

    /// Shows pods that cannot start. Of a Workload that does not run, none fails any more.
    pub(super) fn show_failing_pods(&mut self, pods: &PodStarts) {
        let (status, at) = (self.status.clone(), self.at());
        let status = match pods {
            PodStarts::Failing(StartFailure { reason, message }) if self.runs() => {
                status::pods_failing(status, reason, message, at)
            }
            PodStarts::Unknown if self.runs() => return,
            _ => status::pods_not_failing(status, at),
        };
        self.apply(status, Purpose::PodsReady);
    }

    /// Whether the Workload is about to go, and nothing of it runs.
    fn leaves_without_quota(&self) -> bool {
        self.workload.metadata.deletion_timestamp.is_some() && !self.holds_quota()
    }

    fn holds_quota(&self) -> bool {
        self.is(QUOTA_RESERVED)
    }
}

/// Whether a Workload is that of one pod. Pods of a group own theirs together, without a controller.
pub(crate) fn is_of_single_pod(workload: &Workload) -> bool {
    controller(&workload.metadata)
        .is_some_and(|owner| (&*owner.api_version, &*owner.kind) == ("v1", "Pod"))
}
