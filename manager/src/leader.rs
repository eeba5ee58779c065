//! The leader: queues, Workloads and jobs, and their dispatch to worker clusters.

use std::time::Duration;

use anyhow::Context;
use cluster::{
    config::Configuration,
    control::{ManagerControl, ManagerInput, ManagerSettings, sources::Sources},
    leader::{ClientMetrics, Election, Leader, LeaderContext},
};
use crds::names::dispatchers;
use kube::Client;
use runtime::{
    Stop,
    events::Reporter,
    lease::{LeaseName, LeaseTiming, identity},
};
use tokio::task::JoinSet;

use crate::{
    remote::{
        claims::SharedClaims,
        context::{ConnectionTiming, WorkerContext},
        supervisor::supervise,
    },
    settings::ProcessSettings,
};

/// The reporting controller of events.
const COMPONENT: &str = "sluice.dev/manager";

/// Starts leader election. The leader runs the control task and the connections to worker clusters.
///
/// # Errors
/// If the configuration asks for a feature that this version does not have.
pub(crate) fn start(
    settings: &ProcessSettings,
    client: &Client,
    dispatches: bool,
    metrics: &ClientMetrics,
    stop: &Stop,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<()> {
    if dispatches {
        check_dispatcher(&settings.file.multi_kueue.dispatcher_name)?;
    }
    let leader = Leader {
        client: client.clone(),
        control: ManagerControl::new(ManagerSettings::new(
            &settings.file,
            &settings.gates,
            dispatches,
        )),
        watch: if dispatches { watch_with_workers } else { watch },
        election: election(&settings.file)?,
        metrics: metrics.clone(),
        reporter: Reporter {
            component: COMPONENT.to_owned(),
            instance: identity().context("reporting instance of events")?,
        },
    };
    let dispatch = dispatches.then(|| DispatchSettings::new(&settings.file, client, metrics));
    let stop = stop.clone();
    tasks.spawn(async move {
        let runnable = |context| connect_workers(dispatch, context);
        if let Err(error) = Box::pin(leader.run(runnable, stop)).await {
            tracing::error!(%error, "cannot compete for the lease");
        }
    });
    Ok(())
}

/// Starts the watches of a manager without worker clusters.
fn watch(sources: &mut Sources<'_, ManagerInput>) {
    sources.start_manager(false);
}

/// Starts the watches of a manager that dispatches.
fn watch_with_workers(sources: &mut Sources<'_, ManagerInput>) {
    sources.start_manager(true);
}

/// Settings of the connections to worker clusters.
struct DispatchSettings {
    home: Client,
    namespace: String,
    origin: String,
    metrics: ClientMetrics,
    check_every: Option<Duration>,
    keep_for: Duration,
}

impl DispatchSettings {
    fn new(file: &Configuration, client: &Client, metrics: &ClientMetrics) -> Self {
        let multi_kueue = &file.multi_kueue;
        Self {
            home: client.clone(),
            namespace: file.namespace().to_owned(),
            origin: multi_kueue.origin.clone(),
            metrics: metrics.clone(),
            check_every: multi_kueue.gc_interval(),
            keep_for: multi_kueue.worker_lost_timeout.positive().unwrap_or_default() * 2,
        }
    }
}

/// Refuses other dispatchers than the one of this version, because another one than the configured would be a surprise.
///
/// # Errors
/// If `name` names another dispatcher.
fn check_dispatcher(name: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        name == dispatchers::CAPACITY,
        "multiKueue.dispatcherName is {name:?}: this version has {:?} only; set it, or run without the component multikueue",
        dispatchers::CAPACITY
    );
    Ok(())
}

fn election(file: &Configuration) -> anyhow::Result<Option<Election>> {
    let wanted = &file.leader_election;
    if !wanted.leader_elect {
        return Ok(None);
    }
    let own = Some(wanted.resource_namespace.clone()).filter(|namespace| !namespace.is_empty());
    let namespace = own.unwrap_or_else(|| file.namespace().to_owned());
    let lease = LeaseName { namespace, name: wanted.resource_name.clone() };
    let timing = LeaseTiming {
        lease: wanted.lease_duration.positive().unwrap_or_default(),
        renew_deadline: wanted.renew_deadline.positive().unwrap_or_default(),
        retry: wanted.retry_period.positive().unwrap_or_default(),
    };
    timing.check().context("leaderElection")?;
    let identity = identity().context("leaderElection")?;
    Ok(Some(Election { lease, identity, timing }))
}

/// Keeps the connections to worker clusters while the process leads, beside the control task.
async fn connect_workers(dispatch: Option<DispatchSettings>, context: LeaderContext<ManagerInput>) {
    let LeaderContext { inputs, workers, leadership, stop } = context;
    let Some(DispatchSettings { home, namespace, origin, metrics, check_every, keep_for }) =
        dispatch
    else {
        return stop.cancelled().await;
    };
    let ClientMetrics { requests, watches, writes, .. } = metrics;
    let timing = ConnectionTiming::default();
    let context = WorkerContext {
        home,
        namespace,
        inputs,
        workers,
        origin,
        requests,
        watches,
        writes,
        check_every,
        keep_for,
        claims: SharedClaims::default(),
        leadership: leadership.clone(),
        timing,
    };
    supervise(context, leadership, stop).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsupported_dispatcher_is_refused_with_the_supported_one() {
        assert!(check_dispatcher("sluice.dev/capacity").is_ok());
        let error = check_dispatcher("kueue.x-k8s.io/multikueue-dispatcher-incremental");
        let error = error.expect_err("not there").to_string();
        assert!(error.contains("sluice.dev/capacity") && error.contains("incremental"), "{error}");
    }
}
