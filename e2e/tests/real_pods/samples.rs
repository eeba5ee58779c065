//! The samples are submitted as config/README.md says, in sizes that small nodes have room for.

use anyhow::{Result, ensure};
use crds::meta;
use crds::v1beta2::Workload;
use e2e::installation::{TIMEOUT, root};
use e2e::objects::job_is;
use harness::Cluster;
use k8s_openapi::api::batch::v1::Job;
use kube::{Api, ResourceExt};
use serde_json::Value;

use crate::clusters::TEAM;

/// The folder of the samples.
const SAMPLES: &str = "config/samples/multikueue/jobs-for-small-nodes";

/// The samples that fit, with their pods that succeed.
const FITTING: [(&str, i32); 6] =
    [("gang", 4), ("indexed", 6), ("small-1", 1), ("small-2", 2), ("small-3", 1), ("small-4", 3)];

/// Submits all of them. Those that fit end, and their status comes back; the API server asks the manager about the other one,
/// which is pending.
pub(crate) async fn are_run(hub: &Cluster) -> Result<()> {
    let samples = root().join(SAMPLES).display().to_string();
    hub.kubectl(&["apply", "--server-side", "-k", &samples]).await?;
    let jobs: Api<Job> = hub.api(TEAM);
    for (name, pods) in FITTING {
        let complete = |job: &Job| job_is(job, "Complete");
        let job = hub.until(&jobs, name, "is complete", 2 * TIMEOUT, complete).await?;
        let succeeded = job.status.as_ref().and_then(|status| status.succeeded);
        ensure!(succeeded == Some(pods), "{name}: {:?}", job.status);
    }
    too_large_is_pending(hub).await
}

async fn too_large_is_pending(hub: &Cluster) -> Result<()> {
    let workloads: Api<Workload> = hub.api(TEAM);
    let refused = |all: &[Workload]| {
        all.iter().any(|one| {
            one.name_any().starts_with("job-too-large")
                && meta::find(&one.status.conditions, "QuotaReserved")
                    .is_some_and(|one| one.status == "False")
        })
    };
    hub.until_all(&workloads, "", "too-large has no room", TIMEOUT, refused).await?;
    let path =
        format!("/apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/{TEAM}/pendingworkloads");
    let list: Value = serde_json::from_str(&hub.kubectl(&["get", "--raw", &path]).await?)?;
    ensure!(list["items"].as_array().is_some_and(|items| items.len() == 1), "{list}");
    Ok(())
}
