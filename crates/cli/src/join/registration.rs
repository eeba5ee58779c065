//! The registration in order: checks, the account on the worker, the objects of the manager cluster, the wait.

use std::{fs, time::Duration};

use crds::{
    json::base64,
    meta::{find as find_condition, is_true},
    names::{annotations::CLUSTER_UID, conditions::ACTIVE},
    v1beta2::MultiKueueCluster,
};
use jobs::Kinds;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    runtime::wait::await_condition,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    HubInstallation, JoinEndpoint, JoinFailure, JoinRequest, OtherHub, TokenRequestKind,
    apply::{check, ensure},
    endpoint::{EndpointOptions, choose, cluster_of},
    hub_objects,
    membership::{add_member, joined_configs},
    token::token_of,
    worker_objects::{HubIdentity, RAY_API_ROLE, account_objects, ray_api_binding, token_secret},
};
use crate::{
    access::ClusterAccess,
    identity::{IdentityConflict, conflict},
    output::yaml,
    requests::{self, RequestFailure, find, list_all},
};

/// In place of the token where manifests are printed.
const HIDDEN: &str = "(a token of the ServiceAccount)";

/// What a registration starts from.
struct JoinPlan {
    endpoint: JoinEndpoint,
    hub: HubIdentity,
    /// The uid of the worker.
    worker_uid: String,
    worker_objects: Vec<Value>,
    is_configured: bool,
}

/// Registers a worker. `report` gets a line about each object.
///
/// # Errors
/// If something is in the way, a request fails, or the manager does not connect in time. What was made stays, and the command
/// can be repeated.
pub async fn join(
    hub: &ClusterAccess,
    worker: &ClusterAccess,
    request: &JoinRequest,
    report: &(dyn Fn(&str) + Sync),
) -> Result<(), JoinFailure> {
    let plan = prepare(hub, worker, request).await?;
    if request.wait.is_some() {
        check_installed(&worker.client).await?;
    }
    if !plan.is_configured {
        report(
            "the manager has no ConfigMap kueue-manager-config: the account gets the rights for all kinds of jobs",
        );
    }
    for object in &plan.worker_objects {
        report(&format!("worker: {}", ensure(&worker.client, object, request.other_hub).await?));
    }
    let token = token_of(&worker.client, request, &plan.hub).await?;
    let secret = hub_objects::secret(request, &plan.endpoint, &token.text);
    report(&format!("hub: {}", ensure(&hub.client, &secret, OtherHub::Refuse).await?));
    if request.replace_cluster {
        report(&format!("hub: {}", note_cluster(&hub.client, request, &plan.worker_uid).await?));
    }
    register(&hub.client, request, token.expires.as_deref(), report).await?;
    if let Some(expires) = &token.expires {
        report(&format!("the token expires at {expires}; the same command replaces it"));
    }
    match request.wait {
        Some(within) => {
            until_active(&hub.client, &request.name, within).await?;
            report(&format!("MultiKueueCluster {} is active", request.name));
            Ok(())
        }
        None => Ok(()),
    }
}

/// The manifests that [`join`] would apply, as YAML, with a text in place of the token. Nothing is written.
///
/// # Errors
/// If something is in the way or a request fails.
pub async fn dry_run(
    hub: &ClusterAccess,
    worker: &ClusterAccess,
    request: &JoinRequest,
) -> Result<String, JoinFailure> {
    let plan = prepare(hub, worker, request).await?;
    let worker_objects = plan.with_token_secret(request);
    let configs: Vec<String> = request.config.iter().cloned().collect();
    let mut hub_objects = vec![
        hub_objects::secret(request, &plan.endpoint, HIDDEN),
        hub_objects::cluster(request, None, &configs),
    ];
    hub_objects.extend(configs.iter().map(|config| hub_objects::config(config, &request.name)));
    let mut text = String::new();
    for (place, objects) in [("worker", worker_objects), ("manager cluster", hub_objects)] {
        for object in &objects {
            text.push_str(&format!("--- # {place}\n{}", yaml(object)?));
        }
    }
    Ok(text)
}

async fn prepare(
    hub: &ClusterAccess,
    worker: &ClusterAccess,
    request: &JoinRequest,
) -> Result<JoinPlan, JoinFailure> {
    let endpoint = endpoint(worker, request)?;
    let hub_uid = cluster_uid(&hub.client).await?;
    let installation =
        HubInstallation::read(&hub.client, &request.hub_namespace, &request.declared).await?;
    let HubInstallation { kinds, origin, namespace, is_configured, .. } = installation;
    let identity = HubIdentity { uid: hub_uid, origin, namespace };
    let mut worker_objects = account_objects_of(request, &kinds, &identity)?;
    // Without the role the worker does not serve the API of Ray clusters.
    if find::<ClusterRole>(&worker.client, RAY_API_ROLE).await?.is_some() {
        worker_objects.extend(ray_api_binding(&request.account, &identity));
    }
    let worker_uid = check_identity(&hub.client, &worker.client, request, &identity.uid).await?;
    let plan = JoinPlan { endpoint, hub: identity, worker_uid, worker_objects, is_configured };
    // All of them before the first write: a refusal leaves nothing behind.
    for object in plan.with_token_secret(request) {
        check(&worker.client, &object, request.other_hub).await?;
    }
    let secret = hub_objects::secret(request, &plan.endpoint, HIDDEN);
    for object in [secret, hub_objects::cluster(request, None, &[])] {
        check(&hub.client, &object, OtherHub::Refuse).await?;
    }
    Ok(plan)
}

impl JoinPlan {
    /// The objects of the worker, with the Secret of a token that does not expire.
    fn with_token_secret(&self, request: &JoinRequest) -> Vec<Value> {
        let secret = match request.token {
            TokenRequestKind::Permanent => Some(token_secret(&request.account, &self.hub)),
            TokenRequestKind::Expiring(_) => None,
        };
        self.worker_objects.iter().cloned().chain(secret).collect()
    }
}

fn account_objects_of(
    request: &JoinRequest,
    kinds: &Kinds,
    hub: &HubIdentity,
) -> Result<Vec<Value>, JoinFailure> {
    Ok(account_objects(&request.account, kinds, request.logs, hub)?)
}

fn endpoint(worker: &ClusterAccess, request: &JoinRequest) -> Result<JoinEndpoint, JoinFailure> {
    let read = |file: &std::path::Path| {
        let failed = |source| JoinFailure::Authority { file: file.display().to_string(), source };
        fs::read(file).map_err(failed).map(|pem| base64(&pem))
    };
    let options = EndpointOptions {
        server: request.server.clone(),
        authority: request.authority.as_deref().map(read).transpose()?,
        allow_loopback: request.allow_loopback,
    };
    let cluster = cluster_of(&worker.kubeconfig, &worker.context);
    let file = cluster.and_then(|cluster| cluster.certificate_authority.as_ref());
    let file_authority = file.map(|file| read(file.as_ref())).transpose()?;
    Ok(choose(&worker.kubeconfig, &worker.context, &options, file_authority)?)
}

/// The uid of `kube-system`, which identifies a cluster.
///
/// # Errors
/// If it cannot be read.
async fn cluster_uid(client: &Client) -> Result<String, JoinFailure> {
    let uid = requests::cluster_uid(client).await?;
    uid.ok_or_else(|| JoinFailure::NoObject { object: "Namespace kube-system".to_owned() })
}

/// A worker is another cluster than the manager's, and has one name. Gives its uid.
async fn check_identity(
    hub: &Client,
    worker: &Client,
    request: &JoinRequest,
    hub_uid: &str,
) -> Result<String, JoinFailure> {
    let uid = cluster_uid(worker).await?;
    if uid == hub_uid {
        return Err(JoinFailure::SameCluster);
    }
    let clusters: Vec<MultiKueueCluster> = list_all(hub).await?;
    match conflict(&clusters, &request.name, &uid) {
        Some(IdentityConflict::RegisteredAs { name }) => Err(JoinFailure::RegisteredAs { name }),
        Some(IdentityConflict::Changed { known }) if !request.replace_cluster => {
            Err(JoinFailure::OtherCluster { name: request.name.clone(), known, found: uid })
        }
        Some(IdentityConflict::Changed { .. }) | None => Ok(uid),
    }
}

/// Notes that the registration is about this cluster. Until then the manager does not use another one than it knows.
async fn note_cluster(
    hub: &Client,
    request: &JoinRequest,
    uid: &str,
) -> Result<String, JoinFailure> {
    let name = &request.name;
    let clusters: Api<MultiKueueCluster> = Api::all(hub.clone());
    let patch = json!({"metadata": {"annotations": {CLUSTER_UID: uid}}});
    match clusters.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await {
        Ok(_) => Ok(format!("MultiKueueCluster {name} is about the cluster {uid}")),
        // The manager notes the first cluster of a registration.
        Err(kube::Error::Api(status)) if status.code == 404 => {
            Ok(format!("MultiKueueCluster {name} is new"))
        }
        Err(error) => {
            let object = format!("MultiKueueCluster {name}");
            Err(RequestFailure::of("change", object)(error).into())
        }
    }
}

/// Without Kueue's kinds the manager would never connect.
async fn check_installed(worker: &Client) -> Result<(), JoinFailure> {
    let failed = RequestFailure::of("list", "the kinds of kueue.x-k8s.io/v1beta2");
    let listed = worker.list_api_group_resources("kueue.x-k8s.io/v1beta2").await.map_err(failed);
    match listed {
        Ok(kinds) if kinds.resources.iter().any(|one| one.name == "workloads") => Ok(()),
        Ok(_) => Err(JoinFailure::NotInstalled),
        Err(failure) if failure.is_not_found() => Err(JoinFailure::NotInstalled),
        Err(failure) => Err(failure.into()),
    }
}

/// Makes the MultiKueueCluster and its entry in a configuration.
async fn register(
    hub: &Client,
    request: &JoinRequest,
    expires: Option<&str>,
    report: &(dyn Fn(&str) + Sync),
) -> Result<(), JoinFailure> {
    let known: Option<MultiKueueCluster> = find(hub, &request.name).await?;
    let mut configs = known.as_ref().map(joined_configs).unwrap_or_default();
    // Noted before the entry is made: `leave` then removes it even if this process ends in between.
    if let Some(config) = &request.config {
        let listed = find::<crds::v1beta2::MultiKueueConfig>(hub, config).await?;
        let listed = listed.is_some_and(|one| one.spec.clusters.contains(&request.name));
        if !listed && !configs.contains(config) {
            configs.push(config.clone());
        }
    }
    let cluster = hub_objects::cluster(request, expires, &configs);
    report(&format!("hub: {}", ensure(hub, &cluster, OtherHub::Refuse).await?));
    if let Some(config) = &request.config {
        let line = add_member(hub, config, &request.name).await?;
        report(&format!("hub: {line}"));
    }
    Ok(())
}

async fn until_active(hub: &Client, name: &str, within: Duration) -> Result<(), JoinFailure> {
    let clusters: Api<MultiKueueCluster> = Api::all(hub.clone());
    let active = |one: Option<&MultiKueueCluster>| {
        one.is_some_and(|one| is_true(&one.status.conditions, ACTIVE))
    };
    if let Ok(Ok(_)) = timeout(within, await_condition(clusters, name, active)).await {
        return Ok(());
    }
    let found: Option<MultiKueueCluster> = find(hub, name).await?;
    let condition = found.as_ref().and_then(|one| find_condition(&one.status.conditions, ACTIVE));
    let why = match condition {
        Some(condition) => format!("{}: {}", condition.reason, condition.message),
        None => "no condition Active: does sluice-manager run on the manager cluster?".to_owned(),
    };
    Err(JoinFailure::NotActive { name: name.to_owned(), within, why })
}
