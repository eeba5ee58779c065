//! The work that faults act on.

use anyhow::{Result, ensure};
use crds::v1beta2::Workload;
use harness::{Cluster, Observer, RunVerdict};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};

use super::environment::{FaultEnvironment, TARGET};
use crate::{
    installation::TIMEOUT,
    objects::{self, job_is},
};

/// The work that faults act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchedWork {
    /// A Job of one pod.
    Job,
    /// A group of two pods, which stay gated on the hub.
    PodGroup,
}

impl DispatchedWork {
    /// Every kind of work.
    pub const ALL: [Self; 2] = [Self::Job, Self::PodGroup];

    /// A part of its names.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::PodGroup => "group",
        }
    }

    /// Submits it. Its pods run for so many seconds.
    pub(super) async fn submit(
        self,
        environment: &FaultEnvironment<'_>,
        name: &str,
        seconds: u32,
    ) -> Result<()> {
        if self == Self::Job {
            return environment.submit(TARGET, name, seconds).await;
        }
        let pods: Api<Pod> = environment.hub().api(TARGET);
        for member in self.members(name) {
            let pod = objects::in_group(objects::pod(&member, "queue", seconds), name, 2);
            pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        }
        Ok(())
    }

    /// What the ledger judges, and what owns the Workload.
    pub(super) fn members(self, name: &str) -> Vec<String> {
        match self {
            Self::Job => vec![name.to_owned()],
            Self::PodGroup => vec![format!("{name}-a"), format!("{name}-b")],
        }
    }

    fn observer<'e>(self, environment: &'e FaultEnvironment<'_>) -> &'e Observer {
        match self {
            Self::Job => &environment.target,
            Self::PodGroup => &environment.target_on_workers,
        }
    }

    /// Waits until it is complete in a cluster.
    pub(super) async fn until_complete(self, cluster: &Cluster, name: &str) -> Result<()> {
        if self == Self::Job {
            let complete = |job: &Job| job_is(job, "Complete");
            let jobs = cluster.api::<Job>(TARGET);
            cluster.until(&jobs, name, "is complete", 2 * TIMEOUT, complete).await?;
            return Ok(());
        }
        let succeeded = |pod: &Pod| objects::phase(pod) == "Succeeded";
        for member in self.members(name) {
            let pods = cluster.api::<Pod>(TARGET);
            cluster.until(&pods, &member, "has succeeded", 2 * TIMEOUT, succeeded).await?;
        }
        Ok(())
    }

    /// Waits until the ledger has its pods as started.
    pub(super) async fn until_started(
        self,
        environment: &FaultEnvironment<'_>,
        name: &str,
    ) -> Result<()> {
        for member in self.members(name) {
            let observer = self.observer(environment);
            observer.until(&member, 1, RunVerdict::Running, TIMEOUT).await?;
        }
        Ok(())
    }

    /// Ends it on the hub. Without its pods a group waits for others; it ends with its Workload.
    pub(super) async fn delete(self, hub: &Cluster, name: &str) -> Result<()> {
        let parameters = DeleteParams::background();
        if self == Self::Job {
            hub.api::<Job>(TARGET).delete(name, &parameters).await?;
            return Ok(());
        }
        hub.api::<Workload>(TARGET).delete(name, &parameters).await?;
        Ok(())
    }

    /// Waits until it is gone on the hub.
    pub(super) async fn until_gone(self, hub: &Cluster, name: &str) -> Result<()> {
        if self == Self::Job {
            return Ok(hub.until_gone(&hub.api::<Job>(TARGET), name, TIMEOUT).await?);
        }
        for member in self.members(name) {
            hub.until_gone(&hub.api::<Pod>(TARGET), &member, TIMEOUT).await?;
        }
        Ok(())
    }

    /// The ledger has this verdict about every member.
    pub(super) async fn expect(
        self,
        environment: &FaultEnvironment<'_>,
        name: &str,
        verdict: RunVerdict,
    ) -> Result<()> {
        for member in self.members(name) {
            let judgement = self.observer(environment).judge(&member, 1, TIMEOUT).await?;
            ensure!(judgement.verdict == verdict, "{judgement}");
        }
        Ok(())
    }
}
