//! What the configuration says about jobs (docs/reference/kueue.md §6.4).

use jobs::integrations::ManagedKinds;

use crate::{
    config::{Configuration, LabelSelector},
    gates::{Gate, Gates},
};

/// Settings of the webhooks of jobs.
#[derive(Clone, Debug)]
pub struct JobSettings {
    /// The gates that job kinds look at.
    pub gates: jobs::JobGates,
    /// `MultiKueue`: jobs are handed to workers.
    pub multi_kueue: bool,
    /// Which kinds are managed.
    pub kinds: ManagedKinds,
    /// Whether jobs without a queue are held too.
    pub manage_without_queue_name: bool,
    /// In which namespaces jobs are managed.
    pub namespaces: LabelSelector,
}

impl JobSettings {
    /// From the configuration file and the feature gates.
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
    fn the_default_of_jobs_is_that_of_the_gates() {
        assert_eq!(jobs::JobGates::from(&Gates::default()), jobs::JobGates::default());
    }

    #[test]
    fn a_gate_that_is_off_is_off_for_jobs() {
        let gates = Gates::parse("PartialAdmission=false").expect("gates");
        let expected = jobs::JobGates { partial_admission: false, ..jobs::JobGates::default() };
        assert_eq!(jobs::JobGates::from(&gates), expected);
    }
}
