//! Which jobs a manager suspends and starts (docs/reference/kueue.md §7.3, 0d to 0g).

use ::jobs::{GenericJob, Job};
use runtime::watch::Key;

use super::namespaces_and_priorities::NamespacesAndPriorities;
use crate::config::LabelSelector;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct JobSelection {
    /// `manageJobsWithoutQueueName`.
    pub(super) without_queue_name: bool,
    /// `managedJobsNamespaceSelector`.
    pub(super) namespaces: LabelSelector,
}

impl JobSelection {
    /// Whether a job is selected: it names a queue or need not, and its namespace matches.
    pub(super) fn selects(
        &self,
        key: &Key,
        job: &Job,
        configuration: &NamespacesAndPriorities,
    ) -> bool {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let Some(labels) = configuration.namespace(namespace) else {
            return false;
        };
        let queued = !job.queue_name().is_empty() || self.without_queue_name;
        queued && self.namespaces.matches(labels)
    }
}
