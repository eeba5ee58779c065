//! Groups of pods that copies of an elastic job on workers resize (docs/reference/multikueue.md §2.13).

use crds::v1beta2::PodSet;
use serde_json::Value;

use super::{DeclaredJob, declared_pod_set::DeclaredPodSet};
use crate::group_sizes::{GroupSize, GroupSizes};

impl DeclaredJob {
    /// The groups that copies resize; `None` if the kind has none.
    pub(super) fn group_sizes(&self) -> Option<GroupSizes> {
        let rule = self.fields()?.remote.resized_groups.as_ref()?;
        let elements = rule.each.get(&self.object).and_then(Value::as_array);
        let elements = elements.map(Vec::as_slice).unwrap_or_default().iter().enumerate();
        let group = |(at, element): (usize, &Value)| {
            let place = format!("{}/", rule.each.element(at));
            let is_there = |set: &&DeclaredPodSet| set.at.to_string().starts_with(&place);
            let set = self.pod_sets.iter().find(is_there)?;
            Some(GroupSize {
                pod_set: set.name.clone(),
                pods: set.count(),
                pods_per_replica: set.pods_per_replica,
                element: element.clone(),
            })
        };
        let groups = elements.map(group).collect::<Option<Vec<GroupSize>>>()?;
        Some(GroupSizes { rule: rule.clone(), groups })
    }

    /// Gives the groups the counts of these pod sets: the job may have another size by now than its Workload.
    pub(super) fn set_group_sizes(&mut self, pod_sets: &[PodSet]) {
        let Some(sizes) = self.group_sizes() else { return };
        let granted = |name: &str| pod_sets.iter().find(|set| set.name == name)?.count;
        let list = sizes.granted(granted);
        sizes.rule.each.set(&mut self.object, list);
        self.read_again();
    }
}
