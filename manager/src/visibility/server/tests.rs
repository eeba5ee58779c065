use ::leader::AdmissionExplanations;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Response as Answered, StatusCode, header::AUTHORIZATION};
use http_body_util::BodyExt;
use kube::Client;
use remote::{KubeconfigDirectory, WorkerClients};
use runtime::{Stop, request_metrics::RequestMetrics};
use serde_json::{Value, json};
use tower::ServiceExt;
use visibility::PendingWorkloads;

use super::*;
use crate::visibility::{PodsMetrics, trusted_proxies::TrustedProxies};

/// A path that every authorized request gets a document of.
const GROUP: &str = "/apis/visibility.kueue.x-k8s.io";

/// An API server that knows the token `jane`, and lets its user read all but `/version`.
#[derive(Clone, Default)]
struct PlayedReviews(Arc<AtomicUsize>);

impl PlayedReviews {
    fn client(&self) -> Client {
        let this = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let this = this.clone();
            async move {
                let bytes = request.into_body().collect_bytes().await?;
                let body = this.answer(serde_json::from_slice(&bytes)?);
                let body = Body::from(body.to_string());
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(Answered::new(body))
            }
        });
        Client::new(service, "default")
    }

    fn answer(&self, mut review: Value) -> Value {
        self.0.fetch_add(1, Ordering::Relaxed);
        let spec = &review["spec"];
        review["status"] = match spec["token"].as_str() {
            Some("jane") => json!({"authenticated": true, "user": {"username": "jane"}}),
            Some(_) => json!({"authenticated": false}),
            None => {
                let path = &spec["nonResourceAttributes"]["path"];
                json!({"allowed": spec["user"] == "jane" && path != "/version", "reason": "a rule"})
            }
        };
        review
    }
}

fn pods_api(client: &Client) -> WorkloadPodsApi {
    let files = KubeconfigDirectory::default();
    let workers = WorkerClients::new(client.clone(), "ns", files, RequestMetrics::default());
    WorkloadPodsApi::new(client, workers, "multikueue", PodsMetrics::default(), Stop::new())
}

fn served(client: &Client) -> Router {
    router(VisibilityApi {
        queues: ObservedQueues::new(
            PendingWorkloads::new(index::IndexConfig::default()),
            AdmissionExplanations::default(),
        ),
        authenticator: Authenticator::new(client.clone(), TrustedProxies::default()),
        authorizer: Authorizer::new(client.clone()),
        pods: pods_api(client),
    })
}

fn request(path: &str, token: Option<&str>) -> Request {
    let mut request = Request::get(path);
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    request.body(Body::empty()).expect("a request")
}

async fn get(router: &Router, path: &str, token: Option<&str>) -> Response {
    let answered = router.clone().oneshot(request(path, token)).await;
    answered.unwrap_or_else(|never| match never {})
}

async fn message(response: Response) -> String {
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    let status: Value = serde_json::from_slice(&body).expect("JSON");
    status["message"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn only_reviewed_requests_are_answered() {
    let reviews = PlayedReviews::default();
    let router = served(&reviews.client());
    let answered = get(&router, GROUP, Some("jane")).await;
    assert_eq!(answered.status(), StatusCode::OK);
    let headers = answered.headers();
    assert_eq!(headers[CONTENT_TYPE], "application/json");
    assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
    let refused = get(&router, "/version", Some("jane")).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let text = "forbidden: User \"jane\" cannot get path \"/version\": a rule";
    assert_eq!(message(refused).await, text);
    let invalid = get(&router, GROUP, Some("other")).await;
    assert_eq!(
        (invalid.status(), &*message(invalid).await),
        (StatusCode::UNAUTHORIZED, "Unauthorized")
    );
    assert_eq!(get(&router, GROUP, None).await.status(), StatusCode::FORBIDDEN, "anonymous");
    let list = format!("{GROUP}/v1beta2/clusterqueues/q/pendingworkloads");
    let early = get(&router, &list, Some("jane")).await;
    assert_eq!(early.status(), StatusCode::SERVICE_UNAVAILABLE, "nothing was listed");
}

#[tokio::test]
async fn a_repeated_request_is_not_reviewed_again() {
    let reviews = PlayedReviews::default();
    let router = served(&reviews.client());
    for _ in 0..3 {
        assert_eq!(get(&router, GROUP, Some("jane")).await.status(), StatusCode::OK);
    }
    assert_eq!(reviews.0.load(Ordering::Relaxed), 2, "the token and the access");
    get(&router, "/apis", Some("jane")).await;
    assert_eq!(reviews.0.load(Ordering::Relaxed), 3, "another access");
}

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_limit_are_refused_and_probes_are_not() {
    let silent = tower::service_fn(|_: Request<kube::client::Body>| {
        std::future::pending::<Result<Answered<Body>, std::io::Error>>()
    });
    let router = served(&Client::new(silent, "default"));
    let mut waiting: Vec<_> = (0..IN_FLIGHT)
        .map(|_| Box::pin(router.clone().oneshot(request(GROUP, Some("jane")))))
        .collect();
    for one in &mut waiting {
        assert!(futures::poll!(one).is_pending());
    }
    let refused = get(&router, GROUP, Some("jane")).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()[RETRY_AFTER], "1");
    assert_eq!(get(&router, "/readyz", None).await.status(), StatusCode::OK);
    drop(waiting);
    // There is room again. The API server does not answer, which takes the time of a review.
    let late = get(&router, GROUP, Some("jane")).await;
    assert_eq!(late.status(), StatusCode::INTERNAL_SERVER_ERROR);
}
