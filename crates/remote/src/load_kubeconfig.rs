//! Reads the kubeconfig of a worker from its Secret or file, or makes it from a ClusterProfile.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client,
    core::{ApiResource, DeserializeGuard as Guarded},
};
use runtime::named_read::find;

use crate::{
    client,
    cluster_profile::{
        ClusterProfileObject,
        credential_plugin::{self, PluginFailure},
    },
    context::WorkerContext,
    kubeconfig::Kubeconfig,
    kubeconfig_file::KubeconfigDirectory,
    kubeconfig_refused::KubeconfigRefused,
    kubeconfig_secret::{Fingerprint, KEY},
    reconcile::{KubeconfigLocation, KubeconfigVersion},
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

/// Why a request of a user does not reach a worker that a ClusterProfile describes.
const ON_LEADER_ONLY: &str = "it is used for the connection of the manager only";

/// Where kubeconfigs are read.
pub(super) struct KubeconfigSources<'a> {
    /// The client of the manager's own cluster.
    pub(super) home: &'a Client,
    /// The namespace of the Secrets.
    pub(super) namespace: &'a str,
    /// Where kubeconfigs in files are.
    pub(super) files: &'a KubeconfigDirectory,
    /// The timeout of a read.
    pub(super) deadline: Duration,
}

impl KubeconfigSources<'_> {
    /// The text of a kubeconfig.
    ///
    /// # Errors
    /// If it cannot be read, or does not exist.
    pub(super) async fn read(&self, location: &KubeconfigLocation) -> Result<Vec<u8>, NotLoaded> {
        match location {
            KubeconfigLocation::Secret(name) => self.of_secret(name).await,
            KubeconfigLocation::File(path) => {
                let read = self.files.clone().read(path.clone());
                let late = |_| later(&location.to_string(), &unanswered(self.deadline));
                Ok(tokio::time::timeout(self.deadline, read).await.map_err(late)??)
            }
            // Only the leader runs the commands that give a credential.
            KubeconfigLocation::Profile(_) => Err(later(&location.to_string(), ON_LEADER_ONLY)),
        }
    }

    async fn of_secret(&self, name: &str) -> Result<Vec<u8>, NotLoaded> {
        // Guarded: the client prints bodies that do not decode, and this one is a Secret.
        let secrets: Api<Guarded<Secret>> = Api::namespaced(self.home.clone(), self.namespace);
        let resource = ApiResource::erase::<Secret>(&());
        let answer = tokio::time::timeout(self.deadline, find(&secrets, &resource, name)).await;
        let later = |cause: &str| later(&format!("secret \"{name}\""), cause);
        let secret = answer
            .map_err(|_| later(&unanswered(self.deadline)))?
            .map_err(|error| later(&client::describe(&error)))?
            .ok_or_else(|| KubeconfigRefused::NoSecret(name.into()))?;
        let mut secret = secret.0.map_err(|_| later("it does not decode"))?;
        let text = secret.data.as_mut().and_then(|data| data.remove(KEY));
        Ok(text.ok_or_else(|| KubeconfigRefused::NoKey(name.into()))?.0)
    }
}

/// Reads and validates this version of a kubeconfig.
///
/// # Errors
/// If it cannot be read, has another hash by now, or is refused.
pub(super) async fn load(
    context: &WorkerContext,
    kubeconfig: &KubeconfigVersion,
) -> Result<LoadedKubeconfig, NotLoaded> {
    let KubeconfigVersion { location, fingerprint } = kubeconfig;
    if let KubeconfigLocation::Profile(name) = location {
        return of_profile(context, name, *fingerprint).await;
    }
    let sources = KubeconfigSources {
        home: &context.settings.home,
        namespace: &context.settings.namespace,
        files: &context.settings.kubeconfig_files,
        deadline: context.settings.timing.deadline,
    };
    let text = sources.read(location).await?;
    // The supervisor sends the new hash as soon as it has observed the change.
    if Fingerprint::of(&text) != *fingerprint {
        return Err(later(&location.to_string(), "it has just changed"));
    }
    Ok(LoadedKubeconfig { kubeconfig: Kubeconfig::read(&text)?, renewed_before: None })
}

/// Asks the provider of a ClusterProfile for a credential.
async fn of_profile(
    context: &WorkerContext,
    name: &str,
    fingerprint: Fingerprint,
) -> Result<LoadedKubeconfig, NotLoaded> {
    let profiles = context.settings.profiles.as_ref().ok_or(KubeconfigRefused::ClusterProfile)?;
    let deadline = context.settings.timing.deadline;
    let place = KubeconfigLocation::Profile(name.into()).to_string();
    let api: Api<ClusterProfileObject> =
        Api::namespaced(context.settings.home.clone(), &context.settings.namespace);
    let resource = ApiResource::erase::<ClusterProfileObject>(&());
    let profile = tokio::time::timeout(deadline, find(&api, &resource, name))
        .await
        .map_err(|_| later(&place, &unanswered(deadline)))?
        .map_err(|error| later(&place, &client::describe(&error)))?;
    let access = profiles.access(name, profile.as_ref())?;
    if access.fingerprint() != fingerprint {
        return Err(later(&place, "it has just changed"));
    }
    let credential = credential_plugin::run(&access, profiles.permits(access.provider)).await?;
    let kubeconfig = Kubeconfig::read(credential.kubeconfig(&access).as_bytes())
        .map_err(|refused| KubeconfigRefused::UnsafeProfile(Box::new(refused)))?;
    // A token may say its end although the provider does not.
    let credential_expires = kubeconfig.credential_expiry().map(|expiry| expiry.expires);
    let renewed_before = credential.expires.into_iter().chain(credential_expires).min();
    Ok(LoadedKubeconfig { kubeconfig, renewed_before })
}

fn later(place: &str, cause: &str) -> NotLoaded {
    NotLoaded::Later(format!("cannot read {place}: {cause}"))
}

fn unanswered(deadline: Duration) -> String {
    format!("no answer within {deadline:?}")
}
