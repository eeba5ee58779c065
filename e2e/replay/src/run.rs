//! Sends cases to an API server.

use std::time::Duration;

use futures::{StreamExt, stream};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use serde_json::{Value, json};

use crate::{
    SERVED_KINDS,
    case::{Case, CaseRequest},
    compare::{self, Level, ReplayResponse},
    exceptions,
    normalise::Known,
    report::ReplayReport,
};

/// Cases under way at once.
const PARALLEL: usize = 8;

/// The API under test.
#[derive(Clone)]
pub struct ReplayTarget {
    client: Client,
}

pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) body: Value,
    /// `Warning` headers.
    pub(crate) warnings: Vec<String>,
}

impl ReplayTarget {
    /// The API behind `client`, whose manager has the settings of the cases that will be run.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    pub(crate) async fn send(
        &self,
        request: &CaseRequest,
        body: Option<&Value>,
    ) -> anyhow::Result<Reply> {
        let mut builder = http::Request::builder()
            .method(request.method.as_str())
            .uri(&request.path)
            .header(http::header::CONTENT_TYPE, &request.content_type);
        if let Some(accept) = &request.accept {
            builder = builder.header(http::header::ACCEPT, accept);
        }
        let bytes = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
        let response = self.client.send(builder.body(Body::from(bytes))?).await?;
        let code = response.status().as_u16();
        let warnings = response.headers().get_all(http::header::WARNING);
        let warnings =
            warnings.iter().filter_map(|value| value.to_str().ok()).map(str::to_owned).collect();
        let bytes = response.into_body().collect().await?.to_bytes();
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
        Ok(Reply { code, body, warnings })
    }

    async fn get(&self, path: &str) -> anyhow::Result<Reply> {
        self.send(&plain("GET", path, "application/json"), None).await
    }

    /// Deletes an object, or all of a collection, without grace.
    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<()> {
        let options = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        self.send(&plain("DELETE", path, "application/json"), Some(&options)).await?;
        Ok(())
    }

    /// Lets an object go that is being deleted.
    pub(crate) async fn drop_finalizers(&self, path: &str) -> anyhow::Result<()> {
        let patch = plain("PATCH", path, "application/merge-patch+json");
        self.send(&patch, Some(&json!({"metadata": {"finalizers": null}}))).await?;
        Ok(())
    }
}

pub(crate) fn plain(method: &str, path: &str, content_type: &str) -> CaseRequest {
    CaseRequest {
        method: method.into(),
        path: path.into(),
        content_type: content_type.into(),
        accept: None,
        body: None,
        fill_resource_version: false,
    }
}

/// Runs all cases of kinds that we serve. Cases are independent, except the exclusive ones, which run alone.
///
/// # Errors
/// If the API server cannot be reached or a namespace cannot be made.
pub async fn run(target: &ReplayTarget, cases: &[Case]) -> anyhow::Result<ReplayReport> {
    let mut report = ReplayReport::default();
    let (ours, others): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|case| SERVED_KINDS.contains(&case.kind.as_str()));
    for case in others {
        let reason = format!("kind {} has no webhooks yet", case.kind);
        *report.skipped.entry(reason).or_default() += 1;
    }
    make_namespaces(target, &ours).await?;
    let (alone, together): (Vec<&Case>, Vec<&Case>) =
        ours.into_iter().partition(|case| case.exclusive);
    let mut outcomes: Vec<_> =
        stream::iter(together).map(|case| judge(target, case)).buffered(PARALLEL).collect().await;
    for case in alone {
        outcomes.push(judge(target, case).await);
    }
    for outcome in outcomes {
        record(&mut report, outcome?);
    }
    Ok(report)
}

async fn make_namespaces(target: &ReplayTarget, cases: &[&Case]) -> anyhow::Result<()> {
    let fixed = ["kube-system", "kueue-system"].map(|name| (name, json!({})));
    let own = cases
        .iter()
        .filter_map(|case| Some((case.namespace.as_deref()?, json!(case.namespace_labels))));
    let made = stream::iter(fixed.into_iter().chain(own));
    let made =
        made.map(|(name, labels)| async move { make_namespace(target, name, &labels).await });
    let outcomes: Vec<anyhow::Result<()>> = made.buffered(PARALLEL).collect().await;
    outcomes.into_iter().collect()
}

/// Makes a namespace in which pods can be created.
pub(crate) async fn make_namespace(
    target: &ReplayTarget,
    name: &str,
    labels: &Value,
) -> anyhow::Result<()> {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels},
    });
    create(target, "/api/v1/namespaces", &namespace).await?;
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    create(target, &format!("/api/v1/namespaces/{name}/serviceaccounts"), &account).await
}

/// Creates an object, or finds it there.
pub(crate) async fn create(
    target: &ReplayTarget,
    path: &str,
    object: &Value,
) -> anyhow::Result<()> {
    let reply = target.send(&plain("POST", path, "application/json"), Some(object)).await?;
    anyhow::ensure!(
        reply.code < 300 || reply.code == 409,
        "POST {path}: {}",
        reply.body["message"]
    );
    Ok(())
}

struct CaseOutcome<'a> {
    case: &'a Case,
    differences: Vec<compare::Difference>,
}

fn record(report: &mut ReplayReport, outcome: CaseOutcome<'_>) {
    let message = outcome.case.expect.message.as_deref().unwrap_or_default();
    let reasons: Option<Vec<&str>> = outcome
        .differences
        .iter()
        .map(|difference| exceptions::reason(&outcome.case.id, message, difference))
        .collect();
    match reasons {
        Some(reasons) => {
            report.passed += 1;
            if let Some(reason) = reasons.first() {
                *report.excepted.entry(reason).or_default() += 1;
            }
        }
        None => report.failed.push((outcome.case.id.clone(), outcome.differences)),
    }
}

/// A case whose setup is refused fails alone.
async fn judge<'a>(target: &ReplayTarget, case: &'a Case) -> anyhow::Result<CaseOutcome<'a>> {
    let differences = match send_case(target, case).await {
        Ok(answer) => compare::compare(&answer, &case.expect),
        Err(error) => match error.downcast::<SetupRefused>() {
            Ok(refused) => {
                vec![compare::Difference { level: Level::Verdict, text: refused.to_string() }]
            }
            Err(error) => return Err(error.context(case.id.clone())),
        },
    };
    Ok(CaseOutcome { case, differences })
}

/// A request of the setup of a case was refused.
#[derive(Debug, thiserror::Error)]
#[error("setup {request}: {answer}")]
struct SetupRefused {
    request: String,
    answer: Value,
}

async fn send_case(target: &ReplayTarget, case: &Case) -> anyhow::Result<ReplayResponse> {
    let mut known = Known::default();
    let mut made = Vec::new();
    for step in &case.setup {
        let reply = send_step(target, step, &mut known).await?;
        if reply.code >= 300 {
            clean_up(target, &made).await?;
            let request = format!("{} {}", step.method, step.path);
            return Err(SetupRefused { request, answer: reply.body }.into());
        }
        known.setup_uids.push(uid(&reply.body));
        made.extend(path_of(step, &reply));
    }
    tokio::time::sleep(Duration::from_millis(case.pause_ms)).await;
    let reply = send_step(target, &case.request, &mut known).await?;
    known.uid = uid(&reply.body);
    let object = path_of(&case.request, &reply);
    let stored = match &object {
        Some(path) => read_back(target, case, path, &known).await?,
        None => vec![],
    };
    made.extend(object);
    clean_up(target, &made).await?;
    Ok(ReplayResponse {
        code: reply.code,
        body: known.answer(&reply.body),
        warnings: reply.warnings,
        stored,
    })
}

async fn send_step(
    target: &ReplayTarget,
    step: &CaseRequest,
    known: &mut Known,
) -> anyhow::Result<Reply> {
    let Some(body) = &step.body else {
        return target.send(step, None).await;
    };
    known.note(body);
    let mut body = known.fill(body);
    loop {
        if step.fill_resource_version {
            let current = target.get(step.object_path()).await?;
            body["metadata"]["resourceVersion"] =
                current.body["metadata"]["resourceVersion"].clone();
        }
        let reply = target.send(step, Some(&body)).await?;
        if reply.code != 409 || !step.fill_resource_version {
            return Ok(reply);
        }
    }
}

fn uid(body: &Value) -> Option<String> {
    body["metadata"]["uid"].as_str().map(str::to_owned)
}

/// The path of the object that an accepted write made or changed.
fn path_of(step: &CaseRequest, reply: &Reply) -> Option<String> {
    if reply.code >= 300 || step.method == "GET" || step.method == "DELETE" {
        return None;
    }
    let path = step.object_path();
    if step.method != "POST" {
        return Some(path.to_owned());
    }
    let name = reply.body["metadata"]["name"].as_str()?;
    Some(format!("{path}/{name}"))
}

async fn read_back(
    target: &ReplayTarget,
    case: &Case,
    path: &str,
    known: &Known,
) -> anyhow::Result<Vec<(String, Value)>> {
    let mut stored = Vec::new();
    for version in case.expect.stored.keys() {
        let path = match version.as_str() {
            "self" => path.to_owned(),
            version => at_version(path, version),
        };
        let reply = target.get(&path).await?;
        let object = if reply.code < 300 {
            known.answer(&reply.body)
        } else {
            json!({"code": reply.code, "message": reply.body["message"]})
        };
        stored.push((version.clone(), object));
    }
    Ok(stored)
}

/// `/apis/GROUP/VERSION/…` with another version.
fn at_version(path: &str, version: &str) -> String {
    let parts = path.split('/').enumerate();
    parts.map(|(at, part)| if at == 3 { version } else { part }).collect::<Vec<_>>().join("/")
}

/// Drops finalizers and deletes, so that names and cluster-wide effects are gone for the next case.
async fn clean_up(target: &ReplayTarget, paths: &[String]) -> anyhow::Result<()> {
    for path in paths {
        target.drop_finalizers(path).await?;
        target.delete(path).await?;
    }
    Ok(())
}
