//! A made-up kind with a nested switch, two pod sets, and a state in place of conditions.

use serde_json::{Value, json};

use crate::{
    GenericJob, JobGates, JobObject, Kind, Kinds, StopWrite,
    defaulting::{self, DefaultingFacts},
    generic_job::{JobOutcome, Stop},
    start::pod_set_info::{PodSetInfo, StartError},
};

const TRAINING: &str = "
framework: example.com/training
group: example.com
version: v1
kind: Training
plural: trainings
suspend: /spec/run/suspend
managedBy: { at: /spec/run/managedBy, controller: example.com/trainer }
fields:
  podSets:
  - { name: { fixed: driver }, within: /spec/driver, template: /template }
  - name: { fixed: worker }
    template: /spec/worker/template
    replicas: { at: /spec/worker/replicas }
    podsPerReplica: { at: /spec/worker/hosts }
  outcomes:
  - values: { at: /status/state, succeeded: [Done], failed: [Broken, Lost], message: /status/reason }
  active: { anyAbove: [/status/running/*] }
  ready: { in: { at: /status/state, values: [Running] } }
  remote: { strip: [/spec/ttl] }
";

fn kind() -> Kind {
    Kind::parse(TRAINING).expect("a kind")
}

fn object() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Training",
        "metadata": {
            "name": "t", "namespace": "ns", "uid": "u",
            "labels": { "kueue.x-k8s.io/queue-name": "q" },
        },
        "spec": {
            "ttl": 5,
            "driver": { "template": { "spec": { "nodeSelector": null } } },
            "worker": { "replicas": 3, "hosts": 2, "template": { "spec": {} } },
        },
    })
}

fn job(object: Value) -> JobObject {
    kind().decode(object).expect("a job decodes")
}

fn infos(job: &JobObject) -> Vec<PodSetInfo> {
    job.pod_sets(JobGates::default()).iter().map(PodSetInfo::of).collect()
}

#[test]
fn pod_sets_are_read_where_the_kind_declares_them() {
    let sets = |object| -> Vec<(String, Option<i32>)> {
        let sets = job(object).pod_sets(JobGates::default()).into_iter();
        sets.map(|set| (set.name, set.count)).collect()
    };
    assert_eq!(sets(object()), [("driver".to_owned(), Some(1)), ("worker".to_owned(), Some(6))]);
    let mut without_driver = object();
    without_driver["spec"]["driver"] = Value::Null;
    assert_eq!(sets(without_driver), [("worker".to_owned(), Some(6))]);
}

#[test]
fn a_template_that_does_not_decode_is_named() {
    let mut object = object();
    object["spec"]["worker"]["template"] = json!({ "spec": { "containers": "none" } });
    let error = kind().decode(object).expect_err("no template");
    assert!(error.starts_with("spec.worker.template: "), "{error}");
}

#[test]
fn the_webhook_sets_the_switch_with_the_objects_around_it() {
    let facts = DefaultingFacts { queue_uses_multi_kueue: true, ..DefaultingFacts::default() };
    let steps = defaulting::default(&job(object()), facts, JobGates::default());
    let steps: Vec<(String, Value)> =
        steps.into_iter().map(|step| (step.path, step.value)).collect();
    let expected = [
        ("/spec/run".to_owned(), json!({})),
        ("/spec/run/suspend".to_owned(), json!(true)),
        ("/spec/run/managedBy".to_owned(), json!("kueue.x-k8s.io/multikueue")),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn a_started_and_stopped_job_has_its_templates_again() {
    let gates = JobGates::default();
    let before = job(object());
    let mut admitted = infos(&before);
    admitted[1].node_selector.insert("pool".to_owned(), "a".to_owned());
    let mut started = before.clone();
    started.run_with_pod_sets_info(&admitted, gates).expect("it starts");
    let spec = started.without_status()["spec"].clone();
    assert_eq!(spec["run"]["suspend"], false, "false is written");
    assert_eq!(spec["worker"]["template"]["spec"]["nodeSelector"], json!({ "pool": "a" }));
    assert_eq!(spec["driver"], object()["spec"]["driver"], "what did not change stays as written");
    let Some(StopWrite::Object(stopped)) =
        started.next_stop_write(&Stop { infos: &infos(&before), ..Stop::default() }, gates)
    else {
        unreachable!("a running job is stopped in one write")
    };
    assert_eq!(stopped.pod_sets(gates), before.pod_sets(gates));
    assert!(stopped.is_suspended());
    assert_eq!(
        stopped.next_stop_write(&Stop { infos: &infos(&before), ..Stop::default() }, gates),
        None
    );
}

#[test]
fn several_hosts_are_left_to_the_scheduler_where_the_affinity_is_immutable() {
    let hosts = |fields: &str| {
        let kind = Kind::parse(&format!("{TRAINING}{fields}")).expect("a kind");
        let mut job = kind.decode(object()).expect("a job decodes");
        let mut admitted = infos(&job);
        admitted[1].hosts = vec!["a".to_owned(), "b".to_owned()];
        job.run_with_pod_sets_info(&admitted, JobGates::default()).expect("it starts");
        job.without_status()["spec"]["worker"]["template"]["spec"].clone()
    };
    assert!(hosts("")["affinity"]["nodeAffinity"].is_object());
    assert_eq!(hosts("  immutableAffinity: true\n"), json!({}));
}

#[test]
fn pods_that_an_operator_places_are_bound_to_no_host() {
    let key = "alpha.jobset.sigs.k8s.io/exclusive-topology";
    let selector = |mark: &str| {
        let pods = json!({ "metadata": {}, "spec": {} });
        let mut object = json!({
            "metadata": { "name": "s", "namespace": "ns", "uid": "u" },
            "spec": { "suspend": true, "replicatedJobs": [
                { "name": "w", "template": { "metadata": {}, "spec": { "template": pods } } },
            ] },
        });
        if let Some(metadata) = object.pointer_mut(mark) {
            metadata["annotations"] = json!({ key: "rack" });
        }
        let kind = Kinds::built_in().find("jobset.x-k8s.io/v1alpha2", "JobSet").expect("built in");
        let mut job = kind.decode(object).expect("a job decodes");
        let mut admitted = infos(&job);
        admitted[0].hosts = vec!["a".to_owned()];
        job.run_with_pod_sets_info(&admitted, JobGates::default()).expect("it starts");
        let template = job.pod_sets(JobGates::default()).remove(0).template;
        template.spec.expect("a spec").node_selector.clone()
    };
    assert_eq!(selector(""), [("kubernetes.io/hostname".to_owned(), "a".to_owned())].into());
    let of_job = "/spec/replicatedJobs/0/template";
    for at in ["".to_owned(), of_job.to_owned(), format!("{of_job}/spec/template")] {
        assert_eq!(selector(&format!("{at}/metadata")), [].into(), "{at}");
    }
}

#[test]
fn a_conflict_leaves_the_job_as_it_is() {
    let mut object = object();
    object["spec"]["worker"]["template"] = json!({ "spec": { "nodeSelector": { "pool": "b" } } });
    let before = job(object);
    let mut admitted = infos(&before);
    admitted[1].node_selector.insert("pool".to_owned(), "a".to_owned());
    let mut started = before.clone();
    let error = started.run_with_pod_sets_info(&admitted, JobGates::default());
    assert!(matches!(error, Err(StartError::Conflict { .. })));
    let error = started.run_with_pod_sets_info(&admitted[..1], JobGates::default());
    assert_eq!(error, Err(StartError::WrongNumber { expected: 2, admitted: 1 }));
    assert_eq!(started, before);
}

#[test]
fn a_copy_for_a_worker_has_no_fields_of_this_cluster() {
    let gates = JobGates::default();
    let mut object = object();
    object["spec"]["run"] = json!({ "suspend": false, "managedBy": "kueue.x-k8s.io/multikueue" });
    object["status"] = json!({ "state": "Running" });
    let job = job(object);
    let copy = job.remote_job(&job.pod_sets(gates), gates).to_create();
    assert_eq!(copy["spec"]["run"], json!({ "suspend": true }));
    assert_eq!((copy["spec"].get("ttl"), copy.get("status")), (None, None));
    assert_eq!((&copy["kind"], &copy["metadata"]["name"]), (&json!("Training"), &json!("t")));
    assert_eq!(copy["metadata"].get("uid"), None);
}

#[test]
fn the_status_is_read_copied_and_cleared() {
    let mut running = object();
    running["status"] =
        json!({ "state": "Running", "running": { "driver": 1, "worker": 2 }, "seen": true });
    let (hub, copy) = (job(object()), job(running));
    assert!(copy.is_active() && copy.pods_ready() && copy.finished().is_none());
    let with_status = hub.with_remote_status(&copy);
    assert_eq!(with_status.status(), copy.status());
    let idle = with_status.with_idle_status().expect("it ran");
    assert!(!idle.is_active() && !idle.pods_ready());
    assert_eq!(idle.status(), json!({}));
    assert_eq!(idle.with_idle_status(), None);
    let mut ended = object();
    ended["status"] = json!({ "state": "Lost", "reason": "node gone", "running": { "driver": 1 } });
    let idle = job(ended).with_idle_status().expect("a pod is still counted");
    assert_eq!(idle.status()["reason"], "node gone");
    let mut broken = object();
    broken["status"] = json!({ "state": "Lost", "reason": "node gone" });
    let outcome = JobOutcome { success: false, message: "node gone".to_owned() };
    assert_eq!(job(broken).finished(), Some(outcome));
}

#[test]
fn a_pod_set_of_a_job_set_has_a_lower_case_name_and_its_job_is_found_in_the_status() {
    let kinds = Kinds::built_in();
    let kind = kinds.find("jobset.x-k8s.io/v1alpha2", "JobSet").expect("built in");
    let template = json!({ "spec": { "template": { "spec": { "containers": [] } } } });
    let job = json!({ "name": "Workers", "replicas": 3, "template": template });
    let status = json!({ "replicatedJobsStatus": [{ "name": "Workers", "succeeded": 2 }] });
    let set = json!({
        "metadata": { "name": "s" }, "spec": { "replicatedJobs": [job] }, "status": status,
    });
    let job = kind.decode(set).expect("it decodes");
    assert_eq!(job.pod_sets(JobGates::default())[0].name, "workers");
    let reclaimable = job.reclaimable_pods();
    assert_eq!((&*reclaimable[0].name, reclaimable[0].count), ("workers", 2));
}

/// A restart makes the Jobs that succeeded again (kueue#14609).
#[test]
fn a_job_set_that_may_restart_has_no_reclaimable_pods() {
    let kinds = Kinds::built_in();
    let kind = kinds.find("jobset.x-k8s.io/v1alpha2", "JobSet").expect("built in");
    let reclaimable = |policy: &Value, restarts: &Value| {
        let template = json!({ "spec": { "template": { "spec": { "containers": [] } } } });
        let job = json!({ "name": "workers", "replicas": 3, "template": template });
        let mut status = restarts.clone();
        status["replicatedJobsStatus"] = json!([{ "name": "workers", "succeeded": 2 }]);
        let set = json!({
            "metadata": { "name": "s" }, "status": status,
            "spec": { "replicatedJobs": [job], "failurePolicy": policy },
        });
        let pods = kind.decode(set).expect("it decodes").reclaimable_pods();
        pods.first().map_or(0, |one| one.count)
    };
    let restarts = |n: i64| json!({ "restarts": 5, "restartsCountTowardsMax": n });
    let limit = json!({ "maxRestarts": 3 });
    let rule = |action: &str| json!({ "maxRestarts": 0, "rules": [{ "action": "FailJobSet" }, { "action": action }] });
    for (policy, restarts, expected) in [
        (json!(null), json!({}), 2),
        (json!({}), json!({}), 2),
        (json!({ "maxRestarts": 0 }), json!({}), 2),
        (limit.clone(), json!({}), 0),
        (limit.clone(), restarts(2), 0),
        // The counts may still be those of the attempt before the last restart.
        (limit, restarts(3), 0),
        (rule("RestartJobSet"), restarts(0), 2),
        (rule("RestartJobSetAndIgnoreMaxRestarts"), restarts(0), 0),
    ] {
        assert_eq!(reclaimable(&policy, &restarts), expected, "{policy} {restarts}");
    }
}

#[test]
fn the_first_condition_that_is_true_decides_how_a_job_ended() {
    let kinds = Kinds::built_in();
    let ended = |version: &str, kind: &str, conditions: &[(&str, &str)]| {
        let kind = kinds.find(version, kind).expect("built in");
        let condition = |(name, status): &(&str, &str)| json!({ "type": name, "status": status, "message": name });
        let conditions: Vec<Value> = conditions.iter().map(condition).collect();
        let object = json!({ "metadata": { "name": "j" }, "spec": {}, "status": { "conditions": conditions } });
        let job = kind.decode(object).expect("it decodes");
        job.finished().map(|outcome| (outcome.success, outcome.message))
    };
    let both = [("Failed", "True"), ("Succeeded", "True")];
    let repeated = [("Succeeded", "False"), ("Succeeded", "True")];
    for (version, kind) in [("kubeflow.org/v1", "PyTorchJob"), ("kubeflow.org/v2beta1", "MPIJob")] {
        assert_eq!(ended(version, kind, &both), Some((false, "Failed".to_owned())), "{kind}");
        assert_eq!(ended(version, kind, &repeated), Some((true, "Succeeded".to_owned())));
        assert_eq!(ended(version, kind, &[("Failed", "False"), ("Running", "True")]), None);
    }
    let both = [("Failed", "True"), ("Completed", "True")];
    let job_set = ended("jobset.x-k8s.io/v1alpha2", "JobSet", &both);
    assert_eq!(job_set, Some((true, "Completed".to_owned())), "by type, whatever the order");
}
