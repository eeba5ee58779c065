//! A Job under ExactlyOnce: the Leases are recreated, or no manager renews the grant of the agent while it runs.

use anyhow::Result;
use crds::{meta::is_true, v1beta2::Workload};
use e2e::{
    installation::{NAMESPACE as PROGRAMS, TIMEOUT},
    objects::job_is,
};
use k8s_openapi::api::{batch::v1::Job, coordination::v1::Lease};
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};

use crate::{
    observed_job::ObservedJob,
    setup::{LEASED, NAMESPACE, leased_queue},
};

impl ObservedJob<'_> {
    /// The Leases are deleted before it is submitted.
    pub(super) async fn leased(&self) -> Result<()> {
        self.hub().apply(&leased_queue(), NAMESPACE).await?;
        if !self.again {
            let leases = self.worker()?.api::<Lease>(PROGRAMS);
            let own = ListParams::default().labels("sluice.dev/grants=true");
            leases.delete_collection(&DeleteParams::default(), &own).await?;
        }
        self.submit(self.leased_job(1)).await?;
        self.until_over().await
    }

    /// It runs until its clone is evicted. Its worker is left out for a minute then.
    pub(super) async fn fenced(&self) -> Result<()> {
        if !self.again {
            let clones = self.worker()?.api::<Workload>(NAMESPACE);
            let evicted =
                |all: &[Workload]| all.iter().any(|one| is_true(&one.status.conditions, "Evicted"));
            let what = "the clone is evicted";
            self.worker()?.until_all(&clones, "", what, TIMEOUT, evicted).await?;
            return Ok(());
        }
        let (jobs, complete) = (self.api::<Job>(), |job: &Job| job_is(job, "Complete"));
        self.hub().until(&jobs, self.name, "is complete", 3 * TIMEOUT, complete).await?;
        self.until_over().await
    }

    /// Until it runs under a grant.
    pub(crate) async fn until_granted(&self) -> Result<()> {
        self.hub().apply(&leased_queue(), NAMESPACE).await?;
        self.submit(self.leased_job(20)).await?;
        self.until_running().await
    }

    fn leased_job(&self, seconds: u32) -> Value {
        let mut job = self.job_of(seconds);
        job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!(LEASED);
        job
    }
}
