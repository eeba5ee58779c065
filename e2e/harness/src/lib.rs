//! The fixtures of tests on the lab.
//!
//! * [`TestLab`]: one lab per test binary. The first test starts it; it ends with the process.
//! * [`Space`]: a namespace of one test in every cluster, with an [`Observer`] that started before the test.
//! * [`Cluster`]: clients, waits, kubectl and faults of one cluster. A wait is a watch with a deadline; its error has the
//!   objects and the state of the processes.
//! * [`GivenClusters`]: clusters that exist already, by their kubeconfigs.
//! * [`Process`]: one of the project's programs, its log and its exit.
//! * [`FaultProxy`]: a proxy between a client and an API server that delays, hangs, refuses or cuts connections.
//! * [`PlayedService`]: one address for several endpoints, such as the webhooks of replicas.
//! * [`ServiceProxy`]: the way from an agent beside the lab to Services of pods on real nodes.
//! * [`Observer`]: the ledger of pod starts and ends, from which follows whether a job ran once, twice or never. It does not
//!   use any status that the project's programs write.
//! * [`PlayedOperator`]: the operator of a declared kind of job, for kinds of which the lab has none.
//!
//! Failures are values ([`GaveUp`] and others) with a text for the output of a test: return them with `?`.

mod backlog;
mod cluster;
mod follow;
mod given_clusters;
mod healing;
mod lab;
mod lasting_program;
mod ledger;
mod machine;
mod manifests;
mod observer;
mod operator;
mod plain_http;
mod played_service;
mod process;
mod proxy;
mod ray_heads;
mod service_proxy;
mod space;
mod spawner;
mod store;
mod wait;

pub use ::lab::kubeconfig;
pub use ::lab::stages::annotation;
pub use ::lab::{Component, NodeSpec};
pub use cluster::{Cluster, ClusterError};
pub use follow::{Follow, FollowedChange};
pub use given_clusters::{GivenClusters, GivenClustersError, server_of};
pub use lab::{LabError, LabPlan, TestLab, program};
pub use lasting_program::LastingProgram;
pub use ledger::{Judgement, Ledger, LedgerJob, PodOutcome, PodRecord, Run, RunVerdict};
pub use manifests::ManifestError;
pub use observer::Observer;
pub use operator::{PlayedOperator, resource_of};
pub use played_service::PlayedService;
pub use process::{Launch, Process, ProcessError};
pub use proxy::{Fault, FaultProxy};
pub use ray_heads::{HeadFault, RayHeads, ServeConfig, Submission};
pub use service_proxy::ServiceProxy;
pub use space::{Space, make_namespace};
pub use wait::GaveUp;

use std::time::Duration;

/// A free port for a server of a test, outside the kernel's range of client ports.
pub fn free_port() -> Result<u16, ::lab::ports::NoPorts> {
    ::lab::ports::one()
}

/// So many seconds.
pub const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
