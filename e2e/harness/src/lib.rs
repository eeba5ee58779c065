//! What tests on the lab stand on.
//!
//! * [`TestLab`]: one lab per test binary, started by the first test that asks and gone with the process.
//! * [`Space`]: a namespace of the same name in every cluster, for one test, with an [`Observer`] that was there first.
//! * [`Cluster`]: clients, waits, kubectl and faults of one cluster. Waiting is watching with a deadline; giving up says
//!   what the objects looked like and how the processes are.
//! * [`Process`]: one of our own programs, its log, its end.
//! * [`FaultProxy`]: stands between a client and an API server and delays, hangs, refuses or cuts.
//! * [`Observer`]: the ledger of pod starts and ends from which is judged whether a job ran once, twice or not at all. It
//!   trusts no status that our own programs write.
//!
//! Failures are values ([`GaveUp`] and others) whose text is made for a test's output: return them with `?`.

mod backlog;
mod cluster;
mod follow;
mod healing;
mod lab;
mod ledger;
mod manifests;
mod observer;
mod plain_http;
mod process;
mod proxy;
mod space;
mod spawner;
mod store;
mod wait;

pub use ::lab::kubeconfig;
pub use ::lab::stages::annotation;
pub use ::lab::{Component, NodeSpec};
pub use cluster::{Cluster, ClusterError};
pub use follow::{Change, Follow};
pub use lab::{LabError, Shape, TestLab, program};
pub use ledger::{JobKey, Judgement, Ledger, Outcome, PodRecord, Run, Verdict};
pub use manifests::ManifestError;
pub use observer::Observer;
pub use process::{Launch, Process, ProcessError};
pub use proxy::{Fault, FaultProxy};
pub use space::Space;
pub use wait::GaveUp;

use std::time::Duration;

/// A port for a server of a test, outside of the range from which the kernel takes those of clients.
pub fn free_port() -> Result<u16, ::lab::ports::NoPorts> {
    ::lab::ports::one()
}

/// So many seconds.
pub const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
