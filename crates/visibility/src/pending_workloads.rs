//! The pending Workloads of all queues, in order.
//!
//! Objects come in any order: a Workload may be seen before its LocalQueue, and a LocalQueue before its ClusterQueue. A Workload is
//! in the order of its LocalQueue from the time at which it is seen, and in that of the ClusterQueue while the LocalQueue exists
//! and is not stopped (docs/reference/kueue.md §3.1). A ClusterQueue with admission fair sharing has the Workloads of the LocalQueue
//! with the least recorded usage first (§3.8).
//!
//! Cost: a change of usage moves the Workloads of the LocalQueue if its ClusterQueue has admission fair sharing. Any other change
//! takes O(log n) plus the move of one chunk of [`RankedSet`], a page O(its length) times a search for positions.

use std::{collections::BTreeMap, sync::Arc};

use crds::v1beta2::{ClusterQueue, LocalQueue, Workload};
use index::local_queue_usage::UsageWeights;

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

/// A Workload in the order of a ClusterQueue: the usage of its LocalQueue, which is 0 without admission fair sharing, goes first.
type SharingItem = (i128, Arc<PendingItem>);

/// The pending Workloads of all queues, in order.
#[derive(Debug)]
pub struct PendingWorkloads {
    config: index::IndexConfig,
    /// `None` without admission fair sharing.
    weights: Option<UsageWeights>,
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
    items: RankedSet<Arc<PendingItem>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct LocalTarget {
    cluster_queue: String,
    stopped: bool,
    /// What its status records, weighted. Smaller comes first.
    usage: i128,
}

#[derive(Debug, Default)]
struct ClusterOrder {
    exists: bool,
    /// Whether usage decides about the order.
    shares: bool,
    items: RankedSet<SharingItem>,
}

impl LocalOrder {
    /// The ClusterQueue that the Workloads wait in.
    fn target(&self) -> Option<&str> {
        let open = self.spec.as_ref().filter(|spec| !spec.stopped)?;
        Some(&open.cluster_queue)
    }

    fn usage(&self) -> i128 {
        self.spec.as_ref().map_or(0, |spec| spec.usage)
    }
}

impl ClusterOrder {
    fn insert(&mut self, usage: i128, item: &Arc<PendingItem>) {
        let item = self.placed(usage, item);
        self.items.insert(item);
    }

    fn remove(&mut self, usage: i128, item: &Arc<PendingItem>) {
        let item = self.placed(usage, item);
        self.items.remove(&item);
    }

    /// The position of a Workload of a LocalQueue with this usage.
    fn rank(&self, usage: i128, item: &Arc<PendingItem>) -> usize {
        self.items.rank(&self.placed(usage, item))
    }

    fn placed(&self, usage: i128, item: &Arc<PendingItem>) -> SharingItem {
        (self.counted(usage), Arc::clone(item))
    }

    /// What the usage of a LocalQueue counts in the order: 0 unless the ClusterQueue shares.
    fn counted(&self, usage: i128) -> i128 {
        if self.shares { usage } else { 0 }
    }
}

impl PendingWorkloads {
    /// No objects. The configuration decides about order and eligibility.
    #[must_use]
    pub fn new(config: index::IndexConfig) -> Self {
        Self {
            config,
            weights: None,
            workloads: BTreeMap::new(),
            local_queues: BTreeMap::new(),
            cluster_queues: BTreeMap::new(),
        }
    }

    /// Orders by usage where admission fair sharing is on. `None` switches it off everywhere.
    #[must_use]
    pub fn weighing_usage(mut self, weights: Option<UsageWeights>) -> Self {
        self.weights = weights;
        self
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

    /// A Workload that is in a pending queue.
    #[must_use]
    pub fn workload(&self, namespace: &str, name: &str) -> Option<&Arc<Workload>> {
        self.workloads.get(&format!("{namespace}/{name}")).map(|item| &item.workload)
    }

    /// Takes a new or changed LocalQueue; `None` if it was deleted.
    pub fn set_local_queue(&mut self, namespace: &str, name: &str, queue: Option<&LocalQueue>) {
        let key = format!("{namespace}/{name}");
        let spec = queue.map(|queue| LocalTarget {
            cluster_queue: queue.spec.cluster_queue.clone(),
            stopped: queue.spec.stop_policy.as_deref().is_some_and(|policy| policy != "None"),
            usage: self.weights.as_ref().map_or(0, |weights| weights.usage(queue)),
        });
        let order = self.local_queues.entry(key.clone()).or_default();
        if order.spec == spec {
            // A deleted queue that was never seen leaves no record.
            return self.forget_local(&key);
        }
        let before = place(&self.cluster_queues, order);
        order.spec = spec;
        let after = place(&self.cluster_queues, order);
        if before != after {
            self.move_all(&key, before, after);
        }
        self.forget_local(&key);
    }

    /// Takes a new or changed ClusterQueue; `None` if it was deleted.
    pub fn set_cluster_queue(&mut self, name: &str, queue: Option<&ClusterQueue>) {
        let asks = queue.is_some_and(|queue| index::has_usage_based_admission(&queue.spec));
        let shares = self.weights.is_some() && asks;
        let order = self.cluster_queues.entry(name.to_owned()).or_default();
        order.exists = queue.is_some();
        if order.shares != shares {
            order.shares = shares;
            for (_, item) in std::mem::take(&mut order.items).iter_from(0) {
                let local = self.local_queues.get(&item.local_queue());
                order.insert(local.map_or(0, LocalOrder::usage), item);
            }
        }
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
            .map(|((_, item), position)| {
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
            .map(|(item, position)| item.show(cluster.rank(order.usage(), item), position))
            .collect()
    }

    fn enter(&mut self, item: &Arc<PendingItem>) {
        let order = self.local_queues.entry(item.local_queue()).or_default();
        order.items.insert(Arc::clone(item));
        if let Some(target) = order.target() {
            let cluster = self.cluster_queues.entry(target.to_owned()).or_default();
            cluster.insert(order.usage(), item);
        }
    }

    fn leave(&mut self, item: &Arc<PendingItem>) {
        let key = item.local_queue();
        let Some(order) = self.local_queues.get_mut(&key) else { return };
        order.items.remove(item);
        let usage = order.usage();
        if let Some(target) = order.target().map(str::to_owned) {
            if let Some(cluster) = self.cluster_queues.get_mut(&target) {
                cluster.remove(usage, item);
            }
            self.forget_cluster(&target);
        }
        self.forget_local(&key);
    }

    /// Moves the Workloads of a LocalQueue from one ClusterQueue and usage to another.
    fn move_all(&mut self, local: &str, from: Option<(String, i128)>, to: Option<(String, i128)>) {
        let Some(order) = self.local_queues.get(local) else { return };
        if let Some((name, usage)) = &from
            && let Some(cluster) = self.cluster_queues.get_mut(name)
        {
            order.items.iter_from(0).for_each(|item| cluster.remove(*usage, item));
        }
        if let Some((name, usage)) = &to {
            let cluster = self.cluster_queues.entry(name.clone()).or_default();
            order.items.iter_from(0).for_each(|item| cluster.insert(*usage, item));
        }
        for (name, _) in [from, to].into_iter().flatten() {
            self.forget_cluster(&name);
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

/// The ClusterQueue that the Workloads wait in, and the usage by which they are ordered there.
fn place(
    cluster_queues: &BTreeMap<String, ClusterOrder>,
    order: &LocalOrder,
) -> Option<(String, i128)> {
    let name = order.target()?;
    let usage = cluster_queues.get(name).map_or(0, |cluster| cluster.counted(order.usage()));
    Some((name.to_owned(), usage))
}

#[cfg(test)]
mod tests;
