//! The queues of one worker, and its last report.

use std::{collections::BTreeSet, sync::Arc};

use crds::{
    v1alpha1::ClusterCapacity,
    v1beta2::{ClusterQueue, LocalQueue},
};
use index::{ResourceTotals, nominal_totals, sum_totals};
use kube::Resource;
use runtime::watch::{Change, Key};

use crate::control::{change::for_each_object, key_map::KeyMap};

/// The objects of one kind that a worker has.
#[derive(Debug)]
struct WorkerObjects<K, V> {
    known: KeyMap<K, V>,
    /// They were listed since the worker was connected.
    listed: bool,
}

impl<K: Ord + Clone, V> Default for WorkerObjects<K, V> {
    fn default() -> Self {
        Self { known: KeyMap::new(), listed: false }
    }
}

impl<K: Ord + Clone, V> WorkerObjects<K, V> {
    fn observe<O: Resource>(
        &mut self,
        change: Change<O>,
        read: impl Fn(&Key, Option<&O>) -> (K, Option<V>),
    ) {
        // The first list of a connection is complete: what it lacks is gone.
        if change.is_list() && !self.listed {
            self.known = KeyMap::new();
            self.listed = true;
        }
        for_each_object(change, |key, object| {
            match read(&key, object.as_deref()) {
                (key, Some(value)) => self.known.insert(key, value),
                (key, None) => self.known.remove(&key),
            };
        });
    }
}

/// The queues of one worker, and its last report. What was observed before a disconnection stays until the next list.
#[derive(Debug, Default)]
pub(super) struct WorkerQueues {
    cluster_queues: WorkerObjects<Box<str>, ResourceTotals>,
    /// The ClusterQueue that each LocalQueue names.
    local_queues: WorkerObjects<Key, Box<str>>,
    /// The last report; a worker with an agent has no queues.
    report: Option<Arc<ClusterCapacity>>,
    /// It was reached once, so that what is known is what it had.
    known: bool,
}

impl WorkerQueues {
    pub(super) fn observe_cluster_queues(&mut self, change: Change<ClusterQueue>) {
        self.cluster_queues.observe(change, |key, queue| {
            ((*key.name).into(), queue.map(|queue| nominal_totals(&queue.spec)))
        });
    }

    pub(super) fn observe_local_queues(&mut self, change: Change<LocalQueue>) {
        self.local_queues.observe(change, |key, queue| {
            (key.clone(), queue.map(|queue| queue.spec.cluster_queue.as_str().into()))
        });
    }

    /// The lists of another connection do not count for this one.
    pub(super) fn connection_changed(&mut self) {
        self.cluster_queues.listed = false;
        self.local_queues.listed = false;
    }

    /// The worker is connected and has this report. Returns whether everything is known of it.
    pub(super) fn observe_connected(&mut self, report: Option<Arc<ClusterCapacity>>) -> bool {
        let listed = self.cluster_queues.listed && self.local_queues.listed;
        if report.is_some() || listed {
            self.report = report;
            self.known = true;
        }
        self.known && (self.report.is_some() || listed)
    }

    /// Whether it was ever known what the worker has.
    pub(super) fn is_known(&self) -> bool {
        self.known
    }

    pub(super) fn report(&self) -> Option<&ClusterCapacity> {
        self.report.as_deref()
    }

    /// The nominal quota of the ClusterQueues behind LocalQueues with these keys, each once.
    pub(super) fn totals<'k>(&self, keys: impl Iterator<Item = &'k Key>) -> ResourceTotals {
        let named: BTreeSet<&str> =
            keys.filter_map(|key| Some(&**self.local_queues.known.get(key)?)).collect();
        sum_totals(named.into_iter().filter_map(|name| self.cluster_queues.known.get(name)))
    }
}
