//! Lists of objects that stay in memory, without room for more items.
//!
//! The length of a list is not known while it is read, and the first item gets the room of four. Most lists of a Workload or a pod
//! have one item, and these items are its largest parts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};

/// Reads a list.
///
/// # Errors
/// If an item does not decode.
pub fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let mut items = Vec::deserialize(deserializer)?;
    items.shrink_to_fit();
    Ok(items)
}

/// Reads a list that may be `null`.
///
/// # Errors
/// If an item does not decode.
pub fn optional_list<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let mut items: Option<Vec<T>> = Option::deserialize(deserializer)?;
    shrink(items.as_mut());
    Ok(items)
}

/// Reads the metadata of an object.
///
/// # Errors
/// If a field does not decode.
pub fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let mut metadata = ObjectMeta::deserialize(deserializer)?;
    shrink(metadata.owner_references.as_mut());
    shrink(metadata.finalizers.as_mut());
    Ok(metadata)
}

fn shrink<T>(items: Option<&mut Vec<T>>) {
    if let Some(items) = items {
        items.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::v1beta2::Workload;

    #[test]
    fn a_decoded_workload_has_no_room_for_more_items() {
        let template = json!({"spec": {
            "containers": [{"name": "main", "volumeMounts": [{"name": "token"}]}],
            "tolerations": [{"key": "a"}], "volumes": [{"name": "token"}],
        }});
        let condition = json!({
            "type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u"});
        let text = json!({
            "metadata": {"name": "a", "ownerReferences": [owner], "finalizers": ["f"]},
            "spec": {"podSets": [{"name": "main", "count": 1, "template": template}]},
            "status": {"conditions": [condition]},
        })
        .to_string();
        let one: Workload = serde_json::from_str(&text).expect("a Workload");
        let spec = one.spec.pod_sets[0].template.spec.as_deref().expect("a pod spec");
        let mounts = spec.containers[0].volume_mounts.as_ref().expect("mounts");
        let capacities = [
            one.spec.pod_sets.capacity(),
            one.status.conditions.capacity(),
            one.metadata.owner_references.as_ref().expect("an owner").capacity(),
            one.metadata.finalizers.as_ref().expect("a finalizer").capacity(),
            spec.containers.capacity(),
            spec.tolerations.capacity(),
            spec.volumes.as_ref().expect("volumes").capacity(),
            mounts.capacity(),
        ];
        assert_eq!(capacities, [1; 8]);
    }
}
