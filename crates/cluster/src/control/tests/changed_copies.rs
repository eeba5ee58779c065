//! Copies of Ray jobs that are changed on their worker (docs/reference/multikueue.md §2.3 step 5, §2.13): the spec of the clone is that
//! of the Workload, and the spec of the job there is its operator's.

use super::{
    dispatched::{connect, dispatching_lists, east, on_east},
    *,
};

/// What the tests differ by: the kind, its integration, and where the spec of its RayCluster is.
const KINDS: [(&str, &str, &str); 2] =
    [("RayCluster", "ray.io/raycluster", ""), ("RayJob", "ray.io/rayjob", "/rayClusterSpec")];

fn kind(name: &str) -> Kind {
    Kinds::built_in().find("ray.io/v1", name).expect("a built-in kind").clone()
}

fn template(name: &str) -> Value {
    let resources = json!({"requests": {"cpu": "1"}});
    json!({"spec": {"restartPolicy": "Never", "containers": [
        {"name": name, "image": "ray:1", "resources": resources},
    ]}})
}

fn job_of(name: &str, at: &str) -> Value {
    let cluster = json!({
        "headGroupSpec": {"template": template("head")},
        "workerGroupSpecs": [{
            "groupName": "workers", "replicas": 3, "template": template("worker"),
        }],
    });
    let mut spec = match at {
        "" => cluster,
        _ => {
            json!({"rayClusterSpec": cluster, "entrypoint": "run", "submissionMode": "HTTPMode"})
        }
    };
    (spec["suspend"], spec["managedBy"]) = (json!(false), json!("kueue.x-k8s.io/multikueue"));
    json!({
        "apiVersion": "ray.io/v1", "kind": name,
        "metadata": {
            "name": "ray", "namespace": "ns", "uid": "ray-1", "resourceVersion": "20",
            "labels": {"kueue.x-k8s.io/queue-name": "lq"},
        },
        "spec": spec,
    })
}

fn decoded(kind: &Kind, object: Value) -> Arc<JobObject> {
    Arc::new(kind.decode(object).expect("it decodes"))
}

fn workload_of(kind: &Kind, job: &Value) -> Value {
    let gates = ::jobs::JobGates::default();
    let object = decoded(kind, job.clone());
    let name = ::jobs::construct_workload::workload_name_for(&*object, gates);
    let owner = json!({
        "apiVersion": "ray.io/v1", "kind": job["kind"], "name": "ray", "uid": "ray-1", "controller": true,
    });
    let admitted = |name: &str, count: i32| {
        let usage = json!({"cpu": count.to_string()});
        json!({"name": name, "count": count, "flavors": {"cpu": "default"}, "resourceUsage": usage})
    };
    let mut workload = workload();
    workload["metadata"] = json!({
        "name": name, "namespace": "ns", "uid": "wl-1", "resourceVersion": "21", "ownerReferences": [owner],
    });
    workload["spec"]["podSets"] = json!(object.pod_sets(gates));
    let status = &mut workload["status"];
    status["clusterName"] = json!("east");
    status["admissionChecks"] = json!([{"name": "workers", "state": "Ready", "message": ""}]);
    status["admission"]["podSetAssignments"] = json!([admitted("head", 1), admitted("workers", 3)]);
    workload
}

/// The clone and the copy of the job.
fn copies_of(workload: &Value, job: &Value) -> (Value, Value) {
    let origin = json!({"kueue.x-k8s.io/multikueue-origin": "multikueue"});
    let name = &workload["metadata"]["name"];
    let (mut clone, mut copy) = (workload.clone(), job.clone());
    clone["metadata"] = json!({
        "name": name, "namespace": "ns", "uid": "clone-1", "resourceVersion": "51", "labels": origin,
        "annotations": {"sluice.dev/epoch": "1"},
    });
    copy["metadata"]["uid"] = json!("copy-1");
    copy["metadata"]["resourceVersion"] = json!("52");
    copy["metadata"]["labels"] = origin;
    copy["metadata"]["annotations"] =
        json!({"sluice.dev/epoch": "1", "kueue.x-k8s.io/prebuilt-workload-name": name});
    copy["spec"].as_object_mut().expect("a map").remove("managedBy");
    (clone, copy)
}

/// What a manager orders of the worker on which a job runs, with copies that are changed there.
fn ordered(
    (name, integration, at): (&str, &str, &str),
    change: impl Fn(&mut Value, &mut Value),
) -> Vec<String> {
    let kind = kind(name);
    let mut configuration = Configuration::default();
    configuration.integrations.frameworks = ["batch/job", integration].map(str::to_owned).to_vec();
    let kinds = JobKinds::configured(&configuration, &Gates::default(), &Kinds::default());
    let mut control = leading(dispatching_settings_for(CAPACITY, &kinds));
    let job = job_of(name, at);
    let workload = workload_of(&kind, &job);
    let other = json!({"metadata": {"name": "other", "namespace": "ns", "uid": "o", "resourceVersion": "9"},
        "spec": {"suspend": true, "template": {}}});
    let lists = dispatching_lists(&other, std::slice::from_ref(&workload));
    lists.into_iter().for_each(|input| control.observe(input, NOW));
    let listed =
        |object: Value| Change::Reset { objects: vec![decoded(&kind, object)], removed: vec![] };
    let (mut clone, mut copy) = copies_of(&workload, &job);
    control.observe(ManagerInput::Job(kind.clone(), listed(job)), NOW);
    for lookup in kind.lookups() {
        let none = Change::Reset { objects: vec![], removed: vec![] };
        control.observe(ManagerInput::LookedUp(lookup.object_kind(), none), NOW);
    }
    change(&mut clone, &mut copy);
    connect(&mut control, vec![clone], vec![]);
    control.observe(east(WorkerInput::Job(kind.clone(), listed(copy))), NOW);
    assert!(control.is_complete());
    on_east(&control.decide(NOW))
}

#[test]
fn step_5_a_ray_job_goes_with_a_clone_that_asks_for_other_pods() {
    for of in KINDS {
        assert_eq!(ordered(of, |_, _| {}), [""; 0], "{of:?}");
        let larger = |clone: &mut Value, _: &mut Value| {
            clone["spec"]["podSets"][1]["count"] = json!(4);
        };
        assert_eq!(ordered(of, larger), ["east job-delete"], "{of:?}");
        let other_image = |clone: &mut Value, _: &mut Value| {
            let pods = &mut clone["spec"]["podSets"][0]["template"]["spec"];
            pods["containers"][0]["image"] = json!("ray:2");
        };
        assert_eq!(ordered(of, other_image), ["east job-delete"], "{of:?}");
    }
}

/// The Kueue or the agent there compares it with the clone, and says so by OutOfSync.
#[test]
fn a_ray_job_that_is_changed_on_its_worker_runs_on() {
    for of in KINDS {
        for (field, value) in [
            ("workerGroupSpecs/0/replicas", json!(5)),
            ("headGroupSpec/template", template("other")),
        ] {
            let changed = |_: &mut Value, copy: &mut Value| {
                let at = format!("/spec{}/{field}", of.2);
                *copy.pointer_mut(&at).expect("a field") = value.clone();
            };
            assert_eq!(ordered(of, changed), [""; 0], "{of:?} {field}");
        }
    }
}
