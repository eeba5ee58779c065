//! What jobs are configured with, what decides about a job beside the job itself, and what follows for its Workload.

use std::time::Duration;

use ::jobs::{
    JobGates, Kinds,
    admitted_infos::AssignedFlavors,
    construct_workload::{KeysToCopy, PrioritySource, WorkloadPriority},
    integrations::ManagedKinds,
};
use index::Index;
use runtime::events::EventRecord;

use crate::control::workloads::{Transition, WorkloadCommand, Workloads};

/// What jobs are configured with.
#[derive(Clone, Debug)]
pub(crate) struct JobsConfig {
    pub(crate) gates: JobGates,
    /// Kinds of jobs that are handled.
    pub(crate) kinds: Kinds,
    /// Kinds with managed jobs, of which children get no Workload.
    pub(crate) managed: ManagedKinds,
    /// Jobs are managed without a queue name, too.
    pub(crate) without_queue_name: bool,
    /// A job without a Workload gets one. On a worker, managers make Workloads.
    pub(crate) creates_workloads: bool,
    /// The Workload of a job that is gone is finished (gate FinishOrphanedWorkloads).
    pub(crate) finishes_orphans: bool,
    /// How long the job of a Workload that was deactivated for a reason stays; for ever if unset.
    pub(crate) keeps_deactivated_for: Option<Duration>,
    /// Labels and annotations that Workloads get from their jobs.
    pub(crate) keys_to_copy: KeysToCopy,
}

/// What decides about a job beside the job itself.
pub(crate) struct JobInputs<'a> {
    pub(crate) workloads: &'a Workloads,
    pub(crate) flavors: AssignedFlavors<'a>,
    /// What completes the requests of pods.
    pub(crate) index: &'a Index,
    /// The priority of a source; `None` if its class does not exist.
    pub(crate) priority: &'a dyn Fn(&PrioritySource) -> Option<WorkloadPriority>,
    /// No Workload is created: the job is a child, or may be one.
    pub(crate) without_creation: bool,
}

/// What a step of a job means for a Workload.
#[derive(Debug)]
pub(crate) enum WorkloadEffect {
    /// Written at once, if the Workload may be written. The Event follows if it is done.
    Perform(WorkloadCommand, Option<EventRecord>),
    /// Part of the next status.
    Propose(Transition),
}
