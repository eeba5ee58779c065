use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    GenericJob, JobGates, JobObject, Kinds, StopWrite, generic_job::Stop, lookups::FoundObjects,
    start::pod_set_info::PodSetInfo,
};

fn job(spec: &Value) -> JobObject {
    let kind = Kinds::built_in().of_framework("trainer.kubeflow.org/trainjob").expect("TrainJob");
    let mut object = json!({
        "metadata": { "name": "t", "namespace": "ns" },
        "spec": { "suspend": true, "runtimeRef": { "name": "r" } },
    });
    json_patch::merge(&mut object["spec"], spec);
    kind.decode(object).expect("it decodes")
}

/// The job with a runtime of these replicated Jobs, each with a name, a part and its containers.
fn with_runtime(job: &JobObject, policy: &Value, jobs: &[(&str, &str, &[&str])]) -> JobObject {
    let jobs = jobs.iter().map(|(name, part, containers)| {
        let containers =
            containers.iter().map(|name| json!({ "name": name, "image": "of-runtime" }));
        let mut job = json!({ "name": name, "replicas": 2, "template": { "spec": {
            "template": { "spec": { "containers": containers.collect::<Vec<_>>() } },
        } } });
        if !part.is_empty() {
            job["template"]["metadata"]["labels"]["trainer.kubeflow.org/trainjob-ancestor-step"] =
                json!(part);
        }
        job
    });
    let spec = json!({ "template": { "spec": { "replicatedJobs": jobs.collect::<Vec<_>>() } } });
    with_spec(job, policy, spec)
}

fn with_spec(job: &JobObject, policy: &Value, mut spec: Value) -> JobObject {
    json_patch::merge(&mut spec, policy);
    let runtime = json!({ "metadata": { "name": "r" }, "spec": spec });
    let mut found = FoundObjects::default();
    let needed = job.needed_objects().pop().expect("it names a runtime");
    found.observe(needed, serde_json::from_value(runtime).ok().map(Arc::new));
    job.with_objects(&found)
}

fn counts(job: &JobObject) -> Vec<(String, Option<i32>)> {
    let sets = job.pod_sets(JobGates::default()).into_iter();
    sets.map(|set| (set.name, set.count)).collect()
}

fn container(job: &JobObject, set: usize) -> Value {
    json!(job.pod_sets(JobGates::default())[set].template)["spec"]["containers"][0].clone()
}

const NODE: &[(&str, &str, &[&str])] = &[("node", "trainer", &["node"])];

#[test]
fn the_number_of_nodes_is_that_of_the_job_or_of_the_runtime() {
    let policy = json!({ "mlPolicy": { "numNodes": 3 } });
    let count = |trainer: Value, policy: &Value| {
        counts(&with_runtime(&job(&json!({ "trainer": trainer })), policy, NODE))[0].1
    };
    assert_eq!(count(json!({ "numNodes": 5 }), &policy), Some(5));
    assert_eq!(count(json!({}), &policy), Some(3));
    assert_eq!(count(json!({}), &json!({})), Some(1));
    assert_eq!(count(json!({ "numNodes": 4 }), &json!({})), Some(4));
}

#[test]
fn a_launcher_may_be_one_of_the_nodes() {
    let jobs: &[(&str, &str, &[&str])] =
        &[("launcher", "trainer", &["node"]), ("node", "", &["node"])];
    let count = |policy: Value| {
        let policy = json!({ "mlPolicy": { "numNodes": 1, "mpi": policy } });
        counts(&with_runtime(&job(&json!({ "trainer": { "numNodes": 4 } })), &policy, jobs))
    };
    let of = |launchers, nodes| {
        vec![("launcher".to_owned(), Some(launchers)), ("node".to_owned(), Some(nodes))]
    };
    // Two replicas of a Job that is no part of the training.
    assert_eq!(count(json!({})), of(1, 8));
    assert_eq!(count(json!({ "runLauncherAsNode": true })), of(1, 6));
}

#[test]
fn the_trainer_changes_its_own_container_only() {
    let trainer = json!({
        "image": "mine", "command": ["run"], "env": [{ "name": "A", "value": "1" }],
        "resourcesPerNode": { "requests": { "cpu": "2" } },
    });
    let jobs: &[(&str, &str, &[&str])] = &[
        ("node", "trainer", &["node", "side"]),
        ("init", "dataset-initializer", &["dataset-initializer"]),
    ];
    let initializer =
        json!({ "dataset": { "storageUri": "s3://x", "secretRef": { "name": "s" } } });
    let job = job(&json!({ "trainer": trainer, "initializer": initializer }));
    let job = with_runtime(&job, &json!({ "podGroupPolicy": { "coscheduling": {} } }), jobs);
    assert_eq!(
        container(&job, 0),
        json!({ "name": "node", "image": "mine", "command": ["run"], "env": [{ "name": "A", "value": "1" }],
                "resources": { "requests": { "cpu": "2" } } })
    );
    assert_eq!(
        container(&job, 1),
        json!({ "name": "dataset-initializer", "image": "of-runtime",
                "env": [{ "name": "STORAGE_URI", "value": "s3://x" }], "envFrom": [{ "secretRef": { "name": "s" } }] })
    );
    let template = json!(job.pod_sets(JobGates::default())[0].template);
    assert_eq!(template["spec"]["containers"][1]["image"], "of-runtime");
    assert_eq!(template["metadata"]["labels"], json!({ "scheduling.x-k8s.io/pod-group": "t" }));
}

#[test]
fn a_start_fills_the_entry_and_a_stop_empties_it_when_no_pod_is_active() {
    let gates = JobGates::default();
    // No webhook has seen it: it has no entry.
    let waiting = with_runtime(&job(&json!({ "trainer": {} })), &json!({}), NODE);
    let mut started = waiting.clone();
    let mut info = PodSetInfo::of(&waiting.pod_sets(gates)[0]);
    info.node_selector = [("zone".to_owned(), "x".to_owned())].into();
    started.run_with_pod_sets_info(&[info], gates).expect("it starts");
    let added = |job: &JobObject| {
        job.without_status()["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"]
            .clone()
    };
    let expected = json!([{ "name": "node", "template": { "spec": {
        "template": { "spec": { "nodeSelector": { "zone": "x" } } },
    } } }]);
    assert_eq!(added(&started)["replicatedJobs"], expected);
    // Stored and read again it has the same pod sets.
    let mut object = started.to_create();
    object["status"] = json!({ "jobsStatus": [{ "name": "node", "active": 1 }] });
    let running =
        with_runtime(&started.kind().decode(object).expect("it decodes"), &json!({}), NODE);
    assert_eq!(running.pod_sets(gates), started.pod_sets(gates));

    let stop = |job: &JobObject| match job.next_stop_write(&Stop::default(), gates) {
        Some(StopWrite::Object(after)) => Some(*after),
        _ => None,
    };
    let suspended = stop(&running).expect("the switch");
    assert_eq!(added(&suspended), added(&running), "its pods are active");
    assert!(suspended.spec_suspended() && !suspended.is_suspended());
    assert_eq!(stop(&suspended), None);
    assert!(!suspended.may_restart(), "its pods are active");
    let idle = suspended.with_idle_status().expect("no pod is active");
    let stopped = stop(&idle).expect("the entry");
    assert_eq!((added(&stopped), stop(&stopped)), (json!({}), None));
    assert!(stopped.is_suspended());
    // Also while the runtime is missing.
    let bare = idle.with_objects(&FoundObjects::default());
    assert!(bare.unresolved().is_some());
    assert_eq!(added(&stop(&bare).expect("the entry")), json!({}));
}

#[test]
fn infos_are_those_of_the_replicated_jobs_of_their_names() {
    let gates = JobGates::default();
    let jobs: &[(&str, &str, &[&str])] =
        &[("init", "dataset-initializer", &["init"]), ("node", "trainer", &["node"])];
    let waiting = with_runtime(&job(&json!({ "trainer": {} })), &json!({}), jobs);
    let infos = |names: &[&str]| -> Vec<PodSetInfo> {
        let zone = |name: &str| [("zone".to_owned(), name.to_owned())].into();
        let info = |name: &&str| PodSetInfo {
            name: (*name).to_owned(),
            node_selector: zone(name),
            ..PodSetInfo::default()
        };
        names.iter().map(info).collect()
    };
    let start = |names: &[&str]| {
        let mut started = waiting.clone();
        let result = started.run_with_pod_sets_info(&infos(names), gates);
        let error = result.map_err(|error| error.to_string());
        error.map(|()| {
            let zone = |set: usize| {
                let template = json!(started.pod_sets(gates)[set].template);
                template["spec"]["nodeSelector"]["zone"].as_str().map(str::to_owned)
            };
            [zone(0), zone(1)].map(Option::unwrap_or_default)
        })
    };
    let own = Ok(["init".to_owned(), "node".to_owned()]);
    assert_eq!(start(&["init", "node"]), own);
    assert_eq!(start(&["node", "init"]), own, "the runtime was changed");
    let error = |text: &str| Err(format!("invalid podset infos: {text}"));
    assert_eq!(start(&["init", "other"]), error("the job has no podset \"other\""));
    assert_eq!(start(&["node", "node"]), error("podset \"node\" appears more than once"));
    assert_eq!(start(&["init"]), error("expecting 2 podsets, got 1"));
}

#[test]
fn the_copy_for_a_worker_has_the_patches_of_others_only() {
    let patches = |managers: &[&str]| -> Value {
        managers.iter().map(|manager| json!({ "manager": manager })).collect()
    };
    let copy = |managers: &[&str]| {
        let job = job(
            &json!({ "runtimePatches": patches(managers), "managedBy": "kueue.x-k8s.io/multikueue" }),
        );
        let copy = with_runtime(&job, &json!({}), NODE).remote_job(&[], JobGates::default());
        copy.without_status()["spec"].clone()
    };
    assert_eq!(copy(&["me", "kueue.x-k8s.io/manager"])["runtimePatches"], patches(&["me"]));
    let alone = copy(&["kueue.x-k8s.io/manager"]);
    assert_eq!((alone.get("runtimePatches"), alone.get("managedBy")), (None, None));
}

#[test]
fn a_new_job_is_refused_without_its_runtime_and_a_running_one_stays() {
    let job = job(&json!({ "runtimeRef": { "name": "r", "kind": "TrainingRuntime" } }));
    let refusal = job.refusal_without(&FoundObjects::default());
    assert_eq!(refusal.as_deref(), Some("runtime 'r' not found"));
    let needed = job.needed_objects().pop().expect("a runtime");
    assert_eq!(needed.namespace.as_deref(), Some("ns"));
    // Its status says what is known.
    let mut object = job.to_create();
    object["status"] = json!({ "jobsStatus": [{ "name": "node", "active": 1, "ready": 1 }] });
    let running = job.kind().decode(object).expect("it decodes");
    assert!(running.pods_ready() && running.unresolved().is_some());
    let two =
        with_runtime(&running, &json!({}), &[("a", "", &["node"]), ("node", "trainer", &["node"])]);
    assert!(!two.pods_ready(), "two of three Jobs are not ready");
}

#[test]
fn a_new_job_is_refused_with_a_runtime_of_an_unknown_kind() {
    let refusal = |reference: Value| {
        let mut reference = reference;
        reference["name"] = json!("r");
        let job = job(&json!({ "runtimeRef": reference }));
        let refusal = job.refusal_without(&FoundObjects::default());
        (job.needed_objects().len(), refusal.unwrap_or_default())
    };
    let group = "trainer.kubeflow.org";
    for (reference, kind) in [
        (json!({ "kind": "Foo" }), "Foo.trainer.kubeflow.org"),
        (json!({ "kind": "Foo", "apiGroup": group }), "Foo.trainer.kubeflow.org"),
        (json!({ "kind": "", "apiGroup": group }), ".trainer.kubeflow.org"),
    ] {
        let refused = format!("unsupported runtime: {kind}");
        assert_eq!(refusal(reference.clone()).1, refused, "{reference}");
    }
    assert_eq!(refusal(json!({ "kind": "Foo" })).0, 0, "nothing is read");
    for (group, kind) in
        [("example.com", "ClusterTrainingRuntime.example.com"), ("", "ClusterTrainingRuntime")]
    {
        let kinds = [
            json!({ "apiGroup": group, "kind": "ClusterTrainingRuntime" }),
            json!({ "apiGroup": group }),
        ];
        for reference in kinds {
            assert_eq!(refusal(reference).1, format!("unsupported runtime: {kind}"));
        }
    }
    for kind in ["ClusterTrainingRuntime", "TrainingRuntime"] {
        let known = json!({ "kind": kind, "apiGroup": group });
        assert_eq!(refusal(known), (1, "runtime 'r' not found".to_owned()));
    }
    assert_eq!(refusal(json!({})), (1, "runtime 'r' not found".to_owned()));
}

#[test]
fn a_job_that_was_withdrawn_counts_nothing_as_ready() {
    let mut object = job(&json!({ "runtimeRef": { "name": "r" } })).to_create();
    let node = json!({ "name": "node", "active": 1, "ready": 1, "failed": 1 });
    object["status"] = json!({ "jobsStatus": [node] });
    let running = job(&json!({})).kind().decode(object).expect("it decodes");
    let idle = running.with_idle_status().expect("another status");
    let ready = with_runtime(&idle, &json!({}), &[("node", "trainer", &["node"])]);
    assert!(!ready.pods_ready());
    assert!(idle.with_idle_status().is_none(), "it is that already");
}

#[test]
fn a_start_replaces_what_an_earlier_one_added() {
    let gates = JobGates::default();
    let waiting = with_runtime(&job(&json!({ "trainer": {} })), &json!({}), NODE);
    let info = |zone: &str| {
        let mut info = PodSetInfo::of(&waiting.pod_sets(gates)[0]);
        info.node_selector = [("zone".to_owned(), zone.to_owned())].into();
        let toleration = json!([{ "key": zone }]);
        info.tolerations = serde_json::from_value(toleration).expect("a toleration");
        info.hosts = vec![format!("{zone}1"), format!("{zone}2")];
        info
    };
    let mut started = waiting.clone();
    started.run_with_pod_sets_info(&[info("x")], gates).expect("it starts");
    let suspended = started.to_suspended();
    assert!(!suspended.is_suspended() && suspended.may_restart());
    assert!(!started.may_restart() && !waiting.may_restart());
    let [mut again, mut first] = [suspended, waiting.clone()];
    again.run_with_pod_sets_info(&[info("y")], gates).expect("no conflict");
    first.run_with_pod_sets_info(&[info("y")], gates).expect("it starts");
    assert_eq!(again.without_status(), first.without_status());
    assert_eq!(again.pod_sets(gates), first.pod_sets(gates));
}

#[test]
fn pod_sets_have_lower_case_names_and_patches_those_of_the_runtime() {
    let named = &[("Node", "trainer", &["node"] as &[&str])];
    let mut job = with_runtime(&job(&json!({})), &json!({}), named);
    assert_eq!(counts(&job)[0].0, "node");
    let selector = json!({ "zone": "x" });
    let sets = job.pod_sets(JobGates::default());
    let mut info = PodSetInfo::of(&sets[0]);
    info.node_selector.insert("zone".to_owned(), "x".to_owned());
    job.run_with_pod_sets_info(&[info], JobGates::default()).expect("it starts");
    let patched = job.to_create()["spec"]["runtimePatches"].to_string();
    assert!(patched.contains("\"name\":\"Node\""), "{patched}");
    let again = with_runtime(&job, &json!({}), named);
    let template = json!(again.pod_sets(JobGates::default())[0].template);
    assert_eq!(template["spec"]["nodeSelector"], selector);
}
