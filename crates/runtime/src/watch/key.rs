//! The identity of an object within its kind.

use std::{fmt, sync::Arc};

use kube::Resource;

/// Namespace and name. Cheap to clone: an object has an entry in many maps, and all of them share the text of its key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Absent for cluster-scoped kinds.
    pub namespace: Option<Arc<str>>,
    /// The name.
    pub name: Arc<str>,
}

impl Key {
    /// The key of an object from the API server.
    #[must_use]
    pub fn of(object: &impl Resource) -> Self {
        let meta = object.meta();
        Self {
            namespace: meta.namespace.as_deref().map(Arc::from),
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
