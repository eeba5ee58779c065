//! Keeps the cache up to date: one watch per kind.

use crds::v1beta2::{AdmissionCheck, ClusterQueue, LocalQueue, WorkloadPriorityClass};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use runtime::{
    Stop,
    watch::{Config, Watch, WatchMetrics},
};
use tokio::sync::mpsc;

use super::{CachedKind, SharedWebhookCache};

/// Capacity of the channel from a watch to the cache. The cache handles changes at once.
const CHANNEL_CAPACITY: usize = 16;

/// Watches all kinds until `stop`.
pub async fn run_watches(
    client: Client,
    cache: SharedWebhookCache,
    metrics: WatchMetrics,
    stop: Stop,
) {
    tokio::join!(
        watch_kind::<LocalQueue>(&client, &cache, &metrics, &stop),
        watch_kind::<ClusterQueue>(&client, &cache, &metrics, &stop),
        watch_kind::<AdmissionCheck>(&client, &cache, &metrics, &stop),
        watch_kind::<Namespace>(&client, &cache, &metrics, &stop),
        watch_kind::<WorkloadPriorityClass>(&client, &cache, &metrics, &stop),
    );
}

async fn watch_kind<K: CachedKind>(
    client: &Client,
    cache: &SharedWebhookCache,
    metrics: &WatchMetrics,
    stop: &Stop,
) {
    let (sender, mut changes) = mpsc::channel(CHANNEL_CAPACITY);
    let watch = Watch::<K>::new(K::WATCH.0, Api::all(client.clone()), Config::default(), metrics);
    let handle = async {
        while let Some(change) = changes.recv().await {
            cache.handle(change);
        }
    };
    tokio::join!(watch.run(sender, stop.clone()), handle);
}
