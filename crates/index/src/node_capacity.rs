//! Requests of running pods and capacity of nodes, in the terms of capacity reports (docs/reference/dispatch.md §2).

use std::collections::BTreeMap;

use crds::{meta::LabelSelector, pod::PodSpec, quantity::Quantity};
use engine::{Amount, node_selection};

use crate::{
    requests::pod_requests::{self, PodDefaults},
    selectors,
};

/// Requests of a running pod; the API server has set its defaults.
#[must_use]
pub fn pod_requests(pod: &PodSpec) -> BTreeMap<String, Amount> {
    let requests = pod_requests::pod_requests(pod, PodDefaults::default());
    let amount = |name: &str, nanos| crate::amount::from_nanos(name, nanos).clip();
    requests.into_iter().map(|(name, nanos)| (name.to_owned(), amount(name, nanos))).collect()
}

/// Amount of capacity, rounded down.
#[must_use]
pub fn allocatable_amount(resource: &str, quantity: &Quantity) -> Amount {
    crate::amount::allocatable_amount(resource, quantity)
}

/// An amount as a quantity.
#[must_use]
pub fn quantity(resource: &str, amount: Amount) -> Quantity {
    crate::amount::quantity(resource, amount)
}

/// Taints of a node, in the engine's terms.
#[must_use]
pub fn taints(taints: &[crds::meta::Taint]) -> Vec<node_selection::NodeTaint> {
    selectors::taints(taints)
}

/// Whether tolerations let pods onto a node with a taint. One of effect PreferNoSchedule keeps no pod away.
#[must_use]
pub fn tolerates(tolerations: &[crds::meta::Toleration], taint: &crds::meta::Taint) -> bool {
    let taint = selectors::taints(std::slice::from_ref(taint));
    let none = node_selection::NodeSelection::default();
    none.untolerated(&taint, &selectors::tolerations(tolerations)).is_none()
}

/// Whether a selector matches labels.
#[must_use]
pub fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let labels = selectors::pairs(labels);
    selectors::selector(selector).iter().all(|one| one.matches(&labels))
}
