//! All tables of the engine, and queries that need several of them.
//!
//! The tables own their data and import nothing from here; code that decides imports this file and no table imports
//! code.

use std::sync::Arc;

use crate::admission_fair_sharing::ledger::ConsumptionLedger;
use crate::amount::Amount;
use crate::equivalence_class::{EquivalenceClass, EquivalenceClasses};
use crate::ids::{FlavorId, NodeId, PODS, QueueId, ResourceId, WorkloadId};
use crate::names::Names;
use crate::node_failures::NodeFailures;
use crate::preemption::scratch::PreemptionScratch;
use crate::queues::cluster_queue::ClusterQueueRecord;
use crate::queues::head_list::HeadList;
use crate::queues::requeue_requests::RequeueRequests;
use crate::queues::table::ClusterQueueTable;
use crate::quota::changes::ConfigurationChanges;
use crate::quota::tree::QuotaTree;
use crate::settings::EngineSettings;
use crate::spec::{CheckSpec, FlavorSpec, Labels, LocalQueueSpec, PodSetSpec};
use crate::topology::assignment_search::SearchBuffers;
use crate::topology::topologies::Topologies;
use crate::workloads::second_passes::SecondPasses;
use crate::workloads::slice_replacements::SliceReplacements;
use crate::workloads::table::WorkloadTable;
use crate::workloads::variant_groups::VariantGroups;

/// The composition of all tables.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) names: Names,
    pub(crate) settings: EngineSettings,
    pub(crate) tree: QuotaTree,
    pub(crate) changes: ConfigurationChanges,
    /// Tree node of each cohort name.
    pub(crate) cohorts: Vec<Option<NodeId>>,
    pub(crate) queues: ClusterQueueTable,
    pub(crate) local_queues: Vec<Option<LocalQueueSpec>>,
    pub(crate) namespaces: Vec<Option<Labels>>,
    pub(crate) flavors: Vec<Option<FlavorSpec>>,
    pub(crate) checks: Vec<Option<CheckSpec>>,
    pub(crate) topologies: Topologies,
    pub(crate) topology_search: SearchBuffers,
    pub(crate) node_failures: NodeFailures,
    pub(crate) workloads: WorkloadTable,
    pub(crate) classes: EquivalenceClasses,
    /// Claims of slices to replace older ones.
    pub(crate) slices: SliceReplacements,
    /// Which Workloads are variants of one another.
    pub(crate) variant_groups: VariantGroups,
    pub(crate) second_passes: SecondPasses,
    /// Consumption of LocalQueues for admission fair sharing.
    pub(crate) ledger: ConsumptionLedger,
    pub(crate) heads: HeadList,
    pub(crate) requeue_requests: RequeueRequests,
    pub(crate) scratch: PreemptionScratch,
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
            tree: QuotaTree::default(),
            changes: ConfigurationChanges::default(),
            cohorts: Vec::new(),
            queues: ClusterQueueTable::default(),
            local_queues: Vec::new(),
            namespaces: Vec::new(),
            flavors: Vec::new(),
            checks: Vec::new(),
            topologies: Topologies::default(),
            topology_search: SearchBuffers::default(),
            node_failures: NodeFailures::default(),
            workloads: WorkloadTable::default(),
            classes: EquivalenceClasses::default(),
            slices: SliceReplacements::default(),
            variant_groups: VariantGroups::default(),
            second_passes: SecondPasses::default(),
            ledger: ConsumptionLedger::default(),
            heads: HeadList::default(),
            requeue_requests: RequeueRequests::default(),
            scratch: PreemptionScratch::default(),
            cycle: 0,
            pods,
        }
    }

    pub(crate) fn queue(&self, id: QueueId) -> &ClusterQueueRecord {
        self.queues.at(id)
    }

    pub(crate) fn queue_mut(&mut self, id: QueueId) -> &mut ClusterQueueRecord {
        self.queues.at_mut(id)
    }

    pub(crate) fn flavor(&self, id: FlavorId) -> Option<&FlavorSpec> {
        self.flavors.get(id.index()).and_then(Option::as_ref)
    }

    pub(crate) fn class_of(&self, workload: WorkloadId) -> Arc<EquivalenceClass> {
        Arc::clone(self.classes.at(self.workloads.at(workload).class))
    }

    /// Whether a closed preemption gate prevents a Workload from preempting.
    pub(crate) fn is_preemption_gated(&self, workload: WorkloadId) -> bool {
        self.settings.respects_preemption_gates() && self.workloads.at(workload).preemption_gated
    }

    /// Requests a requeue of the inadmissible Workloads of a ClusterQueue's cohort tree.
    pub(crate) fn requeue_cohort_tree(&mut self, queue: QueueId) {
        self.requeue_requests.add(self.queues.at(queue).node);
    }

    /// Requests of `count` pods of a pod set, with the implicit `pods` if the ClusterQueue covers it.
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

    /// The name of a node's ClusterQueue or cohort.
    pub(crate) fn node_name(&self, node: NodeId) -> &str {
        if let Some(queue) = self.tree.node(node).queue {
            return self.names.queues.name(queue);
        }
        let cohort = self.cohorts.iter().position(|&known| known == Some(node));
        cohort.map_or("", |index| self.names.cohorts.name(index.into()))
    }

    /// Lists a ClusterQueue for the next cycle if it has a head.
    pub(crate) fn list_if_head(&mut self, id: QueueId) {
        let queue = self.queues.at_mut(id);
        if !queue.listed && queue.pending.has_head() {
            queue.listed = true;
            self.heads.add(id);
        }
    }
}
