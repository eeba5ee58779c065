//! The leader: queues, Workloads and jobs, and their dispatch to worker clusters.

use std::sync::{Arc, atomic::AtomicU64};

use ::leader::{Election, Leader, LeaderContext, ObservedFeatures, Sources};
use anyhow::Context;
use cluster::control::{ManagerControl, ManagerInput, ManagerSettings};
use config::{
    Configuration,
    gates::{Gate, Gates},
};
use crds::names::dispatchers;
use remote::{
    ClusterProfiles, ConnectionSettings, ConnectionTiming, WorkerContext, kubeconfig_secrets,
    supervise,
};
use runtime::{
    events::Reporter,
    lease::{LeaseName, LeaseTiming, identity},
    watch::Stores,
};

use crate::{components::ManagerComponent, process_parts::ProcessParts, settings::ProcessSettings};

/// The reporting controller of events.
const COMPONENT: &str = "sluice.dev/manager";

/// Starts leader election. The leader runs the control task and the connections to worker clusters.
///
/// # Errors
/// If the configuration asks for a feature that this version does not have.
pub(crate) fn start(parts: &mut ProcessParts<'_>) -> anyhow::Result<()> {
    let (settings, components) = (parts.settings, parts.components);
    let dispatches = components.contains(&ManagerComponent::Multikueue);
    let schedules = components.contains(&ManagerComponent::Scheduler);
    if dispatches {
        // Without the component the setting has no effect.
        check_dispatcher(&settings.file.multi_kueue.dispatcher_name, schedules)?;
    }
    let file = &settings.file;
    let control = control_settings(settings, dispatches, schedules);
    let namespace = dispatches.then(|| file.namespace());
    let leader = Leader {
        client: parts.client.clone(),
        control: ManagerControl::new(control),
        sources: Sources::manager(
            &mut parts.stores,
            &settings.kinds.observed(),
            namespace,
            observed_features(&settings.gates),
        ),
        election: election(file)?,
        metrics: parts.metrics.clients.clone(),
        reporter: Reporter {
            component: COMPONENT.to_owned(),
            instance: identity().context("reporting instance of events")?,
        },
        measure: Arc::new(parts.metrics.kueue.clone()),
        explanations: parts.explanations.clone(),
    };
    let connections = dispatches.then(|| connection_settings(parts));
    let shutdown = parts.shutdown.clone();
    parts.tasks.spawn(async move {
        let runnable = |context| connect_workers(connections, context);
        let run = Box::pin(leader.run(runnable, shutdown.leading().clone()));
        let leading = async {
            if let Err(error) = run.await {
                tracing::error!(%error, "cannot compete for the lease");
            }
        };
        shutdown.run_leading(leading).await;
    });
    Ok(())
}

fn control_settings(
    settings: &ProcessSettings,
    dispatches: bool,
    schedules: bool,
) -> ManagerSettings {
    let ProcessSettings { file, gates, kinds, queue_status_period, .. } = settings;
    let control = ManagerSettings::new(file, gates, kinds, dispatches)
        .writing_queue_status_every(*queue_status_period);
    if schedules { control } else { control.without_scheduler() }
}

fn observed_features(gates: &Gates) -> ObservedFeatures {
    ObservedFeatures {
        topologies: gates.enabled(Gate::TopologyAwareScheduling),
        slices: gates.enabled(Gate::ElasticJobsViaWorkloadSlices),
        failure_recovery: gates.enabled(Gate::FailureRecoveryPolicy),
    }
}

/// The settings of the connections to worker clusters.
fn connection_settings(parts: &mut ProcessParts<'_>) -> ConnectionSettings {
    let (settings, file) = (parts.settings, &parts.settings.file);
    let multi_kueue = &file.multi_kueue;
    ConnectionSettings {
        home: parts.client.clone(),
        kinds: settings.kinds.observed(),
        watches_queues: settings.gates.enabled(Gate::MultiKueueManagerQuotaAutomation),
        namespace: file.namespace().to_owned(),
        profiles: cluster_profiles(settings, &mut parts.stores),
        secrets: kubeconfig_secrets(&mut parts.stores, file.namespace()),
        kubeconfig_files: settings.kubeconfig_files.clone(),
        origin: multi_kueue.origin.clone(),
        metrics: parts.metrics.clients.clone(),
        check_every: multi_kueue.gc_interval(),
        timing: ConnectionTiming::default(),
    }
}

/// The ClusterProfiles, unless their gate is off.
fn cluster_profiles(settings: &ProcessSettings, stores: &mut Stores) -> Option<ClusterProfiles> {
    let file = &settings.file;
    let providers = file.multi_kueue.access_providers();
    let on = settings.gates.enabled(Gate::MultiKueueClusterProfile);
    on.then(|| ClusterProfiles::watch(stores, file.namespace(), providers))
}

/// Any name is that of an external dispatcher, as for Kueue, except under the domain of our own.
///
/// # Errors
/// If `name` is one of ours that does not exist: every Workload would wait for a program that does not run. If it is the one
/// with which the scheduler chooses the cluster of a reservation, and the scheduler is left out.
fn check_dispatcher(name: &str, schedules: bool) -> anyhow::Result<()> {
    anyhow::ensure!(
        schedules || name != dispatchers::CAPACITY,
        "multiKueue.dispatcherName is {name:?}: the scheduler reserves quota together with the cluster, and --components leaves it out"
    );
    let built = [dispatchers::CAPACITY, dispatchers::ALL_AT_ONCE, dispatchers::INCREMENTAL];
    if built.contains(&name) {
        return Ok(());
    }
    anyhow::ensure!(
        !name.starts_with("sluice.dev/"),
        "multiKueue.dispatcherName is {name:?}: the dispatchers are {built:?}, and any name of an external one outside of sluice.dev"
    );
    tracing::warn!(
        dispatcher = name,
        "multiKueue.dispatcherName is none of {built:?}: an external dispatcher is expected to write nominatedClusterNames"
    );
    Ok(())
}

fn election(file: &Configuration) -> anyhow::Result<Option<Election>> {
    let wanted = &file.leader_election;
    if !wanted.leader_elect {
        return Ok(None);
    }
    // The namespace of the manager is where its role allows Leases.
    let own = Some(wanted.resource_namespace.clone()).filter(|namespace| !namespace.is_empty());
    let namespace = own.unwrap_or_else(|| file.namespace().to_owned());
    let lease = LeaseName { namespace, name: wanted.resource_name.clone() };
    let timing = LeaseTiming {
        lease: wanted.lease_duration.positive().unwrap_or_default(),
        renew_deadline: wanted.renew_deadline.positive().unwrap_or_default(),
        retry: wanted.retry_period.positive().unwrap_or_default(),
    };
    // Checked at the start: the elector would report it only once the process runs.
    timing.check().context("leaderElection")?;
    let identity = identity().context("leaderElection")?;
    Ok(Some(Election { lease, identity, timing }))
}

/// Keeps the connections to worker clusters while the process leads, beside the control task.
async fn connect_workers(
    settings: Option<ConnectionSettings>,
    context: LeaderContext<ManagerInput>,
) {
    let LeaderContext { inputs, workers, leadership, stop } = context;
    let Some(settings) = settings else {
        // The end of this task would end the leader.
        return stop.cancelled().await;
    };
    let context = WorkerContext {
        settings,
        leadership: leadership.clone(),
        inputs,
        workers,
        last_claim: AtomicU64::new(0),
    };
    supervise(context, leadership, stop).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_an_external_dispatcher_but_a_mistyped_one_of_ours() {
        for name in [
            "sluice.dev/capacity",
            "kueue.x-k8s.io/multikueue-dispatcher-incremental",
            "example.com/dispatcher",
        ] {
            assert!(check_dispatcher(name, true).is_ok(), "{name}");
        }
        let error = check_dispatcher("sluice.dev/capacty", true).expect_err("mistyped").to_string();
        assert!(error.contains("\"sluice.dev/capacity\"") && error.contains("capacty"), "{error}");
    }

    #[test]
    fn capacity_needs_the_scheduler() {
        let error = check_dispatcher("sluice.dev/capacity", false).expect_err("no scheduler");
        assert!(error.to_string().contains("--components leaves it out"), "{error}");
        for name in ["kueue.x-k8s.io/multikueue-dispatcher-all-at-once", "example.com/dispatcher"] {
            assert!(check_dispatcher(name, false).is_ok(), "{name}");
        }
    }
}
