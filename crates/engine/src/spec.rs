//! What the engine is told about objects: names already interned, quantities already numbers, defaults already filled.
//!
//! These are plain values. Turning API objects into them is the caller's work.

use crate::amount::Amount;
use crate::ids::{
    CheckId, CohortId, FlavorId, LocalQueueId, NamespaceId, QueueId, ResourceId, TopologyId,
};
use crate::node_selection::{NodeSelection, Taint, Toleration};
use crate::time::Time;
use crate::topology::{DomainAssignment, PreferredTerm, TopologyRequest};

/// Quota of one resource in one flavor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceQuota {
    /// Which resource.
    pub resource: ResourceId,
    /// What the owner may always use.
    pub nominal: Amount,
    /// How much more it may take from its cohort; `None` is no bound.
    pub borrowing_limit: Option<Amount>,
    /// How much of the nominal quota others may take; `None` is all of it.
    pub lending_limit: Option<Amount>,
}

/// One flavor of a resource group, in the order of preference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlavorQuotas {
    /// Which flavor.
    pub flavor: FlavorId,
    /// One entry per covered resource.
    pub resources: Vec<ResourceQuota>,
}

/// Resources that are assigned a flavor together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceGroup {
    /// The covered resources.
    pub resources: Vec<ResourceId>,
    /// The flavors to try, in order.
    pub flavors: Vec<FlavorQuotas>,
}

/// How heads are taken from a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueingStrategy {
    /// The oldest Workload blocks those behind it.
    StrictFifo,
    /// Workloads that cannot be admitted step aside.
    #[default]
    BestEffortFifo,
}

/// Which Workloads a preemption policy lets a preemptor take.
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

/// Whether a borrowing preemptor may take from other queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BorrowWithinCohort {
    /// Victims above this priority are spared; `None` is no bound.
    pub max_priority: Option<i64>,
}

/// Whom a ClusterQueue may preempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PreemptionSpec {
    /// Within the queue.
    pub within_cluster_queue: PreemptionPolicy,
    /// In other queues of the cohort that use more than their own.
    pub reclaim: PreemptionPolicy,
    /// `None` is the policy `Never`.
    pub borrow: Option<BorrowWithinCohort>,
}

/// Whether the scan of flavors stops at a flavor that would do, or looks for a better one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlavorFungibilityPolicy {
    /// Take it.
    #[default]
    MayStopSearch,
    /// Look further.
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
pub struct ClusterQueueSpec {
    /// The generation of the object: another one wakes those who wait, whatever changed.
    pub generation: i64,
    /// Its cohort (an id of [`crate::Names::cohorts`]).
    pub cohort: Option<CohortId>,
    /// Quotas.
    pub groups: Vec<ResourceGroup>,
    /// Queueing strategy.
    pub strategy: QueueingStrategy,
    /// Preemption policies.
    pub preemption: PreemptionSpec,
    /// Flavor choice.
    pub flavor_fungibility: FungibilitySpec,
    /// Fair-sharing weight.
    pub weight: FairSharingWeight,
    /// A held or drained queue hands out no heads.
    pub stopped: bool,
    /// False while something outside of the engine keeps the queue inactive (a check that is not ready).
    pub ready: bool,
    /// Which namespaces may use it.
    pub namespaces: NamespaceSelector,
    /// What its Workloads must pass beside quota.
    pub checks: Vec<AdmissionCheckRule>,
    /// Variants do not move from one flavor to another that is behind this one; `None` is no bound.
    pub last_acceptable_flavor: Option<FlavorId>,
    /// Admission mode UsageBasedAdmissionFairSharing: LocalQueues that used less come first.
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
    /// Its controller runs. A queue with a check that does not is inactive.
    pub active: bool,
    /// When places in topologies are looked for.
    pub places: TopologyTiming,
}

/// When places in topologies are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TopologyTiming {
    /// Together with the quota.
    #[default]
    WithQuota,
    /// When all checks are ready: this one provides the machines. A second pass finds the places.
    AfterChecks,
    /// Never here: another cluster finds them.
    OnWorker,
}

/// How far a Workload is with a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CheckState {
    /// It is not decided yet.
    #[default]
    Pending,
    /// It is passed.
    Ready,
    /// It has to start over: the Workload gives its quota back first.
    Retry,
    /// It will never be passed.
    Rejected,
}

/// A cohort.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CohortSpec {
    /// Its parent (an id of [`crate::Names::cohorts`]).
    pub parent: Option<CohortId>,
    /// Quotas of its own.
    pub groups: Vec<ResourceGroup>,
    /// Fair-sharing weight.
    pub weight: FairSharingWeight,
}

/// A fair-sharing weight in units of 10^-9. Exact, so that shares can be compared without rounding.
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
    pub taints: Vec<Taint>,
    /// Tolerations given to pods that get the flavor.
    pub tolerations: Vec<Toleration>,
    /// Topology of its nodes.
    pub topology: Option<TopologyId>,
}

/// A LocalQueue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalQueueSpec {
    /// Where it points.
    pub queue: QueueId,
    /// A stopped LocalQueue hands nothing to its ClusterQueue.
    pub stopped: bool,
    /// Its weight where LocalQueues share by usage.
    pub weight: FairSharingWeight,
}

/// Which namespaces a ClusterQueue takes Workloads from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NamespaceSelector {
    /// An absent selector.
    #[default]
    Nothing,
    /// All of these requirements; none of them matches everything.
    All(Vec<crate::node_selection::LabelRequirement>),
}

/// One pod set as the engine schedules it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PodSetSpec {
    /// Its name.
    pub name: Box<str>,
    /// Pods that still need resources (reclaimable pods are not counted).
    pub count: i64,
    /// Reclaimable pods: they have finished. Partial admission starts from all pods, these included.
    pub reclaimed: i64,
    /// The smallest count it can live with.
    pub min_count: Option<i64>,
    /// Effective requests of one pod, in any order. Without the implicit resource `pods`.
    pub requests: Vec<(ResourceId, Amount)>,
    /// What one pod takes of a machine, where that is something else: what counts as quota may be left out, or counted as
    /// another resource. Without the implicit resource `pods`.
    pub on_node: Option<Box<[(ResourceId, Amount)]>>,
    /// Where its pods may run.
    pub selection: NodeSelection,
    /// Where they would rather stand. Counts under the gate TASRespectNodeAffinityPreferred.
    pub preferred: Box<[PreferredTerm]>,
    /// Topology wishes.
    pub topology: Option<TopologyRequest>,
    /// Tells apart pod templates that look the same here. Workloads are parked together only if these agree too.
    pub template: u64,
}

impl PodSetSpec {
    /// The smallest count that it may be tried with.
    pub(crate) fn least(&self) -> i64 {
        self.min_count.map_or(self.count, |least| least.min(self.count))
    }

    /// What one pod takes of a machine: the whole of its spec, whatever of that counts as quota.
    pub(crate) fn takes(&self) -> &[(ResourceId, Amount)] {
        self.on_node.as_deref().unwrap_or(&self.requests)
    }

    /// Whether it asks for a topology itself. A pod set may also imply that, by its queue.
    pub(crate) fn asks_for_topology(&self) -> bool {
        let asks = |wish: &TopologyRequest| wish.mode.is_some() || !wish.slices.is_empty();
        self.topology.as_ref().is_some_and(asks)
    }
}

/// What one pod set was given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodSetAdmission {
    /// Pods.
    pub count: i64,
    /// Pods that have finished and hold nothing any more.
    pub reclaimed: i64,
    /// Flavor and total amount per resource.
    pub resources: Vec<(ResourceId, FlavorId, Amount)>,
    /// Where its pods stand.
    pub domains: Vec<DomainAssignment>,
    /// Its pods have no places yet, by [`TopologyTiming::AfterChecks`] or [`TopologyTiming::OnWorker`].
    pub delayed_topology: bool,
}

impl PodSetAdmission {
    /// What pods that have not finished hold of `total`, which all of them got.
    pub(crate) fn left_of(&self, total: Amount) -> Amount {
        let left = self.count - self.reclaimed;
        if left == self.count || self.count == 0 {
            total
        } else {
            Amount(total.0 / self.count).times(left)
        }
    }

    /// Resources in one order, whoever told them, so that the same admission is known as the same.
    pub(crate) fn sort(&mut self) {
        self.resources.sort_unstable_by_key(|(resource, ..)| *resource);
    }
}

/// Why a Workload is not in its queue although it has no quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueEligibility {
    /// It is not held.
    #[default]
    Eligible,
    /// It waits for its queue to be restarted: known, counted as inadmissible, never woken by capacity.
    AwaitsRequeue,
    /// It waits for the end of a backoff, inadmissible until then. The first cycle at or after this time lets it in.
    BackoffUntil(Time),
    /// It must not be queued at all (inactive, finished, gated).
    Excluded,
}

/// A Workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadSpec {
    /// Its namespace.
    pub namespace: NamespaceId,
    /// The LocalQueue it names.
    pub local_queue: Option<LocalQueueId>,
    /// `metadata.uid`: the last tie-break.
    pub uid: Box<str>,
    /// Effective priority.
    pub priority: i64,
    /// It is that of a WorkloadPriorityClass. Upstream does not expect any other to change while quota is held.
    pub has_priority_class: bool,
    /// Queue-order timestamp: creation, or the eviction that counts.
    pub queued_at: Time,
    /// What it asks for.
    pub pod_sets: Vec<PodSetSpec>,
    /// Why it must not be queued.
    pub eligibility: QueueEligibility,
    /// What makes it inadmissible whatever the capacity (requests above limits), in the words of the validator: the
    /// message of the condition.
    pub invalid: Option<Box<str>>,
    /// One of its preemption gates is closed: it may take what is free, and preempt nobody.
    pub preemption_gated: bool,
    /// The only flavors that it may get, its own first; `None` for all.
    pub allowed_flavors: Option<Vec<FlavorId>>,
    /// It is a variant of the Workload with this uid: one of several of which one is to run.
    pub variant_of: Option<Box<str>>,
    /// The Workload whose place it takes, as it is named in [`crate::Names::workloads`]: an older slice of its job.
    pub replaced_slice: Option<Box<str>>,
    /// How far it is with its checks; those that are not listed are not decided yet.
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
