//! A remote copy is refused by the agent or the worker's API server, or deleted on the worker.

use std::time::Duration;

use anyhow::Result;
use crds::{meta::is_true, v1beta2::Workload};
use e2e::installation::TIMEOUT;
use k8s_openapi::api::{batch::v1::Job, core::v1::ResourceQuota};
use kube::{
    ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::json;

use crate::{
    observed_job::{ObservedJob, create},
    setup::NAMESPACE,
};

/// The quota that lets no Job in.
const CLOSED: &str = "closed";

/// Pause between two checks of state that no watch reports.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl ObservedJob<'_> {
    /// Another controller runs it, and waits until it is not suspended. It is not dispatched.
    pub(super) async fn foreign(&self) -> Result<()> {
        let mut job = self.job();
        job["spec"]["managedBy"] = json!("crash.example/controller");
        self.submit(job).await?;
        self.until_given_up().await
    }

    /// Its clone is deleted while it runs.
    pub(super) async fn robbed(&self) -> Result<()> {
        self.submit(self.job_of(4)).await?;
        if !self.again {
            self.until_running().await?;
            let clones = self.worker()?.api::<Workload>(NAMESPACE);
            let clone = self.until_workload("is there", |_| true).await?;
            clones.delete(&clone.name_any(), &DeleteParams::default()).await?;
        }
        self.until_over().await
    }

    /// The worker's API server refuses its Job at first.
    pub(super) async fn refused(&self) -> Result<()> {
        if !self.again {
            let quotas = self.worker()?.api::<ResourceQuota>(NAMESPACE);
            let quota = json!({
                "metadata": {"name": CLOSED}, "spec": {"hard": {"count/jobs.batch": "0"}},
            });
            create(&quotas, &serde_json::from_value(quota)?).await?;
            let known = |quota: &ResourceQuota| quota.status.is_some();
            let what = "is known";
            self.worker()?.until(&quotas, CLOSED, what, TIMEOUT, known).await?;
            self.submit(self.job()).await?;
            let not_taken = |one: &Workload| {
                let conditions = &one.status.conditions;
                let mut reasons = conditions.iter().filter(|one| one.r#type == "QuotaReserved");
                !is_true(conditions, "QuotaReserved")
                    && reasons.any(|one| one.message.contains("exceeded quota: closed"))
            };
            self.until_workload("is not taken", not_taken).await?;
        }
        self.submit(self.job()).await?;
        self.until_over().await
    }

    /// Deletes the quota, and waits until the worker's API server enforces it.
    pub(super) async fn open_the_worker(&self) -> Result<()> {
        let quotas = self.worker()?.api::<ResourceQuota>(NAMESPACE);
        let jobs = self.worker()?.api::<Job>(NAMESPACE);
        quotas.delete(CLOSED, &DeleteParams::default()).await?;
        let mut job = self.job();
        job["metadata"]["name"] = json!("is-it-open");
        let (job, dry) =
            (serde_json::from_value(job)?, PostParams { dry_run: true, ..PostParams::default() });
        let open = async {
            while jobs.create(&dry, &job).await.is_err() {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        Ok(tokio::time::timeout(TIMEOUT, open).await?)
    }
}
