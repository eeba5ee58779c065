//! Starts the gateway and the real nodes of a lab, and waits until the nodes are ready.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::config::Kubeconfig;
use tokio::net::UnixStream;
use tokio::time::sleep;

use super::Supervisor;
use super::children::Child;
use crate::control::ProgramLaunch;
use crate::identity::children;
use crate::kubeconfig::{self, KubeconfigFailure};
use crate::real_nodes::cgroups::{self, CgroupError};
use crate::real_nodes::files::{self, NodeContext, NodeFileError};
use crate::real_nodes::gateway::{self, GatewayError};
use crate::real_nodes::links::{self, LinkError};
use crate::real_nodes::node::{GATEWAY, RealNode};
use crate::real_nodes::{configuration, init};
use crate::state::ClusterState;
use crate::{control_plane, logs};

/// A node is ready after about six seconds; a busy machine needs a multiple.
const DEADLINE: Duration = Duration::from_secs(180);

/// Pause between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Why the real nodes of a lab did not start.
#[derive(Debug, thiserror::Error)]
pub enum RealNodeError {
    /// The gateway's sockets.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// A link.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A control group.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// A file.
    #[error(transparent)]
    File(#[from] NodeFileError),
    /// A kubeconfig, or the client made of it.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigFailure),
    /// A request to the API server.
    #[error("{operation} on {cluster}: {source}")]
    Request {
        /// What was tried.
        operation: &'static str,
        /// The cluster.
        cluster: String,
        /// What the server said.
        source: kube::Error,
    },
    /// A program could not be started.
    #[error("{0}")]
    Start(String),
    /// The gateway or a node ended.
    #[error("{name} ended ({status}); its last lines:\n{log}")]
    Ended {
        /// The program.
        name: String,
        /// How it ended.
        status: String,
        /// The end of its log.
        log: String,
    },
    /// A node did not become ready.
    #[error("{name} did not become ready in {} s; the last lines of its kubelet:\n{log}", DEADLINE.as_secs())]
    Late {
        /// The node.
        name: String,
        /// The end of the kubelet's log.
        log: String,
    },
}

/// Starts the gateway, if the lab has real nodes.
pub(super) async fn start_gateway(lab: &Supervisor) -> Result<(), RealNodeError> {
    let state = lab.state();
    let Some(programs) = &state.node_programs else {
        return Ok(());
    };
    gateway::serve_host(&state.directory)?;
    files::write_images(&state.directory, programs)?;
    let directory = state.directory.display().to_string();
    let mut child =
        start_unshared(lab, gateway::PROGRAM, &["--net"], [gateway::SUBCOMMAND, &directory])?;
    let socket = gateway::egress_socket(&state.directory);
    let listening = async {
        while UnixStream::connect(&socket).await.is_err() {
            sleep(POLL_INTERVAL).await;
        }
    };
    tokio::select! {
        () = listening => Ok(()),
        status = child.end() => Err(ended(lab, gateway::PROGRAM, status)),
    }
}

/// Starts the real nodes of a cluster whose API server serves, and waits until they are ready.
pub(super) async fn start_all(
    lab: &Supervisor,
    cluster: &ClusterState,
) -> Result<(), RealNodeError> {
    if cluster.real_nodes.is_empty() {
        return Ok(());
    }
    write_endpoint(cluster).await?;
    let started = cluster.real_nodes.iter().map(|node| start(lab, cluster, node));
    futures::future::try_join_all(started).await.map(drop)
}

/// The namespaces of a node. With `--kill-child`, its process 1 ends with the process that the supervisor knows.
const NAMESPACES: [&str; 8] =
    ["--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc"];

async fn start(
    lab: &Supervisor,
    cluster: &ClusterState,
    node: &RealNode,
) -> Result<(), RealNodeError> {
    write_files(lab, cluster, node)?;
    let name = cluster.program_of(node);
    let directory = node.directory.display().to_string();
    let mut child = start_unshared(lab, &name, &NAMESPACES, [init::SUBCOMMAND, &directory])?;
    let holder = child.id.pid();
    let ready = async {
        let process = child_process(holder).await;
        let gateway = lab.state().programs.get(gateway::PROGRAM).map(|gateway| gateway.pid());
        links::connect(gateway.unwrap_or_default(), process, node)?;
        until_ready(cluster, node).await
    };
    tokio::select! {
        ready = ready => ready,
        status = child.end() => Err(ended(lab, &name, status)),
        () = sleep(DEADLINE) => {
            let log = logs::tail(&node.log("kubelet"), 20);
            Err(RealNodeError::Late { name: name.clone(), log })
        }
    }
}

fn write_files(
    lab: &Supervisor,
    cluster: &ClusterState,
    node: &RealNode,
) -> Result<(), RealNodeError> {
    let state = lab.state();
    let Some(programs) = &state.node_programs else {
        return Ok(());
    };
    let cgroup = format!("{}/{}", cgroups::of_lab(&state.directory), cluster.program_of(node));
    cgroups::create(&cgroup)?;
    let admin = Kubeconfig::read_from(cluster.kubeconfig()).map_err(KubeconfigFailure::from)?;
    let server = format!("https://{GATEWAY}:{}", cluster.api_port);
    let context = NodeContext {
        lab: &state.directory,
        programs,
        authority: &control_plane::certs_directory(cluster).join("ca.crt"),
        kubeconfig: &kubeconfig::render(&kubeconfig::at_server(admin, &server))?,
        cgroup: &cgroup,
    };
    Ok(files::write(node, &context)?)
}

/// Starts this tool's `own` subcommand in new namespaces.
fn start_unshared(
    lab: &Supervisor,
    name: &str,
    namespaces: &[&str],
    own: [&str; 2],
) -> Result<Child, RealNodeError> {
    let tool = lab.children.sluice_lab().display().to_string();
    let arguments = namespaces.iter().copied().chain([tool.as_str()]).chain(own);
    let launch = ProgramLaunch {
        name: name.to_owned(),
        program: "unshare".into(),
        arguments: arguments.map(str::to_owned).collect(),
    };
    lab.start_program(&launch).map_err(RealNodeError::Start)
}

/// The one child of a process, which it is about to start.
async fn child_process(parent: u32) -> u32 {
    loop {
        if let Some(child) = children(parent).into_iter().next() {
            return child;
        }
        sleep(POLL_INTERVAL).await;
    }
}

async fn write_endpoint(cluster: &ClusterState) -> Result<(), RealNodeError> {
    let endpoint = configuration::kubernetes_endpoint(GATEWAY, cluster.api_port);
    let api: Api<EndpointSlice> = Api::namespaced(cluster.client().await?, "default");
    let params = PatchParams::apply("sluice-lab");
    let written = api.patch("kubernetes", &params, &Patch::Apply(endpoint)).await;
    written.map(drop).map_err(|source| RealNodeError::Request {
        operation: "write EndpointSlice default/kubernetes",
        cluster: cluster.name.clone(),
        source,
    })
}

async fn until_ready(cluster: &ClusterState, node: &RealNode) -> Result<(), RealNodeError> {
    let api: Api<Node> = Api::all(cluster.client().await?);
    loop {
        // A server that was just started may refuse a request; the deadline covers it.
        if let Ok(Some(node)) = api.get_opt(&node.name).await
            && takes_pods(&node)
        {
            return Ok(());
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Whether a node is ready and the controllers have removed the taint of a new node.
fn takes_pods(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True");
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    ready && !taints.any(|taint| taint.key.starts_with("node.kubernetes.io/"))
}

fn ended(lab: &Supervisor, name: &str, status: String) -> RealNodeError {
    let log = logs::tail(&lab.state().program_log(name), 20);
    RealNodeError::Ended { name: name.to_owned(), status, log }
}
