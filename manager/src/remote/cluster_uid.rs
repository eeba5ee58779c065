//! Identifies the cluster behind a connection and claims it for a MultiKueueCluster, before the connection is used.
//!
//! The identity of a cluster is the uid of its namespace kube-system. If the account may not read it, as with accounts made
//! for Kueue, the connection is used without a claim.

use std::time::Duration;

use cluster::control::Purpose;
use crds::{names::annotations::CLUSTER_UID, v1beta2::MultiKueueCluster};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use runtime::{
    watch::Key,
    write::Write,
    writer::{WriteLimits, WriteOutcome, Writer},
};
use serde_json::json;

use super::{
    claims::ClaimResult,
    client::{Unreachable, describe},
    context::WorkerContext,
};

/// A namespace that exists as long as its cluster.
const SYSTEM_NAMESPACE: &str = "kube-system";

/// Claims the cluster of the client for a MultiKueueCluster and writes the claim.
///
/// # Errors
/// If the cluster belongs to another MultiKueueCluster, or if one of the two servers does not respond.
pub(super) async fn claim(
    name: &str,
    client: &Client,
    context: &WorkerContext,
) -> Result<(), Unreachable> {
    let Some(uid) = uid(client, context.timing.deadline).await? else {
        tracing::warn!(
            cluster = name,
            "cannot tell which cluster this is: let the account get namespace {SYSTEM_NAMESPACE}"
        );
        return Ok(());
    };
    let result = context.claims.lock().claim(name, &uid);
    match result {
        ClaimResult::Valid => Ok(()),
        ClaimResult::TakenBy(other) => Err(Unreachable::TakenBy(other)),
        ClaimResult::Write => {
            let written = write(name, &uid, context).await;
            if written.is_err() {
                context.claims.lock().withdraw(name);
            }
            written
        }
    }
}

async fn uid(client: &Client, deadline: Duration) -> Result<Option<String>, Unreachable> {
    let namespaces = Api::<Namespace>::all(client.clone());
    match tokio::time::timeout(deadline, namespaces.get_metadata(SYSTEM_NAMESPACE)).await {
        Ok(Ok(namespace)) => Ok(namespace.metadata.uid),
        Ok(Err(kube::Error::Api(status))) if matches!(status.code, 403 | 404) => Ok(None),
        Ok(Err(error)) => Err(Unreachable::Failed(describe(&error))),
        Err(_) => Err(Unreachable::Silent(deadline)),
    }
}

async fn write(name: &str, uid: &str, context: &WorkerContext) -> Result<(), Unreachable> {
    let failed = |cause: &dyn std::fmt::Display| {
        Unreachable::Failed(format!("cannot write down which cluster this is: {cause}"))
    };
    let key = Key { namespace: None, name: name.into() };
    let fields = json!({ "metadata": { "annotations": { CLUSTER_UID: uid } } });
    let write = Write::merge::<MultiKueueCluster>(Purpose::ClusterUid.name(), &key, None, &fields);
    let write = write.map_err(|error| failed(&error))?;
    let limits = WriteLimits { max_in_flight: 1, deadline: context.timing.deadline };
    let home = Writer::new(context.home.clone(), "home", limits, context.writes.clone());
    let home = home.led_by(context.leadership.clone());
    match home.send(write).await {
        WriteOutcome::Done(_) => Ok(()),
        WriteOutcome::Refused { message, .. } | WriteOutcome::Unknown(message) => {
            Err(failed(&message))
        }
        WriteOutcome::Exists | WriteOutcome::Stale | WriteOutcome::Gone => {
            Err(failed(&"it has just changed"))
        }
    }
}
