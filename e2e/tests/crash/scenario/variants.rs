//! A Job at home with a variant per flavor. Its better flavor is in use by a Job of lower priority.

use anyhow::Result;
use crds::{meta::is_true, v1beta2::Workload};
use e2e::installation::TIMEOUT;
use k8s_openapi::api::batch::v1::Job;
use kube::{ResourceExt, api::DeleteParams};
use serde_json::{Value, json};

use crate::{
    observed_job::{ObservedJob, create},
    setup::VARIANTS,
};

impl ObservedJob<'_> {
    /// No variant is left that is not over.
    pub(super) async fn variants(&self) -> Result<()> {
        let jobs = self.api::<Job>();
        create(&jobs, &serde_json::from_value(self.low_job())?).await?;
        if !self.again {
            self.until_low_is_admitted().await?;
        }
        let mut job = self.job_of(4);
        job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!(VARIANTS);
        self.submit(job).await?;
        self.interrupt_once().await?;
        self.until_over().await?;
        let own = format!("job-{}-variant-", self.name);
        let over = |all: &[Workload]| {
            let mut variants = all.iter().filter(|one| one.name_any().starts_with(&own));
            variants.all(|one| is_true(&one.status.conditions, "Finished"))
        };
        let workloads = self.api::<Workload>();
        self.hub().until_all(&workloads, "", "its variants are over", TIMEOUT, over).await?;
        jobs.delete(&self.low_name(), &DeleteParams::background()).await?;
        let low = format!("job-{}-", self.low_name());
        let gone = |all: &[Workload]| !all.iter().any(|one| one.name_any().starts_with(&low));
        self.hub().until_all(&workloads, "", "the other one is gone", TIMEOUT, gone).await?;
        Ok(())
    }

    fn low_name(&self) -> String {
        format!("low-{}", self.name)
    }

    fn low_job(&self) -> Value {
        let mut job = self.job_of(3600);
        job["metadata"]["name"] = json!(self.low_name());
        job["metadata"]["labels"] = json!({
            "kueue.x-k8s.io/queue-name": VARIANTS, "kueue.x-k8s.io/priority-class": "low",
        });
        job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(1);
        job
    }

    async fn until_low_is_admitted(&self) -> Result<()> {
        let low = format!("job-{}-variant-{VARIANTS}-", self.low_name());
        let holds = |all: &[Workload]| {
            let admitted = |one: &Workload| is_true(&one.status.conditions, "Admitted");
            all.iter().any(|one| one.name_any().starts_with(&low) && admitted(one))
        };
        let workloads = self.api::<Workload>();
        self.hub().until_all(&workloads, "", "the other one runs", TIMEOUT, holds).await?;
        Ok(())
    }
}
