//! The scenarios during which a program crashes.
//!
//! A scenario runs twice: until the program crashes, and again after its restart. So each of its steps must be idempotent.

mod deleted;
mod edited;
mod elastic;
mod failing_node;
mod gated;
mod group;
mod grown;
mod interrupted;
mod leased;
mod operated;
mod own_cluster;
mod provisioned;
mod refused;
mod scaled;
mod secured;
mod shrunk;
mod unreachable;
mod variants;

use anyhow::Result;
use harness::RunVerdict;

use crate::observed_job::ObservedJob;

/// A scenario during which a program crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// A Job runs on a worker, and nothing happens to it.
    Plain,
    /// It is deactivated while it runs, and activated again.
    Interrupted,
    /// The Job is changed in every field while it is pending.
    Edited,
    /// It runs at home, behind a check that a person decides; its queue stops, and it is deactivated once.
    AtHome,
    /// A group of pods runs at home, one of which fails and is replaced.
    Group,
    /// A group of pods runs on a worker.
    DispatchedGroup,
    /// A StatefulSet at home is scaled to zero and back.
    Scaled,
    /// An elastic Job at home grows and shrinks, and an elastic RayJob says which RayCluster it has.
    Elastic,
    /// An elastic Job shrinks while it runs on a worker.
    Shrunk,
    /// An elastic Job grows while it runs on a worker.
    Grown,
    /// A node of a topology fails before a pod is bound to it.
    FailingNode,
    /// An autoscaler provides the room for the Job.
    Provisioned,
    /// A Job with variants at home preempts another one. It is deactivated while it runs, and activated again.
    Variants,
    /// The kubelet of a pod that is being deleted is down.
    Unreachable,
    /// The Job exceeds its maximum execution time.
    TooLong,
    /// It belongs to another controller.
    Foreign,
    /// The remote copy is deleted on the worker.
    Robbed,
    /// The worker would have to preempt for it. Its agent is away until the manager has died.
    Gated,
    /// The worker's API server refuses Jobs.
    Refused,
    /// The agent allows no Job.
    Forbidden,
    /// The worker is registered again, with other label keys in its report.
    Registered,
    /// A ClusterQueue and its ResourceFlavor are deleted.
    QueueRemoved,
    /// The quota of a ClusterQueue follows that of its worker.
    Automated,
    /// The manager has to be elected first.
    Elected,
    /// The Secret of the webhooks' certificate is deleted.
    Untrusted,
    /// A former leader has ended between the nomination and the creates.
    TakenOver,
    /// It runs under ExactlyOnce.
    Leased,
    /// It runs under ExactlyOnce, and a former leader has ended after it has created the clone.
    LeasedTakenOver,
    /// It runs under ExactlyOnce when the manager ends, until its grant ends.
    Fenced,
    /// No Job: a RayJob on a worker, which the agent operates.
    Operated,
    /// No Job: a RayCluster on a worker, which the agent secures.
    Secured,
}

impl Scenario {
    /// All there are.
    pub(crate) const ALL: &[Self] = &[
        Self::Plain,
        Self::Interrupted,
        Self::Edited,
        Self::AtHome,
        Self::Group,
        Self::DispatchedGroup,
        Self::Scaled,
        Self::Elastic,
        Self::Shrunk,
        Self::Grown,
        Self::FailingNode,
        Self::Provisioned,
        Self::Variants,
        Self::TooLong,
        Self::Foreign,
        Self::Robbed,
        Self::Gated,
        Self::Refused,
        Self::Forbidden,
        Self::Registered,
        Self::QueueRemoved,
        Self::Automated,
        Self::Elected,
        Self::Untrusted,
        Self::TakenOver,
        Self::Operated,
        Self::Secured,
        // From here on there are Leases.
        Self::Leased,
        Self::LeasedTakenOver,
        Self::Fenced,
        // Last: its pods were deleted at the beginning, and have to be old.
        Self::Unreachable,
    ];

    /// The allowed verdicts about the pods at the end; none without a Job.
    pub(crate) const fn verdicts(self) -> Option<&'static [RunVerdict]> {
        Some(match self {
            Self::QueueRemoved
            | Self::Automated
            | Self::Group
            | Self::DispatchedGroup
            | Self::Scaled
            | Self::Elastic
            | Self::Shrunk
            | Self::Grown
            | Self::FailingNode
            | Self::Operated
            | Self::Secured
            | Self::Unreachable => return None,
            Self::Interrupted | Self::AtHome | Self::Variants | Self::Robbed | Self::Fenced => {
                &[RunVerdict::Once, RunVerdict::Moved]
            }
            Self::TooLong => &[RunVerdict::Lost],
            Self::Foreign => &[RunVerdict::NeverRan],
            Self::Plain
            | Self::Edited
            | Self::Gated
            | Self::Refused
            | Self::Forbidden
            | Self::Registered
            | Self::Provisioned
            | Self::Elected
            | Self::Untrusted
            | Self::TakenOver
            | Self::Leased
            | Self::LeasedTakenOver => &[RunVerdict::Once],
        })
    }

    /// Pods that do the work.
    pub(crate) const fn pods(self) -> usize {
        match self {
            Self::AtHome => 3,
            _ => 2,
        }
    }
}

impl ObservedJob<'_> {
    /// What happens while the program is dead.
    pub(crate) async fn meanwhile(&self) -> Result<()> {
        match self.scenario {
            Scenario::Refused => self.open_the_worker().await,
            _ => Ok(()),
        }
    }

    /// From the beginning to the end.
    pub(crate) async fn run(&self) -> Result<()> {
        match self.scenario {
            Scenario::Plain
            | Scenario::Forbidden
            | Scenario::Elected
            | Scenario::Untrusted
            | Scenario::TakenOver => {
                self.submit(self.job()).await?;
                self.until_over().await
            }
            Scenario::Leased | Scenario::LeasedTakenOver => self.leased().await,
            Scenario::Fenced => self.fenced().await,
            Scenario::Interrupted => self.interrupted().await,
            Scenario::Edited => self.edited().await,
            Scenario::AtHome => self.at_home().await,
            Scenario::Group => self.group().await,
            Scenario::DispatchedGroup => self.dispatched_group().await,
            Scenario::Scaled => self.scaled().await,
            Scenario::Elastic => self.elastic().await,
            Scenario::Shrunk => self.shrunk().await,
            Scenario::Grown => self.grown().await,
            Scenario::FailingNode => self.failing_node().await,
            Scenario::Operated => self.operated().await,
            Scenario::Secured => self.secured().await,
            Scenario::Provisioned => self.provisioned().await,
            Scenario::Variants => self.variants().await,
            Scenario::Unreachable => self.unreachable().await,
            Scenario::TooLong => self.too_long().await,
            Scenario::Foreign => self.foreign().await,
            Scenario::Robbed => self.robbed().await,
            Scenario::Gated => self.gated().await,
            Scenario::Refused => self.refused().await,
            Scenario::Registered => self.registered().await,
            Scenario::QueueRemoved => self.queue_removed().await,
            Scenario::Automated => self.automated().await,
        }
    }
}
