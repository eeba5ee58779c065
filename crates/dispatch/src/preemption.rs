//! What preemption frees on a cluster. Source: docs/reference/dispatch.md §1.
//!
//! Quota is one thing and room another: Workloads are preempted only if a cluster then has room for the preemptor. The nodes
//! of their pods are unknown; they are released where it helps least (`PackedNodes::release`), so no room is promised
//! that one eviction more would be needed for.

use std::collections::BTreeSet;

use engine::{
    Time,
    ids::{ClusterId, WorkloadId},
};

use crate::cluster_choice::PlacementRequest;
use crate::fleet::Fleet;
use crate::local_nodes::LocalNodes;
use crate::pending_placements::PlacementClass;
use crate::queue_order::WaitingPosition;
use crate::refusal::{ClusterRefusal, PlacementRefusal};
use crate::worker_cluster::{PlacedWorkload, PlacementSerial};

impl Fleet {
    /// Whether a cluster has room for a Workload once those in `gone` are gone.
    pub fn fits_after(
        &mut self,
        request: &PlacementRequest<'_>,
        gone: &[WorkloadId],
        now: Time,
    ) -> bool {
        self.refusals_after(request, gone, now).is_none()
    }

    /// Lets a Workload wait that has no room on any cluster once those in `gone` are gone. Returns the reason per cluster.
    pub fn refuse_after(
        &mut self,
        request: &PlacementRequest<'_>,
        gone: &[WorkloadId],
        now: Time,
    ) -> PlacementRefusal {
        let mut reasons = self.refusals_after(request, gone, now).unwrap_or_default();
        self.find_never_fitting(&request.class(), &mut reasons);
        let key = self.await_room(request, now);
        self.pending.set_preempts(key);
        PlacementRefusal { key, reasons }
    }

    /// Why no cluster would take a Workload; `None` if one would.
    fn refusals_after(
        &mut self,
        request: &PlacementRequest<'_>,
        gone: &[WorkloadId],
        now: Time,
    ) -> Option<Vec<(ClusterId, ClusterRefusal)>> {
        self.update_reservations(now);
        let (class, position) = (request.class(), (request.order, request.workload));
        let mut reasons = Vec::new();
        let config = self.config(request.config);
        for cluster in class.clusters(&config) {
            let leaving = self.leaving_on(cluster, |workload| gone.contains(&workload));
            match self.evaluate_without(&class, position, cluster, &leaving, now) {
                Ok(()) => return None,
                Err(refusal) => reasons.push((cluster, refusal)),
            }
        }
        self.put_required_first(&class, &config, &mut reasons);
        Some(reasons)
    }

    /// Per cluster that has room for a Workload if everything there is gone: what is placed on it, sorted. The cluster with its
    /// checkpoint comes first, the others follow in the order of the configuration.
    pub fn preemptible(
        &mut self,
        request: &PlacementRequest<'_>,
        now: Time,
    ) -> Vec<Vec<WorkloadId>> {
        let (class, position) = (request.class(), (request.order, request.workload));
        let mut found = Vec::new();
        let config = self.config(request.config);
        let mut clusters: Vec<ClusterId> = class.clusters(&config).collect();
        clusters.sort_by_key(|id| !self.holds_checkpoint(&class.work.request, *id));
        for cluster in clusters {
            let all = self.leaving_on(cluster, |_| true);
            if self.evaluate_without(&class, position, cluster, &all, now).is_ok() {
                let placed = self.placed_workloads(cluster).map(|(workload, _)| workload);
                let all: BTreeSet<WorkloadId> = placed.chain(all.bound).collect();
                found.push(all.into_iter().collect());
            }
        }
        found
    }

    /// Whether a preemption on a cluster that has changed since `checked` may give a Workload room there: the cluster has grown,
    /// or got Workloads of lower priority.
    pub(crate) fn may_preempt_on(
        &mut self,
        class: &PlacementClass,
        position: WaitingPosition,
        (id, checked): (ClusterId, u64),
        now: Time,
    ) -> bool {
        let cluster = &self.clusters[id.index()];
        let (grown, placed) = (cluster.grown > checked, cluster.placed_at > checked);
        let priority = position.0.priority;
        let leaves = |placed: &PlacedWorkload| grown || placed.priority < Some(priority);
        let leaving = cluster.placed().filter(|(_, placed)| leaves(placed));
        let placements = leaving.map(|(serial, _)| serial).collect();
        // The priority of a Workload without unbound pods is not known here; a cycle decides.
        let bound = cluster.local.iter().flat_map(LocalNodes::with_bound_pods).collect();
        let leaving = Leaving { placements, bound };
        (grown || placed) && self.evaluate_without(class, position, id, &leaving, now).is_ok()
    }

    fn evaluate_without(
        &mut self,
        class: &PlacementClass,
        position: WaitingPosition,
        id: ClusterId,
        gone: &Leaving,
        now: Time,
    ) -> Result<(), ClusterRefusal> {
        let policy = &self.config(&class.config).policy;
        self.check_eligible(class, policy, id, now)?;
        let cluster = &mut self.clusters[id.index()];
        if let Some(local) = &cluster.local {
            let bound = |workload| gone.bound.contains(&workload);
            local
                .check_fit_without(&class.work, &gone.placements, bound)
                .map_err(ClusterRefusal::InsufficientCapacity)?;
            return self.check_reservations(&class.work, false, position, id, now);
        }
        let mut nodes = cluster.nodes().ok_or(ClusterRefusal::NoReport)?.clone();
        for (_, placed) in cluster.placed().filter(|(serial, _)| gone.placements.contains(serial)) {
            nodes.release(&placed.work);
        }
        nodes.check_fit(&class.work).map_err(ClusterRefusal::InsufficientCapacity)?;
        self.check_reservations(&class.work, false, position, id, now)
    }

    fn leaving_on(&self, cluster: ClusterId, leaves: impl Fn(WorkloadId) -> bool) -> Leaving {
        let placed = self.placed_workloads(cluster).filter(|(workload, _)| leaves(*workload));
        let local = self.clusters[cluster.index()].local.iter();
        let bound = local.flat_map(LocalNodes::with_bound_pods).filter(|one| leaves(*one));
        Leaving { placements: placed.map(|(_, serial)| serial).collect(), bound: bound.collect() }
    }
}

/// What leaves a cluster by a preemption.
#[derive(Debug, Default)]
struct Leaving {
    placements: BTreeSet<PlacementSerial>,
    /// Workloads with bound pods, on the cluster of this agent.
    bound: BTreeSet<WorkloadId>,
}
