//! A Workload with its flavor assignment: the input of node packing.

use std::sync::Arc;

use engine::{Amount, ids::ResourceId, node_selection::PodToleration};

use crate::{RequestedPodSet, RunTime, WorkloadRequest};

/// What admission adds to one pod set: count, node labels and tolerations.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct AssignedPodSet {
    /// Admitted pods; fewer than requested under partial admission.
    pub count: i64,
    /// Node labels of the assigned flavors.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Tolerations of the assigned flavors.
    pub tolerations: Vec<PodToleration>,
    /// Nodes of an agent's cluster that the pods run on, by hostname, with the pods that were counted on each; empty if the
    /// scheduler chooses among all of them.
    pub nodes: Vec<(Box<str>, i64)>,
    /// The clusters that all of the assigned flavors are bound to; `None` if no flavor is bound.
    pub clusters: Option<Vec<Box<str>>>,
}

impl AssignedPodSet {
    /// Whether its flavors allow a cluster.
    #[must_use]
    pub fn may_run_on(&self, cluster: &str) -> bool {
        self.clusters.as_ref().is_none_or(|all| all.iter().any(|one| **one == *cluster))
    }
}

/// A Workload with its requests and what its flavor assignment adds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct AssignedWorkload {
    /// The requests.
    pub request: Arc<WorkloadRequest>,
    /// Additions of admission, one per pod set in the order of the request. A pod set without an entry is packed as
    /// requested.
    pub assigned: Vec<AssignedPodSet>,
    /// How long work of its origin ran, in nanoseconds, if that is known and its own run time is not bounded
    /// ([`Fleet::with_run_time`](crate::Fleet::with_run_time)).
    pub learned_run_time: Option<i64>,
}

impl AssignedWorkload {
    /// A request with the additions of admission, without a learned run time.
    #[must_use]
    pub fn new(request: Arc<WorkloadRequest>, assigned: Vec<AssignedPodSet>) -> Self {
        Self { request, assigned, learned_run_time: None }
    }

    /// Whether any of its flavors is bound to clusters.
    pub(crate) fn is_bound(&self) -> bool {
        self.assigned.iter().any(|one| one.clusters.is_some())
    }

    /// Whether the flavors of all pod sets allow a cluster.
    pub(crate) fn may_run_on(&self, cluster: &str) -> bool {
        self.assigned.iter().all(|one| one.may_run_on(cluster))
    }

    /// How long it runs at most, as far as that is known.
    pub(crate) fn run_time(&self) -> Option<RunTime> {
        let declared = self.request.max_run_time.map(RunTime::Declared);
        declared.or(self.learned_run_time.map(RunTime::Learned))
    }

    /// Pod sets, each with its effective count and the additions of its flavors.
    pub(crate) fn pod_sets(
        &self,
    ) -> impl Iterator<Item = (&RequestedPodSet, i64, Option<&AssignedPodSet>)> {
        let assigned = self.assigned.iter().map(Some).chain(std::iter::repeat(None));
        self.request.pod_sets.iter().zip(assigned).map(|(pods, assigned)| {
            let count = assigned.map_or(pods.count, |assigned| assigned.count);
            (pods, count, assigned)
        })
    }

    /// Whether both Workloads have equal pods: same count, requests and node requirements per pod set.
    pub(crate) fn has_same_pods(&self, other: &Self) -> bool {
        self.pod_sets().map(packing_inputs).eq(other.pod_sets().map(packing_inputs))
    }

    /// Requests of all pods together, sorted by resource. Resources with amount zero are left out.
    pub(crate) fn total_requests(&self) -> Vec<(ResourceId, Amount)> {
        let mut requests: Vec<_> = self
            .pod_sets()
            .flat_map(|(pods, count, _)| {
                pods.requests.iter().map(move |&(resource, amount)| (resource, amount.times(count)))
            })
            .filter(|(_, amount)| amount.0 > 0)
            .collect();
        requests.sort_unstable();
        requests.dedup_by(|next, sum| {
            let same = next.0 == sum.0;
            if same {
                sum.1 += next.1;
            }
            same
        });
        requests
    }

    /// Node labels that the assigned flavors select: one list per pod set, without duplicates.
    pub(crate) fn pools(&self) -> Vec<&[(Box<str>, Box<str>)]> {
        let labels =
            self.pod_sets().map(|(_, _, assigned)| assigned.map_or(&[][..], |one| &one.labels));
        let mut pools: Vec<_> = labels.collect();
        pools.sort_unstable();
        pools.dedup();
        pools
    }
}

/// The parts of a pod set that node packing reads.
fn packing_inputs<'a>(
    (pods, count, assigned): (&'a RequestedPodSet, i64, Option<&'a AssignedPodSet>),
) -> impl PartialEq + use<'a> {
    let labels = assigned.map_or(&[][..], |assigned| &assigned.labels);
    let tolerations = assigned.map_or(&[][..], |assigned| &assigned.tolerations);
    (&pods.requests, &pods.selection, count, labels, tolerations)
}
