//! What is known of the place that a job is made in (docs/reference/kueue.md §5.3).
//!
//! Facts answer first. The API server is asked only where the answer changes what is defaulted: for a namespace that the
//! watch has not shown yet, for a queue like that and what it leads to, and for owners.

use std::{collections::BTreeMap, time::Duration};

use jobs::{
    GenericJob,
    ancestor_search::AncestorError,
    defaulting::{self, DefaultingFacts},
    integrations::controller,
};
use serde_json::{Value, json};

use super::{JobWebhooks, Response, queues};

/// The API server waits ten seconds for a webhook.
const PATIENCE: Duration = Duration::from_secs(7);

/// Why the place is not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unknown {
    /// The facts are not complete.
    #[error("queues and namespaces are not listed yet; try again")]
    NotListed,
    /// The API server did not answer.
    #[error("queue, owners and namespace of the job could not be read in time; try again")]
    Slow,
    /// An object that must be there is not.
    #[error("{} not found", named(kind, group, name))]
    Missing { kind: String, group: String, name: String },
    /// An object cannot be read.
    #[error("cannot read {kind} {name:?}: {source}")]
    Unreadable { kind: String, name: String, source: Box<kube::Error> },
    /// The owners go nowhere.
    #[error(transparent)]
    Unfounded(#[from] AncestorError),
}

impl Unknown {
    /// The refusal of the request.
    pub(super) fn into_response(self) -> Response {
        let message = self.to_string();
        let (code, reason, details): (u16, &str, Option<Value>) = match &self {
            Self::NotListed => (503, "ServiceUnavailable", None),
            Self::Slow => (504, "Timeout", None),
            Self::Missing { kind, group, name } => {
                (404, "NotFound", Some(json!({"name": name, "group": group, "kind": kind})))
            }
            Self::Unreadable { source, .. } => match source.as_ref() {
                kube::Error::Api(status) if status.code >= 400 => {
                    (status.code, &*status.reason, None)
                }
                _ => (500, "InternalError", None),
            },
            Self::Unfounded(_) => return Response::denied(&message),
        };
        Response::Refused { code, reason: Some(reason.to_owned()), message, details }
    }
}

/// Why an object could not be read.
pub(super) fn unknown(kind: &str, group: &str, name: &str, error: kube::Error) -> Unknown {
    let (kind, name) = (kind.to_owned(), name.to_owned());
    match error {
        kube::Error::Api(status) if status.code == 404 => {
            Unknown::Missing { kind, group: group.to_owned(), name }
        }
        error => Unknown::Unreadable { kind, name, source: Box::new(error) },
    }
}

/// `Kind.group "name"`, as API servers say it.
fn named(kind: &str, group: &str, name: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    format!("{kind}{dot}{group} {name:?}")
}

/// What is known of the place of a new job.
pub(super) async fn gather<J: GenericJob + Sync>(
    webhooks: &JobWebhooks,
    job: &J,
    namespace: &str,
) -> Result<DefaultingFacts, Unknown> {
    if !webhooks.cache.is_synced() {
        return Err(Unknown::NotListed);
    }
    let around = at_hand(webhooks, job, namespace);
    let asked = ask_server(webhooks, job, namespace, around);
    tokio::time::timeout(PATIENCE, asked).await.unwrap_or(Err(Unknown::Slow))
}

/// What needs no request.
fn at_hand<J: GenericJob>(webhooks: &JobWebhooks, job: &J, namespace: &str) -> DefaultingFacts {
    let JobWebhooks { settings, cache, .. } = webhooks;
    let owner = controller(job.metadata());
    cache.read(|cache| DefaultingFacts {
        default_local_queue: cache.has_default_queue(namespace),
        default_priority_class: cache.has_default_priority_class(),
        owner_managed: owner.is_some_and(|owner| settings.kinds.manages(owner)),
        manage_without_queue_name: settings.manage_without_queue_name,
        ..DefaultingFacts::default()
    })
}

async fn ask_server<J: GenericJob + Sync>(
    webhooks: &JobWebhooks,
    job: &J,
    namespace: &str,
    mut around: DefaultingFacts,
) -> Result<DefaultingFacts, Unknown> {
    let JobWebhooks { settings, cache, owners, client } = webhooks;
    if defaulting::needs_namespace(job, around) {
        let labels = labels_of(webhooks, namespace).await?;
        around.namespace_managed = settings.namespaces.matches(&labels);
    }
    if defaulting::needs_ancestors(job, around) {
        around.ancestor_managed =
            owners.topmost(job.metadata(), namespace, settings).await?.is_some();
    }
    if settings.multi_kueue
        && let Some(queue) = defaulting::queue_to_route_by(job, around)
    {
        around.queue_uses_multi_kueue = queues::dispatches(cache, client, namespace, queue).await?;
    }
    Ok(around)
}

/// Labels of a namespace. One that is younger than the watch is read.
async fn labels_of(
    webhooks: &JobWebhooks,
    namespace: &str,
) -> Result<BTreeMap<String, String>, Unknown> {
    match webhooks.cache.read(|cache| cache.labels_of(namespace).cloned()) {
        Some(labels) => Ok(labels),
        None => webhooks.owners.labels_of_namespace(namespace).await,
    }
}
