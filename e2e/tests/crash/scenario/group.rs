//! Groups of pods: at home, where one of them fails and is replaced, and on a worker.

use anyhow::{Result, ensure};
use crds::{
    meta::is_true,
    names::{MANAGED, gates::ADMISSION},
    v1beta2::Workload,
};
use e2e::{installation::TIMEOUT, objects::phase};
use harness::annotation;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{
    observed_job::{ObservedJob, create},
    setup::{NAMESPACE, PODS, WORKERS},
};

impl ObservedJob<'_> {
    /// No finalizer is left in the end.
    pub(super) async fn group(&self) -> Result<()> {
        let [first, second, replacement] =
            ["a", "b", "c"].map(|member| format!("{}-{member}", self.name));
        self.add_member(PODS, &first, 600).await?;
        self.add_member(PODS, &second, 3).await?;
        let runs = |pod: &Pod| phase(pod) == "Running" || phase(pod) == "Failed";
        self.hub().until(&self.api::<Pod>(), &first, "runs", TIMEOUT, runs).await?;
        let failed = Patch::Merge(json!({"status": {"phase": "Failed"}}));
        self.api::<Pod>().patch_status(&first, &PatchParams::default(), &failed).await?;
        let waits = |one: &Workload| holds(one, "WaitingForReplacementPods") || is_over(one);
        let workloads = self.api::<Workload>();
        if !self.again {
            self.hub().until(&workloads, self.name, "waits", TIMEOUT, waits).await?;
        }
        self.add_member(PODS, &replacement, 1).await?;
        self.until_released(&[first, second, replacement]).await
    }

    /// The members at home stay gated and show the ends of their copies, of which nothing is left.
    pub(super) async fn dispatched_group(&self) -> Result<()> {
        let members = ["a", "b"].map(|member| format!("{}-{member}", self.name));
        for member in &members {
            self.add_member(WORKERS, member, 2).await?;
        }
        self.until_released(&members).await?;
        for member in &members {
            let ended = self.api::<Pod>().get(member).await?;
            ensure!(phase(&ended) == "Succeeded", "{:?}", ended.status);
            let gates = ended.spec.and_then(|spec| spec.scheduling_gates).unwrap_or_default();
            ensure!(gates.iter().any(|gate| gate.name == ADMISSION), "{gates:?}");
        }
        let worker = self.worker()?;
        let labels = format!("kueue.x-k8s.io/pod-group-name={}", self.name);
        let none = <[Pod]>::is_empty;
        worker.until_all(&worker.api(NAMESPACE), &labels, "no copy is left", TIMEOUT, none).await?;
        self.until_nothing_left().await
    }

    async fn until_released(&self, members: &[String]) -> Result<()> {
        let over = |one: &Workload| is_over(one) && one.finalizers().is_empty();
        self.hub().until(&self.api(), self.name, "is over", TIMEOUT, over).await?;
        for member in members {
            let released = |pod: &Pod| !pod.finalizers().iter().any(|one| one == MANAGED);
            self.hub().until(&self.api(), member, "is released", TIMEOUT, released).await?;
        }
        Ok(())
    }

    async fn add_member(&self, queue: &str, name: &str, seconds: u32) -> Result<()> {
        let pod = json!({
            "metadata": {
                "name": name,
                "labels": {
                    "kueue.x-k8s.io/queue-name": queue, "kueue.x-k8s.io/pod-group-name": self.name,
                },
                "annotations": {
                    annotation::RUN_SECONDS: seconds.to_string(),
                    "kueue.x-k8s.io/pod-group-total-count": "2",
                },
            },
            "spec": {"restartPolicy": "Never", "containers": [{
                "name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}},
            }]},
        });
        create(&self.api(), &serde_json::from_value::<Pod>(pod)?).await
    }
}

fn holds(workload: &Workload, condition: &str) -> bool {
    is_true(&workload.status.conditions, condition)
}

fn is_over(workload: &Workload) -> bool {
    holds(workload, "Finished")
}
