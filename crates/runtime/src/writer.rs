//! Sends writes and says what came of each, in the few ways that whoever decided must tell apart.

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

/// What came of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteOutcome {
    /// It was done; the object as it is now, or the status of a deletion.
    Done(Value),
    /// There is such an object already.
    Exists,
    /// Something changed since the write was decided on.
    Stale,
    /// There is no such object.
    Gone,
    /// The server does not take it, and would not take it again.
    Refused {
        /// HTTP status.
        code: u16,
        /// Machine-readable reason.
        reason: String,
        /// For people.
        message: String,
    },
    /// Nobody knows whether it was done. It may be sent again.
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    cluster: String,
    purpose: &'static str,
    answer: &'static str,
}

/// Counters of all writers of a process. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct WriteMetrics {
    writes: Family<Labels, Counter>,
}

impl WriteMetrics {
    /// Puts them into a registry.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Writes by cluster, what they are for, and what came of them";
        registry.register("writes", help, self.writes.clone());
    }
}

/// Sends writes to one cluster, a bounded number at a time. Cheap to clone.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    cluster: Arc<str>,
    deadline: Duration,
    room: Arc<Semaphore>,
    metrics: WriteMetrics,
}

impl Writer {
    /// A writer for `client`. The name of the cluster is for metrics and logs.
    #[must_use]
    pub fn new(
        client: Client,
        cluster: &str,
        at_a_time: usize,
        deadline: Duration,
        metrics: WriteMetrics,
    ) -> Self {
        let room = Arc::new(Semaphore::new(at_a_time));
        Self { client, cluster: cluster.into(), deadline, room, metrics }
    }

    /// Sends a write. It waits for its turn, and then no longer than the deadline.
    pub async fn send(&self, write: Write) -> WriteOutcome {
        let Write { purpose, object, request } = write;
        let Ok(_turn) = self.room.acquire().await else {
            return WriteOutcome::Unknown("the writer is closed".to_owned());
        };
        let request = self.client.request::<Value>(request);
        let sent = failpoint::around(purpose, time::timeout(self.deadline, request)).await;
        let answer = match sent {
            Ok(Ok(value)) => WriteOutcome::Done(value),
            Ok(Err(error)) => judge(error),
            Err(_) => WriteOutcome::Unknown(format!("no answer within {:?}", self.deadline)),
        };
        self.note(purpose, &object, &answer);
        answer
    }

    fn note(&self, purpose: &'static str, object: &str, answer: &WriteOutcome) {
        let labels = Labels { cluster: self.cluster.to_string(), purpose, answer: answer.word() };
        self.metrics.writes.get_or_create(&labels).inc();
        let cluster = &*self.cluster;
        match answer {
            WriteOutcome::Refused { code, message, .. } => {
                tracing::warn!(cluster, purpose, object, code, message, "a write was refused");
            }
            WriteOutcome::Unknown(error) => {
                tracing::warn!(cluster, purpose, object, error, "a write failed");
            }
            answer => tracing::debug!(cluster, purpose, object, answer = answer.word(), "wrote"),
        }
    }
}

impl WriteOutcome {
    fn word(&self) -> &'static str {
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

/// A server that is overloaded or starting is asked again.
fn judge(error: kube::Error) -> WriteOutcome {
    let kube::Error::Api(status) = error else {
        return WriteOutcome::Unknown(error.to_string());
    };
    match (status.code, status.reason.as_str()) {
        (409, "AlreadyExists") => WriteOutcome::Exists,
        (409, _) => WriteOutcome::Stale,
        // A namespace that is missing is named by its own kind, and makes the write impossible rather than needless.
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
    fn answers_tell_apart_what_must_be_told_apart() {
        let word = |code, reason, kind| judge(status(code, reason, kind)).word();
        assert_eq!(word(409, "AlreadyExists", "jobs"), "exists");
        assert_eq!(word(409, "Conflict", "jobs"), "stale");
        assert_eq!(word(404, "NotFound", "jobs"), "gone");
        assert_eq!(word(404, "NotFound", "namespaces"), "refused");
        assert_eq!(word(403, "Forbidden", "jobs"), "refused");
        assert_eq!(word(422, "Invalid", "jobs"), "refused");
        assert_eq!(word(429, "TooManyRequests", "jobs"), "unknown");
        assert_eq!(word(503, "ServiceUnavailable", "jobs"), "unknown");
        assert_eq!(judge(kube::Error::LinesCodecMaxLineLengthExceeded).word(), "unknown");
    }
}
