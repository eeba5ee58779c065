//! What a manager is configured with.

use std::time::Duration;

use config::{
    Configuration, GoDuration, JobKinds,
    gates::{Gate, Gates},
};
use crds::names::dispatchers;
use dispatch::{Dispatcher, IncrementalSteps};
use jobs::Kinds;
use runtime::events::EventRecord;

use super::{
    core::CoreConfig,
    gated_integrations::event_of_gated_integrations,
    job_selection::JobSelection,
    jobs::JobsConfig,
    multikueue::DispatchConfig,
    scheduler_settings::{engine_settings, index_settings, keys_to_copy, usage_settings},
    scheduling::SchedulerConfig,
    topology::NodeReplacementGates,
    workloads::PodsReadyPolicy,
};

/// How long a Workload is pending before the reason is written: most are pending for a moment only.
const EXPLAIN_AFTER: Duration = Duration::from_secs(1);

/// How long a nominated worker may take to admit a clone.
const ADMIT_WITHIN: Duration = Duration::from_secs(60);

/// The least time between two writes of the status of one queue, unless something else is asked for.
pub const QUEUE_STATUS_PERIOD: Duration = Duration::from_secs(5);

/// Read from the configuration and the feature gates.
#[derive(Clone, Debug)]
pub struct ManagerSettings {
    pub(super) core: CoreConfig,
    pub(super) jobs: JobSelection,
    /// Kinds of jobs that are handled.
    pub(super) kinds: Kinds,
    /// Published when the process begins to lead.
    pub(super) begin_events: Vec<EventRecord>,
    /// The namespace of the manager.
    pub(super) namespace: String,
    /// Which nodes count as failed.
    pub(super) node_replacement: NodeReplacementGates,
    /// ProvisioningRequests of evicted Workloads are deleted (gate CleanupProvisioningRequestsOnEviction).
    pub(super) cleans_up_provisioning: bool,
    /// Quotas follow workers (gate MultiKueueManagerQuotaAutomation).
    pub(super) automates_quotas: bool,
    /// Dispatch to worker clusters; `None` without the component `multikueue`.
    pub(super) dispatch: Option<DispatchConfig>,
    /// The least time between two writes of the status of one queue.
    pub(super) queue_status_period: Duration,
}

impl ManagerSettings {
    /// Settings of a manager. `kinds` are the kinds of jobs that it handles; `dispatches` says whether it runs the component
    /// `multikueue`.
    #[must_use]
    pub fn new(file: &Configuration, gates: &Gates, kinds: &JobKinds, dispatches: bool) -> Self {
        Self {
            core: core_config(file, gates, kinds),
            kinds: kinds.observed(),
            node_replacement: gates.into(),
            cleans_up_provisioning: gates.enabled(Gate::CleanupProvisioningRequestsOnEviction),
            automates_quotas: gates.enabled(Gate::MultiKueueManagerQuotaAutomation),
            begin_events: event_of_gated_integrations(kinds, file.namespace())
                .into_iter()
                .collect(),
            namespace: file.namespace().to_owned(),
            jobs: JobSelection {
                without_queue_name: file.manage_jobs_without_queue_name,
                namespaces: file.managed_jobs_namespace_selector.clone().unwrap_or_default(),
                managed: kinds.managed.clone(),
            },
            dispatch: dispatches.then(|| dispatch_config(file, gates)),
            queue_status_period: QUEUE_STATUS_PERIOD,
        }
    }

    /// These settings with this least time between two writes of the status of one queue.
    #[must_use]
    pub fn writing_queue_status_every(self, period: Duration) -> Self {
        Self { queue_status_period: period, ..self }
    }

    /// These settings without the component `scheduler`: another client reserves quota, chooses Workloads that make room, and
    /// makes second passes.
    #[must_use]
    pub fn without_scheduler(mut self) -> Self {
        self.core.scheduler.runs_cycles = false;
        self.core.scheduler.explains_admission = false;
        self
    }

    /// Whether it dispatches to worker clusters.
    #[must_use]
    pub fn dispatches(&self) -> bool {
        self.dispatch.is_some()
    }
}

/// The configuration of the machines that manager and agent share.
pub(super) fn core_config(file: &Configuration, gates: &Gates, kinds: &JobKinds) -> CoreConfig {
    let pods_ready = pods_ready_policy(file, gates);
    let retention = file.object_retention_policies.clone().unwrap_or_default();
    let retention = retention.workloads.unwrap_or_default();
    CoreConfig {
        legacy_reasons: !gates.enabled(Gate::UnadmittedWorkloadsObservability),
        explicit_status: gates.enabled(Gate::UnadmittedWorkloadsExplicitStatus),
        finishes_orphans: gates.enabled(Gate::FinishOrphanedWorkloads),
        requeues_pods: !gates.enabled(Gate::SkipReassignmentForPodOwnedWorkloads),
        keeps_finished_for: retention.after_finished.and_then(GoDuration::positive),
        scheduler: SchedulerConfig {
            engine: engine_settings(file, gates),
            index: index_settings(file, gates),
            explain_after: EXPLAIN_AFTER,
            runs_cycles: true,
            explains_admission: true,
            usage: usage_settings(file, gates),
            measures_cohorts: gates.enabled(Gate::MetricsForCohorts),
            block_admission: pods_ready.is_some_and(|policy| policy.block_admission),
        },
        jobs: JobsConfig {
            gates: gates.into(),
            kinds: kinds.observed(),
            managed: kinds.managed.clone(),
            without_queue_name: file.manage_jobs_without_queue_name,
            creates_workloads: true,
            finishes_orphans: gates.enabled(Gate::FinishOrphanedWorkloads),
            keeps_deactivated_for: retention
                .after_deactivated_by_kueue
                .and_then(GoDuration::positive),
            keys_to_copy: keys_to_copy(file, gates),
        },
        pods_ready,
        owns_workloads: true,
    }
}

fn dispatch_config(file: &Configuration, gates: &Gates) -> DispatchConfig {
    let multi_kueue = &file.multi_kueue;
    DispatchConfig {
        origin: multi_kueue.origin.clone(),
        namespace: file.namespace().to_owned(),
        lost_after: multi_kueue.worker_lost_timeout.positive().unwrap_or_default(),
        gc_interval: multi_kueue.gc_interval(),
        admit_within: ADMIT_WITHIN,
        orders_preemption: gates.enabled(Gate::MultiKueueOrchestratedPreemption),
        dispatcher: match &*multi_kueue.dispatcher_name {
            dispatchers::ALL_AT_ONCE => Dispatcher::AllAtOnce,
            dispatchers::INCREMENTAL => Dispatcher::Incremental(incremental_steps(file, gates)),
            dispatchers::CAPACITY => Dispatcher::Capacity,
            _ => Dispatcher::External,
        },
    }
}

fn incremental_steps(file: &Configuration, gates: &Gates) -> IncrementalSteps {
    let configured = file.multi_kueue.incremental_dispatcher_config.as_ref();
    let configured =
        configured.filter(|_| gates.enabled(Gate::MultiKueueIncrementalDispatcherConfig));
    let size = configured.cloned().unwrap_or_default().step_size;
    IncrementalSteps {
        size: usize::try_from(size).unwrap_or(1).max(1),
        by_name: !gates.enabled(Gate::MultiKueueIncrementalDispatcherRespectConfigOrder),
    }
}

fn pods_ready_policy(file: &Configuration, gates: &Gates) -> Option<PodsReadyPolicy> {
    let wait = file.wait_for_pods_ready.as_ref();
    wait.filter(|_| !gates.enabled(Gate::DisableWaitForPodsReady)).map(PodsReadyPolicy::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a gate is on in what it is read into.
    type Reading = fn(&ManagerSettings) -> bool;

    #[rustfmt::skip]
    const READINGS: &[(&str, Reading)] = &[
        ("DisableWaitForPodsReady", |all| all.core.pods_ready.is_none()),
        ("KueueDRARejectWorkloadsWhenDRADisabled", |all| all.core.scheduler.index.refuse_device_claims),
        ("MultiKueueIncrementalDispatcherConfig", |all| steps(all).size == 7),
        ("MultiKueueIncrementalDispatcherRespectConfigOrder", |all| !steps(all).by_name),
        ("QuotaCheckStrategy", |all| all.core.scheduler.index.ignore_uncovered_resources),
        ("ReclaimablePods", |all| all.core.scheduler.index.reclaimable_pods && all.core.jobs.gates.reclaimable_pods),
        ("ShortWorkloadNames", |all| all.core.jobs.gates.short_names),
        ("TopologyAwareScheduling", |all| all.core.scheduler.index.topology_aware_scheduling),
        ("TASRespectNodeAffinityPreferred", |all| all.core.scheduler.engine.tas_respect_node_affinity_preferred),
    ];

    fn steps(settings: &ManagerSettings) -> IncrementalSteps {
        match settings.dispatch.as_ref().map(|dispatch| &dispatch.dispatcher) {
            Some(Dispatcher::Incremental(steps)) => *steps,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn gates_reach_what_they_are_read_into() {
        let text = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n\
                    resources: {quotaCheckStrategy: IgnoreUndeclared}\n\
                    multiKueue: {dispatcherName: kueue.x-k8s.io/multikueue-dispatcher-incremental, \
                    incrementalDispatcherConfig: {stepSize: 7}}\n";
        let file = Configuration::load(text, None).expect("a file");
        for (name, reading) in READINGS {
            for on in [false, true] {
                let gates = Gates::parse(&format!("{name}={on}")).expect(name);
                let kinds = JobKinds::configured(&file, &gates, &Kinds::default());
                let settings = ManagerSettings::new(&file, &gates, &kinds, true);
                assert_eq!(reading(&settings), on, "{name}");
            }
        }
    }
}
