//! Names of the resources of external frameworks, which the configuration does not say: those that the API server serves.
//!
//! They are read once. A kind that is not served at the start has the name that Kubernetes guesses from it.

use config::JobKinds;
use jobs::Kind;
use kube::Client;

/// The kinds with the names of their resources.
pub(crate) async fn resolve(kinds: &JobKinds, client: &Client) -> JobKinds {
    let mut known = Vec::new();
    for kind in kinds.undiscovered() {
        match served(&kind, client).await {
            Ok(plural) => known.push((kind, plural)),
            Err(error) => {
                let guess = kind.plural();
                tracing::warn!(%kind, %error, guess, "the name of the resource of a kind is guessed");
            }
        }
    }
    kinds.with_resources(|kind| {
        let found = known.iter().find(|(one, _)| one == kind);
        found.and_then(|(_, plural)| plural.clone())
    })
}

/// The name that the API server serves the kind under; `None` if it serves others of the group only.
async fn served(kind: &Kind, client: &Client) -> Result<Option<String>, kube::Error> {
    let resources = client.list_api_group_resources(&kind.api_version()).await?.resources;
    // A subresource has the kind of its resource.
    let mut named = resources.into_iter().filter(|one| !one.name.contains('/'));
    Ok(named.find(|one| one.kind == kind.name()).map(|one| one.name))
}
