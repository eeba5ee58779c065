//! The lab that all tests of a binary share, and the space of one test in it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ChildStdin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{ObjectMeta, PostParams};
use lab::identity::Liveness;
use lab::state::MANAGER;
use lab::up::{self, Options, Owner, UpError};
use lab::{ClusterState, Component, LabState, Phase, ProcessId, StateRoot};
use tokio::sync::{OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::cluster::{Cluster, ClusterError};
use crate::observer::Observer;
use crate::wait::GaveUp;

/// A namespace is usable a moment after it was made; two busy cores make that moment longer.
const NAMESPACE_READY: Duration = Duration::from_secs(30);

/// Why a test did not get its lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The lab could not be started. Said to every test of the binary.
    #[error("start the lab: {0}")]
    Start(String),
    /// The lab runs with fewer workers than this test asks for.
    #[error(
        "the shared lab has {running} workers and {asked} are asked for: tests of one binary ask for the same"
    )]
    TooSmall {
        /// How many there are.
        running: usize,
        /// How many are asked for.
        asked: usize,
    },
    /// A program of this workspace has not been built.
    #[error("{} is not there; build the workspace's programs first", .0.display())]
    NotBuilt(PathBuf),
    /// The lab has no such cluster.
    #[error(transparent)]
    State(#[from] lab::state::StateError),
    /// A cluster could not be used.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A namespace could not be made.
    #[error("create namespace {namespace} on {cluster}: {source}")]
    Namespace {
        /// The namespace.
        namespace: String,
        /// The cluster.
        cluster: String,
        /// What the server said.
        source: kube::Error,
    },
    /// A cluster did not do its part in time.
    #[error(transparent)]
    GaveUp(#[from] GaveUp),
}

/// What a lab is to have.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Worker clusters besides the manager.
    pub workers: usize,
    /// Whether the API servers write audit logs ([`lab::ClusterState::audit_log`]), to count requests by.
    pub audit: bool,
}

type Servers = [Option<ProcessId>; 2];

/// A running lab that ends with this process.
#[derive(Debug)]
pub struct TestLab {
    state: LabState,
    spaces: AtomicUsize,
    /// Read by tests that get along with each other, written by one that breaks things.
    peace: RwLock<()>,
    /// The processes of the clusters' servers when they were last sound.
    servers: Mutex<HashMap<String, Servers>>,
    /// The supervisor reads the other end; it never gets a byte, only the end.
    _lifeline: Option<ChildStdin>,
}

static SHARED: OnceCell<Result<TestLab, String>> = OnceCell::const_new();

impl TestLab {
    /// The lab of this test binary: one manager and at least `workers` workers. The first test that asks starts it. It is
    /// torn down when the process ends, however it ends.
    pub async fn shared(workers: usize) -> Result<&'static Self, LabError> {
        let shape = Shape { workers, audit: false };
        let start = || async { start(shape).await.map_err(|error| error.to_string()) };
        let lab = SHARED.get_or_init(start);
        let lab = lab.await.as_ref().map_err(|reason| LabError::Start(reason.clone()))?;
        let running = lab.state.clusters.len() - 1;
        if running < workers {
            return Err(LabError::TooSmall { running, asked: workers });
        }
        Ok(lab)
    }

    /// A lab of its own, for what cannot share one, such as a benchmark. It ends when it is dropped.
    pub async fn start(shape: Shape) -> Result<Self, LabError> {
        start(shape).await
    }

    /// Its processes and files.
    pub fn state(&self) -> &LabState {
        &self.state
    }

    /// The cluster of this name.
    pub async fn cluster(&self, name: &str) -> Result<Cluster, LabError> {
        Ok(Cluster::connect(&self.state, self.state.cluster(name)?).await?)
    }

    /// A namespace in every cluster, watched from its first moment. Other tests use the clusters at the same time.
    pub async fn space(&'static self, test: &str) -> Result<Space, LabError> {
        loop {
            let shared = self.peace.read().await;
            if self.is_sound()? {
                return self.make_space(test, Peace::Shared(shared)).await;
            }
            drop(shared);
            let _alone = self.peace.write().await;
            self.heal().await?;
        }
    }

    /// The same for a test that breaks components: no other test has a space as long as this one.
    pub async fn space_alone(&'static self, test: &str) -> Result<Space, LabError> {
        let alone = self.peace.write().await;
        self.heal().await?;
        self.make_space(test, Peace::Alone(alone)).await
    }

    async fn make_space(&self, test: &str, peace: Peace) -> Result<Space, LabError> {
        let number = self.spaces.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("{}-{number}", test.replace('_', "-"));
        let mut clusters = Vec::new();
        for state in &self.state.clusters {
            let cluster = Cluster::connect(&self.state, state).await?;
            make_namespace(&cluster, &namespace).await?;
            clusters.push(cluster);
        }
        let observer = Observer::start(&clusters, &namespace, NAMESPACE_READY).await?;
        Ok(Space { namespace, clusters, observer, _peace: peace })
    }

    /// Makes every cluster as good as new after a test that broke something.
    ///
    /// What still doesn't run is started. Where the API server or its store was started anew, so are its clients: they
    /// would get there by themselves, but each waits out a back-off of up to half a minute first.
    async fn heal(&self) -> Result<(), LabError> {
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
    fn is_sound(&self) -> Result<bool, LabError> {
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

    /// The clusters whose servers are not those that were noted.
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
fn servers(cluster: &ClusterState) -> Servers {
    [Component::Etcd, Component::ApiServer].map(|part| cluster.processes.get(&part).copied())
}

/// What a space holds so that tests keep out of each other's way.
#[expect(dead_code, reason = "held, never looked at")]
enum Peace {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

async fn start(shape: Shape) -> Result<TestLab, LabError> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let sluice_lab = program("sluice-lab")?;
    let executable = std::env::current_exe().unwrap_or_default();
    let stem = executable.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let options = Options {
        name: format!("{stem}-{}-{number}", std::process::id()),
        workers: shape.workers,
        audit: shape.audit,
        owner: Owner::ThisProcess,
        sluice_lab,
    };
    let root = StateRoot::of_user()?;
    let started = move || up::up(&root, &options, &|line| eprintln!("{line}"));
    let lab = tokio::task::spawn_blocking(started)
        .await
        .map_err(|error| LabError::Start(error.to_string()))?
        .map_err(|error: UpError| LabError::Start(error.to_string()))?;
    if let Phase::Ready { after_millis } = lab.state.phase {
        eprintln!("lab {:?} ready in {after_millis} ms", lab.state.name);
    }
    let clusters = lab.state.clusters.iter();
    let servers = clusters.map(|cluster| (cluster.name.clone(), servers(cluster))).collect();
    Ok(TestLab {
        state: lab.state,
        spaces: AtomicUsize::new(0),
        peace: RwLock::new(()),
        servers: Mutex::new(servers),
        _lifeline: lab.lifeline,
    })
}

async fn make_namespace(cluster: &Cluster, name: &str) -> Result<(), LabError> {
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
    // Without it no pod can be made.
    let accounts = cluster.api::<ServiceAccount>(name);
    cluster.until(&accounts, "default", "is there", NAMESPACE_READY, |_| true).await?;
    Ok(())
}

/// A program of this workspace, in the target directory that the test itself is in.
pub fn program(name: &str) -> Result<PathBuf, LabError> {
    let own = std::env::current_exe().unwrap_or_default();
    let directory = own.parent().unwrap_or(&own);
    // Tests are in `deps/`, programs such as a benchmark are beside those they start.
    let profile = if directory.ends_with("deps") { directory.parent() } else { Some(directory) };
    let program = profile.unwrap_or(directory).join(name);
    if program.is_file() { Ok(program) } else { Err(LabError::NotBuilt(program)) }
}

/// A test's own namespace in every cluster.
pub struct Space {
    namespace: String,
    clusters: Vec<Cluster>,
    observer: Observer,
    _peace: Peace,
}

impl Space {
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
