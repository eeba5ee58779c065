use crds::meta::is_rebuilding;
use serde_json::{Value, json};

use super::*;
use crate::{
    Kinds,
    construct_workload::{KeysToCopy, WorkloadPriority, construct_workload},
    dispatch::remote_objects::{RemoteIdentity, remote_job, remote_workload},
    equivalence::same_work,
    pods::group::{RoleComparison, compose, group_workload},
    start::admitted_infos::{AssignedFlavors, FlavorsByName, infos_of_admission},
};

fn template() -> Value {
    let container = json!({
        "name": "c", "image": "i", "resources": { "requests": { "cpu": "1" } },
    });
    json!({ "metadata": { "labels": { "app": "x" } }, "spec": {
        "nodeSelector": { "disk": "fast" }, "tolerations": [{ "key": "own", "operator": "Exists" }],
        "restartPolicy": "Never", "containers": [container],
    } })
}

fn decode(framework: &str, name: &str, spec: &Value) -> JobObject {
    let kind = Kinds::built_in().of_framework(framework).expect("it is built in");
    let object = json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": "old",
            "labels": { "kueue.x-k8s.io/queue-name": "lq", "team": "ml" },
            "annotations": { "note": "n" },
        },
        "spec": spec,
    });
    kind.decode(object).expect("it decodes")
}

/// Jobs of a kind each, as their users have made them.
fn samples() -> Vec<JobObject> {
    let by = "kueue.x-k8s.io/multikueue";
    let job = json!({ "suspend": true, "managedBy": by, "parallelism": 2, "template": template() });
    let replicated = json!({ "name": "a", "replicas": 2, "template": { "spec": {
        "parallelism": 1, "template": template(),
    } } });
    let set = json!({ "suspend": true, "managedBy": by, "replicatedJobs": [replicated] });
    let ray = json!({
        "suspend": true, "managedBy": by, "headGroupSpec": {
            "rayStartParams": {}, "template": template(),
        },
        "workerGroupSpecs": [{
            "groupName": "w", "replicas": 2, "minReplicas": 2, "maxReplicas": 2,
            "rayStartParams": {}, "template": template(),
        }],
    });
    let wrapped = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "j" },
        "spec": { "parallelism": 2, "template": template() } });
    let wrapper = json!({ "suspend": true, "managedBy": by, "components": [{
        "podSets": [{ "replicas": 2, "path": "template.spec.template" }], "template": wrapped,
    }] });
    vec![
        decode("batch/job", "train", &job),
        decode("jobset.x-k8s.io/jobset", "set", &set),
        decode("ray.io/raycluster", "ray", &ray),
        decode("workload.codeflare.dev/appwrapper", "wrapper", &wrapper),
    ]
}

fn member(name: &str) -> JobObject {
    let mut spec = template()["spec"].clone();
    spec["schedulingGates"] = json!([{ "name": "kueue.x-k8s.io/admission" }]);
    let mut pod = decode("pod", name, &spec);
    let metadata = pod.metadata_mut();
    let labels = metadata.labels.get_or_insert_default();
    for (key, value) in
        [("kueue.x-k8s.io/managed", "true"), ("kueue.x-k8s.io/pod-group-name", "group")]
    {
        labels.insert(key.to_owned(), value.to_owned());
    }
    let annotations = metadata.annotations.get_or_insert_default();
    for (key, value) in
        [("kueue.x-k8s.io/pod-group-total-count", "2"), ("kueue.x-k8s.io/role-hash", "r")]
    {
        annotations.insert(key.to_owned(), value.to_owned());
    }
    metadata.finalizers = Some(vec![MANAGED.to_owned()]);
    pod
}

fn admitted(mut workload: Workload) -> Workload {
    workload.metadata.uid = Some("w-old".to_owned());
    workload.metadata.resource_version = Some("7".to_owned());
    workload.metadata.annotations.get_or_insert_default().insert(EPOCH.to_owned(), "3".to_owned());
    let assignments: Vec<Value> = workload
        .spec
        .pod_sets
        .iter()
        .map(|set| json!({ "name": set.name, "count": set.count, "flavors": { "cpu": "x" } }))
        .collect();
    let admission = json!({ "clusterQueue": "cq", "podSetAssignments": assignments });
    workload.status.admission = serde_json::from_value(admission).expect("an admission");
    workload
}

/// The clone of a Workload, and its job as it runs on the worker.
fn on_worker(jobs: &[JobObject], workload: &Workload) -> (Workload, Vec<JobObject>) {
    let gates = JobGates::default();
    let identity =
        RemoteIdentity { origin: "hub", epoch: 3, incarnation: 5, term: 6, lease: Some("1/6") };
    let flavor = json!({ "nodeLabels": { "zone": "a" }, "tolerations": [{ "key": "t" }] });
    let flavors: FlavorsByName =
        [("x".to_owned(), serde_json::from_value(flavor).expect("a flavor"))].into();
    let mut clone = remote_workload(workload, &flavors, identity).expect("a clone");
    clone.metadata.uid = Some("clone".to_owned());
    clone.status.admission = workload.status.admission.clone();
    let infos = infos_of_admission(&clone, AssignedFlavors::Carried, gates).expect("it starts");
    let started = jobs.iter().map(|job| {
        let mut copy = remote_job(job, workload, identity, gates);
        copy.run_with_pod_sets_info(&infos, gates).expect("it starts");
        copy.metadata_mut().uid = Some("copy".to_owned());
        copy
    });
    let started = started.collect();
    (clone, started)
}

fn priority() -> WorkloadPriority {
    WorkloadPriority { value: 5, class: None }
}

#[test]
fn a_job_is_rebuilt_as_it_was_made() {
    let gates = JobGates::default();
    for before in samples() {
        let made = construct_workload(&before, priority(), &KeysToCopy::default(), gates);
        let (clone, copies) = on_worker(std::slice::from_ref(&before), &admitted(made.clone()));
        assert!(!copies[0].spec_suspended(), "it runs on the worker");
        let mut after = original_job(&copies[0], &clone, gates).expect("it is rebuilt");
        assert!(is_rebuilding(after.metadata()));
        after.metadata_mut().annotations.get_or_insert_default().remove(REBUILD);
        let mut wanted = before.to_create();
        wanted["metadata"]["uid"].take();
        let mut got = after.to_create();
        got["metadata"]["uid"].take();
        assert_eq!(got, wanted);

        after.metadata_mut().uid = Some("new".to_owned());
        let workload = original_workload(&clone, std::slice::from_ref(&after));
        assert_eq!(workload.spec, made.spec);
        assert!(same_work(&after, &workload, None, gates));
        let owner = &workload.metadata.owner_references.as_ref().expect("an owner")[0];
        assert_eq!((owner.uid.as_str(), owner.controller), ("new", Some(true)));
        let expected = json!({
            "labels": { "kueue.x-k8s.io/job-uid": "new" },
            "annotations": { "sluice.dev/epoch": "3", "sluice.dev/rebuild": "clone" },
        });
        let metadata = &workload.metadata;
        let shown = json!({ "labels": metadata.labels, "annotations": metadata.annotations });
        assert_eq!(shown, expected);
        assert_eq!(workload.spec.pod_sets, clone.spec.pod_sets);
        assert_eq!(workload.spec.queue_name, clone.spec.queue_name);
    }
}

#[test]
fn members_of_a_group_wait_again_and_lose_what_the_worker_gave_them() {
    let gates = JobGates::default();
    let before: Vec<JobObject> = ["p-0", "p-1"].into_iter().map(member).collect();
    let pods: Vec<&Pod> = before.iter().filter_map(JobObject::as_pod).collect();
    let composition = compose("group", &pods, RoleComparison::NONE, gates).expect("it is complete");
    let made = group_workload("group", &composition, priority(), &KeysToCopy::default(), gates);
    let (clone, mut copies) = on_worker(&before, &admitted(made.expect("a Workload")));
    for copy in &mut copies {
        let JobObject::Pod(pod) = copy else { panic!("a pod") };
        let mut spec = json!(pod.spec);
        spec["nodeName"] = json!("node-1");
        spec["priority"] = json!(0);
        spec["volumes"] = json!([{ "name": "kube-api-access-x7k2p" }]);
        spec["containers"][0]["volumeMounts"] = json!([{ "name": "kube-api-access-x7k2p" }]);
        let defaulted = json!({ "key": "node.kubernetes.io/not-ready", "operator": "Exists" });
        spec["tolerations"].as_array_mut().expect("a list").push(defaulted);
        pod.spec = serde_json::from_value(spec).expect("a spec");
    }
    for (before, copy) in before.iter().zip(&copies) {
        let mut after = original_job(copy, &clone, gates).expect("it is rebuilt");
        after.metadata_mut().annotations.get_or_insert_default().remove(REBUILD);
        let (mut got, mut wanted) = (after.to_create(), before.to_create());
        got["metadata"]["uid"].take();
        wanted["metadata"]["uid"].take();
        assert_eq!(got, wanted);
    }
    let workload = original_workload(&clone, &before);
    let owners = workload.metadata.owner_references.expect("owners");
    let named: Vec<_> = owners.iter().map(|one| (one.name.as_str(), one.controller)).collect();
    assert_eq!(named, [("p-0", None), ("p-1", None)]);
}
