//! The settings of job webhooks (docs/reference/kueue.md §6.4).

use config::{
    Configuration, ConfiguredSelector, JobKinds,
    gates::{Gate, Gates},
};

/// The settings of job webhooks.
#[derive(Clone, Debug)]
pub struct JobSettings {
    /// The feature gates of job kinds.
    pub gates: jobs::JobGates,
    /// The gate `MultiKueue`: jobs may be dispatched to worker clusters.
    pub multi_kueue: bool,
    /// The kinds of jobs that are defaulted and validated, and the managed ones.
    pub kinds: JobKinds,
    /// Whether jobs without a queue name are managed.
    pub manage_without_queue_name: bool,
    /// The namespaces in which jobs are managed.
    pub namespaces: ConfiguredSelector,
    /// Those of them in which jobs get the LocalQueue `default`; without the gate `LocalQueueDefaultingPerNamespace` all.
    pub queue_defaulting: ConfiguredSelector,
}

impl JobSettings {
    /// From configuration and feature gates.
    #[must_use]
    pub fn new(config: &Configuration, gates: &Gates, kinds: &JobKinds) -> Self {
        let queue_defaulting = config
            .local_queue_defaulting_namespace_selector
            .clone()
            .filter(|_| gates.enabled(Gate::LocalQueueDefaultingPerNamespace));
        Self {
            gates: jobs::JobGates {
                manage_without_queue_name: config.manage_jobs_without_queue_name,
                ..gates.into()
            },
            multi_kueue: gates.enabled(Gate::MultiKueue),
            kinds: kinds.clone(),
            manage_without_queue_name: config.manage_jobs_without_queue_name,
            namespaces: config.managed_jobs_namespace_selector.clone().unwrap_or_default(),
            queue_defaulting: queue_defaulting.unwrap_or_default(),
        }
    }
}
