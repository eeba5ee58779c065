//! LocalQueues. Source: docs/reference/kueue.md §1.4.

use std::collections::{BTreeMap, BTreeSet};

use crds::meta::is_deleting;
use crds::names::reasons;
use crds::v1beta2;
use engine::spec::LocalQueueInfo;
use engine::{Event, Names};

use crate::active_condition::QueueActiveCondition;
use crate::cluster_queue::is_stopped;
use crate::indexed_objects::IndexedLocalQueue;
use crate::resource_groups;

/// LocalQueues by `namespace/name`.
#[derive(Debug, Default)]
pub(crate) struct LocalQueues(BTreeMap<String, IndexedLocalQueue>);

impl LocalQueues {
    /// Enters a LocalQueue. One that is being deleted takes no Workload any more. Returns whether its ClusterQueue is another one.
    pub(crate) fn enter(
        &mut self,
        names: &mut Names,
        (namespace, name): (&str, &str),
        queue: Option<&v1beta2::LocalQueue>,
    ) -> (Event, bool) {
        let key = format!("{namespace}/{name}");
        let id = names.local_queues.intern(&key);
        let stays = |queue: &&v1beta2::LocalQueue| !is_deleting(&queue.metadata);
        let Some(queue) = queue.filter(stays) else {
            self.0.remove(&key);
            return (Event::LocalQueue(id, None), false);
        };
        let cluster_queue = queue.spec.cluster_queue.clone();
        let stopped = is_stopped(queue.spec.stop_policy.as_deref());
        let target = names.queues.intern(&cluster_queue);
        let known = self.0.get(&key);
        let moved = known.is_none_or(|known| known.cluster_queue != cluster_queue);
        self.0.insert(key, IndexedLocalQueue { cluster_queue, stopped });
        let weight = resource_groups::weight(queue.spec.fair_sharing.as_ref());
        let info = LocalQueueInfo { queue: target, stopped, weight };
        (Event::LocalQueue(id, Some(info)), moved)
    }

    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<&IndexedLocalQueue> {
        self.0.get(&format!("{namespace}/{name}"))
    }

    /// The queues, as `namespace/name`, of these ClusterQueues.
    pub(crate) fn of_cluster_queues(&self, cluster_queues: &BTreeSet<String>) -> BTreeSet<String> {
        let of_these = self.0.iter().filter(|(_, one)| cluster_queues.contains(&one.cluster_queue));
        of_these.map(|(key, _)| key.clone()).collect()
    }
}

impl IndexedLocalQueue {
    /// The condition Active of the queue, by that of its ClusterQueue.
    pub(crate) fn active_condition(
        &self,
        cluster_queue: impl FnOnce(&str) -> Option<QueueActiveCondition>,
    ) -> QueueActiveCondition {
        let closed = "Can't submit new workloads to clusterQueue";
        if self.stopped {
            return QueueActiveCondition::inactive(reasons::STOPPED, "LocalQueue is stopped");
        }
        match cluster_queue(&self.cluster_queue) {
            // Told apart from an inactive one by its reason; the message is the same (§1.4).
            None => QueueActiveCondition::inactive(reasons::CLUSTER_QUEUE_DOES_NOT_EXIST, closed),
            Some(one) if !one.active => {
                QueueActiveCondition::inactive(reasons::CLUSTER_QUEUE_IS_INACTIVE, closed)
            }
            Some(_) => QueueActiveCondition::active("Can submit new workloads to localQueue"),
        }
    }
}
