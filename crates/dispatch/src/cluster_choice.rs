//! The choice of a worker cluster, and the wake-up of Workloads without one.
//!
//! A cluster is eligible if it is connected, has a fresh report, runs the kind, is allowed by policy and affinity,
//! and is not excluded after a refusal. An eligible cluster is a candidate if its nodes fit the Workload, or if the
//! Workload can reuse capacity of an ended one. Candidates are ranked by, in this order:
//!
//! 1. The cluster holds the checkpoint of the job.
//! 2. It needs no new nodes.
//! 3. One of its ClusterQueues has the quota.
//! 4. The Workload prefers it.
//! 5. Cost: the cheapest first; not under the strategy Ordered.
//! 6. Free share times weight: the largest first under Spread; under BinPack the share that is not free.
//! 7. Weight; not under Ordered.
//! 8. The order of the configuration.
//!
//! Source: docs/reference/dispatch.md §1-3, §5.
//!
//! Wake-ups are precise: a key is returned if and only if a Workload that waits under it would get a cluster now, or if it may
//! preempt and would have room without the Workloads of lower priority. A change of a cluster re-evaluates the keys of
//! that cluster only.

use std::sync::Arc;

use engine::{
    RequeueKey, Time,
    ids::{ClusterId, WorkloadId},
};

use crate::cluster_rank::{ClusterRank, ClusterScore, FreeShare};
use crate::fleet::Fleet;
use crate::node_packing::NewNodes;
use crate::pending_placements::{PendingClass, PlacementClass};
use crate::policy::PlacementPolicy;
use crate::queue_order::{QueueOrder, WaitingPosition};
use crate::refusal::{ClusterRefusal, PlacementRefusal};
use crate::{AssignedWorkload, PlacementConfig, WorkloadRequest};

/// A request for a cluster.
#[derive(Debug, Clone, Copy)]
pub struct PlacementRequest<'a> {
    /// The Workload.
    pub workload: WorkloadId,
    /// The MultiKueueConfig of its check.
    pub config: &'a str,
    /// Its requests and flavors.
    pub work: &'a Arc<AssignedWorkload>,
    /// Its queue order among Workloads that wait for capacity.
    pub order: QueueOrder,
    /// The only cluster that may take it; `None` if any may.
    pub only: Option<ClusterId>,
    /// Other flavors of the Workload were refused before, in the same cycle.
    pub alternative: bool,
}

impl PlacementRequest<'_> {
    /// What this Workload has in common with others that fit on the same clusters.
    pub(crate) fn class(&self) -> PlacementClass {
        let (config, work) = (self.config.into(), Arc::clone(self.work));
        PlacementClass { config, work, only: self.only }
    }
}

impl Fleet {
    /// Returns the best cluster for a Workload. The placement counts only after [`Fleet::place`].
    ///
    /// # Errors
    /// If no cluster takes the Workload: one reason per cluster, and the requeue key under which it waits.
    pub fn choose_cluster(
        &mut self,
        request: &PlacementRequest<'_>,
        now: Time,
    ) -> Result<ClusterId, PlacementRefusal> {
        self.update_reservations(now);
        let class = request.class();
        let position = (request.order, request.workload);
        match self.best_cluster(&class, position, now) {
            Ok(cluster) => {
                self.pending.remove(request.workload);
                Ok(cluster)
            }
            Err(mut reasons) => {
                self.find_never_fitting(&class, &mut reasons);
                if !request.alternative {
                    self.pending.leave_alternatives(request.workload);
                }
                let key = self.await_room(request, now);
                Err(PlacementRefusal { key, reasons })
            }
        }
    }

    /// Lets a Workload wait for room, beside what it waits for already if the request is an alternative.
    pub(crate) fn await_room(&mut self, request: &PlacementRequest<'_>, now: Time) -> RequeueKey {
        let (position, class) = ((request.order, request.workload), request.class());
        if request.alternative {
            return self.pending.add_alternative(position, class, self.changes, now);
        }
        self.pending.add(position, class, self.changes, now)
    }

    /// Requeue keys of Workloads that would get a cluster now, oldest first. A key is returned once per change.
    pub fn woken_keys(&mut self, now: Time) -> Vec<RequeueKey> {
        self.update_reservations(now);
        let outdated: Vec<_> = self
            .pending
            .iter()
            .filter_map(|(key, class)| self.outdated_verdict(key, class, now))
            .collect();
        let mut woken = Vec::new();
        for OutdatedVerdict { key, class, first, to_evaluate, preempts, checked } in outdated {
            let config = self.config(&class.config);
            // The first position is bound by the fewest reservations. If it gets no cluster, no
            // other Workload of its class does.
            let gets = |fleet: &mut Self, id| {
                fleet.evaluate(&class, first, &config.policy, id, now).is_ok()
                    || fleet.races_without_current_reports(&class.config, &class.work, now)
                    || fleet.waits_for(id, &class.work, &config.policy, now)
                    || preempts && fleet.may_preempt_on(&class, first, (id, checked), now)
            };
            if to_evaluate.into_iter().any(|id| gets(self, id)) {
                woken.push(RequeueKey(key));
            }
            self.pending.verdict_checked(key, self.changes, now);
        }
        woken
    }

    /// The key under which a Workload waits. Once its request is another one, the verdict about its class says nothing about it.
    pub fn requeue_key(&self, workload: WorkloadId) -> Option<RequeueKey> {
        self.pending.key_of(workload)
    }

    /// Next time at which [`Fleet::woken_keys`] can return a key without a change of the fleet: an exclusion ends, or
    /// a reservation moves.
    pub fn next_wake_at(&self) -> Option<Time> {
        let ends = self
            .pending
            .iter()
            .flat_map(|(_, pending_class)| self.exclusion_ends(pending_class))
            .map(|(_, until)| until);
        ends.chain(self.reservation_inputs.next_update_at).min()
    }

    /// Ends of exclusions after the last evaluation of a class.
    pub(crate) fn exclusion_ends(
        &self,
        pending_class: &PendingClass,
    ) -> impl Iterator<Item = (ClusterId, Time)> {
        self.exclusions.ends(&pending_class.class.work.request, pending_class.at)
    }

    pub(crate) fn config(&self, name: &str) -> Arc<PlacementConfig> {
        self.configs.get(name).map(|one| Arc::clone(&one.config)).unwrap_or_default()
    }

    fn best_cluster(
        &mut self,
        class: &PlacementClass,
        position: WaitingPosition,
        now: Time,
    ) -> Result<ClusterId, Vec<(ClusterId, ClusterRefusal)>> {
        let config = self.config(&class.config);
        let policy = &config.policy;
        let (mut best, mut reasons) = (None, Vec::new());
        for cluster in class.clusters(&config) {
            match self.evaluate(class, position, policy, cluster, now) {
                Err(refusal) => reasons.push((cluster, refusal)),
                Ok(fit) => {
                    let rank = self.rank(&class.work, policy, cluster, fit);
                    if best.as_ref().is_none_or(|(old, _)| rank > *old) {
                        best = Some((rank, cluster));
                    }
                }
            }
        }
        self.put_required_first(class, &config, &mut reasons);
        best.map(|(_, cluster)| cluster).ok_or(reasons)
    }

    /// Tells a shortage of nodes that are busy from one that no end of other work changes.
    pub(crate) fn find_never_fitting(
        &mut self,
        class: &PlacementClass,
        reasons: &mut [(ClusterId, ClusterRefusal)],
    ) {
        for (id, refusal) in reasons {
            let cluster = &mut self.clusters[id.index()];
            // An agent keeps its nodes by name.
            let lacks_room = matches!(refusal, ClusterRefusal::InsufficientCapacity(_))
                && cluster.local.is_none();
            let nodes = cluster.nodes().filter(|_| lacks_room);
            if let Some(shortage) = nodes.and_then(|nodes| nodes.never_fits(&class.work)) {
                *refusal = ClusterRefusal::NeverFits(shortage);
            }
        }
    }

    /// What remains if the cluster takes the Workload.
    pub(crate) fn evaluate(
        &mut self,
        class: &PlacementClass,
        position: WaitingPosition,
        policy: &PlacementPolicy,
        id: ClusterId,
        now: Time,
    ) -> Result<PlacementFit, ClusterRefusal> {
        self.check_eligible(class, policy, id, now)?;
        let cluster = &mut self.clusters[id.index()];
        if let Some(local) = &cluster.local {
            return match local.assign(&class.work) {
                Ok(_) => Ok(PlacementFit::FreeRoom(FreeShare::ALL)),
                Err(shortage) => {
                    let new_nodes = local.with_new_nodes(&class.work).map(PlacementFit::NewNodes);
                    new_nodes.ok_or(ClusterRefusal::InsufficientCapacity(shortage))
                }
            };
        }
        let credited = cluster.covers_from_released(&class.work);
        let nodes = cluster.nodes().ok_or(ClusterRefusal::NoReport)?;
        // Reused capacity of an ended Workload is not in the free capacity of the nodes.
        let present = if credited { Ok(()) } else { nodes.check_fit(&class.work) };
        let fit = match present {
            Ok(()) => PlacementFit::FreeRoom(FreeShare::after(nodes, &class.work)),
            Err(shortage) => {
                let new_nodes = nodes.check_fit_with_new_nodes(&class.work, shortage);
                PlacementFit::NewNodes(new_nodes.map_err(ClusterRefusal::InsufficientCapacity)?)
            }
        };
        self.check_reservations(&class.work, credited, position, id, now)?;
        Ok(fit)
    }

    /// The rank of a candidate.
    pub(crate) fn rank(
        &self,
        work: &AssignedWorkload,
        policy: &PlacementPolicy,
        id: ClusterId,
        fit: PlacementFit,
    ) -> ClusterRank {
        let (request, cluster) = (&work.request, &self.clusters[id.index()]);
        let labels = &cluster.labels;
        let meets_all = request.preferred.iter().all(|requirement| requirement.matches(labels));
        let is_preferred = meets_all && !request.preferred.is_empty();
        let holds_checkpoint = self.holds_checkpoint(request, id);
        let (has_room, share) = match fit {
            PlacementFit::FreeRoom(share) => (true, share),
            PlacementFit::NewNodes(nodes) => (false, FreeShare::of_new_nodes(nodes)),
        };
        let score = ClusterScore::new(policy, id, share);
        let has_quota = cluster.has_quota_for(work);
        ClusterRank { holds_checkpoint, has_room, has_quota, is_preferred, score }
    }

    /// Checks all conditions except capacity.
    pub(crate) fn check_eligible(
        &self,
        class: &PlacementClass,
        policy: &PlacementPolicy,
        id: ClusterId,
        now: Time,
    ) -> Result<(), ClusterRefusal> {
        let cluster = &self.clusters[id.index()];
        if !cluster.reachability.connected {
            return Err(ClusterRefusal::NotConnected);
        }
        // An agent gets what its manager has chosen it for.
        if cluster.local.is_none() && !class.work.may_run_on(self.name(id)) {
            return Err(ClusterRefusal::FlavorElsewhere);
        }
        let request = &class.work.request;
        if self.is_unreported(id) {
            self.check_unreported(request, policy, id, now)?;
        }
        let report = cluster.report().ok_or(ClusterRefusal::NoReport)?;
        if cluster.report_state.stale {
            return Err(ClusterRefusal::StaleReport);
        }
        if let Some(version) = report.unserved_protocol {
            return Err(ClusterRefusal::UnservedProtocol(version));
        }
        if let Some(mode) = &report.unknown_mode {
            return Err(ClusterRefusal::UnknownMode(mode.clone()));
        }
        if !policy.draining(id) && !report.kinds.contains(&request.kind) {
            return Err(ClusterRefusal::KindNotSupported(request.kind.clone()));
        }
        self.check_open(request, policy, id, now)
    }

    /// Whether another program may nominate a cluster for a Workload.
    pub fn may_be_nominated(
        &self,
        config: &str,
        request: Option<&WorkloadRequest>,
        id: ClusterId,
    ) -> bool {
        let keeps_checkpoint =
            request.is_none_or(|request| self.check_checkpoint(request, id).is_ok());
        self.is_configured(config, id) && keeps_checkpoint
    }

    /// Checks what does not depend on a report.
    pub(crate) fn check_open(
        &self,
        request: &WorkloadRequest,
        policy: &PlacementPolicy,
        id: ClusterId,
        now: Time,
    ) -> Result<(), ClusterRefusal> {
        let cluster = &self.clusters[id.index()];
        if !cluster.reachability.connected {
            return Err(ClusterRefusal::NotConnected);
        }
        let exactly_once = request.exactly_once.unwrap_or(policy.exactly_once.is_some());
        // A clone is on the cluster that its manager has chosen, which grants what runs there.
        let is_own = cluster.local.is_some();
        if exactly_once && !is_own && !cluster.reachability.leases_open {
            return Err(ClusterRefusal::NoLeases);
        }
        if policy.draining(id) {
            return Err(ClusterRefusal::Draining);
        }
        check_allowed(request, policy)?;
        let mut affinity = request.affinity.iter();
        if !is_own && !affinity.all(|requirement| requirement.matches(&cluster.labels)) {
            return Err(ClusterRefusal::AffinityMismatch);
        }
        if !is_own {
            self.check_checkpoint(request, id)?;
        }
        let set = request.together.as_deref();
        if set.is_some_and(|set| self.companions.are_elsewhere(set, id)) {
            return Err(ClusterRefusal::SetElsewhere);
        }
        if let Some((until, why)) = self.exclusions.find(request, id, now) {
            return Err(ClusterRefusal::Excluded { until, why: why.into() });
        }
        Ok(())
    }

    /// The clusters whose verdict may have changed since the class was last evaluated.
    fn outdated_verdict(
        &self,
        key: u64,
        pending_class: &PendingClass,
        now: Time,
    ) -> Option<OutdatedVerdict> {
        // A configuration that was removed names no cluster, so nothing can wake the class.
        let configured = self.configs.get(&pending_class.class.config)?;
        let config_changed = configured.changed > pending_class.checked;
        let exclusion_ended = |id| {
            self.exclusion_ends(pending_class).any(|(cluster, until)| cluster == id && until <= now)
        };
        let changed = |id: ClusterId| self.clusters[id.index()].changed > pending_class.checked;
        let clusters = pending_class.class.clusters(&configured.config);
        let to_evaluate: Vec<_> =
            clusters.filter(|&id| config_changed || changed(id) || exclusion_ended(id)).collect();
        let first = pending_class.first_position().filter(|_| !to_evaluate.is_empty())?;
        let PendingClass { class, preempts, checked, .. } = pending_class;
        let (class, preempts, checked) = (Arc::clone(class), *preempts, *checked);
        Some(OutdatedVerdict { key, class, first, to_evaluate, preempts, checked })
    }
}

/// A placement class whose verdict may have changed.
struct OutdatedVerdict {
    key: u64,
    class: Arc<PlacementClass>,
    /// First waiting position of the class.
    first: WaitingPosition,
    /// Clusters to evaluate again.
    to_evaluate: Vec<ClusterId>,
    /// It may preempt.
    preempts: bool,
    /// Fleet change counter at the last evaluation.
    checked: u64,
}

fn check_allowed(
    request: &WorkloadRequest,
    policy: &PlacementPolicy,
) -> Result<(), ClusterRefusal> {
    if !policy.allows_kind(&request.kind) {
        return Err(ClusterRefusal::KindNotAllowed(request.kind.clone()));
    }
    if !policy.allows_namespace(&request.namespace) {
        return Err(ClusterRefusal::NamespaceNotAllowed(request.namespace.clone()));
    }
    Ok(())
}

/// How a cluster fits a Workload.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PlacementFit {
    /// On nodes that are there; this share stays free.
    FreeRoom(FreeShare),
    /// With nodes that its autoscaler has to add.
    NewNodes(NewNodes),
}
