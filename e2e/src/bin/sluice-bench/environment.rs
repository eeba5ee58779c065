//! The measured installation: one manager, workers with an agent each, and an active queue.

use std::path::Path;

use anyhow::{Context, Result};
use crds::{
    meta::is_true,
    names::conditions::ACTIVE,
    v1beta2::{ClusterQueue, LocalQueue},
};
use e2e::installation::{
    Installation, InstallationPlan, InstallationPorts, Program, TIMEOUT, operated_kinds,
};
use harness::{Cluster, NodeSpec, TestLab};
use kube::Api;
use serde_json::{Value, json};

/// The namespace of all Jobs, and the name of the queue's objects.
pub(crate) const NAME: &str = "bench";

/// Last lines of a log.
const LINES: usize = 40;

const API: &str = "kueue.x-k8s.io/v1beta2";

/// What is installed.
pub(crate) struct EnvironmentPlan<'p> {
    /// The nodes of each worker.
    pub(crate) workers: Vec<Vec<NodeSpec>>,
    /// The quota of the queue.
    pub(crate) quota: Vec<(&'p str, u64)>,
    /// Blocks of the manager's configuration.
    pub(crate) blocks: Value,
    /// The folder of the measured programs.
    pub(crate) programs: Option<&'p Path>,
    /// The proxy to Ray heads of agents that operate Ray and AppWrapper; none if they do not.
    pub(crate) head_proxy: Option<String>,
}

/// An installation with a queue.
pub(crate) struct BenchEnvironment<'a> {
    pub(crate) installation: Installation<'a>,
    pub(crate) manager: Program,
    pub(crate) agents: Vec<Program>,
    blocks: Value,
}

impl<'a> BenchEnvironment<'a> {
    /// Installs and starts everything, and waits until the queue is active.
    pub(crate) async fn lay(lab: &'a TestLab, plan: EnvironmentPlan<'_>) -> Result<Self> {
        let EnvironmentPlan { workers, quota, blocks, programs, head_proxy } = plan;
        let of = InstallationPlan { workers: workers.len(), elects: true };
        let installation = Installation::of(lab, of, InstallationPorts::choose()?).await?.patient();
        let installation = match programs {
            Some(folder) => installation.built_in(folder.to_owned()),
            None => installation,
        };
        let operates = head_proxy.is_some();
        let installation = match head_proxy {
            Some(proxy) => installation.with_operators(proxy),
            None => installation,
        };
        installation.install().await?;
        if operates {
            operated_kinds(&installation.hub).await?;
        }
        let manager = installation.first_manager_with(&blocks).await?;
        installation.register().await?;
        let mut agents = Vec::new();
        for (worker, nodes) in installation.workers.iter().zip(&workers) {
            for spec in nodes {
                worker.add_nodes(spec).await?;
            }
            agents.push(installation.agent(worker, &[]).await?);
        }
        let field = Self { installation, manager, agents, blocks };
        for cluster in field.clusters() {
            cluster.apply(&namespace().to_string(), NAME).await?;
        }
        field.apply(&queue(workers.len(), &quota)).await?;
        field.until_active(NAME, NAME).await?;
        Ok(field)
    }

    /// Applies objects on the manager cluster.
    pub(crate) async fn apply(&self, objects: &[Value]) -> Result<()> {
        let text: Vec<String> = objects.iter().map(ToString::to_string).collect();
        Ok(self.installation.hub.apply(&text.join("\n---\n"), NAME).await?)
    }

    /// Removes the webhooks of the manager, so that requests succeed while none runs.
    pub(crate) async fn remove_webhooks(&self) -> Result<()> {
        let kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
        self.installation.hub.kubectl(&["delete", kinds, "--all"]).await?;
        Ok(())
    }

    /// Waits until a ClusterQueue and the LocalQueue of this name in a namespace are active.
    pub(crate) async fn until_active(&self, name: &str, namespace: &str) -> Result<()> {
        let hub = &self.installation.hub;
        let queues: Api<ClusterQueue> = hub.cluster_api();
        let active = |queue: &ClusterQueue| is_true(&queue.status.conditions, ACTIVE);
        hub.until(&queues, name, "takes Jobs", TIMEOUT, active).await?;
        let queues: Api<LocalQueue> = hub.api(namespace);
        let active = |queue: &LocalQueue| is_true(&queue.status.conditions, ACTIVE);
        hub.until(&queues, name, "takes Jobs", TIMEOUT, active).await?;
        Ok(())
    }

    /// Ends the manager. Its lease is released.
    pub(crate) async fn stop_manager(&self) -> Result<()> {
        self.manager.process.terminate(TIMEOUT).await?;
        Ok(())
    }

    /// Starts a manager in the place of an ended one.
    pub(crate) async fn start_manager(&mut self) -> Result<()> {
        self.manager = self.installation.first_manager_with(&self.blocks).await?;
        Ok(())
    }

    /// Starts a further manager with the same configuration, on ports that nothing calls.
    pub(crate) async fn further_manager(&self, ports: InstallationPorts) -> Result<Program> {
        self.installation.manager_on(ports, &self.blocks, &[]).await
    }

    /// The worker of this name.
    pub(crate) fn worker(&self, name: &str) -> Result<&Cluster> {
        let mut workers = self.installation.workers.iter();
        workers.find(|worker| worker.name() == name).with_context(|| format!("no worker {name:?}"))
    }

    /// The result of a measurement. A failure prints the state of the installation.
    pub(crate) async fn explained<T>(
        &self,
        measured: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let measured = measured.await;
        if measured.is_err() {
            eprintln!("{}", self.circumstances().await);
        }
        measured
    }

    async fn circumstances(&self) -> String {
        let shown = ["get", "localqueues,multikueueclusters", "-A", "-o", "yaml"];
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

pub(crate) fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME}})
}

/// A queue over all workers; without workers, over the cluster itself.
fn queue(workers: usize, quota: &[(&str, u64)]) -> Vec<Value> {
    let covered: Vec<&str> = quota.iter().map(|(name, _)| *name).collect();
    let resources: Vec<Value> = quota
        .iter()
        .map(|(name, amount)| json!({"name": name, "nominalQuota": amount.to_string()}))
        .collect();
    let flavors = json!([{"name": NAME, "resources": resources}]);
    let mut spec = json!({
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": covered, "flavors": flavors}],
    });
    let mut objects =
        vec![json!({"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": NAME}})];
    if workers > 0 {
        spec["admissionChecksStrategy"] = json!({"admissionChecks": [{"name": NAME}]});
        objects.extend(dispatching(workers));
    }
    let named = |kind: &str, metadata: Value, spec: Value| json!({"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec});
    objects.push(named("ClusterQueue", json!({"name": NAME}), spec));
    let metadata = json!({"name": NAME, "namespace": NAME});
    objects.push(named("LocalQueue", metadata, json!({"clusterQueue": NAME})));
    objects
}

fn dispatching(workers: usize) -> [Value; 2] {
    let clusters: Vec<String> = (1..=workers).map(|number| format!("worker-{number}")).collect();
    [
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
    ]
}
