//! What pods take of nodes, and what nodes have: the terms in which room is counted (spec/dispatch.md §2).

use std::collections::BTreeMap;

use crds::{meta::LabelSelector, pod::PodSpec, quantity::Quantity};
use engine::{Amount, PodSetAssignment, flavors::matching, ids::FlavorId};

use crate::{
    index::Index,
    labels,
    requests::formula::{self, Surroundings},
};

/// What a running pod takes of its node: its defaults are filled in already.
#[must_use]
pub fn pod_requests(pod: &PodSpec) -> BTreeMap<String, Amount> {
    let requests = formula::pod_requests(pod, Surroundings::default());
    let amount = |name: &str, nanos| crate::amount::from_nanos(name, nanos).clip();
    requests.into_iter().map(|(name, nanos)| (name.to_owned(), amount(name, nanos))).collect()
}

/// An amount that is offered, rounded down.
#[must_use]
pub fn offered(resource: &str, quantity: &Quantity) -> Amount {
    crate::amount::offered(resource, quantity)
}

/// An amount as the API shows it.
#[must_use]
pub fn quantity(resource: &str, amount: Amount) -> Quantity {
    crate::amount::quantity(resource, amount)
}

/// Taints of a node.
#[must_use]
pub fn taints(taints: &[crds::meta::Taint]) -> Vec<matching::Taint> {
    labels::taints(taints)
}

/// Whether a selector selects these labels.
#[must_use]
pub fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let labels = labels::pairs(labels);
    labels::selector(selector).iter().all(|one| one.matches(&labels))
}

impl Index {
    /// What the flavors of an assignment add to pods, pod set by pod set, by the flavors' ids.
    #[must_use]
    pub fn added(&self, pod_sets: &[PodSetAssignment]) -> Vec<dispatch::Given> {
        let one = |pod_set: &PodSetAssignment| {
            let ids = pod_set.choices.iter().map(|choice| choice.flavor);
            let names = ids.filter_map(|id: FlavorId| self.flavor_names.get(&id));
            given(self.sum(pod_set.count, names.map(String::as_str)))
        };
        pod_sets.iter().map(one).collect()
    }

    /// The same of an admission that is recorded.
    #[must_use]
    pub fn added_by(&self, admission: &crds::v1beta2::Admission) -> Vec<dispatch::Given> {
        self.given_by(admission).into_iter().map(given).collect()
    }
}

fn given(one: crate::given::Given) -> dispatch::Given {
    dispatch::Given {
        count: one.count,
        labels: one.labels,
        tolerations: labels::tolerations(&one.tolerations),
    }
}
