//! A Workload is deactivated while it runs and activated again, or stopped by its maximum execution time.

use anyhow::Result;
use crds::{meta::is_true, v1beta2::Workload};
use kube::ResourceExt;
use serde_json::json;

use crate::observed_job::ObservedJob;

impl ObservedJob<'_> {
    /// After a program was restarted, an interruption is continued and none is begun: the job may be at its end.
    pub(super) async fn interrupted(&self) -> Result<()> {
        self.submit(self.job_of(4)).await?;
        self.interrupt_once().await?;
        self.until_over().await
    }

    /// Interrupts the job, unless the program has died since.
    pub(super) async fn interrupt_once(&self) -> Result<()> {
        if self.again {
            let workload = self.until_workload("is there", |_| true).await?;
            if workload.spec.active == Some(false) {
                self.activate_when_evicted(&workload.name_any()).await?;
            }
            Ok(())
        } else {
            self.interrupt().await
        }
    }

    /// Deactivates the Workload once it runs, and activates it when its quota is back.
    pub(super) async fn interrupt(&self) -> Result<()> {
        let admitted = |one: &Workload| is_true(&one.status.conditions, "Admitted");
        let workload = self.until_workload("is admitted", admitted).await?;
        self.until_running().await?;
        let name = workload.name_any();
        let off = json!({"spec": {"active": false}});
        self.change(&self.api::<Workload>(), &name, off).await?;
        self.activate_when_evicted(&name).await
    }

    async fn activate_when_evicted(&self, name: &str) -> Result<()> {
        let back = |one: &Workload| {
            let holds = |kind| is_true(&one.status.conditions, kind);
            holds("Finished") || holds("Evicted") && !holds("QuotaReserved")
        };
        self.until_workload("gave its quota back, or is over", back).await?;
        self.change(&self.api::<Workload>(), name, json!({"spec": {"active": true}})).await
    }

    /// It does not end by itself.
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
