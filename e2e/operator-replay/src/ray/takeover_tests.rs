//! Objects of the official operator of Ray that ours takes over as they are.

use std::collections::{BTreeMap, BTreeSet};

use ray::{settings::OperatorSettings, step::RayStep};
use serde_json::{Value, json};

use super::{
    profile::settings,
    tests::with_plain_names,
    world::{RayWorld, id},
};
use crate::{OperatorOutcome, replay, tests::cases, verdict::take_recorded};

/// What ours does where the official operator is at work itself, or would do the same.
struct AtWork {
    case: &'static str,
    step: &'static str,
    /// How the one harm begins.
    harm: &'static str,
    why: &'static str,
}

const fn at_work([case, step, harm]: [&'static str; 3], why: &'static str) -> AtWork {
    AtWork { case, step, harm, why }
}

const ENDED: &str = "a pod that ended is deleted";
const REFUSED: &str = "a refused pod is tried again";

const AT_WORK: &[AtWork] = &[
    at_work(["raycluster/autoscaler-v2", "head container ends", "deletes Pod/c1-head-r1q"], ENDED),
    at_work(
        [
            "raycluster/head-container-ended-never",
            "container terminated",
            "deletes Pod/c1-head-r1q",
        ],
        ENDED,
    ),
    at_work(
        [
            "raycluster/worker-container-ended-never",
            "container terminated",
            "deletes Pod/c1-small-worker-r2q",
        ],
        ENDED,
    ),
    at_work(["raycluster/group-name-64", "create", "creates Pod/c1-ggggggggggggggg"], REFUSED),
    at_work(
        ["raycluster/group-name-underscore", "create", "creates Pod/c1-small_group-worker-"],
        REFUSED,
    ),
    at_work(["raycluster/quota-refuses-head", "create", "creates Pod/c1-head-"], REFUSED),
    at_work(["raycluster/quota-refuses-head", "create", "creates Pod/c1-small-worker-"], REFUSED),
    at_work(
        [
            "raycluster/ingress",
            "drift",
            r#"changes Ingress/c1-head-ingress: {"ingressClassName":"nginx","rules":"#,
        ],
        "an Ingress that drifted is corrected",
    ),
    at_work(
        [
            "rayservice/upgrade-none",
            "image",
            r#"changes RayCluster/rs-r1q: {"headGroupSpec":{"template":{"spec":{"containers":[{"image":"registry.example/ray/ray:2.53.0","#,
        ],
        "a cluster of another spec and version is changed in place",
    ),
];

/// Takes the harms away that are expected of the cases of a file, each once. Returns those that are not there.
fn take_expected(file: &str, harms: &mut Vec<String>) -> Vec<String> {
    let mut absent = Vec::new();
    for AtWork { case, step, harm, why } in AT_WORK.iter().filter(|it| is_of(file, it.case)) {
        let expected = format!("\"{case}\" ({step}): {harm}");
        match harms.iter().position(|found| found.starts_with(&expected)) {
            Some(at) => drop(harms.remove(at)),
            None => absent.push(format!("{expected}: {why}")),
        }
    }
    absent
}

fn is_of(file: &str, case: &str) -> bool {
    case.split_once('/').is_some_and(|(of, _)| of == file)
}

/// A stored object, as the official operator left it.
pub(crate) fn stored(object: &Value, now: &str, version: usize) -> Value {
    let text = object.to_string().replace("<time>", now);
    let mut object: Value = serde_json::from_str(&text).expect("an object");
    let uid = format!("<uid of {}>", id(&object));
    let metadata = &mut object["metadata"];
    metadata["namespace"] = json!("<ns>");
    metadata["uid"] = json!(uid);
    metadata["resourceVersion"] = json!(version.to_string());
    metadata["creationTimestamp"] = json!(now);
    object
}

/// A world that begins after a step of a case: ours sees it for the first time.
fn world_after(case: &Value, objects: &BTreeMap<String, Value>, dashboards: &[Value]) -> RayWorld {
    let mut settings = settings(case["profile"].as_str().unwrap_or_default());
    // The replay bears the name of the official operator, of which the hashes are others.
    settings.version = OperatorSettings::default().version;
    let mut world = RayWorld::new(settings);
    let now = world.now.to_string();
    for (version, (id, object)) in objects.iter().enumerate() {
        world.objects.insert(id.clone(), stored(object, &now, version));
        if let Some(job) = object["status"]["jobId"].as_str() {
            world.head.know(job);
        }
    }
    dashboards.iter().for_each(|set| world.head.set(set));
    world.begin();
    world
}

/// What must not be done to what is there.
fn harm(order: &RayStep) -> Option<String> {
    match order {
        RayStep::Create(object) | RayStep::CreateAuthority(object) => {
            Some(format!("creates {}", id(object)))
        }
        RayStep::Delete(target) => Some(format!("deletes {}/{}", target.kind, target.name)),
        RayStep::Patch { target, patch } if !patch["spec"].is_null() => {
            Some(format!("changes {}/{}: {}", target.kind, target.name, patch["spec"]))
        }
        _ => None,
    }
}

/// What a look at each settled step of a case does, and the number of steps.
fn harms(case: &Value) -> (Vec<String>, usize) {
    let (mut objects, mut dashboards, mut n_steps) = (BTreeMap::new(), Vec::new(), 0);
    let (mut found, mut jobs, mut listed) = (Vec::new(), BTreeSet::new(), Vec::new());
    for step in case["steps"].as_array().into_iter().flatten() {
        for operation in step["do"].as_array().into_iter().flatten() {
            if let Some(jobs) = operation["set"]["jobs"].as_array() {
                listed.clone_from(jobs);
            }
            dashboards.extend(Some(operation["set"].clone()).filter(Value::is_object));
        }
        take_recorded(&mut objects, step);
        let asked =
            objects.values().filter_map(|object: &Value| object["status"]["jobId"].as_str());
        jobs.extend(asked.map(str::to_owned));
        let mut world = world_after(case, &objects, &dashboards);
        if let Some(job) = listed.get(jobs.len().saturating_sub(1)) {
            // Heads of this world are asked for the last job first.
            world.head.set(&json!({"jobs": null, "job": job}));
        }
        for _ in 0..3 {
            world.look();
        }
        let harms: BTreeSet<String> = world.orders.iter().filter_map(harm).collect();
        let what = step["step"].as_str().unwrap_or_default();
        found.extend(harms.into_iter().map(|harm| format!("{} ({what}): {harm}", case["name"])));
        n_steps += 1;
    }
    (found, n_steps)
}

/// The steps at which the takeover of a file's cases is compared: those of cases that ours treats alike.
fn check(file: &str, n_least: usize) {
    let (mut wrong, mut n_steps) = (Vec::new(), 0);
    for case in cases("ray", file) {
        if replay(&case).outcome != OperatorOutcome::Alike {
            continue;
        }
        let (found, n) = harms(&with_plain_names(&case));
        wrong.extend(found);
        n_steps += n;
    }
    assert!(n_steps >= n_least, "{n_steps} steps");
    assert_eq!(take_expected(file, &mut wrong), [""; 0], "harms that are expected");
    assert!(wrong.is_empty(), "{} harms: {}", wrong.len(), wrong.join("\n"));
}

#[test]
fn ray_clusters_are_taken_over_as_they_are() {
    check("raycluster", 250);
}

#[test]
fn ray_jobs_are_taken_over_as_they_are() {
    check("rayjob", 150);
}

#[test]
fn ray_services_are_taken_over_as_they_are() {
    check("rayservice", 100);
}

#[test]
fn a_further_harm_of_a_case_at_work_is_found() {
    let known: Vec<String> = AT_WORK
        .iter()
        .filter(|it| is_of("raycluster", it.case))
        .map(|it| format!("\"{}\" ({}): {}", it.case, it.step, it.harm))
        .collect();
    let further = [
        "\"raycluster/autoscaler-v2\" (head container ends): deletes Pod/c1-small-worker-r2q",
        "\"raycluster/quota-refuses-head\" (create): creates Pod/c1-head-second",
    ];
    let mut harms: Vec<String> = known.iter().cloned().chain(further.map(str::to_owned)).collect();
    assert_eq!(take_expected("raycluster", &mut harms), [""; 0]);
    assert_eq!(harms, further);
    assert_eq!(take_expected("raycluster", &mut harms).len(), known.len() - 1);
}
