//! A Workload as it is kept: the object, what is still to be written about it, and where its copies are.

use crds::{
    meta::is_true,
    names::{
        conditions::{ADMITTED, FINISHED, QUOTA_RESERVED},
        labels::JOB_UID,
    },
    v1beta2::{Admission, Workload},
};
use engine::{Time, ids::WorkloadId};
use jiff::Timestamp;

use super::{held::Held, remote::Told};

/// See the module.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) held: Held<Workload>,
    /// Its number in the engine.
    pub(crate) id: WorkloadId,
    pub(crate) wants: Wants,
    pub(crate) trip: Trip,
}

/// What was decided and does not show in the object yet.
#[derive(Debug, Default)]
pub(crate) struct Wants {
    /// Quota is reserved in the engine.
    pub(crate) reserve: Option<Reserve>,
    /// It does not get quota for now.
    pub(crate) pending: Option<Pending>,
    /// It must go.
    pub(crate) evict: Option<Evict>,
    /// Its pods are gone, so its quota can go.
    pub(crate) release: bool,
    /// Its reservation is given up, nothing having run.
    pub(crate) unplace: Option<String>,
    /// This worker has admitted it.
    pub(crate) ready: Option<Box<str>>,
    /// The dispatching check asks for another attempt.
    pub(crate) retry: Option<String>,
    /// The dispatching check cannot be passed.
    pub(crate) reject: Option<String>,
    /// It is over.
    pub(crate) finish: Option<(String, String)>,
}

/// A reservation.
#[derive(Debug)]
pub(crate) struct Reserve {
    pub(crate) admission: Admission,
    pub(crate) checks: Vec<String>,
    /// The worker that has room, where it is dispatched.
    pub(crate) cluster: Option<Box<str>>,
}

/// Why it waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) reason: String,
    pub(crate) message: String,
    /// It would have to preempt, and its preemption gates are closed.
    pub(crate) gated: bool,
    /// Not written before this time: most that wait do not wait for long.
    pub(crate) not_before: Timestamp,
}

/// Why it must go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Evict {
    pub(crate) reason: &'static str,
    pub(crate) cause: String,
    pub(crate) message: String,
    /// The reason of the condition `Preempted`, if that is why.
    pub(crate) preempted: Option<engine::PreemptionReason>,
}

/// What is remembered of a Workload's dispatch. All of it may be lost: after a restart the cautious values hold.
#[derive(Debug)]
pub(crate) struct Trip {
    /// A create may have been sent under the present epoch.
    pub(crate) sent: bool,
    /// The epoch was raised for the withdrawal that is under way.
    pub(crate) raised: bool,
    /// Nothing of it runs anywhere.
    pub(crate) withdrawn: bool,
    /// When its job was told how the copy stands.
    pub(crate) told: Told,
    /// Since when the present nomination stands, as far as is known.
    pub(crate) nominated_at: Timestamp,
}

impl Trip {
    pub(crate) fn unknown(now: Timestamp) -> Self {
        Self {
            sent: true,
            raised: false,
            withdrawn: false,
            told: Told::default(),
            nominated_at: now,
        }
    }

    pub(crate) fn fresh(now: Timestamp) -> Self {
        Self {
            sent: false,
            raised: false,
            withdrawn: false,
            told: Told::default(),
            nominated_at: now,
        }
    }
}

impl Record {
    pub(crate) fn new(object: Workload, id: WorkloadId, now: Timestamp) -> Self {
        Self { held: Held::new(object), id, wants: Wants::default(), trip: Trip::unknown(now) }
    }

    pub(crate) fn object(&self) -> &Workload {
        &self.held.object
    }

    /// The uid of the Workload and that of its job, as messages about it name them.
    pub(crate) fn uids(&self) -> (&str, &str) {
        let metadata = &self.object().metadata;
        let job = metadata.labels.as_ref().and_then(|labels| labels.get(JOB_UID));
        (metadata.uid.as_deref().unwrap_or_default(), job.map_or("", String::as_str))
    }

    /// What the engine assumed is not going to be written.
    pub(crate) fn drops_reservation(&mut self) -> bool {
        self.wants.reserve.take().is_some()
    }
}

/// Whether a condition of the Workload is true.
pub(crate) fn is(workload: &Workload, condition: &str) -> bool {
    is_true(&workload.status.conditions, condition)
}

/// Whether it holds quota, as far as the API knows.
pub(crate) fn has_quota(workload: &Workload) -> bool {
    is(workload, QUOTA_RESERVED) && !is(workload, FINISHED)
}

/// From when its run time counts: from its admission, else from its reservation. Long ago if it has neither.
pub(crate) fn started(workload: &Workload) -> Time {
    let since = |condition| {
        let held = ::index::status::find(&workload.status.conditions, condition);
        held.filter(|one| one.status == "True")?.last_transition_time.as_ref()
    };
    let since = since(ADMITTED).or_else(|| since(QUOTA_RESERVED));
    since.map(|at| super::time(at.0)).unwrap_or_default()
}
