//! An elastic Job on a worker that gets more pods while it runs. Then it is deleted.

use anyhow::Result;
use crds::{meta::is_true, names::annotations::ELASTIC_JOB, v1beta2::Workload};
use e2e::{installation::TIMEOUT, objects};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::api::DeleteParams;
use serde_json::json;

use crate::{observed_job::ObservedJob, setup::NAMESPACE};

impl ObservedJob<'_> {
    /// One pod, then two.
    pub(super) async fn grown(&self) -> Result<()> {
        let mut job = self.job_of(3600);
        job["metadata"]["annotations"] = json!({ELASTIC_JOB: "true"});
        job["spec"]["parallelism"] = json!(1);
        job["spec"]["completions"] = json!(8);
        job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(1);
        self.submit(job).await?;
        self.until_running().await?;
        let jobs = self.api::<Job>();
        self.change(&jobs, self.name, json!({"spec": {"parallelism": 2}})).await?;
        self.until_two_pods_run().await?;
        self.until_one_slice().await?;
        jobs.delete(self.name, &DeleteParams::background()).await?;
        let over = |all: &[Workload]| !all.iter().any(|one| self.owns(one));
        self.hub().until_all(&self.api::<Workload>(), "", "it is gone", TIMEOUT, over).await?;
        self.until_nothing_left().await
    }

    async fn until_two_pods_run(&self) -> Result<()> {
        let labels = format!("batch.kubernetes.io/job-name={}", self.name);
        let run = |all: &[Pod]| {
            all.len() == 2 && all.iter().filter(|pod| objects::phase(pod) == "Running").count() == 2
        };
        let worker = self.worker()?;
        worker.until_all(&worker.api(NAMESPACE), &labels, "two pods run", TIMEOUT, run).await?;
        Ok(())
    }

    /// One slice is not over, and the worker has its clone alone.
    async fn until_one_slice(&self) -> Result<()> {
        let open = |one: &&Workload| self.owns(one) && !is_true(&one.status.conditions, "Finished");
        let one = |all: &[Workload]| all.iter().filter(open).count() == 1;
        self.hub().until_all(&self.api::<Workload>(), "", "one slice", TIMEOUT, one).await?;
        let worker = self.worker()?;
        let one = |all: &[Workload]| all.len() == 1;
        worker.until_all(&worker.api::<Workload>(NAMESPACE), "", "one clone", TIMEOUT, one).await?;
        Ok(())
    }
}
