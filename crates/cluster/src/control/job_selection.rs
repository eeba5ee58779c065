//! Which jobs a manager suspends and starts (docs/reference/kueue.md §7.3, 0d to 0g).

use ::jobs::{GenericJob, JobObject, integrations::ManagedKinds};
use config::ConfiguredSelector;
use crds::meta::is_rebuilding;

use super::{job_key::JobKey, namespaces_and_priorities::NamespacesAndPriorities};

/// What is above a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ancestor {
    /// Nothing, as far as that decides.
    None,
    /// A job that is managed.
    Managed,
}

/// The rules by which a manager takes up a job.
#[derive(Clone, Debug)]
pub(super) struct JobSelection {
    /// `manageJobsWithoutQueueName`.
    pub(super) without_queue_name: bool,
    /// `managedJobsNamespaceSelector`.
    pub(super) namespaces: ConfiguredSelector,
    /// Kinds with managed jobs.
    pub(super) managed: ManagedKinds,
}

impl JobSelection {
    /// Whether a job is selected: it or a managed ancestor names a queue, or need not, and its namespace matches.
    pub(super) fn selects(
        &self,
        key: &JobKey,
        job: &JobObject,
        ancestor: Ancestor,
        configuration: &NamespacesAndPriorities,
    ) -> bool {
        if job.as_pod().is_some_and(|pod| self.managed.leaves_alone(pod)) {
            return false;
        }
        // What keeps its Workload, and the job itself, goes wherever the job is and whatever the selector says by now
        // (docs/reference/kueue.md §7.3 row 0c).
        if job.metadata().deletion_timestamp.is_some() {
            return true;
        }
        // Its Workload is still to be made (docs/reference/dispatch.md §11).
        if is_rebuilding(job.metadata()) {
            return false;
        }
        let namespace = key.key.namespace.as_deref().unwrap_or_default();
        // A missing namespace ends the reconciliation (docs/reference/kueue.md §7.3 row 0d).
        let Some(labels) = configuration.namespace(namespace) else {
            return false;
        };
        let queued = !job.queue_name().is_empty()
            || ancestor == Ancestor::Managed
            || self.without_queue_name;
        queued && self.namespaces.matches(labels)
    }
}
