//! LocalQueues. Source: docs/reference/kueue.md §1.4.

use crds::names::reasons;
use crds::v1beta2;
use engine::spec::LocalQueueInfo;
use engine::{Event, Names};

use crate::active_condition::QueueActiveCondition;
use crate::cluster_queue::is_stopped;
use crate::index::Index;
use crate::indexed_objects::IndexedLocalQueue;
use crate::resource_groups;

impl Index {
    /// Enters a LocalQueue. One that is being deleted takes no Workload any more.
    pub fn local_queue(
        &mut self,
        names: &mut Names,
        namespace: &str,
        name: &str,
        queue: Option<&v1beta2::LocalQueue>,
    ) -> Vec<Event> {
        let key = format!("{namespace}/{name}");
        let id = names.local_queues.intern(&key);
        let stays = |queue: &&v1beta2::LocalQueue| queue.metadata.deletion_timestamp.is_none();
        let Some(queue) = queue.filter(stays) else {
            self.local_queues.remove(&key);
            return vec![Event::LocalQueue(id, None)];
        };
        let cluster_queue = queue.spec.cluster_queue.clone();
        let stopped = is_stopped(queue.spec.stop_policy.as_deref());
        let target = names.queues.intern(&cluster_queue);
        // Another ClusterQueue covers other resources, so the requests of its Workloads change.
        let known = self.local_queues.get(&key);
        let moved = known.is_none_or(|known| known.cluster_queue != cluster_queue);
        // In a ClusterQueue with variants they leave their queue.
        let differs = self.config.ignore_uncovered_resources || self.config.concurrent_admission;
        if moved && differs {
            self.reenter.insert(cluster_queue.clone());
        }
        self.local_queues.insert(key, IndexedLocalQueue { cluster_queue, stopped });
        vec![Event::LocalQueue(
            id,
            Some(LocalQueueInfo {
                queue: target,
                stopped,
                weight: resource_groups::weight(queue.spec.fair_sharing.as_ref()),
            }),
        )]
    }

    /// The ClusterQueue of a LocalQueue.
    #[must_use]
    pub fn cluster_queue_of(&self, namespace: &str, local_queue: &str) -> Option<&str> {
        let queue = self.local_queues.get(&format!("{namespace}/{local_queue}"))?;
        Some(&queue.cluster_queue)
    }

    /// Whether a LocalQueue exists and has a `stopPolicy` other than None.
    pub(crate) fn is_local_queue_stopped(&self, namespace: &str, name: &str) -> bool {
        self.local_queues.get(&format!("{namespace}/{name}")).is_some_and(|queue| queue.stopped)
    }

    /// The condition Active of a LocalQueue; `None` if the queue does not exist.
    pub(crate) fn local_queue_active_condition(
        &self,
        namespace: &str,
        local_queue: &str,
    ) -> Option<QueueActiveCondition> {
        let closed = "Can't submit new workloads to clusterQueue";
        let queue = self.local_queues.get(&format!("{namespace}/{local_queue}"))?;
        if queue.stopped {
            return Some(QueueActiveCondition::inactive(reasons::STOPPED, "LocalQueue is stopped"));
        }
        Some(match self.active_condition(&queue.cluster_queue) {
            // Told apart from an inactive one by its reason; the message is the same (§1.4).
            None => QueueActiveCondition::inactive(reasons::CLUSTER_QUEUE_DOES_NOT_EXIST, closed),
            Some(one) if !one.active => {
                QueueActiveCondition::inactive(reasons::CLUSTER_QUEUE_IS_INACTIVE, closed)
            }
            Some(_) => QueueActiveCondition::active("Can submit new workloads to localQueue"),
        })
    }
}
