//! The leader's part: queues, Workloads, jobs, and their dispatch.

use std::time::Duration;

use anyhow::Context;
use cluster::{
    config::Configuration,
    control,
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
        supervisor::supervise,
        surroundings::{Pace, Surroundings},
    },
    settings::Settings,
};

/// Who tells events.
const COMPONENT: &str = "sluice.dev/manager";

/// Begins to compete for the lease, and to decide when it is won.
///
/// # Errors
/// If the configuration asks for what this version cannot do.
pub(crate) fn begin(
    settings: &Settings,
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
        settings: control::Settings::manager(&settings.file, &settings.gates, dispatches),
        election: election(&settings.file)?,
        metrics: metrics.clone(),
        reporter: Reporter {
            component: COMPONENT.to_owned(),
            instance: identity().context("who tells events")?,
        },
        ours: String::new(),
    };
    let file = &settings.file;
    let remote = dispatches.then(|| Remote {
        home: client.clone(),
        namespace: file.namespace().to_owned(),
        origin: file.multi_kueue.origin.clone(),
        metrics: metrics.clone(),
        check_every: file.multi_kueue.gc_interval(),
        keep_for: file.multi_kueue.worker_lost_timeout.positive().unwrap_or_default() * 2,
    });
    let stop = stop.clone();
    tasks.spawn(async move {
        let runnable = |leading| runnable(remote, leading);
        if let Err(error) = Box::pin(leader.run(runnable, stop)).await {
            tracing::error!(%error, "cannot compete for the lease");
        }
    });
    Ok(())
}

/// What connections to workers stand on.
struct Remote {
    home: Client,
    namespace: String,
    origin: String,
    metrics: ClientMetrics,
    check_every: Option<Duration>,
    keep_for: Duration,
}

/// # Errors
/// If it is not the one that exists. Another in its place would surprise whoever asked for it.
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

/// What else a leader does: it keeps connections to the workers.
async fn runnable(remote: Option<Remote>, leading: LeaderContext) {
    let LeaderContext { inputs, workers, leadership, stop } = leading;
    let Some(Remote { home, namespace, origin, metrics, check_every, keep_for }) = remote else {
        return stop.cancelled().await;
    };
    let ClientMetrics { requests, watches, writes, .. } = metrics;
    let pace = Pace::default();
    let around = Surroundings {
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
        pace,
    };
    supervise(around, leadership, stop).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dispatcher_that_does_not_exist_is_refused_with_what_to_do() {
        assert!(check_dispatcher("sluice.dev/capacity").is_ok());
        let error = check_dispatcher("kueue.x-k8s.io/multikueue-dispatcher-incremental");
        let error = error.expect_err("not there").to_string();
        assert!(error.contains("sluice.dev/capacity") && error.contains("incremental"), "{error}");
    }
}
