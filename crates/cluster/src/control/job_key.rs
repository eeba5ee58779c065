//! The identity of a job: its kind, namespace and name. A Job and a JobSet of one name are two jobs.

use std::fmt;

use ::jobs::Kind;
use runtime::watch::Key;

/// The kind, namespace and name of a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobKey {
    /// Namespace and name.
    pub key: Key,
    /// The kind.
    pub kind: Kind,
}

impl JobKey {
    /// A job of this kind.
    #[must_use]
    pub fn new(kind: &Kind, key: &Key) -> Self {
        Self { key: key.clone(), kind: kind.clone() }
    }

    /// The key of another object in the namespace of the job.
    pub(crate) fn in_namespace(&self, name: &str) -> Key {
        Key { namespace: self.key.namespace.clone(), name: name.into() }
    }
}

/// `Job.v1.batch ns/train`.
impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.key)
    }
}
