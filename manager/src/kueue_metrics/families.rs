//! Names, types, labels and buckets, as Kueue registers them. Names are without the prefix `kueue` and without the suffix of
//! counters, which the encoder adds.

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FamilyType {
    Counter,
    Gauge,
    Histogram(Buckets),
}

/// Upper bounds of a histogram, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Buckets {
    /// Prometheus' default.
    Default,
    /// 1, 2.5, and then doubling from 5: so many in all.
    Waiting(usize),
    /// From 10 ms, doubling: so many in all.
    Latency(usize),
}

impl Buckets {
    /// The bounds, without the last one, which is infinite.
    pub(super) fn bounds(self) -> Vec<f64> {
        let doubling =
            |first: f64, n| std::iter::successors(Some(first), |at| Some(at * 2.0)).take(n);
        match self {
            Self::Default => {
                vec![0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]
            }
            Self::Waiting(n) => [1.0, 2.5].into_iter().chain(doubling(5.0, n - 2)).collect(),
            Self::Latency(n) => doubling(0.01, n).collect(),
        }
    }
}

/// A family of series.
#[derive(Debug, PartialEq)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) family_type: FamilyType,
    pub(super) help: &'static str,
    /// Names of the labels, in the order of their values. Every family has `replica_role` as well.
    pub(super) labels: &'static [&'static str],
}

/// Families and constants of the same names.
macro_rules! families {
    ($($constant:ident $name:literal $family_type:expr, [$($label:literal)*], $help:literal;)*) => {
        $(pub(super) static $constant: Family = Family {
            name: $name, family_type: $family_type, help: $help, labels: &[$($label),*],
        };)*

        /// All families, in the order of the file.
        pub(super) static ALL: &[&Family] = &[$(&$constant),*];
    };
}

use FamilyType::{Counter, Gauge, Histogram};

const DEFAULT: FamilyType = Histogram(Buckets::Default);
const LATENCY: FamilyType = Histogram(Buckets::Latency(11));
const SHORT: FamilyType = Histogram(Buckets::Waiting(14));
const LONG: FamilyType = Histogram(Buckets::Waiting(16));

families! {
    ATTEMPTS "admission_attempts" Counter, ["result"], "Scheduling cycles with heads; success if a Workload got quota";
    ATTEMPT_DURATION "admission_attempt_duration_seconds" DEFAULT, ["result"], "Duration of scheduling cycles with heads";
    WORKLOAD_CREATION "workload_creation_latency_seconds" LATENCY, ["job_kind"], "From the creation of a job to that of its Workload";
    GATE_REMOVAL "pod_scheduling_gate_removal_seconds" DEFAULT, ["name" "cluster_queue" "is_group"], "From the admission of a Workload to the removal of a scheduling gate of a pod";
    PREEMPTION_SKIPS "admission_cycle_preemption_skips" Gauge, ["cluster_queue"], "Workloads with preemption candidates that the last cycle skipped";
    TARGETS_RECOMPUTED "preemption_target_recomputations" Counter, ["cluster_queue" "result"], "Preemption targets that were computed again because they overlapped those of an earlier Workload of the cycle";
    PREEMPTED "preempted_workloads" Counter, ["preempting_cluster_queue" "reason"], "Workloads preempted by Workloads of the ClusterQueue";

    PENDING "pending_workloads" Gauge, ["cluster_queue" "status"], "Pending Workloads, active or inadmissible";
    PENDING_HASHES "pending_scheduling_hashes" Gauge, ["cluster_queue" "status"], "Scheduling equivalence hashes of pending Workloads";
    RESERVING "reserving_active_workloads" Gauge, ["cluster_queue"], "Workloads with quota reserved";
    ADMITTED_ACTIVE "admitted_active_workloads" Gauge, ["cluster_queue"], "Admitted Workloads that are not finished";
    FINISHED_NOW "finished_workloads" Gauge, ["cluster_queue"], "Finished Workloads that exist";
    UNADMITTED "unadmitted_workloads" Gauge, ["cluster_queue" "reason" "underlying_cause"], "Workloads that are not admitted, by the reasons of their conditions Admitted and QuotaReserved";
    STATUS "cluster_queue_status" Gauge, ["cluster_queue" "status"], "1 for the status of the ClusterQueue, 0 for the others";
    INFO "cluster_queue_info" Gauge, ["cluster_queue" "parent_cohort" "root_cohort"], "Place of the ClusterQueue in the tree of Cohorts";
    WEIGHTED_SHARE "cluster_queue_weighted_share" Gauge, ["cluster_queue" "cohort"], "Weighted share of the ClusterQueue";

    NOMINAL "cluster_queue_nominal_quota" Gauge, ["cluster_queue" "cohort" "flavor" "resource"], "Nominal quota";
    BORROWING_LIMIT "cluster_queue_borrowing_limit" Gauge, ["cluster_queue" "cohort" "flavor" "resource"], "Borrowing limit; +Inf without one";
    LENDING_LIMIT "cluster_queue_lending_limit" Gauge, ["cluster_queue" "cohort" "flavor" "resource"], "Lending limit; +Inf without one";
    RESERVATION "cluster_queue_resource_reservation" Gauge, ["cluster_queue" "cohort" "flavor" "resource"], "Reserved quota";
    USAGE "cluster_queue_resource_usage" Gauge, ["cluster_queue" "cohort" "flavor" "resource"], "Quota in use by admitted Workloads";
    REQUESTED "cluster_queue_resource_pending" Gauge, ["cluster_queue" "resource"], "Requests of pending Workloads";

    QUOTA_RESERVED "quota_reserved_workloads" Counter, ["cluster_queue" "priority_class"], "Quota reservations";
    QUOTA_RESERVED_WAIT "quota_reserved_wait_time_seconds" SHORT, ["cluster_queue" "priority_class"], "From queueing to the quota reservation";
    ADMITTED "admitted_workloads" Counter, ["cluster_queue" "priority_class"], "Admissions";
    ADMISSION_WAIT "admission_wait_time_seconds" LONG, ["cluster_queue" "priority_class"], "From queueing to admission";
    CHECKS_WAIT "admission_checks_wait_time_seconds" SHORT, ["cluster_queue" "priority_class"], "From the quota reservation to admission, with admission checks";
    READY_WAIT "ready_wait_time_seconds" SHORT, ["cluster_queue" "priority_class"], "From queueing to ready pods";
    ADMITTED_UNTIL_READY "admitted_until_ready_wait_time_seconds" SHORT, ["cluster_queue" "priority_class"], "From admission to ready pods";
    FINISHED "finished_workloads" Counter, ["cluster_queue" "priority_class"], "Workloads that finished";
    EXECUTION "execution_time_seconds" LONG, ["cluster_queue" "priority_class"], "Time that a finished Workload was admitted in all";
    EVICTED "evicted_workloads" Counter, ["cluster_queue" "priority_class" "reason" "underlying_cause"], "Evictions";
    EVICTED_ONCE "evicted_workloads_once" Counter, ["cluster_queue" "priority_class" "reason" "underlying_cause"], "Workloads that were evicted for the reason at least once";
    READY_TO_EVICTED "pods_ready_to_evicted_time_seconds" SHORT, ["cluster_queue" "reason" "underlying_cause"], "From ready pods to the eviction";
    EVICTION_LATENCY "workload_eviction_latency_seconds" SHORT, ["cluster_queue" "reason"], "From the eviction to the end of the quota reservation";

    LQ_PENDING "local_queue_pending_workloads" Gauge, ["namespace" "name" "status"], "Pending Workloads, active or inadmissible";
    LQ_RESERVING "local_queue_reserving_active_workloads" Gauge, ["namespace" "name"], "Workloads with quota reserved";
    LQ_ADMITTED_ACTIVE "local_queue_admitted_active_workloads" Gauge, ["namespace" "name"], "Admitted Workloads that are not finished";
    LQ_FINISHED_NOW "local_queue_finished_workloads" Gauge, ["namespace" "name"], "Finished Workloads that exist";
    LQ_UNADMITTED "local_queue_unadmitted_workloads" Gauge, ["namespace" "name" "cluster_queue" "reason" "underlying_cause"], "Workloads that are not admitted, by the reasons of their conditions Admitted and QuotaReserved";
    LQ_STATUS "local_queue_status" Gauge, ["namespace" "name" "active"], "1 for the status of the condition Active, 0 for the others";
    LQ_RESERVATION "local_queue_resource_reservation" Gauge, ["namespace" "name" "flavor" "resource"], "Reserved quota";
    LQ_USAGE "local_queue_resource_usage" Gauge, ["namespace" "name" "flavor" "resource"], "Quota in use by admitted Workloads";
    LQ_FAIR_SHARING_USAGE "local_queue_admission_fair_sharing_usage" Gauge, ["namespace" "name" "cluster_queue"], "What the LocalQueue consumed under admission fair sharing, weighted";
    LQ_QUOTA_RESERVED "local_queue_quota_reserved_workloads" Counter, ["namespace" "name" "priority_class"], "Quota reservations";
    LQ_QUOTA_RESERVED_WAIT "local_queue_quota_reserved_wait_time_seconds" SHORT, ["namespace" "name" "priority_class"], "From queueing to the quota reservation";
    LQ_ADMITTED "local_queue_admitted_workloads" Counter, ["namespace" "name" "priority_class"], "Admissions";
    LQ_ADMISSION_WAIT "local_queue_admission_wait_time_seconds" SHORT, ["namespace" "name" "priority_class"], "From queueing to admission";
    LQ_CHECKS_WAIT "local_queue_admission_checks_wait_time_seconds" SHORT, ["namespace" "name" "priority_class"], "From the quota reservation to admission, with admission checks";
    LQ_READY_WAIT "local_queue_ready_wait_time_seconds" SHORT, ["namespace" "name" "priority_class"], "From queueing to ready pods";
    LQ_ADMITTED_UNTIL_READY "local_queue_admitted_until_ready_wait_time_seconds" SHORT, ["namespace" "name" "priority_class"], "From admission to ready pods";
    LQ_FINISHED "local_queue_finished_workloads" Counter, ["namespace" "name" "priority_class"], "Workloads that finished";
    LQ_EXECUTION "local_queue_execution_time_seconds" LONG, ["namespace" "name" "priority_class"], "Time that a finished Workload was admitted in all";
    LQ_EVICTED "local_queue_evicted_workloads" Counter, ["namespace" "name" "priority_class" "reason" "underlying_cause"], "Evictions";

    COHORT_INFO "cohort_info" Gauge, ["cohort" "parent_cohort" "root_cohort"], "Place of the Cohort in its tree";
    COHORT_QUOTA "cohort_subtree_quota" Gauge, ["cohort" "flavor" "resource"], "Nominal quota of the subtree";
    COHORT_RESERVED "cohort_subtree_resource_reservations" Gauge, ["cohort" "flavor" "resource"], "Reserved quota of the subtree";
    COHORT_ADMITTED_ACTIVE "cohort_subtree_admitted_active_workloads" Gauge, ["cohort"], "Admitted Workloads of the subtree that are not finished";
    COHORT_ADMITTED "cohort_subtree_admitted_workloads" Counter, ["cohort" "priority_class"], "Admissions in the subtree";
    COHORT_WEIGHTED_SHARE "cohort_weighted_share" Gauge, ["cohort"], "Weighted share of the Cohort";
}

/// Families of MultiKueue, which have no prefix.
pub(super) static MULTI_KUEUE: &[&Family] =
    &[&DISPATCHED, &ADMITTED_ON_WORKER, &EVICTED_ON_WORKER, &WORKER_STATUS];

/// The condition Active of workers, per ClusterQueue that dispatches to them.
pub(super) static WORKER_STATUS: Family = Family {
    name: "multikueue_cluster_status",
    family_type: Gauge,
    labels: &["cluster_queue", "cluster", "active"],
    help: "1 for the status of the condition Active of the worker cluster, 0 for the others",
};

/// Clones that were created.
pub(super) static DISPATCHED: Family = Family {
    name: "multikueue_workloads_dispatched",
    family_type: Counter,
    labels: &["cluster_queue", "cluster"],
    help: "Clones of Workloads created on the worker cluster",
};

/// Workloads that a worker admitted.
pub(super) static ADMITTED_ON_WORKER: Family = Family {
    name: "multikueue_workloads_admitted",
    family_type: Counter,
    labels: &["cluster_queue", "cluster"],
    help: "Workloads admitted by the worker cluster",
};

/// Workloads that a worker evicted.
pub(super) static EVICTED_ON_WORKER: Family = Family {
    name: "multikueue_workloads_evicted",
    family_type: Counter,
    labels: &["cluster_queue", "cluster", "reason"],
    help: "Workloads evicted by the worker cluster",
};

/// Families of workers, under the prefix `sluice`.
pub(super) static WORKERS: &[&Family] =
    &[&WORKER_ACTIVE, &WORKER_REPORTED, &WORKER_DISPUTES, &REBALANCED, &DISPATCH_TIME];

/// Families of integrations, under the prefix `sluice`.
pub(super) static INTEGRATIONS: &[&Family] = &[&INTEGRATION_UNAVAILABLE];

/// Enabled kinds of jobs that are not managed.
pub(super) static INTEGRATION_UNAVAILABLE: Family = Family {
    name: "integration_unavailable",
    family_type: Gauge,
    labels: &["framework", "reason"],
    help: "1 for an enabled integration with jobs that cannot be observed, for this reason",
};

/// Queued work that was nominated for a worker with room.
pub(super) static REBALANCED: Family = Family {
    name: "rebalanced_workloads",
    family_type: Counter,
    labels: &["cluster_queue", "cluster"],
    help: "Workloads that waited for the queues of other workers when the worker cluster got room",
};

/// Dispatch alone: without the wait for quota and for other checks.
pub(super) static DISPATCH_TIME: Family = Family {
    name: "dispatch_duration_seconds",
    family_type: Histogram(Buckets::Latency(16)),
    labels: &["cluster_queue"],
    help: "From the first nomination of a worker cluster to the admission of a Workload on the manager",
};

/// The condition Active of MultiKueueClusters.
pub(super) static WORKER_ACTIVE: Family = Family {
    name: "worker_active",
    family_type: Gauge,
    labels: &["cluster"],
    help: "1 if the MultiKueueCluster is Active, 0 if it is not",
};

/// Copies that a person is asked about.
pub(super) static WORKER_DISPUTES: Family = Family {
    name: "worker_disputed_workloads",
    family_type: Gauge,
    labels: &["cluster"],
    help: "Workloads with copies on the worker that stay until their deletion is confirmed",
};

/// Heartbeats of capacity reports.
pub(super) static WORKER_REPORTED: Family = Family {
    name: "worker_report_timestamp_seconds",
    family_type: Gauge,
    labels: &["cluster"],
    help: "When the last heartbeat of the capacity report was observed",
};
