//! Requests and limits, of which equal ones are kept once.
//!
//! The containers of a queue have few different requests, and a map of one quantity takes 800 bytes. Decoded requirements of one text
//! share their memory, and so do clones. A change copies them first, so that sharing is never observed.

use std::sync::{LazyLock, Mutex};

use serde::{Deserialize, Deserializer};

use crate::{
    pod::ResourceRequirements,
    shared::Shared,
    shared_by_text::{SharedByText, share_decoded},
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

/// The decoded requirements of a process. They only save memory: no behaviour depends on what is here.
static SHARED: LazyLock<Mutex<SharedByText<ResourceRequirements>>> = LazyLock::new(Mutex::default);

impl<'de> Deserialize<'de> for SharedResources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let requirements = ResourceRequirements::deserialize(deserializer)?;
        Ok(Self(share_decoded(&SHARED, requirements)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

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
}
