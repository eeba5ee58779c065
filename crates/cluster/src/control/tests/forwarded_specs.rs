//! Fields of a running job that its copy on a worker follows (docs/reference/multikueue.md §2.7).

use super::{
    dispatched::{connect, dispatching_lists, east, orders},
    race::body,
    *,
};

fn kind() -> Kind {
    Kinds::built_in().find("ray.io/v1", "RayService").expect("a built-in kind").clone()
}

fn service(version: &str, config: &str) -> Value {
    let template = json!({"spec": {"containers": [
        {"name": "head", "resources": {"requests": {"cpu": "1"}}},
    ]}});
    json!({
        "metadata": {
            "name": "s", "namespace": "ns", "uid": "service-1", "resourceVersion": version,
            "labels": {"kueue.x-k8s.io/queue-name": "lq"},
        },
        "spec": {
            "managedBy": "kueue.x-k8s.io/multikueue", "serveConfigV2": config,
            "rayClusterConfig": {"suspend": false, "headGroupSpec": {"template": template}},
        },
    })
}

fn decoded(object: Value) -> Arc<JobObject> {
    Arc::new(kind().decode(object).expect("it decodes"))
}

fn listed(object: Value) -> Change<JobObject> {
    Change::Reset { objects: vec![decoded(object)], removed: vec![] }
}

/// The Workload, which runs on `east`.
fn of_service() -> Value {
    let mut value = workload();
    value["metadata"] = json!({
        "name": "rayservice-s", "namespace": "ns", "uid": "wl-1", "resourceVersion": "30",
        "ownerReferences": [{
            "apiVersion": "ray.io/v1", "kind": "RayService", "name": "s", "uid": "service-1",
            "controller": true,
        }],
    });
    let sets = decoded(service("20", "a")).pod_sets(::jobs::JobGates::default());
    value["spec"]["podSets"] = json!(sets);
    value["status"]["admission"]["podSetAssignments"] = json!([
        {"name": "head", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "1"}},
    ]);
    value["status"]["clusterName"] = json!("east");
    value["status"]["admissionChecks"] =
        json!([{"name": "workers", "state": "Ready", "message": ""}]);
    value
}

/// What the worker has: a clone, and a copy with this serve configuration.
fn copies(config: &str) -> (Value, Value) {
    let origin = json!({"kueue.x-k8s.io/multikueue-origin": "multikueue"});
    let epoch = json!({"sluice.dev/epoch": "1", "sluice.dev/workload-uid": "wl-1"});
    let mut clone = of_service();
    clone["metadata"] = json!({
        "name": "rayservice-s", "namespace": "ns", "uid": "clone-1", "resourceVersion": "51",
        "labels": origin, "annotations": epoch,
    });
    let mut copy = service("52", config);
    copy["spec"].as_object_mut().expect("a map").remove("managedBy");
    copy["metadata"]["uid"] = json!("copy-1");
    copy["metadata"]["labels"] = origin;
    copy["metadata"]["annotations"] = epoch;
    copy["metadata"]["annotations"]["kueue.x-k8s.io/prebuilt-workload-name"] =
        json!("rayservice-s");
    (clone, copy)
}

/// A manager of a RayService with the configuration `a` that runs on a worker with the same.
fn manager(gates: &str) -> ManagerControl {
    let gates = Gates::parse(gates).expect("gates");
    let mut file = Configuration::without_file(None).expect("defaults");
    file.integrations.frameworks = ["batch/job", "ray.io/rayservice"].map(str::to_owned).to_vec();
    CAPACITY.clone_into(&mut file.multi_kueue.dispatcher_name);
    let kinds = JobKinds::configured(&file, &gates, &Kinds::default());
    let mut control = leading(ManagerSettings::new(&file, &gates, &kinds, true));
    let other = json!({
        "metadata": {"name": "other", "namespace": "ns", "uid": "o", "resourceVersion": "9"},
        "spec": {"suspend": true, "template": {}},
    });
    let lists = dispatching_lists(&other, &[of_service()]);
    lists.into_iter().for_each(|input| control.observe(input, NOW));
    control.observe(ManagerInput::Job(kind(), listed(service("20", "a"))), NOW);
    for lookup in kind().lookups() {
        let none = Change::Reset { objects: vec![], removed: vec![] };
        control.observe(ManagerInput::LookedUp(lookup.object_kind(), none), NOW);
    }
    assert!(control.is_complete());
    let (clone, copy) = copies("a");
    connect(&mut control, vec![clone], vec![]);
    control.observe(east(WorkerInput::Job(kind(), listed(copy))), NOW);
    control.observe(east(WorkerInput::Capacity(list(vec![]))), NOW);
    let step = control.decide(NOW);
    assert!(!orders(&step).contains(&"east resize-copy".to_owned()), "{:?}", orders(&step));
    control
}

fn change(control: &mut ManagerControl, config: &str) -> Decisions {
    let changed = Change::Apply(decoded(service("21", config)));
    control.observe(ManagerInput::Job(kind(), changed), NOW);
    control.decide(NOW)
}

#[test]
fn hazard_3_a_changed_serve_configuration_reaches_the_running_copy() {
    let mut control = manager("");
    let step = change(&mut control, "b");
    assert_eq!(body(&step, "east")["spec"], json!({"serveConfigV2": "b"}));
    assert!(orders(&step).contains(&"east resize-copy".to_owned()));

    let mut control = manager("MultiKueueRemoteSpecSync=false");
    let step = change(&mut control, "b");
    assert!(orders(&step).iter().all(|order| !order.starts_with("east")), "{:?}", orders(&step));
}

/// The order that writes the configuration to the copy.
fn forwarded(step: &Decisions) -> Option<(Ticket, String)> {
    let order = step.orders.iter().find(|one| one.ticket.purpose == Purpose::ResizeCopy)?;
    let text = body(step, "east")["spec"]["serveConfigV2"].as_str().map(str::to_owned);
    Some((order.ticket.clone(), text.expect("a configuration")))
}

#[test]
fn a_worker_that_keeps_its_own_configuration_is_not_asked_again_and_again() {
    let mut control = manager("");
    let step = change(&mut control, "b");
    let (ticket, _) = forwarded(&step).expect("it is forwarded");
    let mut kept = copies("a").1;
    kept["metadata"]["resourceVersion"] = json!("60");
    control.answered(&ticket, WriteOutcome::done(kept), NOW);
    let step = control.decide(NOW);
    assert!(forwarded(&step).is_none(), "{:?}", orders(&step));
    assert!(step.events.iter().any(|one| one.reason == "ResizeRefused"), "{:?}", step.events);
    let later = NOW + std::time::Duration::from_secs(599);
    assert!(forwarded(&control.decide(later)).is_none());
}

#[test]
fn the_refusal_of_a_configuration_says_nothing_about_the_next_one() {
    let mut control = manager("");
    let step = change(&mut control, "b");
    let (ticket, _) = forwarded(&step).expect("it is forwarded");
    let corrected = Change::Apply(decoded(service("22", "c")));
    control.observe(ManagerInput::Job(kind(), corrected), NOW);
    let refused =
        WriteOutcome::Refused { code: 422, reason: String::new(), message: "no".to_owned() };
    control.answered(&ticket, refused, NOW);
    let later = NOW + std::time::Duration::from_secs(30);
    let (_, text) = forwarded(&control.decide(later)).expect("the next one is forwarded");
    assert_eq!(text, "c");
}
