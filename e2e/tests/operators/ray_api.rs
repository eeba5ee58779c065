//! The API of Ray clusters: callers with rights on the manager cluster, heads on the worker.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::installation::TIMEOUT;
use harness::HeadFault;
use http::{Request, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Endpoints, Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
    client::Body,
};
use runtime::transport::StreamedAnswer;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use crate::fixture::{OperatorFixture, cluster_spec};

/// The code of a response, and its body, which is null if it is no JSON.
type Answered = (u16, Value);

async fn ask(
    client: &Client,
    (method, path): (&str, &str),
    body: Option<&Value>,
) -> Result<Answered> {
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = Request::builder().method(method).uri(path);
    let request = request.header("content-type", "application/json").body(Body::from(body))?;
    let response = client.send(request).await?;
    let code = response.status().as_u16();
    let body = response.into_body().collect_bytes().await?;
    Ok((code, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}

/// The spec of a RayCluster without workers. Its dashboard has this port.
fn spec(dashboard: u16) -> Value {
    let mut spec = cluster_spec(0);
    spec["headGroupSpec"]["template"]["spec"]["containers"][0]["ports"] =
        json!([{"name": "dashboard", "containerPort": dashboard}]);
    spec
}

fn queued(name: &str) -> Value {
    json!({"name": name, "labels": {"kueue.x-k8s.io/queue-name": "queue"}})
}

fn cluster(dashboard: u16) -> Value {
    json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": queued("c"),
        "spec": spec(dashboard),
    })
}

fn job(dashboard: u16) -> Value {
    json!({
        "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": queued("c"),
        "spec": {
            "submissionMode": "HTTPMode", "entrypoint": "python main.py",
            "shutdownAfterJobFinishes": true, "rayClusterSpec": spec(dashboard),
        },
    })
}

/// The rights of users of the API in the namespace.
async fn allow(fixture: &OperatorFixture, account: &str) -> Result<()> {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let rules = [
        rule("ray.io", &["rayclusters", "rayjobs"], &["get", "list", "create"]),
        rule("workload.codeflare.dev", &["appwrappers"], &["get"]),
        rule("events.k8s.io", &["events"], &["list"]),
        rule("", &["services/proxy"], &["get", "create"]),
        rule("", &["configmaps"], &["get"]),
    ];
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": account}, "rules": rules,
    });
    let subject = json!({
        "kind": "ServiceAccount", "name": account, "namespace": fixture.space.namespace(),
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": account}, "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
    });
    let objects = format!("{role}\n---\n{binding}\n");
    Ok(fixture.hub.apply(&objects, fixture.space.namespace()).await?)
}

/// Submits an object with a Ray cluster that runs on the worker, and gives the head an address that the worker's API server
/// reaches. Returns the name of the head's Service.
async fn start(fixture: &OperatorFixture, object: impl Fn(u16) -> Value) -> Result<String> {
    let namespace = fixture.space.namespace();
    let address = fixture.heads().open(&format!("c-head-svc.{namespace}.svc:8265"))?;
    fixture.submit(&object(address.port())).await?;
    let heads = fixture.until_running("head", 1).await?;
    let head = heads.first().context("a head")?;
    let service = format!("{}-head-svc", head.labels()["ray.io/cluster"]);
    // The pods of the lab are played, and so are their addresses.
    let ip = address.ip().to_string();
    let status = Patch::Merge(json!({"status": {"podIP": ip, "podIPs": [{"ip": ip}]}}));
    let pods: Api<Pod> = fixture.worker.api(namespace);
    pods.patch_status(&head.name_any(), &PatchParams::default(), &status).await?;
    let endpoints: Api<Endpoints> = fixture.worker.api(namespace);
    let has_address = |all: &Endpoints| {
        let subsets = all.subsets.iter().flatten();
        subsets.flat_map(|it| it.addresses.iter().flatten()).any(|it| it.ip == ip)
    };
    let what = "has the address of the head";
    fixture.worker.until(&endpoints, &service, what, TIMEOUT, has_address).await?;
    Ok(service)
}

fn proxied(fixture: &OperatorFixture, service: &str, path: &str) -> String {
    format!("/api/v1/namespaces/{}/services/{service}/proxy/{path}", fixture.space.namespace())
}

/// A caller with rights on the manager cluster submits a job to the head on the worker. Others are refused, and a bad head costs
/// its own requests only.
#[tokio::test]
async fn a_caller_submits_to_the_head_of_the_worker_that_runs_it() -> Result<()> {
    let fixture = OperatorFixture::new("ray_api").await?;
    let namespace = fixture.space.namespace();
    start(&fixture, cluster).await?;
    let (anonymous, stranger) =
        (fixture.ray_api(None).await?, fixture.ray_api(Some("stranger")).await?);
    let caller = fixture.ray_api(Some("caller")).await?;
    allow(&fixture, "caller").await?;

    let jobs = proxied(&fixture, "c-head-svc:dashboard", "api/jobs/");
    let job = json!({"submission_id": "by-api", "entrypoint": "python main.py"});
    for (client, code) in [(&anonymous, 401), (&stranger, 403)] {
        let answered = ask(client, ("POST", &jobs), Some(&job)).await?;
        ensure!(answered.0 == code, "{code}: {answered:?}");
    }
    let (code, body) = ask(&caller, ("POST", &jobs), Some(&job)).await?;
    ensure!(code == 200 && body["submission_id"] == "by-api", "{code} {body}");
    let submissions = fixture.heads().submissions();
    let by_api: Vec<_> = submissions.iter().filter(|it| it.id == "by-api").collect();
    let head = format!("c-head-svc.{namespace}.svc:8265");
    ensure!(by_api.len() == 1 && by_api[0].head == head, "{by_api:?}");
    let (code, body) = ask(&caller, ("GET", &format!("{jobs}by-api")), None).await?;
    ensure!(code == 200 && body["status"].is_string(), "{code} {body}");

    let tail = format!("{jobs}by-api/logs/tail");
    let (code, _) = follow(&stranger, &tail).await?;
    ensure!(code == 403, "{code}");
    let (code, _) = follow(&caller, &format!("{jobs}absent/logs/tail")).await?;
    ensure!(code == 404, "{code}");
    let (code, log) = follow(&caller, &tail).await?;
    let mut log = log.with_context(|| format!("no upgrade: {code}"))?;
    expect(&mut log, b"log of by-api").await?;
    log.write_all(b"to the head").await?;
    expect(&mut log, b"to the head").await?;

    // Services that are not of Ray, on either cluster.
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "db"},
        "spec": {"ports": [{"port": 80}]},
    });
    fixture.hub.apply(&service.to_string(), namespace).await?;
    for (service, code) in [("db", 404), ("absent-head-svc", 404), ("a:b:c:d", 400)] {
        let path = proxied(&fixture, service, "");
        let answered = ask(&caller, ("GET", &path), None).await?;
        ensure!(answered.0 == code, "{service}: {answered:?}");
    }

    fixture.heads().set_fault(namespace, HeadFault::Endless);
    let (code, body) = ask(&caller, ("GET", &jobs), None).await?;
    let message = body["message"].as_str().unwrap_or_default();
    ensure!(code == 502 && message.starts_with("the answer is longer than"), "{code} {body}");
    fixture.heads().set_fault(namespace, HeadFault::Hang);
    let hung = ask(&caller, ("GET", &jobs), None);
    let others = async {
        let begin = Instant::now();
        let path = format!("/apis/ray.io/v1/namespaces/{namespace}/rayclusters/c");
        let (code, body) = ask(&caller, ("GET", &path), None).await?;
        ensure!(code == 200 && body["metadata"]["name"] == "c", "{code} {body}");
        Ok(begin.elapsed())
    };
    let (hung, other) = futures::future::join(hung, others).await;
    let hung = hung?;
    ensure!(hung.0 == 504, "a head that says nothing: {hung:?}");
    ensure!(other? < Duration::from_secs(10), "another request waited");
    fixture.heads().set_fault(namespace, HeadFault::None);
    // Other requests and their faults do not end it; its object does.
    log.write_all(b"still there").await?;
    expect(&mut log, b"still there").await?;
    fixture.delete("RayCluster", "c").await?;
    timeout(2 * TIMEOUT, log.read_to_end(&mut Vec::new())).await.context("it is still open")??;
    fixture.until_nothing_left().await
}

/// Asks for a WebSocket, over HTTP/1.1. Returns the code of the answer, and the connection if it was upgraded.
async fn follow(client: &Client, path: &str) -> Result<(u16, Option<TokioIo<Upgraded>>)> {
    let request = Request::get(path).header("connection", "Upgrade").header("upgrade", "websocket");
    let mut request = request.body(Body::empty())?;
    request.extensions_mut().insert(StreamedAnswer);
    let mut response = client.send(request).await?;
    let code = response.status();
    let upgraded = if code == StatusCode::SWITCHING_PROTOCOLS {
        Some(TokioIo::new(hyper::upgrade::on(&mut response).await?))
    } else {
        None
    };
    Ok((code.as_u16(), upgraded))
}

async fn expect(stream: &mut TokioIo<Upgraded>, text: &[u8]) -> Result<()> {
    let mut read = vec![0; text.len()];
    timeout(TIMEOUT, stream.read_exact(&mut read)).await.context("nothing arrives")??;
    ensure!(read == text, "{}", String::from_utf8_lossy(&read));
    Ok(())
}

/// The manager cluster has the object that a user submitted, and neither its RayCluster nor its Service.
#[tokio::test]
async fn the_head_of_a_ray_job_is_reached() -> Result<()> {
    let fixture = OperatorFixture::new("ray_api_job").await?;
    let service = start(&fixture, job).await?;
    let has_cluster = |job: &DynamicObject| job.data["status"]["rayClusterName"].is_string();
    let (jobs, what) = (fixture.api(&fixture.hub, "RayJob"), "knows its cluster");
    fixture.hub.until(&jobs, "c", what, TIMEOUT, has_cluster).await?;
    reach_head(&fixture, &service).await?;
    fixture.delete("RayJob", "c").await?;
    fixture.until_nothing_left().await
}

#[tokio::test]
async fn the_head_in_an_app_wrapper_is_reached() -> Result<()> {
    let fixture = OperatorFixture::new("ray_api_wrapped").await?;
    let wrapped = |dashboard| {
        let mut template = cluster(dashboard);
        template["metadata"] = json!({"name": "c", "namespace": fixture.space.namespace()});
        json!({
            "apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper",
            "metadata": queued("w"), "spec": {"components": [{"template": template}]},
        })
    };
    let service = start(&fixture, wrapped).await?;
    reach_head(&fixture, &service).await?;
    fixture.delete("AppWrapper", "w").await?;
    fixture.until_nothing_left().await
}

/// A caller with rights gets an answer of the head.
async fn reach_head(fixture: &OperatorFixture, service: &str) -> Result<()> {
    let caller = fixture.ray_api(Some("caller")).await?;
    allow(fixture, "caller").await?;
    let path = proxied(fixture, &format!("{service}:dashboard"), "-/healthz");
    let (code, body) = ask(&caller, ("GET", &path), None).await?;
    ensure!(code == 200, "{code} {body}");
    Ok(())
}

/// An object that comes through the API is one of a user: the webhooks see it, and its compute template is filled in.
#[tokio::test]
async fn a_ray_job_with_a_template_is_queued() -> Result<()> {
    let fixture = OperatorFixture::new("ray_api_objects").await?;
    let namespace = fixture.space.namespace();
    let caller = fixture.ray_api(Some("caller")).await?;
    allow(&fixture, "caller").await?;
    let template = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "small"},
        "data": {"cpu": "1", "memory": "2"},
    });
    fixture.hub.apply(&template.to_string(), namespace).await?;
    let path = format!("/apis/ray.io/v1/namespaces/{namespace}/rayjobs");
    let mut job = crate::ray_jobs::ray_job("templated");
    let head = &mut job["spec"]["rayClusterSpec"]["headGroupSpec"];
    head["computeTemplate"] = json!("absent");
    let answered = ask(&caller, ("POST", &path), Some(&job)).await?;
    ensure!(answered.0 == 422, "{answered:?}");
    job["spec"]["rayClusterSpec"]["headGroupSpec"]["computeTemplate"] = json!("small");
    let (code, body) = ask(&caller, ("POST", &path), Some(&job)).await?;
    ensure!(code == 201, "{code} {body}");
    ensure!(body["spec"]["suspend"] == true, "the webhook suspends it: {body}");
    let pods = &body["spec"]["rayClusterSpec"]["headGroupSpec"]["template"];
    let limits = &pods["spec"]["containers"][0]["resources"]["limits"];
    ensure!(*limits == json!({"cpu": "1", "memory": "2Gi"}), "{limits}");
    ensure!(pods["metadata"]["annotations"]["ray.io/compute-template"] == "small", "{pods}");

    let event = |name: &str, version: &str| {
        json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": name},
            "regarding": {"apiVersion": version, "kind": "Any", "name": "a", "namespace": namespace},
            "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "example.com/test",
            "reportingInstance": "test", "action": "Test", "reason": "Test", "type": "Normal",
        })
    };
    let both = format!("{}\n---\n{}\n", event("of-ray", "ray.io/v1"), event("of-job", "batch/v1"));
    fixture.hub.apply(&both, namespace).await?;
    let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    let (code, body) = ask(&caller, ("GET", &path), None).await?;
    let events = body["items"].as_array().context("events")?;
    ensure!(code == 200 && events.iter().any(|it| it["metadata"]["name"] == "of-ray"), "{body}");
    ensure!(events.iter().all(|it| it["regarding"]["apiVersion"] == "ray.io/v1"), "{body}");
    fixture.delete("RayJob", "templated").await?;
    fixture.until_nothing_left().await
}
