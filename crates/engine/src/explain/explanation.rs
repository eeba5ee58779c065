//! Why a Workload is pending, as values. [`pending_explanation`](super::pending_explanation) fills them in,
//! [`explanation_text`](mod@super::explanation_text) renders them.

use crate::explain::quota_shortage::QuotaShortage;
use crate::ids::{CheckId, FlavorId, QueueId, ResourceId, WorkloadId};
use crate::reason::NoFitReason;
use crate::spec::{QueueEligibility, TopologyTiming};
use crate::topology::{PlacementFailure, PlacementShortfall};

/// Why a Workload is pending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingExplanation {
    /// The Workload.
    pub workload: WorkloadId,
    /// The ClusterQueue it is pending in.
    pub queue: Option<QueueId>,
    /// Its status before quota is considered.
    pub status: QueueingStatus,
    /// Its preemption gates are closed, so it cannot preempt.
    pub preemption_gated: bool,
    /// Another variant of the same Workload, admitted with a better flavor. Nothing else is explained then.
    pub better: Option<WorkloadId>,
    /// One explanation per pod set; empty if quota is not the reason.
    pub pod_sets: Vec<PodSetExplanation>,
}

/// Status of a Workload before quota is considered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueingStatus {
    /// It has a quota reservation.
    HoldsQuota,
    /// Its LocalQueue does not exist, or is stopped.
    NoLocalQueue,
    /// Its ClusterQueue is inactive.
    Inactive(QueueInactiveReason),
    /// It is not eligible for queueing.
    NotEligible(QueueEligibility),
    /// An admission check is in state Retry or Rejected.
    FailedCheck(CheckId),
    /// Its namespace does not match the ClusterQueue's selector.
    NamespaceMismatch,
    /// Its spec is invalid.
    Invalid,
    /// Quota fits, but no worker cluster has capacity.
    NoClusterCapacity,
    /// It is inadmissible until something changes.
    Inadmissible,
    /// It is in the pending queue behind this many Workloads.
    Pending(usize),
}

/// Why a ClusterQueue is inactive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueInactiveReason {
    /// It does not exist.
    Missing,
    /// It is stopped.
    Stopped,
    /// Its cohorts form a cycle.
    CohortCycle,
    /// A flavor, or its topology, does not exist.
    Flavor(FlavorId),
    /// An admission check does not exist, or its controller is not running.
    Check(CheckId),
    /// A reason outside the engine.
    NotReady,
}

/// Why a pod set does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSetExplanation {
    /// Its name.
    pub name: Box<str>,
    /// Number of pods.
    pub count: i64,
    /// Resources that no resource group covers.
    pub uncovered: Vec<ResourceId>,
    /// Every flavor that could serve it, in the order of flavor assignment.
    pub flavors: Vec<FlavorExplanation>,
    /// It needs a topology assignment, but its flavors have no topology, or several.
    pub topology_error: Option<NoFitReason>,
}

/// Why a pod set does not fit into a flavor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlavorExplanation {
    /// Which.
    pub flavor: FlavorId,
    /// Why its pods cannot run on the flavor, whatever the quota.
    pub unsuitable: Option<NoFitReason>,
    /// Quota shortages; empty if the quota suffices.
    pub shortages: Vec<QuotaShortage>,
    /// Topology assignment in the flavor.
    pub topology: TopologyExplanation,
}

/// Whether a pod set fits into the topology of a flavor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopologyExplanation {
    /// Not needed: the flavor has no topology or does not suit, or there are no pods.
    NotNeeded,
    /// Assigned later, because of an admission check.
    Delayed(TopologyTiming),
    /// The pods fit.
    Fits,
    /// The request contradicts the topology.
    InvalidRequest(PlacementFailure),
    /// Not enough capacity.
    Shortfall(Box<PlacementShortfall>),
}

impl PodSetExplanation {
    /// Whether there is a flavor for each of its resources that suits it, whatever is in use.
    pub(super) fn may_fit(&self) -> bool {
        let suits = |one: &FlavorExplanation| one.unsuitable.is_none();
        let any = self.flavors.is_empty() || self.flavors.iter().any(suits);
        self.uncovered.is_empty() && self.topology_error.is_none() && any
    }

    /// The explained flavors of a resource group; none if one of them fits.
    pub(super) fn unfit_in(&self, group: &[FlavorId]) -> Vec<&FlavorExplanation> {
        let all: Vec<&FlavorExplanation> =
            self.flavors.iter().filter(|one| group.contains(&one.flavor)).collect();
        if all.iter().any(|one| one.fits()) { Vec::new() } else { all }
    }
}

impl FlavorExplanation {
    /// Whether the quota suffices for the pod set.
    pub fn has_quota(&self) -> bool {
        self.unsuitable.is_none() && self.shortages.is_empty()
    }

    /// Whether more quota alone would make the pod set fit.
    pub(super) fn lacks_quota_alone(&self) -> bool {
        self.unsuitable.is_none() && !self.shortages.is_empty() && self.has_topology()
    }

    /// Whether the pod set fits: quota, and topology where it is needed now.
    pub fn fits(&self) -> bool {
        self.has_quota() && self.has_topology()
    }

    fn has_topology(&self) -> bool {
        !matches!(
            self.topology,
            TopologyExplanation::InvalidRequest(_) | TopologyExplanation::Shortfall(_)
        )
    }
}
