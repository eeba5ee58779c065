//! The pods of the measurements.

use anyhow::{Context, Result};
use e2e::objects::phase;
use harness::{Cluster, annotation};
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use serde_json::json;

use crate::environment::NAME;

/// A pod of the queue.
pub(super) struct SamplePod<'a> {
    pub(super) name: &'a str,
    pub(super) cpu: &'a str,
    pub(super) run_seconds: u32,
    /// The group and its number of members.
    pub(super) group: Option<(&'a str, usize)>,
}

impl SamplePod<'_> {
    pub(super) async fn submit(&self, hub: &Cluster) -> Result<()> {
        let pod = self.object()?;
        let created = hub.api::<Pod>(NAME).create(&PostParams::default(), &pod).await;
        created.map(drop).with_context(|| format!("creating the pod {}", self.name))
    }

    fn object(&self) -> Result<Pod> {
        let mut labels = json!({"kueue.x-k8s.io/queue-name": NAME});
        let mut annotations = json!({annotation::RUN_SECONDS: self.run_seconds.to_string()});
        if let Some((group, members)) = self.group {
            labels["kueue.x-k8s.io/pod-group-name"] = json!(group);
            annotations["kueue.x-k8s.io/pod-group-total-count"] = json!(members.to_string());
        }
        let pod = json!({
            "metadata": {"name": self.name, "labels": labels, "annotations": annotations},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{
                    "name": "main", "image": "main", "resources": {"requests": {"cpu": self.cpu}},
                }],
            },
        });
        serde_json::from_value(pod).with_context(|| format!("the pod {}", self.name))
    }
}

/// Whether no gate keeps a pod from its node.
pub(super) fn may_start(pod: &Pod) -> bool {
    let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref());
    gates.is_none_or(Vec::is_empty) && !is_over(pod)
}

fn is_over(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed") || pod.metadata.deletion_timestamp.is_some()
}

/// The number of a pod as part of its name.
pub(super) fn name(number: usize) -> String {
    format!("pod-{number:05}")
}
