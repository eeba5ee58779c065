//! How far a Job is when a part fails.

use anyhow::Result;
use crds::{meta::is_true, v1beta2::Workload};
use harness::RunVerdict;
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{Api, ResourceExt, api::DeleteParams};

use super::environment::{FaultEnvironment, TARGET};
use crate::{
    installation::TIMEOUT,
    objects::{LONG, job_is},
    waits,
};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobPhase {
    /// Its Workload holds quota.
    Nominating,
    /// The worker has the clone of its Workload.
    Mirrored,
    /// Its Workload is admitted on the hub.
    Starting,
    /// Its pod runs.
    Running,
    /// The worker has completed it.
    Finishing,
    /// It ran, and is deleted on the hub.
    Deleting,
}

impl JobPhase {
    /// Every phase, in order.
    pub const ALL: [Self; 6] = [
        Self::Nominating,
        Self::Mirrored,
        Self::Starting,
        Self::Running,
        Self::Finishing,
        Self::Deleting,
    ];

    /// A part of names of Jobs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nominating => "nominating",
            Self::Mirrored => "mirrored",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Finishing => "finishing",
            Self::Deleting => "deleting",
        }
    }

    /// The run time of the pod in seconds.
    pub(super) fn runs_for(self) -> u32 {
        match self {
            // It ends while the part fails.
            Self::Running => 4,
            Self::Deleting => LONG,
            _ => 2,
        }
    }

    /// Waits until the Job has reached the phase.
    pub(super) async fn reached(
        self,
        environment: &FaultEnvironment<'_>,
        name: &str,
    ) -> Result<()> {
        let (hub, worker) = (environment.hub(), environment.worker()?);
        let place = (hub, TARGET);
        match self {
            Self::Nominating => {
                let holds = |one: &Workload| is_true(&one.status.conditions, "QuotaReserved");
                waits::until_workload(place, (name, "holds quota"), TIMEOUT, holds).await?;
            }
            Self::Mirrored => {
                let clones = worker.api::<Workload>(TARGET);
                let there = |all: &[Workload]| !all.is_empty();
                worker.until_all(&clones, "", "the clone is there", TIMEOUT, there).await?;
            }
            Self::Starting => {
                let admitted = |one: &Workload| is_true(&one.status.conditions, "Admitted");
                waits::until_workload(place, (name, "is admitted"), TIMEOUT, admitted).await?;
            }
            Self::Running => runs(environment, name).await?,
            Self::Finishing => {
                let jobs = worker.api::<Job>(TARGET);
                let complete = |job: &Job| job_is(job, "Complete");
                worker.until(&jobs, name, "is complete there", TIMEOUT, complete).await?;
            }
            Self::Deleting => {
                runs(environment, name).await?;
                let jobs: Api<Job> = hub.api(TARGET);
                jobs.delete(name, &DeleteParams::background()).await?;
            }
        }
        Ok(())
    }

    /// Waits until the Job has ended on the hub.
    pub(super) async fn ended(self, environment: &FaultEnvironment<'_>, name: &str) -> Result<()> {
        if self != Self::Deleting {
            return environment.until_complete(TARGET, name).await;
        }
        let hub = environment.hub();
        Ok(hub.until_gone(&hub.api::<Job>(TARGET), name, TIMEOUT).await?)
    }
}

async fn runs(environment: &FaultEnvironment<'_>, name: &str) -> Result<()> {
    let worker = environment.worker()?;
    let runs = |all: &[Pod]| {
        let phase = |pod: &Pod| pod.status.as_ref()?.phase.clone();
        let ours = all.iter().filter(|pod| pod.name_any().starts_with(name));
        ours.filter_map(phase).any(|phase| phase == "Running")
    };
    worker.until_all(&worker.api::<Pod>(TARGET), "", "its pod runs", TIMEOUT, runs).await?;
    // The ledger knows the start before the pod can be deleted.
    let started = |verdict| verdict != RunVerdict::NeverRan;
    environment.until_judged(name, started).await
}
