//! Sends [`Write`]s and classifies the response by what the deciding component has to do next.

use std::{sync::Arc, time::Duration};

use kube::{Client, core::Status};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use serde_json::Value;
use tokio::{sync::Semaphore, time};

use crate::{
    api_object::ApiObject,
    failpoint,
    lease::Leadership,
    write::{NotFound, NotFoundRule, Write},
};

/// The outcome of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteOutcome {
    /// The write succeeded: the new object, or the `Status` of a deletion.
    Done(ApiObject),
    /// The object exists already.
    Exists,
    /// The object changed since the write was decided.
    Stale,
    /// The object does not exist, as the API server says by its name.
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
    /// As `Unknown`, to a create: a 404 that is not about the namespace. The API server does not serve the kind, or not yet, or a program
    /// between has answered.
    UnnamedNotFound(String),
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

/// Bounds of a [`Writer`].
#[derive(Clone, Copy, Debug)]
pub struct WriteLimits {
    /// Requests in flight.
    pub max_in_flight: usize,
    /// From the call of [`Writer::send`] to the response, the wait for a slot included.
    pub deadline: Duration,
}

/// Sends writes to one cluster, a bounded number in parallel. Cheap to clone.
///
/// A write that waits for a slot, or for its connection, may outlive the leadership of its process. So leadership is checked once
/// the slot is there, and its loss ends the request: no byte of it is sent later, when another process may lead.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    cluster: Arc<str>,
    deadline: Duration,
    slots: Arc<Semaphore>,
    leadership: Leadership,
    metrics: WriteMetrics,
}

impl Writer {
    /// A writer for `client`, for a process without an election. `cluster` labels metrics and logs.
    #[must_use]
    pub fn new(client: Client, cluster: &str, limits: WriteLimits, metrics: WriteMetrics) -> Self {
        Self {
            client,
            cluster: cluster.into(),
            deadline: limits.deadline,
            slots: Arc::new(Semaphore::new(limits.max_in_flight)),
            leadership: Leadership::alone(),
            metrics,
        }
    }

    /// This writer, for a process that writes only while it leads.
    #[must_use]
    pub fn led_by(self, leadership: Leadership) -> Self {
        Self { leadership, ..self }
    }

    /// Sends a write: waits for a free slot and for the response, together at most the deadline. Without leadership nothing
    /// is sent.
    pub async fn send(&self, write: Write) -> WriteOutcome {
        let Write { purpose, object, request, not_found } = write;
        let outcome = self.send_request(purpose, request, &not_found).await;
        self.report(purpose, &object, &outcome);
        outcome
    }

    async fn send_request(
        &self,
        purpose: &'static str,
        request: http::Request<Vec<u8>>,
        not_found: &NotFoundRule,
    ) -> WriteOutcome {
        let until = time::Instant::now() + self.deadline;
        let unknown = |message: String| WriteOutcome::Unknown(message);
        let _slot = match time::timeout_at(until, self.slots.acquire()).await {
            Ok(Ok(slot)) => slot,
            Ok(Err(_)) => return unknown("the writer is closed".to_owned()),
            Err(_) => return unknown(format!("no free slot within {:?}", self.deadline)),
        };
        // After the wait for the slot, during which another process may have taken the lease.
        if !self.leadership.leads() {
            return unknown("this process does not lead".to_owned());
        }
        let mut leadership = self.leadership.clone();
        let request = time::timeout_at(until, self.client.request_text(request));
        let led = async {
            tokio::select! {
                biased;
                // A request that waits for its connection is not sent either, and one that was sent has an unknown outcome.
                () = leadership.lost() => None,
                answered = request => Some(answered),
            }
        };
        let Some(answered) = failpoint::with_failpoints(purpose, led).await else {
            return unknown("this process does not lead any more".to_owned());
        };
        match answered {
            Ok(Ok(text)) => match ApiObject::parse(text) {
                Ok(object) => WriteOutcome::Done(object),
                // The API server may have stored the object; a program between may have answered.
                Err(error) => unknown(format!("the answer is no JSON: {error}")),
            },
            Ok(Err(error)) => classify(error, not_found),
            Err(_) => unknown(format!("no answer within {:?}", self.deadline)),
        }
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
            WriteOutcome::Unknown(error) | WriteOutcome::UnnamedNotFound(error) => {
                tracing::warn!(cluster, purpose, object, error, "a write failed");
            }
            outcome => tracing::debug!(cluster, purpose, object, answer = outcome.label(), "wrote"),
        }
    }
}

impl WriteOutcome {
    /// Success with this object.
    #[must_use]
    pub fn done(object: Value) -> Self {
        Self::Done(object.into())
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Exists => "exists",
            Self::Stale => "stale",
            Self::Gone => "gone",
            Self::Refused { .. } => "refused",
            Self::Unknown(_) | Self::UnnamedNotFound(_) => "unknown",
        }
    }
}

/// Classifies an error. An overloaded or starting server counts as unknown, so that the write is sent again.
fn classify(error: kube::Error, not_found: &NotFoundRule) -> WriteOutcome {
    let kube::Error::Api(status) = error else {
        // A connection may fail after the API server has stored the object.
        return WriteOutcome::Unknown(error.to_string());
    };
    match (status.code, status.reason.as_str()) {
        (409, "AlreadyExists") => WriteOutcome::Exists,
        (409, _) => WriteOutcome::Stale,
        (404, _) => classify_not_found(*status, not_found),
        // A 401 says nothing about the object: other credentials may be accepted. A 5xx may come after the object was stored.
        (401 | 408 | 429, _) | (500.., _) => WriteOutcome::Unknown(status.message),
        _ => refused(*status),
    }
}

fn classify_not_found(status: Status, not_found: &NotFoundRule) -> WriteOutcome {
    match not_found.meaning(&status) {
        NotFound::Object => WriteOutcome::Gone,
        // Taken for an absent object, work that runs would be stopped here, or started on another cluster.
        NotFound::Change => WriteOutcome::Unknown(format!(
            "a 404 that does not name the object: {}",
            status.message
        )),
        // Taken for a kind that is not served, its work would go to other clusters.
        NotFound::Create => WriteOutcome::UnnamedNotFound(format!(
            "a 404 that does not name the namespace: {}",
            status.message
        )),
        NotFound::Namespace | NotFound::Read => refused(status),
    }
}

fn refused(status: Status) -> WriteOutcome {
    WriteOutcome::Refused { code: status.code, reason: status.reason, message: status.message }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::core::ApiResource;

    use super::*;
    use crate::{
        watch::Key,
        write::{DeletePreconditions, DeletePropagation},
    };

    fn status(code: u16, reason: &str, kind: &str) -> kube::Error {
        let text = format!(
            r#"{{"status":"Failure","message":"m","reason":"{reason}","code":{code},"details":{{"kind":"{kind}"}}}}"#
        );
        kube::Error::Api(Box::new(serde_json::from_str(&text).expect("a status")))
    }

    #[test]
    fn errors_are_classified_by_what_to_do_next() {
        let create = &creates().not_found;
        let label = |code, reason, kind| classify(status(code, reason, kind), create).label();
        assert_eq!(label(409, "AlreadyExists", "jobs"), "exists");
        assert_eq!(label(409, "Conflict", "jobs"), "stale");
        assert_eq!(label(404, "NotFound", "jobs"), "unknown");
        assert_eq!(label(404, "NotFound", "namespaces"), "refused");
        assert_eq!(label(403, "Forbidden", "jobs"), "refused");
        assert_eq!(label(422, "Invalid", "jobs"), "refused");
        assert_eq!(label(401, "Unauthorized", "jobs"), "unknown");
        assert_eq!(label(429, "TooManyRequests", "jobs"), "unknown");
        assert_eq!(label(503, "ServiceUnavailable", "jobs"), "unknown");
        let other = kube::Error::LinesCodecMaxLineLengthExceeded;
        assert_eq!(classify(other, create).label(), "unknown");
    }

    /// Requests for the ConfigMap `a`: changes of it and of its status, and reads.
    fn requests() -> [Write; 5] {
        let resource = ApiResource::erase::<ConfigMap>(&());
        let (of, key, fields) = (Write::of("test", &resource), key(), serde_json::json!({}));
        [
            of.merge(&key, None, &fields),
            of.apply(&key, Some("status"), "m", &fields),
            of.delete(&key, DeletePreconditions::default(), DeletePropagation::Background),
            of.get_metadata(&key),
            of.list_one(&key, ""),
        ]
        .map(|write| write.expect("a write"))
    }

    /// The outcomes of a 404 with these details: of changes, and of reads.
    fn outcomes_of_404(details: &Value) -> (&'static str, &'static str) {
        let labels = requests().map(|write| {
            let status = serde_json::json!({
                "status": "Failure", "message": "m", "reason": "NotFound", "code": 404,
                "details": details,
            });
            let status = serde_json::from_value(status).expect("a status");
            classify(kube::Error::Api(Box::new(status)), &write.not_found).label()
        });
        let (changes, reads) = labels.split_at(3);
        assert!([changes, reads].iter().all(|all| all.iter().all(|one| *one == all[0])));
        (changes[0], reads[0])
    }

    #[test]
    fn an_object_is_gone_if_the_status_names_it() {
        use serde_json::json;
        for details in [
            json!({"kind": "configmaps", "name": "a"}),
            json!({"kind": "ConfigMap", "name": "a"}),
            json!({"name": "a"}),
        ] {
            assert_eq!(outcomes_of_404(&details), ("gone", "gone"), "{details}");
        }
    }

    #[test]
    fn a_404_that_does_not_name_the_object_says_nothing_about_it() {
        use serde_json::json;
        for details in [
            // A default backend, a starting API server, and a resource that is not served.
            Value::Null,
            json!({}),
            // What a webhook looked up.
            json!({"kind": "configmaps", "name": "b"}),
            json!({"kind": "secrets", "name": "a"}),
            json!({"group": "example.com", "kind": "configmaps", "name": "a"}),
        ] {
            assert_eq!(outcomes_of_404(&details), ("unknown", "refused"), "{details}");
        }
        let namespace = json!({"kind": "namespaces", "name": "a"});
        assert_eq!(outcomes_of_404(&namespace), ("refused", "refused"));
    }

    #[tokio::test]
    async fn a_default_backend_neither_deletes_an_object_nor_refuses_a_kind() {
        let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            let page = kube::client::Body::from(b"default backend - 404".to_vec());
            Ok::<_, Infallible>(http::Response::builder().status(404).body(page).expect("a page"))
        });
        let limits = WriteLimits { max_in_flight: 1, deadline: TEN };
        let client = Client::new(service, "default");
        let writer = Writer::new(client, "home", limits, WriteMetrics::default());
        let [_, _, delete, ..] = requests();
        let message = "a 404 that does not name the object: default backend - 404";
        assert_eq!(writer.send(delete).await, WriteOutcome::Unknown(message.to_owned()));
        let message = "a 404 that does not name the namespace: default backend - 404";
        assert_eq!(writer.send(creates()).await, WriteOutcome::UnnamedNotFound(message.to_owned()));
    }

    const TEN: Duration = Duration::from_secs(10);

    /// A writer with one slot, to a server that answers each request after six seconds, and the number of requests.
    fn slow_writer(leadership: Leadership) -> (Writer, Arc<AtomicUsize>) {
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
            counted.fetch_add(1, Ordering::Relaxed);
            async {
                time::sleep(Duration::from_secs(6)).await;
                Ok::<_, Infallible>(http::Response::new(kube::client::Body::from(b"{}".to_vec())))
            }
        });
        let client = Client::new(service, "default");
        let limits = WriteLimits { max_in_flight: 1, deadline: TEN };
        let writer = Writer::new(client, "home", limits, WriteMetrics::default());
        (writer.led_by(leadership), requests)
    }

    fn key() -> Key {
        Key { namespace: Some("ns".into()), name: "a".into() }
    }

    fn creates() -> Write {
        Write::create("test", &ConfigMap::default()).expect("a write")
    }

    fn write() -> Write {
        let [merge, ..] = requests();
        merge
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_covers_the_wait_for_a_slot() {
        let (writer, requests) = slow_writer(Leadership::alone());
        let sent = |writer: Writer| async move { writer.send(write()).await };
        let (first, second) = tokio::join!(sent(writer.clone()), sent(writer));
        assert_eq!(first, WriteOutcome::done(serde_json::json!({})));
        // Six seconds of waiting leave four for a response that takes six.
        assert_eq!(second, WriteOutcome::Unknown("no answer within 10s".to_owned()));
        assert_eq!(requests.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_a_connection_ends_with_the_leadership() {
        let (announcer, leadership) = crate::lease::leading_for(Duration::from_secs(5));
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
            let counted = Arc::clone(&counted);
            async move {
                // The connection.
                time::sleep(Duration::from_secs(6)).await;
                counted.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Infallible>(http::Response::new(kube::client::Body::from(b"{}".to_vec())))
            }
        });
        let client = Client::new(service, "default");
        let limits = WriteLimits { max_in_flight: 1, deadline: TEN };
        let writer = Writer::new(client, "home", limits, WriteMetrics::default());
        let outcome = writer.led_by(leadership).send(write()).await;
        assert_eq!(
            outcome,
            WriteOutcome::Unknown("this process does not lead any more".to_owned())
        );
        time::sleep(TEN).await;
        assert_eq!(requests.load(Ordering::Relaxed), 0);
        drop(announcer);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_waited_longer_than_the_leadership_is_not_sent() {
        let (announcer, leadership) = crate::lease::leading_for(Duration::from_secs(5));
        let (writer, requests) = slow_writer(leadership);
        let sent = |writer: Writer| async move { writer.send(write()).await };
        let (first, second) = tokio::join!(sent(writer.clone()), sent(writer));
        let lost = WriteOutcome::Unknown("this process does not lead any more".to_owned());
        assert_eq!(first, lost, "its answer takes longer than the leadership");
        assert_eq!(second, WriteOutcome::Unknown("this process does not lead".to_owned()));
        assert_eq!(requests.load(Ordering::Relaxed), 1);
        drop(announcer);
    }
}
