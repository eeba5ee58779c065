//! Reads the kubeconfig of a worker from its Secret or file, or makes it from a ClusterProfile.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, core::DeserializeGuard as Guarded};

use crate::{
    client,
    cluster_profile::{
        ClusterProfileObject,
        credential_plugin::{self, PluginFailure},
    },
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
    /// The command for the ClusterProfile gave no credential.
    #[error(transparent)]
    Plugin(#[from] PluginFailure),
}

/// A kubeconfig, and when its credential is of no use any more.
pub(super) struct LoadedKubeconfig {
    /// The kubeconfig.
    pub(super) kubeconfig: Kubeconfig,
    /// The end of a credential that a command renews.
    pub(super) renewed_before: Option<Timestamp>,
}

/// Reads and validates the kubeconfig with this hash.
///
/// # Errors
/// If it cannot be read, has another hash by now, or is refused.
pub(super) async fn load(
    context: &WorkerContext,
    location: &KubeconfigLocation,
    fingerprint: Fingerprint,
) -> Result<LoadedKubeconfig, NotLoaded> {
    let deadline = context.timing.deadline;
    let (text, place) = match location {
        KubeconfigLocation::Profile(name) => {
            return of_profile(context, name, fingerprint).await;
        }
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
    Ok(LoadedKubeconfig { kubeconfig: Kubeconfig::read(&text)?, renewed_before: None })
}

/// Asks the provider of a ClusterProfile for a credential.
async fn of_profile(
    context: &WorkerContext,
    name: &str,
    fingerprint: Fingerprint,
) -> Result<LoadedKubeconfig, NotLoaded> {
    let profiles = context.profiles.as_ref().ok_or(KubeconfigRefused::ClusterProfile)?;
    let deadline = context.timing.deadline;
    let place = format!("ClusterProfile \"{name}\"");
    let api: Api<ClusterProfileObject> = Api::namespaced(context.home.clone(), &context.namespace);
    let profile = tokio::time::timeout(deadline, api.get_opt(name))
        .await
        .map_err(|_| later(&place, &unanswered(deadline)))?
        .map_err(|error| later(&place, &client::describe(&error)))?;
    let access = profiles.access(name, profile.as_ref())?;
    if access.fingerprint() != fingerprint {
        return Err(later(&place, "it has just changed"));
    }
    let credential = credential_plugin::run(&access, &profiles.running).await?;
    let kubeconfig = Kubeconfig::read(credential.kubeconfig(&access).as_bytes())
        .map_err(|refused| KubeconfigRefused::UnsafeProfile(Box::new(refused)))?;
    // A token may say its end although the provider does not.
    let credential_expires = kubeconfig.credential_expiry().map(|expiry| expiry.expires);
    let renewed_before = credential.expires.into_iter().chain(credential_expires).min();
    Ok(LoadedKubeconfig { kubeconfig, renewed_before })
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
