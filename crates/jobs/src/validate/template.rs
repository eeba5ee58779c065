//! Annotations of a pod template with their field paths.

use std::collections::BTreeMap;

/// A pod template whose annotations are validated.
#[derive(Clone, Debug)]
pub struct AnnotatedTemplate<'a> {
    /// Field path of the template's metadata.
    pub path: String,
    /// Annotations, if present.
    pub annotations: Option<&'a BTreeMap<String, String>>,
    /// Count of its pod set.
    pub count: i32,
}

impl AnnotatedTemplate<'_> {
    /// Value of an annotation.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.annotations?.get(key).map(String::as_str)
    }

    /// Field path of the annotations.
    #[must_use]
    pub fn field(&self) -> String {
        format!("{}.annotations", self.path)
    }

    /// Field path of one annotation.
    #[must_use]
    pub fn field_of(&self, key: &str) -> String {
        format!("{}.annotations[{key}]", self.path)
    }
}
