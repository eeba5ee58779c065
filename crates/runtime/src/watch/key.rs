//! The identity of an object within its kind.

use std::fmt;

use kube::Resource;

/// Namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Absent for cluster-scoped kinds.
    pub namespace: Option<Box<str>>,
    /// The name.
    pub name: Box<str>,
}

impl Key {
    /// The key of an object from the API server.
    #[must_use]
    pub fn of(object: &impl Resource) -> Self {
        let meta = object.meta();
        Self {
            namespace: meta.namespace.as_deref().map(Box::from),
            name: meta.name.as_deref().unwrap_or_default().into(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}
