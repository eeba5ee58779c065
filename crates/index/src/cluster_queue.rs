//! ClusterQueues in the engine's terms. Source: docs/reference/kueue.md §1.3.
//!
//! Objects that passed no webhook get defaults here: an absent `whenCanPreempt` is TryNextFlavor, an absent policy is
//! Never.

use std::collections::BTreeMap;

use crds::meta::is_deleting;
use crds::v1beta2::{self, ClusterQueuePreemption, FlavorFungibility};
use engine::Names;
use engine::ids::QueueId;
use engine::spec::{
    BorrowWithinCohortSpec, ClusterQueueInfo, FlavorFungibilityPolicy, FlavorFungibilityPreference,
    FungibilitySpec, NamespaceSelector, PreemptionPolicy, PreemptionSpec, QueueingStrategy,
};

use crate::admission_check::{check_bindings, check_rules};
use crate::indexed_objects::IndexedClusterQueue;
use crate::resource_groups;
use crate::selectors::selector;

/// ClusterQueues.
#[derive(Debug, Default)]
pub(crate) struct ClusterQueues {
    queues: BTreeMap<String, IndexedClusterQueue>,
    /// Names of the engine's ids, for calls during a cycle.
    names: BTreeMap<QueueId, String>,
}

impl ClusterQueues {
    /// Stores a ClusterQueue, which is not ready yet. Returns its id and the one that was stored before.
    pub(crate) fn enter(
        &mut self,
        names: &mut Names,
        name: &str,
        queue: Option<&v1beta2::ClusterQueue>,
    ) -> (QueueId, Option<IndexedClusterQueue>) {
        let id = names.queues.intern(name);
        self.names.entry(id).or_insert_with(|| name.to_owned());
        let old = match queue {
            Some(queue) => self.queues.insert(name.to_owned(), keep(names, queue)),
            None => self.queues.remove(name),
        };
        (id, old)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&IndexedClusterQueue> {
        self.queues.get(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.queues.keys()
    }

    /// The name of a queue that was entered once.
    pub(crate) fn name(&self, id: QueueId) -> Option<&str> {
        self.names.get(&id).map(String::as_str)
    }

    /// Names of the queues to which a check is bound.
    pub(crate) fn using(&self, check: &str) -> Vec<String> {
        let using = self.queues.iter().filter(|(_, queue)| queue.uses(check));
        using.map(|(name, _)| name.clone()).collect()
    }

    /// Sets whether a queue is ready. Returns its spec if that is news.
    pub(crate) fn set_ready(&mut self, name: &str, ready: bool) -> Option<&ClusterQueueInfo> {
        let queue = self.queues.get_mut(name)?;
        let news = std::mem::replace(&mut queue.spec.ready, ready) != ready;
        news.then_some(&queue.spec)
    }
}

fn keep(names: &mut Names, queue: &v1beta2::ClusterQueue) -> IndexedClusterQueue {
    let groups = &queue.spec.resource_groups;
    IndexedClusterQueue {
        spec: ClusterQueueInfo {
            generation: queue.metadata.generation.unwrap_or(0),
            ..spec(names, &queue.spec)
        },
        flavors: groups.iter().flat_map(|one| &one.flavors).map(|one| one.name.clone()).collect(),
        covered: groups.iter().flat_map(|one| &one.covered_resources).cloned().collect(),
        check_bindings: check_bindings(&queue.spec),
        concurrent_admission: queue.spec.concurrent_admission_policy.clone(),
        terminating: is_deleting(&queue.metadata),
    }
}

fn spec(names: &mut Names, spec: &v1beta2::ClusterQueueSpec) -> ClusterQueueInfo {
    let cohort = resource_groups::cohort_name(&spec.cohort_name);
    ClusterQueueInfo {
        generation: 0,
        cohort: cohort.map(|name| names.cohorts.intern(name)),
        groups: resource_groups::groups(names, &spec.resource_groups),
        strategy: match spec.queueing_strategy.as_str() {
            "StrictFIFO" => QueueingStrategy::StrictFifo,
            _ => QueueingStrategy::BestEffortFifo,
        },
        preemption: spec.preemption.as_ref().map(preemption).unwrap_or_default(),
        flavor_fungibility: flavor_fungibility(spec.flavor_fungibility.as_ref()),
        weight: resource_groups::weight(spec.fair_sharing.as_ref()),
        stopped: is_stopped(spec.stop_policy.as_deref()),
        ready: false,
        checks: check_rules(names, &check_bindings(spec)),
        last_acceptable_flavor: last_acceptable(spec).map(|name| names.flavors.intern(name)),
        admission_fair_sharing: has_usage_based_admission(spec),
        namespaces: match &spec.namespace_selector {
            // An absent selector matches no namespace, an empty one all (§1.3).
            None => NamespaceSelector::Nothing,
            Some(one) => NamespaceSelector::All(selector(one)),
        },
    }
}

/// Whether Workloads of the LocalQueue with the least usage come first, if admission fair sharing is configured.
#[must_use]
pub fn has_usage_based_admission(spec: &v1beta2::ClusterQueueSpec) -> bool {
    let scope = spec.admission_scope.as_ref();
    scope.is_some_and(|scope| scope.admission_mode == "UsageBasedAdmissionFairSharing")
}

/// The last flavor that variants may use.
fn last_acceptable(spec: &v1beta2::ClusterQueueSpec) -> Option<&str> {
    let migration = &spec.concurrent_admission_policy.as_ref()?.migration;
    migration.constraints.as_ref()?.last_acceptable_flavor_name.as_deref()
}

/// Whether a stop policy stops new admissions.
pub(crate) fn is_stopped(policy: Option<&str>) -> bool {
    matches!(policy, Some("Hold" | "HoldAndDrain"))
}

fn preemption(spec: &ClusterQueuePreemption) -> PreemptionSpec {
    let borrow = spec.borrow_within_cohort.as_ref();
    // Any other policy is Never, and then the threshold has no meaning (§1.3).
    let borrow = borrow.filter(|one| one.policy == "LowerPriority");
    PreemptionSpec {
        within_cluster_queue: policy(&spec.within_cluster_queue),
        reclaim: policy(&spec.reclaim_within_cohort),
        borrow: borrow.map(|one| BorrowWithinCohortSpec {
            max_priority: one.max_priority_threshold.map(i64::from),
        }),
    }
}

fn policy(name: &str) -> PreemptionPolicy {
    match name {
        "LowerPriority" => PreemptionPolicy::LowerPriority,
        "LowerOrNewerEqualPriority" => PreemptionPolicy::LowerOrNewerEqualPriority,
        "Any" => PreemptionPolicy::Any,
        _ => PreemptionPolicy::Never,
    }
}

fn flavor_fungibility(spec: Option<&FlavorFungibility>) -> FungibilitySpec {
    let borrow = spec.map_or("", |one| one.when_can_borrow.as_str());
    let preempt = spec.map_or("", |one| one.when_can_preempt.as_str());
    let preference = spec.and_then(|one| one.preference.as_deref());
    FungibilitySpec {
        when_can_borrow: if borrow == "TryNextFlavor" {
            FlavorFungibilityPolicy::TryNextFlavor
        } else {
            FlavorFungibilityPolicy::MayStopSearch
        },
        // The default of whenCanPreempt is TryNextFlavor, that of whenCanBorrow MayStopSearch
        // (§1.3).
        when_can_preempt: if preempt == "MayStopSearch" {
            FlavorFungibilityPolicy::MayStopSearch
        } else {
            FlavorFungibilityPolicy::TryNextFlavor
        },
        preference: match preference {
            Some("PreemptionOverBorrowing") => FlavorFungibilityPreference::PreemptionOverBorrowing,
            _ => FlavorFungibilityPreference::BorrowingOverPreemption,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_fields_have_defaults() {
        let spec = spec(&mut Names::default(), &v1beta2::ClusterQueueSpec::default());
        assert_eq!(spec.flavor_fungibility.when_can_borrow, FlavorFungibilityPolicy::MayStopSearch);
        assert_eq!(
            spec.flavor_fungibility.when_can_preempt,
            FlavorFungibilityPolicy::TryNextFlavor
        );
        assert_eq!(spec.preemption, PreemptionSpec::default());
        assert_eq!(spec.strategy, QueueingStrategy::BestEffortFifo);
        assert_eq!(spec.namespaces, NamespaceSelector::Nothing);
        assert_eq!((spec.cohort, spec.stopped), (None, false));
        assert_eq!(spec.last_acceptable_flavor, None);
    }

    #[test]
    fn the_last_acceptable_flavor_is_read() {
        let queue = serde_json::json!({"concurrentAdmissionPolicy": {"migration": {
            "mode": "TryPreferredFlavors", "constraints": {"lastAcceptableFlavorName": "a100"},
        }}});
        let queue: v1beta2::ClusterQueueSpec = serde_json::from_value(queue).expect("a spec");
        let mut names = Names::default();
        let last_acceptable = spec(&mut names, &queue).last_acceptable_flavor.expect("a flavor");
        assert_eq!(names.flavors.name(last_acceptable), "a100");
    }

    #[test]
    fn every_policy_is_converted() {
        let spec = |borrow: &str| ClusterQueuePreemption {
            borrow_within_cohort: Some(v1beta2::BorrowWithinCohort {
                max_priority_threshold: Some(7),
                policy: borrow.to_owned(),
            }),
            reclaim_within_cohort: "Any".into(),
            within_cluster_queue: "LowerOrNewerEqualPriority".into(),
        };
        let read = preemption(&spec("LowerPriority"));
        assert_eq!(read.reclaim, PreemptionPolicy::Any);
        assert_eq!(read.within_cluster_queue, PreemptionPolicy::LowerOrNewerEqualPriority);
        assert_eq!(read.borrow, Some(BorrowWithinCohortSpec { max_priority: Some(7) }));
        assert_eq!(preemption(&spec("Never")).borrow, None);
        for (policy, stopped) in [
            (None, false),
            (Some("None"), false),
            (Some("Hold"), true),
            (Some("HoldAndDrain"), true),
        ] {
            assert_eq!(is_stopped(policy), stopped);
        }
    }
}
