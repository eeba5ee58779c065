//! Where the queue of a new job leads. What no watch has shown yet is read.

use crds::v1beta2::{AdmissionCheck, ClusterQueue, LocalQueue};
use kube::{Api, Client};

use super::surroundings::{Unknown, unknown};
use crate::webhook_cache::{
    CachedKind, DispatchRoute, RouteObject, SharedWebhookCache, WebhookCache,
};

/// Whether a LocalQueue hands its jobs to workers.
pub(super) async fn dispatches(
    cache: &SharedWebhookCache,
    client: &Client,
    namespace: &str,
    local_queue: &str,
) -> Result<bool, Unknown> {
    let mut read = WebhookCache::default();
    loop {
        let link = match cache.read(|cache| DispatchRoute::of(cache, &read, namespace, local_queue))
        {
            DispatchRoute::Resolved(dispatches) => return Ok(dispatches),
            DispatchRoute::Unresolved(link) => link,
        };
        let exists = match link {
            RouteObject::LocalQueue => {
                let api: Api<LocalQueue> = Api::namespaced(client.clone(), namespace);
                learn(api, "LocalQueue", local_queue, &mut read).await?
            }
            RouteObject::ClusterQueue(name) => {
                let api: Api<ClusterQueue> = Api::all(client.clone());
                learn(api, "ClusterQueue", &name, &mut read).await?
            }
            RouteObject::AdmissionCheck(name) => {
                let api: Api<AdmissionCheck> = Api::all(client.clone());
                // Another check of the queue may lead to workers.
                if !learn(api, "AdmissionCheck", &name, &mut read).await? {
                    read.insert_missing_check(name);
                }
                true
            }
        };
        if !exists {
            return Ok(false);
        }
    }
}

/// Reads an object. Whether there is one.
async fn learn<K: CachedKind>(
    api: Api<K>,
    kind: &str,
    name: &str,
    read: &mut WebhookCache,
) -> Result<bool, Unknown> {
    let found = api.get_opt(name).await;
    let object = found.map_err(|error| unknown(kind, "kueue.x-k8s.io", name, error))?;
    let exists = object.is_some();
    object.into_iter().for_each(|object| read.apply(object));
    Ok(exists)
}
