//! Reads the kubeconfig of a worker from its Secret or file.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, core::DeserializeGuard as Guarded};

use crate::{
    client,
    context::WorkerContext,
    kubeconfig::Kubeconfig,
    kubeconfig_refused::KubeconfigRefused,
    kubeconfig_secret::{Fingerprint, KEY},
    reconcile::KubeconfigLocation,
};

/// Why the kubeconfig is not available.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotLoaded {
    /// It is refused, until the Secret changes.
    #[error(transparent)]
    Refused(#[from] KubeconfigRefused),
    /// It may be available later.
    #[error("{0}")]
    Later(String),
}

/// Reads and validates the kubeconfig with this hash.
///
/// # Errors
/// If it cannot be read, has another hash by now, or is refused.
pub(super) async fn load(
    context: &WorkerContext,
    location: &KubeconfigLocation,
    fingerprint: Fingerprint,
) -> Result<Kubeconfig, NotLoaded> {
    let deadline = context.timing.deadline;
    let (text, place) = match location {
        KubeconfigLocation::Secret(name) => {
            let home = (&context.home, context.namespace.as_str());
            (of_secret(home, name, deadline).await?, format!("secret \"{name}\""))
        }
        KubeconfigLocation::File(path) => {
            let place = format!("file {path:?}");
            let read = context.kubeconfig_files.clone().read(path.clone());
            let read = tokio::time::timeout(deadline, read).await;
            (read.map_err(|_| later(&place, &unanswered(deadline)))??, place)
        }
    };
    // The supervisor sends the new hash as soon as it has observed the change.
    if Fingerprint::of(&text) != fingerprint {
        return Err(later(&place, "it has just changed"));
    }
    Ok(Kubeconfig::read(&text)?)
}

async fn of_secret(
    (home, namespace): (&Client, &str),
    name: &str,
    deadline: Duration,
) -> Result<Vec<u8>, NotLoaded> {
    // Guarded: the client prints bodies that do not decode, and this one is a Secret.
    let secrets: Api<Guarded<Secret>> = Api::namespaced(home.clone(), namespace);
    let answer = tokio::time::timeout(deadline, secrets.get_opt(name)).await;
    let later = |cause: &str| later(&format!("secret \"{name}\""), cause);
    let secret = answer
        .map_err(|_| later(&unanswered(deadline)))?
        .map_err(|error| later(&client::describe(&error)))?
        .ok_or_else(|| KubeconfigRefused::NoSecret(name.into()))?;
    let mut secret = secret.0.map_err(|_| later("it does not decode"))?;
    let text = secret.data.as_mut().and_then(|data| data.remove(KEY));
    Ok(text.ok_or_else(|| KubeconfigRefused::NoKey(name.into()))?.0)
}

fn later(place: &str, cause: &str) -> NotLoaded {
    NotLoaded::Later(format!("cannot read {place}: {cause}"))
}

fn unanswered(deadline: Duration) -> String {
    format!("no answer within {deadline:?}")
}
