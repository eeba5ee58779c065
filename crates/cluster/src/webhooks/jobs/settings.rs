//! The settings of job webhooks (docs/reference/kueue.md §6.4).

use jobs::integrations::ManagedKinds;

use crate::{
    config::{Configuration, LabelSelector},
    gates::{Gate, Gates},
};

/// The settings of job webhooks.
#[derive(Clone, Debug)]
pub struct JobSettings {
    /// The feature gates of job kinds.
    pub gates: jobs::JobGates,
    /// The gate `MultiKueue`: jobs may be dispatched to worker clusters.
    pub multi_kueue: bool,
    /// The managed kinds.
    pub kinds: ManagedKinds,
    /// Whether jobs without a queue name are managed.
    pub manage_without_queue_name: bool,
    /// The namespaces in which jobs are managed.
    pub namespaces: LabelSelector,
}

impl JobSettings {
    /// From configuration and feature gates.
    #[must_use]
    pub fn new(config: &Configuration, gates: &Gates) -> Self {
        let integrations = &config.integrations;
        Self {
            gates: gates.into(),
            multi_kueue: gates.enabled(Gate::MultiKueue),
            kinds: ManagedKinds::new(&integrations.frameworks, &integrations.external_frameworks),
            manage_without_queue_name: config.manage_jobs_without_queue_name,
            namespaces: config.managed_jobs_namespace_selector.clone().unwrap_or_default(),
        }
    }
}

impl From<&Gates> for jobs::JobGates {
    fn from(gates: &Gates) -> Self {
        let on = |gate| gates.enabled(gate);
        Self {
            admission_gated_by: on(Gate::AdmissionGatedBy),
            assign_queue_labels: on(Gate::AssignQueueLabelsForPods),
            elastic_jobs: on(Gate::ElasticJobsViaWorkloadSlices),
            elastic_jobs_with_topology: on(Gate::ElasticJobsViaWorkloadSlicesWithTAS),
            partial_admission: on(Gate::PartialAdmission),
            topology: on(Gate::TopologyAwareScheduling),
            topology_layers: on(Gate::TASMultiLayerTopology),
            identifier_annotations: on(Gate::WorkloadIdentifierAnnotations),
            default_priority_class: on(Gate::WorkloadPriorityClassDefaulting),
            short_names: on(Gate::ShortWorkloadNames),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_gates_of_jobs_are_the_feature_gate_defaults() {
        assert_eq!(jobs::JobGates::from(&Gates::default()), jobs::JobGates::default());
    }

    #[test]
    fn a_disabled_gate_is_disabled_for_jobs() {
        let gates = Gates::parse("PartialAdmission=false").expect("gates");
        let expected = jobs::JobGates { partial_admission: false, ..jobs::JobGates::default() };
        assert_eq!(jobs::JobGates::from(&gates), expected);
    }
}
