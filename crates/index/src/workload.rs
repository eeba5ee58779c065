//! Workloads in the terms of the engine and of dispatch.
//!
//! [`pod_sets`] holds requests, [`queue_order`] priority and timestamp, [`queue_eligibility`] what keeps a Workload
//! out of its queue, [`requeue_backoff`] the backoff, [`run_time`] how long it runs, [`admission`] reserved quota,
//! [`workload_request`] the request to a cluster, [`shared_requests`] equal ones, [`variant`] concurrent admission,
//! [`indexed_workload`] the stored fields.
//! Source: docs/reference/kueue.md §2, §3.2.

mod admission;
pub(crate) mod indexed_workload;
mod job_owner;
mod more_than_room;
mod pod_sets;
mod preemption_gate;
mod queue_eligibility;
mod queue_order;
mod requeue_backoff;
mod run_time;
pub(crate) mod shared_requests;
mod template_hash;
mod variant;
mod workload_request;
mod workload_slice;

pub(crate) use self::queue_eligibility::admission_gates;
pub use self::run_time::{FinishedRun, finished_run, run_time_group};
pub use self::workload_request::job_kind;

/// Queue order of a Workload that is in the pending queue of its ClusterQueue, admissible or not; `None` for one that is in no
/// queue: it is finished, has quota, is excluded, or is a parent of variants.
#[must_use]
pub fn pending_order(config: &IndexConfig, workload: &Workload) -> Option<dispatch::QueueOrder> {
    let is_out = workload.is_finished()
        || workload.has_quota_reservation()
        || queue_eligibility::is_excluded(config, workload)
        || config.is_parent(workload);
    (!is_out).then(|| dispatch::QueueOrder {
        priority: queue_order::priority(config, workload),
        queued_at: queue_order::queued_at(config, workload),
    })
}

use std::sync::Arc;

use crds::names::THIN_QUEUE;
use crds::v1beta2::{PodSetRequest, Workload};
use engine::ids::{TopologyNodeId, WorkloadId};
use engine::spec::{QueueEligibility, WorkloadInfo};
use engine::{Event, Names, Time};

use crate::config::IndexConfig;
use crate::index::Index;
use crate::workload::indexed_workload::IndexedWorkload;
use crate::workload::pod_sets::CountedPodSets;

impl Index {
    /// Enters a Workload in any state.
    ///
    /// The caller also enters the result of each of its writes, and never an older object after a newer one: a
    /// release of quota is visible only if an entered object had quota.
    pub fn workload(&mut self, names: &mut Names, workload: &Workload, now: Time) -> Vec<Event> {
        let (namespace, name) = key_of(workload);
        if workload.is_finished() {
            // A finished Workload leaves queue and usage like a deleted one (§2.5).
            return self.workload_gone(names, namespace, name);
        }
        let id = names.workloads.intern(&format!("{namespace}/{name}"));
        let (spec, request) = self.spec_and_request(names, workload, now);
        // What a parent shows is the admission of its variant, which is counted.
        let is_parent = self.config.is_parent(workload);
        let admitted = workload.is_admitted() && !is_parent;
        let record = IndexedWorkload {
            request: self.requests.share(request),
            queue_order: dispatch::QueueOrder {
                priority: spec.priority,
                queued_at: spec.queued_at,
            },
            // A time that is over needs no timer.
            requeue_at: requeue_backoff::requeue_at(workload).filter(|&at| at > now),
            local_queue: spec.local_queue,
            label_set: self.label_sets.intern(self.config.workload_labels.values(workload)),
            quota_reserved: spec.admission.is_some(),
            evicted: spec.admission.as_ref().is_some_and(|one| one.evicted),
            admitted,
            unhealthy_nodes: unhealthy_nodes(names, workload, &spec),
        };
        let unhealthy_nodes = record.unhealthy_nodes.clone();
        let old = self.records.replace(id, record);
        let known = old.as_ref().map(|old| &*old.unhealthy_nodes).unwrap_or_default();
        let failed = *known != *unhealthy_nodes;
        let mut events = follow(id, spec, old.as_ref(), admitted.then_some(now));
        // A repeated list would let a failed replacement be searched again before anything changed.
        if failed {
            events.push(Event::UnhealthyNodes(id, unhealthy_nodes.into()));
        }
        events
    }

    /// The Workload in the terms of the engine, and its request to a cluster.
    fn spec_and_request(
        &self,
        names: &mut Names,
        workload: &Workload,
        now: Time,
    ) -> (WorkloadInfo, dispatch::WorkloadRequest) {
        let pod_sets = self.pod_sets(workload);
        let (request, affinity) = workload_request::workload_request(names, workload, &pod_sets);
        let is_parent = self.config.is_parent(workload);
        let waits_for_variants = is_parent || self.becomes_parent(workload);
        // Usage of a parent is that of its variants; charging both would count it twice.
        let mut admission =
            admission::admission(&self.config, names, workload).filter(|_| !is_parent);
        // The nodes that an agent assigns are in no topology of its engine.
        if self.config.agent.is_some() {
            let sets = admission.iter_mut().flat_map(|one| &mut one.pod_sets);
            sets.for_each(|one| one.domains.clear());
        }
        let spec = WorkloadInfo {
            namespace: names.namespaces.intern(key_of(workload).0),
            local_queue: self.local_queue_key(workload).map(|key| names.local_queues.intern(&key)),
            uid: workload.metadata.uid.as_deref().unwrap_or_default().into(),
            priority: queue_order::priority(&self.config, workload),
            has_priority_class: queue_order::has_class(workload),
            queued_at: queue_order::queued_at(&self.config, workload),
            pod_sets: pod_sets.specs(names, workload, &self.config),
            eligibility: if waits_for_variants {
                QueueEligibility::Excluded
            } else {
                queue_eligibility::queue_eligibility(&self.config, workload, now)
            },
            invalid: pod_sets.validation_problem(&self.config).or(affinity).map(Into::into),
            preemption_gated: preemption_gate::is_preemption_gated(&self.config, workload),
            allowed_flavors: variant::allowed(names, workload),
            variant_of: workload.parent().map(|owner| owner.uid.as_str().into()),
            replaced_slice: workload_slice::replaced_slice(workload).map(Into::into),
            elastic: workload_slice::is_elastic(workload),
            checks: crate::admission_check::states(names, workload),
            admission,
        };
        (spec, request)
    }

    /// Enters the deletion of a Workload. Its id may be reused once the engine has the event.
    pub fn workload_gone(&mut self, names: &Names, namespace: &str, name: &str) -> Vec<Event> {
        let Some(id) = names.workloads.get(&format!("{namespace}/{name}")) else {
            return Vec::new();
        };
        self.records.remove(id);
        vec![Event::WorkloadGone(id)]
    }

    /// End of the Workload's requeue backoff; the caller enters the Workload again then.
    #[must_use]
    pub fn requeue_at(&self, names: &Names, namespace: &str, name: &str) -> Option<Time> {
        let id = names.workloads.get(&format!("{namespace}/{name}"))?;
        self.records.get(id)?.requeue_at
    }

    /// The request of a Workload to a cluster.
    #[must_use]
    pub fn request(&self, id: WorkloadId) -> Option<&Arc<dispatch::WorkloadRequest>> {
        self.records.get(id).map(|record| &record.request)
    }

    /// Queue order of a Workload.
    #[must_use]
    pub fn queue_order(&self, id: WorkloadId) -> dispatch::QueueOrder {
        self.records.get(id).map(|record| record.queue_order).unwrap_or_default()
    }

    /// `status.resourceRequests` of a pending Workload: totals per pod set.
    #[must_use]
    pub fn resource_requests(&self, workload: &Workload) -> Vec<PodSetRequest> {
        self.pod_sets(workload).resource_requests()
    }

    fn pod_sets<'a>(&'a self, workload: &'a Workload) -> CountedPodSets<'a> {
        CountedPodSets::read((&self.config, &self.pod_defaults), workload, self.covered(workload))
    }

    /// Covered resources of the queue, if uncovered ones are ignored and the queue is known. In agent mode nothing is
    /// ignored.
    fn covered(&self, workload: &Workload) -> Option<&std::collections::BTreeSet<String>> {
        // The quota of an agent covers what its cluster has; ignoring the rest would admit pods
        // that cannot run.
        if !self.config.ignore_uncovered_resources || self.config.has_internal_queue() {
            return None;
        }
        self.queue_of(workload).map(|queue| &queue.covered)
    }

    fn local_queue_key(&self, workload: &Workload) -> Option<String> {
        // An agent has one internal queue, whatever the clone names (docs/reference/dispatch.md
        // §4).
        if self.config.has_internal_queue() {
            return Some(THIN_QUEUE.to_owned());
        }
        let queue = &workload.spec.queue_name;
        (!queue.is_empty()).then(|| format!("{}/{queue}", key_of(workload).0))
    }
}

/// The events from the last object of a Workload to this one.
///
/// The engine releases quota only for [`engine::Event::Released`], which ends an eviction or a cancelled reservation,
/// and evicts for [`engine::Event::Evicting`]. An object that never had quota does not contradict an assumed
/// reservation whose write is in flight. `admitted` is the time if the Workload is admitted.
fn follow(
    id: WorkloadId,
    spec: WorkloadInfo,
    old: Option<&IndexedWorkload>,
    admitted: Option<Time>,
) -> Vec<Event> {
    let quota_was_reserved = old.is_some_and(|old| old.quota_reserved);
    let was_evicted = old.is_some_and(|old| old.evicted);
    let evicted = spec.admission.as_ref().is_some_and(|one| one.evicted);
    let (eligibility, queued_at) = (spec.eligibility, spec.queued_at);
    let released = quota_was_reserved && spec.admission.is_none();
    let mut events = vec![Event::Workload(id, Box::new(spec))];
    if released {
        events.push(Event::Released { workload: id, eligibility, queued_at });
    // A Workload that is seen for the first time carries the eviction in its admission.
    } else if evicted && !was_evicted && old.is_some() {
        events.push(Event::Evicting(id));
    }
    // The entry penalty of admission fair sharing ends. One that was admitted before it was seen has none.
    if let Some(at) = admitted.filter(|_| old.is_some_and(|old| !old.admitted)) {
        events.push(Event::Admitted(id, at));
    }
    events
}

/// Nodes that failed under a Workload with quota.
fn unhealthy_nodes(
    names: &mut Names,
    workload: &Workload,
    spec: &WorkloadInfo,
) -> Box<[TopologyNodeId]> {
    let failed = workload.status.unhealthy_nodes.iter().filter(|_| spec.admission.is_some());
    failed.map(|node| names.nodes.intern(&node.name)).collect()
}

fn key_of(workload: &Workload) -> (&str, &str) {
    let metadata = &workload.metadata;
    let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
    (namespace.unwrap_or_default(), name.unwrap_or_default())
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "values are made for the call")]
mod tests;
