//! A pod that is being deleted while its kubelet is down: failure recovery ends it and deletes it by force.

use anyhow::{Context, Result};
use crds::names::conditions::FAILURE_RECOVERY;
use e2e::installation::TIMEOUT;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::{
    observed_job::ObservedJob,
    setup::{SILENT_PODS, silent_pod},
};

impl ObservedJob<'_> {
    /// One of the pods that were deleted at the beginning.
    pub(super) async fn unreachable(&self) -> Result<()> {
        let number: usize = self.name.rsplit('-').next().context("a number")?.parse()?;
        let name = silent_pod(number % SILENT_PODS);
        self.lose_node(&format!("{name}-1")).await?;
        let pods = self.api::<Pod>();
        let Some(_) = pods.get_opt(&name).await? else { return Ok(()) };
        // At the earliest 60 s after its deletion.
        self.hub()
            .until(&pods, &name, "was deleted by force", 2 * TIMEOUT, deleted_by_force)
            .await?;
        self.change(&pods, &name, json!({"metadata": {"finalizers": null}})).await
    }

    /// The node controller taints a node with unknown readiness.
    async fn lose_node(&self, name: &str) -> Result<()> {
        let condition = json!({
            "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
        let nodes = self.hub().cluster_api::<Node>();
        nodes.patch_status(name, &PatchParams::default(), &patch).await.context("losing a node")?;
        Ok(())
    }
}

fn deleted_by_force(pod: &Pod) -> bool {
    let status = pod.status.clone().unwrap_or_default();
    let marked = |type_: &str| type_ == FAILURE_RECOVERY;
    pod.metadata.deletion_grace_period_seconds == Some(0)
        && status.phase.as_deref() == Some("Failed")
        && status.conditions.iter().flatten().any(|one| marked(&one.type_))
}
