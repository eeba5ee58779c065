//! A Job runs on the manager's own cluster, with an admission check that a person decides.

use anyhow::Result;
use crds::{
    meta::is_true,
    v1beta2::{AdmissionCheck, LocalQueue, Workload},
};
use k8s_openapi::jiff::Timestamp;
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{observed_job::ObservedJob, setup::AT_HOME};

impl ObservedJob<'_> {
    /// Its queue stops before it is admitted, and it is deactivated once while it runs.
    pub(super) async fn at_home(&self) -> Result<()> {
        self.person_is_there().await?;
        // Pods that end while the Job is stopped do not count for it, and would be run twice: they run longer than a busy
        // machine takes to deactivate the Workload.
        let mut job = self.job_of(6);
        job["spec"]["parallelism"] = json!(2);
        job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!(AT_HOME);
        self.submit(job).await?;
        if !self.again {
            self.stop_the_queue().await?;
        }
        self.queue_is(json!("None")).await?;
        if !self.again {
            let workload = self.until_workload("asks the person", asks).await?;
            self.say_yes(&workload).await?;
            self.interrupt().await?;
        }
        self.activate().await?;
        self.approve_until_finished().await?;
        self.until_over().await
    }

    /// The controller of the check reports that it is active.
    async fn person_is_there(&self) -> Result<()> {
        let condition = json!({
            "type": "Active", "status": "True", "reason": "Awake", "message": "",
            "lastTransitionTime": Timestamp::now(), "observedGeneration": 1,
        });
        let checks = self.hub().cluster_api::<AdmissionCheck>();
        let fields = Patch::Merge(json!({"status": {"conditions": [condition]}}));
        checks.patch_status("person", &PatchParams::default(), &fields).await?;
        Ok(())
    }

    async fn stop_the_queue(&self) -> Result<()> {
        let holds = |one: &Workload| is_true(&one.status.conditions, "QuotaReserved");
        self.until_workload("holds quota", holds).await?;
        self.queue_is(json!("Hold")).await?;
        self.until_workload("holds none", |one| !holds(one)).await?;
        Ok(())
    }

    async fn queue_is(&self, policy: Value) -> Result<()> {
        let queues = self.api::<LocalQueue>();
        self.change(&queues, AT_HOME, json!({"spec": {"stopPolicy": policy}})).await
    }

    async fn activate(&self) -> Result<()> {
        let workload = self.until_workload("is there", |_| true).await?;
        let fields = json!({"spec": {"active": true}});
        self.change(&self.api::<Workload>(), &workload.name_any(), fields).await
    }

    /// Approves the check whenever it is pending, until the Job is finished.
    async fn approve_until_finished(&self) -> Result<()> {
        loop {
            let over = |one: &Workload| is_true(&one.status.conditions, "Finished");
            let workload =
                self.until_workload("asks the person", |one| asks(one) || over(one)).await?;
            if over(&workload) {
                return Ok(());
            }
            self.say_yes(&workload).await?;
        }
    }

    async fn say_yes(&self, workload: &Workload) -> Result<()> {
        let mut checks = json!(workload.status.admission_checks);
        for check in checks.as_array_mut().into_iter().flatten() {
            check["state"] = json!("Ready");
        }
        let fields = Patch::Merge(json!({"status": {"admissionChecks": checks}}));
        let workloads = self.api::<Workload>();
        workloads.patch_status(&workload.name_any(), &PatchParams::default(), &fields).await?;
        Ok(())
    }
}

fn asks(workload: &Workload) -> bool {
    let status = &workload.status;
    let undecided = status.admission_checks.iter().any(|check| check.state == "Pending");
    is_true(&status.conditions, "QuotaReserved") && undecided
}
