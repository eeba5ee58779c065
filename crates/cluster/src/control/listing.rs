//! Which kinds were listed. Nothing is decided before every kind was listed once.

use std::collections::BTreeSet;

use ::jobs::{Kind, Kinds, lookups::LookupKind};

/// Kinds that every manager lists, beside those of jobs.
pub(crate) const MANAGER_KINDS: &[&str] = &[
    "Namespace",
    "LimitRange",
    "RuntimeClass",
    "PriorityClass",
    "WorkloadPriorityClass",
    "ResourceFlavor",
    "Cohort",
    "Topology",
    "Node",
    "Pod",
    "AdmissionCheck",
    "ProvisioningRequestConfig",
    "ProvisioningRequest",
    "PodTemplate",
    "ClusterQueue",
    "LocalQueue",
    "Workload",
];

/// Kinds that a manager lists that dispatches to workers.
pub(crate) const DISPATCH_KINDS: &[&str] =
    &["MultiKueueConfig", "MultiKueueCluster", "DispatchPolicy"];

/// Kinds that an agent lists, beside those of jobs.
pub(crate) const AGENT_KINDS: &[&str] =
    &["LimitRange", "RuntimeClass", "Workload", "Node", "Pod", "ClusterCapacity", "Lease"];

/// Kinds that an agent lists that asks an autoscaler for nodes.
pub(crate) const ASKING_KINDS: &[&str] = &["ProvisioningRequest", "PodTemplate"];

/// Kinds that an agent lists that admits by quota.
pub(crate) const QUEUE_KINDS: &[&str] =
    &["Namespace", "ResourceFlavor", "Cohort", "AdmissionCheck", "ClusterQueue", "LocalQueue"];

/// The name of a kind of jobs in the listing.
pub(crate) fn listed_name(kind: &Kind) -> Box<str> {
    kind.to_string().into()
}

/// Names of everything in the listing that follows from kinds of jobs: their own, and those of objects that they need and of the pods
/// of sets.
pub(crate) fn listed_names(kinds: &Kinds) -> Vec<Box<str>> {
    let (looked_up, jobs) = (kinds.looked_up(), kinds.iter().map(listed_name));
    let sets = kinds.iter().filter(|kind| kind.members().is_some());
    jobs.chain(looked_up.iter().map(looked_up_name)).chain(sets.map(members_name)).collect()
}

/// The name of the pods of the sets of a kind.
pub(crate) fn members_name(kind: &Kind) -> Box<str> {
    format!("pods of {kind}").into()
}

/// The name of a kind of objects that jobs need. The kind may be a kind of jobs, too.
pub(crate) fn looked_up_name(kind: &LookupKind) -> Box<str> {
    format!("{}, needed by jobs", kind.gvk).into()
}

/// Kinds whose first list has not come.
#[derive(Debug)]
pub(crate) struct Listing {
    awaited: BTreeSet<Box<str>>,
}

impl Listing {
    pub(crate) fn new(kinds: impl IntoIterator<Item = impl Into<Box<str>>>) -> Self {
        Self { awaited: kinds.into_iter().map(Into::into).collect() }
    }

    /// Whether every kind was listed.
    pub(crate) fn is_complete(&self) -> bool {
        self.awaited.is_empty()
    }

    /// Records that a kind was listed. Returns whether it was the last one that was awaited.
    pub(crate) fn listed(&mut self, kind: &str) -> bool {
        let last = self.awaited.remove(kind) && self.awaited.is_empty();
        if last {
            tracing::info!("everything was listed");
        }
        last
    }
}
