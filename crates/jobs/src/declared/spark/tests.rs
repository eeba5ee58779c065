use serde_json::{Value, json};

use crate::{
    GenericJob, JobGates, JobObject, Kinds, StopWrite, generic_job::Stop,
    start::pod_set_info::PodSetInfo, validate,
};

fn application(spec: &Value) -> JobObject {
    let kind = Kinds::built_in()
        .of_framework("sparkoperator.k8s.io/sparkapplication")
        .expect("SparkApplication");
    let mut object = json!({
        "metadata": { "name": "s", "labels": { "kueue.x-k8s.io/queue-name": "q" } },
        "spec": { "suspend": true, "mode": "cluster", "driver": {}, "executor": { "instances": 2 } },
    });
    json_patch::merge(&mut object["spec"], spec);
    kind.decode(object).expect("it decodes")
}

fn infos(job: &JobObject, zone: &str) -> Vec<PodSetInfo> {
    let sets = job.pod_sets(JobGates::default());
    let info = |name: String| PodSetInfo {
        name: name.clone(),
        node_selector: [("zone".to_owned(), format!("{zone}-{name}"))].into(),
        labels: [("kueue.x-k8s.io/podset".to_owned(), name)].into(),
        scheduling_gates: vec!["kueue.x-k8s.io/topology".to_owned()],
        ..PodSetInfo::default()
    };
    sets.into_iter().map(|set| info(set.name)).collect()
}

#[test]
fn the_pods_of_a_role_are_made_of_its_fields() {
    let job = application(&json!({
        "volumes": [{ "name": "data", "emptyDir": {} }, { "name": "unused" }],
        "executor": {
            "memory": "2g", "memoryLimit": "3g", "coreRequest": "500m", "coreLimit": "1", "priorityClassName": "p",
            "gpu": { "name": "example.com/gpu", "quantity": 2 }, "tolerations": [{ "key": "k" }],
            "labels": { "a": "role" }, "template": { "metadata": { "labels": { "a": "template", "b": "1" } } },
            "volumeMounts": [{ "name": "data", "mountPath": "/d" }, { "name": "spark-local-dir-1", "mountPath": "/l" }],
            "sidecars": [{ "name": "log", "image": "l" }, { "name": "log", "image": "l" }],
        },
    }));
    let [driver, executor] = &job.pod_sets(JobGates::default())[..] else { panic!("two pod sets") };
    assert_eq!((driver.name.as_str(), driver.count), ("driver", Some(1)));
    assert_eq!((executor.name.as_str(), executor.count), ("executor", Some(2)));
    assert_eq!(
        json!(executor.template),
        json!({ "metadata": { "labels": { "a": "role", "b": "1" } }, "spec": {
            "priorityClassName": "p", "tolerations": [{ "key": "k" }], "volumes": [{ "name": "data", "emptyDir": {} }],
            "containers": [
                { "name": "spark-kubernetes-executor", "volumeMounts": [{ "name": "data", "mountPath": "/d" }],
                  "resources": { "requests": { "cpu": "500m", "memory": "2Gi" },
                                 "limits": { "cpu": "1", "memory": "3Gi", "example.com/gpu": "2" } } },
                { "name": "log", "image": "l" },
            ],
        } })
    );
}

#[test]
fn a_stop_restores_the_fields_of_the_roles() {
    let gates = JobGates::default();
    let job = application(&json!({
        "driver": { "nodeSelector": { "rack": "r" }, "labels": { "own": "1" } },
        "executor": { "template": { "metadata": { "labels": { "of": "template" } }, "spec": { "containers": [] } } },
    }));
    let before: Vec<PodSetInfo> = job.pod_sets(gates).iter().map(PodSetInfo::of).collect();
    let mut started = job.clone();
    started.run_with_pod_sets_info(&infos(&job, "x"), gates).expect("it starts");
    let spec = started.without_status()["spec"].clone();
    assert_eq!(spec["driver"]["nodeSelector"], json!({ "rack": "r", "zone": "x-driver" }));
    assert_eq!(spec["executor"]["labels"], json!({ "kueue.x-k8s.io/podset": "executor" }));
    let gate = json!([{ "name": "kueue.x-k8s.io/topology" }]);
    assert_eq!(spec["driver"]["template"]["spec"]["schedulingGates"], gate);
    let conflict = started.run_with_pod_sets_info(&infos(&job, "y"), gates);
    assert!(conflict.is_err() && started.without_status()["spec"] == spec, "nothing is changed");

    let stop = Stop { infos: &before, ..Stop::default() };
    let Some(StopWrite::Object(stopped)) = started.next_stop_write(&stop, gates) else {
        panic!("one write")
    };
    // A template that a start made stays, as upstream's does.
    let mut expected = job.without_status();
    let containers = json!([{ "name": "spark-kubernetes-driver", "resources": {} }]);
    expected["spec"]["driver"]["template"] = json!({ "spec": { "containers": containers } });
    assert_eq!(stopped.without_status(), expected);
    assert_eq!(stopped.next_stop_write(&stop, gates), None);
}

#[test]
fn a_common_node_selector_goes_to_both_roles() {
    let gates = JobGates::default();
    let mut job = application(&json!({ "nodeSelector": { "rack": "r" } }));
    let selectors = |job: &JobObject| {
        let spec = job.without_status()["spec"].clone();
        (spec.get("nodeSelector").cloned(), spec["driver"]["nodeSelector"].clone())
    };
    let infos = infos(&job, "x");
    job.run_with_pod_sets_info(&infos, gates).expect("flavors of two nodes do not contradict");
    assert_eq!(selectors(&job), (None, json!({ "rack": "r", "zone": "x-driver" })));
    let set = &job.pod_sets(gates)[1];
    assert_eq!(PodSetInfo::of(set).node_selector["zone"], "x-executor");
}

#[test]
fn a_bare_number_of_memory_is_one_of_mebibytes() {
    let resources = |fields: Value| {
        let job = application(&json!({ "driver": fields }));
        json!(job.pod_sets(JobGates::default())[0].template)["spec"]["containers"][0]["resources"]
            .clone()
    };
    assert_eq!(resources(json!({ "memory": "1024" })), json!({ "requests": { "memory": "1Gi" } }));
    // The operator takes a limit for a quantity of Kubernetes.
    assert_eq!(
        resources(json!({ "memoryLimit": "1000" })),
        json!({ "limits": { "memory": "1k" } })
    );
    assert_eq!(resources(json!({ "cores": 2 })), json!({}), "defaults of Spark are not counted");
}

#[test]
fn all_executors_have_to_run() {
    let ready = |state: &str, executors: Value| {
        let mut object = application(&json!({})).to_create();
        object["status"] =
            json!({ "applicationState": { "state": state }, "executorState": executors });
        let job = application(&json!({})).kind().decode(object).expect("it decodes");
        (job.is_active(), job.pods_ready(), job.finished().map(|outcome| outcome.success))
    };
    assert_eq!(ready("RUNNING", json!({ "1": "RUNNING", "2": "PENDING" })), (true, false, None));
    assert_eq!(ready("RUNNING", json!({ "1": "RUNNING", "2": "COMPLETED" })), (true, true, None));
    assert_eq!(ready("SUBMITTED", json!({})), (true, false, None));
    assert_eq!(ready("SUSPENDED", json!({})), (false, false, None));
    assert_eq!(ready("COMPLETED", json!({})), (false, false, Some(true)));
    assert_eq!(ready("FAILED", json!({})), (false, false, Some(false)));
    assert_eq!(
        ready("SUBMISSION_FAILED", json!({})),
        (false, false, None),
        "it is submitted again"
    );
}

#[test]
fn an_amount_that_is_none_is_named() {
    let kind = application(&json!({})).kind().clone();
    let object = json!({ "metadata": {}, "spec": { "driver": { "memory": "lots" } } });
    let error = kind.decode(object).expect_err("it is no amount");
    assert!(error.starts_with("spec.driver: "), "{error}");
    let client = application(&json!({ "mode": "client" }));
    let errors = validate::create(&client, JobGates::default());
    assert_eq!(
        errors[0].to_string(),
        "spec.mode: Invalid value: \"client\": only Cluster mode is supported for a kueue managed job"
    );
}
