//! Additions of assigned flavors to pods, node labels and tolerations, and the clusters that flavors are bound to.
//!
//! [`FlavorInfo`] is in the API's terms, for the clone's annotation and the job; [`dispatch::AssignedPodSet`] in the
//! engine's terms, for node packing. Source: docs/reference/dispatch.md §3-4, docs/reference/kueue.md §7.7.

use std::collections::BTreeMap;

use crds::meta;
use crds::v1beta2::{Admission, PodSet, PodSetAssignment};
use dispatch::AssignedPodSet;

use crate::resource_flavor::Flavors;
use crate::selectors;

/// Additions of the flavors of one pod set, in the API's terms.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlavorInfo {
    /// Name of the pod set.
    pub name: String,
    /// Count of the pod set.
    pub count: i64,
    /// Node labels.
    pub labels: BTreeMap<String, String>,
    /// Tolerations.
    pub tolerations: Vec<meta::Toleration>,
    /// The clusters that all of the flavors are bound to; `None` if no flavor is bound.
    pub clusters: Option<Vec<String>>,
}

impl FlavorInfo {
    /// A pod set with two flavors runs on the clusters of both.
    fn bind(&mut self, clusters: &[String]) {
        match &mut self.clusters {
            Some(known) => known.retain(|one| clusters.contains(one)),
            None => self.clusters = Some(clusters.to_vec()),
        }
    }
}

/// Converts to the engine's terms.
#[must_use]
pub fn assigned_pod_set(added: &FlavorInfo) -> AssignedPodSet {
    AssignedPodSet {
        count: added.count,
        labels: selectors::pairs(&added.labels),
        tolerations: selectors::tolerations(&added.tolerations),
        nodes: Vec::new(),
        clusters: added
            .clusters
            .as_ref()
            .map(|all| all.iter().map(|one| one.as_str().into()).collect()),
    }
}

impl Flavors {
    /// Additions of an assignment's flavors, by pod set. A deleted flavor adds nothing.
    pub(crate) fn assigned_pod_sets(
        &self,
        pod_sets: &[engine::PodSetFlavorAssignment],
    ) -> Vec<AssignedPodSet> {
        let one = |pod_set: &engine::PodSetFlavorAssignment| {
            let ids = pod_set.flavor_assignments.iter().map(|choice| choice.flavor);
            let flavors = ids.filter_map(|id| self.name(id));
            assigned_pod_set(&self.sum_flavors("", pod_set.count, flavors))
        };
        pod_sets.iter().map(one).collect()
    }

    /// Additions of a recorded admission's flavors, in the engine's terms. An elastic Workload that has shrunk has fewer pods than
    /// were admitted.
    pub(crate) fn admitted_pod_sets(
        &self,
        admission: &Admission,
        sets: &[PodSet],
    ) -> Vec<AssignedPodSet> {
        let count = |name: &str| {
            let set = sets.iter().find(|set| set.name == name);
            set.map_or(i64::MAX, |set| i64::from(set.count.unwrap_or(1)))
        };
        let mut added = self.flavor_info(admission);
        added.iter_mut().for_each(|one| one.count = one.count.min(count(&one.name)));
        added.iter().map(assigned_pod_set).collect()
    }

    /// Additions of a recorded admission's flavors, in the API's terms.
    pub(crate) fn flavor_info(&self, admission: &Admission) -> Vec<FlavorInfo> {
        let one = |pod_set: &PodSetAssignment| {
            let flavors = pod_set.flavors.values().map(String::as_str);
            self.sum_flavors(&pod_set.name, i64::from(pod_set.count.unwrap_or_default()), flavors)
        };
        admission.pod_set_assignments.iter().map(one).collect()
    }

    /// Merges flavors in the order of their names; the first value of a label wins.
    fn sum_flavors<'a>(
        &self,
        name: &str,
        count: i64,
        flavors: impl Iterator<Item = &'a str>,
    ) -> FlavorInfo {
        let mut names: Vec<&str> = flavors.collect();
        // Several resources may have the same flavor; sorted, the merge does not depend on their
        // order.
        names.sort_unstable();
        names.dedup();
        let mut added = FlavorInfo { name: name.to_owned(), count, ..FlavorInfo::default() };
        for flavor in names.into_iter().filter_map(|name| self.get(name)) {
            if let Some(clusters) = &flavor.clusters {
                added.bind(clusters);
            }
            for (key, value) in &flavor.labels {
                added.labels.entry(key.clone()).or_insert_with(|| value.clone());
            }
            for one in &flavor.tolerations {
                // Two flavors may give the same toleration.
                if !added.tolerations.contains(one) {
                    added.tolerations.push(one.clone());
                }
            }
        }
        added
    }
}

#[cfg(test)]
mod tests {
    use engine::Names;
    use serde_json::json;

    use crate::{Index, IndexConfig};

    #[test]
    fn flavors_bind_pod_sets_to_the_clusters_that_all_of_them_name() {
        let (mut index, mut names) = (Index::new(IndexConfig::default()), Names::default());
        let mut allowed = |name: &str, clusters: Option<&str>| {
            let annotations = clusters.map(|value| json!({"sluice.dev/clusters": value}));
            let flavor = json!({"metadata": {"annotations": annotations}});
            let flavor = serde_json::from_value(flavor).expect("a flavor");
            index.resource_flavor(&mut names, name, Some(&flavor));
            let set = json!({"name": "main", "count": 1, "flavors": {"cpu": "f", "memory": "g"}});
            let admission = json!({"clusterQueue": "q", "podSetAssignments": [set]});
            let admission = serde_json::from_value(admission).expect("an admission");
            let assigned = index.admitted_pod_sets(&admission, &[]);
            ["east", "west", "north"].map(|cluster| assigned[0].may_run_on(cluster))
        };
        assert_eq!(allowed("f", None), [true, true, true]);
        assert_eq!(allowed("f", Some("east, west,")), [true, true, false]);
        assert_eq!(allowed("g", Some("west,north")), [false, true, false]);
        assert_eq!(allowed("g", Some("")), [false, false, false], "bound to no cluster");
    }
}
