//! Maps of objects of which equal ones are kept once.
//!
//! The Workloads of a queue have few different requests and flavors, and a map takes the room of eleven entries: one quantity takes
//! 800 bytes. Decoded maps of one text share their memory, and so do
//! clones. A change copies the map first.

use std::collections::BTreeMap;

use crate::{quantity::Quantity, shared::Shared, shared_by_text::share_parts};

/// Amounts by resource that may be shared.
///
/// ```
/// use crds::v1beta2::PodSetRequest;
///
/// let text = r#"{"name": "main", "resources": {"cpu": "1"}}"#;
/// let one: PodSetRequest = serde_json::from_str(text)?;
/// let mut other: PodSetRequest = serde_json::from_str(text)?;
/// assert_eq!(one, other);
/// other.resources.clear();
/// assert_ne!(one, other);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub type SharedQuantities = Shared<BTreeMap<String, Quantity>>;

/// Names by resource that may be shared.
pub type SharedNames = Shared<BTreeMap<String, String>>;

share_parts!(BTreeMap<String, Quantity>, BTreeMap<String, String>);

/// Whether a map has no entry.
pub(crate) fn is_empty<V>(map: &Shared<BTreeMap<String, V>>) -> bool {
    map.is_empty()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use crate::v1beta2::Workload;

    #[test]
    fn workloads_share_equal_requests_usage_and_flavors() {
        let text = json!({"status": {
            "admission": {"podSetAssignments": [{"flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "1"}}]},
            "resourceRequests": [{"name": "main", "resources": {"cpu": "1"}}],
        }})
        .to_string();
        let [one, other] = [(); 2].map(|()| serde_json::from_str::<Workload>(&text).expect("one"));
        let parts = |of: &Workload| {
            let admission = of.status.admission.as_ref().expect("an admission");
            let assignment = &admission.pod_set_assignments[0];
            let requests = &of.status.resource_requests[0].resources.0;
            (assignment.flavors.0.clone(), assignment.resource_usage.0.clone(), requests.clone())
        };
        let (a, b) = (parts(&one), parts(&other));
        assert!(Arc::ptr_eq(&a.0, &b.0) && Arc::ptr_eq(&a.1, &b.1));
        assert!(Arc::ptr_eq(&a.1, &b.2), "requests and usage are maps of one type");
        assert_eq!(one, other);
    }
}
