//! Repairs the shared lab between tests.

use std::sync::PoisonError;

use lab::identity::Liveness;
use lab::{ClusterState, Component, LabState, ProcessId};

use crate::lab::{LabError, TestLab};

/// The processes of a cluster's store and API server.
pub(crate) type Servers = [Option<ProcessId>; 2];

impl TestLab {
    /// Makes every cluster as good as new after a test that broke something.
    ///
    /// What still doesn't run is started. Where the API server or its store was restarted, so are its clients: they
    /// would get there by themselves, but each waits out a back-off of up to half a minute first.
    pub(crate) async fn heal(&self) -> Result<(), LabError> {
        for (cluster, component, liveness) in self.ailing()? {
            let cluster = self.cluster(&cluster).await?;
            match liveness {
                Liveness::Paused => cluster.resume(component)?,
                _ => cluster.restart(component).await?,
            }
        }
        for name in self.shaken()? {
            let cluster = self.cluster(&name).await?;
            cluster.restart_clients().await?;
            self.note_servers(&name)?;
        }
        Ok(())
    }

    /// Whether no component is down and none of the servers is another than it was.
    pub(crate) fn is_sound(&self) -> Result<bool, LabError> {
        Ok(self.ailing()?.is_empty() && self.shaken()?.is_empty())
    }

    /// The components that don't run, in the order in which they are to be started.
    fn ailing(&self) -> Result<Vec<(String, Component, Liveness)>, LabError> {
        let processes = self.now()?.clusters.into_iter().flat_map(|cluster| {
            let name = cluster.name;
            let live =
                move |(part, id): (Component, ProcessId)| (name.clone(), part, id.liveness());
            cluster.processes.into_iter().map(live)
        });
        Ok(processes.filter(|(_, _, liveness)| *liveness != Liveness::Running).collect())
    }

    /// Clusters whose servers were restarted since the snapshot.
    fn shaken(&self) -> Result<Vec<String>, LabError> {
        let now = self.now()?;
        let noted = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = |cluster: &&ClusterState| noted.get(&cluster.name) != Some(&servers(cluster));
        Ok(now.clusters.iter().filter(changed).map(|cluster| cluster.name.clone()).collect())
    }

    fn note_servers(&self, name: &str) -> Result<(), LabError> {
        let now = servers(self.now()?.cluster(name)?);
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), now);
        Ok(())
    }

    fn now(&self) -> Result<LabState, LabError> {
        Ok(LabState::load(&self.state.directory)?)
    }
}

/// The processes that everything else in a cluster is a client of.
pub(crate) fn servers(cluster: &ClusterState) -> Servers {
    [Component::Etcd, Component::ApiServer].map(|part| cluster.processes.get(&part).copied())
}
