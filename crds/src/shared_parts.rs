//! Parts of pod templates of which equal ones are kept once.
//!
//! The templates of a queue have few different requests and labels, and a map takes the room of eleven entries: one quantity takes
//! 800 bytes. Decoded parts of one text share their memory, and so do clones. Annotations are shared apart from the labels, which name
//! the job. A change copies the part first, so that sharing is never observed.

use crate::{
    pod::{PodMetadata, ResourceRequirements},
    shared::Shared,
    shared_by_text::share_parts,
};

/// Requirements that may be shared.
///
/// ```
/// use crds::pod::Container;
///
/// let text = r#"{"name": "main", "resources": {"requests": {"cpu": "1"}}}"#;
/// let one: Container = serde_json::from_str(text)?;
/// let mut other: Container = serde_json::from_str(text)?;
/// assert_eq!(one, other);
/// other.resources.get_or_insert_default().requests.clear();
/// assert_ne!(one, other);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub type SharedResources = Shared<ResourceRequirements>;

/// Labels and annotations of a template that may be shared.
pub type SharedPodMetadata = Shared<PodMetadata>;

share_parts!(ResourceRequirements, PodMetadata);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::pod::PodTemplate;

    fn decode(requirements: Value) -> SharedResources {
        serde_json::from_value(requirements).expect("requirements")
    }

    #[test]
    fn requirements_of_one_text_are_one_until_one_changes() {
        let [one, mut other] = [(); 2].map(|()| decode(json!({"requests": {"cpu": "500m"}})));
        assert!(Arc::ptr_eq(&one.0, &other.0));
        other.limits = one.requests.clone();
        assert!(one.limits.is_empty() && one != other);
    }

    #[test]
    fn equal_quantities_keep_their_texts() {
        let [one, other] = ["1024", "1Ki"].map(|text| decode(json!({"limits": {"memory": text}})));
        assert_eq!(one, other, "by value");
        let text = serde_json::to_value(&other).expect("it encodes");
        assert_eq!(text, json!({"limits": {"memory": "1Ki"}}));
    }

    #[test]
    fn templates_share_equal_labels() {
        let text = json!({"metadata": {"labels": {"app": "a"}}}).to_string();
        let decode = || serde_json::from_str::<PodTemplate>(&text).expect("a template");
        let [one, other] = [(); 2].map(|()| decode().metadata.expect("metadata"));
        assert!(Arc::ptr_eq(&one.0, &other.0));
    }

    #[test]
    fn templates_of_different_labels_share_equal_annotations() {
        let decode = |job: &str| {
            let metadata = json!({"annotations": {"run": "600"}, "labels": {"job": job}});
            let template: PodTemplate =
                serde_json::from_value(json!({ "metadata": metadata })).expect("a template");
            template.metadata.expect("metadata")
        };
        let (one, mut other) = (decode("a"), decode("b"));
        assert!(Arc::ptr_eq(&one.annotations.0, &other.annotations.0));
        assert_ne!(one, other);
        other.annotations.clear();
        assert_eq!(one.annotations.len(), 1);
        assert_eq!(
            serde_json::to_value(&other).expect("it encodes"),
            json!({"labels": {"job": "b"}})
        );
    }
}
