//! A Job is changed in every field while it is pending in a stopped ClusterQueue.

use anyhow::Result;
use crds::v1beta2::{Workload, WorkloadPriorityClass};
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use serde_json::json;

use crate::observed_job::{ObservedJob, create};

/// The tolerations that are added to the Job.
const TOLERATED: &str = "crash.example/edited";

impl ObservedJob<'_> {
    pub(super) async fn edited(&self) -> Result<()> {
        self.wait_in_the_closed_queue().await?;
        if !self.again {
            self.add_another_workload().await?;
        }
        let alone = |all: &[Workload]| !all.iter().any(|one| one.name_any() == self.stray());
        let workloads = self.api::<Workload>();
        let what = "the other Workload is gone";
        self.hub().until_all(&workloads, "", what, e2e::installation::TIMEOUT, alone).await?;
        self.tolerate_something().await?;
        self.raise_its_class().await?;
        self.open_another_queue().await?;
        self.until_over().await
    }

    fn class(&self) -> String {
        format!("class-of-{}", self.name)
    }

    fn stray(&self) -> String {
        format!("{}-stray", self.name)
    }

    async fn wait_in_the_closed_queue(&self) -> Result<()> {
        let class = json!({"metadata": {"name": self.class()}, "value": 1});
        create(&self.hub().cluster_api(), &serde_json::from_value::<WorkloadPriorityClass>(class)?)
            .await?;
        let mut job = self.job();
        job["metadata"]["labels"] = json!({
            "kueue.x-k8s.io/queue-name": "closed",
            "kueue.x-k8s.io/priority-class": self.class(),
        });
        self.submit(job).await?;
        let is_explained = |one: &Workload| {
            one.status.conditions.iter().any(|condition| condition.r#type == "QuotaReserved")
        };
        self.until_workload("has the reason why it is pending", is_explained).await?;
        Ok(())
    }

    /// Another Workload of the same Job, with other requests.
    async fn add_another_workload(&self) -> Result<()> {
        let own = self.until_workload("is there", |_| true).await?;
        let mut stray = Workload { spec: own.spec.clone(), ..Workload::default() };
        stray.metadata.name = Some(self.stray());
        stray.metadata.owner_references.clone_from(&own.metadata.owner_references);
        if let Some(pod_set) = stray.spec.pod_sets.first_mut() {
            pod_set.count = Some(3);
        }
        create(&self.api(), &stray).await
    }

    async fn tolerate_something(&self) -> Result<()> {
        let toleration = json!([{"key": TOLERATED, "operator": "Exists"}]);
        let fields = json!({"spec": {"template": {"spec": {"tolerations": toleration}}}});
        self.change(&self.api::<Job>(), self.name, fields).await?;
        let follows = |one: &Workload| {
            let pods = one.spec.pod_sets.iter().filter_map(|set| set.template.spec.as_ref());
            let mut tolerations = pods.flat_map(|pod| pod.tolerations.iter());
            tolerations.any(|one| one.key == TOLERATED)
        };
        self.until_workload("follows its Job", follows).await?;
        Ok(())
    }

    async fn raise_its_class(&self) -> Result<()> {
        let classes = self.hub().cluster_api::<WorkloadPriorityClass>();
        self.change(&classes, &self.class(), json!({"value": 2})).await?;
        self.until_workload("is as urgent as its class", |one| one.spec.priority == Some(2))
            .await?;
        Ok(())
    }

    async fn open_another_queue(&self) -> Result<()> {
        let fields = json!({"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "queue"}}});
        self.change(&self.api::<Job>(), self.name, fields).await
    }
}
