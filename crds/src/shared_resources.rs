//! Requests and limits, of which equal ones are kept once.
//!
//! The containers of a queue have few different requests, and a map of one quantity takes 800 bytes. Decoded requirements of one text
//! share their memory, and so do clones. A change copies them first, so that sharing is never observed.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, LazyLock, Mutex},
};

use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    pod::ResourceRequirements,
    shared_by_text::{SharedByText, share_decoded},
};

/// Requirements that may be shared. Dereferences to [`ResourceRequirements`].
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
#[derive(Clone, Debug, Default)]
pub struct SharedResources(Arc<ResourceRequirements>);

/// The decoded requirements of a process. They only save memory: no behaviour depends on what is here.
static SHARED: LazyLock<Mutex<SharedByText<ResourceRequirements>>> = LazyLock::new(Mutex::default);

impl Deref for SharedResources {
    type Target = ResourceRequirements;

    fn deref(&self) -> &ResourceRequirements {
        &self.0
    }
}

impl DerefMut for SharedResources {
    fn deref_mut(&mut self) -> &mut ResourceRequirements {
        Arc::make_mut(&mut self.0)
    }
}

impl From<ResourceRequirements> for SharedResources {
    fn from(requirements: ResourceRequirements) -> Self {
        Self(Arc::new(requirements))
    }
}

impl PartialEq for SharedResources {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Serialize for SharedResources {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharedResources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let requirements = ResourceRequirements::deserialize(deserializer)?;
        Ok(Self(share_decoded(&SHARED, requirements)))
    }
}

#[cfg(test)]
mod tests {
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
