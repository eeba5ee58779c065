//! What a [`Control`](super::Control) is told once, at the start.

use std::time::Duration;

use engine::FairStrategy;
use jobs::construct_workload::KeysToCopy;

use super::{allowed::Allowed, pods::Patience};
use crate::{
    config::{
        Configuration, LabelSelector, PreemptionStrategy, QuotaCheckStrategy, RequeuingTimestamp,
        Transformation, TransformationStrategy,
    },
    gates::{Gate, Gates},
};

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
    pub engine: engine::EngineSettings,
    /// How objects are read.
    pub index: index::IndexConfig,
    /// Feature gates that kinds of jobs look at.
    pub jobs: jobs::JobGates,
    /// What Workloads get from their jobs.
    pub copied: KeysToCopy,
    /// Jobs without a queue are held back too.
    pub manage_jobs_without_queue_name: bool,
    /// Which namespaces' jobs are managed.
    pub managed_namespaces: LabelSelector,
    /// Written on everything that is made on a worker.
    pub origin: String,
    /// After how long a silent worker's work is given to another.
    pub lost_after: Duration,
    /// How often what workers have is compared with the hub; never when unset.
    pub gc_interval: Option<Duration>,
    /// How long a worker may take to admit what it was given.
    pub admit_within: Duration,
    /// How long a worker that did not take a Workload is not asked again.
    pub exclude_for: Duration,
    /// How long a Workload waits before it is told why.
    pub explain_after: Duration,
    /// How long pods are waited for; not at all when unset.
    pub patience: Option<Patience>,
    /// What a thin worker runs.
    pub allowed: Allowed,
}

/// How long a Workload waits before it is told why: most that wait do not wait for long.
const EXPLAIN_AFTER: Duration = Duration::from_secs(1);

/// How long a worker may take to admit what it was given.
const ADMIT_WITHIN: Duration = Duration::from_secs(60);

/// How long a worker that did not take a Workload is not asked again.
const EXCLUDE_FOR: Duration = Duration::from_secs(60);

impl Settings {
    /// Of a manager, as its configuration says.
    #[must_use]
    pub fn manager(file: &Configuration, gates: &Gates, dispatches: bool) -> Self {
        let multi_kueue = &file.multi_kueue;
        Self {
            role: Role::Manager { dispatches },
            engine: engine_settings(file, gates),
            index: index_settings(file, gates),
            jobs: gates.into(),
            copied: KeysToCopy {
                labels: file.integrations.label_keys_to_copy.clone(),
                annotations: Vec::new(),
            },
            manage_jobs_without_queue_name: file.manage_jobs_without_queue_name,
            managed_namespaces: file.managed_jobs_namespace_selector.clone().unwrap_or_default(),
            origin: multi_kueue.origin.clone(),
            lost_after: multi_kueue.worker_lost_timeout.positive().unwrap_or_default(),
            gc_interval: multi_kueue.gc_interval().filter(|_| dispatches),
            admit_within: ADMIT_WITHIN,
            exclude_for: EXCLUDE_FOR,
            explain_after: EXPLAIN_AFTER,
            patience: patience(file, gates),
            allowed: Allowed::default(),
        }
    }

    /// Of a thin worker, which runs this much of what managers give it.
    #[must_use]
    pub fn thin(allowed: Allowed) -> Self {
        let gates = Gates::default();
        let file = Configuration::default();
        Self {
            role: Role::Thin,
            index: index::IndexConfig { agent_mode: true, ..index_settings(&file, &gates) },
            patience: None,
            allowed,
            ..Self::manager(&file, &gates, false)
        }
    }
}

fn patience(file: &Configuration, gates: &Gates) -> Option<Patience> {
    let wait = file.wait_for_pods_ready.as_ref();
    wait.filter(|_| !gates.enabled(Gate::DisableWaitForPodsReady)).map(Patience::from)
}

fn engine_settings(file: &Configuration, gates: &Gates) -> engine::EngineSettings {
    let on = |gate| gates.enabled(gate);
    let strategy = |one: &PreemptionStrategy| match one {
        PreemptionStrategy::LessThanOrEqualToFinalShare => {
            FairStrategy::LessThanOrEqualToFinalShare
        }
        PreemptionStrategy::LessThanInitialShare => FairStrategy::LessThanInitialShare,
    };
    let fair = file.fair_sharing.as_ref();
    engine::EngineSettings {
        fair_sharing: fair.map(|fair| fair.preemption_strategies.iter().map(strategy).collect()),
        partial_admission: on(Gate::PartialAdmission),
        flavor_fungibility: on(Gate::FlavorFungibility),
        flavor_fungibility_preserve_scan_progress: on(Gate::FlavorFungibilityPreserveScanProgress),
        scheduling_equivalence_hashing: on(Gate::SchedulingEquivalenceHashing),
        fair_sharing_preempt_within_nominal: on(Gate::FairSharingPreemptWithinNominal),
        fair_sharing_prioritize_non_borrowing: on(Gate::FairSharingPrioritizeNonBorrowing),
        priority_sorting_within_cohort: on(Gate::PrioritySortingWithinCohort),
        prioritize_preemptor_workloads: on(Gate::PrioritizePreemptorWorkloads),
        tas_profile_mixed: on(Gate::TASProfileMixed),
        reevaluate_refused: false,
        tas_balanced_placement: on(Gate::TASBalancedPlacement),
        tas_respect_node_affinity_preferred: on(Gate::TASRespectNodeAffinityPreferred),
        tas_failed_node_replacement: on(Gate::TASFailedNodeReplacement),
        tas_failed_node_replacement_fail_fast: on(Gate::TASFailedNodeReplacementFailFast),
        elastic_jobs_via_workload_slices: on(Gate::ElasticJobsViaWorkloadSlices),
        elastic_jobs_via_workload_slices_with_tas: on(Gate::ElasticJobsViaWorkloadSlicesWithTAS),
        multi_kueue_orchestrated_preemption: on(Gate::MultiKueueOrchestratedPreemption),
        concurrent_admission: on(Gate::ConcurrentAdmission),
    }
}

fn index_settings(file: &Configuration, gates: &Gates) -> index::IndexConfig {
    let on = |gate| gates.enabled(gate);
    let resources = &file.resources;
    let requeuing = file.wait_for_pods_ready.as_ref().map(|wait| wait.requeuing_strategy.timestamp);
    index::IndexConfig {
        exclude_prefixes: resources.exclude_resource_prefixes.clone(),
        transformations: resources.transformations.iter().map(transformation).collect(),
        ignore_uncovered_resources: resources.quota_check_strategy
            == QuotaCheckStrategy::IgnoreUndeclared,
        eviction_timestamp: requeuing.is_none_or(|one| one == RequeuingTimestamp::Eviction),
        partial_admission: on(Gate::PartialAdmission),
        priority_boost: on(Gate::PriorityBoost),
        priority_sorting: on(Gate::PrioritySortingWithinCohort),
        concurrent_admission: on(Gate::ConcurrentAdmission),
        admission_gated_by: on(Gate::AdmissionGatedBy),
        agent_mode: false,
    }
}

/// Outputs that are no quantities were refused with the configuration.
fn transformation(one: &Transformation) -> index::ResourceTransformation {
    let outputs = one.outputs.iter().filter_map(|(name, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some((name.clone(), text.parse().ok()?))
    });
    index::ResourceTransformation {
        input: one.input.clone(),
        strategy: match one.strategy {
            TransformationStrategy::Retain => index::InputRetention::Retain,
            TransformationStrategy::Replace => index::InputRetention::Replace,
        },
        multiply_by: one.multiply_by.clone(),
        outputs: outputs.collect(),
    }
}
