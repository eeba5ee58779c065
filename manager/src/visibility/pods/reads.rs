//! Reads from the cluster that runs a Workload. It is not trusted: an answer is limited in time and size, and errors name only what was
//! asked for.

use std::time::Duration;

use http::{HeaderValue, Request, StatusCode, header::ACCEPT};
use http_body_util::{BodyExt, Limited};
use kube::{Client, client::Body};
use runtime::{error_chain, transport::StreamedAnswer};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;
use visibility::workload_pods::PodsRefusal;

/// The time for one answer, and for a refusal of a log.
const WITHIN: Duration = Duration::from_secs(10);

/// The longest answer. A page of large pods has less.
const LONGEST: usize = 8 << 20;

/// The longest refusal that is read.
const LONGEST_REFUSAL: usize = 16 << 10;

/// The whole object.
pub(super) const JSON: &str = "application/json";

/// Its metadata only.
pub(super) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// A cluster. Cheap to clone.
#[derive(Clone)]
pub(super) struct ClusterReads {
    /// Its client.
    pub(super) client: Client,
    /// Its name; empty for the manager cluster.
    pub(super) cluster: String,
}

/// What is read.
pub(super) struct WantedObject<'a> {
    /// Path and query.
    pub(super) path: &'a str,
    /// The form of the answer.
    pub(super) accept: &'static str,
    /// The right that it needs.
    pub(super) right: (&'static str, &'a str),
}

impl ClusterReads {
    /// Reads an object or a list; `None` if it does not exist.
    ///
    /// # Errors
    /// If there is no answer in time, or it makes no sense.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        wanted: WantedObject<'_>,
    ) -> Result<Option<T>, PodsRefusal> {
        let answer = timeout(WITHIN, self.answer(wanted.path, wanted.accept)).await;
        let (code, body) = answer.map_err(|_| self.late())??;
        match code {
            StatusCode::OK => serde_json::from_slice(&body).map(Some).map_err(|error| {
                tracing::debug!(cluster = self.cluster, %error, "an answer about pods makes no sense");
                self.not_reached()
            }),
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::FORBIDDEN => Err(self.missing(wanted.right)),
            code => Err(self.refused(code)),
        }
    }

    async fn answer(
        &self,
        path: &str,
        accept: &'static str,
    ) -> Result<(StatusCode, Vec<u8>), PodsRefusal> {
        let mut request = self.request(path)?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
        let (parts, body) = self.send(request).await?.into_parts();
        let body = Limited::new(body, LONGEST).collect().await.map_err(|_| self.not_reached())?;
        Ok((parts.status, body.to_bytes().to_vec()))
    }

    /// The log of a pod. It may not begin before the container writes something.
    ///
    /// # Errors
    /// If the cluster refuses it, or is not reached.
    pub(super) async fn log(&self, target: &str) -> Result<Body, PodsRefusal> {
        let mut request = self.request(target)?;
        request.extensions_mut().insert(StreamedAnswer);
        let (parts, body) = self.send(request).await?.into_parts();
        match parts.status {
            StatusCode::OK => Ok(body),
            StatusCode::FORBIDDEN => Err(self.missing(("get", "pods/log"))),
            code if passes(code) => {
                let body = timeout(WITHIN, Limited::new(body, LONGEST_REFUSAL).collect()).await;
                let body = body.map_err(|_| self.late())?.map_err(|_| self.not_reached())?;
                let message = message(&body.to_bytes());
                // The API server did not reach a kubelet.
                let code = if code.is_server_error() { StatusCode::BAD_GATEWAY } else { code };
                Err(PodsRefusal::of_cluster(&self.cluster, code, &message))
            }
            code => Err(self.refused(code)),
        }
    }

    fn refused(&self, code: StatusCode) -> PodsRefusal {
        let cluster = self.cluster.clone();
        match code {
            StatusCode::UNAUTHORIZED => {
                let cause = "it refuses the credentials of the manager".to_owned();
                PodsRefusal::NotConnected { cluster, cause }
            }
            StatusCode::TOO_MANY_REQUESTS => PodsRefusal::TooMany(cluster),
            _ => PodsRefusal::NotReached(cluster),
        }
    }

    fn request(&self, target: &str) -> Result<Request<Body>, PodsRefusal> {
        Request::get(target).body(Body::empty()).map_err(|_| self.not_reached())
    }

    async fn send(&self, request: Request<Body>) -> Result<http::Response<Body>, PodsRefusal> {
        self.client.send(request).await.map_err(|error| {
            let error = error_chain::describe(&error);
            tracing::debug!(cluster = self.cluster, error, "a request about pods was not answered");
            self.not_reached()
        })
    }

    pub(super) fn late(&self) -> PodsRefusal {
        PodsRefusal::Late(self.cluster.clone())
    }

    pub(super) fn not_reached(&self) -> PodsRefusal {
        PodsRefusal::NotReached(self.cluster.clone())
    }

    fn missing(&self, (verb, resource): (&'static str, &str)) -> PodsRefusal {
        PodsRefusal::MissingRight {
            cluster: self.cluster.clone(),
            verb,
            resource: resource.to_owned(),
        }
    }
}

/// Whether a refusal of a log says something that its caller needs.
fn passes(code: StatusCode) -> bool {
    let of_request = [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND];
    of_request.contains(&code) || code == StatusCode::INTERNAL_SERVER_ERROR
}

/// The message of a `Status`, or the text itself.
fn message(body: &[u8]) -> String {
    let status: Option<Value> = serde_json::from_slice(body).ok();
    let message = status.as_ref().and_then(|status| status["message"].as_str());
    message.map_or_else(|| String::from_utf8_lossy(body).into_owned(), str::to_owned)
}
