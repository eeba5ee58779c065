//! Cases that need a manager and two workers, and no power over them: the same run on the control planes of `make test` (`tests/kinds`), on
//! real nodes of a lab, on clusters of kind, and on those that `SLUICE_E2E_KUBECONFIGS` names (`tests/real_pods`).
//!
//! | module | cases |
//! |---|---|
//! | `jobs` | jobs that succeed and fail, and their status on the manager |
//! | `pod_group` | a group of pods |
//! | `preemption` | a job of a higher priority |
//! | `single_pods` | pods without a group, and their ends |
//! | `containers` | containers that a kubelet ends or does not start |
//! | `room` | a job that only the larger worker has room for |
//! | `deletion` | a job that is deleted while it runs |
//! | `drain` | a worker that is drained |
//! | `place` | where a case runs, and what it waits for there |

mod containers;
mod deletion;
mod drain;
mod jobs;
mod place;
mod pod_group;
mod preemption;
mod room;
mod single_pods;

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
    /// Single pods succeed and fail, and their ends come back.
    SinglePods,
    /// A container above its memory limit is killed, and the exit code comes back.
    MemoryLimit,
    /// What keeps a container without its image from starting is shown on the manager.
    NoImage,
    /// What keeps a container without its configuration from starting is shown on the manager.
    NoConfiguration,
    /// A job of a higher priority takes the place of another one, which starts again later.
    Preemption,
    /// A job that is deleted while it runs leaves nothing.
    Deletion,
    /// The job of a drained worker moves to the other one.
    Drain,
    /// A job runs on the larger worker, because only that one has room.
    Room,
}

impl ClusterCase {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Succeeds,
        Self::Fails,
        Self::PodGroup,
        Self::SinglePods,
        Self::MemoryLimit,
        Self::NoImage,
        Self::NoConfiguration,
        Self::Preemption,
        Self::Deletion,
        Self::Drain,
        Self::Room,
    ];

    /// Whether the nodes may have no other pods that come and go.
    #[must_use]
    pub fn runs_alone(self) -> bool {
        self == Self::Room
    }

    /// A name that namespaces may have.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Succeeds => "case-succeeds",
            Self::Fails => "case-fails",
            Self::PodGroup => "case-pod-group",
            Self::SinglePods => "case-single-pods",
            Self::MemoryLimit => "case-memory-limit",
            Self::NoImage => "case-no-image",
            Self::NoConfiguration => "case-no-configuration",
            Self::Preemption => "case-preemption",
            Self::Deletion => "case-deletion",
            Self::Drain => "case-drain",
            Self::Room => "case-room",
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
            Self::SinglePods => single_pods::end_on_the_manager(place).await,
            Self::MemoryLimit => containers::above_its_memory_limit_is_killed(place).await,
            Self::NoImage => containers::without_its_image_waits(place).await,
            Self::NoConfiguration => containers::without_its_configuration_waits(place).await,
            Self::Preemption => preemption::takes_the_place(place).await,
            Self::Deletion => deletion::leaves_nothing(place).await,
            Self::Drain => drain::moves_the_job(place).await,
            Self::Room => room::only_the_larger_one_has(place).await,
        };
        ended.with_context(|| self.name())
    }
}
