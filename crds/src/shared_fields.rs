//! Fields of pods without a type of their own, of which equal ones are kept once.
//!
//! The fields of one pod differ from those of others mostly in names: each has a volume for its token with a random name. A map of
//! JSON costs some ten kilobytes per pod. Maps of one text share their memory, and so do clones. A change copies the map first,
//! so that sharing is never observed.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, LazyLock, Mutex},
};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::shared_by_text::{SharedByText, share_decoded};

/// Fields that may be shared. Dereferences to a map.
///
/// ```
/// use crds::pod::SharedFields;
///
/// let text = r#"{"image": "main", "env": []}"#;
/// let one: SharedFields = serde_json::from_str(text)?;
/// let mut other: SharedFields = serde_json::from_str(text)?;
/// assert_eq!(one, other);
/// other.remove("env");
/// assert_eq!(one.len(), 2);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SharedFields(Option<Arc<Map<String, Value>>>);

static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// The decoded fields of a process. They only save memory: no behaviour depends on what is here.
static SHARED: LazyLock<Mutex<SharedByText<Map<String, Value>>>> = LazyLock::new(Mutex::default);

impl Deref for SharedFields {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Map<String, Value> {
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for SharedFields {
    fn deref_mut(&mut self) -> &mut Map<String, Value> {
        Arc::make_mut(self.0.get_or_insert_default())
    }
}

impl FromIterator<(String, Value)> for SharedFields {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(fields: I) -> Self {
        let fields = Map::from_iter(fields);
        Self((!fields.is_empty()).then(|| Arc::new(fields)))
    }
}

impl PartialEq for SharedFields {
    fn eq(&self, other: &Self) -> bool {
        let same = self.0.as_ref().zip(other.0.as_ref()).is_some_and(|(a, b)| Arc::ptr_eq(a, b));
        same || **self == **other
    }
}

impl Serialize for SharedFields {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharedFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        if fields.is_empty() {
            return Ok(Self(None));
        }
        Ok(Self(Some(share_decoded(&SHARED, fields))))
    }
}

/// An item of a list with a name: a volume, or a mount of one. The others of its fields may be shared.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct NamedItem {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: SharedFields,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pod::PodSpec;

    fn spec(name: &str) -> PodSpec {
        let mount = json!({"name": name, "mountPath": "/token", "readOnly": true});
        let spec = json!({
            "containers": [{"name": "main", "image": "main", "volumeMounts": [mount]}],
            "volumes": [{"name": name, "projected": {"sources": [{"configMap": {"name": "ca"}}]}}],
            "restartPolicy": "Never",
        });
        let decoded: PodSpec = serde_json::from_value(spec.clone()).expect("a pod spec");
        assert_eq!(serde_json::to_value(&decoded).expect("encodes"), spec);
        decoded
    }

    fn shared(one: &SharedFields, other: &SharedFields) -> bool {
        one.0.as_ref().zip(other.0.as_ref()).is_some_and(|(one, other)| Arc::ptr_eq(one, other))
    }

    #[test]
    fn pods_that_differ_in_the_name_of_a_volume_share_all_other_fields() {
        let (one, other) = (spec("token-a"), spec("token-b"));
        let volume = |spec: &PodSpec| spec.volumes.as_ref().expect("volumes")[0].rest.clone();
        let mount = |spec: &PodSpec| {
            spec.containers[0].volume_mounts.as_ref().expect("mounts")[0].rest.clone()
        };
        assert!(shared(&one.rest, &other.rest) && shared(&volume(&one), &volume(&other)));
        assert!(shared(&one.containers[0].rest, &other.containers[0].rest));
        assert!(shared(&mount(&one), &mount(&other)));
        assert_ne!(one, other);
    }

    #[test]
    fn a_change_of_one_is_not_seen_by_others() {
        let (mut one, other) = (spec("token"), spec("token"));
        one.rest.insert("nodeName".to_owned(), json!("n"));
        assert!(!other.rest.contains_key("nodeName") && one != other);
        one.rest.remove("nodeName");
        assert_eq!(one, other);
    }

    #[test]
    fn absent_and_null_lists_decode() {
        for text in ["{}", r#"{"volumes": null, "containers": [{"volumeMounts": null}]}"#] {
            let spec: PodSpec = serde_json::from_str(text).expect("a pod spec");
            assert_eq!(spec.volumes, None);
        }
        let empty = json!({"volumes": []});
        let spec: PodSpec = serde_json::from_value(empty.clone()).expect("a pod spec");
        assert_eq!(serde_json::to_value(spec).expect("encodes"), empty);
        let unnamed = json!({"volumes": [{"emptyDir": {}}]});
        let spec: PodSpec = serde_json::from_value(unnamed.clone()).expect("a pod spec");
        assert_eq!(serde_json::to_value(spec).expect("encodes"), unnamed);
    }
}
