//! One Job from submission to its end, controlled and observed by the test.

use anyhow::{Context, Result};
use crds::{meta::is_true, v1beta2::Workload};
use e2e::installation::{Installation, TIMEOUT};
use e2e::objects::job_is;
use e2e::waits;
use harness::{Cluster, Observer, RayHeads, annotation};
use k8s_openapi::{NamespaceResourceScope, api::batch::v1::Job};
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{scenario::Scenario, setup::NAMESPACE};

/// One Job and its scenario.
pub(crate) struct ObservedJob<'a> {
    pub(crate) installation: &'a Installation<'a>,
    pub(crate) scenario: Scenario,
    pub(crate) name: &'a str,
    pub(crate) heads: &'a RayHeads,
    /// The program has died and is back.
    pub(crate) again: bool,
}

impl ObservedJob<'_> {
    pub(crate) fn hub(&self) -> &Cluster {
        &self.installation.hub
    }

    pub(crate) fn worker(&self) -> Result<&Cluster> {
        self.installation.workers.first().context("a worker")
    }

    /// The objects of a kind on the hub.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        self.hub().api(NAMESPACE)
    }

    /// Its Job, for the workers, of pods that run for a second.
    pub(crate) fn job(&self) -> Value {
        let pods = self.scenario.pods();
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": self.name, "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
            "spec": {
                "parallelism": pods, "completions": pods,
                "template": {
                    "metadata": {"annotations": {annotation::RUN_SECONDS: "1"}},
                    "spec": {"restartPolicy": "Never", "containers": [{
                        "name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}},
                    }]},
                },
            },
        })
    }

    /// The Job with pods that run for so long.
    pub(crate) fn job_of(&self, seconds: u32) -> Value {
        let mut job = self.job();
        let annotations = &mut job["spec"]["template"]["metadata"]["annotations"];
        annotations[annotation::RUN_SECONDS] = json!(seconds.to_string());
        job
    }

    /// Submits the Job, unless it exists.
    pub(crate) async fn submit(&self, job: Value) -> Result<()> {
        let job: Job = serde_json::from_value(job).context("a Job")?;
        create(&self.api::<Job>(), &job).await
    }

    /// Until the Job is complete on the hub and nothing is left anywhere else.
    pub(crate) async fn until_over(&self) -> Result<()> {
        let complete = |job: &Job| job_is(job, "Complete");
        self.hub().until(&self.api::<Job>(), self.name, "is complete", TIMEOUT, complete).await?;
        let over = |one: &Workload| {
            is_true(&one.status.conditions, "Finished") && one.finalizers().is_empty()
        };
        self.until_workload("is finished", over).await?;
        self.until_nothing_left().await
    }

    /// Until the worker has neither a Job nor a clone.
    pub(crate) async fn until_nothing_left(&self) -> Result<()> {
        waits::until_no_job_is_left(self.worker()?, NAMESPACE, TIMEOUT).await
    }

    /// Until this holds for its Workload.
    pub(crate) async fn until_workload(
        &self,
        what: &str,
        condition: impl Fn(&Workload) -> bool,
    ) -> Result<Workload> {
        let what = format!("the Workload of {} {what}", self.name);
        let found = |all: &[Workload]| all.iter().any(|one| self.owns(one) && condition(one));
        let all = self.hub().until_all(&self.api::<Workload>(), "", &what, TIMEOUT, found).await?;
        let own = all.into_iter().find(|one| self.owns(one) && condition(one));
        own.with_context(|| format!("{what}: gone"))
    }

    pub(crate) fn owns(&self, workload: &Workload) -> bool {
        workload.owner_references().iter().any(|owner| owner.name == self.name)
    }

    /// Waits until the Job on the manager cluster reports pods.
    pub(crate) async fn until_running(&self) -> Result<()> {
        let runs = |job: &Job| {
            let status = job.status.clone().unwrap_or_default();
            status.active > Some(0) || status.succeeded > Some(0)
        };
        self.hub().until(&self.api::<Job>(), self.name, "runs", TIMEOUT, runs).await?;
        Ok(())
    }

    /// Changes some fields of an object on the hub.
    pub(crate) async fn change<K>(&self, api: &Api<K>, name: &str, fields: Value) -> Result<()>
    where
        K: Clone + DeserializeOwned + std::fmt::Debug,
    {
        let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(&fields)).await;
        patched.with_context(|| format!("changing {name}")).map(drop)
    }

    /// By the pods that ran.
    pub(crate) async fn judge(&self, observer: &Observer) -> Result<()> {
        let Some(expected) = self.scenario.verdicts() else {
            return Ok(());
        };
        let job = (self.name, self.scenario.pods());
        waits::ensure_verdict(observer, job, expected).await.map(drop)
    }
}

/// Makes an object that may be there already.
pub(crate) async fn create<K>(api: &Api<K>, object: &K) -> Result<()>
where
    K: Resource + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    match api.create(&PostParams::default(), object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => Err(error).with_context(|| format!("making {}", object.name_any())),
    }
}
