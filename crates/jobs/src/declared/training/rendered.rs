//! The replicated Jobs that the operator renders from a runtime, as far as Workloads have them. What the operator adds to containers
//! later, like the variables of a framework, is in no Workload.

use serde_json::{Value, json};

use super::{TrainingSpec, strategic_merge};
use crate::pointer::Pointer;

/// Label of a replicated Job with its part in the training.
const STEP: &str = "trainer.kubeflow.org/trainjob-ancestor-step";

/// The part of the Job that trains.
const TRAINER: &str = "trainer";

/// Names of initializers: their part, their container, and their field in the job.
const INITIALIZERS: [(&str, &str); 2] =
    [("dataset-initializer", "dataset"), ("model-initializer", "model")];

/// The container that trains, and the name of the Job with further nodes of MPI.
const NODE: &str = "node";

/// The container that launches MPI.
const LAUNCHER: &str = "launcher";

/// The variable of an initializer with the place of its data.
const STORAGE_URI: &str = "STORAGE_URI";

/// The label by which a plugin of the scheduler starts pods together.
const POD_GROUP: &str = "scheduling.x-k8s.io/pod-group";

/// A replicated Job.
pub(super) struct RenderedJob {
    pub(super) name: String,
    /// The pod template.
    pub(super) template: Value,
    pub(super) replicas: i32,
    pub(super) pods_per_replica: i32,
}

/// The replicated Jobs of a job with this runtime.
pub(super) fn jobs(
    spec: &TrainingSpec,
    object: &Value,
    job: &str,
    runtime: &Value,
) -> Vec<RenderedJob> {
    let training = spec.job.get(object).unwrap_or(&Value::Null);
    let of_runtime = runtime["spec"]["template"]["spec"]["replicatedJobs"].as_array();
    let mut jobs: Vec<Value> = of_runtime.cloned().unwrap_or_default();
    for patch in spec.patches_of_others(object) {
        apply(&mut jobs, patch);
    }
    let policy = &runtime["spec"]["mlPolicy"];
    jobs.iter().map(|one| rendered(one, training, job, runtime, policy)).collect()
}

/// Patches the replicated Jobs that a patch names.
fn apply(jobs: &mut [Value], patch: &Value) {
    let changes = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"].as_array();
    for change in changes.into_iter().flatten().filter(|change| change["template"].is_object()) {
        let objects = jobs.iter_mut().filter(|job| job.is_object());
        let named = objects.filter(|job| job["name"] == change["name"]);
        named.for_each(|job| strategic_merge::merge(&mut job["template"], &change["template"]));
    }
}

fn rendered(
    replicated: &Value,
    training: &Value,
    job: &str,
    runtime: &Value,
    policy: &Value,
) -> RenderedJob {
    let name = replicated["name"].as_str().unwrap_or_default().to_owned();
    let step = replicated["template"]["metadata"]["labels"][STEP].as_str().map(str::to_owned);
    let step = step.as_deref();
    let pods_per_replica = pods(replicated, &name, step, training, policy);
    // The operator makes one Job of each part, whatever the runtime says.
    let is_part = step == Some(TRAINER) || INITIALIZERS.iter().any(|(part, _)| step == Some(part));
    let replicas = if is_part { 1 } else { number(&replicated["replicas"]).unwrap_or(1).max(0) };
    let mut template = replicated["template"]["spec"]["template"].clone();
    for (part, field) in INITIALIZERS.into_iter().filter(|(part, _)| step == Some(part)) {
        containers(&mut template, &[part], |container| {
            initialize(container, &training["initializer"][field]);
        });
    }
    if step == Some(TRAINER) && training["trainer"].is_object() {
        let names: &[&str] = if launches_as_node(policy) { &[NODE, LAUNCHER] } else { &[NODE] };
        containers(&mut template, names, |container| train(container, &training["trainer"]));
    }
    if runtime["spec"]["podGroupPolicy"]["coscheduling"].is_object() {
        Pointer::of(&["metadata", "labels", POD_GROUP]).set(&mut template, json!(job));
    }
    RenderedJob { name, template, replicas, pods_per_replica }
}

/// Pods of one replica: parallelism and completions are the same number.
fn pods(
    replicated: &Value,
    name: &str,
    step: Option<&str>,
    training: &Value,
    policy: &Value,
) -> i32 {
    let of_job = number(&replicated["template"]["spec"]["parallelism"]).unwrap_or(1);
    let of_runtime = match number(&policy["numNodes"]) {
        _ if step != Some(TRAINER) || policy.is_null() => of_job,
        nodes => nodes.unwrap_or(1),
    };
    let nodes = number(&training["trainer"]["numNodes"]);
    let asked = match nodes {
        // One of the nodes may be the pod that launches.
        Some(nodes) if policy["mpi"].is_object() => (name == NODE)
            .then_some(if launches_as_node(policy) { (nodes - 1).max(1) } else { nodes }),
        Some(nodes) => (step == Some(TRAINER)).then_some(nodes),
        None => None,
    };
    asked.unwrap_or(of_runtime.max(1))
}

fn launches_as_node(policy: &Value) -> bool {
    policy["mpi"]["runLauncherAsNode"] == true
}

fn number(value: &Value) -> Option<i32> {
    i32::try_from(value.as_i64()?).ok()
}

fn containers(template: &mut Value, names: &[&str], mut change: impl FnMut(&mut Value)) {
    let containers = template.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        if container["name"].as_str().is_some_and(|name| names.contains(&name)) {
            change(container);
        }
    }
}

fn initialize(container: &mut Value, initializer: &Value) {
    if !initializer["storageUri"].is_null() {
        let place = json!({ "name": STORAGE_URI, "value": initializer["storageUri"] });
        set_variables(container, std::slice::from_ref(&place));
    }
    set_variables(container, initializer["env"].as_array().map(Vec::as_slice).unwrap_or_default());
    let secret = &initializer["secretRef"]["name"];
    if !secret.is_null() {
        let source = json!({ "secretRef": { "name": secret } });
        push(container, "envFrom", source);
    }
}

fn train(container: &mut Value, trainer: &Value) {
    for field in ["image", "command", "args"] {
        if !trainer[field].is_null() {
            container[field] = trainer[field].clone();
        }
    }
    // Each resource by itself: those of the runtime stay.
    for amounts in ["limits", "requests"] {
        let asked = trainer["resourcesPerNode"][amounts].as_object();
        for (resource, amount) in asked.into_iter().flatten() {
            let at = Pointer::of(&["resources", amounts, resource]);
            at.set(container, amount.clone());
        }
    }
    set_variables(container, trainer["env"].as_array().map(Vec::as_slice).unwrap_or_default());
}

/// Sets variables by name; new ones come last.
fn set_variables(container: &mut Value, variables: &[Value]) {
    for variable in variables {
        let listed = container.get_mut("env").and_then(Value::as_array_mut);
        let same =
            listed.and_then(|all| all.iter_mut().find(|one| one["name"] == variable["name"]));
        match same {
            Some(one) => *one = variable.clone(),
            None => push(container, "env", variable.clone()),
        }
    }
}

fn push(container: &mut Value, list: &str, element: Value) {
    match container.get_mut(list).and_then(Value::as_array_mut) {
        Some(all) => all.push(element),
        None => container[list] = Value::Array(vec![element]),
    }
}
