//! Events about a Workload: what a status write changes, published when the write is done (docs/reference/kueue.md §6.3).

use crds::{
    meta::Condition,
    names::{
        THIN_QUEUE,
        annotations::ADMISSION_GATED_BY,
        conditions::{
            ADMITTED, DEACTIVATION_TARGET, EVICTED, FINISHED, PODS_FAILING, PREEMPTED,
            QUOTA_RESERVED,
        },
        gates::CONCURRENT_ADMISSION,
        reasons, reporters,
    },
    v1beta2::{Workload, WorkloadStatus},
};
use index::{
    GATED_BY,
    status::{find, find_true, for_condition, queued_at},
};
use jiff::Timestamp;
use provisioning::CheckUpdate;
use runtime::events::{EventRecord, EventType, Regarding};
use variants::family::quoted;

use crate::control::measurement::{Measurement, WorkerLabels, WorkerMeasurement};

use super::transition::{PendingTransitions, Preemption};

/// A status write of a Workload.
pub(super) struct StatusChange<'a> {
    pub(super) workload: &'a Workload,
    pub(super) after: &'a WorkloadStatus,
    /// The transitions that the write carries.
    pub(super) transitions: &'a PendingTransitions,
    /// The states of provisioning checks that it carries.
    pub(super) check_updates: &'a [CheckUpdate],
    pub(super) now: Timestamp,
}

impl StatusChange<'_> {
    /// The Events that follow once the status is written.
    pub(super) fn announcements(&self) -> Vec<EventRecord> {
        let groups = [
            self.gates(),
            self.opened_gate().into_iter().collect(),
            self.admission(),
            self.retry().into_iter().collect(),
            self.provisioning(),
            self.eviction(),
            self.deactivation().into_iter().collect(),
            self.failing_pods().into_iter().collect(),
            self.pending().into_iter().collect(),
            self.replacement().into_iter().collect(),
        ];
        groups.into_iter().flatten().collect()
    }

    /// What is counted once the status is written.
    pub(super) fn measurements(&self) -> Vec<Measurement> {
        let counted = [self.preemption(), self.admission_on_worker(), self.eviction_on_worker()];
        counted.into_iter().flatten().collect()
    }

    /// The preemption that is counted once the status is written. Its preemptor stands in no condition.
    fn preemption(&self) -> Option<Measurement> {
        // A deactivation overrides a requested preemption. Then the request is still pending, and nothing was
        // preempted.
        let preempted = self.became_true(PREEMPTED)?;
        let preemption = self.transitions.eviction()?.preemption.as_ref()?;
        Some(Measurement::Preempted {
            preempting_cluster_queue: preemption.queue.clone(),
            reason: preempted.reason.clone(),
        })
    }

    /// The admission on a worker that is counted once the status is written.
    fn admission_on_worker(&self) -> Option<Measurement> {
        let cluster = self.recorded_cluster()?.to_owned();
        let queue = self.after.admission.as_ref().map(|one| one.cluster_queue.clone());
        let cluster_queue = queue.unwrap_or_default();
        Some(Measurement::Worker(WorkerMeasurement::Admitted(WorkerLabels {
            cluster_queue,
            cluster,
        })))
    }

    /// The eviction on a worker that is counted once the status is written.
    fn eviction_on_worker(&self) -> Option<Measurement> {
        let (cluster, reason) = self.transitions.check_retry()?.evicted.clone()?;
        let queue = self.workload.status.admission.as_ref().map(|one| one.cluster_queue.clone());
        let labels =
            WorkerLabels { cluster_queue: queue.unwrap_or_default(), cluster: cluster.into() };
        Some(Measurement::Worker(WorkerMeasurement::Evicted(
            labels,
            reason_label(&reason).to_owned(),
        )))
    }

    /// The cluster that is recorded by the write.
    fn recorded_cluster(&self) -> Option<&str> {
        let cluster = self.after.cluster_name.as_deref();
        cluster.filter(|cluster| self.workload.status.cluster_name.as_deref() != Some(*cluster))
    }

    /// MultiKueue asks for another dispatch. Kueue reports what a worker evicted and what differs from its job; a worker that
    /// refuses the job, or does not start it, is reported as well. The check itself may show the eviction already.
    fn retry(&self) -> Option<EventRecord> {
        let message = &self.transitions.check_retry()?.message;
        let (reporter, reason) = (reporters::WORKLOAD_CONTROLLER, reasons::MULTI_KUEUE);
        let failed = ["Remote workload on worker cluster", "Worker cluster"];
        if message.starts_with("Workload evicted on worker cluster") {
            return Some(self.normal(reporter, reason, message.clone()));
        }
        let fails = failed.iter().any(|start| message.starts_with(start));
        fails.then(|| self.warning(reporter, reason, message.clone()))
    }

    /// States of provisioning checks that differ, and what keeps a Workload from asking for room. A Retry stands in no status: the
    /// eviction of the same write resets it.
    fn provisioning(&self) -> Vec<EventRecord> {
        let known = &self.workload.status.admission_checks;
        let announced = self.check_updates.iter().filter_map(|update| {
            let before = known.iter().find(|one| one.name == update.check)?;
            if update.fails {
                let note = update.message.clone();
                return Some(self.warning(reporters::PROVISIONING, reasons::FAILED_CREATE, note));
            }
            let message = match update.message.as_str() {
                "" => String::new(),
                message => format!(" with message: {message}"),
            };
            let (check, from, to) = (&update.check, &before.state, update.state);
            let note =
                format!("Admission check {check} updated state from {from} to {to}{message}");
            let reason = reasons::ADMISSION_CHECK_UPDATED;
            (from != to).then(|| self.normal(reporters::PROVISIONING, reason, note))
        });
        announced.collect()
    }

    fn admission(&self) -> Vec<EventRecord> {
        let mut events = Vec::new();
        let queue = self.after.admission.as_ref().map_or("", |one| one.cluster_queue.as_str());
        // The queue of an agent is in no API. Its manager reports the admission on the worker. That of a parent is reported about
        // its variant.
        if queue == THIN_QUEUE || self.workload.has_variants() {
            return events;
        }
        let reserved = self.became_true(QUOTA_RESERVED).is_some();
        if reserved {
            let waited = self.seconds_since(queued_at(self.workload));
            let considered = self.transitions.reservation().map(|one| one.considered.as_str());
            let considered = match considered.unwrap_or_default() {
                "" => String::new(),
                flavors => format!("; Flavors considered: {flavors}"),
            };
            let note = format!(
                "Quota reserved in ClusterQueue {queue}, wait time since queued was {waited}s{considered}"
            );
            events.push(self.normal(reporters::SCHEDULER, reasons::QUOTA_RESERVED, note));
            events.extend(self.chosen_cluster());
        }
        if let Some(cluster) = self.recorded_cluster() {
            let note = format!("The workload was admitted on \"{cluster}\"");
            let reporter = reporters::WORKLOAD_CONTROLLER;
            events.push(self.normal(reporter, reasons::MULTI_KUEUE, note));
        }
        if self.became_true(ADMITTED).is_some() {
            // Without checks the scheduler admits in the write of the reservation, and after a second pass in that of the topology.
            let by_scheduler = reserved || self.transitions.topology().is_some();
            let reporter =
                if by_scheduler { reporters::SCHEDULER } else { reporters::WORKLOAD_CONTROLLER };
            let reserved_at = find(&self.after.conditions, QUOTA_RESERVED);
            let waited = self.seconds_since(reserved_at.and_then(Condition::transitioned_at));
            let note = format!(
                "Admitted by ClusterQueue {queue}, wait time since reservation was {waited}s"
            );
            events.push(self.normal(reporter, reasons::ADMITTED, note));
        }
        events
    }

    /// The cluster that was chosen with a run time in view. Without one, the nominated cluster in the status says everything.
    fn chosen_cluster(&self) -> Option<EventRecord> {
        let reservation = self.transitions.reservation()?;
        let (cluster, run_time) = (reservation.cluster.as_deref()?, reservation.run_time?);
        let note = format!(
            "Worker cluster {cluster} was chosen; the workload is taken to run for {run_time}"
        );
        Some(self.normal(reporters::SCHEDULER, reasons::CLUSTER_CHOSEN, note))
    }

    fn eviction(&self) -> Vec<EventRecord> {
        // A pending Workload that is deactivated loses nothing. One that is deactivated during its eviction is evicted once, for
        // another reason from then on.
        let loses_quota = self.workload.has_quota_reservation() && !self.workload.is_evicted();
        let Some(evicted) = self.became_true(EVICTED).filter(|_| loses_quota) else {
            return Vec::new();
        };
        // Upstream's scheduler reports its own preemptions; the Workload controller reports every other eviction
        // (docs/reference/kueue.md §6.3).
        let reporter = match evicted.reason.as_str() {
            reasons::PREEMPTED => reporters::SCHEDULER,
            _ => reporters::WORKLOAD_CONTROLLER,
        };
        let reason = format!("EvictedDueTo{}", evicted.reason);
        let mut events = vec![self.normal(reporter, &reason, evicted.message.clone())];
        let request = self.transitions.eviction();
        let preemption = request.and_then(|one| one.preemption.as_ref());
        if let (Some(preempted), Some(preemption)) = (self.became_true(PREEMPTED), preemption) {
            let note = format!("{}; {}", preempted.message, preemption.priorities);
            events.push(self.normal(reporters::SCHEDULER, reasons::PREEMPTED, note));
            events.push(self.preempted_by(preemption));
        }
        events
    }

    /// The Event about the preemptor.
    fn preempted_by(&self, preemption: &Preemption) -> EventRecord {
        let metadata = &self.workload.metadata;
        let text = |one: &Option<String>| one.clone().unwrap_or_default();
        let queue = self.workload.status.admission.as_ref();
        let note = format!(
            "Preempted workload {}/{} (UID: {}) in ClusterQueue {}; {}",
            text(&metadata.namespace),
            text(&metadata.name),
            text(&metadata.uid),
            queue.map_or("", |one| one.cluster_queue.as_str()),
            preemption.priorities,
        );
        let regarding = preemption.preemptor.clone();
        let event = self.normal(reporters::SCHEDULER, reasons::PREEMPTED_WORKLOAD, note);
        EventRecord { regarding, ..event }
    }

    fn deactivation(&self) -> Option<EventRecord> {
        let target = self.became_true(DEACTIVATION_TARGET)?;
        let limit = self.workload.spec.maximum_execution_time_seconds.unwrap_or_default();
        let (reason, note) = match target.reason.as_str() {
            reasons::MAXIMUM_EXECUTION_TIME_EXCEEDED => {
                (target.reason.as_str(), format!("The maximum execution time ({limit}s) exceeded"))
            }
            reasons::ADMISSION_CHECK => {
                let note = format!("Deactivated due to {}", target.message);
                (reasons::ADMISSION_CHECK_REJECTED, note)
            }
            // Its eviction alone is reported.
            _ => return None,
        };
        Some(self.warning(reporters::WORKLOAD_CONTROLLER, reason, note))
    }

    /// Pods that cannot start. The manager reports those of its workers; their Events are on the worker.
    fn failing_pods(&self) -> Option<EventRecord> {
        let failing = self.became_true(PODS_FAILING)?;
        let note = format!("{}: {}", failing.reason, failing.message);
        Some(self.warning(reporters::WORKLOAD_CONTROLLER, reasons::PODS_FAILING, note))
    }

    /// The reason that a cycle gave. Other reasons to be pending are those of the Workload controller, without Events.
    fn pending(&self) -> Option<EventRecord> {
        let after = find(&self.after.conditions, QUOTA_RESERVED)?;
        let before = find(&self.workload.status.conditions, QUOTA_RESERVED);
        let same = before.is_some_and(|one| {
            (&one.status, &one.reason, &one.message)
                == (&after.status, &after.reason, &after.message)
        });
        let reported = self.transitions.pending_message().filter(|one| one.by_cycle)?;
        // The reason may be written as its legacy form.
        if same || after.status != "False" || after.message != for_condition(&reported.message) {
            return None;
        }
        Some(self.warning(reporters::SCHEDULER, &after.reason, after.message.clone()))
    }

    /// Admission gates that are reported for the first time, or are gone.
    fn gates(&self) -> Vec<EventRecord> {
        let gated = |all: &[Condition]| {
            find(all, QUOTA_RESERVED).is_some_and(|one| one.message.starts_with(GATED_BY))
        };
        let (before, after) =
            (gated(&self.workload.status.conditions), gated(&self.after.conditions));
        let annotations = self.workload.metadata.annotations.as_ref();
        let gates = annotations.and_then(|all| all.get(ADMISSION_GATED_BY));
        let gates = gates.map(String::as_str).unwrap_or_default();
        let (reason, note) = match (before, after) {
            (false, true) => {
                (reasons::ADMISSION_GATED, format!("Workload admission is gated by: {gates}"))
            }
            // A gated Workload that is deactivated loses the message as well, but its gates are not cleared.
            (true, false) if gates.is_empty() => {
                let note = "Admission gate cleared, workload is now admissible".to_owned();
                (reasons::ADMISSION_GATE_CLEARED, note)
            }
            _ => return Vec::new(),
        };
        vec![self.normal(reporters::WORKLOAD_CONTROLLER, reason, note)]
    }

    /// The preemption gate of a variant that was opened.
    fn opened_gate(&self) -> Option<EventRecord> {
        let is_open = |status: &WorkloadStatus| status.open_gate(CONCURRENT_ADMISSION).is_some();
        let opens = !is_open(&self.workload.status) && is_open(self.after);
        let note = format!("Opened preemption gate for variant workload {}", quoted(self.workload));
        let reporter = reporters::CONCURRENT_ADMISSION;
        opens.then(|| self.normal(reporter, reasons::PREEMPTION_UNGATED_VARIANT, note))
    }

    fn replacement(&self) -> Option<EventRecord> {
        let finished = self.became_true(FINISHED)?;
        let replaced = finished.reason == reasons::WORKLOAD_SLICE_REPLACED;
        let event = self.normal(reporters::SCHEDULER, &finished.reason, finished.message.clone());
        replaced.then(|| EventRecord { action: "Replaced".to_owned(), ..event })
    }

    /// The condition, if it is true after the write and was not, or for another reason.
    fn became_true(&self, condition: &str) -> Option<&Condition> {
        let after = find_true(&self.after.conditions, condition)?;
        let before = find(&self.workload.status.conditions, condition);
        let known = before.is_some_and(|one| one.status == "True" && one.reason == after.reason);
        (!known).then_some(after)
    }

    /// Whole seconds up to now, rounded.
    fn seconds_since(&self, since: Option<Timestamp>) -> i64 {
        let milliseconds = since.map_or(0, |at| self.now.duration_since(at).as_millis());
        i64::try_from((milliseconds + 500) / 1000).unwrap_or(0).max(0)
    }

    fn normal(&self, reporter: &str, reason: &str, note: String) -> EventRecord {
        EventRecord {
            regarding: Regarding::of(self.workload),
            event_type: EventType::Normal,
            action: reason.to_owned(),
            reason: reason.to_owned(),
            note,
            controller: Some(reporter.to_owned()),
        }
    }

    fn warning(&self, reporter: &str, reason: &str, note: String) -> EventRecord {
        EventRecord { event_type: EventType::Warning, ..self.normal(reporter, reason, note) }
    }
}

/// The label of a reason that a worker has written: any unknown one is `Other`, so that the number of series is bounded.
fn reason_label(reason: &str) -> &str {
    let caused = format!("{}DueTo", reasons::DEACTIVATED);
    let cause = reason.strip_prefix(&caused).unwrap_or(reason);
    if reasons::EVICTIONS.contains(&cause) { reason } else { reasons::OTHER }
}
