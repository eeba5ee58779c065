//! Clusters that exist already, of a lab, of kind or of anything else: a manager and two workers, by their kubeconfigs.

use std::path::{Path, PathBuf};

use kube::config::Kubeconfig;
use lab::binaries::{Binaries, BinariesError};
use lab::identity::ProcessId;
use lab::kubeconfig::{self, KubeconfigFailure};
use lab::{ClusterState, LabState, Phase};

use crate::cluster::{Cluster, ClusterError};

/// Three paths of kubeconfigs: the manager's, then those of the workers, separated by colons.
const KUBECONFIGS: &str = "SLUICE_E2E_KUBECONFIGS";

/// Two addresses of API servers, separated by commas: as pods of the manager cluster reach the workers.
const SERVERS: &str = "SLUICE_E2E_SERVERS";

/// The names of the clusters, which samples have as well.
const NAMES: [&str; 3] = ["manager", "worker-1", "worker-2"];

/// Why given clusters cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GivenClustersError {
    /// Not as many paths as clusters.
    #[error("{KUBECONFIGS} names {0} kubeconfigs, and three are needed: manager:worker-1:worker-2")]
    Count(usize),
    /// Not as many addresses as workers.
    #[error("{SERVERS} names {0} addresses, and two are needed: those of worker-1,worker-2")]
    ServerCount(usize),
    /// An address that is another one in a pod.
    #[error(
        "pods of the manager cluster do not reach {cluster} at {server}; name the addresses of both workers in {SERVERS}"
    )]
    Loopback {
        /// The cluster.
        cluster: &'static str,
        /// The address of its kubeconfig.
        server: String,
    },
    /// One cluster in two places.
    #[error("{variable} names the API server {server} twice")]
    SameServer {
        /// The variable.
        variable: &'static str,
        /// The address.
        server: String,
    },
    /// A kubeconfig cannot be read or written.
    #[error("kubeconfig {} of {cluster}: {source}", .path.display())]
    Kubeconfig {
        /// The cluster.
        cluster: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: KubeconfigFailure,
    },
    /// A file cannot be written.
    #[error("write {}: {source}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// kubectl could not be had.
    #[error(transparent)]
    Binaries(#[from] BinariesError),
    /// A cluster cannot be used.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// A manager and two workers.
#[derive(Debug)]
pub struct GivenClusters {
    /// The manager.
    pub manager: Cluster,
    /// The workers.
    pub workers: Vec<Cluster>,
    /// The addresses of their API servers, as pods of the manager cluster reach them.
    pub servers: Vec<String>,
}

impl GivenClusters {
    /// Those that the environment names, if it does. `directory` gets files of theirs.
    ///
    /// # Errors
    /// If they cannot be used.
    pub async fn of_environment(directory: &Path) -> Result<Option<Self>, GivenClustersError> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let Some(kubeconfigs) = variable(KUBECONFIGS) else {
            return Ok(None);
        };
        let kubeconfigs: Vec<PathBuf> = kubeconfigs.split(':').map(PathBuf::from).collect();
        let servers = variable(SERVERS);
        let servers = servers.map(|all| all.split(',').map(str::to_owned).collect());
        Self::of(&kubeconfigs, servers, directory).await.map(Some)
    }

    /// Those with these kubeconfigs. Without addresses, those of the kubeconfigs are used.
    ///
    /// # Errors
    /// If they cannot be used.
    pub async fn of(
        kubeconfigs: &[PathBuf],
        servers: Option<Vec<String>>,
        directory: &Path,
    ) -> Result<Self, GivenClustersError> {
        if kubeconfigs.len() != NAMES.len() {
            return Err(GivenClustersError::Count(kubeconfigs.len()));
        }
        let mut read = Vec::new();
        for (path, cluster) in kubeconfigs.iter().zip(NAMES) {
            let read_from = Kubeconfig::read_from(path);
            let failed =
                |source| GivenClustersError::Kubeconfig { cluster, path: path.clone(), source };
            read.push((cluster, read_from.map_err(|error| failed(error.into()))?));
        }
        let all: Vec<String> = read.iter().filter_map(|(_, one)| server_of(one)).collect();
        ensure_different(KUBECONFIGS, &all)?;
        let servers = servers.map_or_else(|| addresses(&read[1..]), Ok)?;
        ensure_different(SERVERS, &servers)?;
        if servers.len() != NAMES.len() - 1 {
            return Err(GivenClustersError::ServerCount(servers.len()));
        }
        let state = state_in(directory)?;
        let mut clusters = Vec::new();
        for (name, kubeconfig) in read {
            clusters.push(connect(&state, name, &kubeconfig).await?);
        }
        let workers = clusters.split_off(1);
        let manager = clusters.pop().ok_or(GivenClustersError::Count(0))?;
        Ok(Self { manager, workers, servers })
    }
}

/// A worker that is the manager, or both workers, would pass most of a test.
fn ensure_different(variable: &'static str, servers: &[String]) -> Result<(), GivenClustersError> {
    let twice = servers.iter().enumerate().find(|(place, one)| servers[..*place].contains(one));
    match twice.map(|(_, server)| server.clone()) {
        Some(server) => Err(GivenClustersError::SameServer { variable, server }),
        None => Ok(()),
    }
}

/// The address of the cluster of the current context, or of the first one without a context.
#[must_use]
pub fn server_of(kubeconfig: &Kubeconfig) -> Option<String> {
    let current = kubeconfig.current_context.as_ref();
    let context = kubeconfig.contexts.iter().find(|one| Some(&one.name) == current);
    let name = context.and_then(|context| Some(&context.context.as_ref()?.cluster));
    let mut clusters = kubeconfig.clusters.iter();
    let named = clusters.find(|one| name.is_none_or(|name| *name == one.name));
    named?.cluster.as_ref()?.server.clone()
}

/// The addresses that kubeconfigs have.
fn addresses(
    kubeconfigs: &[(&'static str, Kubeconfig)],
) -> Result<Vec<String>, GivenClustersError> {
    let addresses = kubeconfigs.iter().map(|(cluster, kubeconfig)| {
        let server = server_of(kubeconfig).unwrap_or_default();
        let is_loopback =
            ["://127.", "://localhost", "://[::1]"].iter().any(|host| server.contains(host));
        if is_loopback || server.is_empty() {
            Err(GivenClustersError::Loopback { cluster, server })
        } else {
            Ok(server)
        }
    });
    addresses.collect()
}

/// The state of a lab without processes: kubectl, and a place for kubeconfigs.
fn state_in(directory: &Path) -> Result<LabState, GivenClustersError> {
    let unknown = || std::io::Error::other("this process is not in /proc");
    let own = ProcessId::own().ok_or_else(unknown);
    let own =
        own.map_err(|source| GivenClustersError::Write { path: directory.to_owned(), source })?;
    Ok(LabState {
        name: "given".to_owned(),
        directory: directory.to_owned(),
        supervisor: own,
        phase: Phase::Ready { after_millis: 0 },
        binaries: Binaries::find(&|line| eprintln!("{line}"))?,
        node_programs: None,
        audit: false,
        clusters: Vec::new(),
        programs: Default::default(),
    })
}

async fn connect(
    state: &LabState,
    name: &'static str,
    kubeconfig: &Kubeconfig,
) -> Result<Cluster, GivenClustersError> {
    let cluster = ClusterState::new(name, &state.directory, [0; ClusterState::PORTS]);
    let path = cluster.kubeconfig();
    let unreadable =
        |source| GivenClustersError::Kubeconfig { cluster: name, path: path.clone(), source };
    let text = kubeconfig::render(kubeconfig).map_err(unreadable)?;
    let written = std::fs::create_dir_all(&cluster.directory)
        .and_then(|()| lab::state::write_private(&path, text.as_bytes()));
    written.map_err(|source| GivenClustersError::Write { path: path.clone(), source })?;
    Ok(Cluster::connect(state, &cluster).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(directory: &Path, name: &str, server: &str) -> PathBuf {
        let path = directory.join(name);
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{server: \"{server}\"}}}}]}}"
        );
        std::fs::write(&path, text).unwrap();
        path
    }

    async fn refused(kubeconfigs: &[PathBuf], servers: Option<&str>, directory: &Path) -> String {
        let servers = servers.map(|all| all.split(',').map(str::to_owned).collect());
        let given = GivenClusters::of(kubeconfigs, servers, directory).await;
        given.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn wrong_variables_are_refused_with_what_is_needed() {
        let directory = std::env::temp_dir().join(format!("given-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let far = "https://10.0.0.9:6443";
        let all = [
            kubeconfig(&directory, "manager", "https://127.0.0.1:1"),
            kubeconfig(&directory, "one", far),
            kubeconfig(&directory, "two", "https://127.0.0.1:2"),
        ];
        let said = refused(&all[..2], None, &directory).await;
        assert!(said.starts_with("SLUICE_E2E_KUBECONFIGS names 2 kubeconfigs"), "{said}");
        let said = refused(&all, None, &directory).await;
        assert!(said.contains("do not reach worker-2 at https://127.0.0.1:2; name"), "{said}");
        let said = refused(&all, Some(far), &directory).await;
        assert!(said.starts_with("SLUICE_E2E_SERVERS names 1 addresses"), "{said}");
        let absent = [all[0].clone(), directory.join("none"), all[2].clone()];
        let said = refused(&absent, Some(far), &directory).await;
        assert!(said.contains("/none of worker-1: "), "{said}");
        let same = [all[0].clone(), all[1].clone(), all[1].clone()];
        let said = refused(&same, None, &directory).await;
        assert_eq!(said, format!("SLUICE_E2E_KUBECONFIGS names the API server {far} twice"));
        let said = refused(&all, Some(&format!("{far},{far}")), &directory).await;
        assert_eq!(said, format!("SLUICE_E2E_SERVERS names the API server {far} twice"));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn the_server_is_that_of_the_current_context() {
        let text = "{current-context: b, contexts: [{name: a, context: {cluster: one}}, {name: b, context: {cluster: two}}], \
                    clusters: [{name: one, cluster: {server: first}}, {name: two, cluster: {server: second}}]}";
        let kubeconfig = Kubeconfig::from_yaml(text).unwrap();
        assert_eq!(server_of(&kubeconfig).as_deref(), Some("second"));
        let kubeconfig = Kubeconfig::from_yaml(&text.replace("current-context: b, ", "")).unwrap();
        assert_eq!(server_of(&kubeconfig).as_deref(), Some("first"));
    }
}
