//! How far the work is when a part fails.

use anyhow::Result;
use crds::{meta::is_true, v1beta2::Workload};
use harness::RunVerdict;

use super::{
    dispatched_work::DispatchedWork,
    environment::{FaultEnvironment, TARGET},
};
use crate::{installation::TIMEOUT, objects::LONG, waits};

/// The phase of the work in which a part fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkPhase {
    /// Its Workload holds quota.
    Nominating,
    /// The worker has the clone of its Workload.
    Mirrored,
    /// Its Workload is admitted on the hub.
    Starting,
    /// Its pods run.
    Running,
    /// It is complete on the worker.
    Finishing,
    /// It ran, and is deleted on the hub.
    Deleting,
}

impl WorkPhase {
    /// Every phase, in order.
    pub const ALL: [Self; 6] = [
        Self::Nominating,
        Self::Mirrored,
        Self::Starting,
        Self::Running,
        Self::Finishing,
        Self::Deleting,
    ];

    /// A part of its names.
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

    /// The run time of its pods in seconds.
    pub(super) fn runs_for(self) -> u32 {
        match self {
            // It ends while the part fails.
            Self::Running => 4,
            Self::Deleting => LONG,
            _ => 2,
        }
    }

    /// What the ledger says in the end.
    pub(super) fn verdict(self) -> RunVerdict {
        match self {
            // It was deleted while it ran.
            Self::Deleting => RunVerdict::Lost,
            _ => RunVerdict::Once,
        }
    }

    /// Waits until the work has reached the phase.
    pub(super) async fn reached(
        self,
        work: DispatchedWork,
        environment: &FaultEnvironment<'_>,
        name: &str,
    ) -> Result<()> {
        let (hub, worker) = (environment.hub(), environment.worker()?);
        let members = work.members(name);
        let owner = members.first().map_or(name, String::as_str);
        let until_holds = async |condition: &str| {
            let holds = |one: &Workload| is_true(&one.status.conditions, condition);
            let what = format!("is {condition}");
            waits::until_workload((hub, TARGET), (owner, &what), TIMEOUT, holds).await
        };
        match self {
            Self::Nominating => {
                until_holds("QuotaReserved").await?;
            }
            Self::Mirrored => {
                let clones = worker.api::<Workload>(TARGET);
                let there = |all: &[Workload]| !all.is_empty();
                worker.until_all(&clones, "", "the clone is there", TIMEOUT, there).await?;
            }
            Self::Starting => {
                until_holds("Admitted").await?;
            }
            Self::Running => work.until_started(environment, name).await?,
            Self::Finishing => work.until_complete(worker, name).await?,
            Self::Deleting => {
                work.until_started(environment, name).await?;
                work.delete(hub, name).await?;
            }
        }
        Ok(())
    }
}
