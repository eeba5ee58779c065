//! The sample of each kind is one that webhooks accept and a Workload is made of.

mod status_of_kinds;
mod workloads_of_kinds;

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use crds::{names::labels::HOSTNAME, v1beta2::PodSet};
use jobs::{
    GenericJob, JobGates, JobObject, Kinds,
    construct_workload::{KeysToCopy, WorkloadPriority, construct_workload},
    defaulting::{self, DefaultingFacts},
    lookups::FoundObjects,
    pod_set_info::PodSetInfo,
    validate,
};
use serde_json::Value;

/// All documents of the samples of kinds.
fn samples() -> Vec<Value> {
    samples_in("kinds")
}

fn samples_in(folder: &str) -> Vec<Value> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/samples");
    let folder = samples.join(folder);
    let files = fs::read_dir(folder).expect("the samples").flatten().map(|file| file.path());
    let files = files.filter(|path| !path.ends_with("kustomization.yaml"));
    let documents = files.flat_map(|path| {
        let text = fs::read_to_string(&path).expect("a file");
        serde_saphyr::from_multiple::<Value>(&text).expect("YAML")
    });
    documents.collect()
}

/// What a job needs, from the samples.
fn found(job: &JobObject, samples: &[Value]) -> FoundObjects {
    let mut found = FoundObjects::default();
    for needed in job.needed_objects() {
        let object = samples.iter().find(|one| one["kind"] == needed.kind.gvk.kind.as_str());
        let object = object.cloned().expect("what it names is part of the sample");
        found.observe(needed, serde_json::from_value(object).ok().map(Arc::new));
    }
    found
}

#[test]
fn every_built_in_kind_has_a_sample_that_is_queued() {
    let gates = JobGates::default();
    let mut with_sample = BTreeSet::new();
    let samples = samples();
    for sample in &samples {
        let text = |field: &str| sample[field].as_str().unwrap_or_default();
        let Some(kind) = Kinds::built_in().find(text("apiVersion"), text("kind")) else { continue };
        with_sample.insert(kind.framework());
        let job = kind.decode(sample.clone()).expect("it decodes");
        let found = found(&job, &samples);
        let facts = DefaultingFacts { namespace_managed: true, ..DefaultingFacts::default() };
        let steps = job.defaults_by(facts, gates);
        let patch = steps.iter().map(defaulting::PatchAdd::to_json).collect();
        let patch: json_patch::Patch = serde_json::from_value(patch).expect("a JSON patch");
        let mut object = sample.clone();
        json_patch::patch(&mut object, &patch).expect("it applies");
        let job = kind.decode(object).expect("it decodes").with_objects(&found);
        let errors = validate::create(&job, gates);
        assert_eq!(errors, [], "{}", kind.name());
        assert_eq!(job.queue_name(), "team-a", "{}", kind.name());
        // A Deployment has no Workload, its pods have.
        if kind.has_workloads() {
            let (priority, copied) = (WorkloadPriority::default(), KeysToCopy::default());
            let workload = construct_workload(&job, priority, &copied, gates);
            let requests = |container: &crds::pod::Container| {
                container.resources.as_ref().is_some_and(|one| !one.requests.is_empty())
            };
            let specs = workload.spec.pod_sets.iter().filter_map(|set| set.template.spec.as_ref());
            let all = specs.flat_map(|spec| &spec.containers).all(requests);
            assert!(all && !workload.spec.pod_sets.is_empty(), "{}", kind.name());
        }
    }
    let all: BTreeSet<&str> = Kinds::built_in().iter().map(jobs::Kind::framework).collect();
    assert_eq!(with_sample, all);
}

/// Each shape of a Ray object that names a queue is one that the webhooks of Kueue take, and no other does.
#[test]
fn samples_of_ray_with_a_queue_are_accepted() {
    let gates = JobGates::default();
    let mut without_queue = Vec::new();
    for mut sample in samples_in("ray") {
        let text = |field: &str| sample[field].as_str().unwrap_or_default();
        let name = sample["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let Some(kind) = Kinds::built_in().find(text("apiVersion"), text("kind")) else {
            without_queue.push(name);
            continue;
        };
        if kind.decode(sample.clone()).expect("it decodes").queue_name().is_empty() {
            sample["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "team-a".into();
            let job = kind.decode(sample).expect("it decodes");
            // A RayJob on a cluster that is there already is not managed, with or without a queue.
            let is_refused = !validate::create(&job, gates).is_empty();
            assert!(is_refused || job.is_skipped(), "{name}: it could have a queue");
            without_queue.push(name);
            continue;
        }
        let job = kind.decode(sample.clone()).expect("it decodes");
        let facts = DefaultingFacts { namespace_managed: true, ..DefaultingFacts::default() };
        let steps = job.defaults_by(facts, gates);
        let patch = steps.iter().map(defaulting::PatchAdd::to_json).collect();
        let patch: json_patch::Patch = serde_json::from_value(patch).expect("a JSON patch");
        json_patch::patch(&mut sample, &patch).expect("it applies");
        let job = kind.decode(sample).expect("it decodes");
        assert_eq!(validate::create(&job, gates), [], "{name}");
    }
    without_queue.sort();
    assert_eq!(without_queue, ["ray-nightly", "ray-on-plain", "ray-with-rules"]);
}

/// These have a field for a node selector, and none for an affinity that is added, or their webhook refuses a changed one.
const WITHOUT_AFFINITY: [&str; 4] = ["AppWrapper", "JobSet", "SparkApplication", "TrainJob"];

#[test]
fn assigned_hosts_reach_every_pod_template_and_a_stop_removes_them() {
    starts_and_stops(&["a", "b"], is_limited, |kind| !WITHOUT_AFFINITY.contains(&kind));
}

#[test]
fn a_single_host_reaches_every_pod_template_and_a_stop_removes_it() {
    let selected = |set: &PodSet| {
        let spec = set.template.spec.as_ref().expect("a spec");
        spec.node_selector.get(HOSTNAME).is_some_and(|host| host == "a")
    };
    starts_and_stops(&["a"], selected, |_| true);
}

/// Starts a job of each kind with hosts for every pod set, which reach its templates if `carries` says so, and stops it.
fn starts_and_stops(
    hosts: &[&str],
    has_hosts: impl Fn(&PodSet) -> bool,
    carries: impl Fn(&str) -> bool,
) {
    let gates = JobGates::default();
    let samples = samples();
    for sample in &samples {
        let text = |field: &str| sample[field].as_str().unwrap_or_default();
        let Some(kind) = Kinds::built_in().find(text("apiVersion"), text("kind")) else { continue };
        if !kind.has_workloads() || kind.name() == "LeaderWorkerSet" {
            continue;
        }
        let job = kind.decode(sample.clone()).expect("it decodes");
        let mut job = job.with_objects(&found(&job, &samples));
        let before = job.pod_sets(gates);
        let original: Vec<PodSetInfo> = before.iter().map(PodSetInfo::of).collect();
        let given = before.iter().map(|set| {
            let (name, count) = (set.name.clone(), set.count.unwrap_or(1));
            let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
            PodSetInfo { name, count, hosts, ..PodSetInfo::default() }
        });
        let given: Vec<PodSetInfo> = given.collect();
        job.run_with_pod_sets_info(&given, gates).expect("it starts");
        // As the API server has it.
        let mut stored = job.without_status();
        stored["metadata"] = serde_json::json!(job.metadata());
        let stored = kind.decode(stored).expect("it decodes");
        let mut job = stored.with_objects(&found(&stored, &samples));
        let started = job.pod_sets(gates);
        assert_eq!(started.iter().all(&has_hosts), carries(kind.name()), "{}", kind.name());
        job.restore_pod_sets_info(&original, gates);
        // A pod is stopped by its deletion.
        assert!(
            kind.name() == "Pod" || !job.pod_sets(gates).iter().any(&has_hosts),
            "{}",
            kind.name()
        );
    }
}

/// Whether every term of the node affinity has the two hosts.
fn is_limited(set: &PodSet) -> bool {
    let spec = set.template.spec.as_ref().expect("a spec");
    let affinity = spec.rest.get("affinity").cloned().unwrap_or_default();
    let required = &affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = required["nodeSelectorTerms"].as_array().cloned().unwrap_or_default();
    let hosts = serde_json::json!(["a", "b"]);
    !terms.is_empty()
        && terms.iter().all(|term| {
            let all = term["matchExpressions"].as_array();
            all.and_then(|all| all.last()).is_some_and(|last| last["values"] == hosts)
        })
}
