//! What many tests wait for.

use std::time::Duration;

use anyhow::{Context, Result};
use crds::v1beta2::Workload;
use harness::Cluster;
use kube::ResourceExt;

/// Waits until this holds for the Workload of a job. `what` completes "the Workload of JOB …".
///
/// # Errors
/// If it does not hold in time.
pub async fn until_workload(
    (cluster, namespace): (&Cluster, &str),
    (job, what): (&str, &str),
    within: Duration,
    condition: impl Fn(&Workload) -> bool,
) -> Result<Workload> {
    let of_job = |one: &&Workload| one.owner_references().iter().any(|owner| owner.name == job);
    let found = |all: &[Workload]| all.iter().find(of_job).is_some_and(&condition);
    let what = format!("the Workload of {job} {what}");
    let all = cluster.until_all(&cluster.api(namespace), "", &what, within, found).await?;
    all.iter().find(of_job).cloned().with_context(|| format!("no Workload of {job}"))
}
