//! Faults of a running component.

use rustix::process::Signal;

use crate::component::Component;
use crate::identity::ProcessId;
use crate::kubeconfig::{self, KubeconfigFailure};
use crate::state::{ClusterState, LabState, StateError};
use kube::config::Kubeconfig;

/// Why a component could not be signalled.
#[derive(Debug, thiserror::Error)]
pub enum FaultError {
    /// The lab or the cluster is not there.
    #[error(transparent)]
    State(#[from] StateError),
    /// The component does not run.
    #[error("{component} of {cluster} does not run")]
    NotRunning {
        /// The cluster.
        cluster: String,
        /// The component.
        component: Component,
    },
    /// The system refused the signal.
    #[error("signal {component} of {cluster}: {source}")]
    Signal {
        /// The cluster.
        cluster: String,
        /// The component.
        component: Component,
        /// What the system said.
        source: std::io::Error,
    },
}

impl LabState {
    /// Stops a component where it is: its connections stay open and nothing answers.
    pub fn pause(&self, cluster: &str, component: Component) -> Result<(), FaultError> {
        self.signal(cluster, component, Signal::STOP).map(drop)
    }

    /// Resumes a paused component.
    pub fn resume(&self, cluster: &str, component: Component) -> Result<(), FaultError> {
        self.signal(cluster, component, Signal::CONT).map(drop)
    }

    /// Kills a component and waits for its end. It is not restarted automatically.
    pub fn kill(&self, cluster: &str, component: Component) -> Result<(), FaultError> {
        self.signal(cluster, component, Signal::KILL)?.wait_for_end();
        Ok(())
    }

    /// Signals the process that has the component's part *now*: it may have been restarted since this state was read.
    fn signal(
        &self,
        cluster: &str,
        component: Component,
        signal: Signal,
    ) -> Result<ProcessId, FaultError> {
        let current = Self::load(&self.directory)?;
        let not_running = || FaultError::NotRunning { cluster: cluster.to_owned(), component };
        let process = current.cluster(cluster)?.processes.get(&component).copied();
        let process = process.ok_or_else(not_running)?;
        let sent = process.signal(signal).map_err(|source| FaultError::Signal {
            cluster: cluster.to_owned(),
            component,
            source,
        })?;
        if sent { Ok(process) } else { Err(not_running()) }
    }
}

impl ClusterState {
    /// A client with the administrator's rights.
    pub async fn client(&self) -> Result<kube::Client, KubeconfigFailure> {
        kubeconfig::client(Kubeconfig::read_from(self.kubeconfig())?).await
    }
}
