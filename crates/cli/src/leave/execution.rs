//! The end of a registration in order. Each step can be repeated.

use std::time::Duration;

use crds::{
    names::{
        SLUICECTL,
        annotations::LEAVING_CLUSTER,
        labels::{MANAGED_BY, MULTI_KUEUE_ORIGIN},
    },
    v1beta2::{MultiKueueCluster, MultiKueueConfig, Workload},
};
use jobs::Kinds;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client,
    api::{ListParams, ObjectMeta, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{
    LeaveFailure, LeaveRequest, RemainingWork,
    plan::{FoundRegistration, LeavePlan, LeaveStep, plan},
    removal::{remove_from_worker, remove_joined},
    secret::{SecretRemoval, secret_name, secret_removal},
};
use crate::{
    access::ClusterAccess,
    conflicts::retry_conflicts,
    drain::{self, DrainFailure, DrainOrder, work_on},
    identity::{self, IdentityConflict},
    join::{HubInstallation, MemberRemoval, joined_configs, set_members, without_member},
    made_by::is_made_by_sluicectl,
    requests::{self, RequestFailure, find, list, list_all},
};

/// Pause between two looks at the copies.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long the requests of a look may take beyond the time of the wait.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// Workloads in a message.
const EXAMPLES: usize = 5;

/// Ends a registration. Without access to the worker its objects stay. `report` gets a line about each step.
///
/// # Errors
/// If work is there, the registration was made by hand, a request fails, or work or copies are left at the end of the time.
pub async fn leave(
    hub: &ClusterAccess,
    worker: Option<&ClusterAccess>,
    request: &LeaveRequest,
    report: &(dyn Fn(&str) + Sync),
) -> Result<(), LeaveFailure> {
    let client = &hub.client;
    if let Some(worker) = worker {
        check_worker(client, &worker.client, &request.name).await?;
    }
    let found: Option<MultiKueueCluster> = find(client, &request.name).await?;
    let joined = joined_secrets(client, request, found.as_ref()).await?;
    let registration = FoundRegistration {
        name: &request.name,
        cluster: found.as_ref(),
        joined: &joined,
        all: &list_all(client).await?,
        has_worker: worker.is_some(),
    };
    let LeavePlan { secret, steps } = plan(&registration, request.work)?;
    let registration =
        EndingRegistration { hub: client, worker, request, cluster: found, secret, report };
    for step in steps {
        registration.take(step).await?;
    }
    Ok(())
}

/// A registration that ends.
struct EndingRegistration<'a> {
    hub: &'a Client,
    worker: Option<&'a ClusterAccess>,
    request: &'a LeaveRequest,
    cluster: Option<MultiKueueCluster>,
    secret: String,
    report: &'a (dyn Fn(&str) + Sync),
}

impl EndingRegistration<'_> {
    async fn take(&self, step: LeaveStep) -> Result<(), LeaveFailure> {
        let Self { hub, worker, request, cluster, secret, report } = self;
        let name = request.name.as_str();
        match (step, worker) {
            (LeaveStep::ReportAbsence, _) => {
                report(&format!("no MultiKueueCluster {name}: removing what else join made"));
            }
            (LeaveStep::EndWork, _) => end_work(hub, request, report).await?,
            (LeaveStep::LeaveConfigs, _) => {
                let configs = cluster.as_ref().map(joined_configs).unwrap_or_default();
                remove_memberships(hub, name, &configs, report).await?;
            }
            (LeaveStep::MarkSecret, _) => mark_secret(hub, request, secret).await?,
            (LeaveStep::RemoveCluster, _) => {
                let cluster = object("kueue.x-k8s.io/v1beta2", "MultiKueueCluster", None, name);
                remove(hub, &cluster, report).await?;
            }
            (LeaveStep::AwaitNoWork, _) => {
                drain::wait_until_empty(hub, name, request.within).await?;
            }
            (LeaveStep::RemoveSecret, _) => remove_secret(hub, request, secret, report).await?,
            (LeaveStep::EndDrain, _) => {
                for line in drain::order(hub, name, DrainOrder::End).await? {
                    report(&format!("hub: {line}"));
                }
            }
            (LeaveStep::AwaitNoCopies, Some(worker)) => {
                until_no_copies(hub, &worker.client, request).await?;
            }
            (LeaveStep::RemoveFromWorker, Some(worker)) => {
                let uid = cluster_uid(hub, "the manager cluster").await?;
                for line in remove_from_worker(&worker.client, &uid).await? {
                    report(&format!("worker: {line}"));
                }
            }
            (LeaveStep::AwaitNoCopies | LeaveStep::RemoveFromWorker, None) => {}
        }
        Ok(())
    }
}

/// With the kubeconfig of another worker the command would remove the rights there.
async fn check_worker(hub: &Client, worker: &Client, name: &str) -> Result<(), LeaveFailure> {
    let found = cluster_uid(worker, &format!("the worker of {name}")).await?;
    let clusters: Vec<MultiKueueCluster> = list_all(hub).await?;
    match identity::conflict(&clusters, name, &found) {
        None => Ok(()),
        Some(IdentityConflict::RegisteredAs { name }) => Err(LeaveFailure::RegisteredAs { name }),
        Some(IdentityConflict::Changed { known }) => {
            Err(LeaveFailure::OtherCluster { cluster: name.to_owned(), known, found })
        }
    }
}

fn object(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

/// The uid of `kube-system`, which identifies a cluster.
async fn cluster_uid(client: &Client, cluster: &str) -> Result<String, LeaveFailure> {
    let uid = requests::cluster_uid(client).await?;
    uid.ok_or_else(|| LeaveFailure::NoIdentity(cluster.to_owned()))
}

async fn remove(
    client: &Client,
    object: &Value,
    report: &(dyn Fn(&str) + Sync),
) -> Result<(), RequestFailure> {
    if let Some(line) = remove_joined(client, object).await? {
        report(&format!("hub: {line}"));
    }
    Ok(())
}

/// The Secrets of the manager's namespace that `join` made. Without the right to list Secrets at most that of the registration: the
/// list only finds a mark under another name, which a command that ended early has left.
async fn joined_secrets(
    client: &Client,
    request: &LeaveRequest,
    found: Option<&MultiKueueCluster>,
) -> Result<Vec<ObjectMeta>, RequestFailure> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &request.hub_namespace);
    let labelled = ListParams::default().labels(&format!("{MANAGED_BY}={SLUICECTL}"));
    let listed = secrets.list_metadata(&labelled).await;
    match listed.map_err(RequestFailure::of("list", "Secret")) {
        Err(failure) if failure.is_forbidden() => {
            let secret = secret_name(&request.name, found, &[]);
            let one = secrets.get_metadata_opt(&secret).await;
            let one = one.map_err(RequestFailure::of("get", format!("Secret {secret}")))?;
            Ok(one.map(|one| one.metadata).filter(is_made_by_sluicectl).into_iter().collect())
        }
        listed => Ok(listed?.items.into_iter().map(|one| one.metadata).collect()),
    }
}

/// Marks a Secret as that of the registration. Without the right to do so the registration ends all the same: the mark only lets the
/// command go on after an early end.
async fn mark_secret(
    client: &Client,
    request: &LeaveRequest,
    secret: &str,
) -> Result<(), RequestFailure> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &request.hub_namespace);
    let mark = json!({"metadata": {"annotations": {LEAVING_CLUSTER: request.name}}});
    let patch = (PatchParams::default(), Patch::Merge(&mark));
    let patched = secrets.patch_metadata(secret, &patch.0, &patch.1);
    match patched.await.map_err(RequestFailure::of("patch", format!("Secret {secret}"))) {
        // It is gone already, or has no mark.
        Err(failure) if failure.is_not_found() || failure.is_forbidden() => Ok(()),
        patched => patched.map(drop),
    }
}

/// Removes the Secret of the registration, unless another one reads it.
async fn remove_secret(
    client: &Client,
    request: &LeaveRequest,
    secret: &str,
    report: &(dyn Fn(&str) + Sync),
) -> Result<(), RequestFailure> {
    match secret_removal(&request.name, secret, &list_all(client).await?) {
        SecretRemoval::Delete(secret) => {
            let secret = object("v1", "Secret", Some(&request.hub_namespace), &secret);
            remove(client, &secret, report).await
        }
        SecretRemoval::Keep { secret, reader } => {
            report(&format!("hub: Secret {secret} kept: MultiKueueCluster {reader} reads it"));
            Ok(())
        }
    }
}

/// No new work from here on, and none left at the end.
async fn end_work(
    client: &Client,
    request: &LeaveRequest,
    report: &(dyn Fn(&str) + Sync),
) -> Result<(), LeaveFailure> {
    let name = request.name.as_str();
    let order = match request.work {
        RemainingWork::Ignore => return Ok(()),
        RemainingWork::Refuse => {
            let left = work_on(client, name).await?;
            if !left.is_empty() {
                let (count, cluster) = (left.len(), name.to_owned());
                let examples = left.into_iter().take(EXAMPLES).collect();
                return Err(LeaveFailure::RemainingWork { cluster, count, examples });
            }
            DrainOrder::Cordon
        }
        RemainingWork::Drain { deadline } => DrainOrder::Drain { deadline },
    };
    match drain::order(client, name, order).await {
        Ok(lines) => lines.iter().for_each(|line| report(&format!("hub: {line}"))),
        // No configuration has it, so it gets no work.
        Err(DrainFailure::NotDispatchedTo(_)) => {}
        Err(failure) => return Err(failure.into()),
    }
    Ok(drain::wait_until_empty(client, name, request.within).await?)
}

/// Removes the worker from the configurations that `join` added it to.
async fn remove_memberships(
    client: &Client,
    name: &str,
    configs: &[String],
    report: &(dyn Fn(&str) + Sync),
) -> Result<(), LeaveFailure> {
    for config in configs {
        let remove = || remove_membership(client, config, name);
        let removed = retry_conflicts(remove, RequestFailure::is_conflict).await?;
        removed.iter().for_each(|line| report(&format!("hub: {line}")));
    }
    Ok(())
}

async fn remove_membership(
    client: &Client,
    config: &str,
    name: &str,
) -> Result<Option<String>, RequestFailure> {
    let Some(found) = find::<MultiKueueConfig>(client, config).await? else {
        return Ok(None);
    };
    match without_member(&found, name) {
        MemberRemoval::NotListed => Ok(None),
        MemberRemoval::Keep(clusters) => {
            set_members(client, &found, &clusters).await?;
            Ok(Some(format!("MultiKueueConfig {config} lists {name} no more")))
        }
        MemberRemoval::Delete => {
            remove_joined(
                client,
                &object("kueue.x-k8s.io/v1beta2", "MultiKueueConfig", None, config),
            )
            .await
        }
        MemberRemoval::Last => Ok(Some(format!(
            "MultiKueueConfig {config} still lists {name}: it must list a cluster, and has no other"
        ))),
    }
}

/// The manager removes copies after the end of a Workload; without its account it could not.
async fn until_no_copies(
    hub: &Client,
    worker: &Client,
    request: &LeaveRequest,
) -> Result<(), LeaveFailure> {
    let within = request.within;
    // The loop ends by itself unless a request hangs.
    let waited =
        timeout(within + ANSWERED_WITHIN, look_until_no_copies(hub, worker, request)).await;
    let cluster = request.name.clone();
    waited.unwrap_or_else(|_| Err(LeaveFailure::NoAnswer { cluster, within }))
}

async fn look_until_no_copies(
    hub: &Client,
    worker: &Client,
    request: &LeaveRequest,
) -> Result<(), LeaveFailure> {
    let installation =
        HubInstallation::read(hub, &request.hub_namespace, &Kinds::default()).await?;
    let end = Instant::now() + request.within;
    let labelled =
        ListParams::default().labels(&format!("{MULTI_KUEUE_ORIGIN}={}", installation.origin));
    loop {
        let copies: Api<Workload> = Api::all(worker.clone());
        let left = match list(&copies, labelled.clone()).await {
            Err(failure) if failure.is_not_found() => Vec::new(),
            listed => listed?,
        };
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() >= end {
            let (cluster, count) = (request.name.clone(), left.len());
            return Err(LeaveFailure::CopiesLeft { cluster, count, within: request.within });
        }
        sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{Arc, Mutex},
    };

    use http::{Request, Response};
    use kube::client::Body;
    use tower::service_fn;

    use super::*;

    /// The names of the found Secrets of the registration `east`, and the requests.
    async fn found_with(codes: [u16; 2], labels: &Value) -> (Option<Vec<String>>, Vec<String>) {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (asked, labels) = (Arc::clone(&requests), labels.clone());
        let api_server = service_fn(move |request: Request<Body>| {
            let path = request.uri().path().trim_start_matches("/api/v1/namespaces/").to_owned();
            let code = if path.ends_with("/secrets") { codes[0] } else { codes[1] };
            asked.lock().expect("the requests").push(path);
            let body = match code {
                200 => json!({
                    "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                    "metadata": {"name": "east", "labels": labels},
                }),
                code => json!({
                    "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                    "reason": if code == 404 { "NotFound" } else { "Forbidden" }, "message": "no",
                }),
            };
            let body = Body::from(body.to_string().into_bytes());
            let response = Response::builder().status(code).body(body).expect("a response");
            async { Ok::<_, Infallible>(response) }
        });
        let request = LeaveRequest {
            name: "east".to_owned(),
            hub_namespace: "hub".to_owned(),
            work: RemainingWork::Refuse,
            within: Duration::ZERO,
        };
        let client = Client::new(api_server, "hub");
        let found = joined_secrets(&client, &request, None).await.ok();
        let names = |all: Vec<ObjectMeta>| all.into_iter().filter_map(|one| one.name).collect();
        let requests = requests.lock().expect("the requests").clone();
        (found.map(names), requests)
    }

    #[tokio::test]
    async fn a_registration_ends_without_the_right_to_list_secrets() {
        let (joined, by_hand) = (json!({MANAGED_BY: SLUICECTL}), json!({}));
        for (codes, labels, names) in [
            ([403, 200], &joined, Some(vec!["east".to_owned()])),
            ([403, 200], &by_hand, Some(Vec::new())),
            ([403, 404], &joined, Some(Vec::new())),
            ([403, 403], &joined, None),
        ] {
            let (found, requests) = found_with(codes, labels).await;
            assert_eq!(found, names, "{codes:?}");
            assert_eq!(requests, ["hub/secrets", "hub/secrets/east"]);
        }
        let (found, requests) = found_with([500, 200], &joined).await;
        assert_eq!((found, requests), (None, vec!["hub/secrets".to_owned()]));
    }
}
