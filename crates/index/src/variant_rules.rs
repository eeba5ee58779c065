//! Which Workloads have variants, and by which rules. Source: docs/reference/kueue.md §4.13.

use crds::meta::is_true;
use crds::names::annotations::ELASTIC_JOB;
use crds::names::conditions::{FINISHED, QUOTA_RESERVED};
use crds::v1beta2::{ConcurrentAdmissionPolicy, Workload};

use crate::index::Index;

/// The flavors that a Workload is tried with, one variant each.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantRules {
    /// The flavors of the ClusterQueue, the best one first.
    pub flavors: Vec<String>,
    /// The policy of the ClusterQueue.
    pub policy: ConcurrentAdmissionPolicy,
}

impl Index {
    /// The rules for variants of a Workload, by its ClusterQueue; `None` if that has no policy or dispatches to workers, which no
    /// variant is.
    #[must_use]
    pub fn variant_rules(&self, workload: &Workload) -> Option<VariantRules> {
        let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
        let name = self.cluster_queue_of(namespace, &workload.spec.queue_name)?;
        let queue = self.queues.get(name).filter(|_| self.config.concurrent_admission)?;
        let policy = queue.concurrent_admission.clone()?;
        let dispatches = self.multi_kueue_check(name).is_some();
        (!dispatches).then(|| VariantRules { flavors: queue.flavors.clone(), policy })
    }

    /// Whether a Workload is to become the parent of variants. Until its label says so it is in no queue already. One that holds
    /// quota keeps it; an elastic one is no parent, because its slices replace one another.
    #[must_use]
    pub fn becomes_parent(&self, workload: &Workload) -> bool {
        let is = |condition| is_true(&workload.status.conditions, condition);
        let annotations = workload.metadata.annotations.as_ref();
        let elastic = annotations.is_some_and(|all| all.contains_key(ELASTIC_JOB));
        self.config.concurrent_admission
            && !workload.has_variants()
            && workload.parent().is_none()
            && workload.metadata.deletion_timestamp.is_none()
            && !is(FINISHED)
            && !is(QUOTA_RESERVED)
            && !elastic
            && self.variant_rules(workload).is_some()
    }
}
