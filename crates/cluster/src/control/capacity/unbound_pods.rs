//! Pods of a clone that are still to be bound: those that it should have, less those that are bound or have succeeded.

use std::sync::Arc;

use crds::v1beta2::{PodSetAssignment, ReclaimablePod, TopologyAssignment, Workload};
use dispatch::{AssignedPodSet, AssignedWorkload};
use index::AdmissionMode;
use runtime::watch::Key;

use super::{chains::SliceChains, cycle_entries::carried, inputs::CapacityInputs, nodes::Nodes};
use crate::control::{
    elastic_slices::{counts_of, replaced},
    scheduling::Scheduler,
};

/// Pods of a clone that are not bound yet.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct UnboundPods {
    pub(super) work: Arc<AssignedWorkload>,
    /// The clone holds quota.
    pub(super) holds_quota: bool,
}

/// The pods that are bound.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoundPods<'a> {
    pub(super) mode: AdmissionMode,
    pub(super) nodes: &'a Nodes,
    pub(super) chains: &'a SliceChains,
}

impl BoundPods<'_> {
    /// Pods of a clone that are still to be bound; `None` if there are none.
    pub(super) fn of_clone(self, key: &Key, inputs: &CapacityInputs<'_>) -> Option<UnboundPods> {
        let record = inputs.workloads.get(key)?;
        let workload = record.object();
        // A finished clone has none.
        let request = inputs.scheduler.request(record.id()?)?;
        let reclaimable = inputs.jobs.reclaimable_pods(key, workload);
        let earlier = replaced(workload, inputs.workloads).map(|one| counts_of(one.object()));
        let additions = self.flavor_additions(workload, inputs.scheduler);
        let given = request.pod_sets.iter().enumerate().map(|(n, pods)| {
            let bound = self.nodes.bound(self.chains.of(key), &pods.name);
            let done = n_done(&reclaimable, &pods.name);
            // Pods of the slice that it extends are counted with that one until they are bound.
            let further = earlier.as_ref().map_or(i64::MAX, |held| pods.count - held(&pods.name));
            let left = (pods.count - done - bound).min(further).max(0);
            let left = match &additions {
                None => carried(workload, &pods.name, left),
                Some(all) => {
                    AssignedPodSet { count: left, ..all.get(n).cloned().unwrap_or_default() }
                }
            };
            AssignedPodSet { nodes: recorded_nodes(workload, &pods.name), ..left }
        });
        let given: Vec<AssignedPodSet> = given.collect();
        given.iter().any(|one| one.count > 0).then(|| {
            let work = Arc::new(AssignedWorkload::new(Arc::clone(request), given));
            UnboundPods { work, holds_quota: record.phase().holds_quota() }
        })
    }

    /// What flavors of ClusterQueues add to the pod sets of a clone, nothing while it is pending; `None` in mode Thin, where the
    /// clone carries it.
    fn flavor_additions(
        self,
        clone: &Workload,
        scheduler: &Scheduler,
    ) -> Option<Vec<AssignedPodSet>> {
        let admission = (self.mode == AdmissionMode::Quota).then_some(&clone.status.admission)?;
        let added = |one| scheduler.admitted_pod_sets(one, &clone.spec.pod_sets);
        Some(admission.as_ref().map(added).unwrap_or_default())
    }
}

/// The number of pods that a clone should have now; `None` if it has no quota.
pub(super) fn wanted_pods(key: &Key, inputs: &CapacityInputs<'_>) -> Option<i64> {
    let record = inputs.workloads.get(key).filter(|record| record.phase().holds_quota())?;
    let request = inputs.scheduler.request(record.id()?)?;
    let reclaimable = inputs.jobs.reclaimable_pods(key, record.object());
    let wanted = request.pod_sets.iter().map(|pods| pods.count - n_done(&reclaimable, &pods.name));
    Some(wanted.sum())
}

/// Pods of a pod set that succeeded: they are not bound any more and do not come back.
fn n_done(reclaimable: &[ReclaimablePod], pod_set: &str) -> i64 {
    let done = reclaimable.iter().filter(|one| *one.name == *pod_set);
    done.map(|one| i64::from(one.count)).sum()
}

/// The nodes that the admission of a clone assigns to a pod set.
fn recorded_nodes(clone: &Workload, pod_set: &str) -> Vec<(Box<str>, i64)> {
    let assigned = clone.status.admission.iter().flat_map(|one| &one.pod_set_assignments);
    let of_set = assigned.filter(|one: &&PodSetAssignment| one.name == pod_set);
    let hosts = of_set.filter_map(|one| one.topology_assignment.as_ref());
    let hosts = hosts.flat_map(TopologyAssignment::hosts);
    hosts.map(|(host, pods)| (host.into(), i64::from(pods))).collect()
}
