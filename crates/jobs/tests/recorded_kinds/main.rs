//! What upstream's manager did with jobs of each kind, recorded step by step, compared with the functions of this crate.
//!
//! `kindsoracle/<kind>.jsonl.gz` holds the cases. Compared are the answers of webhooks to creates, the pod sets of Workloads,
//! and the objects of started and stopped jobs.

mod coverage;
mod groups;
mod kinds_recording;
mod lab_tests;
mod life_parts;
mod pods;
mod sets;
mod updates;
mod world;
mod wrong_types;

use std::{collections::BTreeMap, sync::Arc};

use crds::{
    v1beta2::{PodSet, ResourceFlavorSpec, Workload},
    validation::denial,
};
use jobs::{
    GenericJob, JobGates, JobObject, Kinds, StopWrite,
    admitted_infos::{AssignedFlavors, FlavorsByName, infos_of_admission},
    defaulting::{self, DefaultingFacts},
    generic_job::Stop,
    lookups::FoundObjects,
    pod_set_info::PodSetInfo,
    validate,
};
use kinds_recording::{RecordedCase, RecordedStep, cases};
use serde_json::{Value, json};

/// Kinds with recordings, and the cases that are compared of each.
const KINDS: &[(&str, &str, &str)] = &[
    ("job", "batch/v1", "Job"),
    ("jobset", "jobset.x-k8s.io/v1alpha2", "JobSet"),
    ("pytorchjob", "kubeflow.org/v1", "PyTorchJob"),
    ("tfjob", "kubeflow.org/v1", "TFJob"),
    ("xgboostjob", "kubeflow.org/v1", "XGBoostJob"),
    ("paddlejob", "kubeflow.org/v1", "PaddleJob"),
    ("jaxjob", "kubeflow.org/v1", "JAXJob"),
    ("mpijob", "kubeflow.org/v2beta1", "MPIJob"),
    ("raycluster", "ray.io/v1", "RayCluster"),
    ("rayjob", "ray.io/v1", "RayJob"),
    ("rayservice", "ray.io/v1", "RayService"),
    ("appwrapper", "workload.codeflare.dev/v1beta2", "AppWrapper"),
    ("trainjob", "trainer.kubeflow.org/v1alpha1", "TrainJob"),
    ("sparkapplication", "sparkoperator.k8s.io/v1beta2", "SparkApplication"),
];

/// The kind of sets, of which creates are compared as well; [`sets`] has the rest.
const SETS: (&str, &str, &str) =
    ("leaderworkerset", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet");

/// Kinds with marked pods, of which creates are compared as well.
const MARK_PODS: [(&str, &str, &str); 2] =
    [("deployment", "apps/v1", "Deployment"), ("statefulset", "apps/v1", "StatefulSet")];

/// Refusals that are a bare parse error upstream, without a field path. Ours name the field.
const BARE_PARSE_ERRORS: &[&str] = &[
    "strconv.ParseBool",
    "strconv.ParseInt",
    "topology constraints must contain",
    "failed to parse multi-layer topology constraints",
];

/// Creates with two errors that upstream lists in another order.
const OTHER_ORDER: &[&str] = &[
    "MPIJob/create/queue-and-max-exec-bad",
    "RayCluster/create/topology-group-number",
    "RayJob/create/topology-group-number",
];

fn decode(api_version: &str, kind: &str, object: &Value) -> JobObject {
    let kind = Kinds::built_in().find(api_version, kind).expect("a built-in kind");
    kind.decode(object.clone()).expect("a job decodes").with_objects(&runtimes())
}

/// A request with the defaults of the API, which come before the webhooks.
fn stored(body: &Value) -> Value {
    let mut body = body.clone();
    if body["kind"] == "TrainJob" && body["spec"]["managedBy"].is_null() {
        body["spec"]["managedBy"] = json!("trainer.kubeflow.org/trainjob-controller");
    }
    body
}

/// The runtime that the recording knows.
fn runtime() -> Value {
    let container = |image: &str, cpu: &str| json!({ "name": "node", "image": image, "resources": { "requests": { "cpu": cpu, "memory": "1Gi" } } });
    let job = |name: &str, step: Value, container: Value| {
        json!({ "name": name, "template": {
            "metadata": step,
            "spec": { "template": { "spec": { "restartPolicy": "Never", "containers": [container] } } },
        } })
    };
    let trainer = json!({ "labels": { "trainer.kubeflow.org/trainjob-ancestor-step": "trainer" } });
    json!({ "metadata": { "name": "plain-runtime" }, "spec": {
        "mlPolicy": { "numNodes": 1 },
        "template": { "spec": { "replicatedJobs": [
            job("init", json!({}), container("example.com/train:1", "500m")),
            job("node", trainer, container("example.com/train:1", "1")),
        ] } },
    } })
}

fn runtimes() -> FoundObjects {
    found(runtime())
}

/// A runtime, as a watch has observed it.
fn found(runtime: Value) -> FoundObjects {
    let mut found = FoundObjects::default();
    let rule = &Kinds::built_in()
        .of_framework("trainer.kubeflow.org/trainjob")
        .expect("TrainJob")
        .lookups()[0];
    let job = json!({ "spec": { "runtimeRef": { "name": "plain-runtime" } } });
    let needed = rule.needed(&job, None).expect("a runtime");
    found.observe(needed, serde_json::from_value(runtime).ok().map(Arc::new));
    found
}

/// The gates of the recording.
fn gates() -> JobGates {
    JobGates::default()
}

fn with_defaults(job: &JobObject, object: &Value, namespace: &str, gates: JobGates) -> Value {
    let facts = DefaultingFacts {
        default_local_queue: namespace == "dflt",
        namespace_managed: true,
        manage_without_queue_name: gates.manage_without_queue_name,
        ..DefaultingFacts::default()
    };
    let steps = job.defaults_by(facts, gates);
    let patch = Value::Array(steps.iter().map(defaulting::PatchAdd::to_json).collect());
    let patch: json_patch::Patch = serde_json::from_value(patch).expect("a JSON patch");
    let mut object = object.clone();
    json_patch::patch(&mut object, &patch).expect("the patch applies");
    object
}

/// What a webhook sets: labels of Kueue, the switch, and annotations and scheduling gates of templates.
fn set_by_webhook(job: &JobObject) -> Value {
    let labels = job.metadata().labels.clone().unwrap_or_default().into_iter();
    let labels: BTreeMap<String, String> =
        labels.filter(|(key, _)| key.starts_with("kueue.x-k8s.io/")).collect();
    let templates = job.templates().into_iter().map(|template| json!(template.annotations));
    let templates: Vec<Value> =
        templates.map(|all| if all == json!({}) { Value::Null } else { all }).collect();
    let object = job.without_status();
    let marked = job.kind().pods().and_then(|pods| pods.template.get(&object));
    json!({
        "metadata of marked pods": marked.map(|template| &template["metadata"]),
        "labels": labels, "suspended": job.spec_suspended(), "managedBy": job.managed_by(),
        "annotations of templates": templates,
        "scheduling gates": job.pod_sets(gates()).iter().map(gates_of_pods).collect::<Vec<_>>(),
    })
}

fn gates_of_pods(set: &PodSet) -> Value {
    json!(set.template)["spec"]["schedulingGates"].clone()
}

/// The errors of a refusal, in an order of their own.
fn errors_of(refusal: &str) -> Vec<&str> {
    let list = refusal.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let list = list.unwrap_or(refusal);
    let starts = list.match_indices(", ").map(|(at, comma)| at + comma.len());
    let is_error =
        |at: &usize| ["metadata.", "spec."].iter().any(|top| list[*at..].starts_with(top));
    let ends: Vec<usize> = starts.filter(is_error).chain([list.len()]).collect();
    let mut from = 0;
    let errors = ends
        .into_iter()
        .map(|to| list[std::mem::replace(&mut from, to)..to].trim_end_matches(", "));
    let mut errors: Vec<&str> = errors.collect();
    errors.sort_unstable();
    errors
}

fn compare_create(
    case: &RecordedCase,
    step: &RecordedStep<'_>,
    ids: (&str, &str),
    gates: JobGates,
) -> Option<String> {
    let body = &stored(step.body()?);
    let job = decode(ids.0, ids.1, body);
    let defaulted = decode(ids.0, ids.1, &with_defaults(&job, body, case.namespace(), gates));
    let ours = defaulted.refusal_without(&runtimes());
    let ours = ours.or_else(|| denial(&validate::create(&defaulted, gates)));
    match step.refusal() {
        Some(theirs) if BARE_PARSE_ERRORS.iter().any(|text| theirs.starts_with(text)) => {
            ours.is_none().then(|| format!("refused upstream: {theirs}"))
        }
        Some(theirs) if OTHER_ORDER.contains(&case.name()) => {
            let ours = ours.unwrap_or_default();
            (ours == theirs || errors_of(&ours) != errors_of(theirs))
                .then(|| format!("\n  theirs {theirs}\n  ours   {ours}"))
        }
        Some(theirs) => (ours.as_deref() != Some(theirs))
            .then(|| format!("\n  theirs {theirs}\n  ours   {}", ours.unwrap_or_default())),
        None => {
            let theirs = set_by_webhook(&decode(ids.0, ids.1, step.answered_object()?));
            let ours = (ours, set_by_webhook(&defaulted));
            (ours != (None, theirs.clone()))
                .then(|| format!("\n  theirs {theirs:?}\n  ours {ours:?}"))
        }
    }
}

#[test]
fn webhooks_answer_creates_as_upstream() {
    let (mut n_compared, mut wrong) = (0, Vec::new());
    for (file, api_version, kind) in KINDS.iter().chain([&SETS]).chain(&MARK_PODS) {
        for case in cases(file).iter().filter(|case| case.name().contains("/create/")) {
            for step in &case.steps() {
                n_compared += 1;
                let difference = compare_create(case, step, (api_version, kind), gates());
                wrong.extend(difference.map(|text| format!("{}: {text}", case.name())));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "\n{}", wrong.join("\n"));
    assert_eq!(n_compared, 781, "every recorded create is compared");
}

#[test]
fn webhooks_answer_creates_as_upstream_where_all_jobs_are_managed() {
    let gates = JobGates { manage_without_queue_name: true, ..gates() };
    let (mut n_compared, mut wrong) = (0, Vec::new());
    for case in cases("manage-all").iter().filter(|case| case.name().contains("/create/")) {
        let name = case.name().split('/').next().unwrap_or_default();
        let kind = KINDS.iter().find(|(_, _, kind)| *kind == name);
        let Some((_, api_version, kind)) = kind else { continue };
        for step in &case.steps() {
            n_compared += 1;
            let difference = compare_create(case, step, (api_version, kind), gates);
            wrong.extend(difference.map(|text| format!("{}: {text}", case.name())));
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "\n{}", wrong.join("\n"));
    assert_eq!(n_compared, 96, "every recorded create is compared");
}

fn flavors() -> FlavorsByName {
    let flavor = |spec: Value| -> ResourceFlavorSpec {
        serde_json::from_value(spec).expect("a flavor decodes")
    };
    let toleration = json!([{
        "key": "oracle.example/dedicated", "operator": "Equal", "value": "yes", "effect": "NoSchedule",
    }]);
    [
        ("plain".to_owned(), flavor(json!({ "nodeLabels": { "oracle.example/pool": "plain" } }))),
        ("tas".to_owned(), flavor(json!({ "nodeLabels": { "oracle.example/pool": "plain" } }))),
        (
            "tainted".to_owned(),
            flavor(json!({
                "nodeLabels": { "oracle.example/pool": "tainted" }, "tolerations": toleration,
            })),
        ),
    ]
    .into()
}

/// A recorded Workload. Of its status only the admission is compared; other fields may vary.
fn workload(recorded: &Value) -> Workload {
    let mut object = recorded.clone();
    object["status"] = json!({ "admission": recorded["status"]["admission"] });
    serde_json::from_value(object).expect("a Workload decodes")
}

fn has_varied(value: &Value) -> bool {
    value.to_string().contains("<varies>")
}

/// Whether upstream found that the prebuilt Workload is not that of the job.
fn is_out_of_sync(workload: &Value) -> bool {
    let conditions = workload["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["reason"] == "OutOfSync")
}

/// What was compared, and what differs.
#[derive(Default)]
struct Comparison {
    n_pod_sets: usize,
    n_starts: usize,
    n_stops: usize,
    wrong: Vec<String>,
}

impl Comparison {
    fn check(&mut self, what: &str, ours: &Value, theirs: &Value) {
        if ours != theirs {
            self.wrong.push(format!("{what}:\n  theirs {theirs}\n  ours   {ours}"));
        }
    }

    fn step(
        &mut self,
        what: &str,
        before: Option<&Value>,
        now: (&Value, &Value),
        ids: (&str, &str),
    ) {
        let job = decode(ids.0, ids.1, now.0);
        let workload = workload(now.1);
        let before = before.map(|object| decode(ids.0, ids.1, object));
        if is_out_of_sync(now.1) {
            let theirs = json!(workload.spec.pod_sets);
            if normal(json!(job.pod_sets(gates()))) == normal(theirs) {
                self.wrong.push(format!("{what}: the pod sets are in sync"));
            }
        } else if job.is_suspended() {
            self.n_pod_sets += 1;
            let ours = json!(job.pod_sets(gates()));
            self.check(
                &format!("{what}: pod sets"),
                &normal(ours),
                &normal(json!(workload.spec.pod_sets)),
            );
        }
        let Some(before) = before else { return };
        if before.is_suspended() && !job.spec_suspended() {
            self.n_starts += 1;
            let infos = infos_of_admission(&workload, AssignedFlavors::Own(&flavors()), gates())
                .expect("it is admitted");
            let mut started = before;
            started.run_with_pod_sets_info(&infos, gates()).expect("it starts");
            self.check(
                &format!("{what}: start"),
                &normal(started.without_status()),
                &normal(job.without_status()),
            );
        } else if !before.spec_suspended() && job.is_suspended() {
            self.n_stops += 1;
            let infos: Vec<PodSetInfo> =
                workload.spec.pod_sets.iter().map(PodSetInfo::of).collect();
            let stopped = stop(before, &infos);
            self.check(
                &format!("{what}: stop"),
                &normal(stopped.without_status()),
                &normal(job.without_status()),
            );
        }
    }
}

/// The job after every write of its stop; its pods end at once.
fn stop(mut job: JobObject, infos: &[PodSetInfo]) -> JobObject {
    let cause = Stop { infos, ..Stop::default() };
    while let Some(write) = job.next_stop_write(&cause, gates()) {
        let (StopWrite::Object(after) | StopWrite::Status(after) | StopWrite::Delete(after)) =
            write;
        job = after.with_idle_status().unwrap_or(*after);
    }
    job
}

/// Empty metadata of a template says the same as none, and so does an empty struct that upstream's round trip adds. A switch that
/// is off says the same as none, but an operator needs to see it, so that it is written here.
fn normal(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.retain(|key, value| {
                let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty);
                let may_be_empty = ["metadata", "scaleStrategy"].contains(&key.as_str());
                let is_unset = key == "podSets" && value.as_array().is_some_and(Vec::is_empty);
                (!may_be_empty || !is_empty) && !is_unset && (key != "suspend" || *value != false)
            });
            for field in fields.values_mut() {
                *field = normal(std::mem::take(field));
            }
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| *item = normal(std::mem::take(item)));
        }
        _ => {}
    }
    value
}

#[test]
fn pod_sets_starts_and_stops_are_those_of_upstream() {
    let mut comparison = Comparison::default();
    for (file, api_version, kind) in KINDS {
        for case in cases(file).iter().filter(|case| case.name().contains("/life/")) {
            let (mut before, steps) = (None, case.steps());
            for step in steps {
                // A request that writes the job itself answers with what it was before the manager acted.
                if step.writes(kind) {
                    before = step.answered_object().cloned();
                }
                let (jobs, workloads) = (step.changed(kind), step.changed("Workload"));
                let ([job], [workload]) = (jobs.as_slice(), workloads.as_slice()) else {
                    continue;
                };
                // The two recordings went different ways.
                if [&job["spec"], &workload["spec"]].iter().any(|spec| has_varied(spec)) {
                    before = None;
                    continue;
                }
                let what = format!("{} step {}", case.name(), step.number());
                comparison.step(&what, before.as_ref(), (job, workload), (api_version, kind));
                before = Some((*job).clone());
            }
        }
    }
    let Comparison { n_pod_sets, n_starts, n_stops, wrong } = comparison;
    assert_eq!(wrong, Vec::<String>::new(), "\n{}", wrong.join("\n"));
    assert_eq!((n_pod_sets, n_starts, n_stops), (207, 223, 59), "every recorded trace is compared");
}
