//! An elastic Job on a worker that gets fewer pods while it runs. Then it is deleted.

use anyhow::Result;
use crds::{names::annotations::ELASTIC_JOB, v1beta2::Workload};
use e2e::installation::TIMEOUT;
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::api::DeleteParams;
use serde_json::json;

use crate::{observed_job::ObservedJob, setup::NAMESPACE};

impl ObservedJob<'_> {
    /// Two pods, then one.
    pub(super) async fn shrunk(&self) -> Result<()> {
        let mut job = self.job_of(3600);
        job["metadata"]["annotations"] = json!({ELASTIC_JOB: "true"});
        job["spec"]["completions"] = json!(8);
        job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(1);
        self.submit(job).await?;
        self.until_running().await?;
        let jobs = self.api::<Job>();
        self.change(&jobs, self.name, json!({"spec": {"parallelism": 1}})).await?;
        self.until_copies_have_one_pod().await?;
        jobs.delete(self.name, &DeleteParams::background()).await?;
        let over = |all: &[Workload]| !all.iter().any(|one| self.owns(one));
        self.hub().until_all(&self.api::<Workload>(), "", "it is gone", TIMEOUT, over).await?;
        self.until_nothing_left().await
    }

    async fn until_copies_have_one_pod(&self) -> Result<()> {
        let worker = self.worker()?;
        let clones = worker.api::<Workload>(NAMESPACE);
        let small = |all: &[Workload]| {
            let mut counts = all.iter().map(|one| one.spec.pod_sets[0].count);
            counts.all(|count| count == Some(1))
        };
        worker.until_all(&clones, "", "the clone has one pod", TIMEOUT, small).await?;
        let labels = format!("batch.kubernetes.io/job-name={}", self.name);
        let one = |pods: &[Pod]| pods.len() == 1;
        worker.until_all(&worker.api(NAMESPACE), &labels, "one pod is left", TIMEOUT, one).await?;
        Ok(())
    }
}
