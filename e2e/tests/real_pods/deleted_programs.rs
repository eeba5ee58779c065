//! The pods of manager and agents are deleted without a warning while Jobs run: none is lost, none runs twice.

use anyhow::{Context, Result, ensure};
use e2e::diary::{self, Diary};
use e2e::installation::{NAMESPACE, TIMEOUT};
use e2e::{objects, waits};
use harness::{Cluster, Judgement, Observer, RunVerdict, make_namespace};
use k8s_openapi::api::core::v1::Pod;

use crate::clusters::{STARTED, TestClusters};

/// The namespace of the test, and the name of its objects.
pub(crate) const PLACE: &str = "deleted-programs";

/// Half of them wait for quota while the others run.
const JOBS: usize = 6;

const QUOTA: &str = "600m";

/// Pods of each Job.
const PODS: usize = 2;

/// Long enough to be seen running, and to end while the programs start again.
const SCRIPT: &str = "note started; sleep 8; note ended";

pub(crate) async fn lose_no_job(clusters: &TestClusters) -> Result<()> {
    let all: Vec<Cluster> = clusters.all().cloned().collect();
    for cluster in &all {
        make_namespace(cluster, PLACE).await?;
    }
    let observer = Observer::start(&all, PLACE, STARTED).await?;
    let (hub, workers) = (&all[0], &all[1..]);
    objects::queue(hub, PLACE, QUOTA, &["worker-1", "worker-2"]).await?;
    for number in 1..=JOBS {
        let job = diary::job(PLACE, &format!("job-{number}"), PODS, SCRIPT);
        hub.apply(&job.to_string(), PLACE).await?;
    }
    let runs = |all: &[Pod]| all.iter().any(|pod| objects::phase(pod) == "Running");
    waits::until_pods_on_any(workers, (PLACE, "", "one runs"), 2 * TIMEOUT, runs).await?;
    for cluster in &all {
        let delete = ["delete", "pods", "--all", "-n", NAMESPACE, "--force", "--wait=false"];
        cluster.kubectl(&delete).await?;
    }

    let mut seen = Vec::new();
    for number in 1..=JOBS {
        let job = format!("job-{number}");
        waits::until_job_ended((hub, PLACE), (&job, "Complete"), 3 * TIMEOUT).await?;
        seen.push(waits::ensure_verdict(&observer, (&job, PODS), &[RunVerdict::Once]).await?);
    }
    for worker in workers {
        waits::until_no_pod_is_left(worker, PLACE, TIMEOUT).await?;
    }
    containers_wrote_the_same(clusters, &seen)
}

/// On real nodes of a lab, the diaries are those of the ledger. Nodes of other clusters keep theirs to themselves.
fn containers_wrote_the_same(clusters: &TestClusters, seen: &[Judgement]) -> Result<()> {
    let Some(workers) = clusters.states_of_lab_workers() else { return Ok(()) };
    let mut ended = 0;
    for worker in workers {
        let diary = Diary::read(worker, PLACE).with_context(|| worker.name.clone())?;
        diary.ensure_as_seen(&worker.name, seen)?;
        ended += diary.pods("ended")?.len();
    }
    ensure!(ended == JOBS * PODS, "{ended} containers ended");
    Ok(())
}
