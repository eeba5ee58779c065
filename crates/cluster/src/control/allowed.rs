//! What a thin worker runs for managers: it is the worker's to say, not the manager's (docs/reference/dispatch.md §4).

use ::jobs::Job;
use crds::{
    names::{
        conditions::{FINISHED, REFUSED},
        reasons::{KIND_NOT_ALLOWED, NAMESPACE_NOT_ALLOWED},
    },
    v1alpha1::JobKind,
    v1beta2::Workload,
};
use index::status::{StatusStamp, set};
use jiff::Timestamp;
use k8s_openapi::Resource;
use runtime::{watch::Key, write::Write};
use serde_json::json;

use super::{Control, Order, Purpose, Subject, Ticket, record::is, workloads::preconditions};

/// Who says that a worker does not take a clone.
const MANAGER: &str = "sluice-agent";

/// Namespaces and kinds of jobs that are run; all of them when unset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Namespaces.
    pub namespaces: Option<Vec<String>>,
    /// Kinds of jobs.
    pub kinds: Option<Vec<JobKind>>,
}

impl Allowed {
    /// The kinds of jobs that run here, of those that this version knows.
    pub(crate) fn kinds(&self) -> Vec<JobKind> {
        let known = JobKind {
            group: Job::GROUP.to_owned(),
            version: Job::VERSION.to_owned(),
            kind: Job::KIND.to_owned(),
        };
        let allowed = |kind: &JobKind| self.kinds.as_ref().is_none_or(|all| all.contains(kind));
        Some(known).filter(allowed).into_iter().collect()
    }

    /// Why a clone in this namespace is not run; reason and message.
    fn against(&self, key: &Key) -> Option<(&'static str, String)> {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        if self.namespaces.as_ref().is_some_and(|all| !all.iter().any(|one| one == namespace)) {
            let message = format!("this worker does not run workloads of namespace {namespace}");
            return Some((NAMESPACE_NOT_ALLOWED, message));
        }
        // A clone does not say of which kind its job is, and there is one kind.
        let message = || format!("this worker does not run jobs of kind {}", Job::KIND);
        self.kinds().is_empty().then(|| (KIND_NOT_ALLOWED, message()))
    }
}

impl Control {
    /// Whether a thin worker does not run a clone.
    pub(super) fn refuses(&self, key: &Key) -> bool {
        self.settings.allowed.against(key).is_some()
    }

    /// Tells the manager that a clone is not run here, so that it looks elsewhere.
    pub(super) fn refusal(&self, key: &Key, now: Timestamp) -> Option<Order> {
        let (reason, message) = self.settings.allowed.against(key)?;
        let workload = self.workloads.get(key)?.object();
        if is(workload, REFUSED) || is(workload, FINISHED) {
            return None;
        }
        let generation = workload.metadata.generation.unwrap_or_default();
        let mut conditions = Vec::new();
        set(&mut conditions, REFUSED, true, reason, &message, StatusStamp { now, generation });
        let fields = json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": preconditions(key, workload),
            "status": { "conditions": conditions },
        });
        let ticket = Ticket::home(Subject::Workload, key, Purpose::Refuse);
        Order::of(ticket, |purpose, key| {
            Write::apply::<Workload>(purpose, key, Some("status"), MANAGER, &fields)
        })
    }
}
