//! Reads what the plan is made of.

use std::collections::BTreeMap;

use crds::{
    names::{INCARNATION_CONFIG_MAP, incarnation, labels::MULTI_KUEUE_ORIGIN},
    v1alpha1::ClusterCapacity,
    v1beta2::{MultiKueueCluster, Workload},
};
use jobs::{JobObject, Kind, Kinds};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams},
};
use remote::{KubeconfigDirectory, WorkerClients};
use runtime::request_metrics::RequestMetrics;

use super::{
    RebuildFailure,
    observed::{HubStamp, ObservedHub, ObservedWorker, job_name, object_name},
};
use crate::requests::{self, find_in, list, list_all, list_if_served, list_of};

/// The workers.
#[derive(Default)]
pub struct ReachedWorkers {
    /// What they have.
    pub objects: Vec<ObservedWorker>,
    /// Clients with the manager's rights there, by the name of the MultiKueueCluster.
    pub clients: BTreeMap<String, Client>,
}

/// Reads the manager cluster.
///
/// # Errors
/// If a request fails or a job does not decode.
pub async fn read_hub(
    client: &Client,
    namespace: &str,
    kinds: &Kinds,
) -> Result<ObservedHub, RebuildFailure> {
    let namespaces: Vec<Namespace> = list_all(client).await?;
    let workloads: Vec<Workload> = list_all(client).await?;
    let mut jobs = BTreeMap::new();
    for kind in kinds.iter() {
        let found = jobs_of(client, kind, &ListParams::default()).await?;
        jobs.extend(found.into_iter().map(|job| (job_name(&job), job)));
    }
    let record: Option<ConfigMap> = find_in(client, namespace, INCARNATION_CONFIG_MAP).await?;
    Ok(ObservedHub {
        stamp: record.as_ref().and_then(stamp_of),
        uid: identity(client, "the manager cluster").await?,
        kinds: kinds.clone(),
        namespaces: namespaces.into_iter().filter_map(|one| one.metadata.name).collect(),
        local_queues: list_all(client).await?,
        cluster_queues: list_all(client).await?,
        flavors: list_all(client).await?,
        checks: list_all(client).await?,
        configs: list_all(client).await?,
        clusters: list_all(client).await?,
        workloads: workloads.into_iter().map(|one| (object_name(&one.metadata), one)).collect(),
        jobs,
    })
}

/// The incarnation of a record; `None` without its numbers.
#[must_use]
pub fn stamp_of(record: &ConfigMap) -> Option<HubStamp> {
    let data = record.data.as_ref()?;
    let number = |key: &str| data.get(key)?.parse().ok();
    Some(HubStamp {
        incarnation: number(incarnation::NUMBER)?,
        term: number(incarnation::TERM)?,
        version: record.metadata.resource_version.clone()?,
    })
}

/// Reads the registered workers, or those that are named.
///
/// # Errors
/// If one cannot be reached, is not registered, or is registered twice.
pub async fn read_workers(
    (hub, namespace): (&Client, &str),
    clusters: &[MultiKueueCluster],
    (names, origin): (&[String], &str),
    kinds: &Kinds,
) -> Result<ReachedWorkers, RebuildFailure> {
    let name_of = |one: &MultiKueueCluster| one.metadata.name.clone().unwrap_or_default();
    if let Some(unknown) =
        names.iter().find(|name| clusters.iter().all(|one| name_of(one) != **name))
    {
        return Err(RebuildFailure::NoCluster(unknown.clone()));
    }
    let directory = KubeconfigDirectory::default();
    let clients = WorkerClients::new(hub.clone(), namespace, directory, RequestMetrics::default());
    let (mut workers, mut by_uid) = (ReachedWorkers::default(), BTreeMap::new());
    let selected = clusters.iter().filter(|one| names.is_empty() || names.contains(&name_of(one)));
    for cluster in selected {
        let name = name_of(cluster);
        let client = clients.by_kubeconfig(&name, &cluster.spec).await?;
        let worker = read_worker(&name, &client, origin, kinds).await;
        let (uid, objects) = worker.map_err(|error| RebuildFailure::Worker {
            name: name.clone(),
            source: Box::new(error),
        })?;
        // Its copies would seem to be on two workers.
        if let Some(first) = by_uid.insert(uid, name.clone()) {
            return Err(RebuildFailure::SameCluster { first, second: name });
        }
        workers.objects.push(objects);
        workers.clients.insert(name, client);
    }
    Ok(workers)
}

/// The identity of a worker, and what it has.
async fn read_worker(
    name: &str,
    client: &Client,
    origin: &str,
    kinds: &Kinds,
) -> Result<(String, ObservedWorker), RebuildFailure> {
    let of_origin = ListParams::default().labels(&format!("{MULTI_KUEUE_ORIGIN}={origin}"));
    let mut jobs = Vec::new();
    for kind in kinds.iter() {
        jobs.extend(jobs_of(client, kind, &of_origin).await?);
    }
    // After the jobs: a job is never without the clone that was made with it.
    let clones: Vec<Workload> = list(&Api::all(client.clone()), of_origin).await?;
    let capacities: Vec<ClusterCapacity> = list_if_served(client).await?;
    let mut entries = capacities.into_iter().flat_map(|one| one.spec.managers);
    let entry = entries.find(|entry| entry.origin == origin);
    let objects = ObservedWorker {
        cluster: name.to_owned(),
        manager: entry.map(|entry| entry.cluster).unwrap_or_default(),
        clones,
        jobs,
    };
    Ok((identity(client, name).await?, objects))
}

async fn identity(client: &Client, cluster: &str) -> Result<String, RebuildFailure> {
    let uid = requests::cluster_uid(client).await?;
    uid.ok_or_else(|| RebuildFailure::NoIdentity(cluster.to_owned()))
}

/// The resource of a kind of jobs.
#[must_use]
pub fn resource(kind: &Kind) -> ApiResource {
    ApiResource::erase::<JobObject>(kind)
}

/// Jobs of a kind. A cluster that does not serve the kind has none.
async fn jobs_of(
    client: &Client,
    kind: &Kind,
    params: &ListParams,
) -> Result<Vec<JobObject>, RebuildFailure> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource(kind));
    match list_of(&api, kind.name(), params.clone()).await {
        Err(failure) if failure.is_not_found() => Ok(Vec::new()),
        listed => listed?.iter().map(|object| decoded(kind, object)).collect(),
    }
}

/// The job that an answer holds.
///
/// # Errors
/// If it does not decode.
pub fn decoded(kind: &Kind, object: &DynamicObject) -> Result<JobObject, RebuildFailure> {
    let undecodable = |reason: String| {
        let object = requests::object_name(kind.name(), &object.metadata);
        RebuildFailure::Undecodable { object, reason }
    };
    let value = serde_json::to_value(object).map_err(|error| undecodable(error.to_string()))?;
    kind.decode(value).map_err(undecodable)
}
