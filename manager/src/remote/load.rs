//! Reads the kubeconfig of a worker from its Secret, at the moment when it is needed.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use runtime::watch::Guarded;

use super::{
    client,
    kubeconfig::Kubeconfig,
    refused::Refused,
    secret::{Fingerprint, KEY},
};

/// Why there is no kubeconfig now.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotLoaded {
    /// It is no good, until it is another.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It may be read later.
    #[error("{0}")]
    Later(String),
}

/// Reads and judges the kubeconfig that has this hash.
///
/// # Errors
/// If it cannot be read, is another by now, or is refused.
pub(super) async fn load(
    (home, namespace): (&Client, &str),
    (name, fingerprint): (&str, Fingerprint),
    deadline: Duration,
) -> Result<Kubeconfig, NotLoaded> {
    // Guarded: what does not decode must not be printed by the client.
    let secrets: Api<Guarded<Secret>> = Api::namespaced(home.clone(), namespace);
    let answer = tokio::time::timeout(deadline, secrets.get_opt(name)).await;
    let later = |cause: &str| NotLoaded::Later(format!("cannot read secret \"{name}\": {cause}"));
    let secret = answer
        .map_err(|_| later(&format!("no answer within {deadline:?}")))?
        .map_err(|error| later(&client::tell(&error)))?
        .ok_or_else(|| Refused::NoSecret(name.into()))?;
    let mut secret = secret.0.map_err(|_| later("it does not decode"))?;
    let text = secret.data.as_mut().and_then(|data| data.remove(KEY));
    let text = text.ok_or_else(|| Refused::NoKey(name.into()))?.0;
    if Fingerprint::of(&text) != fingerprint {
        return Err(later("it has just changed"));
    }
    Ok(Kubeconfig::read(&text)?)
}
