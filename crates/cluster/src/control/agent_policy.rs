//! What an agent runs for managers: the worker's administrator decides, not the manager (docs/reference/dispatch.md §4).

use ::jobs::{Gvk, Kind, Kinds};
use crds::{
    names::reasons::{KIND_NOT_ALLOWED, NAMESPACE_NOT_ALLOWED},
    v1alpha1::JobKind,
    v1beta2::Workload,
};
use runtime::watch::Key;

/// Namespaces and kinds of jobs that run here; all of them when unset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentPolicy {
    /// Namespaces.
    pub namespaces: Option<Vec<String>>,
    /// Kinds of jobs.
    pub kinds: Option<Vec<JobKind>>,
}

impl AgentPolicy {
    /// The kinds of jobs that run here, of those that are known.
    #[must_use]
    pub fn allowed(&self, known: &Kinds) -> Kinds {
        let is_allowed =
            |kind: &&Kind| self.kinds.as_ref().is_none_or(|all| all.contains(&job_kind(kind)));
        Kinds::new(known.iter().filter(is_allowed).cloned())
    }

    /// Why a clone is refused: reason and message of its condition; `None` if it runs here. `allowed` are the kinds that do.
    pub(super) fn refusal(
        &self,
        key: &Key,
        clone: &Workload,
        allowed: &Kinds,
    ) -> Option<(&'static str, String)> {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        if self.namespaces.as_ref().is_some_and(|all| !all.iter().any(|one| one == namespace)) {
            let message = format!("this worker does not run workloads of namespace {namespace}");
            return Some((NAMESPACE_NOT_ALLOWED, message));
        }
        let refused = |what: &str| {
            Some((KIND_NOT_ALLOWED, format!("this worker does not run jobs of kind {what}")))
        };
        match index::job_kind(clone) {
            // The clone of an upstream manager does not name the kind of its job.
            None if allowed.iter().next().is_none() => refused("any"),
            None => None,
            Some(gvk) => {
                let api_version = Gvk::api_version_of(&gvk.group, &gvk.version);
                let is_allowed = allowed.find(&api_version, &gvk.kind).is_some();
                if is_allowed { None } else { refused(&gvk.kind) }
            }
        }
    }
}

/// A kind as reports and policies name it.
pub(super) fn job_kind(kind: &Kind) -> JobKind {
    JobKind {
        group: kind.group().to_owned(),
        version: kind.version().to_owned(),
        kind: kind.name().to_owned(),
    }
}
