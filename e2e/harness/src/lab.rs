//! The lab that all tests of a binary share.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ChildStdin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use lab::real_nodes::node::RealNodeCounts;
use lab::up::{self, LabOwner, Options, UpError};
use lab::{LabState, Phase, StateRoot};
use tokio::sync::{OnceCell, RwLock};

use crate::cluster::{Cluster, ClusterError};
use crate::healing::{Servers, servers};
use crate::machine;
use crate::space::{Peace, Space};
use crate::wait::GaveUp;

/// Why a test did not get its lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The lab could not be started. Said to every test of the binary.
    #[error("start the lab: {0}")]
    Start(String),
    /// The lab has fewer workers than the test needs.
    #[error(
        "the shared lab has {running} workers and {asked} are asked for: tests of one binary ask for the same"
    )]
    TooSmall {
        /// How many there are.
        running: usize,
        /// The number of workers that the test needs.
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
    /// A namespace could not be created.
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
pub struct LabPlan {
    /// Worker clusters besides the manager.
    pub workers: usize,
    /// Whether the API servers write audit logs ([`lab::ClusterState::audit_log`]), to count requests by.
    pub audit: bool,
}

/// A running lab that ends with this process.
#[derive(Debug)]
pub struct TestLab {
    pub(crate) state: LabState,
    spaces: AtomicUsize,
    /// Read lock: tests that run in parallel. Write lock: a test that injects faults.
    peace: RwLock<()>,
    /// The processes of the clusters' servers when they were last sound.
    pub(crate) servers: Mutex<HashMap<String, Servers>>,
    /// The supervisor reads the other end. It receives no data, only the end of the stream.
    _lifeline: Option<ChildStdin>,
}

static SHARED: OnceCell<Result<TestLab, String>> = OnceCell::const_new();

impl TestLab {
    /// A running lab, which ends with `lifeline` if there is one.
    pub(crate) fn of(state: LabState, lifeline: Option<ChildStdin>) -> Self {
        let clusters = state.clusters.iter();
        let servers = clusters.map(|cluster| (cluster.name.clone(), servers(cluster))).collect();
        Self {
            state,
            spaces: AtomicUsize::new(0),
            peace: RwLock::new(()),
            servers: Mutex::new(servers),
            _lifeline: lifeline,
        }
    }

    /// The lab of this test binary: one manager and at least `workers` workers. The first test that asks starts it. It is
    /// torn down when the process ends, however it ends.
    pub async fn shared(workers: usize) -> Result<&'static Self, LabError> {
        let plan = LabPlan { workers, audit: false };
        let start = || async {
            start(plan, RealNodeCounts::default()).await.map_err(|error| error.to_string())
        };
        let lab = SHARED.get_or_init(start);
        let lab = lab.await.as_ref().map_err(|reason| LabError::Start(reason.clone()))?;
        let running = lab.state.clusters.len() - 1;
        if running < workers {
            return Err(LabError::TooSmall { running, asked: workers });
        }
        Ok(lab)
    }

    /// A separate lab, for example for a benchmark. It ends when it is dropped, or with this process.
    pub async fn start(plan: LabPlan) -> Result<Self, LabError> {
        start(plan, RealNodeCounts::default()).await
    }

    /// A separate lab with real nodes, beside those that kwok simulates.
    pub async fn start_with_real_nodes(
        plan: LabPlan,
        real_nodes: RealNodeCounts,
    ) -> Result<Self, LabError> {
        start(plan, real_nodes).await
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
                return Space::make(self, &self.namespace(test), Peace::Shared(shared)).await;
            }
            drop(shared);
            let _alone = self.peace.write().await;
            self.heal().await?;
        }
    }

    /// A space for a test that breaks components: no other test has a space as long as this one.
    pub async fn space_alone(&'static self, test: &str) -> Result<Space, LabError> {
        let alone = self.peace.write().await;
        self.heal().await?;
        Space::make(self, &self.namespace(test), Peace::Alone(alone)).await
    }

    /// A name that no other test of this lab has.
    fn namespace(&self, test: &str) -> String {
        let number = self.spaces.fetch_add(1, Ordering::Relaxed);
        format!("{}-{number}", test.replace('_', "-"))
    }
}

async fn start(plan: LabPlan, real_nodes: RealNodeCounts) -> Result<TestLab, LabError> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    machine::watch();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let sluice_lab = program("sluice-lab")?;
    let executable = std::env::current_exe().unwrap_or_default();
    let stem = executable.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let options = Options {
        name: format!("{stem}-{}-{number}", std::process::id()),
        workers: plan.workers,
        real_nodes,
        audit: plan.audit,
        owner: LabOwner::ThisProcess,
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
    Ok(TestLab::of(lab.state, lab.lifeline))
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
