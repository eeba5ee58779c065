//! What a 404 says about the object of a request. Pure.
//!
//! An API server names the missing object in the details of its `Status`. Every other 404 comes from a program between, as the default
//! backend of an ingress, or is about the resource, which the API server does not serve, or does not serve yet while it starts.
//! None of them shows that the object is absent.

use kube::core::{ApiResource, Status};

use crate::watch::Key;

/// What is done with a 404 that does not name the object of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotFoundRule {
    /// A create has no object yet, and its outcome is unknown.
    Create,
    /// The outcome of a patch or a deletion is unknown.
    Change(NamedObject),
    /// A read is refused.
    Read(NamedObject),
}

/// An object as the details of a `Status` name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedObject {
    group: String,
    kind: String,
    plural: String,
    name: String,
}

/// What a 404 is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotFound {
    /// The object does not exist.
    Object,
    /// The namespace does not exist. For a create this means that the object cannot be created there.
    Namespace,
    /// Nothing is known of the kind of a create: it is not served, or a program between has answered.
    Create,
    /// Nothing is known of the object of a change.
    Change,
    /// Nothing is known of the object of a read.
    Read,
}

/// Whether a 404 to a read or a change of this object says that it is absent.
#[must_use]
pub fn is_absence(status: &Status, resource: &ApiResource, key: &Key) -> bool {
    status.code == 404 && NamedObject::new(resource, key).is_named_by(status)
}

impl NamedObject {
    pub(super) fn new(resource: &ApiResource, key: &Key) -> Self {
        let ApiResource { group, kind, plural, .. } = resource.clone();
        Self { group, kind, plural, name: key.name.to_string() }
    }

    /// Details without a kind or a group are those of an aggregated API server, which may leave them out.
    fn is_named_by(&self, status: &Status) -> bool {
        let fits = |found: &str, own: &str| found.is_empty() || found.eq_ignore_ascii_case(own);
        status.details.as_ref().is_some_and(|details| {
            let of_kind = fits(&details.kind, &self.plural) || fits(&details.kind, &self.kind);
            details.name == self.name && of_kind && fits(&details.group, &self.group)
        })
    }
}

impl NotFoundRule {
    /// What this 404 to the request is about.
    pub(crate) fn meaning(&self, status: &Status) -> NotFound {
        match self {
            Self::Change(object) | Self::Read(object) if object.is_named_by(status) => {
                NotFound::Object
            }
            _ if is_namespace(status) => NotFound::Namespace,
            Self::Create => NotFound::Create,
            Self::Change(_) => NotFound::Change,
            Self::Read(_) => NotFound::Read,
        }
    }
}

fn is_namespace(status: &Status) -> bool {
    status.details.as_ref().is_some_and(|details| details.kind == "namespaces")
}
