//! An elastic Job grows on the worker that runs it: another Workload takes its place there, and its pods run on.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use crds::{names::labels::PREBUILT_WORKLOAD_NAME, v1beta2::Workload};
use e2e::installation::TIMEOUT;
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{Resource, ResourceExt, api::ListParams};
use serde_json::{Value, json};

use crate::{
    elastic::elastic,
    fixture::{DispatchFixture, delete, holds, said},
    objects::{self, LONG},
};

const JOB: &str = "train";

/// An elastic Job of so many pods that run without an end.
fn train(pods: usize) -> Value {
    let mut job = elastic(objects::job(JOB, pods, "1", LONG));
    job["spec"]["completions"] = json!(100);
    job
}

impl DispatchFixture {
    async fn resize(&self, pods: i32) -> Result<()> {
        self.change::<Job>(JOB, &json!({"spec": {"parallelism": pods}})).await
    }

    /// Waits until one slice on the hub is not over and has so many pods, and the worker has its clone and no other, which the copy of
    /// the Job names. Returns its name.
    async fn until_one_slice(&self, pods: i32) -> Result<String> {
        let is_open = |one: &&Workload| !holds(one, "Finished");
        let is_one = |all: &[Workload]| {
            let open: Vec<&Workload> = all.iter().filter(is_open).collect();
            let sized = |one: &Workload| one.spec.pod_sets[0].count == Some(pods);
            matches!(open[..], [one] if sized(one) && holds(one, "Admitted"))
        };
        let what = format!("one slice of {pods} pods is admitted");
        let all =
            self.hub().until_all(&self.api::<Workload>(), "", &what, 2 * TIMEOUT, is_one).await?;
        let name = all.iter().find(is_open).map(ResourceExt::name_any).unwrap_or_default();
        let (worker, namespace) = (self.worker(1), self.namespace());
        let is_named = |job: &Job| {
            let parallelism = job.spec.as_ref().and_then(|spec| spec.parallelism);
            let named = job.annotations().get(PREBUILT_WORKLOAD_NAME);
            parallelism == Some(pods) && named == Some(&name)
        };
        worker.until(&worker.api::<Job>(namespace), JOB, "names it", TIMEOUT, is_named).await?;
        let is_only = |all: &[Workload]| matches!(all, [one] if one.name_any() == name);
        let clones = worker.api::<Workload>(namespace);
        worker.until_all(&clones, "", "it has one clone", TIMEOUT, is_only).await?;
        Ok(name)
    }

    /// Uids of the pods of the Job on worker 1 that do not end.
    async fn uids(&self) -> Result<BTreeSet<String>> {
        let labels = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={JOB}"));
        let pods = self.worker(1).api::<Pod>(self.namespace()).list(&labels).await?;
        let staying = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        Ok(staying.filter_map(|pod| pod.meta().uid.clone()).collect())
    }
}

#[tokio::test]
async fn an_elastic_job_grows_beside_its_running_pods_and_shrinks_again() -> Result<()> {
    let fixture = DispatchFixture::shared("grow").await?;
    fixture.nodes(1, 2, "4").await?;
    fixture.queue("8").await?;
    fixture.submit(&train(2)).await?;
    fixture.until_running(JOB, 2, 1).await?;
    // The other worker has more room from now on, and is not asked.
    fixture.nodes(2, 4, "8").await?;
    let first = fixture.until_one_slice(2).await?;
    let mut before = fixture.uids().await?;
    fixture.resize(5).await?;
    let second = fixture.until_one_slice(5).await?;
    ensure!(first != second, "a second slice");
    fixture.until_running(JOB, 5, 1).await?;
    ensure!(before.is_subset(&fixture.uids().await?), "no pod was started again");

    fixture.resize(3).await?;
    ensure!(fixture.until_one_slice(3).await? == second, "it shrinks in place");
    fixture.until_running(JOB, 3, 1).await?;

    before = fixture.uids().await?;
    for pods in [4, 6, 3, 5, 8, 4, 7, 3, 6, 7] {
        fixture.resize(pods).await?;
    }
    fixture.until_one_slice(7).await?;
    fixture.until_running(JOB, 7, 1).await?;
    ensure!(before.is_subset(&fixture.uids().await?), "no pod was started again");

    delete(&fixture.api::<Job>(), JOB).await?;
    fixture.until_nothing_is_left().await
}

#[tokio::test]
async fn a_job_that_its_worker_has_no_room_for_keeps_its_size_and_says_why() -> Result<()> {
    let fixture = DispatchFixture::shared("grow-no-room").await?;
    fixture.nodes(1, 1, "4").await?;
    fixture.queue("9").await?;
    fixture.submit(&train(2)).await?;
    fixture.until_running(JOB, 2, 1).await?;
    let first = fixture.until_one_slice(2).await?;
    let before = fixture.uids().await?;
    fixture.resize(6).await?;
    let why = "no cluster has room: worker-1: pod set main: only 2 of 4 pods fit";
    let waits = |one: &Workload| {
        said(&one.status.conditions, "QuotaReserved")
            .is_some_and(|said| !said.status && said.message == why)
    };
    let explained = |all: &[Workload]| all.iter().any(waits);
    let workloads = fixture.api::<Workload>();
    fixture.hub().until_all(&workloads, "", "it says why it waits", TIMEOUT, explained).await?;
    let old = workloads.get(&first).await?;
    ensure!(holds(&old, "Admitted") && !holds(&old, "Evicted"), "the old size runs");
    ensure!(fixture.uids().await? == before, "with the same pods");

    // A size that has room, and one that does not need any.
    fixture.resize(4).await?;
    fixture.until_one_slice(4).await?;
    fixture.until_running(JOB, 4, 1).await?;
    ensure!(before.is_subset(&fixture.uids().await?), "no pod was started again");
    fixture.resize(9).await?;
    let second = |all: &[Workload]| all.iter().filter(|one| !holds(one, "Finished")).count() == 2;
    fixture.hub().until_all(&workloads, "", "another one waits", TIMEOUT, second).await?;
    fixture.resize(1).await?;
    fixture.until_one_slice(1).await?;
    fixture.until_running(JOB, 1, 1).await?;
    delete(&fixture.api::<Job>(), JOB).await?;
    fixture.until_nothing_is_left().await
}
