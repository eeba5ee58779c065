//! All tables of the engine in one place, and the small questions everybody asks of them.

use std::sync::Arc;

use crate::admission_fair_sharing::ConsumptionLedger;
use crate::amount::Amount;
use crate::backoff::Backoffs;
use crate::equivalence_class::{EquivalenceClass, EquivalenceClasses};
use crate::ids::{FlavorId, NodeId, QueueId, ResourceId, Slot, WorkloadId};
use crate::names::Names;
use crate::node_failures::NodeFailures;
use crate::preemption::Scratch;
use crate::queues::pending_queue::PendingQueue;
use crate::queues::priority_counts::PriorityCounts;
use crate::queues::table::ClusterQueueTable;
use crate::quota::tree::Tree;
use crate::second_pass::SecondPasses;
use crate::settings::EngineSettings;
use crate::slices::Slices;
use crate::spec::{
    CheckSpec, ClusterQueueSpec, FlavorSpec, FungibilitySpec, LocalQueueSpec, NamespaceSelector,
    PodSetSpec, PreemptionSpec, QueueingStrategy,
};
use crate::topology::Topologies;
use crate::variants::VariantGroups;
use crate::workload::{Workload, Workloads};

/// Labels of an object, sorted by key.
pub(crate) type Labels = Vec<(Box<str>, Box<str>)>;

/// Resources that get their flavor together, with the slots of every (flavor, resource).
#[derive(Debug, Default, Clone)]
pub(crate) struct GroupSlots {
    pub(crate) resources: Vec<ResourceId>,
    pub(crate) flavors: Vec<FlavorId>,
    /// Flavor-major: `slots[flavor * resources.len() + resource]`.
    pub(crate) slots: Vec<Slot>,
}

impl GroupSlots {
    /// The slot of the `flavor`-th flavor for a covered resource.
    pub(crate) fn slot(&self, flavor: usize, resource: ResourceId) -> Option<Slot> {
        let column = self.resources.iter().position(|&known| known == resource)?;
        self.slots.get(flavor * self.resources.len() + column).copied()
    }
}

/// A ClusterQueue.
#[derive(Debug, Clone)]
pub(crate) struct ClusterQueueRecord {
    pub(crate) node: NodeId,
    /// As it was told last; `None` while only Workloads or LocalQueues refer to it.
    pub(crate) spec: Option<Box<ClusterQueueSpec>>,
    /// Hands out heads.
    pub(crate) active: bool,
    /// It was in a cohort cycle when it was last looked at. Upstream notices the end of a cycle only when the queue
    /// itself, or a flavor, changes.
    pub(crate) in_cycle: bool,
    pub(crate) stopped: bool,
    pub(crate) ready: bool,
    /// Is in [`State::with_heads`].
    pub(crate) listed: bool,
    pub(crate) strategy: QueueingStrategy,
    pub(crate) preemption: PreemptionSpec,
    pub(crate) flavor_fungibility: FungibilitySpec,
    pub(crate) namespaces: NamespaceSelector,
    pub(crate) groups: Arc<Vec<GroupSlots>>,
    pub(crate) covers_pods: bool,
    /// All flavors have a topology, so that every pod set implies a wish for one.
    pub(crate) topology_only: bool,
    /// Grows with every change of its quotas and of what its Workloads hold. Progress of flavor scans is dated by it.
    pub(crate) generation: u64,
    pub(crate) pending: PendingQueue,
    /// Workloads that hold quota here, in no particular order.
    pub(crate) reserving: Vec<WorkloadId>,
    /// Their priorities.
    pub(crate) priorities: PriorityCounts,
}

/// The implicit resource of which every pod takes one. It is interned first.
pub(crate) const PODS: ResourceId = ResourceId(0);

/// See the module.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) names: Names,
    pub(crate) settings: EngineSettings,
    pub(crate) tree: Tree,
    /// Quotas or parents changed since the last rebuild.
    pub(crate) tree_changed: bool,
    /// Flavors or topologies changed since then.
    pub(crate) flavors_changed: bool,
    /// Nodes whose configuration changed since then.
    pub(crate) changed: Vec<NodeId>,
    /// Nodes whose quotas or parents changed since then, and those that they were under before.
    pub(crate) requoted: Vec<NodeId>,
    /// Nodes from which a child was taken since then.
    pub(crate) left: Vec<NodeId>,
    /// How many nodes have a rank.
    pub(crate) ranked: usize,
    /// Tree node of each cohort name.
    pub(crate) cohorts: Vec<Option<NodeId>>,
    pub(crate) queues: ClusterQueueTable,
    pub(crate) local_queues: Vec<Option<LocalQueueSpec>>,
    pub(crate) namespaces: Vec<Option<Labels>>,
    pub(crate) flavors: Vec<Option<FlavorSpec>>,
    pub(crate) checks: Vec<Option<CheckSpec>>,
    pub(crate) topologies: Topologies,
    pub(crate) failures: NodeFailures,
    pub(crate) workloads: Workloads,
    pub(crate) classes: EquivalenceClasses,
    /// Who replaces whom.
    pub(crate) slices: Slices,
    /// Which variants belong together.
    pub(crate) families: VariantGroups,
    pub(crate) backoffs: Backoffs,
    pub(crate) second_passes: SecondPasses,
    /// What LocalQueues consumed.
    pub(crate) ledger: ConsumptionLedger,
    /// Queues that may have a head.
    pub(crate) with_heads: Vec<QueueId>,
    /// Nodes whose trees must be woken before the next cycle.
    pub(crate) to_wake: Vec<NodeId>,
    pub(crate) scratch: Scratch,
    pub(crate) cycle: u64,
    pub(crate) pods: ResourceId,
}

impl State {
    pub(crate) fn new(settings: EngineSettings) -> Self {
        let mut names = Names::default();
        let pods = names.resources.intern("pods");
        debug_assert_eq!(pods, PODS);
        Self {
            names,
            settings,
            tree: Tree::default(),
            tree_changed: false,
            flavors_changed: false,
            changed: Vec::new(),
            requoted: Vec::new(),
            left: Vec::new(),
            ranked: 0,
            cohorts: Vec::new(),
            queues: ClusterQueueTable::default(),
            local_queues: Vec::new(),
            namespaces: Vec::new(),
            flavors: Vec::new(),
            checks: Vec::new(),
            topologies: Topologies::default(),
            failures: NodeFailures::default(),
            workloads: Workloads::default(),
            classes: EquivalenceClasses::default(),
            slices: Slices::default(),
            families: VariantGroups::default(),
            backoffs: Backoffs::default(),
            second_passes: SecondPasses::default(),
            ledger: ConsumptionLedger::default(),
            with_heads: Vec::new(),
            to_wake: Vec::new(),
            scratch: Scratch::default(),
            cycle: 0,
            pods,
        }
    }

    pub(crate) fn queue(&self, id: QueueId) -> &ClusterQueueRecord {
        self.queues[id.index()].as_ref().expect("invariant: ids of queues in use are in the table")
    }

    pub(crate) fn queue_mut(&mut self, id: QueueId) -> &mut ClusterQueueRecord {
        self.queues[id.index()].as_mut().expect("invariant: ids of queues in use are in the table")
    }

    pub(crate) fn flavor(&self, id: FlavorId) -> Option<&FlavorSpec> {
        self.flavors.get(id.index()).and_then(Option::as_ref)
    }

    pub(crate) fn class_of(&self, workload: WorkloadId) -> Arc<EquivalenceClass> {
        Arc::clone(self.classes.at(self.workloads.at(workload).class))
    }

    /// Whether a Workload must not preempt: one of its preemption gates is closed, and gates count.
    pub(crate) fn is_preemption_gated(&self, workload: WorkloadId) -> bool {
        self.settings.respects_preemption_gates() && self.workloads.at(workload).preemption_gated
    }

    /// Asks for a wake-up of a queue's tree before the next cycle.
    pub(crate) fn wake(&mut self, queue: QueueId) {
        self.wake_tree(self.queue(queue).node);
    }

    /// Asks for a wake-up of the tree that `node` is in when the next cycle begins.
    pub(crate) fn wake_tree(&mut self, node: NodeId) {
        if self.to_wake.last() != Some(&node) {
            self.to_wake.push(node);
        }
    }

    /// What `count` pods of a pod set ask of a queue, including the implicit `pods` if the queue covers it.
    pub(crate) fn requests<'a>(
        &'a self,
        queue: QueueId,
        pod_set: &'a PodSetSpec,
        count: i64,
    ) -> impl Iterator<Item = (ResourceId, Amount)> + 'a {
        let pods = self.queue(queue).covers_pods.then_some((self.pods, Amount(count)));
        let declared = pod_set.requests.iter();
        declared.map(move |&(resource, one)| (resource, one.times(count))).chain(pods)
    }

    /// The name of a queue's or cohort's node.
    pub(crate) fn node_name(&self, node: NodeId) -> &str {
        if let Some(queue) = self.tree.node(node).queue {
            return self.names.queues.name(queue);
        }
        let cohort = self.cohorts.iter().position(|&known| known == Some(node));
        cohort.map_or("", |index| self.names.cohorts.name(index.into()))
    }

    /// The cheapest way to learn whether any Workload could be evaluated.
    pub(crate) fn list_if_head(&mut self, id: QueueId) {
        let queue = self.queue_mut(id);
        if !queue.listed && queue.pending.has_head() {
            queue.listed = true;
            self.with_heads.push(id);
        }
    }
}

/// Whether a queue with `selector` takes Workloads from the namespace of `workload`.
pub(crate) fn namespace_matches(
    selector: &NamespaceSelector,
    namespaces: &[Option<Labels>],
    workload: &Workload,
) -> bool {
    let labels = namespaces.get(workload.namespace.index()).and_then(Option::as_ref);
    match (selector, labels) {
        (NamespaceSelector::Nothing, _) | (_, None) => false,
        (NamespaceSelector::All(all), Some(labels)) => all.iter().all(|one| one.matches(labels)),
    }
}
