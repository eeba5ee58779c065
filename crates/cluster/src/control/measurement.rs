//! What happened, as metrics count it (docs/reference/kueue.md §6.2).
//!
//! Control gives measurements out with its decisions, as values; the process keeps the series.

use std::time::Duration;

use jiff::Timestamp;

pub use index::gauges::{
    ClusterQueueGauges, CohortGauges, FlavorResourceGauge, LabelledNumbers, LabelsAndAnnotations,
    LocalQueueGauges, QueueNumbers,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The labels and annotations of an object.
pub(crate) fn labels_and_annotations(metadata: &ObjectMeta) -> LabelsAndAnnotations {
    LabelsAndAnnotations {
        labels: metadata.labels.clone().unwrap_or_default(),
        annotations: metadata.annotations.clone().unwrap_or_default(),
    }
}

/// Namespace and name of a LocalQueue.
pub type LocalQueueName = (String, String);

/// The queues that a Workload is counted in.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueuesOfWorkload {
    /// The ClusterQueue that its LocalQueue names; empty without one.
    pub(crate) cluster_queue: String,
    /// Its LocalQueue.
    pub(crate) local_queue: LocalQueueName,
}

/// The labels of a Workload's transitions.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkloadLabels {
    /// The ClusterQueue where it holds quota, or is queued.
    pub cluster_queue: String,
    /// Its LocalQueue.
    pub local_queue: LocalQueueName,
    /// The name of its priority class; empty without one.
    pub priority_class: String,
    /// Values of the configured labels that come from Workloads.
    pub custom: Vec<String>,
}

/// Why a Workload was evicted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EvictionLabels {
    /// The reason, as `schedulingStats` counts it.
    pub reason: String,
    /// The cause behind it; may be empty.
    pub underlying_cause: String,
}

/// Why a Workload is not admitted.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnadmittedLabels {
    /// The ClusterQueue that it is queued in.
    pub cluster_queue: String,
    /// Its LocalQueue.
    pub local_queue: LocalQueueName,
    /// Reason of the condition Admitted.
    pub reason: String,
    /// Reason of the condition QuotaReserved; empty while quota is reserved.
    pub underlying_cause: String,
}

/// The labels of what happens on a worker cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerLabels {
    /// The ClusterQueue where the Workload holds quota.
    pub cluster_queue: String,
    /// The MultiKueueCluster.
    pub cluster: String,
}

/// What happened on a worker cluster, or is different about it now.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerMeasurement {
    /// A clone of a Workload was created on a worker cluster.
    Dispatched(WorkerLabels),
    /// A worker cluster admitted a Workload, and its check became Ready.
    Admitted(WorkerLabels),
    /// A worker cluster evicted a Workload, for this known reason or another one, and its check became Retry.
    Evicted(WorkerLabels, String),
    /// Queued work was nominated for a worker cluster with room.
    Rebalanced(WorkerLabels),
    /// The condition Active of a MultiKueueCluster.
    Active {
        /// The MultiKueueCluster.
        cluster: String,
        /// It is true.
        active: bool,
    },
    /// The condition Active of a worker, for a ClusterQueue that dispatches to it: `True`, `False` or `Unknown`; `None` if the ClusterQueue
    /// does not any more, or one of both is gone.
    Status {
        /// Both.
        labels: WorkerLabels,
        /// The status.
        active: Option<&'static str>,
    },
    /// The capacity report of a worker has a new heartbeat.
    Reported {
        /// The MultiKueueCluster.
        cluster: String,
        /// When the manager observed it.
        at: Timestamp,
    },
    /// Workloads with copies that stay until a person has confirmed their deletion.
    Disputes {
        /// The MultiKueueCluster.
        cluster: String,
        /// How many.
        workloads: usize,
    },
    /// A MultiKueueCluster is gone.
    Gone(String),
}

/// Something that happened, or a number that is different now.
#[derive(Debug, Clone, PartialEq)]
pub enum Measurement {
    /// A scheduling cycle that had heads ended.
    Attempt {
        /// A Workload got quota.
        admitted: bool,
    },
    /// Workloads of a ClusterQueue with preemption candidates that the last cycle skipped.
    PreemptionSkips {
        /// The ClusterQueue.
        cluster_queue: String,
        /// How many.
        count: usize,
    },
    /// Preemption targets were computed again, because they overlapped those of an earlier Workload of the cycle.
    TargetsRecomputed {
        /// The ClusterQueue of the preemptor.
        cluster_queue: String,
        /// `new_targets`, `deferred_fit` or `skipped`.
        result: &'static str,
    },
    /// Quota was reserved, so long after the Workload was queued.
    QuotaReserved(WorkloadLabels, Duration),
    /// A Workload was admitted.
    Admitted {
        /// Its labels.
        labels: WorkloadLabels,
        /// Since it was queued.
        waited: Duration,
        /// Since quota was reserved; `None` if it has no admission checks.
        checks: Option<Duration>,
    },
    /// The pods of a Workload became ready.
    Ready {
        /// Its labels.
        labels: WorkloadLabels,
        /// Since it was queued.
        waited: Duration,
        /// Since it was admitted.
        since_admission: Duration,
    },
    /// A Workload was evicted.
    Evicted {
        /// Its labels.
        labels: WorkloadLabels,
        /// Why.
        eviction: EvictionLabels,
        /// For this reason and cause it is the first eviction of the Workload.
        first: bool,
        /// How long its pods were ready, if they were.
        ready_for: Option<Duration>,
    },
    /// An evicted Workload gave its quota back, so long after the eviction.
    QuotaReleased {
        /// Its labels.
        labels: WorkloadLabels,
        /// Reason of the condition Evicted.
        reason: String,
        /// Since the eviction.
        took: Duration,
    },
    /// A Workload is preempted by one of this ClusterQueue, for this reason.
    Preempted {
        /// The ClusterQueue of the preemptor.
        preempting_cluster_queue: String,
        /// Reason of the condition Preempted.
        reason: String,
    },
    /// A Workload finished.
    Finished {
        /// Its labels.
        labels: WorkloadLabels,
        /// How long it was admitted in all, if it was.
        executed: Option<Duration>,
    },
    /// A scheduling gate of a pod was removed, so long after the admission of its Workload.
    GateRemoved {
        /// The gate.
        gate: &'static str,
        /// The ClusterQueue where the Workload holds quota.
        cluster_queue: String,
        /// The Workload is that of a group of pods.
        is_group: bool,
        /// Since the admission.
        took: Duration,
    },
    /// The Workload of a job was created, so long after the job.
    WorkloadCreated {
        /// The kind of the job.
        job_kind: String,
        /// Since the job was created.
        took: Duration,
    },
    /// The number of finished Workloads of a LocalQueue in a ClusterQueue.
    FinishedWorkloads {
        /// The ClusterQueue.
        cluster_queue: String,
        /// The LocalQueue.
        local_queue: LocalQueueName,
        /// How many.
        count: usize,
    },
    /// The number of Workloads that are not admitted for these reasons.
    UnadmittedWorkloads(UnadmittedLabels, usize),
    /// A Workload was admitted, so long after the first cluster was nominated for it.
    DispatchTook {
        /// The ClusterQueue where it holds quota.
        cluster_queue: String,
        /// Since the nomination.
        took: Duration,
    },
    /// About a worker cluster.
    Worker(WorkerMeasurement),
    /// Whether jobs of an enabled kind cannot be observed, for this reason.
    IntegrationUnavailable {
        /// The name of the integration.
        framework: String,
        /// `NotServed` or `Forbidden`.
        reason: &'static str,
        /// They cannot.
        unavailable: bool,
    },
    /// The numbers of a ClusterQueue and of all LocalQueues that name it.
    ClusterQueue(Box<ClusterQueueGauges>, Vec<LocalQueueGauges>),
    /// A ClusterQueue is gone. LocalQueues may still name it.
    ClusterQueueGone(String, Vec<LocalQueueGauges>),
    /// The numbers of a Cohort.
    Cohort(Box<CohortGauges>),
    /// A Cohort is not declared any more: it has no object, and is the parent of none.
    CohortGone(String),
}
