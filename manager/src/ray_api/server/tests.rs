use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use http::{
    HeaderName, Method,
    header::{AUTHORIZATION, CONTENT_LENGTH},
};
use http_body_util::BodyExt;
use kube::client::Body as ClientBody;
use parking_lot::Mutex;
use remote::KubeconfigDirectory;
use runtime::request_metrics::RequestMetrics;
use serde_json::json;
use tower::{BoxError, ServiceExt};

use super::*;

const JOBS: &str = "/apis/ray.io/v1/namespaces/ml/rayjobs";

/// A request that reached the API server and is no review.
#[derive(Clone, Debug)]
pub(super) struct Reached {
    method: Method,
    target: String,
    pub(super) headers: HeaderMap,
    body: Value,
}

/// An API server that knows the token `jane`. Its user may do all but what contains `forbidden`.
#[derive(Clone, Default)]
pub(super) struct PlayedServer {
    /// Objects by path.
    objects: Arc<BTreeMap<String, Value>>,
    reached: Arc<Mutex<Vec<Reached>>>,
    reviews: Arc<AtomicUsize>,
}

impl PlayedServer {
    /// A server with a RayCluster and its head, Services that are no heads, and a compute template.
    pub(super) fn new() -> Self {
        let (services, core) = ("/api/v1/namespaces/ml/services", "/api/v1/namespaces/ml");
        let of_ray = json!({"metadata": {"labels": {"app.kubernetes.io/name": "kuberay"}}});
        let other = json!({"metadata": {"labels": {"app.kubernetes.io/name": "db"}}});
        let cluster = json!({"metadata": {"name": "c", "uid": "u"}});
        let labels = json!({"kueue.x-k8s.io/prebuilt-workload-name": "of-far"});
        let far = json!({"metadata": {"name": "far", "labels": labels}});
        let head = json!({"headService": {"metadata": {"name": "front"}}});
        let mut named = far.clone();
        named["spec"] = json!({"headGroupSpec": head});
        let clusters = "/apis/ray.io/v1/namespaces/ml/rayclusters";
        let workload = json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
            "metadata": {"name": "of-far"}, "spec": {}, "status": {"clusterName": "east"},
        });
        let workloads = "/apis/kueue.x-k8s.io/v1beta2/namespaces/ml/workloads";
        let data = json!({"cpu": "2", "memory": "4", "gpu": "1"});
        let objects = [
            (format!("{services}/c-head-svc"), of_ray.clone()),
            (format!("{services}/hung-head-svc"), of_ray.clone()),
            (format!("{services}/forbidden-head-svc"), of_ray),
            (format!("{services}/db"), other),
            ("/apis/ray.io/v1/namespaces/ml/rayclusters/c".to_owned(), cluster),
            (JOBS.to_owned(), json!({"metadata": {}, "items": []})),
            (format!("{core}/configmaps/big"), json!({"data": data})),
            ("/apis/ray.io/v1/namespaces/ml/rayclusters/far".to_owned(), far),
            (format!("{workloads}/of-far"), workload),
            (workloads.to_owned(), json!({"metadata": {}, "items": []})),
            (clusters.to_owned(), json!({"metadata": {"continue": "next"}, "items": []})),
            (format!("{clusters}?limit=500&continue=next"), json!({"items": [named]})),
        ];
        Self { objects: Arc::new(objects.into()), ..Self::default() }
    }

    fn router(&self) -> Router {
        let this = self.clone();
        let service = tower::service_fn(move |request: http::Request<ClientBody>| {
            let this = this.clone();
            async move { this.answer(request).await }
        });
        router(self.server(&Client::new(service, "default"), &Stop::new()))
    }

    /// The server of the API, with a client of this API server.
    pub(super) fn server(&self, client: &Client, stop: &Stop) -> RayApiServer {
        let files = KubeconfigDirectory::default();
        let workers = WorkerClients::new(client.clone(), "ns", files, RequestMetrics::default());
        RayApiServer::new(client, workers, stop)
    }

    pub(super) async fn answer(
        &self,
        request: http::Request<ClientBody>,
    ) -> Result<http::Response<ClientBody>, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let path = parts.uri.path();
        if path.ends_with("reviews") {
            self.reviews.fetch_add(1, Ordering::Relaxed);
            return Ok(http::Response::new(review(body).to_string().into_bytes().into()));
        }
        let target = parts.uri.path_and_query().map_or(path, |target| target.as_str());
        let object = self.objects.get(target).or_else(|| self.objects.get(path));
        if let Some(object) = object.filter(|_| parts.method == Method::GET) {
            return Ok(http::Response::new(object.to_string().into_bytes().into()));
        }
        let Some((_, of_head)) = path.split_once("/proxy/") else {
            let is_there = parts.method != Method::GET || path.ends_with("/events");
            let code = if is_there { 200 } else { 404 };
            self.reach(&parts, body);
            let status = json!({"kind": "Status", "code": code, "reason": "NotFound"});
            return Ok(coded(code, status.to_string().into_bytes()));
        };
        let of_head = of_head.to_owned();
        self.reach(&parts, body);
        match &*of_head {
            "hang" => std::future::pending().await,
            "long" => {
                let mut answer = coded(200, vec![b' '; OF_HEAD.most + 1]);
                answer.headers_mut().insert(CONTENT_LENGTH, (OF_HEAD.most + 1).into());
                Ok(answer)
            }
            "ws" => Ok(upgraded("websocket")),
            "other-ws" => Ok(upgraded("other")),
            code => Ok(coded(code.parse().unwrap_or(200), b"of the head".to_vec())),
        }
    }

    fn reach(&self, parts: &Parts, body: Value) {
        let target = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
        let (method, headers) = (parts.method.clone(), parts.headers.clone());
        self.reached.lock().push(Reached { method, target, headers, body });
    }

    /// Requests with this part in their target.
    pub(super) fn reached(&self, part: &str) -> Vec<Reached> {
        let reached = self.reached.lock();
        reached.iter().filter(|it| it.target.contains(part)).cloned().collect()
    }
}

fn upgraded(protocol: &'static str) -> http::Response<ClientBody> {
    let mut answer = coded(101, Vec::new());
    let headers = answer.headers_mut();
    headers.insert("connection", HeaderValue::from_static("Upgrade"));
    headers.insert("upgrade", HeaderValue::from_static(protocol));
    answer
}

fn coded(code: u16, body: Vec<u8>) -> http::Response<ClientBody> {
    let mut response = http::Response::new(body.into());
    *response.status_mut() = StatusCode::from_u16(code).expect("a code");
    response
}

fn review(mut review: Value) -> Value {
    let allowed = !review.to_string().contains("forbidden");
    review["status"] = match review["spec"]["token"].as_str() {
        Some("jane") => json!({"authenticated": true, "user": {"username": "jane"}}),
        Some(_) => json!({"authenticated": false}),
        None => json!({"allowed": allowed}),
    };
    review
}

fn request(method: &str, path: &str, body: &str) -> Request {
    let request = Request::builder().method(method).uri(path);
    let request = request.header(AUTHORIZATION, "Bearer jane");
    request.body(Body::from(body.to_owned())).expect("a request")
}

async fn code(router: &Router, request: Request) -> u16 {
    router.clone().oneshot(request).await.expect("an answer").status().as_u16()
}

pub(super) fn head(service: &str, path: &str) -> String {
    format!("/api/v1/namespaces/ml/services/{service}/proxy/{path}")
}

#[tokio::test]
async fn only_reviewed_requests_are_sent_on() {
    let server = PlayedServer::new();
    let router = server.router();
    assert_eq!(
        code(&router, Request::get("/healthz").body(Body::empty()).expect("one")).await,
        200
    );
    let anonymous = Request::get(JOBS).body(Body::empty()).expect("a request");
    assert_eq!(code(&router, anonymous).await, 401);
    assert_eq!(server.reviews.load(Ordering::Relaxed), 0);
    let forged = Request::get(JOBS).header(AUTHORIZATION, "Bearer made-up");
    assert_eq!(code(&router, forged.body(Body::empty()).expect("a request")).await, 401);
    for (method, path, expected) in [
        ("GET", JOBS.to_owned(), 200),
        ("GET", "/apis/ray.io/v1/namespaces/forbidden/rayjobs".to_owned(), 403),
        ("GET", head("c-head-svc:8265", "x"), 200),
        ("GET", head("forbidden-head-svc", "x"), 403),
        ("GET", head("db", "x"), 404),
        ("GET", head("absent-head-svc", "x"), 404),
        ("GET", head("a:b:c:d", "x"), 400),
        ("GET", head("c-head-svc", "../../secrets"), 400),
        ("GET", "/api/v1/namespaces/ml/secrets".to_owned(), 404),
    ] {
        assert_eq!(code(&router, request(method, &path, "")).await, expected, "{path}");
    }
    assert!(server.reached("forbidden").is_empty() && server.reached("/db/proxy").is_empty());
    assert!(server.reached("secrets").is_empty());
}

/// client-go makes a cause of the text, and of no other body.
#[tokio::test]
async fn a_refusal_about_a_service_is_plain_text() {
    let server = PlayedServer::new();
    for (path, content_type, part) in [
        (head("db", "x"), "text/plain; charset=utf-8", "kuberay service not found\n"),
        (head("a:b:c:d", "x"), "text/plain; charset=utf-8", "invalid service format: a:b:c:d\n"),
        (head("c-head-svc", "../x"), "application/json", "\"kind\":\"Status\""),
    ] {
        let answer = server.router().oneshot(request("GET", &path, "")).await.expect("an answer");
        assert_eq!(answer.headers()["content-type"], content_type, "{path}");
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        let body = String::from_utf8_lossy(&body).into_owned();
        assert!(body.contains(part), "{path}: {body}");
    }
}

#[tokio::test]
async fn a_head_gets_no_credentials_and_the_caller_its_answer() {
    let server = PlayedServer::new();
    let mut request = request("POST", &head("http:c-head-svc:8265", "api?a=b"), "{\"a\":1}");
    let user = HeaderName::from_static("impersonate-user");
    request.headers_mut().insert(user, HeaderValue::from_static("admin"));
    let answer = server.router().oneshot(request).await.expect("an answer");
    assert_eq!(answer.status(), 200);
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    assert_eq!(&body[..], b"of the head");
    let [reached] = &server.reached("/proxy/")[..] else { panic!("one request") };
    assert_eq!(reached.target, head("http:c-head-svc:8265", "api?a=b"));
    assert_eq!((&reached.method, &reached.body), (&Method::POST, &json!({"a": 1})));
    assert!(reached.headers.is_empty(), "{:?}", reached.headers);
}

#[tokio::test]
async fn events_are_those_of_ray() {
    let server = PlayedServer::new();
    let path = "/apis/events.k8s.io/v1/namespaces/ml/events";
    assert_eq!(code(&server.router(), request("GET", path, "")).await, 200);
    let [reached] = &server.reached("/events")[..] else { panic!("one request") };
    assert!(reached.target.ends_with("?fieldSelector=regarding.apiVersion%3Dray.io%2Fv1"));
}

#[tokio::test]
async fn compute_templates_are_filled_in() {
    let server = PlayedServer::new();
    let router = server.router();
    let body = |template: &str| {
        let containers = json!([{"name": "ray-head"}]);
        let head =
            json!({"computeTemplate": template, "template": {"spec": {"containers": containers}}});
        json!({"spec": {"rayClusterSpec": {"headGroupSpec": head}}}).to_string()
    };
    assert_eq!(code(&router, request("POST", JOBS, &body("absent"))).await, 422);
    assert_eq!(code(&router, request("POST", JOBS, &body("forbidden"))).await, 403);
    assert_eq!(code(&router, request("POST", JOBS, "spec: [")).await, 400);
    assert_eq!(code(&router, request("POST", JOBS, &body("big"))).await, 200);
    let [reached] = &server.reached("rayjobs")[..] else { panic!("one request") };
    let group = &reached.body["spec"]["rayClusterSpec"]["headGroupSpec"];
    let limits = &group["template"]["spec"]["containers"][0]["resources"]["limits"];
    assert_eq!(*limits, json!({"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": 1}));
    assert_eq!(
        code(&router, request("POST", JOBS, &"x".repeat(request_body::OBJECT + 1))).await,
        413
    );
}

#[tokio::test]
async fn a_worker_that_is_not_active_is_named() {
    let server = PlayedServer::new();
    let request = request("GET", &head("far-head-svc", "x"), "");
    let answer = server.router().oneshot(request).await.expect("an answer");
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["retry-after"]),
        (503, &"1".parse().expect("one"))
    );
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    let status: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(status["message"], "cluster \"east\" is not connected");
    assert!(server.reached("/proxy/").is_empty());
}

#[tokio::test]
async fn an_owner_is_searched_for_on_all_pages_of_a_list() {
    let server = PlayedServer::new();
    let request = request("GET", &head("front", "x"), "");
    assert_eq!(code(&server.router(), request).await, 503, "its worker is not active");
}

#[tokio::test]
async fn a_path_of_objects_may_end_with_a_slash() {
    let server = PlayedServer::new();
    let router = server.router();
    for method in ["GET", "POST"] {
        let path = format!("{JOBS}/?limit=3");
        assert_eq!(code(&router, request(method, &path, "{}")).await, 200, "{method}");
    }
    let [sent] = &server.reached("rayjobs")[..] else { panic!("one request") };
    assert_eq!(sent.target, format!("{JOBS}?limit=3"));
    assert_eq!(code(&router, request("GET", &format!("{JOBS}//"), "")).await, 400);
}

#[tokio::test(start_paused = true)]
async fn answers_of_a_bad_head_have_a_code() {
    let server = PlayedServer::new();
    let router = server.router();
    for (method, path, expected, attempts) in [
        ("GET", "long", 502, 1),
        ("POST", "hang", 504, 1),
        ("GET", "503", 503, 4),
        ("POST", "500", 500, 1),
        ("POST", "429", 429, 4),
    ] {
        server.reached.lock().clear();
        let request = request(method, &head("c-head-svc", path), "");
        assert_eq!(code(&router, request).await, expected, "{method} {path}");
        assert_eq!(server.reached("/proxy/").len(), attempts, "{method} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hung_head_delays_no_other_one() {
    let server = PlayedServer::new();
    let router = server.router();
    let mut hung = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let (router, path) = (router.clone(), head("hung-head-svc", "hang"));
        hung.spawn(async move { code(&router, request("GET", &path, "")).await });
    }
    let begin = tokio::time::Instant::now();
    let mut refused = 0;
    while refused < 24 {
        assert_eq!(hung.join_next().await.expect("an answer").ok(), Some(429));
        refused += 1;
    }
    assert_eq!(code(&router, request("GET", &head("c-head-svc", "x"), "")).await, 200);
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    assert!(hung.join_all().await.iter().all(|code| *code == 504));
}
