//! One cluster of the lab, for tests.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::config::Kubeconfig;
use kube::core::Resource as ScopedResource;
use kube::{Api, Client, ResourceExt};
use lab::control::{self, ControlError, ControlRequest};
use lab::faults::FaultError;
use lab::kubeconfig::{self, KubeconfigFailure};
use lab::nodes::{self, NodeError, NodeSpec};
use lab::real_nodes::node::RealNode;
use lab::real_nodes::running_node::{RunningNode, RunningNodeError};
use lab::{ClusterState, Component, LabState};
use tokio::process::Command;

use crate::secs;
use crate::wait::GaveUp;

/// From a node's creation until Kubernetes has taken away the taint of a node that is not ready.
const NODES_READY: Duration = Duration::from_secs(60);

/// Why an operation on a cluster failed.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// No client could be made.
    #[error("cluster {cluster}: {source}")]
    Client {
        /// The cluster.
        cluster: String,
        /// Why.
        source: KubeconfigFailure,
    },
    /// A component could not be signalled.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// A component could not be restarted.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A condition was not reached in time.
    #[error(transparent)]
    GaveUp(#[from] GaveUp),
    /// A node could not be created.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// etcd refused a maintenance request.
    #[error("maintain etcd of {cluster}: {reason}")]
    Store {
        /// The cluster.
        cluster: String,
        /// The response.
        reason: String,
    },
    /// kubectl could not be run.
    #[error("run kubectl: {0}")]
    NoKubectl(std::io::Error),
    /// kubectl failed.
    #[error("kubectl {arguments} on {cluster} failed:\n{output}")]
    Kubectl {
        /// The cluster.
        cluster: String,
        /// Its arguments.
        arguments: String,
        /// What it printed.
        output: String,
    },
}

/// A cluster, with a client that belongs to the test's runtime.
#[derive(Clone)]
pub struct Cluster {
    lab: LabState,
    state: ClusterState,
    client: Client,
}

impl Cluster {
    pub(crate) async fn connect(
        lab: &LabState,
        state: &ClusterState,
    ) -> Result<Self, ClusterError> {
        let client = state
            .client()
            .await
            .map_err(|source| ClusterError::Client { cluster: state.name.clone(), source })?;
        Ok(Self { lab: lab.clone(), state: state.clone(), client })
    }

    /// `manager`, `worker-1`, …
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Its ports and files.
    pub fn state(&self) -> &ClusterState {
        &self.state
    }

    /// A client with the administrator's rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> Result<Kubeconfig, ClusterError> {
        Kubeconfig::read_from(self.state.kubeconfig()).map_err(|error| ClusterError::Client {
            cluster: self.name().to_owned(),
            source: error.into(),
        })
    }

    /// A kubeconfig with a fresh token of a service account of this cluster, as a MultiKueueCluster uses it.
    pub async fn kubeconfig_for(
        &self,
        namespace: &str,
        service_account: &str,
    ) -> Result<Kubeconfig, ClusterError> {
        self.kubeconfig_for_long(namespace, service_account, secs(3600)).await
    }

    /// A kubeconfig with a token of this lifetime.
    pub async fn kubeconfig_for_long(
        &self,
        namespace: &str,
        service_account: &str,
        lifetime: Duration,
    ) -> Result<Kubeconfig, ClusterError> {
        let lifetime = format!("--duration={}s", lifetime.as_secs());
        let arguments = ["-n", namespace, "create", "token", service_account, &lifetime];
        let token = self.kubectl(&arguments).await?;
        Ok(kubeconfig::with_token(self.kubeconfig()?, token.trim()))
    }

    /// The objects of a kind in a namespace.
    pub fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: ScopedResource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client(), namespace)
    }

    /// The objects of a kind that has no namespaces.
    pub fn cluster_api<K>(&self) -> Api<K>
    where
        K: ScopedResource<Scope = ClusterResourceScope>,
        K::DynamicType: Default,
    {
        Api::all(self.client())
    }

    /// Creates nodes and waits until they accept pods.
    pub async fn add_nodes(&self, spec: &NodeSpec) -> Result<(), ClusterError> {
        nodes::create(self.client(), spec).await?;
        let names = spec.names();
        let usable = |nodes: &[Node]| {
            let usable = nodes.iter().filter(|node| takes_pods(node)).map(ResourceExt::name_any);
            let usable: BTreeSet<String> = usable.collect();
            names.iter().all(|name| usable.contains(name))
        };
        let nodes = self.cluster_api();
        self.until_all(&nodes, "", "new nodes take pods", NODES_READY, usable).await?;
        Ok(())
    }

    /// Stops a component where it is: connections stay, nothing answers.
    pub fn pause(&self, component: Component) -> Result<(), ClusterError> {
        Ok(self.lab.pause(self.name(), component)?)
    }

    /// Resumes a paused component.
    pub fn resume(&self, component: Component) -> Result<(), ClusterError> {
        Ok(self.lab.resume(self.name(), component)?)
    }

    /// Kills a component. It stays dead until it is restarted.
    pub fn kill(&self, component: Component) -> Result<(), ClusterError> {
        Ok(self.lab.kill(self.name(), component)?)
    }

    /// Starts a component again, killing it first when it runs; returns when it serves.
    pub async fn restart(&self, component: Component) -> Result<(), ClusterError> {
        self.restart_with(component, &[]).await
    }

    /// Starts a component again with arguments after the usual ones, which hold until the next restart.
    pub async fn restart_with(
        &self,
        component: Component,
        extra: &[&str],
    ) -> Result<(), ClusterError> {
        let extra = extra.iter().map(|argument| (*argument).to_owned()).collect();
        let request = ControlRequest::Restart { cluster: self.name().to_owned(), component, extra };
        let lab = self.lab.clone();
        let asked = tokio::task::spawn_blocking(move || control::ask(&lab, &request)).await;
        Ok(asked.unwrap_or_else(|error| Err(ControlError::Failed(error.to_string())))?)
    }

    /// Starts the controllers, the scheduler and kwok again: after an outage of the API server they would each wait out a
    /// back-off of up to half a minute before they go on.
    pub async fn restart_clients(&self) -> Result<(), ClusterError> {
        for component in [Component::ControllerManager, Component::Scheduler, Component::Kwok] {
            self.restart(component).await?;
        }
        Ok(())
    }

    /// A real node of the cluster, for faults and images.
    ///
    /// # Errors
    /// If it does not run.
    pub fn running_node(&self, node: &RealNode) -> Result<RunningNode, RunningNodeError> {
        RunningNode::find(&self.lab.directory, &self.state, node)
    }

    /// Runs kubectl and returns its output.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String, ClusterError> {
        let output = Command::new(self.lab.binaries.kubectl())
            .env("KUBECONFIG", self.state.kubeconfig())
            .args(arguments)
            .output()
            .await
            .map_err(ClusterError::NoKubectl)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(ClusterError::Kubectl {
            cluster: self.name().to_owned(),
            arguments: arguments.join(" "),
            output: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

/// Whether the node is ready and no longer tainted for not being so.
fn takes_pods(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True");
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    ready && !taints.any(|taint| taint.key.starts_with("node.kubernetes.io/"))
}

impl Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Cluster").field(&self.state.name).finish()
    }
}
