//! The fixture of a test: the installation, a namespace everywhere, and waits.

use std::{fmt::Debug, time::Duration};

use anyhow::{Context, Result};
use crds::{
    v1alpha1::{ClusterCapacity, LOCAL},
    v1beta2::{MultiKueueCluster, Workload},
};
use e2e::{
    installation::{Installation, TIMEOUT},
    waits,
};
use harness::{Cluster, RunVerdict, Space, program};
use k8s_openapi::{NamespaceResourceScope, api::batch::v1::Job, api::core::v1::Pod};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{objects, shared_installation::SharedInstallation};

/// An installation with a namespace in every cluster.
pub(crate) struct DispatchFixture {
    /// The owner of the programs.
    pub(crate) shared: &'static SharedInstallation,
    pub(crate) installation: Installation<'static>,
    pub(crate) space: Space,
}

/// A condition without its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReportedCondition {
    pub(crate) status: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl DispatchFixture {
    /// Beside other tests.
    pub(crate) async fn shared(test: &str) -> Result<Self> {
        let shared = SharedInstallation::shared().await?;
        let installation = shared.installation().await?;
        let space = installation.lab.space(test).await?;
        Ok(Self { shared, installation, space })
    }

    /// For a test that breaks something.
    pub(crate) async fn alone(test: &str) -> Result<Self> {
        let shared = SharedInstallation::alone().await?;
        let installation = shared.installation().await?;
        let space = installation.lab.space_alone(test).await?;
        Ok(Self { shared, installation, space })
    }

    pub(crate) fn namespace(&self) -> &str {
        self.space.namespace()
    }

    pub(crate) fn hub(&self) -> &Cluster {
        &self.installation.hub
    }

    /// Worker number `number`, from 1.
    pub(crate) fn worker(&self, number: usize) -> &Cluster {
        &self.installation.workers[number - 1]
    }

    /// The objects of a kind on the hub.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        self.hub().api(self.namespace())
    }

    /// Nodes on a worker for this test's pods.
    pub(crate) async fn nodes(&self, number: usize, count: usize, cpu: &str) -> Result<()> {
        let nodes = objects::own_nodes(self.namespace(), count, cpu);
        Ok(self.worker(number).add_nodes(&nodes).await?)
    }

    /// A queue of this test's nodes on both workers.
    pub(crate) async fn queue(&self, cpu: &str) -> Result<()> {
        objects::own_queue(self.hub(), self.namespace(), cpu, &["worker-1", "worker-2"]).await
    }

    /// A queue of this test's nodes on both workers, under a DispatchPolicy.
    pub(crate) async fn queue_under(&self, cpu: &str, policy: &Value) -> Result<()> {
        self.queue(cpu).await?;
        let name = self.namespace();
        let text = [
            json!({
                "apiVersion": "sluice.dev/v1alpha1", "kind": "DispatchPolicy",
                "metadata": {"name": name}, "spec": policy,
            }),
            json!({
                "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueConfig",
                "metadata": {"name": name, "annotations": {"sluice.dev/policy": name}},
                "spec": {"clusters": ["worker-1", "worker-2"]},
            }),
        ];
        Ok(self.hub().apply(&text.map(|one| one.to_string()).join("\n---\n"), name).await?)
    }

    /// A queue of this test's nodes on both workers. The first worker ranks before the second one, whatever nodes other tests have there.
    pub(crate) async fn ordered_queue(&self, cpu: &str) -> Result<()> {
        self.queue_under(cpu, &json!({"strategy": "Ordered"})).await
    }

    /// Waits until the manager has a worker's nodes: the worker then reports the requested labels.
    pub(crate) async fn until_reported(&self, number: usize) -> Result<()> {
        let reports = self.worker(number).cluster_api::<ClusterCapacity>();
        let read = |report: &ClusterCapacity| !report.spec.all_label_keys().is_empty();
        self.worker(number).until(&reports, LOCAL, "was read", TIMEOUT, read).await?;
        Ok(())
    }

    /// Waits until the manager knows that so much cpu is free on this test's nodes of a worker. The manager's copy of a report may be
    /// ten seconds old.
    pub(crate) async fn until_free(&self, number: usize, cpu: i64) -> Result<()> {
        let free = |report: &ClusterCapacity| {
            let own = objects::own_classes(report, self.namespace());
            own.filter_map(|class| Some(class.free.get("cpu")?.units() * i64::from(class.count)))
                .sum::<i64>()
        };
        let (hub, worker) = (self.hub(), self.worker(number).name());
        let what = format!("has {cpu} cpus free");
        let reports = hub.cluster_api::<ClusterCapacity>();
        hub.until(&reports, worker, &what, 2 * TIMEOUT, |report| free(report) == cpu).await?;
        Ok(())
    }

    /// Submits a Job to a MultiKueue queue. `managedBy` is set here, because the webhook may not know the new queue yet.
    pub(crate) async fn submit(&self, job: &Value) -> Result<()> {
        let mut job = job.clone();
        job["spec"]["managedBy"] = json!("kueue.x-k8s.io/multikueue");
        Ok(self.hub().apply(&job.to_string(), self.namespace()).await?)
    }

    /// Waits until so many pods of a Job run on a worker.
    pub(crate) async fn until_running(&self, job: &str, pods: usize, on: usize) -> Result<()> {
        let worker = self.worker(on);
        let labels = format!("batch.kubernetes.io/job-name={job}");
        let running =
            |all: &[Pod]| all.iter().filter(|pod| objects::phase(pod) == "Running").count() == pods;
        let what = format!("{pods} pods of {job} run");
        let all = worker.api::<Pod>(self.namespace());
        let Err(error) = worker.until_all(&all, &labels, &what, TIMEOUT, running).await else {
            return Ok(());
        };
        Err(error).context(self.workloads_at_manager().await)
    }

    /// For errors: what the manager says about the Workloads of this test.
    async fn workloads_at_manager(&self) -> String {
        let workloads = self.hub().api::<Workload>(self.namespace());
        match workloads.list(&ListParams::default()).await {
            Ok(all) => {
                all.iter().map(|one| format!("{}: {:#?}\n", one.name_any(), one.status)).collect()
            }
            Err(error) => format!("the Workloads at the manager: {error}"),
        }
    }

    /// Waits until a Job is complete on the hub.
    pub(crate) async fn until_complete(&self, job: &str, within: Duration) -> Result<()> {
        let complete = |job: &Job| objects::job_is(job, "Complete");
        self.hub().until(&self.api::<Job>(), job, "is complete", within, complete).await?;
        Ok(())
    }

    /// Waits until this holds for the Workload of a Job.
    pub(crate) async fn until_workload(
        &self,
        job: &str,
        what: &str,
        condition: impl Fn(&Workload) -> bool,
    ) -> Result<Workload> {
        let place = (self.hub(), self.namespace());
        waits::until_workload(place, (job, what), TIMEOUT, condition).await
    }

    /// Waits for this condition of a MultiKueueCluster.
    pub(crate) async fn until_worker(
        &self,
        name: &str,
        what: &str,
        condition: impl Fn(&ReportedCondition) -> bool,
    ) -> Result<ReportedCondition> {
        until_worker(self.hub(), (name, what), condition).await
    }

    /// Waits until no worker has a Job or a clone in the namespace.
    pub(crate) async fn until_nothing_is_left(&self) -> Result<()> {
        for worker in &self.installation.workers {
            waits::until_no_job_is_left(worker, self.namespace(), TIMEOUT).await?;
        }
        Ok(())
    }

    /// The Job ran once from its beginning to its end, and nothing of it is left.
    pub(crate) async fn expect_once(&self, job: &str, pods: usize) -> Result<()> {
        self.expect(job, pods, &[RunVerdict::Once]).await
    }

    /// The Job ran once to its end, runs that were stopped before aside, and nothing of it is left.
    pub(crate) async fn expect_once_in_the_end(&self, job: &str, pods: usize) -> Result<()> {
        self.expect(job, pods, &[RunVerdict::Once, RunVerdict::Moved]).await
    }

    /// Ends the pods of a Job that run without an end, and expects what [`Self::expect_once_in_the_end`] does.
    pub(crate) async fn expect_once_when_ended(&self, job: &str, pods: usize) -> Result<()> {
        let outcome = self.expect_once_in_the_end(job, pods);
        let workers = &self.installation.workers;
        waits::while_pods_end(workers, (self.namespace(), job), outcome).await
    }

    async fn expect(&self, job: &str, pods: usize, verdicts: &[RunVerdict]) -> Result<()> {
        self.until_complete(job, 2 * TIMEOUT).await?;
        self.until_workload(job, "is finished", |one| holds(one, "Finished")).await?;
        self.until_nothing_is_left().await?;
        waits::ensure_verdict(self.space.observer(), (job, pods), verdicts).await.map(drop)
    }

    /// Runs `sluicectl` against the manager cluster. Gives its exit code and what it printed.
    pub(crate) async fn sluicectl(&self, arguments: &[&str]) -> Result<(i32, String)> {
        let hub = self.hub().state().kubeconfig();
        let mut command = Command::new(program("sluicectl")?);
        let output = command.env("KUBECONFIG", hub).args(arguments).output().await?;
        let printed = [output.stdout, output.stderr].concat();
        let code = output.status.code().context("an exit code")?;
        Ok((code, String::from_utf8_lossy(&printed).into_owned()))
    }

    /// Changes fields of an object on the hub.
    pub(crate) async fn change<K>(&self, name: &str, fields: &Value) -> Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Serialize,
        K::DynamicType: Default,
    {
        let api = self.api::<K>();
        api.patch(name, &PatchParams::default(), &Patch::Merge(fields)).await?;
        Ok(())
    }
}

/// Waits for this condition of a MultiKueueCluster.
pub(crate) async fn until_worker(
    hub: &Cluster,
    (name, what): (&str, &str),
    condition: impl Fn(&ReportedCondition) -> bool,
) -> Result<ReportedCondition> {
    let said = |one: &MultiKueueCluster| said(&one.status.conditions, "Active");
    let clusters = hub.cluster_api::<MultiKueueCluster>();
    let holds = |one: &MultiKueueCluster| said(one).is_some_and(|said| condition(&said));
    let cluster = hub.until(&clusters, name, what, 2 * TIMEOUT, holds).await?;
    said(&cluster).ok_or_else(|| anyhow::anyhow!("{name} says nothing"))
}

/// Deletes an object like `kubectl delete`.
pub(crate) async fn delete<K>(api: &Api<K>, name: &str) -> Result<()>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    api.delete(name, &DeleteParams::background()).await?;
    Ok(())
}

/// A condition of an object.
pub(crate) fn said(conditions: &[crds::meta::Condition], kind: &str) -> Option<ReportedCondition> {
    let one = conditions.iter().find(|one| one.r#type == kind)?;
    let status = one.status == "True";
    Some(ReportedCondition { status, reason: one.reason.clone(), message: one.message.clone() })
}

/// Whether a condition of a Workload is true.
pub(crate) fn holds(workload: &Workload, kind: &str) -> bool {
    crds::meta::is_true(&workload.status.conditions, kind)
}

/// A Job with one more annotation.
pub(crate) fn with_annotation(mut job: Value, annotation: &str, value: &str) -> Value {
    job["metadata"]["annotations"][annotation] = json!(value);
    job
}

/// A Job with one more label.
pub(crate) fn with_label(mut job: Value, label: &str, value: &str) -> Value {
    job["metadata"]["labels"][label] = json!(value);
    job
}
