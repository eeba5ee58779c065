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
    /// The rules for variants of a Workload, by its ClusterQueue; `None` if it gets none.
    #[must_use]
    pub fn variant_rules(&self, workload: &Workload) -> Option<VariantRules> {
        let (flavors, policy) = self.variant_policy(workload)?;
        Some(VariantRules { flavors: flavors.to_vec(), policy: policy.clone() })
    }

    /// Whether a Workload is to become the parent of variants. Until its label says so it is in no queue already. One that holds
    /// quota keeps it; an elastic one is no parent, because its slices replace one another.
    #[must_use]
    pub fn becomes_parent(&self, workload: &Workload) -> bool {
        if self.variant_policy(workload).is_none() {
            return false;
        }
        let is = |condition| is_true(&workload.status.conditions, condition);
        let annotations = workload.metadata.annotations.as_ref();
        let elastic = annotations.is_some_and(|all| all.contains_key(ELASTIC_JOB));
        !workload.has_variants()
            && workload.parent().is_none()
            && workload.metadata.deletion_timestamp.is_none()
            && !is(FINISHED)
            && !is(QUOTA_RESERVED)
            && !elastic
    }

    /// The flavors and the policy of a ClusterQueue with variants. None if it dispatches to workers, which no variant is.
    fn variant_policy(
        &self,
        workload: &Workload,
    ) -> Option<(&[String], &ConcurrentAdmissionPolicy)> {
        if !self.config.concurrent_admission {
            return None;
        }
        let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
        let name = self.cluster_queue_of(namespace, &workload.spec.queue_name)?;
        let queue = self.queues.get(name)?;
        let policy = queue.concurrent_admission.as_ref()?;
        self.multi_kueue_check(name).is_none().then_some((&queue.flavors, policy))
    }
}
