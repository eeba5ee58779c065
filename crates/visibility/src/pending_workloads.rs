//! The pending Workloads of all queues, in order.
//!
//! Objects come in any order: a Workload may be seen before its LocalQueue, and a LocalQueue before its ClusterQueue. A Workload is
//! in the order of its LocalQueue from the time at which it is seen, and in that of the ClusterQueue while the LocalQueue exists
//! and is not stopped (docs/reference/kueue.md §3.1).
//!
//! Cost: a change takes O(log n) plus the move of one chunk of [`RankedSet`], a page O(its length) times a search for positions.

use std::{collections::BTreeMap, sync::Arc};

use crds::v1beta2::{LocalQueue, Workload};

use crate::{
    api::PendingWorkload, page::PendingPage, pending_item::PendingItem, ranked_set::RankedSet,
};

/// A queue that is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueReference<'a> {
    /// A ClusterQueue.
    ClusterQueue(&'a str),
    /// A LocalQueue: namespace and name.
    LocalQueue(&'a str, &'a str),
}

/// The queue does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownQueue;

type RankedItems = RankedSet<Arc<PendingItem>>;

/// The pending Workloads of all queues, in order.
#[derive(Debug)]
pub struct PendingWorkloads {
    config: index::IndexConfig,
    /// By `namespace/name`.
    workloads: BTreeMap<String, Arc<PendingItem>>,
    /// By `namespace/name`, among them some that do not exist and have Workloads.
    local_queues: BTreeMap<String, LocalOrder>,
    /// By name, among them some that do not exist and have Workloads.
    cluster_queues: BTreeMap<String, ClusterOrder>,
}

#[derive(Debug, Default)]
struct LocalOrder {
    /// `None` if the LocalQueue does not exist.
    spec: Option<LocalTarget>,
    items: RankedItems,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct LocalTarget {
    cluster_queue: String,
    stopped: bool,
}

#[derive(Debug, Default)]
struct ClusterOrder {
    exists: bool,
    items: RankedItems,
}

impl LocalOrder {
    /// The ClusterQueue that the Workloads wait in.
    fn target(&self) -> Option<&str> {
        let open = self.spec.as_ref().filter(|spec| !spec.stopped)?;
        Some(&open.cluster_queue)
    }
}

impl PendingWorkloads {
    /// No objects. The configuration decides about order and eligibility.
    #[must_use]
    pub fn new(config: index::IndexConfig) -> Self {
        Self {
            config,
            workloads: BTreeMap::new(),
            local_queues: BTreeMap::new(),
            cluster_queues: BTreeMap::new(),
        }
    }

    /// Takes a new or changed Workload; `None` if it was deleted.
    pub fn set_workload(&mut self, namespace: &str, name: &str, workload: Option<&Arc<Workload>>) {
        let key = format!("{namespace}/{name}");
        let new = workload.and_then(|workload| PendingItem::of(&self.config, workload));
        let new = new.map(Arc::new);
        // The old one first: position and queue may both have changed.
        if let Some(old) = self.workloads.remove(&key) {
            self.leave(&old);
        }
        if let Some(new) = new {
            self.enter(&new);
            self.workloads.insert(key, new);
        }
    }

    /// Takes a new or changed LocalQueue; `None` if it was deleted.
    pub fn set_local_queue(&mut self, namespace: &str, name: &str, queue: Option<&LocalQueue>) {
        let key = format!("{namespace}/{name}");
        let spec = queue.map(|queue| LocalTarget {
            cluster_queue: queue.spec.cluster_queue.clone(),
            stopped: queue.spec.stop_policy.as_deref().is_some_and(|policy| policy != "None"),
        });
        let order = self.local_queues.entry(key.clone()).or_default();
        if order.spec == spec {
            // A deleted queue that was never seen leaves no record.
            return self.forget_local(&key);
        }
        let before = order.target().map(str::to_owned);
        order.spec = spec;
        let after = order.target().map(str::to_owned);
        if before != after {
            self.move_all(&key, before.as_deref(), after.as_deref());
        }
        self.forget_local(&key);
    }

    /// Notes whether a ClusterQueue exists.
    pub fn set_cluster_queue(&mut self, name: &str, exists: bool) {
        self.cluster_queues.entry(name.to_owned()).or_default().exists = exists;
        self.forget_cluster(name);
    }

    /// A page of the pending Workloads of a queue.
    ///
    /// # Errors
    /// If the queue does not exist. A LocalQueue without its ClusterQueue is empty, as for upstream.
    pub fn page(
        &self,
        queue: &QueueReference<'_>,
        page: PendingPage,
    ) -> Result<Vec<PendingWorkload>, UnknownQueue> {
        match queue {
            QueueReference::ClusterQueue(name) => {
                let order = self.cluster_queues.get(*name).filter(|order| order.exists);
                Ok(self.page_of_cluster_queue(order.ok_or(UnknownQueue)?, page))
            }
            QueueReference::LocalQueue(namespace, name) => {
                let order = self.local_queues.get(&format!("{namespace}/{name}"));
                let order = order.filter(|order| order.spec.is_some()).ok_or(UnknownQueue)?;
                Ok(self.page_of_local_queue(order, page))
            }
        }
    }

    fn page_of_cluster_queue(
        &self,
        order: &ClusterOrder,
        page: PendingPage,
    ) -> Vec<PendingWorkload> {
        let items = order.items.iter_from(page.offset).take(page.limit);
        items
            .zip(page.offset..)
            .map(|(item, position)| {
                let local = self.local_queues.get(&item.local_queue());
                item.show(position, local.map_or(0, |local| local.items.rank(item)))
            })
            .collect()
    }

    fn page_of_local_queue(&self, order: &LocalOrder, page: PendingPage) -> Vec<PendingWorkload> {
        let cluster = order.target().and_then(|name| self.cluster_queues.get(name));
        // Workloads of a stopped LocalQueue, or one without its ClusterQueue, are in no pending queue.
        let Some(cluster) = cluster.filter(|cluster| cluster.exists) else { return Vec::new() };
        let items = order.items.iter_from(page.offset).take(page.limit);
        items
            .zip(page.offset..)
            .map(|(item, position)| item.show(cluster.items.rank(item), position))
            .collect()
    }

    fn enter(&mut self, item: &Arc<PendingItem>) {
        let order = self.local_queues.entry(item.local_queue()).or_default();
        order.items.insert(Arc::clone(item));
        if let Some(target) = order.target() {
            let cluster = self.cluster_queues.entry(target.to_owned()).or_default();
            cluster.items.insert(Arc::clone(item));
        }
    }

    fn leave(&mut self, item: &Arc<PendingItem>) {
        let key = item.local_queue();
        let Some(order) = self.local_queues.get_mut(&key) else { return };
        order.items.remove(item);
        if let Some(target) = order.target().map(str::to_owned) {
            if let Some(cluster) = self.cluster_queues.get_mut(&target) {
                cluster.items.remove(item);
            }
            self.forget_cluster(&target);
        }
        self.forget_local(&key);
    }

    /// Moves the Workloads of a LocalQueue from one ClusterQueue to another.
    fn move_all(&mut self, local: &str, from: Option<&str>, to: Option<&str>) {
        let Some(order) = self.local_queues.get(local) else { return };
        if let Some(cluster) = from.and_then(|name| self.cluster_queues.get_mut(name)) {
            for item in order.items.iter_from(0) {
                cluster.items.remove(item);
            }
        }
        if let Some(to) = to {
            let cluster = self.cluster_queues.entry(to.to_owned()).or_default();
            for item in order.items.iter_from(0) {
                cluster.items.insert(Arc::clone(item));
            }
        }
        for name in [from, to].into_iter().flatten() {
            self.forget_cluster(name);
        }
    }

    /// Removes the record of a LocalQueue that does not exist and has no Workloads.
    fn forget_local(&mut self, key: &str) {
        let over = |order: &LocalOrder| order.spec.is_none() && order.items.is_empty();
        if self.local_queues.get(key).is_some_and(over) {
            self.local_queues.remove(key);
        }
    }

    /// Removes the record of a ClusterQueue that does not exist and has no Workloads.
    fn forget_cluster(&mut self, name: &str) {
        let over = |order: &ClusterOrder| !order.exists && order.items.is_empty();
        if self.cluster_queues.get(name).is_some_and(over) {
            self.cluster_queues.remove(name);
        }
    }
}

#[cfg(test)]
mod tests;
