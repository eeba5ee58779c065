//! The webhooks of Jobs, called like the API server does.

mod deleted_objects;
mod fixture;

use ::jobs::{Kinds, construct_workload};
use config::{Configuration, JobKinds, gates::Gates};
use serde_json::{Value, json};

use super::*;
use fixture::{Fixture, MockApiServer};

/// Webhooks for other tests, with an unsynced cache.
pub(crate) fn unused() -> JobWebhooks {
    let config = Configuration::without_file(None).expect("defaults");
    let kinds = JobKinds::configured(&config, &Gates::default(), &Kinds::default());
    let settings = JobSettings::new(&config, &Gates::default(), &kinds);
    JobWebhooks::new(settings, SharedWebhookCache::default(), MockApiServer::default().client())
}

fn review(namespace: &str, object: &Value, old: &Value) -> Value {
    let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": operation, "namespace": namespace, "object": object, "oldObject": old,
        },
    })
}

fn job(queue: &str) -> Value {
    let labels = match queue {
        "" => json!({"app": "x"}),
        queue => json!({"kueue.x-k8s.io/queue-name": queue}),
    };
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "labels": labels}, "spec": {}})
}

fn owned(queue: &str, api_version: &str, kind: &str) -> Value {
    let mut job = job(queue);
    job["metadata"]["ownerReferences"] = json!([{
        "apiVersion": api_version, "kind": kind, "name": "own", "uid": "own", "controller": true,
    }]);
    job
}

const SUSPENDED: &str = "/spec/suspend=true";
const DISPATCHED: &str = "/spec/managedBy=\"kueue.x-k8s.io/multikueue\"";
const OWNER: &str = "metadata of /apis/batch/v1/namespaces/team/jobs/own";

#[tokio::test]
async fn a_job_with_a_queue_name_is_suspended_without_a_read() {
    let fixture = Fixture::new("");
    assert_eq!(fixture.create(&job("near")).await, Ok(vec![SUSPENDED.to_owned()]));
    assert_eq!(fixture.create(&job("")).await, Ok(vec![]));
    assert_eq!(fixture.server.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_kind_whose_feature_gate_is_off_is_allowed_with_a_warning() {
    let fixture = Fixture::new(
        "integrations: {frameworks: [batch/job, sparkoperator.k8s.io/sparkapplication]}",
    );
    let create = async |path: &str, queue| {
        fixture.call(path, review("team", &job(queue), &Value::Null)).await
    };
    let answer = create("/mutate-sparkoperator-k8s-io-v1beta2-sparkapplication", "near").await;
    assert_eq!((&answer["allowed"], answer.get("patch")), (&json!(true), None));
    let warning = answer["warnings"][0].as_str().expect("a warning");
    assert!(warning.contains("without quota, whatever LocalQueue near has"), "{warning}");
    let answer = create("/mutate-sparkoperator-k8s-io-v1beta2-sparkapplication", "").await;
    assert_eq!(answer.get("warnings"), None, "it names no queue");
    let answer = create("/mutate-trainer-kubeflow-org-v1alpha1-trainjob", "near").await;
    assert_eq!(answer.get("warnings"), None, "the kind is not enabled");
}

/// A TrainJob whose runtime has this annotation for topologies.
fn train_job(runtime: &str, image: &str) -> Value {
    let (name, trainer) = (json!({"name": runtime}), json!({"image": image}));
    json!({
        "metadata": {"name": "t", "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "near"}},
        "spec": {"suspend": true, "runtimeRef": name, "trainer": trainer},
    })
}

#[tokio::test]
async fn a_new_job_needs_its_runtime_and_a_changed_one_does_not() {
    let fixture = Fixture::new("integrations: {frameworks: [trainer.kubeflow.org/trainjob]}");
    let check = async |new: &Value, old: &Value| {
        let path = "/validate-trainer-kubeflow-org-v1alpha1-trainjob";
        let answer = fixture.call(path, review("team", new, old)).await;
        answer["status"]["message"].as_str().unwrap_or_default().to_owned()
    };
    let (new, changed) = (train_job("r", "a"), train_job("r", "b"));
    assert_eq!(check(&new, &Value::Null).await, "runtime 'r' not found");
    assert_eq!(check(&changed, &new).await, "");
    // The topology of the runtime is refused where a job meets it first, and frozen nowhere.
    let annotations = json!({"kueue.x-k8s.io/podset-unconstrained-topology": "maybe"});
    let template = json!({"metadata": {"annotations": annotations}, "spec": {}});
    let replicated = json!({"name": "node", "template": {"spec": {"template": template}}});
    let runtime = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime", "metadata": {"name": "r"},
        "spec": {"template": {"spec": {"replicatedJobs": [replicated]}}},
    });
    fixture.server.put("/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes/r", runtime);
    let refusal = check(&new, &Value::Null).await;
    let field = "job[node].annotations[kueue.x-k8s.io/podset-unconstrained-topology]: Invalid value: \"maybe\"";
    assert!(refusal.starts_with(field), "{refusal}");
    let advice = "\"TrainingRuntime.Template\" annotations for the corresponding Job";
    assert!(refusal.ends_with(advice), "{refusal}");
    assert_eq!(check(&changed, &new).await, "");
    let n_reads = fixture.server.requests().len();
    let mut labelled = new.clone();
    labelled["metadata"]["labels"]["a"] = json!("b");
    assert_eq!(check(&labelled, &new).await, "");
    assert_eq!(fixture.server.requests().len(), n_reads, "nothing is read for a label");
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_cannot_be_read_in_time_refuses_nothing() {
    let mut fixture = Fixture::new("integrations: {frameworks: [trainer.kubeflow.org/trainjob]}");
    fixture.server.silent = true;
    let path = "/validate-trainer-kubeflow-org-v1alpha1-trainjob";
    let answer = fixture.call(path, review("team", &train_job("r", "a"), &Value::Null)).await;
    assert_eq!(answer["allowed"], true);
}

#[tokio::test]
async fn a_job_of_a_declared_kind_is_suspended_by_its_own_webhook() {
    let fixture = Fixture::new("integrations: {frameworks: [jobset.x-k8s.io/jobset]}");
    let mut set = job("near");
    set["spec"] =
        json!({"replicatedJobs": [{"name": "a", "replicas": 1, "template": {"spec": {}}}]});
    let path = "/mutate-jobset-x-k8s-io-v1alpha2-jobset";
    let answer = fixture.call(path, review("team", &set, &Value::Null)).await;
    assert!(answer["patch"].is_string(), "{answer}");
    let broken = json!({"metadata": {}, "spec": {"replicatedJobs": [
        {"name": "a", "template": {"spec": {"template": {"spec": []}}}},
    ]}});
    let answer = fixture.call(path, review("team", &broken, &Value::Null)).await;
    let message = answer["status"]["message"].as_str().expect("a refusal");
    assert!(message.starts_with("spec.replicatedJobs[0].template.spec.template: "), "{message}");
    assert_eq!(fixture.create(&job("near")).await, Ok(vec![]), "Jobs are not enabled");
}

#[tokio::test]
async fn a_job_in_a_dispatching_queue_is_managed_by_multikueue() {
    let mut fixture = Fixture::new("");
    assert_eq!(
        fixture.create(&job("far")).await,
        Ok(vec![SUSPENDED.to_owned(), DISPATCHED.to_owned()])
    );
    fixture.gates = "MultiKueue=false";
    assert_eq!(fixture.create(&job("far")).await, Ok(vec![SUSPENDED.to_owned()]));
}

#[tokio::test]
async fn defaults_are_set_if_their_objects_exist() {
    let fixture = Fixture::new("").with_default_queue().with_default_priority_class();
    let expected = [
        "kueue.x-k8s.io/queue-name=\"default\"",
        "kueue.x-k8s.io/priority-class=\"default\"",
        SUSPENDED,
    ];
    assert_eq!(fixture.create(&job("")).await, Ok(expected.map(str::to_owned).to_vec()));
    let child = owned("", "batch/v1", "Job");
    assert_eq!(fixture.create(&child).await, Ok(vec![]), "its owner is of a managed kind");
}

#[tokio::test]
async fn a_namespace_outside_the_selector_gets_no_default_class() {
    let class = "kueue.x-k8s.io/priority-class=\"default\"";
    for (team, expected) in [("team", vec![class, SUSPENDED]), ("other", vec![SUSPENDED])] {
        let name = format!("{{kubernetes.io/metadata.name: {team}}}");
        let config = format!("managedJobsNamespaceSelector: {{matchLabels: {name}}}\n");
        let fixture = Fixture::new(&config).with_default_priority_class();
        let expected = expected.into_iter().map(str::to_owned).collect();
        assert_eq!(fixture.create(&job("near")).await, Ok(expected), "{team}");
    }
}

#[tokio::test]
async fn a_selector_of_namespaces_restricts_the_default_queue() {
    let selector = |team: &str| {
        format!(
            "localQueueDefaultingNamespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {team}}}}}\n"
        )
    };
    let default = ["kueue.x-k8s.io/queue-name=\"default\"", SUSPENDED].map(str::to_owned).to_vec();
    let off = "LocalQueueDefaultingPerNamespace=false";
    let (before, after) = (suspended("near", &json!({})), suspended("", &json!({})));
    for (config, gates, expected) in [
        (String::new(), "", default.clone()),
        (selector("team"), "", default.clone()),
        (selector("other"), "", Vec::new()),
        (selector("other"), off, default),
    ] {
        let fixture = Fixture { gates, ..Fixture::new(&config).with_default_queue() };
        // Where no default applies, a suspended Job may leave its queue.
        let leaves = fixture.refusal(&after, &before).await.is_none();
        assert_eq!(leaves, expected.is_empty(), "{config:?} {gates:?}");
        assert_eq!(fixture.create(&job("")).await, Ok(expected), "{config:?} {gates:?}");
        assert_eq!(fixture.create(&job("near")).await, Ok(vec![SUSPENDED.to_owned()]));
    }
}

/// A LeaderWorkerSet with a ready replica or without any.
fn leader_worker_set(labels: &Value, annotations: &Value, ready: bool) -> Value {
    json!({
        "metadata": {"name": "d", "namespace": "team", "labels": labels},
        "spec": {"leaderWorkerTemplate": {"size": 2, "workerTemplate": {
            "metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "c"}]},
        }}},
        "status": {"readyReplicas": usize::from(ready)},
    })
}

#[tokio::test]
async fn a_changed_leader_worker_set_gets_the_defaults_of_a_new_one() {
    let config = "integrations: {frameworks: [pod, leaderworkerset.x-k8s.io/leaderworkerset]}";
    let fixture = Fixture::new(config).with_default_queue();
    let update = async |set: Value| {
        let path = "/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset";
        let answer = fixture.call(path, review("team", &set, &set)).await;
        assert_eq!(answer["allowed"], true, "{answer}");
        answer["patch"].as_str().map(fixture::patch_text)
    };
    let held = json!({
        "kueue.x-k8s.io/pod-suspending-parent": "leaderworkerset.x-k8s.io/leaderworkerset",
        "kueue.x-k8s.io/pod-group-serving": "true",
    });
    let (none, queue) = (json!({}), json!({"kueue.x-k8s.io/queue-name": "near"}));
    let removed = update(leader_worker_set(&none, &held, true)).await.expect("a patch");
    assert!(removed.contains("queue-name=\"default\""), "{removed}");
    let added = update(leader_worker_set(&queue, &none, false)).await.expect("a patch");
    assert!(added.contains("pod-suspending-parent"), "{added}");
    let runs = update(leader_worker_set(&queue, &none, true)).await;
    assert_eq!(runs, None, "no gate holds the pods that run");
}

/// Its pods start with those of the other parent, whichever queue and owner it names.
#[tokio::test]
async fn an_object_that_another_parent_holds_costs_no_read() {
    let fixture = Fixture::new("integrations: {frameworks: [pod, deployment, batch/job]}");
    let mut held = owned("near", "batch/v1", "Job");
    let parent = json!({"kueue.x-k8s.io/pod-suspending-parent": "example.com/parent"});
    let template = json!({"metadata": {"annotations": parent}, "spec": {"containers": []}});
    held["spec"] = json!({"template": template});
    for old in [Value::Null, held.clone()] {
        let path = "/mutate-apps-v1-deployment";
        let answer = fixture.call(path, review("team", &held, &old)).await;
        assert_eq!((&answer["allowed"], answer.get("patch")), (&json!(true), None), "{answer}");
    }
    assert_eq!(fixture.server.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn jobs_without_a_queue_name_are_suspended_in_managed_namespaces() {
    let fixture = Fixture::new("manageJobsWithoutQueueName: true");
    assert_eq!(fixture.create(&job("")).await, Ok(vec![SUSPENDED.to_owned()]));
    let selector = "managedJobsNamespaceSelector: {matchLabels: {kueue: 'yes'}}\n";
    let fixture = Fixture::new(&format!("{selector}manageJobsWithoutQueueName: true"));
    assert_eq!(fixture.create(&job("")).await, Ok(vec![]));
    assert_eq!(fixture.create(&job("near")).await, Ok(vec![SUSPENDED.to_owned()]));
}

#[tokio::test]
async fn a_namespace_outside_the_cache_is_read() {
    let fixture = Fixture::new("manageJobsWithoutQueueName: true");
    let ask = || fixture.call("/mutate-batch-v1-job", review("young", &job(""), &Value::Null));
    let status = ask().await["status"].clone();
    assert_eq!((&status["code"], &status["reason"]), (&json!(404), &json!("NotFound")));
    assert_eq!(status["message"], "Namespace \"young\" not found");
    let path = "/api/v1/namespaces/young".to_owned();
    let young = json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "young"},
    });
    fixture.server.put(&path, young);
    assert!(ask().await["patch"].is_string());
    assert_eq!(fixture.server.requests(), vec![format!("metadata of {path}"); 2]);
}

#[tokio::test]
async fn a_queue_outside_the_cache_is_read_with_its_route() {
    let fixture = Fixture::new("");
    let local = "/apis/kueue.x-k8s.io/v1beta2/namespaces/team/localqueues/young";
    let queue = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/young";
    let check = "/apis/kueue.x-k8s.io/v1beta2/admissionchecks/young";
    let object =
        |spec: Value| json!({"metadata": {"name": "young", "namespace": "team"}, "spec": spec});
    let held = Ok(vec![SUSPENDED.to_owned()]);
    assert_eq!(fixture.create(&job("young")).await, held, "a queue may come later");
    fixture.server.put(local, object(json!({"clusterQueue": "young"})));
    assert_eq!(fixture.create(&job("young")).await, held);
    let checks = json!([{"name": "lost"}, {"name": "young"}]);
    let checks = json!({"admissionChecksStrategy": {"admissionChecks": checks}});
    fixture.server.put(queue, object(checks));
    assert_eq!(fixture.create(&job("young")).await, held);
    fixture.server.put(check, object(json!({"controllerName": "kueue.x-k8s.io/multikueue"})));
    let dispatched = Ok(vec![SUSPENDED.to_owned(), DISPATCHED.to_owned()]);
    assert_eq!(fixture.create(&job("young")).await, dispatched);
    let lost = "/apis/kueue.x-k8s.io/v1beta2/admissionchecks/lost";
    let requests =
        [&[local][..], &[local, queue], &[local, queue, lost, check], &[local, queue, lost, check]];
    assert_eq!(fixture.server.requests(), requests.concat());
}

#[tokio::test]
async fn a_job_with_a_managed_owner_is_not_suspended() {
    let child = owned("near", "batch/v1", "Job");
    let fixture = Fixture::new("").with_job("own", &json!({"kueue.x-k8s.io/queue-name": "near"}));
    assert_eq!(fixture.create(&child).await, Ok(vec![]));
    assert_eq!(fixture.server.requests(), [OWNER]);
    let fixture = Fixture::new("").with_job("own", &json!({}));
    assert_eq!(fixture.create(&child).await, Ok(vec![SUSPENDED.to_owned()]));
    let fixture = Fixture::new("manageJobsWithoutQueueName: true").with_job("own", &json!({}));
    assert_eq!(fixture.create(&child).await, Ok(vec![]));
}

#[tokio::test]
async fn owners_are_read_only_if_they_affect_defaults() {
    let fixture = Fixture::new("");
    let widget = owned("near", "example.com/v1", "Widget");
    assert_eq!(fixture.create(&widget).await, Ok(vec![SUSPENDED.to_owned()]));
    assert_eq!(fixture.create(&owned("", "batch/v1", "Job")).await, Ok(vec![]));
    let mut held = owned("near", "batch/v1", "Job");
    held["spec"]["suspend"] = json!(true);
    assert_eq!(fixture.create(&held).await, Ok(vec![]));
    assert_eq!(fixture.server.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_missing_owner_is_named() {
    let fixture = Fixture::new("");
    let refused = fixture.create(&owned("near", "batch/v1", "Job")).await;
    let details = json!({"name": "own", "group": "batch", "kind": "Job"});
    let status = json!({
        "code": 404, "reason": "NotFound", "message": "Job.batch \"own\" not found", "details": details,
    });
    assert_eq!(refused, Err(status));
}

#[tokio::test]
async fn the_resource_of_an_external_kind_is_discovered_once() {
    let fixture = Fixture::new("integrations: {externalFrameworks: [Flow.v1.example.com]}");
    let resources = json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v1",
        "resources": [{
            "name": "flows", "singularName": "flow", "namespaced": true, "kind": "Flow", "verbs": ["get"],
        }],
    });
    let flow = json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": {"name": "own", "uid": "own", "labels": {"kueue.x-k8s.io/queue-name": "near"}},
    });
    let path = "/apis/example.com/v1/namespaces/team/flows/own";
    fixture.server.put("/apis/example.com/v1", resources);
    fixture.server.put(path, flow);
    let webhooks = fixture.webhooks();
    let child = owned("near", "example.com/v1", "Flow");
    let job: Job = serde_json::from_value(child).expect("a Job");
    let job = JobObject::from(job);
    for _ in 0..2 {
        let facts = defaulting_facts::gather(&webhooks, &job, "team").await.expect("cache");
        assert!(facts.ancestor_managed && facts.owner_managed);
    }
    let path = format!("metadata of {path}");
    assert_eq!(fixture.server.requests(), ["/apis/example.com/v1", &path, &path]);
}

#[tokio::test(start_paused = true)]
async fn reads_of_the_api_server_have_a_timeout() {
    let mut fixture = Fixture::new("");
    fixture.server.silent = true;
    let refused = fixture.create(&owned("near", "batch/v1", "Job")).await.expect_err("refused");
    assert_eq!((&refused["code"], &refused["reason"]), (&json!(504), &json!("Timeout")));
}

#[tokio::test]
async fn nothing_is_defaulted_before_the_cache_is_synced() {
    let mut fixture = Fixture::new("");
    fixture.cache = SharedWebhookCache::default();
    let refused = fixture.create(&job("near")).await.expect_err("refused");
    assert_eq!(refused["code"], 503);
}

#[tokio::test]
async fn an_invalid_job_is_denied_with_its_field() {
    let fixture = Fixture::new("").with_default_queue();
    let mut bad = job("near");
    bad["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = json!("0");
    let text = fixture.refusal(&bad, &Value::Null).await.expect("refused");
    assert!(text.starts_with("metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]: "), "{text}");
    assert_eq!(fixture.refusal(&job("near"), &Value::Null).await, None);
    let mut before = job("near");
    before["spec"]["suspend"] = json!(true);
    let mut after = job("");
    after["spec"]["suspend"] = json!(true);
    let text = fixture.refusal(&after, &before).await.expect("refused");
    assert!(
        text.ends_with("queue-name must not be empty in namespace with default queue"),
        "{text}"
    );
    assert_eq!(Fixture::new("").refusal(&after, &before).await, None);
}

#[tokio::test]
async fn a_queued_pod_of_a_managed_kind_is_allowed_with_a_warning() {
    let fixture = Fixture::new("integrations: {frameworks: [batch/job, pod]}");
    let warnings = async |kind: &str, managed: &str| {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "spec": {"containers": []},
            "metadata": {
                "name": "p", "labels": {"kueue.x-k8s.io/managed": managed},
                "ownerReferences": [{
                    "apiVersion": "batch/v1", "kind": kind, "name": "own", "uid": "own",
                    "controller": true,
                }],
            },
        });
        let answer = fixture.call("/validate--v1-pod", review("team", &pod, &Value::Null)).await;
        (answer["allowed"].clone(), answer["warnings"].clone())
    };
    let text = "pod owner is managed by kueue, label 'kueue.x-k8s.io/managed=true' might lead to unexpected behaviour";
    assert_eq!(warnings("Job", "true").await, (json!(true), json!([text])));
    assert_eq!(warnings("CronJob", "true").await, (json!(true), Value::Null));
    let refused = warnings("Job", "false").await;
    assert_eq!(refused, (json!(false), Value::Null));
}

#[tokio::test]
async fn an_update_of_a_pod_that_its_parent_suspends_has_no_warning() {
    let fixture = Fixture::new("integrations: {frameworks: [batch/job, pod]}");
    let pod = |annotations: Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "spec": {"containers": []},
            "metadata": {
                "name": "p", "labels": {"kueue.x-k8s.io/managed": "true"}, "annotations": annotations,
                "ownerReferences": [{
                    "apiVersion": "batch/v1", "kind": "Job", "name": "own", "uid": "own",
                    "controller": true,
                }],
            },
        })
    };
    let plain = pod(json!({}));
    let suspended = pod(json!({ "kueue.x-k8s.io/pod-suspending-parent": "job" }));
    let is_warned = async |new: &Value, old: &Value| {
        let answer = fixture.call("/validate--v1-pod", review("team", new, old)).await;
        assert_eq!(answer["allowed"], json!(true), "{answer}");
        answer.get("warnings").is_some()
    };
    assert!(is_warned(&suspended, &Value::Null).await, "a new pod");
    assert!(is_warned(&plain, &plain).await);
    assert!(is_warned(&plain, &suspended).await, "only the new object counts");
    assert!(!is_warned(&suspended, &suspended).await);
}

/// A suspended Job of this queue.
fn suspended(queue: &str, annotations: &Value) -> Value {
    let mut job = job(queue);
    job["metadata"]["uid"] = json!("job-1");
    job["metadata"]["annotations"] = annotations.clone();
    job["spec"] = json!({"suspend": true, "template": {"spec": {"containers": []}}});
    job
}

/// A Workload with this status of its condition QuotaReserved.
fn workload(name: &str, reserved: &str) -> Value {
    let condition = json!({
        "type": "QuotaReserved", "status": reserved, "reason": "r", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": name},
        "spec": {"podSets": []}, "status": {"conditions": [condition]},
    })
}

/// A finished Workload keeps its reservation.
fn finished(name: &str) -> Value {
    let mut workload = workload(name, "True");
    let mut condition = workload["status"]["conditions"][0].clone();
    condition["type"] = json!("Finished");
    workload["status"]["conditions"] = json!([workload["status"]["conditions"][0], condition]);
    workload
}

fn workloads(items: &[Value]) -> Value {
    json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadList", "items": items})
}

const WORKLOADS: &str = "/apis/kueue.x-k8s.io/v1beta2/namespaces/team/workloads";

#[tokio::test]
async fn a_suspended_job_keeps_its_queue_while_its_workload_holds_quota() {
    let fixture = Fixture::new("");
    let reserve = |reserved: &str| {
        let items = [workload("other", "False"), workload("job-train", reserved)];
        fixture.server.put(WORKLOADS, workloads(&items));
    };
    let none = json!({});
    let before = suspended("near", &none);
    let refusal = |queue: &str| {
        format!(
            "metadata.labels[kueue.x-k8s.io/queue-name]: Invalid value: {queue:?}: field is immutable"
        )
    };
    for queue in ["far", ""] {
        let after = suspended(queue, &none);
        reserve("True");
        assert_eq!(fixture.refusal(&after, &before).await, Some(refusal(queue)));
        reserve("False");
        assert_eq!(fixture.refusal(&after, &before).await, None, "it waits without quota");
    }
    // Other changes read nothing, and a request that suspends the Job stops it before it moves.
    reserve("True");
    let n_reads = fixture.server.requests().len();
    let mut labelled = before.clone();
    labelled["metadata"]["labels"]["a"] = json!("b");
    assert_eq!(fixture.refusal(&labelled, &before).await, None);
    let mut running = before.clone();
    running["spec"]["suspend"] = json!(false);
    assert_eq!(fixture.refusal(&suspended("far", &none), &running).await, None);
    assert_eq!(fixture.server.requests().len(), n_reads);
}

#[tokio::test]
async fn a_suspended_job_keeps_its_queue_while_the_workload_that_it_names_holds_quota() {
    let fixture = Fixture::new("");
    let named = json!({"kueue.x-k8s.io/prebuilt-workload-name": "mine"});
    let (before, after) = (suspended("near", &named), suspended("far", &named));
    assert_eq!(fixture.refusal(&after, &before).await, None, "it does not exist yet");
    fixture.server.put(&format!("{WORKLOADS}/mine"), workload("mine", "True"));
    let refusal = fixture.refusal(&after, &before).await.expect("a refusal");
    assert!(refusal.ends_with("Invalid value: \"far\": field is immutable"), "{refusal}");
}

#[tokio::test]
async fn finished_slices_of_an_elastic_job_do_not_keep_it_in_its_queue() {
    let fixture = Fixture::new("");
    let elastic = json!({"kueue.x-k8s.io/elastic-job": "true"});
    let (before, after) = (suspended("near", &elastic), suspended("far", &elastic));
    for (slice, moves) in [("False", true), ("True", false)] {
        let slices = [finished("job-train-1"), workload("job-train-2", slice)];
        fixture.server.put(WORKLOADS, workloads(&slices));
        assert_eq!(fixture.refusal(&after, &before).await.is_none(), moves, "{slice}");
    }
    assert_eq!(fixture.server.requests(), [WORKLOADS; 2], "a name does not find the slices");
}

#[tokio::test]
async fn the_workload_of_a_job_is_read_by_its_name() {
    let fixture = Fixture::new("");
    let (before, after) = (suspended("near", &json!({})), suspended("far", &json!({})));
    let job = decode_job(job::kind(), before.clone()).expect("a Job");
    let gates = fixture.webhooks().settings.gates;
    let named = format!("{WORKLOADS}/{}", construct_workload::workload_name_for(&job, gates));
    for (workload, moves) in
        [(workload("w", "True"), false), (workload("w", "False"), true), (finished("w"), true)]
    {
        fixture.server.put(&named, workload.clone());
        assert_eq!(fixture.refusal(&after, &before).await.is_none(), moves, "{workload}");
    }
    assert_eq!(fixture.server.requests(), [&*named; 3], "no list");
}

#[tokio::test(start_paused = true)]
async fn a_job_does_not_move_while_its_workload_cannot_be_read() {
    let mut fixture = Fixture::new("");
    fixture.server.silent = true;
    let (before, after) = (suspended("near", &json!({})), suspended("far", &json!({})));
    let refusal = fixture.refusal(&after, &before).await.expect("a refusal");
    assert!(refusal.ends_with("could not be read in time; try again"), "{refusal}");
}

#[tokio::test]
async fn kinds_without_webhooks_are_allowed_unchanged() {
    let fixture =
        Fixture::new("integrations: {frameworks: [sparkoperator.k8s.io/sparkapplication]}");
    for framework in INTEGRATIONS {
        for verb in ["mutate", "validate"] {
            let path = framework.webhook_path(verb);
            let answer =
                fixture.call(&path, review("team", &json!("no object"), &Value::Null)).await;
            assert_eq!(answer, json!({"uid": "u", "allowed": true}), "{path}");
        }
    }
}
