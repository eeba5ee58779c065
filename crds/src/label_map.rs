//! Labels of a template, in little memory.
//!
//! The labels of a Job's template name the Job, so that no two templates share them. A map takes the room of eleven entries, some 550
//! bytes for one. A change makes a map and goes back to the small form.

use std::{collections::BTreeMap, mem};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Labels in the order of their keys.
///
/// ```
/// use crds::pod::LabelMap;
///
/// let mut labels: LabelMap = serde_json::from_str(r#"{"app": "a", "job": "b"}"#)?;
/// assert_eq!(labels.get("app"), Some("a"));
/// labels.edit(|map| map.remove("app"));
/// assert_eq!(serde_json::to_string(&labels)?, r#"{"job":"b"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelMap(Box<[(Box<str>, Box<str>)]>);

impl LabelMap {
    /// The value of a label.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(known, _)| (**known).cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    /// The number of labels.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no label.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Removes the labels that are not to be kept.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &str) -> bool) {
        self.0 =
            mem::take(&mut self.0).into_iter().filter(|(key, value)| keep(key, value)).collect();
    }

    /// Changes the labels as a map.
    pub fn edit<T>(&mut self, change: impl FnOnce(&mut BTreeMap<String, String>) -> T) -> T {
        let mut map = mem::take(self).into();
        let result = change(&mut map);
        *self = map.into();
        result
    }
}

impl From<BTreeMap<String, String>> for LabelMap {
    fn from(map: BTreeMap<String, String>) -> Self {
        Self(map.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}

impl From<LabelMap> for BTreeMap<String, String> {
    fn from(labels: LabelMap) -> Self {
        labels.0.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
    }
}

impl Serialize for LabelMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for LabelMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::<String, String>::deserialize(deserializer).map(Into::into)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    type Map = BTreeMap<String, String>;

    proptest! {
        /// It is a map by all that can be asked.
        #[test]
        fn it_has_the_entries_of_a_map(model in prop::collection::btree_map("[a-c]{0,2}", "[a-b]", 0..5), key in "[a-c]{0,2}") {
            let mut labels: LabelMap = serde_json::from_value(json!(model)).expect("labels");
            prop_assert_eq!(&labels, &LabelMap::from(model.clone()));
            prop_assert_eq!(json!(labels), json!(model));
            prop_assert_eq!(labels.get(&key), model.get(&key).map(String::as_str));
            prop_assert_eq!((labels.len(), labels.is_empty()), (model.len(), model.is_empty()));
            let mut changed = model;
            labels.retain(|known, value| *known < *key || value == "b");
            changed.retain(|known, value| *known < key || value == "b");
            changed.insert(key.clone(), "c".to_owned());
            labels.edit(|map| map.insert(key, "c".to_owned()));
            prop_assert_eq!(Map::from(labels), changed);
        }
    }

    #[test]
    fn two_entries_of_one_key_are_the_last_one() {
        let labels: LabelMap = serde_json::from_str(r#"{"a": "1", "a": "2"}"#).expect("labels");
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", "2")]);
    }
}
