//! What an agent runs for managers: the worker's administrator decides, not the manager (docs/reference/dispatch.md §4).

use ::jobs::Job;
use crds::{
    names::reasons::{KIND_NOT_ALLOWED, NAMESPACE_NOT_ALLOWED},
    v1alpha1::JobKind,
};
use k8s_openapi::Resource;
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
    /// The kinds of jobs that run here, of those that are built in.
    pub(crate) fn kinds(&self) -> Vec<JobKind> {
        let known = JobKind {
            group: Job::GROUP.to_owned(),
            version: Job::VERSION.to_owned(),
            kind: Job::KIND.to_owned(),
        };
        let allowed = |kind: &JobKind| self.kinds.as_ref().is_none_or(|all| all.contains(kind));
        Some(known).filter(allowed).into_iter().collect()
    }

    /// Why a clone is refused: reason and message of its condition; `None` if it runs here.
    pub(super) fn refusal(&self, key: &Key) -> Option<(&'static str, String)> {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        if self.namespaces.as_ref().is_some_and(|all| !all.iter().any(|one| one == namespace)) {
            let message = format!("this worker does not run workloads of namespace {namespace}");
            return Some((NAMESPACE_NOT_ALLOWED, message));
        }
        // A clone does not carry the kind of its job, and there is only one kind.
        let message = || format!("this worker does not run jobs of kind {}", Job::KIND);
        self.kinds().is_empty().then(|| (KIND_NOT_ALLOWED, message()))
    }
}
