//! An elastic Job at home that grows and shrinks while it runs, and an elastic RayJob with a RayCluster of another size.

use anyhow::Result;
use crds::{
    meta::is_true,
    names::annotations::{ELASTIC_JOB, RAYCLUSTER_GENERATION},
    v1beta2::Workload,
};
use e2e::installation::TIMEOUT;
use harness::annotation;
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::DeleteParams,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::{
    observed_job::{ObservedJob, create},
    setup::{NAMESPACE, PODS},
};

/// The CRDs of Ray. No operator runs.
const RAY: &str = include_str!("../../kinds/ray-crds.yaml");

impl ObservedJob<'_> {
    /// One pod, three, and one again. Then the Job and its slices go.
    pub(super) async fn elastic(&self) -> Result<()> {
        let jobs = self.api::<Job>();
        create(&jobs, &serde_json::from_value(self.elastic_job())?).await?;
        // The first run may have ended at any size.
        for size in [1, 3, 1] {
            self.change(&jobs, self.name, json!({"spec": {"parallelism": size}})).await?;
            self.until_slice_of(size).await?;
            self.until_started(size).await?;
        }
        jobs.delete(self.name, &DeleteParams::background()).await?;
        let over = |all: &[Workload]| !all.iter().any(|one| self.owns(one));
        self.hub().until_all(&self.api::<Workload>(), "", "they are gone", TIMEOUT, over).await?;
        self.elastic_ray_job().await
    }

    async fn until_slice_of(&self, size: i32) -> Result<()> {
        let holds = |all: &[Workload]| {
            let is = |one: &&Workload, condition| is_true(&one.status.conditions, condition);
            let open = all.iter().filter(|one| self.owns(one) && !is(one, "Finished"));
            let open: Vec<&Workload> = open.collect();
            let [only] = open[..] else { return false };
            is(&only, "Admitted") && only.spec.pod_sets[0].count == Some(size)
        };
        self.hub()
            .until_all(&self.api::<Workload>(), "", "one slice is admitted", TIMEOUT, holds)
            .await?;
        Ok(())
    }

    async fn until_started(&self, size: i32) -> Result<()> {
        let labels = format!("batch.kubernetes.io/job-name={}", self.name);
        let started = |pods: &[Pod]| {
            let stays = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
            let gated = |pod: &Pod| {
                let spec = pod.spec.as_ref();
                spec.is_some_and(|spec| spec.scheduling_gates.iter().flatten().next().is_some())
            };
            let pods: Vec<&Pod> = pods.iter().filter(stays).collect();
            i32::try_from(pods.len()) == Ok(size) && !pods.iter().any(|pod| gated(pod))
        };
        self.hub().until_all(&self.api(), &labels, "its pods start", TIMEOUT, started).await?;
        Ok(())
    }

    fn elastic_job(&self) -> Value {
        let mut job = self.job_of(3600);
        job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!(PODS);
        job["metadata"]["annotations"] = json!({ELASTIC_JOB: "true"});
        job["spec"]["parallelism"] = json!(1);
        job["spec"]["completions"] = json!(8);
        job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(1);
        job
    }

    /// Its annotation shows that it has no RayCluster.
    async fn elastic_ray_job(&self) -> Result<()> {
        self.hub().apply(RAY, NAMESPACE).await?;
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("ray.io", "v1", "RayJob"));
        let jobs: Api<DynamicObject> = Api::namespaced_with(self.hub().client(), NAMESPACE, &kind);
        create(&jobs, &serde_json::from_value(self.ray_job())?).await?;
        let annotated = |job: &DynamicObject| job.annotations().contains_key(RAYCLUSTER_GENERATION);
        self.hub().until(&jobs, &self.ray_name(), "is annotated", TIMEOUT, annotated).await?;
        jobs.delete(&self.ray_name(), &DeleteParams::background()).await?;
        let name = self.ray_name();
        let of_ray = |one: &Workload| one.owner_references().iter().any(|owner| owner.name == name);
        let over = |all: &[Workload]| !all.iter().any(of_ray);
        self.hub().until_all(&self.api::<Workload>(), "", "it is gone", TIMEOUT, over).await?;
        Ok(())
    }

    fn ray_name(&self) -> String {
        format!("ray-{}", self.name)
    }

    fn ray_job(&self) -> Value {
        let pod = |name: &str| {
            json!({"spec": {"containers": [{
                "name": name, "image": "none", "resources": {"requests": {"cpu": "1"}},
            }]}, "metadata": {"annotations": {annotation::RUN_SECONDS: "3600"}}})
        };
        json!({
            "apiVersion": "ray.io/v1", "kind": "RayJob",
            "metadata": {
                "name": self.ray_name(), "labels": {"kueue.x-k8s.io/queue-name": PODS},
                "annotations": {ELASTIC_JOB: "true"},
            },
            "spec": {
                "entrypoint": "true", "shutdownAfterJobFinishes": true,
                "rayClusterSpec": {
                    "headGroupSpec": {"rayStartParams": {}, "template": pod("ray-head")},
                    "workerGroupSpecs": [{
                        "groupName": "small", "replicas": 1, "minReplicas": 0, "maxReplicas": 4,
                        "rayStartParams": {}, "template": pod("ray-worker"),
                    }],
                },
            },
        })
    }
}
