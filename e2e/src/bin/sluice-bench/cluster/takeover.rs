//! The leader of two replicas is killed while thousands of Jobs are pending: the time from the lease of the other one to its first
//! admission.

use std::time::Instant;

use anyhow::{Context, Result};
use crds::names::LEADER_LEASE;
use e2e::{
    garbage_collector,
    installation::{InstallationPorts, NAMESPACE},
};
use k8s_openapi::api::{batch::v1::Job, coordination::v1::Lease};
use kube::api::DeleteParams;

use super::pending_jobs::{WITHIN, admitted_other_than, fill, submit};
use crate::environment::{BenchEnvironment, NAME};
use crate::usage::ProcessUsage;

/// What was measured, in seconds.
pub(super) struct MeasuredTakeover {
    /// From the lease to the first admission.
    pub(super) first_admission: f64,
    /// CPU of the new leader from the end of the other one to its first admission.
    pub(super) cpu: f64,
}

/// Makes so many Jobs, of which one has the whole quota, and kills the leader.
pub(super) async fn measure(
    field: &mut BenchEnvironment<'_>,
    jobs: usize,
) -> Result<MeasuredTakeover> {
    let running = "pending-0";
    let hub = field.installation.hub.clone();
    // The quota of the deleted Job is free once its Workload is collected.
    garbage_collector::until_it_knows_queues(&hub, NAME).await?;
    // The replica that answers the webhooks is to be the follower, so that requests succeed all the time.
    field.stop_manager().await?;
    let leader = field.further_manager(InstallationPorts::choose()?).await?;
    let first = holder_other_than(field, "").await?;
    field.start_manager().await?;
    submit(field, running).await?;
    admitted_other_than(field, "").await?;
    fill(field, jobs).await?;
    let follower = field.manager.process.pid();
    let before = ProcessUsage::of(follower)?;
    let disturbed = async {
        // The garbage collector needs less time than the lease to expire.
        leader.process.kill().await?;
        let params = DeleteParams::background();
        hub.api::<Job>(NAME).delete(running, &params).await.context("deleting the running Job")?;
        holder_other_than(field, &first).await?;
        anyhow::Ok(Instant::now())
    };
    let admitted = async {
        admitted_other_than(field, running).await?;
        anyhow::Ok(Instant::now())
    };
    let (led, admitted) = tokio::try_join!(disturbed, admitted)?;
    Ok(MeasuredTakeover {
        first_admission: admitted.saturating_duration_since(led).as_secs_f64(),
        cpu: ProcessUsage::of(follower)?.cpu_since(&before),
    })
}

/// Waits until another process than this one holds the lease. Returns its identity.
async fn holder_other_than(field: &BenchEnvironment<'_>, identity: &str) -> Result<String> {
    let hub = &field.installation.hub;
    let leases = hub.api::<Lease>(NAMESPACE);
    let other = |lease: &Lease| !holder(lease).is_empty() && holder(lease) != identity;
    let lease = hub.until(&leases, LEADER_LEASE, "has another holder", WITHIN, other).await?;
    Ok(holder(&lease).to_owned())
}

fn holder(lease: &Lease) -> &str {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}
