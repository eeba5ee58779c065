//! What a [`Control`](super::Control) is told once, at the start.

use std::time::Duration;

use jobs::workload::Copied;

use crate::config::LabelSelector;

/// What the cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// People submit to it. It may have workers.
    Manager {
        /// Whether it dispatches to workers.
        dispatches: bool,
    },
    /// It runs what a manager gives it, by the room on its nodes.
    Thin,
}

impl Role {
    /// Kinds that must have been listed before anything is decided.
    pub(crate) fn kinds(self) -> &'static [&'static str] {
        const QUEUES: &[&str] = &[
            "Namespace",
            "LimitRange",
            "RuntimeClass",
            "PriorityClass",
            "WorkloadPriorityClass",
            "ResourceFlavor",
            "Cohort",
            "AdmissionCheck",
            "ClusterQueue",
            "LocalQueue",
            "Workload",
            "Job",
        ];
        const DISPATCH: &[&str] = &[
            "Namespace",
            "LimitRange",
            "RuntimeClass",
            "PriorityClass",
            "WorkloadPriorityClass",
            "ResourceFlavor",
            "Cohort",
            "AdmissionCheck",
            "ClusterQueue",
            "LocalQueue",
            "Workload",
            "Job",
            "MultiKueueConfig",
            "MultiKueueCluster",
            "DispatchPolicy",
        ];
        const THIN: &[&str] = &["Workload", "Job", "Node", "Pod", "ClusterCapacity"];
        match self {
            Self::Manager { dispatches: false } => QUEUES,
            Self::Manager { dispatches: true } => DISPATCH,
            Self::Thin => THIN,
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the cluster is.
    pub role: Role,
    /// Feature gates that the engine looks at.
    pub engine: engine::Settings,
    /// How objects are read.
    pub index: index::Settings,
    /// Feature gates that kinds of jobs look at.
    pub jobs: jobs::Gates,
    /// What Workloads get from their jobs.
    pub copied: Copied,
    /// Jobs without a queue are held back too.
    pub manage_jobs_without_queue_name: bool,
    /// Which namespaces' jobs are managed.
    pub managed_namespaces: LabelSelector,
    /// Written on everything that is made on a worker.
    pub origin: String,
    /// After how long a silent worker's work is given to another.
    pub lost_after: Duration,
    /// How long a worker may take to admit what it was given.
    pub admit_within: Duration,
    /// How long a worker that did not take a Workload is not asked again.
    pub exclude_for: Duration,
    /// How long a Workload waits before it is told why.
    pub explain_after: Duration,
    /// Namespaces whose Workloads a thin worker runs; all when unset.
    pub namespaces: Option<Vec<String>>,
}
