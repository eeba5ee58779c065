//! A Workload with its flavor assignment: the input of node packing.

use std::sync::Arc;

use engine::{Amount, ids::ResourceId, node_selection::Toleration};

use crate::{RequestedPodSet, WorkloadRequest};

/// What admission adds to one pod set: count, node labels and tolerations.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct AssignedPodSet {
    /// Admitted pods; fewer than requested under partial admission.
    pub count: i64,
    /// Node labels of the assigned flavors.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Tolerations of the assigned flavors.
    pub tolerations: Vec<Toleration>,
}

/// A Workload with its requests and what its flavor assignment adds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct AssignedWorkload {
    /// The requests.
    pub request: Arc<WorkloadRequest>,
    /// Additions of admission, one per pod set in the order of the request. A pod set without an entry is packed as
    /// requested.
    pub assigned: Vec<AssignedPodSet>,
}

impl AssignedWorkload {
    /// Pod sets, each with its effective count and the additions of its flavors.
    pub(crate) fn pod_sets(
        &self,
    ) -> impl Iterator<Item = (&RequestedPodSet, i64, Option<&AssignedPodSet>)> {
        let given = self.assigned.iter().map(Some).chain(std::iter::repeat(None));
        self.request.pod_sets.iter().zip(given).map(|(pods, given)| {
            let count = given.map_or(pods.count, |given| given.count);
            (pods, count, given)
        })
    }

    /// Whether both Workloads have equal pods: same count, requests and node requirements per pod set.
    pub(crate) fn has_same_pods(&self, other: &Self) -> bool {
        self.pod_sets().map(alike).eq(other.pod_sets().map(alike))
    }

    /// Requests of all pods together, sorted by resource. Resources with amount zero are left out.
    pub(crate) fn total_requests(&self) -> Vec<(ResourceId, Amount)> {
        let mut asked: Vec<_> = self
            .pod_sets()
            .flat_map(|(pods, count, _)| {
                pods.requests.iter().map(move |&(resource, amount)| (resource, amount.times(count)))
            })
            .filter(|(_, amount)| amount.0 > 0)
            .collect();
        asked.sort_unstable();
        asked.dedup_by(|next, sum| {
            let same = next.0 == sum.0;
            if same {
                sum.1 += next.1;
            }
            same
        });
        asked
    }

    /// Node labels that the assigned flavors select: one list per pod set, without duplicates.
    pub(crate) fn pools(&self) -> Vec<&[(Box<str>, Box<str>)]> {
        let labels = self.pod_sets().map(|(_, _, given)| given.map_or(&[][..], |one| &one.labels));
        let mut pools: Vec<_> = labels.collect();
        pools.sort_unstable();
        pools.dedup();
        pools
    }
}

/// The parts of a pod set that node packing reads.
fn alike<'a>(
    (pods, count, given): (&'a RequestedPodSet, i64, Option<&'a AssignedPodSet>),
) -> impl PartialEq + use<'a> {
    let labels = given.map_or(&[][..], |given| &given.labels);
    let tolerations = given.map_or(&[][..], |given| &given.tolerations);
    (&pods.requests, &pods.selection, count, labels, tolerations)
}
