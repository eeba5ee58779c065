//! Sends the steps of a case, and waits until the cluster shows what was recorded.

use std::time::Duration;

use anyhow::Context;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    SHOWN_KINDS, TRACED_KINDS, answers,
    case::{TraceCase, TraceCluster, TraceOutcome, TraceRequest, TraceStep},
    clusters::ReplayClusters,
    collection, comparison,
    details::{self, DetailCounts},
    events,
    placeholders::TraceNames,
    setup,
    verdict::{CaseDifferences, JudgedCase, Settling, count, judged},
};
use crate::{
    compare::{Difference, Level},
    report::ReplayReport,
    run::{ReplayTarget, Reply, plain},
};

/// Cases under way at once.
const PARALLEL: usize = 6;

/// Maximum number of failed cases, and of cut ones, that are judged again. More are no matter of a busy machine.
const AGAIN_AT_MOST: usize = 5;

/// Between two looks at the cluster.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Runs the cases of kinds that are served. The objects that every case finds must be there.
///
/// # Errors
/// If an API server cannot be reached.
pub async fn run_traces(
    clusters: &ReplayClusters,
    cases: &[TraceCase],
) -> anyhow::Result<ReplayReport> {
    let mut report = ReplayReport::default();
    let mut chosen = Vec::new();
    for case in cases {
        let reason = if case.is_of_several_clusters() && clusters.worker.is_none() {
            "more than one cluster".to_owned()
        } else if !TRACED_KINDS.contains(&case.kind.as_str()) {
            format!("kind {} is not built", case.kind)
        } else {
            chosen.push(case);
            continue;
        };
        *report.skipped.entry(reason).or_default() += 1;
    }
    let n_chosen = chosen.len();
    let numbered = chosen.into_iter().enumerate();
    let (assigning, others): (Vec<_>, Vec<_>) =
        numbered.partition(|(_, case)| case.assigns_domains());
    let mut outcomes = judge_all(clusters, others).await;
    if !assigning.is_empty() {
        until_nodes_are_empty(clusters).await?;
        outcomes.extend(judge_all(clusters, assigning).await);
    }
    let outcomes = outcomes.into_iter().map(|(case, found)| (case, judged(found)));
    let (doubtful, certain): (Vec<_>, Vec<_>) =
        outcomes.partition(|(case, found)| found.is_doubtful(&case.case));
    for (case, found) in certain {
        count(&mut report, case, found);
    }
    let (failed, cut): (Vec<_>, Vec<_>) =
        doubtful.into_iter().partition(|(case, found)| found.fails(&case.case));
    let n_judged = n_chosen + failed.len();
    count_alone(clusters, &mut report, failed, n_chosen).await;
    count_alone(clusters, &mut report, cut, n_judged).await;
    report.failed.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(report)
}

/// Counts cases of one class that are in doubt, after a second look at each: beside others on a busy machine a controller of
/// Kubernetes may need longer than a step waits.
async fn count_alone(
    clusters: &ReplayClusters,
    report: &mut ReplayReport,
    doubtful: Vec<(&TraceCase, JudgedCase)>,
    n_judged: usize,
) {
    let is_again = doubtful.len() <= AGAIN_AT_MOST;
    for (number, (case, found)) in doubtful.into_iter().enumerate() {
        // A given namespace has the objects of the first time.
        let found = if is_again && case.namespace.is_none() {
            judged(judge(clusters, case, n_judged + number).await)
        } else {
            found
        };
        report.passed_alone += usize::from(!found.is_doubtful(&case.case));
        count(report, case, found);
    }
}

async fn judge_all<'a>(
    clusters: &ReplayClusters,
    cases: Vec<(usize, &'a TraceCase)>,
) -> Vec<(&'a TraceCase, CaseDifferences)> {
    let runs = stream::iter(cases)
        .map(|(number, case)| async move { (case, judge(clusters, case, number).await) });
    runs.buffer_unordered(PARALLEL).collect().await
}

/// Waits until the pods of earlier cases have left their nodes, for at most a minute.
async fn until_nodes_are_empty(clusters: &ReplayClusters) -> anyhow::Result<()> {
    let until = Instant::now() + Duration::from_secs(60);
    for target in clusters.iter() {
        let all = plain("GET", "/api/v1/pods", "application/json");
        while Instant::now() < until {
            let reply = target.send(&all, None).await?;
            let mut pods = reply.body["items"].as_array().into_iter().flatten();
            if !pods.any(|pod| pod["spec"]["nodeName"].is_string()) {
                break;
            }
            sleep(POLL_INTERVAL).await;
        }
    }
    Ok(())
}

async fn judge(clusters: &ReplayClusters, case: &TraceCase, number: usize) -> CaseDifferences {
    if let Some(namespace) = &case.namespace {
        return steps(clusters, case, &mut TraceNames::of(namespace)).await;
    }
    let namespace = format!("trace-{number}");
    setup::prepare(clusters, &namespace, case).await.context("setup")?;
    let mut names = TraceNames::of(&namespace);
    let found = judge_steps_and_events(clusters, case, &mut names).await;
    for target in clusters.iter() {
        clean_up(target, &namespace).await?;
    }
    found
}

async fn judge_steps_and_events(
    clusters: &ReplayClusters,
    case: &TraceCase,
    names: &mut TraceNames,
) -> CaseDifferences {
    let mut judged = steps(clusters, case, names).await?;
    if judged.differences.is_empty() && judged.wanted.is_empty() {
        judged.differences = events::differences(clusters, case, names).await?;
    }
    Ok(judged)
}

/// The first step that differs ends a case, unless the difference is wanted.
async fn steps(
    clusters: &ReplayClusters,
    case: &TraceCase,
    names: &mut TraceNames,
) -> CaseDifferences {
    let mut judged = JudgedCase::default();
    for step in &case.steps {
        let mut found = Vec::new();
        if let Some(request) = &step.request {
            let reply = send(clusters, step.cluster, request, names).await?;
            for Difference { level, text } in answers::differences(step, &reply, names) {
                found.push(Difference { level, text: text_of(step, &text) });
            }
        }
        if let Some(then) = step.then.as_ref().filter(|_| found.is_empty() && !step.dry_run) {
            let timeout = |found: &[Difference]| judged.timeout(&case.case, step.step, found);
            let settled = settle(clusters, (step, then), names, timeout).await?;
            found.extend(settled.differences);
            judged.details.absorb(settled.details.of(&case.case, step.step));
            if found.is_empty() {
                events::settle(clusters, then, names).await?;
            }
        }
        if !judged.take(&case.case, step.step, found) {
            break;
        }
    }
    Ok(judged)
}

/// The text of a difference of a step.
fn text_of(step: &TraceStep, text: &str) -> String {
    format!("step {} ({}): {text}", step.step, step.what)
}

/// Waits for the recorded objects, as long as what differs may take. Returns what differs.
async fn settle(
    clusters: &ReplayClusters,
    (step, then): (&TraceStep, &TraceOutcome),
    names: &mut TraceNames,
    timeout: impl Fn(&[Difference]) -> Duration,
) -> CaseDifferences {
    let mut settling = Settling::begin(Instant::now());
    loop {
        let (lines, details) = look(clusters, then, names).await?;
        let texts = lines.iter().map(|line| text_of(step, line));
        let found = texts.map(|text| Difference { level: Level::Objects, text });
        let found: Vec<Difference> = found.collect();
        let timeout = timeout(&found);
        if let Some(judged) = settling.look((Instant::now(), timeout), found, details) {
            return Ok(judged);
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// How the objects differ from the recorded ones now, and their details.
async fn look(
    clusters: &ReplayClusters,
    then: &TraceOutcome,
    names: &mut TraceNames,
) -> anyhow::Result<(Vec<String>, DetailCounts)> {
    let namespace = names.namespace().to_owned();
    let there = present(&clusters.manager, &namespace).await?;
    let mut lines = comparison::differences(then.of_manager(), &there, names);
    let mut details = details::of_step(then.of_manager(), &there, names);
    if let (Some(worker), Some(then)) = (&clusters.worker, &then.worker) {
        let there = present(worker, &namespace).await?;
        let of_worker = comparison::differences(then, &there, names);
        lines.extend(of_worker.into_iter().map(|line| format!("worker: {line}")));
        details.absorb(details::of_step(then, &there, names));
    }
    Ok((lines, details))
}

/// Sends a request with the names, uids and the time of this run.
async fn send(
    clusters: &ReplayClusters,
    cluster: Option<TraceCluster>,
    request: &TraceRequest,
    names: &TraceNames,
) -> anyhow::Result<Reply> {
    let body = match &request.body {
        Some(body) => Some(fill(clusters, body, names).await?),
        None => None,
    };
    let kind = request.content_type.as_deref().unwrap_or("application/json");
    // A name that this run does not have is sent as it is recorded: the recorder did the same, and was answered that it is unknown.
    let path = names.fill(&request.path).replace('<', "%3C").replace('>', "%3E");
    let target = clusters.of(cluster)?;
    target.send(&plain(&request.method, &path, kind), body.as_ref()).await
}

async fn fill(
    clusters: &ReplayClusters,
    body: &Value,
    names: &TraceNames,
) -> anyhow::Result<Value> {
    let mut text = names.fill(&body.to_string());
    let now = k8s_openapi::jiff::Timestamp::now();
    let now = now.round(k8s_openapi::jiff::Unit::Second).unwrap_or(now);
    text = text.replace("<now>", &now.to_string());
    while let Some((begin, rest)) = text.split_once("<uid:") {
        let (object, end) = rest.split_once('>').context("a placeholder without an end")?;
        let uid = uid_of(clusters, object, names).await?;
        text = format!("{begin}{uid}{end}");
    }
    Ok(serde_json::from_str(&text)?)
}

async fn uid_of(
    clusters: &ReplayClusters,
    object: &str,
    names: &TraceNames,
) -> anyhow::Result<String> {
    let (target, object) = match object.strip_prefix("worker/") {
        Some(object) => (clusters.of(Some(TraceCluster::Worker))?, object),
        None => (&clusters.manager, object),
    };
    let (kind, name) = object.split_once('/').context("a uid names kind and object")?;
    let path = collection(kind, names.namespace()).with_context(|| format!("uid of {kind}"))?;
    let get = plain("GET", &format!("{path}/{name}"), "application/json");
    let reply = target.send(&get, None).await?;
    Ok(reply.body["metadata"]["uid"].as_str().unwrap_or_default().to_owned())
}

/// All objects of a namespace that are compared.
async fn present(target: &ReplayTarget, namespace: &str) -> anyhow::Result<Vec<Value>> {
    let mut all = Vec::new();
    for (kind, api, _) in SHOWN_KINDS {
        let Some(path) = collection(kind, namespace) else { continue };
        let reply = target.send(&plain("GET", &path, "application/json"), None).await?;
        for item in reply.body["items"].as_array().into_iter().flatten() {
            let mut object = item.clone();
            // Items of a list need not say what they are.
            object["kind"] = json!(kind);
            object["apiVersion"] = json!(api.rsplit("apis/").next());
            all.push(object);
        }
    }
    Ok(all)
}

/// Drops finalizers and deletes what a trace has left.
async fn clean_up(target: &ReplayTarget, namespace: &str) -> anyhow::Result<()> {
    // Owners first, or their controllers make new objects.
    for (kind, _, _) in SHOWN_KINDS.iter().rev() {
        let Some(path) = collection(kind, namespace) else { continue };
        target.delete(&path).await?;
    }
    for object in present(target, namespace).await? {
        let (kind, name) = (object["kind"].as_str(), object["metadata"]["name"].as_str());
        let path = kind.and_then(|kind| collection(kind, namespace)).zip(name);
        let Some((path, name)) = path else { continue };
        target.drop_finalizers(&format!("{path}/{name}")).await?;
    }
    Ok(())
}
