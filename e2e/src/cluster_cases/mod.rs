//! Cases that need a manager and two workers, and no power over them: the same run on the control planes of `make test` (`tests/kinds`), on
//! real nodes of a lab, on clusters of kind, and on those that `SLUICE_E2E_KUBECONFIGS` names (`tests/real_pods`).
//!
//! | module | cases |
//! |---|---|
//! | `jobs` | jobs that succeed and fail, and their status on the manager |
//! | `pod_group` | a group of pods |
//! | `preemption` | a job of a higher priority |
//! | `deletion` | a job that is deleted while it runs |
//! | `drain` | a worker that is drained |
//! | `place` | where a case runs, and what it waits for there |

mod deletion;
mod drain;
mod jobs;
mod place;
mod pod_group;
mod preemption;

use anyhow::{Context, Result};

pub use place::{CaseNodes, CasePlace};

/// A case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterCase {
    /// A job succeeds, and its status comes back.
    Succeeds,
    /// A job fails, and the exit code comes back.
    Fails,
    /// A group of pods runs on one worker.
    PodGroup,
    /// A job of a higher priority takes the place of another one, which starts again later.
    Preemption,
    /// A job that is deleted while it runs leaves nothing.
    Deletion,
    /// The job of a drained worker moves to the other one.
    Drain,
}

impl ClusterCase {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Succeeds,
        Self::Fails,
        Self::PodGroup,
        Self::Preemption,
        Self::Deletion,
        Self::Drain,
    ];

    /// A name that namespaces may have.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Succeeds => "case-succeeds",
            Self::Fails => "case-fails",
            Self::PodGroup => "case-pod-group",
            Self::Preemption => "case-preemption",
            Self::Deletion => "case-deletion",
            Self::Drain => "case-drain",
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// If it does not end as it should.
    pub async fn run(self, place: &CasePlace<'_>) -> Result<()> {
        let ended = match self {
            Self::Succeeds => jobs::succeeds(place).await,
            Self::Fails => jobs::fails(place).await,
            Self::PodGroup => pod_group::runs_on_one_worker(place).await,
            Self::Preemption => preemption::takes_the_place(place).await,
            Self::Deletion => deletion::leaves_nothing(place).await,
            Self::Drain => drain::moves_the_job(place).await,
        };
        ended.with_context(|| self.name())
    }
}
