//! Keeps the cache up to date: one subscription per kind.

use crds::{
    decode::Decode,
    v1beta2::{AdmissionCheck, ClusterQueue, LocalQueue, WorkloadPriorityClass},
};
use k8s_openapi::api::core::v1::Namespace;
use runtime::{
    Stop,
    watch::{Store, Stores},
};

use super::{CachedKind, SharedWebhookCache};

/// Follows the stores of all kinds until `stop`. The watches start with the call.
pub fn follow_stores(
    stores: &mut Stores,
    cache: SharedWebhookCache,
    stop: Stop,
) -> impl Future<Output = ()> + Send + use<> {
    let local_queues = follow(stores.of(LocalQueue::decode_text), cache.clone());
    let cluster_queues = follow(stores.of(ClusterQueue::decode_text), cache.clone());
    let checks = follow(stores.of(AdmissionCheck::decode_text), cache.clone());
    let namespaces = follow(stores.of(Namespace::decode_text), cache.clone());
    let classes = follow(stores.of(WorkloadPriorityClass::decode_text), cache);
    async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = local_queues => {}
            () = cluster_queues => {}
            () = checks => {}
            () = namespaces => {}
            () = classes => {}
        }
    }
}

/// Never ends.
async fn follow<K: CachedKind>(store: Store<K>, cache: SharedWebhookCache) {
    let mut changes = store.subscribe();
    loop {
        cache.handle(changes.next().await);
    }
}
