//! Variants of concurrent admission: Workloads that try one flavor for their parent. Source: docs/reference/kueue.md
//! §2.10, §4.13.

use crds::names::annotations::ALLOWED_RESOURCE_FLAVORS;
use crds::v1beta2::Workload;
use engine::Names;
use engine::ids::FlavorId;

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
}
