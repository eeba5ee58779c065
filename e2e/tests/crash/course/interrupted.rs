//! Deactivated while it runs, and activated when nothing of it runs; or stopped for good by its own limit.

use anyhow::Result;
use crds::{meta::is_true, v1beta2::Workload};
use kube::ResourceExt;
use serde_json::json;

use crate::life::Life;

impl Life<'_> {
    pub(super) async fn interrupted(&self) -> Result<()> {
        self.submit(self.job_of(4)).await?;
        self.interrupt().await?;
        self.until_over().await
    }

    /// Deactivates the Workload once it runs, and activates it when its quota is back. Only once: if a program died after
    /// that, the job may be at its end by now.
    pub(super) async fn interrupt(&self) -> Result<()> {
        let evicted = |one: &Workload| is_true(&one.status.conditions, "Evicted");
        let on_its_way =
            |one: &Workload| evicted(one) || is_true(&one.status.conditions, "Admitted");
        let workload = self.until_workload("is admitted", on_its_way).await?;
        let was_evicted = workload.status.conditions.iter().any(|one| one.r#type == "Evicted");
        if was_evicted && !evicted(&workload) {
            return Ok(());
        }
        let (workloads, name) = (self.api::<Workload>(), workload.name_any());
        if !evicted(&workload) {
            self.until_running().await?;
            self.change(&workloads, &name, json!({"spec": {"active": false}})).await?;
        }
        let back =
            |one: &Workload| evicted(one) && !is_true(&one.status.conditions, "QuotaReserved");
        self.until_workload("gave its quota back", back).await?;
        self.change(&workloads, &name, json!({"spec": {"active": true}})).await
    }

    /// It never ends by itself.
    pub(super) async fn too_long(&self) -> Result<()> {
        let mut job = self.job_of(600);
        job["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = json!("2");
        self.submit(job).await?;
        self.until_given_up().await
    }

    /// Until it is deactivated and holds nothing.
    pub(super) async fn until_given_up(&self) -> Result<()> {
        let given_up = |one: &Workload| {
            one.spec.active == Some(false) && !is_true(&one.status.conditions, "QuotaReserved")
        };
        self.until_workload("is deactivated", given_up).await?;
        self.until_nothing_left().await
    }
}
