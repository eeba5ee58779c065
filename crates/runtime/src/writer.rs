//! Sends [`Write`]s and classifies the response by what the deciding component has to do next.

use std::{sync::Arc, time::Duration};

use kube::Client;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use serde_json::Value;
use tokio::{sync::Semaphore, time};

use crate::{failpoint, write::Write};

/// The outcome of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteOutcome {
    /// The write succeeded: the new object, or the `Status` of a deletion.
    Done(Value),
    /// The object exists already.
    Exists,
    /// The object changed since the write was decided.
    Stale,
    /// The object does not exist.
    Gone,
    /// The API server refused the write. Sending it again has the same result.
    Refused {
        /// HTTP status.
        code: u16,
        /// Machine-readable reason.
        reason: String,
        /// The message of the API server.
        message: String,
    },
    /// It is unknown whether the write was handled. It may be sent again.
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    cluster: String,
    purpose: &'static str,
    answer: &'static str,
}

/// Write metrics of all writers of a process. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct WriteMetrics {
    writes: Family<WriteLabels, Counter>,
}

impl WriteMetrics {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Writes by cluster, purpose and outcome";
        registry.register("writes", help, self.writes.clone());
    }
}

/// Sends writes to one cluster, a bounded number in parallel. Cheap to clone.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    cluster: Arc<str>,
    deadline: Duration,
    slots: Arc<Semaphore>,
    metrics: WriteMetrics,
}

impl Writer {
    /// A writer for `client`. `cluster` labels metrics and logs.
    #[must_use]
    pub fn new(
        client: Client,
        cluster: &str,
        max_in_flight: usize,
        deadline: Duration,
        metrics: WriteMetrics,
    ) -> Self {
        let slots = Arc::new(Semaphore::new(max_in_flight));
        Self { client, cluster: cluster.into(), deadline, slots, metrics }
    }

    /// Sends a write: waits for a free slot, then at most `deadline` for the response.
    pub async fn send(&self, write: Write) -> WriteOutcome {
        let Write { purpose, object, request } = write;
        let Ok(_slot) = self.slots.acquire().await else {
            return WriteOutcome::Unknown("the writer is closed".to_owned());
        };
        let request = self.client.request::<Value>(request);
        let sent = failpoint::around(purpose, time::timeout(self.deadline, request)).await;
        let outcome = match sent {
            Ok(Ok(value)) => WriteOutcome::Done(value),
            Ok(Err(error)) => classify(error),
            Err(_) => WriteOutcome::Unknown(format!("no answer within {:?}", self.deadline)),
        };
        self.report(purpose, &object, &outcome);
        outcome
    }

    fn report(&self, purpose: &'static str, object: &str, outcome: &WriteOutcome) {
        let labels =
            WriteLabels { cluster: self.cluster.to_string(), purpose, answer: outcome.label() };
        self.metrics.writes.get_or_create(&labels).inc();
        let cluster = &*self.cluster;
        match outcome {
            WriteOutcome::Refused { code, message, .. } => {
                tracing::warn!(cluster, purpose, object, code, message, "a write was refused");
            }
            WriteOutcome::Unknown(error) => {
                tracing::warn!(cluster, purpose, object, error, "a write failed");
            }
            outcome => tracing::debug!(cluster, purpose, object, answer = outcome.label(), "wrote"),
        }
    }
}

impl WriteOutcome {
    fn label(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Exists => "exists",
            Self::Stale => "stale",
            Self::Gone => "gone",
            Self::Refused { .. } => "refused",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// Classifies an error. An overloaded or starting server counts as unknown, so that the write is sent again.
fn classify(error: kube::Error) -> WriteOutcome {
    let kube::Error::Api(status) = error else {
        return WriteOutcome::Unknown(error.to_string());
    };
    match (status.code, status.reason.as_str()) {
        (409, "AlreadyExists") => WriteOutcome::Exists,
        (409, _) => WriteOutcome::Stale,
        // A 404 for the namespace means that the object can never be created there, not that it is absent.
        (404, _) if !is_namespace(&status) => WriteOutcome::Gone,
        (408 | 429, _) | (500.., _) => WriteOutcome::Unknown(status.message),
        (code, reason) => {
            WriteOutcome::Refused { code, reason: reason.to_owned(), message: status.message }
        }
    }
}

fn is_namespace(status: &kube::core::Status) -> bool {
    status.details.as_ref().is_some_and(|details| details.kind == "namespaces")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, reason: &str, kind: &str) -> kube::Error {
        let text = format!(
            r#"{{"status":"Failure","message":"m","reason":"{reason}","code":{code},"details":{{"kind":"{kind}"}}}}"#
        );
        kube::Error::Api(Box::new(serde_json::from_str(&text).expect("a status")))
    }

    #[test]
    fn errors_are_classified_by_what_to_do_next() {
        let label = |code, reason, kind| classify(status(code, reason, kind)).label();
        assert_eq!(label(409, "AlreadyExists", "jobs"), "exists");
        assert_eq!(label(409, "Conflict", "jobs"), "stale");
        assert_eq!(label(404, "NotFound", "jobs"), "gone");
        assert_eq!(label(404, "NotFound", "namespaces"), "refused");
        assert_eq!(label(403, "Forbidden", "jobs"), "refused");
        assert_eq!(label(422, "Invalid", "jobs"), "refused");
        assert_eq!(label(429, "TooManyRequests", "jobs"), "unknown");
        assert_eq!(label(503, "ServiceUnavailable", "jobs"), "unknown");
        assert_eq!(classify(kube::Error::LinesCodecMaxLineLengthExceeded).label(), "unknown");
    }
}
