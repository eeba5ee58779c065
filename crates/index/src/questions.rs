//! Questions about queues, checks and flavors, each over the parts of the index that it needs.

use std::sync::Arc;

use crds::names::reasons;
use crds::pod::PodSpec;
use crds::v1beta2::{Admission, ConcurrentAdmissionPolicy, PodSet, PodSetAssignment, Workload};
use dispatch::{AssignedPodSet, WorkloadRequest};
use engine::{CycleEntry, Engine};

use crate::active_condition::{QueueActiveCondition, QueueRules};
use crate::exceeded_requests::exceeded_requests;
use crate::inactive_queue::{gate_message, inactive_queue};
use crate::index::Index;
use crate::indexed_objects::IndexedClusterQueue;
use crate::status::admission::admission;
use crate::variant_rules::{VariantRules, becomes_parent};

impl Index {
    /// The ClusterQueue of a LocalQueue.
    #[must_use]
    pub fn cluster_queue_of(&self, namespace: &str, local_queue: &str) -> Option<&str> {
        Some(&self.local_queues.get(namespace, local_queue)?.cluster_queue)
    }

    /// Whether a LocalQueue exists and has a `stopPolicy` other than None.
    pub(crate) fn is_local_queue_stopped(&self, namespace: &str, name: &str) -> bool {
        self.local_queues.get(namespace, name).is_some_and(|queue| queue.stopped)
    }

    /// The condition Active of a LocalQueue; `None` if the queue does not exist.
    pub(crate) fn local_queue_active_condition(
        &self,
        namespace: &str,
        local_queue: &str,
    ) -> Option<QueueActiveCondition> {
        let queue = self.local_queues.get(namespace, local_queue)?;
        Some(queue.active_condition(|target| self.active_condition(target)))
    }

    /// The condition Active of a ClusterQueue; `None` if the queue does not exist.
    #[must_use]
    pub fn active_condition(&self, cluster_queue: &str) -> Option<QueueActiveCondition> {
        self.rules(cluster_queue).map(QueueRules::active_condition)
    }

    /// The rules that the engine does not check: everything except stop policy, flavors and topologies.
    pub(crate) fn is_ready(&self, cluster_queue: &str) -> bool {
        self.rules(cluster_queue).is_some_and(QueueRules::is_ready)
    }

    fn rules(&self, cluster_queue: &str) -> Option<QueueRules<'_>> {
        let (flavors, checks) = (&self.flavors, &self.checks);
        self.queues.get(cluster_queue).map(|queue| QueueRules { queue, flavors, checks })
    }

    /// Checks that a Workload with these flavors needs, sorted.
    #[must_use]
    pub fn checks_for_flavors<'a>(
        &self,
        cluster_queue: &str,
        flavors: impl IntoIterator<Item = &'a str>,
    ) -> Vec<String> {
        let queue = self.queues.get(cluster_queue);
        queue.map(|queue| queue.checks_for_flavors(flavors)).unwrap_or_default()
    }

    /// Checks that a Workload needs now: with quota those of its flavors, without quota those of every flavor. `None` if
    /// its ClusterQueue is not known.
    #[must_use]
    pub fn required_checks(&self, workload: &Workload) -> Option<Vec<String>> {
        let holds = workload.has_quota_reservation();
        if let Some(admission) = workload.status.admission.as_ref().filter(|_| holds) {
            let queue = self.queues.get(&admission.cluster_queue)?;
            let assigned = admission.pod_set_assignments.iter();
            let flavors = assigned.flat_map(|one| one.flavors.values()).map(String::as_str);
            return Some(queue.checks_for_flavors(flavors));
        }
        Some(self.queue_of(workload)?.checks_for_all_flavors())
    }

    /// The ClusterQueue of a Workload's LocalQueue.
    pub(crate) fn queue_of(&self, workload: &Workload) -> Option<&IndexedClusterQueue> {
        let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
        self.queues.get(self.cluster_queue_of(namespace, &workload.spec.queue_name)?)
    }

    /// The MultiKueue check of a ClusterQueue.
    #[must_use]
    pub fn multi_kueue_check(&self, cluster_queue: &str) -> Option<&str> {
        self.checks.multi_kueue_of(self.queues.get(cluster_queue)?)
    }

    /// The MultiKueueConfig of a ClusterQueue.
    #[must_use]
    pub fn multi_kueue_config(&self, cluster_queue: &str) -> Option<&str> {
        let check = self.multi_kueue_check(cluster_queue)?;
        self.checks.get(check)?.parameters.as_deref()
    }

    /// The rules for variants of a Workload, by its ClusterQueue; `None` if it gets none.
    #[must_use]
    pub fn variant_rules(&self, workload: &Workload) -> Option<VariantRules> {
        let (queue, policy) = self.variant_policy(workload)?;
        Some(VariantRules { flavors: queue.flavors.clone(), policy: policy.clone() })
    }

    /// Whether a Workload is to become the parent of variants. Until its label says so it is in no queue already. One that holds
    /// quota keeps it; an elastic one is no parent, because its slices replace one another.
    #[must_use]
    pub fn becomes_parent(&self, workload: &Workload) -> bool {
        self.variant_policy(workload).is_some() && becomes_parent(workload)
    }

    /// A ClusterQueue with variants, and its policy. None if it dispatches to workers, which no variant is.
    fn variant_policy(
        &self,
        workload: &Workload,
    ) -> Option<(&IndexedClusterQueue, &ConcurrentAdmissionPolicy)> {
        if !self.config.concurrent_admission {
            return None;
        }
        let queue = self.queue_of(workload)?;
        let policy = queue.concurrent_admission.as_ref()?;
        self.checks.multi_kueue_of(queue).is_none().then_some((queue, policy))
    }

    /// The message that names the admission gates of a Workload; `None` without gates, and in agent mode.
    #[must_use]
    pub fn gate_message(&self, workload: &Workload) -> Option<String> {
        gate_message(&self.config, workload)
    }

    /// Reason and message of admission gates, else of a missing or inactive queue; `None` if both queues are active, and in
    /// agent mode.
    #[must_use]
    pub fn blocker(&self, workload: &Workload) -> Option<(&'static str, String)> {
        if self.config.has_internal_queue() {
            return None;
        }
        if let Some(message) = self.gate_message(workload) {
            return Some((reasons::ADMISSION_GATED, message));
        }
        let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
        let name = &workload.spec.queue_name;
        let queue = self.local_queues.get(namespace, name);
        inactive_queue(name, queue, |target| self.active_condition(target))
    }

    /// What a pod of a namespace requests beyond the quota of its pod set, as text; `None` if nothing. The amount of a resource is what was
    /// assigned, or else what the API server would make of the template today.
    #[must_use]
    pub fn exceeded_requests(
        &self,
        namespace: &str,
        pod: &PodSpec,
        quota: (&PodSpec, Option<&PodSetAssignment>),
    ) -> Option<String> {
        exceeded_requests((&self.config, &self.pod_defaults), namespace, pod, quota)
    }

    /// The dispatch request of a head: MultiKueueConfig, requests, and additions of its flavors. `None` if its queue
    /// does not dispatch. Needs no tables of names, which the engine borrows during a cycle.
    #[must_use]
    pub fn dispatch_request(
        &self,
        entry: &CycleEntry,
    ) -> Option<(&str, &Arc<WorkloadRequest>, Vec<AssignedPodSet>)> {
        let config = self.multi_kueue_config(self.queues.name(entry.queue)?)?;
        let request = self.request(entry.workload)?;
        Some((config, request, self.assigned_pod_sets(&entry.assignment.pod_sets)))
    }

    /// Additions of an assignment's flavors, by pod set. A deleted flavor adds nothing.
    #[must_use]
    pub fn assigned_pod_sets(
        &self,
        pod_sets: &[engine::PodSetFlavorAssignment],
    ) -> Vec<AssignedPodSet> {
        self.flavors.assigned_pod_sets(pod_sets)
    }

    /// Additions of a recorded admission's flavors, in the engine's terms. An elastic Workload that has shrunk has fewer pods than
    /// were admitted.
    #[must_use]
    pub fn admitted_pod_sets(&self, admission: &Admission, sets: &[PodSet]) -> Vec<AssignedPodSet> {
        self.flavors.admitted_pod_sets(admission, sets)
    }

    /// The `status.admission` of a cycle entry.
    ///
    /// The pod sets of an unknown Workload have no names, so it has no assignments.
    #[must_use]
    pub fn admission(&self, engine: &Engine, entry: &CycleEntry) -> Admission {
        admission(engine, entry, self.request(entry.workload).map(|request| &**request))
    }
}
