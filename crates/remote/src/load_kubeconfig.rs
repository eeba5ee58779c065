//! Reads the kubeconfig of a worker from its Secret.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, core::DeserializeGuard as Guarded};

use crate::{
    client,
    kubeconfig::Kubeconfig,
    kubeconfig_refused::KubeconfigRefused,
    kubeconfig_secret::{Fingerprint, KEY},
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
    (home, namespace): (&Client, &str),
    (name, fingerprint): (&str, Fingerprint),
    deadline: Duration,
) -> Result<Kubeconfig, NotLoaded> {
    // Guarded: the client prints bodies that do not decode, and this one is a Secret.
    let secrets: Api<Guarded<Secret>> = Api::namespaced(home.clone(), namespace);
    let answer = tokio::time::timeout(deadline, secrets.get_opt(name)).await;
    let later = |cause: &str| NotLoaded::Later(format!("cannot read secret \"{name}\": {cause}"));
    let secret = answer
        .map_err(|_| later(&format!("no answer within {deadline:?}")))?
        .map_err(|error| later(&client::describe(&error)))?
        .ok_or_else(|| KubeconfigRefused::NoSecret(name.into()))?;
    let mut secret = secret.0.map_err(|_| later("it does not decode"))?;
    let text = secret.data.as_mut().and_then(|data| data.remove(KEY));
    let text = text.ok_or_else(|| KubeconfigRefused::NoKey(name.into()))?.0;
    // The supervisor sends the new hash as soon as the watch has delivered the change.
    if Fingerprint::of(&text) != fingerprint {
        return Err(later("it has just changed"));
    }
    Ok(Kubeconfig::read(&text)?)
}
