//! Whether the LocalQueue of a new job dispatches to worker clusters. Reads objects that are not in the cache.

use crds::v1beta2::{AdmissionCheck, ClusterQueue, LocalQueue};
use kube::{
    Api, Client, Error,
    core::{ApiResource, DynamicObject},
};

use super::defaulting_facts::{GatherError, read_error};
use crate::cache::{CachedKind, DispatchRoute, RouteObject, SharedWebhookCache, WebhookCache};

/// Whether a LocalQueue dispatches to worker clusters.
pub(super) async fn dispatches(
    cache: &SharedWebhookCache,
    client: &Client,
    namespace: &str,
    local_queue: &str,
) -> Result<bool, GatherError> {
    // Only watches write the shared cache: what is read here counts for this request.
    let mut read = WebhookCache::default();
    loop {
        let unresolved =
            match cache.read(|cache| DispatchRoute::of(cache, &read, namespace, local_queue)) {
                DispatchRoute::Resolved(dispatches) => return Ok(dispatches),
                DispatchRoute::Unresolved(unresolved) => unresolved,
            };
        let exists = match unresolved {
            RouteObject::LocalQueue => {
                let kind = ApiResource::erase::<LocalQueue>(&());
                let api = Api::namespaced_with(client.clone(), namespace, &kind);
                read_into::<LocalQueue>(api, "LocalQueue", local_queue, &mut read).await?
            }
            RouteObject::ClusterQueue(name) => {
                let api = Api::all_with(client.clone(), &ApiResource::erase::<ClusterQueue>(&()));
                read_into::<ClusterQueue>(api, "ClusterQueue", &name, &mut read).await?
            }
            RouteObject::AdmissionCheck(name) => {
                let api = Api::all_with(client.clone(), &ApiResource::erase::<AdmissionCheck>(&()));
                // Another admission check of the ClusterQueue may dispatch.
                if !read_into::<AdmissionCheck>(api, "AdmissionCheck", &name, &mut read).await? {
                    read.insert_missing_check(name);
                }
                true
            }
        };
        // A LocalQueue or ClusterQueue that does not exist leads nowhere, also if it is created
        // later: `managedBy` is set at creation only.
        if !exists {
            return Ok(false);
        }
    }
}

/// Reads an object. Returns whether it exists.
async fn read_into<K: CachedKind>(
    api: Api<DynamicObject>,
    kind: &str,
    name: &str,
    read: &mut WebhookCache,
) -> Result<bool, GatherError> {
    let failed = |error| read_error(kind, "kueue.x-k8s.io", name, error);
    let Some(object) = api.get_opt(name).await.map_err(failed)? else {
        return Ok(false);
    };
    let object = serde_json::to_value(object).and_then(|object| K::decode(&object));
    read.apply(&object.map_err(|error| failed(Error::SerdeError(error)))?);
    Ok(true)
}
