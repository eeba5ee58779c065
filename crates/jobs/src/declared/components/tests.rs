use crds::validation::denial;
use serde_json::{Value, json};

use crate::{GenericJob, JobGates, JobObject, Kinds, validate};

const GATES: fn() -> JobGates = JobGates::default;

/// An AppWrapper with these components, in a queue.
fn wrapper(components: &Value) -> JobObject {
    let kinds = Kinds::built_in();
    let kind = kinds.find("workload.codeflare.dev/v1beta2", "AppWrapper").expect("built in");
    let labels = json!({ "kueue.x-k8s.io/queue-name": "lq" });
    let metadata = json!({ "name": "w", "namespace": "ns", "uid": "u", "labels": labels });
    let spec = json!({ "suspend": true, "components": components });
    kind.decode(json!({ "metadata": metadata, "spec": spec })).expect("it decodes")
}

fn template() -> Value {
    json!({ "spec": { "containers": [{ "name": "c", "image": "i" }] } })
}

fn object(api_version: &str, kind: &str, spec: &Value) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "o" }, "spec": spec })
}

/// A batch Job with 100 pods.
fn batch_job() -> Value {
    let spec = json!({ "parallelism": 100, "completions": 100, "template": template() });
    object("batch/v1", "Job", &spec)
}

/// A RayCluster with a group of this size.
fn ray(mut group: Value) -> Value {
    group["groupName"] = json!("w");
    group["template"] = template();
    let spec = json!({ "headGroupSpec": { "template": template() }, "workerGroupSpecs": [group] });
    object("ray.io/v1", "RayCluster", &spec)
}

fn declaring(template: &Value, pod_sets: &Value) -> JobObject {
    wrapper(&json!([{ "template": template, "podSets": pod_sets }]))
}

fn refusal(job: &JobObject) -> Option<String> {
    denial(&validate::create(job, GATES()))
}

fn counts(job: &JobObject) -> Vec<Option<i32>> {
    job.pod_sets(GATES()).iter().map(|set| set.count).collect()
}

const JOB_PATH: &str = "template.spec.template";
const HEAD: &str = "template.spec.headGroupSpec.template";
const GROUP: &str = "template.spec.workerGroupSpecs[0].template";

#[test]
fn declared_pod_sets_that_contradict_the_object_are_refused() {
    let mut with_decoy = batch_job();
    with_decoy["spec"]["decoy"] = template();
    let pod = object("v1", "Pod", &template()["spec"]);
    let unknown = object("example.com/v1", "Course", &json!({ "worker": template() }));
    let deployment = |replicas: Value| {
        object("apps/v1", "Deployment", &json!({ "replicas": replicas, "template": template() }))
    };
    let path = |path: &str| json!([{ "path": path }]);
    for (template, pod_sets, detail) in [
        (
            batch_job(),
            path(JOB_PATH),
            "podSets: Invalid value: replica count 1 differs from inferred count 100 for PodSet at path position 'template.spec.template'",
        ),
        (
            ray(json!({ "replicas": 2 })),
            path(HEAD),
            "podSets: Invalid value: DeclaredPodSet count 1 differs from inferred count 2",
        ),
        (
            pod,
            json!([{ "path": "template" }, { "path": "template" }]),
            "podSets: Invalid value: multiple DeclaredPodSets with path 'template'",
        ),
        (
            unknown.clone(),
            json!([{ "path": "template.spec.worker" }, { "path": "template.spec.worker" }]),
            "podSets: Invalid value: multiple DeclaredPodSets with path 'template.spec.worker'",
        ),
        (
            with_decoy,
            path("template.spec.decoy"),
            "podSets: Invalid value: PodSet with path 'template.spec.template' is missing",
        ),
        (
            deployment(json!("three")),
            json!([]),
            "template: Invalid value: error inferring PodSets: at path position 'template.spec.replicas' non-int value three",
        ),
    ] {
        let refused = refusal(&declaring(&template, &pod_sets));
        assert_eq!(refused, Some(format!("spec.components[0].{detail}")));
    }
    for (template, pod_sets) in [
        (batch_job(), json!([{ "path": JOB_PATH, "replicas": 100 }])),
        (batch_job(), json!([])),
        // Recorded: upstream's manager accepts it. The start refuses the job.
        (batch_job(), path("template.spec.nothing")),
        (deployment(json!(3)), json!([])),
        (unknown, json!([{ "path": "template.spec.worker", "replicas": 7 }])),
        (object("v1", "Service", &json!({})), json!([])),
        // As written for the official controller, which ignores the bounds.
        (
            ray(json!({ "replicas": 1, "minReplicas": 3 })),
            json!([{ "path": HEAD }, { "path": GROUP, "replicas": 1 }]),
        ),
    ] {
        let text = pod_sets.to_string();
        assert_eq!(refusal(&declaring(&template, &pod_sets)), None, "{text}");
    }
}

#[test]
fn a_job_without_a_queue_may_declare_what_it_likes() {
    let mut job = declaring(&batch_job(), &json!([{ "path": JOB_PATH }]));
    job.metadata_mut().labels = None;
    assert_eq!(refusal(&job), None);
    let queued = declaring(&batch_job(), &json!([{ "path": JOB_PATH }]));
    let refused = denial(&validate::update(&queued, &job, false, GATES()));
    assert!(refused.is_some_and(|text| text.contains("replica count 1")), "it enters a queue");
}

#[test]
fn a_change_is_refused_if_the_contradiction_is_new() {
    let agreeing = declaring(&batch_job(), &json!([{ "path": JOB_PATH, "replicas": 100 }]));
    let lowered = declaring(&batch_job(), &json!([{ "path": JOB_PATH, "replicas": 1 }]));
    let update =
        |new: &JobObject, old: &JobObject| denial(&validate::update(new, old, false, GATES()));
    let refused = update(&lowered, &agreeing);
    assert!(refused.is_some_and(|text| text.contains("replica count 1")));
    // One that was made before the webhook was there: the writes of controllers pass.
    let mut finalized = lowered.clone();
    finalized.metadata_mut().finalizers = Some(vec!["example.com/f".to_owned()]);
    assert_eq!(update(&finalized, &lowered), None);
    assert_eq!(update(&agreeing, &lowered), None, "it is mended");
}

#[test]
fn a_declared_pod_set_has_no_fewer_pods_than_run() {
    let of_job = |pod_sets: Value| counts(&declaring(&batch_job(), &pod_sets));
    assert_eq!(of_job(json!([{ "path": JOB_PATH }])), [Some(100)]);
    assert_eq!(of_job(json!([{ "path": JOB_PATH, "replicas": 100 }])), [Some(100)]);
    assert_eq!(of_job(json!([{ "path": JOB_PATH, "replicas": 300 }])), [Some(300)]);
    let group = ray(json!({ "replicas": 1, "minReplicas": 3 }));
    let declared = json!([{ "path": HEAD }, { "path": GROUP, "replicas": 1 }]);
    let job = declaring(&group, &declared);
    assert_eq!(counts(&job), [Some(1), Some(3)], "the operator of Ray runs three");
    // A worker with another version of Kueue counts what the copy declares.
    let copy = job.remote_job(&job.pod_sets(GATES()), GATES()).to_create();
    let component = &copy["spec"]["components"][0];
    assert_eq!(component["podSets"][1]["replicas"], 3);
    assert_eq!(component["template"]["spec"]["workerGroupSpecs"][0]["replicas"], 3);
    let copy = declaring(&batch_job(), &json!([{ "path": JOB_PATH }]));
    let copy = copy.remote_job(&copy.pod_sets(GATES()), GATES()).to_create();
    let component = &copy["spec"]["components"][0];
    assert_eq!(component["podSets"], json!([{ "path": JOB_PATH, "replicas": 100 }]));
    assert_eq!(component["template"], batch_job());
}

#[test]
fn a_job_with_pods_in_no_pod_set_says_so_and_has_no_pod_sets() {
    let undeclared = declaring(&ray(json!({ "replicas": 2 })), &json!([{ "path": HEAD }]));
    let message = "spec.components[0].podSets: Invalid value: PodSet with path 'template.spec.workerGroupSpecs[0].template' is missing";
    assert_eq!(undeclared.unresolved(), Some(message));
    assert_eq!(counts(&undeclared), []);
}

#[test]
fn a_template_of_a_wrong_type_is_named_and_refused() {
    for (field, value, part) in [
        ("containers", json!("x"), "spec.containers"),
        ("containers", json!([{ "name": "c", "image": 7 }]), "spec.containers[0].image"),
        ("initContainers", json!(["c"]), "spec.initContainers[0]"),
        ("nodeSelector", json!([1]), "spec.nodeSelector"),
        ("overhead", json!({ "cpu": "much" }), "quantities"),
    ] {
        let mut job = batch_job();
        job["spec"]["template"]["spec"][field] = value;
        let wrong = wrapper(&json!([{ "template": job }]));
        let unresolved = wrong.unresolved().unwrap_or_default().to_owned();
        let at = "spec.components[0].template.spec.template: Invalid value: ";
        assert!(unresolved.starts_with(at) && unresolved.contains(part), "{field}: {unresolved}");
        assert_eq!(refusal(&wrong), Some(unresolved));
        assert_eq!(counts(&wrong), []);
    }
}
