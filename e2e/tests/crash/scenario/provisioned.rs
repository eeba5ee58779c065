//! A Job at home that waits for the room of an autoscaler, which the test plays.

use std::convert::Infallible;

use anyhow::{Context, Result};
use crds::{
    meta::is_true,
    names::{MANAGED, provisioning::PROVISIONED as IS_PROVISIONED},
    v1beta2::Workload,
};
use e2e::installation::TIMEOUT;
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use provisioning::{EntryTemplate, ProvisioningRequest};
use serde_json::json;

use crate::{
    observed_job::{ObservedJob, create},
    setup::PROVISIONED,
};

impl ObservedJob<'_> {
    /// Its request, its templates, and a template that no request uses are gone at the end.
    pub(super) async fn provisioned(&self) -> Result<()> {
        let mut job = self.job();
        job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!(PROVISIONED);
        self.submit(job).await?;
        let workload = self.until_workload("is there", |_| true).await?;
        tokio::select! {
            over = self.until_over() => over?,
            error = self.autoscaler(&workload) => { error?; }
        }
        let requests = self.api::<ProvisioningRequest>();
        self.hub().until_all(&requests, "", "no request is left", TIMEOUT, <[_]>::is_empty).await?;
        let unused = self.unused();
        Ok(self.hub().until_gone(&self.api::<EntryTemplate>(), &unused, TIMEOUT).await?)
    }

    /// Provides what is requested, until the Job is over.
    async fn autoscaler(&self, workload: &Workload) -> Result<Infallible> {
        let requests = self.api::<ProvisioningRequest>();
        let of_job = |one: &&ProvisioningRequest| {
            one.owner_references().iter().any(|owner| owner.name == workload.name_any())
        };
        let open = |one: &&ProvisioningRequest| {
            of_job(one) && !is_true(&one.status.conditions, IS_PROVISIONED)
        };
        loop {
            let asks = |all: &[ProvisioningRequest]| all.iter().any(|one| open(&one));
            let all = self.hub().until_all(&requests, "", "asks", 4 * TIMEOUT, asks).await?;
            for request in all.iter().filter(open) {
                if !self.again {
                    self.leave_unused(workload).await?;
                }
                let status = json!({"status": {"conditions": [{
                    "type": IS_PROVISIONED, "status": "True", "reason": "Provisioned",
                    "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
                }]}});
                let name = request.name_any();
                let (params, patch) = (PatchParams::default(), Patch::Merge(status));
                requests.patch_status(&name, &params, &patch).await.context("providing room")?;
            }
        }
    }

    fn unused(&self) -> String {
        format!("unused-{}", self.name)
    }

    /// A template that would have become that of a further request.
    async fn leave_unused(&self, workload: &Workload) -> Result<()> {
        let template = json!({
            "metadata": {"name": self.unused(), "labels": {MANAGED: "true"}, "ownerReferences": [{
                "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "controller": true,
                "name": workload.name_any(), "uid": workload.uid(),
            }]},
            "template": {"spec": {"containers": [{"name": "main", "image": "main"}]}},
        });
        create(&self.api::<EntryTemplate>(), &serde_json::from_value(template)?).await
    }
}
