//! The queue layer: ClusterQueues with their pending and reserving Workloads, LocalQueues, namespaces, AdmissionChecks,
//! the list of heads, requested requeues, and the consumption of LocalQueues.
//!
//! It knows the workload layer, in which it sets positions, and the nodes of the quota tree. Records are read through
//! [`QueueLayer::at`] and changed only by methods of the layer. Source: docs/reference/kueue.md §3.
//!
//! Invariant: a ClusterQueue is listed if its pending queue has a head ([`QueueLayer::change_pending`]).

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::admission_fair_sharing::ledger::ConsumptionLedger;
use crate::amount::Amount;
use crate::dense_table::DenseTable;
use crate::ids::{
    CheckId, LocalQueueId, NamespaceId, NodeId, PODS, QueueId, ResourceId, WorkloadId,
};
use crate::queues::cluster_queue::{ClusterQueueRecord, GroupSlots};
use crate::queues::head_list::HeadList;
use crate::queues::pending_queue::PendingQueue;
use crate::queues::requeue_requests::RequeueRequests;
use crate::queues::table::ClusterQueueTable;
use crate::quota::tree::QuotaTree;
use crate::spec::{
    CheckSpec, ClusterQueueInfo, Labels, LocalQueueInfo, NamespaceSelector, PodSetSpec,
    QueueEligibility,
};
use crate::workloads::layer::WorkloadLayer;
use crate::workloads::record::WorkloadRecord;

/// ClusterQueues, LocalQueues and what they depend on.
#[derive(Debug, Default)]
pub(crate) struct QueueLayer {
    cluster_queues: ClusterQueueTable,
    local_queues: DenseTable<LocalQueueId, Option<LocalQueueInfo>>,
    namespaces: DenseTable<NamespaceId, Option<Labels>>,
    checks: DenseTable<CheckId, Option<CheckSpec>>,
    heads: HeadList,
    requeue_requests: RequeueRequests,
    /// Consumption of LocalQueues for admission fair sharing.
    ledger: ConsumptionLedger,
    /// Number of cycles that were counted. Kueue: `popCycle`.
    cycle: u64,
    /// A refusal was predicted in some ClusterQueue.
    predicted: bool,
    before: Option<QueueCheckpoint>,
}

/// The small tables before a what-if.
#[derive(Debug)]
struct QueueCheckpoint {
    local_queues: DenseTable<LocalQueueId, Option<LocalQueueInfo>>,
    namespaces: DenseTable<NamespaceId, Option<Labels>>,
    checks: DenseTable<CheckId, Option<CheckSpec>>,
    heads: HeadList,
    requeue_requests: RequeueRequests,
    ledger: ConsumptionLedger,
    cycle: u64,
    predicted: bool,
}

impl QueueLayer {
    /// A ClusterQueue that any object referred to.
    #[inline]
    pub(crate) fn at(&self, id: QueueId) -> &ClusterQueueRecord {
        self.cluster_queues.at(id)
    }

    /// A ClusterQueue, if any object referred to it.
    pub(crate) fn find(&self, id: QueueId) -> Option<&ClusterQueueRecord> {
        self.cluster_queues.find(id)
    }

    /// The ids of all ClusterQueues, among them some without a record.
    pub(crate) fn ids(&self) -> impl ExactSizeIterator<Item = QueueId> + use<> {
        self.cluster_queues.ids()
    }

    /// A LocalQueue, if it exists.
    pub(crate) fn local_queue(&self, id: LocalQueueId) -> Option<&LocalQueueInfo> {
        self.local_queues.find(id)
    }

    /// The ids of all LocalQueues, among them some that do not exist.
    pub(crate) fn local_queue_ids(&self) -> impl ExactSizeIterator<Item = LocalQueueId> + use<> {
        self.local_queues.ids()
    }

    /// An AdmissionCheck, if it exists.
    pub(crate) fn check(&self, id: CheckId) -> Option<CheckSpec> {
        self.checks.find(id).copied()
    }

    /// Whether the namespace selector of a ClusterQueue matches the namespace of `workload`.
    pub(crate) fn matches_namespace(&self, id: QueueId, workload: &WorkloadRecord) -> bool {
        namespace_matches(&self.at(id).namespaces, &self.namespaces, workload)
    }

    /// Requests of `count` pods of a pod set, with the implicit `pods` if the ClusterQueue covers it.
    pub(crate) fn requests<'a>(
        &self,
        id: QueueId,
        pod_set: &'a PodSetSpec,
        count: i64,
    ) -> impl Iterator<Item = (ResourceId, Amount)> + use<'a> {
        let pods = self.at(id).covers_pods.then_some((PODS, Amount(count)));
        let declared = pod_set.requests.iter();
        declared.map(move |&(resource, one)| (resource, one.times(count))).chain(pods)
    }

    /// Consumption of LocalQueues for admission fair sharing.
    pub(crate) fn ledger(&self) -> &ConsumptionLedger {
        &self.ledger
    }

    /// The consumption of LocalQueues, for a change by `admission_fair_sharing::consumption`, which copies what follows to the
    /// pending queues. The ledger keeps its own rules.
    pub(crate) fn ledger_mut(&mut self) -> &mut ConsumptionLedger {
        &mut self.ledger
    }

    /// Number of cycles that were counted.
    pub(crate) fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Counts a cycle.
    pub(crate) fn count_cycle(&mut self) {
        self.cycle += 1;
    }
}

/// Configuration.
impl QueueLayer {
    /// Replaces or removes a LocalQueue.
    pub(crate) fn set_local_queue(&mut self, id: LocalQueueId, spec: Option<LocalQueueInfo>) {
        *self.local_queues.entry(id) = spec;
    }

    /// Replaces or removes a namespace.
    pub(crate) fn set_namespace(&mut self, id: NamespaceId, labels: Option<Labels>) {
        *self.namespaces.entry(id) = labels;
    }

    /// Replaces or removes an AdmissionCheck.
    pub(crate) fn set_check(&mut self, id: CheckId, check: Option<CheckSpec>) {
        *self.checks.entry(id) = check;
    }

    /// Adds a ClusterQueue without a spec.
    pub(crate) fn add(&mut self, id: QueueId, node: NodeId) {
        self.cluster_queues.insert(id, ClusterQueueRecord::new(node));
    }

    /// Replaces the spec of a ClusterQueue. `groups` are its resource groups with their slots.
    pub(crate) fn set_spec(
        &mut self,
        id: QueueId,
        spec: Box<ClusterQueueInfo>,
        groups: Vec<GroupSlots>,
    ) {
        self.cluster_queues.at_mut(id).set_spec(spec, groups);
    }

    /// Removes the spec of a deleted ClusterQueue. Its Workloads stay.
    pub(crate) fn remove_spec(&mut self, id: QueueId) {
        let queue = self.cluster_queues.at_mut(id);
        queue.spec = None;
        queue.groups = Arc::default();
        // A new ClusterQueue of this name does not inherit the preemptor mark.
        queue.pending.forget_preemptor();
    }

    /// Applies changes of the configuration to every ClusterQueue.
    pub(crate) fn for_each(&mut self, mut change: impl FnMut(&mut QueueActivity<'_>)) {
        for queue in self.cluster_queues.iter_mut() {
            change(&mut QueueActivity(queue));
        }
    }

    /// Sets whether the ClusterQueue hands out heads.
    ///
    /// Workloads of an inactive ClusterQueue do not wait for cluster capacity; once it is active, they are evaluated again.
    pub(crate) fn set_active(&mut self, id: QueueId, active: bool) {
        let queue = self.cluster_queues.at_mut(id);
        if active && !queue.active {
            queue.pending.note_configuration();
            self.requeue_requests.add(queue.node);
        }
        queue.active = active;
    }

    /// Sets whether all flavors of a ClusterQueue have a topology.
    pub(crate) fn set_topology_only(&mut self, id: QueueId, topology_only: bool) {
        self.cluster_queues.at_mut(id).topology_only = topology_only;
    }

    /// Sets whether a ClusterQueue was in a cohort cycle at the last check.
    pub(crate) fn set_in_cycle(&mut self, id: QueueId, in_cycle: bool) {
        self.cluster_queues.at_mut(id).in_cycle = in_cycle;
    }
}

/// A ClusterQueue to which a configuration change is applied.
pub(crate) struct QueueActivity<'a>(&'a mut ClusterQueueRecord);

impl QueueActivity<'_> {
    /// The node of the ClusterQueue.
    pub(crate) fn node(&self) -> NodeId {
        self.0.node
    }

    /// Ends the progress of flavor scans.
    pub(crate) fn end_scans(&mut self) {
        self.0.generation += 1;
    }

    /// Forgets refusals: all equivalence classes are evaluated again.
    pub(crate) fn forget_refused(&mut self) {
        self.0.pending.forget_refused();
    }

    /// Notes a change of the configuration: Workloads that wait for cluster capacity are evaluated again.
    pub(crate) fn note_configuration(&mut self) {
        self.0.pending.note_configuration();
    }
}

/// Pending Workloads.
impl QueueLayer {
    /// Changes a pending queue, and lists the ClusterQueue for the next cycle if it has a head then.
    #[inline]
    pub(crate) fn change_pending<T>(
        &mut self,
        id: QueueId,
        change: impl FnOnce(&mut PendingQueue) -> T,
    ) -> T {
        let queue = self.cluster_queues.at_mut(id);
        let result = change(&mut queue.pending);
        if !queue.listed && queue.pending.has_head() {
            queue.listed = true;
            self.heads.add(id);
        }
        result
    }

    /// Makes the inadmissible Workloads of a ClusterQueue active, except those that wait for something else than quota.
    /// Returns the number of classes and Workloads visited. Kueue: `QueueInadmissibleWorkloads`.
    pub(crate) fn requeue_inadmissible(
        &mut self,
        id: QueueId,
        workloads: &mut WorkloadLayer,
    ) -> usize {
        let Self { cluster_queues, namespaces, heads, .. } = self;
        let queue = cluster_queues.at_mut(id);
        let reconfigured = queue.pending.take_reconfigured();
        let selector = &queue.namespaces;
        let selects_namespaces = !matches!(selector, NamespaceSelector::All(all) if all.is_empty());
        let may_fit = |workload: &WorkloadRecord| {
            // Quota that became free helps neither a Workload in backoff nor one that waits for
            // cluster capacity only. Other flavors or checks may place it on other nodes or clusters.
            let waits = workload.awaited_capacity.is_some() && !workload.awaits_quota;
            workload.eligibility == QueueEligibility::Eligible
                && (!waits || reconfigured)
                && namespace_matches(selector, namespaces, workload)
        };
        let visited = queue.pending.requeue_inadmissible(workloads, selects_namespaces, may_fit);
        if !queue.listed && queue.pending.has_head() {
            queue.listed = true;
            heads.add(id);
        }
        visited
    }

    /// Whether an active ClusterQueue has a head.
    pub(crate) fn has_active_head(&self) -> bool {
        let mut listed = self.heads.iter().map(|id| self.at(id));
        listed.any(|queue| queue.active && queue.pending.has_head())
    }

    /// Number of listed ClusterQueues.
    pub(crate) fn n_listed(&self) -> usize {
        self.heads.len()
    }

    /// The listed ClusterQueue at a position.
    pub(crate) fn listed_at(&self, position: usize) -> QueueId {
        self.heads.at(position)
    }

    /// Moves a listed ClusterQueue to an earlier position. The entry there is overwritten.
    pub(crate) fn move_listed(&mut self, position: usize, id: QueueId) {
        self.heads.move_to(position, id);
    }

    /// Notes that the entry of a ClusterQueue in the list will be overwritten or removed.
    pub(crate) fn unlist(&mut self, id: QueueId) {
        self.cluster_queues.at_mut(id).listed = false;
    }

    /// Removes the entries of the list at these positions.
    pub(crate) fn remove_listed(&mut self, positions: Range<usize>) {
        self.heads.remove(positions);
    }
}

/// Requests to requeue inadmissible Workloads, carried out when the next cycle begins.
impl QueueLayer {
    /// Requests a requeue of the cohort tree that a ClusterQueue is in.
    pub(crate) fn requeue_cohort_tree(&mut self, id: QueueId) {
        self.requeue_requests.add(self.cluster_queues.at(id).node);
    }

    /// Requests a requeue of the cohort tree that a node is in.
    pub(crate) fn requeue_tree_of(&mut self, node: NodeId) {
        self.requeue_requests.add(node);
    }

    /// Requests a requeue of the cohort trees of all ClusterQueues for which `concerns` holds.
    pub(crate) fn requeue_where(&mut self, concerns: impl Fn(&ClusterQueueRecord) -> bool) {
        for id in self.cluster_queues.ids() {
            if let Some(queue) = self.cluster_queues.find(id).filter(|queue| concerns(queue)) {
                self.requeue_requests.add(queue.node);
            }
        }
    }

    /// Notes a change of the configuration in all ClusterQueues for which `concerns` holds: their next requeue includes
    /// Workloads that wait for cluster capacity.
    pub(crate) fn note_configuration_where(
        &mut self,
        concerns: impl Fn(&ClusterQueueRecord) -> bool,
    ) {
        for queue in self.cluster_queues.iter_mut().filter(|queue| concerns(queue)) {
            queue.pending.note_configuration();
        }
    }

    /// Whether a refusal was predicted since [`QueueLayer::refresh_predicted`].
    pub(crate) fn has_predictions(&self) -> bool {
        self.predicted
    }

    /// Notes that a refusal was predicted in a ClusterQueue, which notes it, too.
    pub(crate) fn note_prediction(&mut self) {
        self.predicted = true;
    }

    /// Forgets refusals in the trees with a predicted refusal, and requests their requeue.
    pub(crate) fn refresh_predicted(&mut self, tree: &QuotaTree) {
        if !std::mem::take(&mut self.predicted) {
            return;
        }
        let predicted = |queue: &ClusterQueueRecord| queue.pending.has_predictions();
        let stale: BTreeSet<NodeId> = self
            .cluster_queues
            .ids()
            .filter_map(|id| self.cluster_queues.find(id).filter(|queue| predicted(queue)))
            .map(|queue| tree.root(queue.node))
            .collect();
        // All of a tree at once: a requeue of the tree would otherwise lead to predictions in its other ClusterQueues.
        self.requeue_where(|queue| stale.contains(&tree.root(queue.node)));
        self.for_each(|queue| {
            if stale.contains(&tree.root(queue.node())) {
                queue.forget_refused();
            }
        });
    }

    /// Whether a requeue is requested.
    pub(crate) fn has_requeue_requests(&self) -> bool {
        !self.requeue_requests.is_empty()
    }

    /// Removes all requests and hands the root of every requested tree to `requeue`, each once.
    pub(crate) fn take_requeue_requests(&mut self, tree: &QuotaTree, requeue: impl FnMut(NodeId)) {
        self.requeue_requests.take(tree, requeue);
    }
}

/// Reserving Workloads. Every change ends the progress of flavor scans in the ClusterQueue (§4.4 step 7).
impl QueueLayer {
    /// Adds a Workload to the reserving ones. Returns its index among them.
    pub(crate) fn add_reserving(
        &mut self,
        id: QueueId,
        workload: WorkloadId,
        priority: i64,
    ) -> u32 {
        let queue = self.cluster_queues.at_mut(id);
        let index = u32::try_from(queue.reserving.len());
        queue.reserving.push(workload);
        queue.priorities.add(priority);
        // With quota the Workload does not wait for its targets any more.
        queue.pending.clear_preemptor(workload);
        queue.generation += 1;
        index.expect("invariant: fewer than 2^32 Workloads")
    }

    /// Removes the Workload at an index of the reserving ones. Returns the Workload that was moved there.
    pub(crate) fn remove_reserving(
        &mut self,
        id: QueueId,
        index: u32,
        priority: i64,
    ) -> Option<WorkloadId> {
        let queue = self.cluster_queues.at_mut(id);
        queue.priorities.remove(priority);
        queue.reserving.swap_remove(index as usize);
        queue.generation += 1;
        queue.reserving.get(index as usize).copied()
    }

    /// Notes that a reserving Workload has another priority now.
    pub(crate) fn change_priority(&mut self, id: QueueId, before: i64, now: i64) {
        let priorities = &mut self.cluster_queues.at_mut(id).priorities;
        priorities.remove(before);
        priorities.add(now);
    }

    /// Notes that a reserving Workload changed.
    pub(crate) fn note_reserving_change(&mut self, id: QueueId) {
        self.cluster_queues.at_mut(id).generation += 1;
    }
}

/// What-ifs.
impl QueueLayer {
    /// Begins a what-if.
    pub(crate) fn begin_what_if(&mut self) {
        // The pattern names every table, so that a new one cannot be left out.
        let Self {
            cluster_queues,
            local_queues,
            namespaces,
            checks,
            heads,
            requeue_requests,
            ledger,
            cycle,
            predicted,
            before,
        } = self;
        cluster_queues.begin();
        *before = Some(QueueCheckpoint {
            local_queues: local_queues.clone(),
            namespaces: namespaces.clone(),
            checks: checks.clone(),
            heads: heads.clone(),
            requeue_requests: requeue_requests.clone(),
            ledger: ledger.clone(),
            cycle: *cycle,
            predicted: *predicted,
        });
    }

    /// Ends the what-if.
    pub(crate) fn undo_what_if(&mut self) {
        if let Some(QueueCheckpoint {
            local_queues,
            namespaces,
            checks,
            heads,
            requeue_requests,
            ledger,
            cycle,
            predicted,
        }) = self.before.take()
        {
            self.cluster_queues.undo();
            (self.local_queues, self.namespaces) = (local_queues, namespaces);
            (self.checks, self.heads) = (checks, heads);
            (self.requeue_requests, self.ledger) = (requeue_requests, ledger);
            (self.cycle, self.predicted) = (cycle, predicted);
        }
    }
}

fn namespace_matches(
    selector: &NamespaceSelector,
    namespaces: &DenseTable<NamespaceId, Option<Labels>>,
    workload: &WorkloadRecord,
) -> bool {
    match (selector, namespaces.find(workload.namespace)) {
        (NamespaceSelector::Nothing, _) | (_, None) => false,
        (NamespaceSelector::All(all), Some(labels)) => all.iter().all(|one| one.matches(labels)),
    }
}
