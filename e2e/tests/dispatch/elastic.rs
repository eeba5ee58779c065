//! An elastic Job runs on a worker; the agent there takes the gate off its pods. When the Job shrinks on the manager, its copies do.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use crds::{
    meta::find,
    names::conditions::QUOTA_RESERVED,
    v1beta2::{ClusterQueue, Workload},
};
use e2e::{installation::TIMEOUT, waits::while_pods_end};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{ResourceExt, api::ListParams};
use serde_json::{Value, json};

use crate::{
    fixture::{DispatchFixture, delete, holds},
    objects::{self, LONG},
};

pub(crate) fn elastic(mut job: Value) -> Value {
    job["metadata"]["annotations"] = json!({"kueue.x-k8s.io/elastic-job": "true"});
    job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(1);
    job
}

impl DispatchFixture {
    /// Waits until the clone and the copy of a Job on worker 1 have so many pods. Returns the copy.
    async fn until_copies_have(&self, job: &str, workload: &str, pods: i32) -> Result<Job> {
        let (worker, namespace) = (self.worker(1), self.namespace());
        let counts = |clone: &Workload| clone.spec.pod_sets[0].count == Some(pods);
        let clones = worker.api::<Workload>(namespace);
        worker.until(&clones, workload, "has the size", TIMEOUT, counts).await?;
        let size = |copy: &Job| copy.spec.as_ref().and_then(|spec| spec.parallelism) == Some(pods);
        Ok(worker.until(&worker.api::<Job>(namespace), job, "has the size", TIMEOUT, size).await?)
    }

    async fn until_queue_uses(&self, cpu: &str) -> Result<()> {
        let uses = |queue: &ClusterQueue| {
            let flavors = queue.status.flavors_usage.iter();
            let mut totals = flavors.flat_map(|one| &one.resources).flat_map(|one| &one.total);
            totals.any(|total| total.to_string() == cpu)
        };
        let (queues, what) = (self.hub().cluster_api(), format!("uses {cpu}"));
        self.hub().until(&queues, self.namespace(), &what, TIMEOUT, uses).await?;
        Ok(())
    }

    /// The pods of a Job on worker 1 that do not end.
    async fn staying_pods(&self, job: &str) -> Result<BTreeSet<String>> {
        let labels = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={job}"));
        let pods = self.worker(1).api::<Pod>(self.namespace()).list(&labels).await?;
        let staying = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        Ok(staying.map(ResourceExt::name_any).collect())
    }
}

#[tokio::test]
async fn the_pods_of_an_elastic_job_start_on_a_worker() -> Result<()> {
    let fixture = DispatchFixture::shared("elastic").await?;
    fixture.nodes(1, 1, "2").await?;
    fixture.queue("2").await?;
    fixture.submit(&elastic(objects::job("train", 2, "1", 1))).await?;
    fixture.expect_once("train", 2).await
}

#[tokio::test]
async fn an_elastic_job_that_shrinks_leaves_its_room_to_another() -> Result<()> {
    let fixture = DispatchFixture::shared("shrink").await?;
    fixture.nodes(1, 1, "4").await?;
    fixture.queue("4").await?;
    let mut train = elastic(objects::job("train", 4, "1", LONG));
    train["spec"]["completions"] = json!(100);
    fixture.submit(&train).await?;
    fixture.until_running("train", 4, 1).await?;
    let before = fixture.staying_pods("train").await?;
    fixture.until_queue_uses("4").await?;
    fixture.submit(&objects::job("waiting", 2, "1", 1)).await?;
    let waits = |one: &Workload| {
        find(&one.status.conditions, QUOTA_RESERVED).is_some_and(|one| one.status == "False")
    };
    fixture.until_workload("waiting", "waits", waits).await?;

    fixture.change::<Job>("train", &json!({"spec": {"parallelism": 2}})).await?;
    let has_two = |one: &Workload| one.spec.pod_sets[0].count == Some(2);
    let workload = fixture.until_workload("train", "has two pods", has_two).await?;
    fixture.until_copies_have("train", &workload.name_any(), 2).await?;
    fixture.until_complete("waiting", 2 * TIMEOUT).await?;
    fixture.until_queue_uses("2").await?;
    fixture.until_running("train", 2, 1).await?;
    let left = fixture.staying_pods("train").await?;
    ensure!(left.len() == 2 && left.is_subset(&before), "{left:?} of {before:?} go on");
    let workload = fixture.until_workload("train", "is there", |_| true).await?;
    ensure!(holds(&workload, "Admitted") && !holds(&workload, "Evicted"), "it was never evicted");

    delete(&fixture.api::<Job>(), "train").await?;
    fixture.until_nothing_is_left().await
}

#[tokio::test]
async fn completions_that_equal_the_parallelism_follow() -> Result<()> {
    let fixture = DispatchFixture::shared("shrink-indexed").await?;
    fixture.nodes(1, 1, "3").await?;
    fixture.queue("3").await?;
    let mut job = elastic(objects::job("indexed", 3, "1", LONG));
    job["spec"]["completionMode"] = json!("Indexed");
    fixture.submit(&job).await?;
    fixture.until_running("indexed", 3, 1).await?;
    let fields = json!({"spec": {"parallelism": 1, "completions": 1}});
    fixture.change::<Job>("indexed", &fields).await?;
    let has_one = |one: &Workload| one.spec.pod_sets[0].count == Some(1);
    let workload = fixture.until_workload("indexed", "has one pod", has_one).await?;
    let copy = fixture.until_copies_have("indexed", &workload.name_any(), 1).await?;
    ensure!(copy.spec.and_then(|spec| spec.completions) == Some(1), "both change together");
    fixture.until_running("indexed", 1, 1).await?;

    // Its only pod ends, and with it the Job.
    ensure!(fixture.staying_pods("indexed").await?.len() == 1, "one pod is left");
    let workers = &fixture.installation.workers;
    let complete = fixture.until_complete("indexed", 2 * TIMEOUT);
    while_pods_end(workers, (fixture.namespace(), "indexed"), complete).await?;
    fixture.until_workload("indexed", "is finished", |one| holds(one, "Finished")).await?;
    fixture.until_nothing_is_left().await
}
