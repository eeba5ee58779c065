//! Groups of pods that copies of an elastic job on workers resize (docs/reference/multikueue.md §2.13).

use serde_json::Value;

use super::{declared_pod_set::DeclaredPodSet, fields::JobFields};
use crate::group_sizes::{GroupSize, GroupSizes};

/// The groups that copies resize; `None` if the kind has none.
pub(super) fn group_sizes(
    fields: Option<&JobFields>,
    object: &Value,
    pod_sets: &[DeclaredPodSet],
) -> Option<GroupSizes> {
    let rule = fields?.remote.resized_groups.as_ref()?;
    let elements = rule.each.get(object).and_then(Value::as_array);
    let elements = elements.map(Vec::as_slice).unwrap_or_default().iter().enumerate();
    let group = |(at, element): (usize, &Value)| {
        let place = format!("{}/", rule.each.element(at));
        let is_there = |set: &&DeclaredPodSet| set.at.to_string().starts_with(&place);
        let set = pod_sets.iter().find(is_there)?;
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
