//! Kubelets, the Job controller and the garbage collector, one move each.

use std::collections::BTreeSet;

use ray::names::SUBMITTER_CONTAINER;
use serde_json::{Value, json};

use super::{
    api::SimulatedApi,
    heads::{SimulatedHeads, living_head},
    request::TRIAL,
};
use crate::operators::object_cache::ObjectId;

/// The annotation of a Job that says what becomes of its pods.
pub(super) const PLAYS: &str = "simulation/plays";
/// They fail.
pub(super) const FAILS_ALWAYS: &str = "fails-always";
/// Those of the first Job of this name fail.
pub(super) const FAILS_ONCE: &str = "fails-once";
/// They go only if they are forced to.
pub(super) const IS_STUCK: &str = "is-stuck";

/// The most pods that a Job has at once: a spec of random values may ask for billions.
const MOST_PODS: u64 = 50;

/// Lets everything beside the operators move once.
pub(super) fn move_on(api: &mut SimulatedApi, heads: &mut SimulatedHeads) {
    // Only submitters follow the time, and not changes.
    let has_submitter = api.of_kind("Job").next().is_some()
        || api.of_kind("RayJob").any(is_interactive)
        || api.of_kind("Pod").any(|pod| submission_id(&pod["spec"]).is_some());
    if api.log.len() == api.n_moved && !has_submitter {
        return;
    }
    api.n_moved = api.log.len();
    for id in orphans(api) {
        api.delete(&id);
    }
    const MOVED: [&str; 6] = ["Pod", "Job", TRIAL, "RayJob", "Gateway", "HTTPRoute"];
    let is_moved = |id: &&ObjectId| MOVED.contains(&id.kind.as_str());
    let ids: Vec<ObjectId> = api.objects.keys().filter(is_moved).cloned().collect();
    for id in ids {
        let Some(object) = api.objects.get(&id).filter(|it| !rests(it)).cloned() else { continue };
        match id.kind.as_str() {
            "Pod" => {
                kubelet(api, &id, &object);
                sidecar(api, heads, &id, &object);
            }
            "Job" | TRIAL => job_controller(api, heads, &id, &object),
            "RayJob" => interactive_user(api, heads, &object),
            kind => gateway_controller(api, &id, kind),
        }
    }
}

/// Whether an object needs nothing of its controller: a pod without a submitter that has a state and stays.
fn rests(object: &Value) -> bool {
    object["kind"] == "Pod"
        && object["metadata"]["deletionTimestamp"].is_null()
        && !object["status"]["phase"].is_null()
        && submission_id(&object["spec"]).is_none()
}

/// Objects without an owner that is left.
fn orphans(api: &SimulatedApi) -> Vec<ObjectId> {
    let living: BTreeSet<&str> =
        api.objects.values().filter_map(|it| it["metadata"]["uid"].as_str()).collect();
    let lives = |owner: &Value| owner["uid"].as_str().is_some_and(|uid| living.contains(uid));
    let is_orphan = |object: &Value| {
        let owners = object["metadata"]["ownerReferences"].as_array();
        object["metadata"]["deletionTimestamp"].is_null()
            && owners.is_some_and(|owners| !owners.is_empty() && !owners.iter().any(lives))
    };
    let orphans = api.objects.iter().filter(|(_, object)| is_orphan(object));
    orphans.map(|(id, _)| id.clone()).collect()
}

fn kubelet(api: &mut SimulatedApi, id: &ObjectId, pod: &Value) {
    let plays = pod["metadata"]["annotations"][PLAYS].as_str().unwrap_or_default();
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        if plays != IS_STUCK {
            api.remove(id);
        }
        return;
    }
    if pod["status"]["phase"].is_null() && plays == FAILS_ALWAYS {
        let ended = json!([{"name": "main", "state": {"terminated": {"exitCode": 1}}}]);
        api.change(id, |pod| {
            pod["status"] = json!({"phase": "Failed", "containerStatuses": ended});
        });
    } else if pod["status"]["phase"].is_null() {
        let containers = pod["spec"]["containers"].as_array().cloned().unwrap_or_default();
        let statuses = containers.iter().map(
            |container| json!({"name": container["name"], "ready": true, "state": {"running": {}}}),
        );
        let statuses: Vec<Value> = statuses.collect();
        api.change(id, |pod| {
            pod["status"] = json!({
                "phase": "Running", "podIP": "10.0.0.1", "containerStatuses": statuses,
                "conditions": [
                    {"type": "ContainersReady", "status": "True"},
                    {"type": "Ready", "status": "True"},
                ],
            });
        });
    }
}

/// Fails every head, as a node would that loses its power.
pub(super) fn kill_heads(api: &mut SimulatedApi) {
    let heads: Vec<ObjectId> = api
        .of_kind("Pod")
        .filter(|pod| pod["metadata"]["labels"]["ray.io/node-type"] == "head")
        .map(ObjectId::of)
        .collect();
    for id in heads {
        api.change(&id, |pod| {
            pod["status"] = json!({"phase": "Failed", "conditions": [
                {"type": "Ready", "status": "False", "reason": "PodFailed"},
            ]});
        });
    }
}

fn job_controller(api: &mut SimulatedApi, heads: &mut SimulatedHeads, id: &ObjectId, job: &Value) {
    if job["status"]["conditions"].is_array() || !job["metadata"]["deletionTimestamp"].is_null() {
        return;
    }
    match submission_id(&job["spec"]["template"]["spec"]) {
        Some(submission) => submit(api, heads, id, job, &submission),
        None if job["metadata"]["labels"]["ray.io/node-type"] == "redis-cleanup" => {
            end_job(api, id, "Complete");
        }
        None => make_pods(api, job),
    }
}

/// A submitter beside the head asks its own head. It ends with the job, and its pod runs on.
fn sidecar(api: &mut SimulatedApi, heads: &mut SimulatedHeads, id: &ObjectId, pod: &Value) {
    let runs =
        pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null();
    let runs = runs && !heads.hangs(api.now);
    let Some(submission) = submission_id(&pod["spec"]).filter(|_| runs) else { return };
    let head = pod["metadata"]["uid"].as_str().unwrap_or_default();
    match heads.status(head, &submission, api.now) {
        None => {
            heads.submit(api, head, &submission);
        }
        Some("SUCCEEDED" | "STOPPED") => {
            let ended = json!({"terminated": {"exitCode": 0, "finishedAt": api.now.to_string()}});
            api.change(id, |pod| end_container(pod, SUBMITTER_CONTAINER, &ended));
        }
        Some(_) => {}
    }
}

/// Sets the state of a container, unless it has ended before.
fn end_container(pod: &mut Value, name: &str, state: &Value) {
    let statuses = pod["status"]["containerStatuses"].as_array_mut().into_iter().flatten();
    for status in statuses.filter(|status| status["name"] == name) {
        if status["state"]["terminated"].is_null() {
            status["state"] = state.clone();
        }
    }
}

/// The id of the job that a pod submits.
fn submission_id(spec: &Value) -> Option<String> {
    let containers = spec["containers"].as_array()?;
    let variables = containers.iter().flat_map(|it| it["env"].as_array().into_iter().flatten());
    let mut ids = variables.filter(|it| it["name"] == "RAY_JOB_SUBMISSION_ID");
    ids.next_back()?["value"].as_str().map(str::to_owned)
}

/// A submitter asks for the job before it submits it, and ends with it.
fn submit(
    api: &mut SimulatedApi,
    heads: &mut SimulatedHeads,
    id: &ObjectId,
    job: &Value,
    submission: &str,
) {
    let owner = &job["metadata"]["ownerReferences"][0]["uid"];
    let head = {
        let mut ray_jobs = api.of_kind("RayJob").filter(|it| it["metadata"]["uid"] == *owner);
        let cluster = ray_jobs.next().and_then(|it| it["status"]["rayClusterName"].as_str());
        cluster.and_then(|cluster| living_head(api, cluster))
    };
    let Some(head) = head.filter(|_| !heads.hangs(api.now)) else { return };
    match heads.status(&head, submission, api.now) {
        None => {
            heads.submit(api, &head, submission);
        }
        Some("SUCCEEDED" | "STOPPED") => end_job(api, id, "Complete"),
        Some("FAILED") => end_job(api, id, "Failed"),
        Some(_) => {}
    }
}

/// The user submits the job of a RayJob as often as a head does not know it.
fn interactive_user(api: &SimulatedApi, heads: &mut SimulatedHeads, job: &Value) {
    let (cluster, id) = (&job["status"]["rayClusterName"], &job["spec"]["jobId"]);
    let (Some(cluster), Some(id)) = (cluster.as_str(), id.as_str()) else { return };
    let has_ended =
        matches!(job["status"]["jobDeploymentStatus"].as_str(), Some("Complete" | "Failed"));
    let can_submit = is_interactive(job) && !has_ended && !heads.hangs(api.now);
    if let Some(head) = living_head(api, cluster).filter(|_| can_submit) {
        heads.submit_by_user(api, &head, id);
    }
}

fn is_interactive(job: &Value) -> bool {
    job["spec"]["submissionMode"] == "InteractiveMode"
}

/// Accepts Gateways and their routes.
fn gateway_controller(api: &mut SimulatedApi, id: &ObjectId, kind: &str) {
    let conditions = |kinds: [&str; 2]| kinds.map(|kind| json!({"type": kind, "status": "True"}));
    api.change(id, |object| {
        object["status"] = if kind == "Gateway" {
            json!({"conditions": conditions(["Accepted", "Programmed"])})
        } else {
            let parent = object["spec"]["parentRefs"][0].clone();
            let conditions = conditions(["Accepted", "ResolvedRefs"]);
            json!({"parents": [{"parentRef": parent, "conditions": conditions}]})
        };
    });
}

fn end_job(api: &mut SimulatedApi, id: &ObjectId, condition: &str) {
    let now = api.now.to_string();
    api.change(id, |job| {
        job["status"] = json!({"conditions": [
            {"type": condition, "status": "True", "lastTransitionTime": now},
        ]});
    });
}

fn make_pods(api: &mut SimulatedApi, job: &Value) {
    let uid = &job["metadata"]["uid"];
    let is_its = |pod: &&Value| pod["metadata"]["ownerReferences"][0]["uid"] == *uid;
    let present = api.of_kind("Pod").filter(is_its).count();
    let wanted = job["spec"]["parallelism"].as_u64().unwrap_or(1).min(MOST_PODS);
    let template = &job["spec"]["template"];
    let namespace = &job["metadata"]["namespace"];
    let plays = plays(api, job);
    for index in present..usize::try_from(wanted).unwrap_or_default() {
        let name = format!("{}-{index}", job["metadata"]["name"].as_str().unwrap_or_default());
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"],
            "spec": template["spec"],
        });
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["namespace"] = namespace.clone();
        pod["metadata"]["uid"] = json!(format!("{name}-{}", api.log.len()));
        if let Some(plays) = plays {
            pod["metadata"]["annotations"] = json!({PLAYS: plays});
        }
        pod["metadata"]["ownerReferences"] =
            json!([{"kind": "Job", "name": job["metadata"]["name"], "uid": uid}]);
        api.store(pod);
    }
}

/// What becomes of the pods of a Job.
fn plays(api: &SimulatedApi, job: &Value) -> Option<&'static str> {
    let wanted = job["metadata"]["annotations"][PLAYS].as_str()?;
    let id = ObjectId::of(job);
    let is_first = || {
        let mut jobs = api.log.iter().filter(|(one, _)| *one == id);
        let first = jobs.find_map(|(_, job)| job.as_ref());
        first.is_some_and(|first| first["metadata"]["uid"] == job["metadata"]["uid"])
    };
    match wanted {
        FAILS_ALWAYS => Some(FAILS_ALWAYS),
        FAILS_ONCE => is_first().then_some(FAILS_ALWAYS),
        IS_STUCK => Some(IS_STUCK),
        _ => None,
    }
}
