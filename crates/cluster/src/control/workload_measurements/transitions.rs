//! What a change of a Workload measures: transitions of its conditions, from one observation to the next.

use std::time::Duration;

use crds::{
    meta::{Condition, is_true},
    names::{
        conditions::{ADMITTED, EVICTED, FINISHED, PODS_READY, QUOTA_RESERVED},
        reasons,
    },
    v1beta2::{Workload, WorkloadSchedulingStatsEviction},
};
use index::{
    WorkloadLabelRules,
    status::{find, find_true, queued_at},
};
use jiff::Timestamp;

use crate::control::{
    measurement::{EvictionLabels, Measurement, QueuesOfWorkload, WorkloadLabels},
    workloads::WorkloadChange,
};

impl QueuesOfWorkload {
    /// The ClusterQueue where a Workload holds quota, else the one where it is queued.
    pub(super) fn of(&self, workload: &Workload) -> String {
        let admission = workload.status.admission.as_ref();
        admission.map_or_else(|| self.cluster_queue.clone(), |one| one.cluster_queue.clone())
    }
}

/// Measures a change. Without an earlier observation nothing is measured.
pub(super) fn measure(
    change: &WorkloadChange,
    (queues, custom): (&QueuesOfWorkload, &WorkloadLabelRules),
    now: Timestamp,
) -> Vec<Measurement> {
    let (Some(before), Some(after)) = (&change.before, &change.after) else {
        return Vec::new();
    };
    let transition = WorkloadTransition { before, after, queues, custom, now };
    let measured = [
        transition.reservation(),
        transition.admission(),
        transition.readiness(),
        transition.eviction(),
        transition.release(),
        transition.end(),
    ];
    measured.into_iter().flatten().collect()
}

/// Two observations of a Workload.
struct WorkloadTransition<'a> {
    before: &'a Workload,
    after: &'a Workload,
    queues: &'a QueuesOfWorkload,
    custom: &'a WorkloadLabelRules,
    now: Timestamp,
}

impl WorkloadTransition<'_> {
    fn reservation(&self) -> Option<Measurement> {
        self.became_true(QUOTA_RESERVED)?;
        Some(Measurement::QuotaReserved(self.labels(self.after), self.since(queued_at(self.after))))
    }

    fn admission(&self) -> Option<Measurement> {
        self.became_true(ADMITTED)?;
        let has_checks = !self.after.status.admission_checks.is_empty();
        let reserved = time_of(self.after, QUOTA_RESERVED);
        Some(Measurement::Admitted {
            labels: self.labels(self.after),
            waited: self.since(queued_at(self.after)),
            // Without checks one write reserves and admits, with no time in between.
            checks: has_checks.then(|| self.since(reserved)),
        })
    }

    fn readiness(&self) -> Option<Measurement> {
        let ready = self.became_true(PODS_READY)?;
        // Pods that recovered were ready before.
        (ready.reason == reasons::STARTED).then(|| Measurement::Ready {
            labels: self.labels(self.after),
            waited: self.since(queued_at(self.after)),
            since_admission: self.since(time_of(self.after, ADMITTED)),
        })
    }

    /// The count of an eviction in `schedulingStats` says its reason and cause; the condition has both in one word.
    fn eviction(&self) -> Option<Measurement> {
        let counts = |workload: &Workload| -> Vec<WorkloadSchedulingStatsEviction> {
            let stats = workload.status.scheduling_stats.as_ref();
            stats.map(|stats| stats.evictions.clone()).unwrap_or_default()
        };
        let before = counts(self.before);
        let known = |one: &WorkloadSchedulingStatsEviction| {
            let same = |other: &&WorkloadSchedulingStatsEviction| {
                (&other.reason, &other.underlying_cause) == (&one.reason, &one.underlying_cause)
            };
            before.iter().find(same).map_or(0, |other| other.count)
        };
        let counted = counts(self.after).into_iter().find(|one| one.count > known(one))?;
        let ready = find_true(&self.before.status.conditions, PODS_READY);
        let ready_since = ready.and_then(Condition::transitioned_at);
        Some(Measurement::Evicted {
            labels: self.labels(self.before),
            first: counted.count == 1,
            eviction: EvictionLabels {
                reason: counted.reason,
                underlying_cause: counted.underlying_cause,
            },
            ready_for: ready_since.map(|at| self.since(Some(at))),
        })
    }

    fn release(&self) -> Option<Measurement> {
        let evicted = find(&self.after.status.conditions, EVICTED)?;
        let releases = self.before.has_quota_reservation() && !self.after.has_quota_reservation();
        (releases && evicted.status == "True").then(|| Measurement::QuotaReleased {
            // The release has removed the admission, and the ClusterQueue with it.
            labels: self.labels(self.before),
            reason: evicted.reason.clone(),
            took: self.since(evicted.transitioned_at()),
        })
    }

    fn end(&self) -> Option<Measurement> {
        self.became_true(FINISHED)?;
        let status = &self.after.status;
        let past = status.accumulated_past_execution_time_seconds.unwrap_or_default();
        let past = Duration::from_secs(u64::try_from(past).unwrap_or_default());
        let admitted = self.after.is_admitted();
        let last = admitted.then(|| self.since(time_of(self.after, ADMITTED)));
        let executed = last.map(|last| past + last).or((!past.is_zero()).then_some(past));
        Some(Measurement::Finished { labels: self.labels(self.after), executed })
    }

    fn labels(&self, workload: &Workload) -> WorkloadLabels {
        let class = workload.spec.priority_class_ref.as_ref();
        WorkloadLabels {
            cluster_queue: self.queues.of(workload),
            local_queue: self.queues.local_queue.clone(),
            priority_class: class.map(|one| one.name.clone()).unwrap_or_default(),
            custom: self.custom.values(workload),
        }
    }

    fn became_true(&self, condition: &str) -> Option<&Condition> {
        let after = find(&self.after.status.conditions, condition)?;
        (after.status == "True" && !is_true(&self.before.status.conditions, condition))
            .then_some(after)
    }

    fn since(&self, at: Option<Timestamp>) -> Duration {
        elapsed(at, self.now)
    }
}

/// The time since `at`. Zero if there is none, or if it is later: another clock wrote it.
pub(super) fn elapsed(at: Option<Timestamp>, now: Timestamp) -> Duration {
    at.and_then(|at| Duration::try_from(now.duration_since(at)).ok()).unwrap_or_default()
}

fn time_of(workload: &Workload, condition: &str) -> Option<Timestamp> {
    find(&workload.status.conditions, condition)?.transitioned_at()
}
