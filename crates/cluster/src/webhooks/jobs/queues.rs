//! Where the queue of a new job leads. What no watch has shown yet is read.

use crds::v1beta2::{AdmissionCheck, ClusterQueue, LocalQueue};
use kube::{Api, Client};

use super::surroundings::{Unknown, unknown};
use crate::facts::{Fact, Facts, Known, Link, Route};

/// Whether a LocalQueue hands its jobs to workers.
pub(super) async fn dispatches(
    known: &Known,
    client: &Client,
    namespace: &str,
    local_queue: &str,
) -> Result<bool, Unknown> {
    let mut read = Facts::default();
    loop {
        let link = match known.ask(|facts| Route::of(facts, &read, namespace, local_queue)) {
            Route::Known(dispatches) => return Ok(dispatches),
            Route::Through(link) => link,
        };
        let exists = match link {
            Link::LocalQueue => {
                let api: Api<LocalQueue> = Api::namespaced(client.clone(), namespace);
                learn(api, "LocalQueue", local_queue, &mut read).await?
            }
            Link::ClusterQueue(name) => {
                let api: Api<ClusterQueue> = Api::all(client.clone());
                learn(api, "ClusterQueue", &name, &mut read).await?
            }
            Link::AdmissionCheck(name) => {
                let api: Api<AdmissionCheck> = Api::all(client.clone());
                // Another check of the queue may lead to workers.
                if !learn(api, "AdmissionCheck", &name, &mut read).await? {
                    read.lack_check(name);
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
async fn learn<K: Fact>(
    api: Api<K>,
    kind: &str,
    name: &str,
    read: &mut Facts,
) -> Result<bool, Unknown> {
    let found = api.get_opt(name).await;
    let object = found.map_err(|error| unknown(kind, "kueue.x-k8s.io", name, error))?;
    let exists = object.is_some();
    object.into_iter().for_each(|object| read.apply(object));
    Ok(exists)
}
