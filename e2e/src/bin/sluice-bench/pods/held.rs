//! The memory of a manager that starts with many pods that wait for quota.

use std::time::Duration;

use anyhow::{Context, Result};
use crds::meta::is_true;
use crds::names::conditions::ADMITTED;
use crds::v1beta2::Workload;
use harness::secs;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;

use super::QUOTA;
use super::sample_pod::{SamplePod, name};
use crate::environment::{BenchEnvironment, NAME};
use crate::sample_job::submit_all;
use crate::usage::ProcessUsage;

/// For the Workloads of all pods.
const WITHIN: Duration = secs(900);

/// Makes so many pods of which one has the whole quota, and restarts the manager. Returns its resident memory once another pod is
/// admitted in place of the one that was deleted.
pub(super) async fn resident(field: &mut BenchEnvironment<'_>, pods: usize) -> Result<u64> {
    let hub = field.installation.hub.clone();
    let cpu = QUOTA.to_string();
    let submit = |number: usize| {
        let (name, cpu, hub) = (name(number), cpu.clone(), hub.clone());
        async move {
            let pod = SamplePod { name: &name, cpu: &cpu, run_seconds: 3600, group: None };
            pod.submit(&hub).await
        }
    };
    submit(0).await?;
    let workloads = hub.api::<Workload>(NAME);
    let admitted = |one: &Workload| is_true(&one.status.conditions, ADMITTED);
    let first = |all: &[Workload]| all.iter().any(admitted);
    hub.until_all(&workloads, "", "the first pod is admitted", WITHIN, first).await?;
    submit_all((1..pods).map(submit)).await?;
    let all = |all: &[Workload]| all.len() == pods;
    hub.until_all(&workloads, "", "every pod has a Workload", WITHIN, all).await?;
    field.stop_manager().await?;
    let running = name(0);
    let deleted = hub.api::<Pod>(NAME).delete(&running, &DeleteParams::background()).await;
    deleted.context("deleting the running pod")?;
    field.start_manager().await?;
    let other = |one: &Workload| {
        admitted(one) && one.owner_references().iter().all(|owner| owner.name != running)
    };
    let next = |all: &[Workload]| all.iter().any(other);
    hub.until_all(&workloads, "", "the next pod is admitted", WITHIN, next).await?;
    Ok(ProcessUsage::of(field.manager.process.pid())?.resident_bytes)
}
