//! What the status of a Workload becomes next, all in one write.
//!
//! Everything that was decided and does not show yet is applied in the order of the life of a Workload; what follows from
//! that at once is applied with it. A Workload that is over changes no more. Source: docs/reference/kueue.md §2.

mod limits;

use crds::{
    names::{
        conditions::{ADMITTED, DEACTIVATION_TARGET, EVICTED, FINISHED, REQUEUED},
        reasons,
    },
    v1beta2::{PodSetRequest, Workload, WorkloadStatus},
};
use index::status::{self, Eviction, QuotaReservation, StatusStamp};
use jiff::Timestamp;

pub(crate) use self::limits::deadline;

use self::limits::note_not_ready;
use super::{
    Purpose,
    capacity::Stranded,
    pods::Patience,
    record::{Evict, Record, has_quota, is},
};

/// What keeps quota from being held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Nothing.
    No,
    /// The ClusterQueue takes nothing new.
    HoldClusterQueue,
    /// The LocalQueue takes nothing new.
    HoldLocalQueue,
    /// The ClusterQueue gives back what it has.
    DrainClusterQueue,
    /// The LocalQueue gives back what it has.
    DrainLocalQueue,
}

/// What is known beside the Workload itself.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) stop: Stop,
    /// The check that dispatches it, if it runs on a worker.
    pub(crate) dispatched: Option<String>,
    /// What it asks for, as its status shows it while it waits.
    pub(crate) requests: Vec<PodSetRequest>,
    /// Whether the pods of its job are ready, where that is told.
    pub(crate) pods_ready: Option<bool>,
    /// How long pods are waited for.
    pub(crate) patience: Option<Patience>,
    /// Its time is counted here.
    pub(crate) limited: bool,
    /// No node takes one of its pods.
    pub(crate) stranded: Option<Stranded>,
}

/// What comes next.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// This status is to be written.
    Write { purpose: Purpose, status: Box<WorkloadStatus> },
    /// Something is to be written then.
    Wait(Timestamp),
    /// All is written.
    Nothing,
}

/// The stop policies of a Workload's queues, the stricter first.
pub(crate) fn stop(cluster_queue: Option<&str>, local_queue: Option<&str>) -> Stop {
    match (cluster_queue, local_queue) {
        (Some("HoldAndDrain"), _) => Stop::DrainClusterQueue,
        (_, Some("HoldAndDrain")) => Stop::DrainLocalQueue,
        (Some("Hold"), _) => Stop::HoldClusterQueue,
        (_, Some("Hold")) => Stop::HoldLocalQueue,
        _ => Stop::No,
    }
}

/// A check said no for good, or an eviction was the last: `spec.active` is ours to switch off.
pub(crate) fn is_to_be_deactivated(workload: &Workload) -> bool {
    let active = workload.spec.active != Some(false);
    let rejected = workload.status.admission_checks.iter().any(|check| check.state == "Rejected");
    active && (rejected && has_quota(workload) || is(workload, DEACTIVATION_TARGET))
}

/// Takes back a reservation that the object no longer allows; whether there was one.
pub(crate) fn drop_what_cannot_be(record: &mut Record) -> bool {
    let workload = &record.held.object;
    let impossible = is(workload, FINISHED)
        || workload.metadata.deletion_timestamp.is_some()
        || workload.spec.active == Some(false)
        || record.wants.finish.is_some();
    impossible && record.drops_reservation()
}

/// Of what was decided, what the object shows now.
pub(crate) fn forget_what_was_written(record: &mut Record) {
    let workload = &record.held.object;
    let wants = &mut record.wants;
    let quota = has_quota(workload);
    if is(workload, FINISHED) {
        *wants = Default::default();
        return;
    }
    if quota {
        wants.reserve = None;
        wants.pending = None;
    } else {
        wants.evict = None;
        wants.release = false;
        wants.unplace = None;
        wants.ready = None;
        wants.retry = None;
        wants.reject = None;
    }
    if is(workload, EVICTED) {
        wants.evict = None;
        wants.ready = None;
        wants.retry = None;
    }
    if workload.status.cluster_name.as_deref() == wants.ready.as_deref() {
        wants.ready = None;
    }
}

/// What comes next. See the module.
pub(crate) fn next(record: &Record, around: &Surroundings, now: Timestamp) -> Next {
    let workload = record.object();
    if is(workload, FINISHED) {
        return Next::Nothing;
    }
    let before = &workload.status;
    if let Some((reason, message)) = &record.wants.finish {
        let status = status::finished(before.clone(), reason, message, at(workload, now));
        return write(before, status, Purpose::Finish);
    }
    let mut draft = Draft { status: before.clone(), purpose: None, now, workload };
    draft.reserve(record);
    draft.check(record, around);
    draft.evict(record, around);
    draft.give_back(record, around);
    draft.requeue(around);
    draft.admit();
    draft.note_pods(around);
    draft.time_out(around);
    draft.strand(around);
    if let Some(purpose) = draft.purpose.filter(|_| draft.status != *before) {
        let status = note_not_ready(draft.status, workload, around, now);
        return write(before, status, purpose);
    }
    if !has_quota(workload) && workload.spec.active != Some(false) {
        return explain(record, around, now);
    }
    Next::Nothing
}

fn at(workload: &Workload, now: Timestamp) -> StatusStamp {
    StatusStamp { now, generation: workload.metadata.generation.unwrap_or_default() }
}

fn write(before: &WorkloadStatus, status: WorkloadStatus, purpose: Purpose) -> Next {
    if status == *before {
        return Next::Nothing;
    }
    Next::Write { purpose, status: Box::new(status) }
}

/// Why it waits, once it has waited for a while.
fn explain(record: &Record, around: &Surroundings, now: Timestamp) -> Next {
    let Some(pending) = &record.wants.pending else {
        return Next::Nothing;
    };
    let workload = record.object();
    let before = &workload.status;
    let requests = around.requests.clone();
    let explain = if pending.gated { status::gated } else { status::pending };
    let status =
        explain(before.clone(), &pending.reason, &pending.message, requests, at(workload, now));
    if status == *before {
        return Next::Nothing;
    }
    let status = note_not_ready(status, workload, around, now);
    match write(before, status, Purpose::Pending) {
        Next::Write { .. } if pending.not_before > now => Next::Wait(pending.not_before),
        next => next,
    }
}

/// A status in the making.
struct Draft<'a> {
    status: WorkloadStatus,
    /// Of the first transition.
    purpose: Option<Purpose>,
    now: Timestamp,
    workload: &'a Workload,
}

impl Draft<'_> {
    fn at(&self) -> StatusStamp {
        at(self.workload, self.now)
    }

    fn holds(&self) -> bool {
        crds::meta::is_true(&self.status.conditions, crds::names::conditions::QUOTA_RESERVED)
    }

    fn is_evicted(&self) -> bool {
        crds::meta::is_true(&self.status.conditions, EVICTED)
    }

    /// One transition; its purpose names the write unless an earlier one did.
    fn become_(&mut self, status: WorkloadStatus, purpose: Purpose) {
        if status != self.status {
            self.purpose.get_or_insert(purpose);
        }
        self.status = status;
    }

    fn reserve(&mut self, record: &Record) {
        let Some(reserve) = &record.wants.reserve else {
            return;
        };
        if self.holds() {
            return;
        }
        let nominated: Vec<String> = reserve.cluster.iter().map(ToString::to_string).collect();
        let reservation = QuotaReservation {
            admission: reserve.admission.clone(),
            checks: &reserve.checks,
            nominated: &nominated,
        };
        let status = status::quota_reserved(self.status.clone(), reservation, self.at());
        self.become_(status, Purpose::Reserve);
    }

    fn check(&mut self, record: &Record, around: &Surroundings) {
        let Some(check) =
            around.dispatched.as_deref().filter(|_| self.holds() && !self.is_evicted())
        else {
            return;
        };
        let wants = &record.wants;
        if let Some(message) = &wants.reject {
            let status = status::check_rejected(self.status.clone(), check, message, self.at());
            self.become_(status, Purpose::Reject);
        } else if let Some(message) = &wants.retry {
            let status = status::check_retry(self.status.clone(), check, message, self.at());
            self.become_(status, Purpose::Retry);
        } else if let Some(cluster) = &wants.ready {
            let status =
                status::admitted_on_cluster(self.status.clone(), cluster, check, self.at());
            self.become_(status, Purpose::Dispatched);
        }
    }

    fn evict(&mut self, record: &Record, around: &Surroundings) {
        if !self.holds() || self.is_evicted() {
            return;
        }
        if self.workload.spec.active == Some(false) {
            let status = status::deactivated(self.status.clone(), self.at());
            return self.become_(status, Purpose::Evict);
        }
        let Some(evict) = self.reason_to_evict(record, around) else {
            return;
        };
        let (status, at) = (self.status.clone(), self.at());
        let status = match evict.preempted {
            Some(reason) => status::preempted(status, reason, &evict.message, at),
            None => {
                let Evict { reason, cause, message, .. } = &evict;
                status::evicted(status, Eviction { reason, cause, message }, at)
            }
        };
        self.become_(status, Purpose::Evict);
    }

    fn reason_to_evict(&self, record: &Record, around: &Surroundings) -> Option<Evict> {
        let because = |reason, message: &str| {
            let message = message.to_owned();
            Some(Evict { reason, cause: String::new(), message, preempted: None })
        };
        if let Some(evict) = &record.wants.evict {
            return Some(evict.clone());
        }
        if let Some(check) = self.status.admission_checks.iter().find(|one| one.state == "Retry") {
            return because(reasons::ADMISSION_CHECK, &check.message);
        }
        let admitted = crds::meta::is_true(&self.status.conditions, ADMITTED);
        match around.stop {
            Stop::DrainClusterQueue if admitted => {
                because(reasons::CLUSTER_QUEUE_STOPPED, "The ClusterQueue is stopped")
            }
            Stop::DrainLocalQueue if admitted => {
                because(reasons::LOCAL_QUEUE_STOPPED, "The LocalQueue is stopped")
            }
            _ => None,
        }
    }

    /// Quota goes when the pods are gone; of a dispatched Workload, when nothing of it is left anywhere.
    fn give_back(&mut self, record: &Record, around: &Surroundings) {
        if !self.holds() {
            return;
        }
        let gone = around.dispatched.is_none() || record.trip.withdrawn;
        if self.is_evicted() {
            if record.wants.release && gone {
                let status = status::quota_released(self.status.clone(), self.at());
                self.become_(status, Purpose::Release);
            }
        } else if let Some(message) = record.wants.unplace.as_ref().filter(|_| gone) {
            let status = status::nomination_cancelled(self.status.clone(), message, self.at());
            self.become_(status, Purpose::Unplace);
        } else if self.is_stopped_before_admission(around) && gone {
            let message = "The queue is stopped";
            let status = status::nomination_cancelled(self.status.clone(), message, self.at());
            let status = status::pending(status, reasons::SUSPENDED, message, vec![], self.at());
            self.become_(status, Purpose::Suspend);
        }
    }

    fn is_stopped_before_admission(&self, around: &Surroundings) -> bool {
        around.stop != Stop::No && !crds::meta::is_true(&self.status.conditions, ADMITTED)
    }

    /// What kept it from queueing again is over.
    fn requeue(&mut self, around: &Surroundings) {
        let requeued = status::find(&self.status.conditions, REQUEUED);
        let Some(held) = requeued.filter(|one| one.status == "False" && !self.holds()) else {
            return;
        };
        let waits = self.status.requeue_state.as_ref().and_then(|one| one.requeue_at.as_ref());
        let stopped = |cluster_queue: bool| match around.stop {
            Stop::No => false,
            Stop::HoldClusterQueue | Stop::DrainClusterQueue => cluster_queue,
            Stop::HoldLocalQueue | Stop::DrainLocalQueue => !cluster_queue,
        };
        let reason = match held.reason.as_str() {
            reason if reason.starts_with(reasons::DEACTIVATED) => {
                (self.workload.spec.active != Some(false)).then_some(reasons::REACTIVATED)
            }
            reasons::CLUSTER_QUEUE_STOPPED => {
                (!stopped(true)).then_some(reasons::CLUSTER_QUEUE_RESTARTED)
            }
            reasons::LOCAL_QUEUE_STOPPED => {
                (!stopped(false)).then_some(reasons::LOCAL_QUEUE_RESTARTED)
            }
            _ => waits.is_none_or(|at| at.0 <= self.now).then_some(reasons::BACKOFF_FINISHED),
        };
        if let Some(reason) = reason {
            let status = status::requeued(self.status.clone(), reason, self.at());
            self.become_(status, Purpose::Requeue);
        }
    }

    /// Quota and all checks are admission.
    fn admit(&mut self) {
        let ready = self.status.admission_checks.iter().all(|check| check.state == "Ready");
        let admitted = crds::meta::is_true(&self.status.conditions, ADMITTED);
        if self.holds() && ready && !admitted && !self.is_evicted() {
            let status = status::admitted(self.status.clone(), self.at());
            self.become_(status, Purpose::Admit);
        }
    }
}
