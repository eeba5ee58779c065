//! Gathers the cluster state that defaulting of a job depends on (docs/reference/kueue.md §5.3).
//!
//! The cache has most of it. The API server is read only where the result changes the defaults: a namespace, or a queue and
//! its route, that the watch has not delivered yet, and owners.

use std::{collections::BTreeMap, time::Duration};

use jobs::{
    GenericJob, JobObject,
    ancestor_search::AncestorError,
    defaulting::{self, DefaultingFacts},
    integrations::controller,
};
use serde_json::{Value, json};

use super::{AdmissionResponse, JobSettings, JobWebhooks, queues};

/// The API server's own timeout for webhooks is 10 s.
pub(super) const READ_TIMEOUT: Duration = Duration::from_secs(7);

/// Why the state is not available.
#[derive(Debug, thiserror::Error)]
pub(super) enum GatherError {
    /// The cache is not synced.
    #[error("queues and namespaces are not listed yet; try again")]
    NotListed,
    /// The API server did not respond in time.
    #[error("queue, owners and namespace of the job could not be read in time; try again")]
    Slow,
    /// An object does not exist.
    #[error("{} not found", named(kind, group, name))]
    Missing { kind: String, group: String, name: String },
    /// An object cannot be read.
    #[error("cannot read {kind} {name:?}: {source}")]
    Unreadable { kind: String, name: String, source: Box<kube::Error> },
    /// The chain of owners is invalid.
    #[error(transparent)]
    Unfounded(#[from] AncestorError),
}

impl GatherError {
    /// The response to the request.
    pub(super) fn into_response(self) -> AdmissionResponse {
        let message = self.to_string();
        let (code, reason, details): (u16, &str, Option<Value>) = match &self {
            Self::NotListed => (503, "ServiceUnavailable", None),
            Self::Slow => (504, "Timeout", None),
            Self::Missing { kind, group, name } => {
                (404, "NotFound", Some(json!({"name": name, "group": group, "kind": kind})))
            }
            // The code of the API server lets a client tell a refusal from a failure that may pass.
            Self::Unreadable { source, .. } => match source.as_ref() {
                kube::Error::Api(status) if status.code >= 400 => {
                    (status.code, &*status.reason, None)
                }
                _ => (500, "InternalError", None),
            },
            // Trying again finds the same owners, so this is a refusal and no failure.
            Self::Unfounded(_) => return AdmissionResponse::denied(&message),
        };
        AdmissionResponse::Refused { code, reason: Some(reason.to_owned()), message, details }
    }
}

/// Classifies an error of a read.
pub(super) fn read_error(kind: &str, group: &str, name: &str, error: kube::Error) -> GatherError {
    let (kind, name) = (kind.to_owned(), name.to_owned());
    match error {
        kube::Error::Api(status) if status.code == 404 => {
            GatherError::Missing { kind, group: group.to_owned(), name }
        }
        error => GatherError::Unreadable { kind, name, source: Box::new(error) },
    }
}

/// `Kind.group "name"`, as in messages of API servers.
fn named(kind: &str, group: &str, name: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    format!("{kind}{dot}{group} {name:?}")
}

/// The state that defaulting of a new job depends on.
pub(super) async fn gather(
    webhooks: &JobWebhooks,
    job: &JobObject,
    namespace: &str,
) -> Result<DefaultingFacts, GatherError> {
    // An empty cache would default as if the cluster had no queue and no namespace were managed.
    if !webhooks.cache.is_synced() {
        return Err(GatherError::NotListed);
    }
    let facts = from_cache(webhooks, job, namespace);
    let asked = read_missing(webhooks, job, namespace, facts);
    tokio::time::timeout(READ_TIMEOUT, asked).await.unwrap_or(Err(GatherError::Slow))
}

/// Whether new jobs without a queue name get the default LocalQueue in a namespace: there is one, and both selectors of the
/// configuration match the namespace.
///
/// # Errors
/// If the namespace cannot be read.
pub(super) async fn gives_default_queue(
    webhooks: &JobWebhooks,
    namespace: &str,
) -> Result<bool, GatherError> {
    if !webhooks.cache.read(|cache| cache.has_default_queue(namespace)) {
        return Ok(false);
    }
    let labels = tokio::time::timeout(READ_TIMEOUT, labels_of(webhooks, namespace));
    let labels = labels.await.unwrap_or(Err(GatherError::Slow))?;
    let JobSettings { namespaces, queue_defaulting, .. } = &webhooks.settings;
    Ok(namespaces.matches(&labels) && queue_defaulting.matches(&labels))
}

/// The part that is in the cache.
fn from_cache(webhooks: &JobWebhooks, job: &JobObject, namespace: &str) -> DefaultingFacts {
    let JobWebhooks { settings, cache, .. } = webhooks;
    let owner = controller(job.metadata());
    cache.read(|cache| DefaultingFacts {
        default_local_queue: cache.has_default_queue(namespace),
        default_priority_class: cache.has_default_priority_class(),
        owner_managed: owner.is_some_and(|owner| settings.kinds.managed.manages(owner)),
        manage_without_queue_name: settings.manage_without_queue_name,
        ..DefaultingFacts::default()
    })
}

async fn read_missing(
    webhooks: &JobWebhooks,
    job: &JobObject,
    namespace: &str,
    mut facts: DefaultingFacts,
) -> Result<DefaultingFacts, GatherError> {
    let JobWebhooks { settings, cache, owners, client } = webhooks;
    // In this order: each fact decides whether the next one has to be read.
    if job.needs_namespace(facts, settings.gates) {
        let labels = labels_of(webhooks, namespace).await?;
        facts.namespace_managed = settings.namespaces.matches(&labels);
        facts.without_queue_defaulting = !settings.queue_defaulting.matches(&labels);
    }
    if job.needs_ancestors(facts) {
        facts.ancestor_managed =
            owners.topmost(job.metadata(), namespace, settings).await?.is_some();
    }
    if settings.multi_kueue
        && let Some(queue) = defaulting::queue_to_route_by(job, facts)
    {
        facts.queue_uses_multi_kueue = queues::dispatches(cache, client, namespace, queue).await?;
    }
    Ok(facts)
}

/// The labels of a namespace, from the API server if the watch has not delivered it yet.
async fn labels_of(
    webhooks: &JobWebhooks,
    namespace: &str,
) -> Result<BTreeMap<String, String>, GatherError> {
    match webhooks.cache.read(|cache| cache.labels_of(namespace).cloned()) {
        Some(labels) => Ok(labels),
        // A namespace and its first job are often applied together, before the watch shows the
        // namespace.
        None => webhooks.owners.labels_of_namespace(namespace).await,
    }
}
