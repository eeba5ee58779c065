//! Variants of concurrent admission: Workloads that try one flavor for their parent. Source: docs/reference/kueue.md
//! §2.10, §4.13.

use crds::names::{annotations::ALLOWED_RESOURCE_FLAVORS, labels::CONCURRENT_ADMISSION_PARENT};
use crds::v1beta2::Workload;
use engine::Names;
use engine::ids::FlavorId;

/// API version and kind of a variant's owner.
const OWNER: (&str, &str) = ("kueue.x-k8s.io/v1beta2", "Workload");

/// Whether the Workload is a parent; its variants are queued instead.
pub(super) fn is_parent(workload: &Workload) -> bool {
    let labels = workload.metadata.labels.as_ref();
    labels.and_then(|all| all.get(CONCURRENT_ADMISSION_PARENT)).is_some_and(|one| one == "true")
}

/// Uid of the parent, if the Workload is a variant.
pub(super) fn parent(workload: &Workload) -> Option<&str> {
    let owners = workload.metadata.owner_references.as_deref().unwrap_or_default();
    let mut parents = owners.iter().filter(|one| (&*one.api_version, &*one.kind) == OWNER);
    parents.next().map(|one| one.uid.as_str())
}

/// Allowed flavors, the variant's own first; `None` for all.
pub(super) fn allowed(names: &mut Names, workload: &Workload) -> Option<Vec<FlavorId>> {
    let text = workload.metadata.annotations.as_ref()?.get(ALLOWED_RESOURCE_FLAVORS)?;
    // An empty list allows no flavor; an absent annotation allows all.
    if text.trim().is_empty() {
        return Some(Vec::new());
    }
    Some(text.split(',').map(|name| names.flavors.intern(name.trim())).collect())
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "values are made for the call")]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(metadata: Value) -> Workload {
        serde_json::from_value(json!({"metadata": metadata})).expect("a Workload")
    }

    #[test]
    fn the_annotation_lists_the_allowed_flavors() {
        let mut names = Names::default();
        let mut allowed = |text: &str| {
            let metadata = json!({"annotations": {ALLOWED_RESOURCE_FLAVORS: text}});
            let all = allowed(&mut names, &of(metadata)).expect("said");
            all.iter().map(|&id| names.flavors.name(id).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(allowed("a100"), ["a100"]);
        assert_eq!(allowed(" h100 , a100"), ["h100", "a100"]);
        assert_eq!(allowed(" "), [""; 0]);
        assert_eq!(super::allowed(&mut names, &of(json!({}))), None);
    }

    #[test]
    fn the_owning_workload_is_the_parent() {
        let owner = |version: &str, kind: &str, uid: &str| json!({"apiVersion": version, "kind": kind, "name": "n", "uid": uid});
        let owners = json!([
            owner("batch/v1", "Job", "j"),
            owner("kueue.x-k8s.io/v1beta1", "Workload", "old"),
            owner("kueue.x-k8s.io/v1beta2", "Workload", "p"),
        ]);
        assert_eq!(parent(&of(json!({"ownerReferences": owners}))), Some("p"));
        assert_eq!(parent(&of(json!({}))), None);
        for (value, is) in [("true", true), ("false", false)] {
            assert_eq!(is_parent(&of(json!({"labels": {CONCURRENT_ADMISSION_PARENT: value}}))), is);
        }
    }
}
