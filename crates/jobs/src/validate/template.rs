//! The annotations of a pod template, as a refusal names them.

use std::collections::BTreeMap;

/// A pod template whose annotations are looked at.
#[derive(Clone, Debug)]
pub struct AnnotatedTemplate<'a> {
    /// Path of the template's metadata.
    pub path: String,
    /// Its annotations, where it has any.
    pub annotations: Option<&'a BTreeMap<String, String>>,
    /// Number of its pods.
    pub count: i32,
}

impl AnnotatedTemplate<'_> {
    /// An annotation.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.annotations?.get(key).map(String::as_str)
    }

    /// Path of the annotations.
    #[must_use]
    pub fn field(&self) -> String {
        format!("{}.annotations", self.path)
    }

    /// Path of one annotation.
    #[must_use]
    pub fn field_of(&self, key: &str) -> String {
        format!("{}.annotations[{key}]", self.path)
    }
}
