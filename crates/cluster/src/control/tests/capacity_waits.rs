//! Workloads that wait for room on a worker while their queue, their worker and other Workloads change.

use super::{
    dispatched::{done, east, orders},
    gang_reservation::{capacity, manager, waiting},
    *,
};

/// The AdmissionCheck of the queue, active or not.
pub(super) fn check(version: &str, active: bool) -> ManagerInput {
    let status = if active { "True" } else { "False" };
    let check = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck",
        "metadata": {"name": "workers", "resourceVersion": version},
        "spec": {
            "controllerName": "kueue.x-k8s.io/multikueue",
            "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all"},
        },
        "status": {"conditions": [
            {"type": "Active", "status": status, "reason": "Active", "message": ""},
        ]},
    });
    ManagerInput::AdmissionCheck(Change::Apply(shared(check)))
}

/// A report with room for two more pods of 8 cpus.
fn larger() -> ManagerInput {
    let mut report = capacity();
    report["metadata"]["resourceVersion"] = json!("60");
    report["status"]["nodeClasses"][0]["count"] = json!(3);
    east(WorkerInput::Capacity(Change::Apply(shared(report))))
}

/// A manager with a Workload that no worker has room for.
fn without_room() -> ManagerControl {
    let mut control = manager(&json!({}));
    control.observe(ManagerInput::Workload(Change::Apply(shared(waiting("train", 2, 8)))), NOW);
    let step = control.decide(NOW);
    assert!(!orders(&step).contains(&"hub reserve".to_owned()), "no worker has room");
    control
}

fn reserves(control: &mut ManagerControl) -> bool {
    orders(&control.decide(NOW)).contains(&"hub reserve".to_owned())
}

#[test]
fn new_room_wakes_a_workload_whose_queue_was_inactive_meanwhile() {
    let mut control = without_room();
    control.observe(check("50", false), NOW);
    assert!(!reserves(&mut control), "the queue is inactive");
    control.observe(check("51", true), NOW);
    assert!(!reserves(&mut control), "there is no room yet");
    control.observe(larger(), NOW);
    assert!(reserves(&mut control));
}

#[test]
fn an_edited_choice_of_clusters_is_looked_at_at_once() {
    let elsewhere = json!({"sluice.dev/checkpoint": "required", "sluice.dev/last-cluster": "west"});
    let of_checkpoint = (elsewhere, json!({"sluice.dev/checkpoint": "anywhere"}));
    let of_affinity = (json!({"sluice.dev/affinity": "region=eu"}), json!({}));
    for (without, with) in [of_affinity, of_checkpoint] {
        let mut control = manager(&json!({}));
        let mut submit = |version: &str, annotations: &Value| {
            let mut small = waiting("train", 1, 8);
            small["metadata"]["resourceVersion"] = json!(version);
            small["metadata"]["annotations"] = annotations.clone();
            let change = Change::Apply(shared(small));
            control.observe(ManagerInput::Workload(change), NOW);
            reserves(&mut control)
        };
        assert!(!submit("60", &without), "{without} selects no cluster");
        assert!(!submit("61", &without), "nothing that decides about clusters has changed");
        assert!(submit("62", &with), "{with} selects any cluster");
    }
}

#[test]
fn an_older_state_of_a_check_is_ignored() {
    let mut control = without_room();
    control.observe(check("51", true), NOW);
    control.observe(check("50", false), NOW);
    control.observe(larger(), NOW);
    assert!(reserves(&mut control));
}

#[test]
fn another_multikueueconfig_is_asked_at_once() {
    let mut control = without_room();
    // The worker of the other configuration has room.
    let west = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueCluster",
        "metadata": {"name": "west", "uid": "west-1", "resourceVersion": "52"},
        "spec": {"clusterSource": {"kubeConfig": {"location": "west", "locationType": "Secret"}}},
    });
    let config = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueConfig",
        "metadata": {"name": "others", "resourceVersion": "53"}, "spec": {"clusters": ["west"]},
    });
    let mut report = capacity();
    report["status"]["nodeClasses"][0]["count"] = json!(3);
    let link = ConnectionStatus { active: true, reason: "Active", message: String::new() };
    let west_is = |input| ManagerInput::Worker("west".into(), input);
    for input in [
        ManagerInput::MultiKueueCluster(Change::Apply(shared(west))),
        ManagerInput::MultiKueueConfig(Change::Apply(shared(config))),
        west_is(WorkerInput::Connection(link)),
        west_is(WorkerInput::Workload(list(vec![]))),
        west_is(WorkerInput::Job(batch_job(), jobs(vec![]))),
        west_is(WorkerInput::Capacity(list(vec![report]))),
    ] {
        control.observe(input, NOW);
    }
    assert!(!reserves(&mut control), "the check names the first configuration");
    let ManagerInput::AdmissionCheck(Change::Apply(mut other)) = check("54", true) else {
        panic!("a check");
    };
    let object = Arc::make_mut(&mut other);
    object.metadata.generation = Some(2);
    let parameters = object.spec.parameters.as_mut().expect("parameters");
    parameters.name = "others".to_owned();
    control.observe(ManagerInput::AdmissionCheck(Change::Apply(other)), NOW);
    assert!(reserves(&mut control));
}

/// A finished Workload, which may be about to be deleted. Its number is that of the next Workload.
fn finished(version: &str, deleted: bool) -> Value {
    let mut value = waiting("done", 1, 1);
    value["metadata"]["resourceVersion"] = json!(version);
    if deleted {
        value["metadata"]["deletionTimestamp"] = json!(NOW.to_string());
        value["metadata"]["finalizers"] = json!(["kueue.x-k8s.io/resource-in-use"]);
    }
    value["status"]["conditions"] =
        json!([{"type": "Finished", "status": "True", "reason": "Succeeded", "message": ""}]);
    value
}

fn with_a_finished_workload() -> ManagerControl {
    let mut control = manager(&json!({}));
    control.observe(ManagerInput::Workload(Change::Apply(shared(waiting("done", 1, 1)))), NOW);
    let step = control.decide(NOW);
    done(&mut control, &step, "reserve", finished("40", false), NOW);
    control.decide(NOW);
    control
}

#[test]
fn the_deletion_of_a_finished_workload_does_not_end_the_wait_of_another() {
    let mut control = with_a_finished_workload();
    control.observe(ManagerInput::Workload(Change::Apply(shared(waiting("train", 2, 8)))), NOW);
    assert!(!reserves(&mut control), "no worker has room");
    control.observe(ManagerInput::Workload(Change::Apply(shared(finished("41", true)))), NOW);
    assert!(!reserves(&mut control), "there is no room yet");
    control.observe(larger(), NOW);
    assert!(reserves(&mut control));
}

#[test]
fn the_clone_of_a_finished_workload_is_not_counted_as_that_of_another() {
    let mut control = with_a_finished_workload();
    control.observe(ManagerInput::Workload(Change::Apply(shared(waiting("first", 1, 8)))), NOW);
    assert!(reserves(&mut control), "one node is free");
    // The report includes this clone. That of the other Workload is not made yet.
    let mut clone = waiting("done", 1, 1);
    clone["metadata"]["resourceVersion"] = json!("1");
    control.observe(east(WorkerInput::Workload(Change::Apply(shared(clone)))), NOW);
    control.observe(ManagerInput::Workload(Change::Apply(shared(waiting("second", 1, 8)))), NOW);
    assert!(!reserves(&mut control), "the node is taken");
}

#[test]
fn a_workload_that_preempts_for_room_says_so() {
    let mut control = manager(&json!({}));
    let queue = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
        "metadata": {"name": "cq", "resourceVersion": "70"},
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [{
                "coveredResources": ["cpu"],
                "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "100"}]}],
            }],
            "admissionChecksStrategy": {"admissionChecks": [{"name": "workers"}]},
            "preemption": {"withinClusterQueue": "LowerPriority"},
        },
    });
    let running = waiting("running", 1, 4);
    let mut clone = running.clone();
    clone["metadata"]["resourceVersion"] = json!("1");
    clone["metadata"]["labels"] = json!({"kueue.x-k8s.io/multikueue-origin": "multikueue"});
    let mut urgent = waiting("train", 2, 8);
    urgent["spec"]["priority"] = json!(9);
    let applied = |one| Change::Apply(shared(one));
    control.observe(ManagerInput::ClusterQueue(Change::Apply(shared(queue))), NOW);
    control.observe(ManagerInput::Workload(applied(running)), NOW);
    control.observe(east(WorkerInput::Workload(applied(clone))), NOW);
    control.observe(ManagerInput::Workload(applied(urgent)), NOW);
    let first = control.decide(NOW).orders;
    let later = NOW + jiff::SignedDuration::from_secs(2);
    let orders: Vec<Order> = first.into_iter().chain(control.decide(later).orders).collect();
    let bodies = orders.iter().map(|one| String::from_utf8_lossy(one.write.request().body()));
    let bodies: Vec<_> = bodies.collect();
    let message = r#""message":"Pending the preemption of 1 workload(s)""#;
    assert!(bodies.iter().any(|one| one.contains(message)), "{bodies:?}");
}
