//! What a measurement changes.

use std::{collections::BTreeSet, time::Duration};

use cluster::control::measurement::{
    ClusterQueueGauges, CohortGauges, EvictionLabels, FlavorResourceGauge, LabelledNumbers,
    LocalQueueGauges, LocalQueueName, Measurement, QueueNumbers, UnadmittedLabels, WorkerLabels,
    WorkerMeasurement, WorkloadLabels,
};

use config::SourceKind;

use super::{
    MetricsSettings,
    custom_labels::{CustomLabels, counts_workloads},
    families::{self as f, Family},
    series::{LabelValues, Series},
    totals::{RemovedSeries, Totals, UnadmittedReason},
};

/// Changes series.
pub(super) struct Recording<'a> {
    pub(super) series: &'a mut Series,
    pub(super) totals: &'a mut Totals,
    pub(super) custom: &'a mut CustomLabels,
    pub(super) settings: &'a MetricsSettings,
}

/// A family of ClusterQueues and its counterpart of LocalQueues.
type QueueFamilies = (&'static Family, &'static Family);

/// A family and what it shows of a flavor and resource.
type FlavorResourceFamily = (&'static Family, fn(&FlavorResourceGauge) -> f64);

/// Numbers of Cohorts. Families of ClusterQueues have the label `cohort` as well.
const NUMBERS_OF_COHORT: &[&Family] =
    &[&f::COHORT_INFO, &f::COHORT_QUOTA, &f::COHORT_RESERVED, &f::COHORT_WEIGHTED_SHARE];

impl Recording<'_> {
    /// Records the measurements of a decision that took so long. Its cycles count with equal parts of that time.
    pub(super) fn record(&mut self, measurements: Vec<Measurement>, took: Duration) {
        let is_attempt = |one: &&Measurement| matches!(one, Measurement::Attempt { .. });
        let attempts = measurements.iter().filter(is_attempt).count();
        let each = took.as_secs_f64() / attempts.max(1) as f64;
        for measurement in measurements {
            self.record_one(measurement, each);
        }
    }

    fn record_one(&mut self, measurement: Measurement, attempt_took: f64) {
        match measurement {
            Measurement::Attempt { admitted } => self.attempt(admitted, attempt_took),
            Measurement::PreemptionSkips { cluster_queue, count } => {
                self.series.set(&f::PREEMPTION_SKIPS, vec![cluster_queue], count as f64);
            }
            Measurement::TargetsRecomputed { cluster_queue, result } => {
                self.series.count(&f::TARGETS_RECOMPUTED, values([&cluster_queue, result]));
            }
            Measurement::QuotaReserved(labels, waited) => self.quota_reserved(&labels, waited),
            Measurement::Admitted { labels, waited, checks } => {
                self.admitted(&labels, waited, checks);
            }
            Measurement::Ready { labels, waited, since_admission } => {
                self.ready(&labels, waited, since_admission);
            }
            Measurement::Evicted { labels, eviction, first, ready_for } => {
                self.evicted(&labels, eviction, first, ready_for);
            }
            Measurement::QuotaReleased { labels, reason, took } => {
                let labels = vec![labels.cluster_queue, reason];
                self.series.observe(&f::EVICTION_LATENCY, labels, took.as_secs_f64());
            }
            Measurement::Preempted { preempting_cluster_queue, reason } => {
                self.series.count(&f::PREEMPTED, vec![preempting_cluster_queue, reason]);
            }
            Measurement::Finished { labels, executed } => {
                self.execution_finished(&labels, executed);
            }
            Measurement::GateRemoved { gate, cluster_queue, is_group, took } => {
                let labels =
                    values([gate, &cluster_queue, if is_group { "true" } else { "false" }]);
                self.series.observe(&f::GATE_REMOVAL, labels, took.as_secs_f64());
            }
            Measurement::WorkloadCreated { .. } if !self.settings.creation_latency => {}
            Measurement::WorkloadCreated { job_kind, took } => {
                self.series.observe(&f::WORKLOAD_CREATION, vec![job_kind], took.as_secs_f64());
            }
            Measurement::FinishedWorkloads { cluster_queue, local_queue, count } => {
                self.finished(cluster_queue, local_queue, count);
            }
            Measurement::UnadmittedWorkloads(labels, count) => self.unadmitted(labels, count),
            Measurement::DispatchTook { cluster_queue, took } => {
                self.series.observe(&f::DISPATCH_TIME, vec![cluster_queue], took.as_secs_f64());
            }
            Measurement::Worker(measurement) => self.worker(measurement),
            Measurement::IntegrationUnavailable { framework, reason, unavailable } => {
                self.integration(&framework, reason, unavailable);
            }
            Measurement::ClusterQueue(queue, local_queues) => {
                self.cluster_queue(&queue, &local_queues);
            }
            Measurement::ClusterQueueGone(name, local_queues) => {
                self.cluster_queue_gone(name, &local_queues);
            }
            Measurement::Cohort(cohort) => self.observed_cohort(&cohort),
            Measurement::CohortGone(name) => self.removed_cohort(&name),
        }
    }

    fn attempt(&mut self, admitted: bool, took: f64) {
        let result = if admitted { "success" } else { "inadmissible" };
        self.series.count(&f::ATTEMPTS, values([result]));
        self.series.observe(&f::ATTEMPT_DURATION, values([result]), took);
    }

    fn integration(&mut self, framework: &str, reason: &str, unavailable: bool) {
        let family = &f::INTEGRATION_UNAVAILABLE;
        if unavailable {
            self.series.set(family, values([framework, reason]), 1.0);
        } else {
            self.series.remove_from(family, &[("framework", framework)]);
        }
    }
}

/// Worker clusters.
impl Recording<'_> {
    fn worker(&mut self, measurement: WorkerMeasurement) {
        match measurement {
            WorkerMeasurement::Dispatched(labels) => {
                self.series.count(&f::DISPATCHED, of_worker(labels));
            }
            WorkerMeasurement::Admitted(labels) => {
                self.series.count(&f::ADMITTED_ON_WORKER, of_worker(labels));
            }
            WorkerMeasurement::Evicted(labels, reason) => {
                let labels = [of_worker(labels), vec![reason]].concat();
                self.series.count(&f::EVICTED_ON_WORKER, labels);
            }
            WorkerMeasurement::Rebalanced(labels) => {
                self.series.count(&f::REBALANCED, of_worker(labels));
            }
            WorkerMeasurement::Active { cluster, active } => {
                let is = f64::from(u8::from(active));
                self.series.set(&f::WORKER_ACTIVE, vec![cluster], is);
            }
            WorkerMeasurement::Status { labels, active } => self.worker_status(&labels, active),
            WorkerMeasurement::Reported { cluster, at } => {
                let seconds = at.as_millisecond() as f64 / 1000.0;
                self.series.set(&f::WORKER_REPORTED, vec![cluster], seconds);
            }
            WorkerMeasurement::Disputes { cluster, workloads } => {
                self.series.set(&f::WORKER_DISPUTES, vec![cluster], workloads as f64);
            }
            // What was dispatched there stays counted with its ClusterQueue.
            WorkerMeasurement::Gone(cluster) => {
                f::WORKERS
                    .iter()
                    .for_each(|family| self.series.remove_from(family, &[("cluster", &cluster)]));
            }
        }
    }
}

/// Transitions of Workloads.
impl Recording<'_> {
    fn quota_reserved(&mut self, labels: &WorkloadLabels, waited: Duration) {
        self.count((&f::QUOTA_RESERVED, &f::LQ_QUOTA_RESERVED), labels);
        self.observe((&f::QUOTA_RESERVED_WAIT, &f::LQ_QUOTA_RESERVED_WAIT), labels, waited);
    }

    fn admitted(&mut self, labels: &WorkloadLabels, waited: Duration, checks: Option<Duration>) {
        self.count((&f::ADMITTED, &f::LQ_ADMITTED), labels);
        self.observe((&f::ADMISSION_WAIT, &f::LQ_ADMISSION_WAIT), labels, waited);
        if let Some(checks) = checks {
            self.observe((&f::CHECKS_WAIT, &f::LQ_CHECKS_WAIT), labels, checks);
        }
        let cohorts = self.totals.cohorts_of(&labels.cluster_queue);
        for cohort in cohorts.iter().filter(|_| self.settings.cohorts) {
            let labels = vec![cohort.clone(), labels.priority_class.clone()];
            self.series.count(&f::COHORT_ADMITTED, labels);
        }
    }

    fn ready(&mut self, labels: &WorkloadLabels, waited: Duration, since_admission: Duration) {
        self.observe((&f::READY_WAIT, &f::LQ_READY_WAIT), labels, waited);
        let pair = (&f::ADMITTED_UNTIL_READY, &f::LQ_ADMITTED_UNTIL_READY);
        self.observe(pair, labels, since_admission);
    }

    fn execution_finished(&mut self, labels: &WorkloadLabels, executed: Option<Duration>) {
        self.count((&f::FINISHED, &f::LQ_FINISHED), labels);
        if let Some(executed) = executed {
            self.observe((&f::EXECUTION, &f::LQ_EXECUTION), labels, executed);
        }
    }

    fn count(&mut self, (own, local): QueueFamilies, labels: &WorkloadLabels) {
        self.series.count(own, of_cluster_queue(labels));
        if self.totals.has_series(&labels.local_queue) {
            self.series.count(local, with_workload_labels(local, labels));
        }
    }

    fn observe(&mut self, (own, local): QueueFamilies, labels: &WorkloadLabels, took: Duration) {
        self.series.observe(own, of_cluster_queue(labels), took.as_secs_f64());
        if self.totals.has_series(&labels.local_queue) {
            self.series.observe(local, with_workload_labels(local, labels), took.as_secs_f64());
        }
    }

    fn evicted(
        &mut self,
        labels: &WorkloadLabels,
        eviction: EvictionLabels,
        first: bool,
        ready_for: Option<Duration>,
    ) {
        let EvictionLabels { reason, underlying_cause } = eviction;
        let with = |mut labels: LabelValues| {
            labels.extend([reason.clone(), underlying_cause.clone()]);
            labels
        };
        self.series.count(&f::EVICTED, with(of_cluster_queue(labels)));
        if first {
            self.series.count(&f::EVICTED_ONCE, with(of_cluster_queue(labels)));
        }
        if self.totals.has_series(&labels.local_queue) {
            self.series.count(&f::LQ_EVICTED, with(of_local_queue(labels)));
        }
        if let Some(ready_for) = ready_for {
            let labels = with(vec![labels.cluster_queue.clone()]);
            self.series.observe(&f::READY_TO_EVICTED, labels, ready_for.as_secs_f64());
        }
    }
}

/// Numbers.
impl Recording<'_> {
    fn observed_cohort(&mut self, cohort: &CohortGauges) {
        self.custom.observe(SourceKind::Cohort, cohort.name.clone(), &cohort.metadata);
        if cohort.declared {
            self.totals.declare_cohort(&cohort.name);
        }
        if self.settings.cohorts {
            self.cohort(cohort);
        }
    }

    fn removed_cohort(&mut self, name: &str) {
        // ClusterQueues may remain below it, and with them its other series.
        self.series.remove_from(&f::COHORT_INFO, &[("cohort", name)]);
        if self.totals.remove_cohort(name) {
            self.cohort_gone(name);
        }
    }

    fn finished(&mut self, cluster_queue: String, local_queue: LocalQueueName, count: usize) {
        let total = self.totals.set_finished(&cluster_queue, &local_queue, count);
        // Its series begin with the first measurement of the queue itself.
        if !self.totals.has_queue(&cluster_queue) {
            return;
        }
        self.series.set(&f::FINISHED_NOW, vec![cluster_queue], total as f64);
        if self.totals.has_series(&local_queue) {
            let (namespace, name) = local_queue;
            self.series.set(&f::LQ_FINISHED_NOW, vec![namespace, name], count as f64);
        }
    }

    fn unadmitted(&mut self, labels: UnadmittedLabels, count: usize) {
        let total = self.totals.set_unadmitted(&labels, count);
        let UnadmittedLabels { cluster_queue, local_queue, reason, underlying_cause } = labels;
        if !self.settings.unadmitted || !self.totals.has_queue(&cluster_queue) {
            return;
        }
        let reason = (cluster_queue, reason, underlying_cause);
        self.show_unadmitted(reason.clone(), total);
        if self.totals.has_series(&local_queue) {
            self.show_unadmitted_of(&local_queue, reason, count);
        }
    }

    /// A reason that no Workload has any more is no series.
    fn show_unadmitted(&mut self, (queue, reason, cause): UnadmittedReason, count: usize) {
        let labels =
            [("cluster_queue", &*queue), ("reason", &*reason), ("underlying_cause", &*cause)];
        match count {
            0 => self.series.remove_from(&f::UNADMITTED, &labels),
            _ => {
                let labels = values(labels.map(|(_, value)| value));
                self.series.set(&f::UNADMITTED, labels, count as f64);
            }
        }
    }

    fn show_unadmitted_of(
        &mut self,
        (namespace, name): &LocalQueueName,
        (queue, reason, cause): UnadmittedReason,
        count: usize,
    ) {
        let labels = [
            ("namespace", &**namespace),
            ("name", &**name),
            ("cluster_queue", &*queue),
            ("reason", &*reason),
            ("underlying_cause", &*cause),
        ];
        match count {
            0 => self.series.remove_from(&f::LQ_UNADMITTED, &labels),
            _ => {
                let labels = values(labels.map(|(_, value)| value));
                self.series.set(&f::LQ_UNADMITTED, labels, count as f64);
            }
        }
    }

    /// Numbers of Workloads that were measured before the queue was, as at a start.
    fn workloads_of_queue(&mut self, queue: &str) {
        let finished = self.totals.finished(queue) as f64;
        self.series.set(&f::FINISHED_NOW, values([queue]), finished);
        for (reason, count) in self.totals.unadmitted(queue) {
            if self.settings.unadmitted {
                self.show_unadmitted(reason, count);
            }
        }
    }

    fn workloads_of_local_queue(&mut self, own: &LocalQueueName, queue: &str) {
        if let Some(count) = self.totals.finished_of(queue, own) {
            let labels = vec![own.0.clone(), own.1.clone()];
            self.series.set(&f::LQ_FINISHED_NOW, labels, count as f64);
        }
        for (reason, count) in self.totals.unadmitted_of(queue, own) {
            if self.settings.unadmitted {
                self.show_unadmitted_of(own, reason, count);
            }
        }
    }

    fn cluster_queue(&mut self, queue: &ClusterQueueGauges, local_queues: &[LocalQueueGauges]) {
        let name = queue.name.as_str();
        self.custom.observe(SourceKind::ClusterQueue, queue.name.clone(), &queue.metadata);
        let cohort = queue.cohorts.first().map(String::as_str).unwrap_or_default();
        let root = queue.cohorts.last().map(String::as_str).unwrap_or_default();
        self.numbers(&[&f::PENDING, &f::RESERVING, &f::ADMITTED_ACTIVE], &[name], &queue.workloads);
        let (active, inadmissible) = queue.classes;
        let classes = [("active", active), ("inadmissible", inadmissible)];
        for (status, classes) in classes.into_iter().filter(|_| self.settings.equivalence_classes) {
            self.series.set(&f::PENDING_HASHES, values([name, status]), classes as f64);
        }
        for status in ["pending", "active", "terminating"] {
            let is = f64::from(u8::from(status == queue.status));
            self.series.set(&f::STATUS, values([name, status]), is);
        }
        // Another parent is another series.
        let own = [("cluster_queue", name)];
        self.series.remove_from(&f::INFO, &own);
        self.series.set(&f::INFO, values([name, cohort, root]), 1.0);
        self.series.remove_from(&f::WEIGHTED_SHARE, &own);
        if let Some(share) = queue.weighted_share {
            self.series.set(&f::WEIGHTED_SHARE, values([name, cohort]), shown_share(share));
        }
        if self.settings.cluster_queue_resources {
            self.quotas(queue, cohort);
            self.series.remove_from(&f::REQUESTED, &own);
            for (resource, amount) in &queue.requested {
                self.series.set(&f::REQUESTED, values([name, resource]), *amount);
            }
        }
        let local_queues = self.selected(local_queues);
        let removed = self.totals.set_queue(queue, names_of(&local_queues));
        self.workloads_of_queue(name);
        self.remove(removed);
        local_queues.into_iter().for_each(|one| self.local_queue(one, name));
    }

    fn worker_status(&mut self, labels: &WorkerLabels, active: Option<&str>) {
        let WorkerLabels { cluster_queue, cluster } = labels;
        let Some(active) = active else {
            let place = [("cluster_queue", cluster_queue.as_str()), ("cluster", cluster)];
            return self.series.remove_from(&f::WORKER_STATUS, &place);
        };
        for status in ["True", "False", "Unknown"] {
            let is = f64::from(u8::from(status == active));
            self.series.set(&f::WORKER_STATUS, values([cluster_queue, cluster, status]), is);
        }
    }

    /// LocalQueues that still name the ClusterQueue keep their series.
    fn cluster_queue_gone(&mut self, name: String, local_queues: &[LocalQueueGauges]) {
        let local_queues = self.selected(local_queues);
        let removed = self.totals.remove_queue(&name, names_of(&local_queues));
        self.series.remove(&[("cluster_queue", &name)]);
        self.series.remove(&[("preempting_cluster_queue", &name)]);
        self.remove(removed);
        for one in local_queues {
            self.local_queue(one, &name);
            // Nothing can reserve quota or be admitted: upstream removes these two, and keeps the pending Workloads.
            let place = [("namespace", one.namespace.as_str()), ("name", one.name.as_str())];
            self.series.remove_from(&f::LQ_RESERVING, &place);
            self.series.remove_from(&f::LQ_ADMITTED_ACTIVE, &place);
        }
        self.custom.forget(SourceKind::ClusterQueue, name);
    }

    /// LocalQueues that have series of their own.
    fn selected<'q>(&self, local_queues: &'q [LocalQueueGauges]) -> Vec<&'q LocalQueueGauges> {
        let Some(selector) = self.settings.local_queues.as_ref() else {
            return Vec::new();
        };
        local_queues.iter().filter(|one| selector.matches(&one.metadata.labels)).collect()
    }

    fn quotas(&mut self, queue: &ClusterQueueGauges, cohort: &str) {
        let number: [FlavorResourceFamily; 5] = [
            (&f::NOMINAL, |one| one.nominal),
            (&f::BORROWING_LIMIT, |one| one.borrowing_limit),
            (&f::LENDING_LIMIT, |one| one.lending_limit),
            (&f::RESERVATION, |one| one.reserved),
            (&f::USAGE, |one| one.used),
        ];
        for (family, number) in number {
            self.series.remove_from(family, &[("cluster_queue", &queue.name)]);
            for one in &queue.resources {
                let labels = values([&queue.name, cohort, &one.flavor, &one.resource]);
                self.series.set(family, labels, number(one));
            }
        }
    }

    /// Removes the series of Cohorts and LocalQueues that no ClusterQueue has any more.
    fn remove(&mut self, RemovedSeries { cohorts, local_queues }: RemovedSeries) {
        cohorts.iter().for_each(|cohort| self.cohort_gone(cohort));
        for (namespace, name) in &local_queues {
            self.series.remove(&[("namespace", namespace), ("name", name)]);
            self.custom.forget(SourceKind::LocalQueue, format!("{namespace}/{name}"));
        }
    }

    fn local_queue(&mut self, queue: &LocalQueueGauges, cluster_queue: &str) {
        let own = [queue.namespace.as_str(), queue.name.as_str()];
        self.custom.observe(SourceKind::LocalQueue, own.join("/"), &queue.metadata);
        let families = [&f::LQ_PENDING, &f::LQ_RESERVING, &f::LQ_ADMITTED_ACTIVE];
        self.numbers(&families, &own, &queue.workloads);
        let active = if queue.active { "True" } else { "False" };
        for status in ["True", "False", "Unknown"] {
            let is = f64::from(u8::from(status == active));
            self.series.set(&f::LQ_STATUS, values([own[0], own[1], status]), is);
        }
        let place = [("namespace", own[0]), ("name", own[1])];
        if queue.stopped {
            self.series.remove_from(&f::LQ_PENDING, &place);
        }
        self.series.remove_from(&f::LQ_RESERVATION, &place);
        self.series.remove_from(&f::LQ_USAGE, &place);
        self.series.remove_from(&f::LQ_FAIR_SHARING_USAGE, &place);
        if let Some(usage) = queue.fair_sharing_usage {
            let labels = values([own[0], own[1], cluster_queue]);
            self.series.set(&f::LQ_FAIR_SHARING_USAGE, labels, usage);
        }
        let key = (queue.namespace.clone(), queue.name.clone());
        self.workloads_of_local_queue(&key, cluster_queue);
        for one in &queue.resources {
            let labels = || values([own[0], own[1], &one.flavor, &one.resource]);
            self.series.set(&f::LQ_RESERVATION, labels(), one.reserved);
            self.series.set(&f::LQ_USAGE, labels(), one.used);
        }
    }

    /// Pending, reserving and admitted Workloads of a queue.
    fn numbers(&mut self, families: &[&'static Family; 3], own: &[&str], numbers: &QueueNumbers) {
        let [pending, reserving, admitted] = *families;
        let total = LabelledNumbers {
            labels: Vec::new(),
            active: numbers.active,
            inadmissible: numbers.inadmissible,
            admitted: numbers.admitted,
        };
        let mut by_labels = std::slice::from_ref(&total);
        let has_labels = self.custom.has_workload_labels();
        if has_labels {
            by_labels = &numbers.by_labels;
            // Labels that no Workload of the queue has any more are no series.
            let place: Vec<(&str, &str)> =
                pending.labels.iter().copied().zip(own.iter().copied()).collect();
            for family in [pending, admitted] {
                self.series.remove_from(family, &place);
            }
        }
        for one in by_labels {
            let labels = |more: &[&str]| {
                let own = own.iter().chain(more).copied();
                values(own.chain(one.labels.iter().map(String::as_str)))
            };
            for (status, count) in [("active", one.active), ("inadmissible", one.inadmissible)] {
                // Labels may have many values, so that most of these would be zero.
                if count > 0 || !has_labels {
                    self.series.set(pending, labels(&[status]), count as f64);
                }
            }
            self.series.set(admitted, labels(&[]), one.admitted as f64);
        }
        self.series.set(reserving, values(own.iter().copied()), numbers.reserving as f64);
    }

    fn cohort(&mut self, cohort: &CohortGauges) {
        let name = cohort.name.as_str();
        let parent = cohort.cohorts.first().map(String::as_str).unwrap_or_default();
        // The root of a tree is its own root.
        let root = cohort.cohorts.last().map_or(name, String::as_str);
        let own = [("cohort", name)];
        NUMBERS_OF_COHORT.iter().for_each(|family| self.series.remove_from(family, &own));
        // A cycle has no root. The place of a Cohort that only ClusterQueues name is in theirs.
        if cohort.declared && !cohort.cyclic {
            self.series.set(&f::COHORT_INFO, values([name, parent, root]), 1.0);
        }
        for (family, amounts) in
            [(&f::COHORT_QUOTA, &cohort.quota), (&f::COHORT_RESERVED, &cohort.reserved)]
        {
            for (flavor, resource, amount) in amounts {
                self.series.set(family, values([name, flavor, resource]), *amount);
            }
        }
        if let Some(share) = cohort.weighted_share {
            self.series.set(&f::COHORT_WEIGHTED_SHARE, values([name]), shown_share(share));
        }
    }

    fn cohort_gone(&mut self, name: &str) {
        self.custom.forget(SourceKind::Cohort, name.to_owned());
        for family in NUMBERS_OF_COHORT.iter().chain(&[&f::COHORT_ADMITTED]) {
            self.series.remove_from(family, &[("cohort", name)]);
        }
    }

    /// Admitted Workloads of every Cohort, summed over the ClusterQueues below it.
    pub(super) fn sum_cohorts(&mut self) {
        if !self.settings.cohorts {
            return;
        }
        self.series.remove_from(&f::COHORT_ADMITTED_ACTIVE, &[]);
        for (cohort, sum) in self.totals.admitted_by_cohort() {
            self.series.set(&f::COHORT_ADMITTED_ACTIVE, values([cohort]), sum as f64);
        }
    }
}

/// A weighted share as Kueue exports it: no number if it is infinite.
fn shown_share(share: f64) -> f64 {
    if share.is_infinite() { f64::NAN } else { share }
}

fn names_of(local_queues: &[&LocalQueueGauges]) -> BTreeSet<LocalQueueName> {
    local_queues.iter().map(|one| (one.namespace.clone(), one.name.clone())).collect()
}

fn values<'a>(values: impl IntoIterator<Item = &'a str>) -> LabelValues {
    values.into_iter().map(str::to_owned).collect()
}

fn of_worker(WorkerLabels { cluster_queue, cluster }: WorkerLabels) -> LabelValues {
    vec![cluster_queue, cluster]
}

fn of_cluster_queue(labels: &WorkloadLabels) -> LabelValues {
    vec![labels.cluster_queue.clone(), labels.priority_class.clone()]
}

/// Labels of a series of a LocalQueue, with those of the Workload where the family has them.
fn with_workload_labels(family: &Family, labels: &WorkloadLabels) -> LabelValues {
    let mut values = of_local_queue(labels);
    if counts_workloads(family) {
        values.extend(labels.custom.iter().cloned());
    }
    values
}

fn of_local_queue(labels: &WorkloadLabels) -> LabelValues {
    let (namespace, name) = labels.local_queue.clone();
    vec![namespace, name, labels.priority_class.clone()]
}
