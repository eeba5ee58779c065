//! What assigned flavors add to pods: node labels to select by, and tolerations.
//!
//! Source: spec/dispatch.md §4 (the clone's annotation), spec/kueue-core.md §7.7.

use std::collections::BTreeMap;

use crds::meta::Toleration;
use crds::v1beta2::{Admission, PodSetAssignment};
use engine::Names;

use crate::index::Index;

/// What the flavors of one pod set add.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Given {
    /// Pods.
    pub count: i64,
    /// Node labels, sorted by key.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
}

impl Index {
    /// What the flavors of an assignment add, pod set by pod set. A flavor that is gone adds nothing.
    #[must_use]
    pub fn given(&self, names: &Names, pod_sets: &[engine::PodSetAssignment]) -> Vec<Given> {
        let one = |pod_set: &engine::PodSetAssignment| {
            let flavors = pod_set.choices.iter().map(|choice| names.flavors.name(choice.flavor));
            self.sum(pod_set.count, flavors)
        };
        pod_sets.iter().map(one).collect()
    }

    /// The same for an admission that is already recorded.
    #[must_use]
    pub fn given_by(&self, admission: &Admission) -> Vec<Given> {
        let one = |pod_set: &PodSetAssignment| {
            let flavors = pod_set.flavors.values().map(String::as_str);
            self.sum(i64::from(pod_set.count.unwrap_or_default()), flavors)
        };
        admission.pod_set_assignments.iter().map(one).collect()
    }

    pub(crate) fn sum<'a>(&self, count: i64, flavors: impl Iterator<Item = &'a str>) -> Given {
        let mut names: Vec<&str> = flavors.collect();
        names.sort_unstable();
        names.dedup();
        let (mut labels, mut tolerations) = (BTreeMap::new(), Vec::<Toleration>::new());
        for flavor in names.into_iter().filter_map(|name| self.flavors.get(name)) {
            for (key, value) in &flavor.labels {
                labels.entry(key.clone()).or_insert_with(|| value.clone());
            }
            for one in &flavor.tolerations {
                if !tolerations.contains(one) {
                    tolerations.push(one.clone());
                }
            }
        }
        Given { count, labels: labels.into_iter().collect(), tolerations }
    }
}
