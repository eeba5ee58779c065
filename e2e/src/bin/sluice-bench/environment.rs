//! The measured installation: one manager, workers with an agent each, and one queue with more quota and capacity than needed.

use std::path::Path;

use anyhow::{Context, Result};
use crds::{
    meta::is_true,
    names::conditions::ACTIVE,
    v1beta2::{ClusterQueue, LocalQueue},
};
use e2e::installation::{Installation, InstallationPlan, InstallationPorts, Program, TIMEOUT};
use harness::{Cluster, NodeSpec, TestLab, annotation};
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use serde_json::{Value, json};

/// The namespace of all Jobs, and the name of the queue's objects.
pub(crate) const NAME: &str = "bench";

/// Last lines of a log.
const LINES: usize = 40;

const API: &str = "kueue.x-k8s.io/v1beta2";

/// An installation with a queue.
pub(crate) struct BenchEnvironment<'a> {
    pub(crate) installation: Installation<'a>,
    pub(crate) manager: Program,
    pub(crate) agents: Vec<Program>,
}

impl<'a> BenchEnvironment<'a> {
    /// Installs and starts everything, and waits until the queue is active.
    pub(crate) async fn lay(
        lab: &'a TestLab,
        workers: usize,
        programs: Option<&Path>,
    ) -> Result<Self> {
        let plan = InstallationPlan { workers, elects: true };
        let installation =
            Installation::of(lab, plan, InstallationPorts::choose()?).await?.patient();
        let installation = match programs {
            Some(folder) => installation.built_in(folder.to_owned()),
            None => installation,
        };
        installation.install().await?;
        let manager = installation.manager(true, &[]).await?;
        installation.register().await?;
        let mut agents = Vec::new();
        for worker in &installation.workers {
            let (count, cpu) = (4, "1000".to_owned());
            worker.add_nodes(&NodeSpec { count, cpu, ..NodeSpec::default() }).await?;
            agents.push(installation.agent(worker, &[]).await?);
        }
        let field = Self { installation, manager, agents };
        for cluster in field.clusters() {
            cluster.apply(&namespace().to_string(), NAME).await?;
        }
        let text: Vec<String> = queue(workers).iter().map(ToString::to_string).collect();
        field.installation.hub.apply(&text.join("\n---\n"), NAME).await?;
        let queues: Api<ClusterQueue> = field.installation.hub.cluster_api();
        let active = |queue: &ClusterQueue| is_true(&queue.status.conditions, ACTIVE);
        field.installation.hub.until(&queues, NAME, "takes Jobs", TIMEOUT, active).await?;
        let queues: Api<LocalQueue> = field.installation.hub.api(NAME);
        let active = |queue: &LocalQueue| is_true(&queue.status.conditions, ACTIVE);
        field.installation.hub.until(&queues, NAME, "takes Jobs", TIMEOUT, active).await?;
        Ok(field)
    }

    /// The state of the installation, for the analysis of a failure.
    pub(crate) async fn circumstances(&self) -> String {
        let shown = ["get", "workloads,localqueues,multikueueclusters", "-A", "-o", "yaml"];
        let objects = self.installation.hub.kubectl(&shown).await;
        let objects = objects.unwrap_or_else(|error| error.to_string());
        let logs = std::iter::once(&self.manager).chain(&self.agents);
        logs.fold(objects, |text, program| text + "\n---\n" + &program.process.log_tail(LINES))
    }

    /// Everywhere: the manager first.
    pub(crate) fn clusters(&self) -> impl Iterator<Item = &Cluster> {
        std::iter::once(&self.installation.hub).chain(&self.installation.workers)
    }
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME}})
}

fn queue(workers: usize) -> Vec<Value> {
    let clusters: Vec<String> = (1..=workers).map(|number| format!("worker-{number}")).collect();
    let resources = json!([{"name": "cpu", "nominalQuota": "4000"}]);
    vec![
        json!({"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": NAME}}),
        json!({
            "apiVersion": API, "kind": "MultiKueueConfig", "metadata": {"name": NAME},
            "spec": {"clusters": clusters},
        }),
        json!({
            "apiVersion": API, "kind": "AdmissionCheck", "metadata": {"name": NAME},
            "spec": {
                "controllerName": "kueue.x-k8s.io/multikueue",
                "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": NAME},
            },
        }),
        json!({
            "apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": NAME},
            "spec": {
                "namespaceSelector": {},
                "admissionChecksStrategy": {"admissionChecks": [{"name": NAME}]},
                "resourceGroups": [{
                    "coveredResources": ["cpu"],
                    "flavors": [{"name": NAME, "resources": resources}],
                }],
            },
        }),
        json!({
            "apiVersion": API, "kind": "LocalQueue", "metadata": {"name": NAME, "namespace": NAME},
            "spec": {"clusterQueue": NAME},
        }),
    ]
}

/// A Job of one small pod that runs for a second.
pub(crate) fn job(name: &str) -> Result<Job> {
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": NAME}},
        "spec": {"parallelism": 1, "completions": 1, "template": {
            "metadata": {"annotations": {annotation::RUN_SECONDS: "1"}},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{
                    "name": "main", "image": "main",
                    "resources": {"requests": {"cpu": "1"}},
                }],
            },
        }},
    });
    serde_json::from_value(job).context("the Job")
}
