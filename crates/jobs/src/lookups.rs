//! Other objects that the pod sets of a job need: a runtime with its pod templates, a live cluster.
//!
//! A kind declares a [`LookupRule`] for each. A [`NeededObject`] is what a job names; [`FoundObjects`] are the ones that a watch
//! has observed. [`GenericJob::with_objects`](crate::GenericJob::with_objects) completes a job with them; a job that names an
//! object that was not found is [unresolved](crate::GenericJob::unresolved) and has no pod sets. No decision reads an object
//! itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use kube_core::DynamicObject;
use serde::Deserialize;
use serde_json::Value;

use crate::{Gvk, Kinds, declared::probe::Probe, pointer::Pointer};

/// An object that jobs of a kind name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LookupRule {
    /// Name by which pod sets of the kind refer to the object.
    pub name: String,
    /// API group of the object; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural resource name.
    pub plural: String,
    /// Whether the kind has no namespaces. Otherwise the object is in the namespace of the job.
    #[serde(default)]
    pub cluster_scoped: bool,
    /// The field of the job with the name of the object. A job without a name needs no object.
    pub at: Pointer,
    /// Only jobs for which this holds need the object; all by default.
    #[serde(default)]
    pub when: Option<Probe>,
    /// Whether the pod sets are known without the object. Without effect if templates stand in it.
    #[serde(default)]
    pub optional: bool,
    /// What the object is called in refusals, if that is not the name of the rule.
    #[serde(default)]
    pub called: Option<String>,
    /// Whether a new job is refused without the object.
    #[serde(default)]
    pub required: bool,
}

/// A kind of objects that jobs need.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LookupKind {
    /// Group, version and kind.
    pub gvk: Gvk,
    /// Plural resource name.
    pub plural: String,
    /// Whether the kind has no namespaces.
    pub cluster_scoped: bool,
}

/// An object that a job needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NeededObject {
    /// Its kind.
    pub kind: LookupKind,
    /// Its namespace; `None` if the kind has none.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// Why an object was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupFailure {
    /// It does not exist.
    Absent,
    /// The cluster does not serve its kind.
    NotServed,
    /// This process may not list its kind.
    Forbidden,
}

/// Observed objects, and kinds that cannot be observed.
#[derive(Clone, Debug, Default)]
pub struct FoundObjects {
    objects: BTreeMap<NeededObject, Arc<DynamicObject>>,
    failures: BTreeMap<LookupKind, LookupFailure>,
}

impl LookupRule {
    /// The kind of the object.
    #[must_use]
    pub fn object_kind(&self) -> LookupKind {
        let Self { group, version, kind, .. } = self.clone();
        let gvk = Gvk { group, version, kind };
        LookupKind { gvk, plural: self.plural.clone(), cluster_scoped: self.cluster_scoped }
    }

    /// The refusal of a new job without the object.
    #[must_use]
    pub fn refusal(&self, needed: &NeededObject) -> String {
        let called = self.called.as_ref().unwrap_or(&self.name);
        format!("{called} '{}' not found", needed.name)
    }

    /// The object that a job in a namespace needs by this rule, if any.
    #[must_use]
    pub fn needed(&self, job: &Value, namespace: Option<&str>) -> Option<NeededObject> {
        let name = self.at.text(job).filter(|name| !name.is_empty())?;
        let applies = self.when.as_ref().is_none_or(|when| when.holds(job));
        applies.then(|| NeededObject {
            kind: self.object_kind(),
            namespace: namespace.filter(|_| !self.cluster_scoped).map(str::to_owned),
            name: name.to_owned(),
        })
    }
}

impl Kinds {
    /// Kinds of objects that jobs of these kinds need.
    #[must_use]
    pub fn looked_up(&self) -> BTreeSet<LookupKind> {
        self.iter().flat_map(|kind| kind.lookups()).map(LookupRule::object_kind).collect()
    }
}

impl FoundObjects {
    /// Records an object; `None` if it is gone.
    pub fn observe(&mut self, needed: NeededObject, object: Option<Arc<DynamicObject>>) {
        match object {
            Some(object) => self.objects.insert(needed, object),
            None => self.objects.remove(&needed),
        };
    }

    /// Records that objects of a kind cannot be observed, or can be again.
    pub fn observe_failure(&mut self, kind: &LookupKind, failure: Option<LookupFailure>) {
        match failure {
            Some(failure) => self.failures.insert(kind.clone(), failure),
            None => self.failures.remove(kind),
        };
    }

    /// An object.
    ///
    /// # Errors
    /// If it was not found.
    pub fn get(&self, needed: &NeededObject) -> Result<&Arc<DynamicObject>, LookupFailure> {
        let failure = || self.failures.get(&needed.kind).copied();
        // Objects of a hidden kind are those of the last list.
        self.objects.get(needed).ok_or_else(|| failure().unwrap_or(LookupFailure::Absent))
    }
}

/// `Runtime.example.com`, or `Runtime` of the core group.
impl fmt::Display for LookupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gvk { group, kind, .. } = &self.gvk;
        if group.is_empty() { f.write_str(kind) } else { write!(f, "{kind}.{group}") }
    }
}

impl fmt::Display for NeededObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\"", self.kind, self.name)
    }
}

impl LookupFailure {
    /// The message about an object.
    #[must_use]
    pub fn message(self, needed: &NeededObject) -> String {
        let kind = &needed.kind;
        match self {
            Self::Absent => format!("{needed} does not exist"),
            Self::NotServed => {
                format!("{needed} does not exist: the cluster does not serve {kind}")
            }
            Self::Forbidden => format!("{needed} cannot be read: listing {kind} is forbidden"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule() -> LookupRule {
        serde_json::from_value(json!({
            "name": "runtime", "group": "example.com", "version": "v1", "kind": "Runtime",
            "plural": "runtimes", "at": "/spec/runtime/name",
            "when": { "in": { "at": "/spec/runtime/kind", "values": ["", "Runtime"] } },
        }))
        .expect("a rule decodes")
    }

    #[test]
    fn a_job_needs_what_it_names() {
        let needed = |runtime: Value| {
            let job = json!({ "spec": { "runtime": runtime } });
            rule().needed(&job, Some("ns")).map(|one| (one.namespace, one.name))
        };
        let base = Some((Some("ns".to_owned()), "base".to_owned()));
        assert_eq!(needed(json!({ "name": "base" })), base);
        assert_eq!(needed(json!({ "name": "base", "kind": "Runtime" })), base);
        assert_eq!(needed(json!({ "name": "base", "kind": "ClusterRuntime" })), None);
        assert_eq!(needed(json!({ "name": "" })), None);
        assert_eq!(needed(json!(null)), None);
        let cluster_scoped = LookupRule { cluster_scoped: true, when: None, ..rule() };
        let job = json!({ "spec": { "runtime": { "name": "base" } } });
        let needed = cluster_scoped.needed(&job, Some("ns")).expect("an object");
        assert_eq!(needed.namespace, None);
    }

    #[test]
    fn what_was_not_found_is_explained() {
        let job = json!({ "spec": { "runtime": { "name": "base" } } });
        let needed = rule().needed(&job, Some("ns")).expect("an object");
        let mut found = FoundObjects::default();
        let message = |found: &FoundObjects| {
            found.get(&needed).map_or_else(|failure| failure.message(&needed), |_| String::new())
        };
        assert_eq!(message(&found), "Runtime.example.com \"base\" does not exist");
        found.observe_failure(&needed.kind, Some(LookupFailure::Forbidden));
        assert_eq!(
            message(&found),
            "Runtime.example.com \"base\" cannot be read: listing Runtime.example.com is forbidden"
        );
        let object = serde_json::from_value(json!({ "metadata": { "name": "base" } }));
        found.observe(needed.clone(), Some(Arc::new(object.expect("an object"))));
        assert_eq!(message(&found), "", "what was listed before is still known");
        found.observe(needed.clone(), None);
        found.observe_failure(&needed.kind, None);
        assert_eq!(message(&found), "Runtime.example.com \"base\" does not exist");
    }
}
