//! The stores of a process: one per kind, however many components read it.

use std::{any::TypeId, collections::BTreeMap, sync::Arc};

use futures::future::BoxFuture;
use kube::{Client, Resource};
use tokio::task::JoinSet;

use super::{DecodeFn, Store, Watch, WatchEnd, WatchMetrics, WatchSource, store::SharedStore};
use crate::Stop;

/// Starts watches and their stores. A watch runs from the first request of its kind until the process stops, whether or not
/// the process leads.
pub struct Stores {
    client: Client,
    metrics: WatchMetrics,
    stop: Stop,
    tasks: JoinSet<()>,
    by_kind: BTreeMap<TypeId, Arc<SharedStore>>,
}

impl Stores {
    /// Watches the cluster of `client` until `stop`.
    #[must_use]
    pub fn new(client: Client, metrics: &WatchMetrics, stop: Stop) -> Self {
        let metrics = metrics.clone();
        Self { client, metrics, stop, tasks: JoinSet::new(), by_kind: BTreeMap::new() }
    }

    /// The store of all objects of a kind. The watch is named after the resource. All callers pass the same decoder.
    pub fn of<K>(&mut self, decode: DecodeFn<K>) -> Store<K>
    where
        K: Resource<DynamicType = ()> + Send + Sync + 'static,
    {
        if let Some(shared) = self.by_kind.get(&TypeId::of::<K>()) {
            return Store::of(Arc::clone(shared));
        }
        let watch = Watch::<K>::typed(&K::plural(&()), decode, &self.source(), &self.metrics);
        let store = self.start(watch);
        self.by_kind.insert(TypeId::of::<K>(), Arc::clone(&store.shared));
        store
    }

    /// All objects of the cluster, for a watch of selected ones or of a kind that is known at run time.
    #[must_use]
    pub fn source(&self) -> WatchSource {
        WatchSource::all(self.client.clone())
    }

    /// The metrics of watches.
    #[must_use]
    pub fn metrics(&self) -> &WatchMetrics {
        &self.metrics
    }

    /// Starts a watch with a store of its own.
    pub fn start<K: Send + Sync + 'static>(&mut self, watch: Watch<K>) -> Store<K> {
        let store = Store::default();
        self.spawn(watch.fill(store.clone(), self.stop.clone()));
        store
    }

    /// Starts a watch with a store of its own when `ready` ends. Until then its store is empty and not listed.
    pub fn start_after<K: Send + Sync + 'static>(
        &mut self,
        ready: BoxFuture<'static, ()>,
        watch: Watch<K>,
    ) -> Store<K> {
        let store = Store::default();
        let watch = watch.fill(store.clone(), self.stop.clone());
        self.spawn(Box::pin(async move {
            ready.await;
            watch.await
        }));
        store
    }

    fn spawn(&mut self, watch: BoxFuture<'static, WatchEnd>) {
        self.tasks.spawn(async move {
            watch.await;
        });
    }

    /// Waits until the process stops. Returns earlier if a watch fails, which is an error of the program.
    pub async fn run(mut self) {
        let stopped = self.stop.clone();
        // Biased: a stop ends the watches as well, which is no error.
        tokio::select! {
            biased;
            () = stopped.cancelled() => {}
            Some(ended) = self.tasks.join_next() => {
                tracing::error!(?ended, "a watch ended");
            }
        }
        // Watches only read, so they can be aborted at any point.
        self.tasks.shutdown().await;
    }
}
