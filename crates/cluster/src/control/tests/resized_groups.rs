//! An elastic RayCluster that runs on a worker and changes its size (docs/reference/multikueue.md §2.13): the manager alone writes it.

use super::{
    dispatched::{connect, dispatching_lists, done, east},
    elastic_copies::ends_and_sizes,
    *,
};

fn ray_cluster() -> Kind {
    Kinds::built_in().find("ray.io/v1", "RayCluster").expect("a built-in kind").clone()
}

fn template(name: &str) -> Value {
    let resources = json!({"requests": {"cpu": "1"}});
    json!({"spec": {"containers": [{"name": name, "resources": resources}]}})
}

/// A RayCluster with so many workers.
fn cluster_of(workers: i32, version: &str) -> Value {
    json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {
            "name": "ray", "namespace": "ns", "uid": "ray-1", "resourceVersion": version,
            "labels": {"kueue.x-k8s.io/queue-name": "lq"},
            "annotations": {"kueue.x-k8s.io/elastic-job": "true"},
        },
        "spec": {
            "suspend": false, "managedBy": "kueue.x-k8s.io/multikueue",
            "headGroupSpec": {"template": template("head")},
            "workerGroupSpecs": [{
                "groupName": "workers", "replicas": workers, "minReplicas": 1, "maxReplicas": 9,
                "template": template("worker"),
            }],
        },
        "status": {"state": "ready"},
    })
}

fn decoded(object: Value) -> Arc<JobObject> {
    Arc::new(ray_cluster().decode(object).expect("a RayCluster decodes"))
}

fn name() -> String {
    let cluster = decoded(cluster_of(3, "20"));
    ::jobs::construct_workload::workload_name_for(&*cluster, ::jobs::JobGates::default())
}

/// Its Workload, or with another origin and without an owner the clone.
fn workload_of(workers: i32, version: &str) -> Value {
    let gates = ::jobs::JobGates::default();
    let sets = decoded(cluster_of(workers, version)).pod_sets(gates);
    let admitted = |name: &str, count: i32| {
        let usage = json!({"cpu": count.to_string()});
        json!({"name": name, "count": count, "flavors": {"cpu": "default"}, "resourceUsage": usage})
    };
    let mut workload = workload();
    workload["metadata"] = json!({
        "name": name(), "namespace": "ns", "uid": "wl-1", "resourceVersion": version,
        "annotations": {"kueue.x-k8s.io/elastic-job": "true"},
        "ownerReferences": [{
            "apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "ray", "uid": "ray-1",
            "controller": true,
        }],
    });
    workload["spec"]["podSets"] = json!(sets);
    workload["status"]["clusterName"] = json!("east");
    workload["status"]["admissionChecks"] =
        json!([{"name": "workers", "state": "Ready", "message": ""}]);
    workload["status"]["admission"]["podSetAssignments"] =
        json!([admitted("head", 1), admitted("workers", 3)]);
    workload
}

/// The clone and the copy with so many workers each.
fn copies_of(clone_workers: i32, copy_workers: i32) -> (Value, Value) {
    let origin = json!({"kueue.x-k8s.io/multikueue-origin": "multikueue"});
    let mut clone = workload_of(clone_workers, "51");
    clone["metadata"] = json!({
        "name": name(), "namespace": "ns", "uid": "clone-1", "resourceVersion": "51", "labels": origin,
        "annotations": {"sluice.dev/epoch": "1", "kueue.x-k8s.io/elastic-job": "true"},
    });
    let mut copy = cluster_of(copy_workers, "52");
    copy["spec"]["managedBy"] = Value::Null;
    copy["metadata"]["uid"] = json!("copy-1");
    copy["metadata"]["labels"] = origin;
    copy["metadata"]["annotations"] = json!({
        "sluice.dev/epoch": "1", "kueue.x-k8s.io/elastic-job": "true",
        "kueue.x-k8s.io/prebuilt-workload-name": name(),
    });
    (clone, copy)
}

fn copies(objects: Vec<Value>) -> ManagerInput {
    let objects = objects.into_iter().map(decoded).collect();
    east(WorkerInput::Job(ray_cluster(), Change::Reset { objects, removed: vec![] }))
}

/// A manager of a RayCluster and its Workload with so many workers, and of copies with as many as these.
fn manager(workers: i32, (clone_workers, copy_workers): (i32, i32)) -> ManagerControl {
    let mut configuration = Configuration::default();
    configuration.integrations.frameworks =
        ["batch/job", "ray.io/raycluster"].map(str::to_owned).to_vec();
    let kinds = JobKinds::configured(&configuration, &Gates::default(), &Kinds::default());
    let mut control = leading(dispatching_settings_for(CAPACITY, &kinds));
    let other = json!({"metadata": {"name": "other", "namespace": "ns", "uid": "o", "resourceVersion": "9"},
        "spec": {"suspend": true, "template": {}}});
    let lists = dispatching_lists(&other, &[workload_of(workers, "21")]);
    lists.into_iter().for_each(|input| control.observe(input, NOW));
    let objects = vec![decoded(cluster_of(workers, "20"))];
    let own = ManagerInput::Job(ray_cluster(), Change::Reset { objects, removed: vec![] });
    control.observe(own, NOW);
    let (clone, copy) = copies_of(clone_workers, copy_workers);
    connect(&mut control, vec![clone], vec![]);
    control.observe(copies(vec![copy]), NOW);
    control
}

/// Sizes that are written, as `what workers`, and every order that ends work.
fn resizes(step: &Decisions) -> Vec<String> {
    ends_and_sizes(step, |_, body| {
        let clone = body.pointer("/spec/podSets/1/count").map(|n| format!("clone {n}"));
        let copy = body.pointer("/spec/workerGroupSpecs/0/replicas").map(|n| format!("copy {n}"));
        clone.or(copy)
    })
}

fn ticket(step: &Decisions) -> Ticket {
    let order = step.orders.iter().find(|order| order.ticket.purpose == Purpose::ResizeCopy);
    order.expect("a size is written").ticket.clone()
}

#[test]
fn the_clone_shrinks_before_the_copy_and_nothing_follows() {
    let mut control = manager(2, (3, 3));
    let step = control.decide(NOW);
    assert_eq!(resizes(&step), ["clone 2"]);
    let (mut clone, _) = copies_of(2, 3);
    clone["metadata"]["resourceVersion"] = json!("80");
    done(&mut control, &step, "resize-copy", clone, NOW);
    let step = control.decide(NOW);
    assert_eq!(resizes(&step), ["copy 2"]);
    let (_, mut copy) = copies_of(2, 2);
    copy["metadata"]["resourceVersion"] = json!("81");
    done(&mut control, &step, "resize-copy", copy, NOW);
    assert_eq!(resizes(&control.decide(NOW)), [""; 0]);
}

#[test]
fn a_restarted_manager_goes_on_where_the_copies_are() {
    let after_restart = |copies| resizes(&manager(2, copies).decide(NOW));
    assert_eq!(after_restart((3, 3)), ["clone 2"]);
    assert_eq!(after_restart((2, 3)), ["copy 2"]);
    assert_eq!(after_restart((2, 2)), [""; 0]);
}

#[test]
fn a_lost_answer_is_followed_by_what_the_watch_shows() {
    let lost = || {
        let mut control = manager(2, (2, 3));
        let ticket = ticket(&control.decide(NOW));
        control.answered(&ticket, WriteOutcome::Unknown("lost".into()), NOW);
        assert_eq!(resizes(&control.decide(NOW)), [""; 0], "not in a loop");
        control
    };
    let later = NOW + std::time::Duration::from_secs(60);
    assert_eq!(resizes(&lost().decide(later)), ["copy 2"], "it was not applied");
    let mut control = lost();
    let (_, mut copy) = copies_of(2, 2);
    copy["metadata"]["resourceVersion"] = json!("81");
    let applied = WorkerInput::Job(ray_cluster(), Change::Apply(decoded(copy)));
    control.observe(east(applied), NOW);
    assert_eq!(resizes(&control.decide(later)), [""; 0], "it was applied");
}

#[test]
fn a_conflict_waits_for_the_newer_copy_and_keeps_what_the_worker_wrote() {
    let mut control = manager(2, (2, 3));
    let ticket = ticket(&control.decide(NOW));
    let conflict =
        WriteOutcome::Refused { code: 409, reason: "Conflict".into(), message: "newer".into() };
    control.answered(&ticket, conflict, NOW);
    assert_eq!(resizes(&control.decide(NOW)), [""; 0]);
    let (_, mut copy) = copies_of(2, 3);
    copy["metadata"]["resourceVersion"] = json!("90");
    copy["spec"]["workerGroupSpecs"][0]["template"]["metadata"] = json!({"labels": {"of": "east"}});
    let newer = WorkerInput::Job(ray_cluster(), Change::Apply(decoded(copy)));
    control.observe(east(newer), NOW);
    let later = NOW + std::time::Duration::from_secs(60);
    let step = control.decide(later);
    assert_eq!(resizes(&step), ["copy 2"]);
    let order = step.orders.iter().find(|order| order.ticket.purpose == Purpose::ResizeCopy);
    let body: Value =
        serde_json::from_slice(order.expect("a size").write.request().body()).expect("JSON");
    assert_eq!(body["metadata"]["resourceVersion"], "90");
    let template = &body["spec"]["workerGroupSpecs"][0]["template"];
    assert_eq!(template["metadata"]["labels"]["of"], "east", "a list is written as a whole");
}
