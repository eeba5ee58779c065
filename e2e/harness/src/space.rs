//! The space of one test: a namespace in every cluster, and an observer.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{ObjectMeta, PostParams};
use lab::state::MANAGER;
use tokio::sync::{RwLockReadGuard, RwLockWriteGuard};

use crate::backlog;
use crate::cluster::Cluster;
use crate::lab::{LabError, TestLab};
use crate::observer::Observer;

/// A namespace is usable shortly after its creation, later on a busy machine.
const NAMESPACE_READY: Duration = Duration::from_secs(30);

/// The lock that isolates tests from each other.
#[expect(dead_code, reason = "held, never looked at")]
pub(crate) enum Peace {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

/// A test's own namespace in every cluster.
pub struct Space {
    namespace: String,
    clusters: Vec<Cluster>,
    observer: Observer,
    _peace: Peace,
}

impl Space {
    pub(crate) async fn make(
        lab: &TestLab,
        namespace: &str,
        peace: Peace,
    ) -> Result<Self, LabError> {
        let mut clusters = Vec::new();
        for state in &lab.state.clusters {
            let cluster = Cluster::connect(&lab.state, state).await?;
            make_namespace(&cluster, namespace).await?;
            clusters.push(cluster);
        }
        let observer = Observer::start(&clusters, namespace, NAMESPACE_READY).await?;
        let namespace = namespace.to_owned();
        Ok(Self { namespace, clusters, observer, _peace: peace })
    }

    /// The namespace's name, the same everywhere.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The manager cluster.
    pub fn manager(&self) -> Result<&Cluster, LabError> {
        self.cluster(MANAGER)
    }

    /// Worker number `number`, from 1.
    pub fn worker(&self, number: usize) -> Result<&Cluster, LabError> {
        self.cluster(&format!("worker-{number}"))
    }

    fn cluster(&self, name: &str) -> Result<&Cluster, LabError> {
        let known = || self.clusters.iter().map(|cluster| cluster.name().to_owned()).collect();
        self.clusters.iter().find(|cluster| cluster.name() == name).ok_or_else(|| {
            let (lab, cluster) = (self.namespace.clone(), name.to_owned());
            lab::state::StateError::NoCluster { lab, cluster, known: known() }.into()
        })
    }

    /// The manager first, then the workers.
    pub fn clusters(&self) -> &[Cluster] {
        &self.clusters
    }

    /// The ledger of every pod in the namespace, kept since before it could hold any.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }
}

impl Drop for Space {
    /// A panic of a test prints only the compared values.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for cluster in &self.clusters {
                eprint!("{}", backlog::ailing(cluster.state()));
            }
            if let Some(cluster) = self.clusters.first() {
                eprint!("{}", backlog::tails(cluster.state(), Some(&self.namespace)));
            }
        }
    }
}

/// Creates a namespace, and waits until it takes pods.
pub async fn make_namespace(cluster: &Cluster, name: &str) -> Result<(), LabError> {
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    let created =
        cluster.cluster_api::<Namespace>().create(&PostParams::default(), &namespace).await;
    created.map_err(|source| LabError::Namespace {
        namespace: name.to_owned(),
        cluster: cluster.name().to_owned(),
        source,
    })?;
    // Pods need the service account.
    let accounts = cluster.api::<ServiceAccount>(name);
    cluster.until(&accounts, "default", "is there", NAMESPACE_READY, |_| true).await?;
    Ok(())
}
