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
use crate::pending_placements::PlacementClass;
use crate::refusal::{ClusterRefusal, PlacementRefusal};
use crate::worker_cluster::PlacementSerial;

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
        let reasons = self.refusals_after(request, gone, now).unwrap_or_default();
        let position = (request.order, request.workload);
        let key = self.pending.add(position, request.class(), self.changes, now);
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
        let class = request.class();
        let mut reasons = Vec::new();
        for &cluster in &self.config(request.config).clusters {
            let leaves = self.serials_on(cluster, |workload| gone.contains(&workload));
            match self.evaluate_without(&class, request, cluster, &leaves, now) {
                Ok(()) => return None,
                Err(refusal) => reasons.push((cluster, refusal)),
            }
        }
        Some(reasons)
    }

    /// Per cluster that has room for a Workload if everything there is gone, in the order of the configuration: what is
    /// placed on it, sorted.
    pub fn preemptible(
        &mut self,
        request: &PlacementRequest<'_>,
        now: Time,
    ) -> Vec<Vec<WorkloadId>> {
        let class = request.class();
        let mut found = Vec::new();
        for &cluster in &self.config(request.config).clusters {
            let all = self.serials_on(cluster, |_| true);
            if self.evaluate_without(&class, request, cluster, &all, now).is_ok() {
                found.push(self.placed_workloads(cluster).map(|(workload, _)| workload).collect());
            }
        }
        found
    }

    fn evaluate_without(
        &mut self,
        class: &PlacementClass,
        request: &PlacementRequest<'_>,
        id: ClusterId,
        gone: &BTreeSet<PlacementSerial>,
        now: Time,
    ) -> Result<(), ClusterRefusal> {
        let policy = &self.config(request.config).policy;
        self.check_eligible(class, policy, id, now)?;
        let cluster = &mut self.clusters[id.index()];
        let mut nodes = cluster.nodes().ok_or(ClusterRefusal::NoReport)?.clone();
        for (_, placed) in cluster.placed().filter(|(serial, _)| gone.contains(serial)) {
            nodes.release(&placed.work);
        }
        nodes.check_fit(&class.work).map_err(ClusterRefusal::InsufficientCapacity)?;
        self.check_reservations(&class.work, false, (request.order, request.workload), id, now)
    }

    fn serials_on(
        &self,
        cluster: ClusterId,
        leaves: impl Fn(WorkloadId) -> bool,
    ) -> BTreeSet<PlacementSerial> {
        let placed = self.placed_workloads(cluster).filter(|(workload, _)| leaves(*workload));
        placed.map(|(_, serial)| serial).collect()
    }
}
