//! Whether the LocalQueue of a new job dispatches to worker clusters. Reads objects that are not in the cache.

use crds::v1beta2::{AdmissionCheck, ClusterQueue, LocalQueue};
use kube::{Api, Client};

use super::defaulting_facts::{GatherError, read_error};
use crate::webhook_cache::{
    CachedKind, DispatchRoute, RouteObject, SharedWebhookCache, WebhookCache,
};

/// Whether a LocalQueue dispatches to worker clusters.
pub(super) async fn dispatches(
    cache: &SharedWebhookCache,
    client: &Client,
    namespace: &str,
    local_queue: &str,
) -> Result<bool, GatherError> {
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
                read_into(api, "LocalQueue", local_queue, &mut read).await?
            }
            RouteObject::ClusterQueue(name) => {
                let api: Api<ClusterQueue> = Api::all(client.clone());
                read_into(api, "ClusterQueue", &name, &mut read).await?
            }
            RouteObject::AdmissionCheck(name) => {
                let api: Api<AdmissionCheck> = Api::all(client.clone());
                // Another admission check of the ClusterQueue may dispatch.
                if !read_into(api, "AdmissionCheck", &name, &mut read).await? {
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

/// Reads an object. Returns whether it exists.
async fn read_into<K: CachedKind>(
    api: Api<K>,
    kind: &str,
    name: &str,
    read: &mut WebhookCache,
) -> Result<bool, GatherError> {
    let found = api.get_opt(name).await;
    let object = found.map_err(|error| read_error(kind, "kueue.x-k8s.io", name, error))?;
    let exists = object.is_some();
    object.into_iter().for_each(|object| read.apply(object));
    Ok(exists)
}
