//! Boots a cluster: files, etcd, the API server, then all other components in parallel.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Request;
use kube::config::Kubeconfig;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::children::Child;
use super::real_nodes::{self, RealNodeError};
use super::{Supervisor, kwok};
use crate::certs::{Certs, CertsError};
use crate::component::Component;
use crate::kubeconfig::{self, KubeconfigFailure};
use crate::state::{ClusterState, StateError, write_private};
use crate::{control_plane, logs, ports, stages};

/// A busy machine with two cores needs a multiple of the usual three seconds.
const DEADLINE: Duration = Duration::from_secs(180);

/// Pause between two probes, for example of a port.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A request to an API server that is starting is answered at once or not at all.
const ONE_REQUEST: Duration = Duration::from_secs(5);

/// Why a cluster did not start.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// Its certificates could not be created.
    #[error("cluster {cluster}: {source}")]
    Certs {
        /// The cluster.
        cluster: String,
        /// Why.
        source: CertsError,
    },
    /// A file could not be written.
    #[error("cluster {cluster}: write {}: {source}", .path.display())]
    Write {
        /// The cluster.
        cluster: String,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Its kubeconfig could not be created.
    #[error("cluster {cluster}: {source}")]
    Kubeconfig {
        /// The cluster.
        cluster: String,
        /// Why.
        source: KubeconfigFailure,
    },
    /// Its real nodes did not start.
    #[error("real nodes: {0}")]
    RealNodes(#[from] RealNodeError),
    /// The lab's state could not be written.
    #[error(transparent)]
    State(#[from] StateError),
    /// A program could not be started.
    #[error("start {component} of {cluster}: {source}")]
    Start {
        /// The cluster.
        cluster: String,
        /// The component.
        component: Component,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another program listens on a port that was free when it was chosen.
    #[error(
        "port {port} of {component} of {cluster} is in use by another program; end that one, or take the lab down and start it again"
    )]
    PortTaken {
        /// The cluster.
        cluster: String,
        /// The component.
        component: Component,
        /// The port.
        port: u16,
    },
    /// A program ended instead of serving.
    #[error("{component} of {cluster} ended ({status}); its last lines:\n{log}")]
    Ended {
        /// The cluster.
        cluster: String,
        /// The component.
        component: Component,
        /// How it ended.
        status: String,
        /// The end of its log.
        log: String,
    },
    /// A program did not serve in time.
    #[error("{component} of {cluster} did not become ready in {} s; its last lines:\n{log}", DEADLINE.as_secs())]
    Late {
        /// The cluster.
        cluster: String,
        /// The component.
        component: Component,
        /// The end of its log.
        log: String,
    },
}

/// Starts a cluster and waits until it accepts jobs.
pub(super) async fn boot(lab: &Supervisor, cluster: &ClusterState) -> Result<(), BootError> {
    write_files(cluster, &lab.state().directory)?;
    start(lab, cluster, Component::Etcd, &[]).await?;
    start(lab, cluster, Component::ApiServer, &[]).await?;
    let rest = [Component::ControllerManager, Component::Scheduler, Component::Kwok];
    let started = rest.map(|component| start(lab, cluster, component, &[]));
    futures::future::try_join_all(started).await?;
    Ok(real_nodes::start_all(lab, cluster).await?)
}

fn write_files(cluster: &ClusterState, lab: &Path) -> Result<(), BootError> {
    let name = || cluster.name.clone();
    let certs = Certs::make().map_err(|source| BootError::Certs { cluster: name(), source })?;
    let kubeconfig =
        kubeconfig::render(&kubeconfig::admin(&cluster.name, &cluster.server(), &certs))
            .map_err(|source| BootError::Kubeconfig { cluster: name(), source })?;
    let pki = control_plane::certs_directory(cluster);
    let unwritten = |path: PathBuf| {
        move |source| BootError::Write { cluster: cluster.name.clone(), path, source }
    };
    std::fs::create_dir_all(&pki).map_err(unwritten(pki.clone()))?;
    certs.write(&pki).map_err(|source| BootError::Certs { cluster: name(), source })?;
    let files = [
        (cluster.kubeconfig(), kubeconfig),
        (control_plane::kwok_config(cluster), stages::configuration()),
        (control_plane::audit_policy(cluster), control_plane::AUDIT_POLICY.to_owned()),
        (control_plane::egress_config(cluster), control_plane::egress_configuration(lab)),
    ];
    for (path, content) in files {
        write_private(&path, content.as_bytes()).map_err(unwritten(path))?;
    }
    Ok(())
}

/// Starts one component with additional arguments, and waits until it is ready.
pub(super) async fn start(
    lab: &Supervisor,
    cluster: &ClusterState,
    component: Component,
    extra: &[String],
) -> Result<(), BootError> {
    match component {
        Component::Kwok => kwok::start(lab, cluster, extra).await,
        _ => launch(lab, cluster, component, extra).await,
    }
}

/// Starts one component and waits until it serves.
pub(super) async fn launch(
    lab: &Supervisor,
    cluster: &ClusterState,
    component: Component,
    extra: &[String],
) -> Result<(), BootError> {
    // A probe of the port would take the other program for this one.
    if let Some(port) = ports::taken(&ports_of(cluster, component)) {
        return Err(BootError::PortTaken { cluster: cluster.name.clone(), component, port });
    }
    let state = lab.state();
    let mut arguments = control_plane::arguments(component, cluster, state.audit);
    arguments.extend_from_slice(extra);
    let program = state.binaries.of(component);
    let started = lab.children.start(&program, cluster, component, &arguments);
    let child = started.map_err(|source| BootError::Start {
        cluster: cluster.name.clone(),
        component,
        source,
    })?;
    record(lab, cluster, component, &child)?;
    let mut watched = child.clone();
    tokio::select! {
        ready = timeout(DEADLINE, serving(cluster, component)) => match ready {
            Ok(result) => result,
            Err(_) => Err(BootError::Late {
                cluster: cluster.name.clone(),
                component,
                log: logs::tail(&cluster.log(component), 20),
            }),
        },
        status = watched.end() => Err(BootError::Ended {
            cluster: cluster.name.clone(),
            component,
            status,
            log: logs::tail(&cluster.log(component), 20),
        }),
    }
}

/// The ports that a component listens on.
fn ports_of(cluster: &ClusterState, component: Component) -> Vec<u16> {
    match component {
        Component::Etcd => vec![cluster.etcd_port, cluster.etcd_peer_port],
        Component::ApiServer => vec![cluster.api_port],
        Component::ControllerManager => vec![cluster.controller_manager_port],
        Component::Scheduler => vec![cluster.scheduler_port],
        Component::Kwok => vec![cluster.kwok_port],
    }
}

fn record(
    lab: &Supervisor,
    cluster: &ClusterState,
    component: Component,
    child: &Child,
) -> Result<(), StateError> {
    lab.change(|state| {
        for known in state.clusters.iter_mut().filter(|known| known.name == cluster.name) {
            known.processes.insert(component, child.id);
        }
    })
}

/// Waits until the component is ready.
async fn serving(cluster: &ClusterState, component: Component) -> Result<(), BootError> {
    match component {
        Component::Etcd => listening(cluster.etcd_port).await,
        Component::ApiServer => answers(cluster, "/readyz").await?,
        // The default service account, which every pod needs, is the first object of the controllers.
        Component::ControllerManager => {
            answers(cluster, "/api/v1/namespaces/default/serviceaccounts/default").await?;
        }
        Component::Scheduler => listening(cluster.scheduler_port).await,
        Component::Kwok => listening(cluster.kwok_port).await,
    }
    Ok(())
}

async fn listening(port: u16) {
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err() {
        sleep(POLL_INTERVAL).await;
    }
}

async fn answers(cluster: &ClusterState, path: &str) -> Result<(), BootError> {
    let failed = |source| BootError::Kubeconfig { cluster: cluster.name.clone(), source };
    let kubeconfig =
        Kubeconfig::read_from(cluster.kubeconfig()).map_err(|error| failed(error.into()))?;
    let client = kubeconfig::client(kubeconfig).await.map_err(failed)?;
    loop {
        let request = Request::get(path)
            .body(Vec::new())
            .map_err(|error| failed(KubeconfigFailure::Client(kube::Error::HttpError(error))))?;
        if let Ok(Ok(_)) = timeout(ONE_REQUEST, client.request_text(request)).await {
            return Ok(());
        }
        sleep(POLL_INTERVAL).await;
    }
}
