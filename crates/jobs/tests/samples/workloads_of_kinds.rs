//! What the Workload of each built-in kind takes from its job (docs/reference/kueue.md §7.5, §7.8): time limit, priority, topology
//! requests, and the least number of pods.

use std::collections::BTreeSet;

use crds::v1beta2::Workload;
use jobs::{
    GenericJob, JobGates, JobObject, Kind, Kinds,
    construct_workload::{
        KeysToCopy, PrioritySource, WorkloadPriority, construct_workload, priority_source,
    },
};
use serde_json::{Map, Value, json};

use super::{found, samples};

/// A sample after an edit of all samples, so that the objects which a job needs are edited as well.
fn edited(kind: &Kind, edit: impl Fn(&mut Value)) -> JobObject {
    let mut samples = samples();
    samples.iter_mut().for_each(edit);
    let sample = samples.iter().find(|one| one["kind"] == kind.name()).expect("a sample");
    let job = kind.decode(sample.clone()).expect("it decodes");
    let found = found(&job, &samples);
    job.with_objects(&found)
}

fn with_workloads() -> impl Iterator<Item = Kind> {
    // Each replica of a set has a Workload of its own, which `replicas` builds.
    Kinds::built_in()
        .iter()
        .filter(|kind| kind.has_workloads() && kind.name() != "LeaderWorkerSet")
        .cloned()
        .collect::<Vec<_>>()
        .into_iter()
}

fn workload(job: &JobObject) -> Workload {
    let (priority, copied) = (WorkloadPriority::default(), KeysToCopy::default());
    construct_workload(job, priority, &copied, JobGates::default())
}

/// Visits every pod of an object: its metadata and its spec. A SparkApplication has them in one.
fn each_pod(object: &mut Value, visit: &impl Fn(&mut Map<String, Value>)) {
    match object {
        Value::Object(fields) => {
            let is_pod = fields.get("spec").is_some_and(|spec| spec.get("containers").is_some());
            if is_pod || fields.contains_key("coreRequest") {
                visit(fields);
            } else {
                fields.values_mut().for_each(|value| each_pod(value, visit));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_pod(item, visit)),
        _ => {}
    }
}

#[test]
fn every_kind_has_a_time_limit_by_its_label() {
    for kind in with_workloads() {
        for (label, seconds) in [("60", Some(60)), ("0", None), ("soon", None)] {
            let job = edited(&kind, |object| {
                object["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = json!(label);
            });
            let found = workload(&job).spec.maximum_execution_time_seconds;
            assert_eq!(found, seconds, "{} {label}", kind.name());
        }
    }
}

/// Kinds with a PriorityClass for all pods in their specification.
const OWN_PRIORITY_CLASS: [&str; 6] =
    ["JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"];

#[test]
fn a_workload_priority_class_precedes_that_of_the_kind_and_that_of_the_pods() {
    let of_pods = |object: &mut Value| {
        each_pod(object, &|pod| match pod.get_mut("spec") {
            Some(spec) => spec["priorityClassName"] = json!("of-pods"),
            None => _ = pod.insert("priorityClassName".to_owned(), json!("of-pods")),
        });
    };
    let of_kind = |object: &mut Value| {
        object["spec"]["runPolicy"]["schedulingPolicy"]["priorityClass"] = json!("of-kind");
    };
    let source = |job: &JobObject| priority_source(job, JobGates::default());
    let class = |name: &str| PrioritySource::PriorityClass(name.to_owned());
    let mut own = BTreeSet::new();
    for kind in with_workloads() {
        let name = kind.name();
        assert_eq!(source(&edited(&kind, |_| ())), PrioritySource::ClusterDefault, "{name}");
        let job = edited(&kind, of_pods);
        assert_eq!(source(&job), class("of-pods"), "{name}");
        let job = edited(&kind, |object| {
            of_pods(object);
            of_kind(object);
        });
        if source(&job) == class("of-kind") {
            own.insert(name.to_owned());
        }
        let job = edited(&kind, |object| {
            of_pods(object);
            of_kind(object);
            object["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = json!("of-workloads");
        });
        let expected = PrioritySource::WorkloadPriorityClass("of-workloads".to_owned());
        assert_eq!(source(&job), expected, "{name}");
    }
    assert_eq!(own.iter().map(String::as_str).collect::<Vec<_>>(), OWN_PRIORITY_CLASS);
}

#[test]
fn every_pod_set_requests_the_topology_of_its_template() {
    let annotated = |object: &mut Value| {
        let annotations = json!({"kueue.x-k8s.io/podset-required-topology": "rack"});
        each_pod(object, &|pod| {
            if pod.contains_key("spec") {
                let metadata = pod.entry("metadata").or_insert_with(|| json!({}));
                metadata["annotations"] = annotations.clone();
            } else {
                _ = pod.insert("annotations".to_owned(), annotations.clone());
            }
        });
    };
    for kind in with_workloads() {
        let sets = workload(&edited(&kind, annotated)).spec.pod_sets;
        // The submitter of a RayJob that gives it no template has the operator's.
        let given = sets.iter().filter(|set| set.name != "submitter");
        let required = given.map(|set| set.topology_request.as_ref()?.required.as_deref());
        let required: Vec<Option<&str>> = required.collect();
        assert!(!required.is_empty(), "{}", kind.name());
        assert!(required.iter().all(|one| *one == Some("rack")), "{} {required:?}", kind.name());
        let gates = JobGates { topology: false, ..JobGates::default() };
        let sets = edited(&kind, annotated).pod_sets(gates);
        assert!(sets.iter().all(|set| set.topology_request.is_none()), "{}", kind.name());
    }
}

#[test]
fn only_a_job_may_be_admitted_with_fewer_pods() {
    for kind in with_workloads() {
        let job = edited(&kind, |object| {
            object["metadata"]["annotations"]["kueue.x-k8s.io/job-min-parallelism"] = json!("1");
        });
        let least: Vec<Option<i32>> =
            workload(&job).spec.pod_sets.iter().map(|set| set.min_count).collect();
        let expected = (kind.name() == "Job").then_some(1);
        assert!(least.iter().all(|one| *one == expected), "{} {least:?}", kind.name());
    }
}
