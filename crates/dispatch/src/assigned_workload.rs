//! A Workload that has flavors and counts: what is packed onto nodes.

use std::sync::Arc;

use engine::{Amount, ids::ResourceId, node_selection::Toleration};

use crate::{RequestedPodSet, WorkloadRequest};

/// What admission adds to one pod set.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct AssignedPodSet {
    /// Pods that were admitted; fewer than asked for under partial admission.
    pub count: i64,
    /// Node labels of the assigned flavors.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Tolerations of the assigned flavors.
    pub tolerations: Vec<Toleration>,
}

/// A Workload as it would run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct AssignedWorkload {
    /// What it asks for.
    pub request: Arc<WorkloadRequest>,
    /// What admission adds, pod set by pod set. A pod set without an entry is taken as it is.
    pub assigned: Vec<AssignedPodSet>,
}

impl AssignedWorkload {
    /// Its pod sets, each with the number of pods that count and what was added to it.
    pub(crate) fn pod_sets(
        &self,
    ) -> impl Iterator<Item = (&RequestedPodSet, i64, Option<&AssignedPodSet>)> {
        let given = self.assigned.iter().map(Some).chain(std::iter::repeat(None));
        self.request.pod_sets.iter().zip(given).map(|(pods, given)| {
            let count = given.map_or(pods.count, |given| given.count);
            (pods, count, given)
        })
    }

    /// Whether its pods are those of other work in number, size, and where they may run.
    pub(crate) fn has_same_pods(&self, other: &Self) -> bool {
        self.pod_sets().map(alike).eq(other.pod_sets().map(alike))
    }

    /// What all of its pods take together, sorted by resource; only what is more than nothing.
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

    /// The nodes its flavors stand for, by the labels that they select: one list per pod set, each list once.
    pub(crate) fn pools(&self) -> Vec<&[(Box<str>, Box<str>)]> {
        let labels = self.pod_sets().map(|(_, _, given)| given.map_or(&[][..], |one| &one.labels));
        let mut pools: Vec<_> = labels.collect();
        pools.sort_unstable();
        pools.dedup();
        pools
    }
}

/// What of a pod set matters to nodes.
fn alike<'a>(
    (pods, count, given): (&'a RequestedPodSet, i64, Option<&'a AssignedPodSet>),
) -> impl PartialEq + use<'a> {
    let labels = given.map_or(&[][..], |given| &given.labels);
    let tolerations = given.map_or(&[][..], |given| &given.tolerations);
    (&pods.requests, &pods.selection, count, labels, tolerations)
}
