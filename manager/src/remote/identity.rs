//! Which cluster a registration leads to, and whether it may: asked before a connection is used.
//!
//! A cluster is known by the uid of its namespace kube-system. An account that may not read it, as other managers' may
//! be, is let in unseen: nothing can be said of it then.

use std::time::Duration;

use cluster::control::Purpose;
use crds::{names::annotations::CLUSTER_UID, v1beta2::MultiKueueCluster};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use runtime::{
    watch::Key,
    write::Write,
    writer::{WriteOutcome, Writer},
};
use serde_json::json;

use super::{
    claims::Verdict,
    client::{Unreachable, tell},
    surroundings::Surroundings,
};

/// The namespace that every cluster has as long as it lives.
const SYSTEM: &str = "kube-system";

/// Claims the cluster that the client leads to for a registration, and writes that down.
///
/// # Errors
/// If the cluster is another registration's, or if either server does not answer.
pub(super) async fn claim(
    name: &str,
    client: &Client,
    around: &Surroundings,
) -> Result<(), Unreachable> {
    let Some(uid) = uid(client, around.pace.deadline).await? else {
        tracing::warn!(
            cluster = name,
            "cannot tell which cluster this is: let the account get namespace {SYSTEM}"
        );
        return Ok(());
    };
    let verdict = around.claims.lock().claim(name, &uid);
    match verdict {
        Verdict::Stands => Ok(()),
        Verdict::Another(other) => Err(Unreachable::Another(other)),
        Verdict::Write => {
            let written = write(name, &uid, around).await;
            if written.is_err() {
                around.claims.lock().give_up(name);
            }
            written
        }
    }
}

async fn uid(client: &Client, deadline: Duration) -> Result<Option<String>, Unreachable> {
    let namespaces = Api::<Namespace>::all(client.clone());
    match tokio::time::timeout(deadline, namespaces.get_metadata(SYSTEM)).await {
        Ok(Ok(namespace)) => Ok(namespace.metadata.uid),
        Ok(Err(kube::Error::Api(status))) if matches!(status.code, 403 | 404) => Ok(None),
        Ok(Err(error)) => Err(Unreachable::Failed(tell(&error))),
        Err(_) => Err(Unreachable::Silent(deadline)),
    }
}

async fn write(name: &str, uid: &str, around: &Surroundings) -> Result<(), Unreachable> {
    let failed = |cause: &dyn std::fmt::Display| {
        Unreachable::Failed(format!("cannot write down which cluster this is: {cause}"))
    };
    let key = Key { namespace: None, name: name.into() };
    let fields = json!({ "metadata": { "annotations": { CLUSTER_UID: uid } } });
    let write = Write::merge::<MultiKueueCluster>(Purpose::ClusterUid.name(), &key, None, &fields);
    let write = write.map_err(|error| failed(&error))?;
    let deadline = around.pace.deadline;
    let home = Writer::new(around.home.clone(), "home", 1, deadline, around.writes.clone());
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
