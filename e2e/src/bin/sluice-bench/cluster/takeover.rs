//! The leader of two replicas is killed while thousands of Jobs are pending: the time from the lease of the other one to its first
//! admission.

use std::time::Instant;

use anyhow::Result;
use e2e::{garbage_collector, installation::InstallationPorts, waits::until_led_by_another};

use super::pending_jobs::{RUNNING, WITHIN, admitted_other_than, delete_running, fill};
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
    let hub = field.installation.hub.clone();
    // The quota of the deleted Job is free once its Workload is collected.
    garbage_collector::until_it_knows_queues(&hub, NAME).await?;
    // The replica that answers the webhooks is to be the follower, so that requests succeed all the time.
    field.stop_manager().await?;
    let leader = field.further_manager(InstallationPorts::choose()?).await?;
    let first = until_led_by_another(&hub, "", WITHIN).await?;
    field.start_manager().await?;
    fill(field, jobs).await?;
    let follower = field.manager.process.pid();
    let before = ProcessUsage::of(follower)?;
    let disturbed = async {
        // The garbage collector needs less time than the lease to expire.
        leader.process.kill().await?;
        delete_running(&hub).await?;
        until_led_by_another(&hub, &first, WITHIN).await?;
        anyhow::Ok(Instant::now())
    };
    let admitted = async {
        admitted_other_than(field, RUNNING).await?;
        anyhow::Ok(Instant::now())
    };
    let (led, admitted) = tokio::try_join!(disturbed, admitted)?;
    Ok(MeasuredTakeover {
        first_admission: admitted.saturating_duration_since(led).as_secs_f64(),
        cpu: ProcessUsage::of(follower)?.cpu_since(&before),
    })
}
