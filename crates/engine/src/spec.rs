//! Objects as the engine schedules them: names interned, quantities as numbers, defaults filled in.
//!
//! These are plain values. The caller converts API objects into them.

use crate::amount::Amount;
use crate::ids::{
    CheckId, CohortId, FlavorId, LocalQueueId, NamespaceId, QueueId, ResourceId, TopologyId,
};
use crate::node_selection::{NodeSelection, NodeTaint, PodToleration};
use crate::time::Time;
use crate::topology::{DomainAssignment, PreferredTerm, TopologyRequest};

/// Quota of one resource in one flavor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaSpec {
    /// Which resource.
    pub resource: ResourceId,
    /// `nominalQuota`: what the owner may always use.
    pub nominal: Amount,
    /// `borrowingLimit`: how much more it may take from its cohort; `None` is unlimited.
    pub borrowing_limit: Option<Amount>,
    /// `lendingLimit`: how much of its subtree quota others may take; `None` is all of it.
    pub lending_limit: Option<Amount>,
}

/// One flavor of a resource group, in the order of preference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlavorQuotaSpec {
    /// Which flavor.
    pub flavor: FlavorId,
    /// One entry per covered resource.
    pub resources: Vec<QuotaSpec>,
}

/// Resources that are assigned a flavor together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceGroupSpec {
    /// The covered resources.
    pub resources: Vec<ResourceId>,
    /// The flavors to try, in order.
    pub flavors: Vec<FlavorQuotaSpec>,
}

/// `queueingStrategy`: how heads are taken from a ClusterQueue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueingStrategy {
    /// The oldest Workload blocks younger ones.
    StrictFifo,
    /// A Workload that cannot be admitted becomes inadmissible and does not block younger ones.
    #[default]
    BestEffortFifo,
}

/// Which Workloads a preemption policy allows as targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PreemptionPolicy {
    /// None.
    #[default]
    Never,
    /// Those of strictly lower priority.
    LowerPriority,
    /// Those of lower priority, or of the same priority and younger.
    LowerOrNewerEqualPriority,
    /// All.
    Any,
}

/// `borrowWithinCohort`: whether a borrowing preemptor may reclaim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BorrowWithinCohortSpec {
    /// Workloads above this priority are no targets; `None` is unlimited.
    pub max_priority: Option<i64>,
}

/// `preemption` of a ClusterQueue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PreemptionSpec {
    /// `withinClusterQueue`.
    pub within_cluster_queue: PreemptionPolicy,
    /// `reclaimWithinCohort`: in other ClusterQueues of the cohort tree that use more than their quota.
    pub reclaim: PreemptionPolicy,
    /// `None` is the policy `Never`.
    pub borrow: Option<BorrowWithinCohortSpec>,
}

/// Whether a flavor scan stops at a flavor that needs borrowing or preemption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlavorFungibilityPolicy {
    /// The scan stops.
    #[default]
    MayStopSearch,
    /// The scan goes on to the next flavor.
    TryNextFlavor,
}

/// Which of two imperfect flavors is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlavorFungibilityPreference {
    /// Borrowing is better than preempting.
    #[default]
    BorrowingOverPreemption,
    /// Preempting is better than borrowing.
    PreemptionOverBorrowing,
}

/// How flavors are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FungibilitySpec {
    /// At a flavor that needs borrowing.
    pub when_can_borrow: FlavorFungibilityPolicy,
    /// At a flavor that needs preemption.
    pub when_can_preempt: FlavorFungibilityPolicy,
    /// Between scanned flavors.
    pub preference: FlavorFungibilityPreference,
}

/// A ClusterQueue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterQueueInfo {
    /// `metadata.generation`: a new one requeues the inadmissible Workloads, whatever changed.
    pub generation: i64,
    /// Its cohort (an id of [`crate::Names::cohorts`]).
    pub cohort: Option<CohortId>,
    /// Quotas.
    pub groups: Vec<ResourceGroupSpec>,
    /// Queueing strategy.
    pub strategy: QueueingStrategy,
    /// Preemption policies.
    pub preemption: PreemptionSpec,
    /// Flavor choice.
    pub flavor_fungibility: FungibilitySpec,
    /// Fair-sharing weight.
    pub weight: FairSharingWeight,
    /// `stopPolicy` is Hold or HoldAndDrain: no heads are taken.
    pub stopped: bool,
    /// False while a condition outside of the engine keeps the ClusterQueue inactive.
    pub ready: bool,
    /// `namespaceSelector`.
    pub namespaces: NamespaceSelector,
    /// Admission checks of its Workloads.
    pub checks: Vec<AdmissionCheckRule>,
    /// Variants do not migrate to flavors behind this one; `None` is unlimited.
    pub last_acceptable_flavor: Option<FlavorId>,
    /// `admissionScope.admissionMode` is UsageBasedAdmissionFairSharing.
    pub admission_fair_sharing: bool,
}

/// One AdmissionCheck of a ClusterQueue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionCheckRule {
    /// Which check.
    pub check: CheckId,
    /// Flavors that need it; empty for all.
    pub flavors: Vec<FlavorId>,
}

/// An AdmissionCheck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckSpec {
    /// Its controller is active. A ClusterQueue with an inactive check is inactive.
    pub active: bool,
    /// When topology assignments are made.
    pub topology: TopologyTiming,
    /// Generation of its spec. The placer may follow its parameters, so Workloads that wait for cluster capacity are
    /// evaluated again when it changes.
    pub generation: i64,
}

/// When the topology assignment of a pod set is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TopologyTiming {
    /// Together with the quota reservation.
    #[default]
    WithQuota,
    /// In a second pass when all checks are ready: the check provides the nodes (ProvisioningRequest).
    AfterChecks,
    /// In the worker cluster, never here (MultiKueue).
    OnWorker,
}

/// State of an admission check of a Workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CheckState {
    /// Not decided yet.
    #[default]
    Pending,
    /// Passed.
    Ready,
    /// The Workload releases its quota and starts over.
    Retry,
    /// The Workload is deactivated.
    Rejected,
}

/// A cohort.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CohortInfo {
    /// Its parent (an id of [`crate::Names::cohorts`]).
    pub parent: Option<CohortId>,
    /// Quotas of its own.
    pub groups: Vec<ResourceGroupSpec>,
    /// Fair-sharing weight.
    pub weight: FairSharingWeight,
}

/// A fair-sharing weight in units of 10^-9, so that shares compare without rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FairSharingWeight(pub u64);

impl Default for FairSharingWeight {
    fn default() -> Self {
        Self(1_000_000_000)
    }
}

/// A ResourceFlavor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlavorSpec {
    /// Node labels, sorted by key.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Taints of its nodes.
    pub taints: Vec<NodeTaint>,
    /// Tolerations given to pods that get the flavor.
    pub tolerations: Vec<PodToleration>,
    /// Topology of its nodes.
    pub topology: Option<TopologyId>,
}

/// A LocalQueue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalQueueInfo {
    /// The ClusterQueue it points to.
    pub queue: QueueId,
    /// `stopPolicy` is set: its Workloads are not queued.
    pub stopped: bool,
    /// Fair-sharing weight, for admission fair sharing.
    pub weight: FairSharingWeight,
}

/// `namespaceSelector` of a ClusterQueue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NamespaceSelector {
    /// An absent selector: no namespace matches.
    #[default]
    Nothing,
    /// All of these requirements; an empty list matches every namespace.
    All(Vec<crate::node_selection::LabelRequirement>),
}

/// One pod set of a Workload.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PodSetSpec {
    /// Its name.
    pub name: Box<str>,
    /// Pods that still need resources: without reclaimable ones.
    pub count: i64,
    /// Reclaimable pods, which have finished. Partial admission starts from all pods, these included.
    pub reclaimed: i64,
    /// The lowest count for partial admission; `None` if the pod set cannot be reduced.
    pub min_count: Option<i64>,
    /// Effective requests of one pod, in any order, without the implicit resource `pods`.
    pub requests: Vec<(ResourceId, Amount)>,
    /// Requests of one pod on its node, if they differ from the requests that count as quota (excluded or transformed
    /// resources). Without the implicit resource `pods`.
    pub on_node: Option<Box<[(ResourceId, Amount)]>>,
    /// Node selector, required affinity and tolerations.
    pub selection: NodeSelection,
    /// Preferred node affinity, under the gate TASRespectNodeAffinityPreferred.
    pub preferred: Box<[PreferredTerm]>,
    /// The topology request.
    pub topology: Option<TopologyRequest>,
    /// A hash of the pod template: Workloads share an equivalence class only if it is equal too.
    pub template: u64,
}

impl PodSetSpec {
    /// The lowest count that is tried.
    pub(crate) fn least(&self) -> i64 {
        self.min_count.map_or(self.count, |least| least.min(self.count))
    }

    /// Requests of one pod on its node.
    pub(crate) fn takes(&self) -> &[(ResourceId, Amount)] {
        self.on_node.as_deref().unwrap_or(&self.requests)
    }

    /// Whether it requests a topology explicitly. A ClusterQueue may also imply a request.
    pub(crate) fn asks_for_topology(&self) -> bool {
        let asks = |request: &TopologyRequest| request.mode.is_some() || !request.slices.is_empty();
        self.topology.as_ref().is_some_and(asks)
    }

    /// The pod set group that it belongs to.
    pub(crate) fn group(&self) -> Option<&str> {
        self.topology.as_ref()?.group.as_deref()
    }
}

/// A resource of an admitted pod set: its flavor, and the total amount for all pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AssignedResource {
    /// Which resource.
    pub resource: ResourceId,
    /// Its flavor.
    pub flavor: FlavorId,
    /// The amount for all pods.
    pub amount: Amount,
}

/// The assignment of one admitted pod set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodSetAdmission {
    /// Pods.
    pub count: i64,
    /// Pods that have finished and use nothing any more.
    pub reclaimed: i64,
    /// Flavors and amounts.
    pub resources: Vec<AssignedResource>,
    /// Topology assignment: pods per domain.
    pub domains: Vec<DomainAssignment>,
    /// The topology assignment is delayed, by [`TopologyTiming::AfterChecks`] or [`TopologyTiming::OnWorker`].
    pub delayed_topology: bool,
}

impl PodSetAdmission {
    /// The flavor of each resource.
    pub(crate) fn flavors(&self) -> impl Iterator<Item = FlavorId> {
        self.resources.iter().map(|assigned| assigned.flavor)
    }

    /// What the pods that have not finished use of `total`, the amount for all pods.
    pub(crate) fn left_of(&self, total: Amount) -> Amount {
        let left = self.count - self.reclaimed;
        if left == self.count || self.count == 0 {
            total
        } else {
            Amount(total.0 / self.count).times(left)
        }
    }

    /// The domains that it uses: none once all its pods are reclaimable. A part of the pods gives up no domain, because it is
    /// unknown which pods have finished.
    pub(crate) fn used_domains(&self) -> &[DomainAssignment] {
        let is_finished = self.count > 0 && self.reclaimed >= self.count;
        if is_finished { &[] } else { &self.domains }
    }

    /// Sorts resources, so that equal admissions compare equal.
    pub(crate) fn sort(&mut self) {
        self.resources.sort_unstable_by_key(|assigned| assigned.resource);
    }
}

/// Whether a Workload without quota may be queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueEligibility {
    /// It may be queued.
    #[default]
    Eligible,
    /// It is inadmissible, and no change of capacity requeues it: a requeue backoff runs, condition Requeued is False,
    /// or an admission check is to start over. The engine keeps no time of it; a later event makes it eligible.
    AwaitsRequeue,
    /// It is not queued: inactive, finished, or gated.
    Excluded,
}

/// A Workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadInfo {
    /// Its namespace.
    pub namespace: NamespaceId,
    /// The LocalQueue it names.
    pub local_queue: Option<LocalQueueId>,
    /// `metadata.uid`: the last tie-break.
    pub uid: Box<str>,
    /// Effective priority.
    pub priority: i64,
    /// The priority comes from a WorkloadPriorityClass. Upstream reacts to no other change of priority after
    /// reservation.
    pub has_priority_class: bool,
    /// Queue-order timestamp: the creation, or the last eviction.
    pub queued_at: Time,
    /// Pod sets.
    pub pod_sets: Vec<PodSetSpec>,
    /// Whether it may be queued.
    pub eligibility: QueueEligibility,
    /// Why it is inadmissible whatever the capacity (e.g. requests above limits): the message of the condition.
    pub invalid: Option<Box<str>>,
    /// A preemption gate is closed: it may reserve free quota, but not preempt.
    pub preemption_gated: bool,
    /// The only flavors it may get, its own first; `None` for all (gate ConcurrentAdmission).
    pub allowed_flavors: Option<Vec<FlavorId>>,
    /// The uid of the Workload that it is a variant of; at most one variant is admitted.
    pub variant_of: Option<Box<str>>,
    /// The older slice of its job that it replaces, named as in [`crate::Names::workloads`].
    pub replaced_slice: Option<Box<str>>,
    /// It belongs to an elastic job, also as the first slice.
    pub elastic: bool,
    /// States of admission checks; those not listed are pending.
    pub checks: Vec<(CheckId, CheckState)>,
    /// Quota it already holds.
    pub admission: Option<AdmissionSpec>,
}

/// Quota that a Workload holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionSpec {
    /// Where.
    pub queue: QueueId,
    /// Since when.
    pub reserved_at: Time,
    /// It is being evicted and will release its quota.
    pub evicted: bool,
    /// What, pod set by pod set.
    pub pod_sets: Vec<PodSetAdmission>,
}

/// Labels of an object, sorted by key.
pub(crate) type Labels = Vec<(Box<str>, Box<str>)>;
