//! Identifies the cluster behind a connection and asks for it, before the connection is used and with every probe.
//!
//! The identity of a cluster is the uid of its namespace kube-system. If the account may not read it, as with accounts made
//! for Kueue, the connection is used without a claim. `cluster::control` decides and notes the identity on the
//! MultiKueueCluster; the answer is in the plan of the connection.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use cluster::control::{ClaimResult, ConnectionPlans, ManagerInput, WorkerInput};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use tokio::time::timeout;

use crate::{
    client::{self, Unreachable, describe},
    context::WorkerContext,
};

/// A namespace that exists as long as its cluster.
const SYSTEM_NAMESPACE: &str = "kube-system";

/// Asks for the cluster of the client, for the MultiKueueCluster of this name. Returns its identity, if the account may read it.
///
/// # Errors
/// If the cluster belongs to another MultiKueueCluster, if its identity cannot be noted, or if there is no answer in time.
pub(super) async fn claim(
    name: &str,
    client: &Client,
    context: &WorkerContext,
) -> Result<Option<String>, Unreachable> {
    let Some(uid) = uid(client, context.settings.timing.deadline).await? else {
        tracing::warn!(
            cluster = name,
            "cannot tell which cluster this is: let the account get namespace {SYSTEM_NAMESPACE}"
        );
        return Ok(None);
    };
    // The number tells the answer apart from that to an earlier claim of the same name.
    let request = context.last_claim.fetch_add(1, Ordering::Relaxed) + 1;
    // Subscribed before the request is sent, so that no answer is missed.
    let mut plans = context.workers.plans();
    let identity = WorkerInput::Identity { request, uid: uid.as_str().into() };
    let _ = context.inputs.send(ManagerInput::Worker(name.into(), identity)).await;
    let is_answered = |plans: &Option<Arc<_>>| answer(plans.as_deref(), name, request).is_some();
    let answered = timeout(context.settings.timing.deadline, plans.wait_for(is_answered)).await;
    let failed = |cause: &str| Unreachable::NotNoted(cause.to_owned());
    let Ok(Ok(plans)) = answered else {
        return Err(failed(&format!("no answer within {:?}", context.settings.timing.deadline)));
    };
    match answer(plans.as_deref(), name, request) {
        Some(ClaimResult::Granted) => Ok(Some(uid)),
        Some(ClaimResult::TakenBy(other)) => Err(Unreachable::TakenBy(other)),
        Some(ClaimResult::Changed { known, found }) => Err(Unreachable::Changed { known, found }),
        Some(ClaimResult::Refused(cause)) => Err(failed(&cause)),
        None => Err(failed("no answer")),
    }
}

/// The answer to this request.
fn answer(plans: Option<&ConnectionPlans>, name: &str, request: u64) -> Option<ClaimResult> {
    let claim = plans?.get(name)?.claim.as_ref()?;
    (claim.request == request).then(|| claim.result.clone())
}

/// The identity of the cluster of the client; `None` if the account may not read it.
///
/// # Errors
/// If there is no answer in time, or the server fails.
pub(super) async fn uid(
    client: &Client,
    deadline: Duration,
) -> Result<Option<String>, Unreachable> {
    let namespaces = Api::<Namespace>::all(client.clone());
    match timeout(deadline, namespaces.get_metadata(SYSTEM_NAMESPACE)).await {
        Ok(Ok(namespace)) => Ok(namespace.metadata.uid),
        // Accounts that were made for Kueue's workers have no right to read namespaces.
        Ok(Err(kube::Error::Api(status))) if matches!(status.code, 403 | 404) => {
            client::probe_store(client, deadline).await?;
            Ok(None)
        }
        Ok(Err(error)) => Err(Unreachable::Failed(describe(&error))),
        Err(_) => Err(Unreachable::Silent(deadline)),
    }
}
