//! Clusters race for a Workload: the dispatchers AllAtOnce and Incremental (docs/reference/multikueue.md §2.4).

use jiff::ToSpan;

use super::{
    dispatched::{dispatching_lists, hub_job, name, orders},
    *,
};

const API: &str = "kueue.x-k8s.io/v1beta2";

/// The Workload with quota, nominated for these clusters.
fn reserved(version: &str, nominated: &[&str]) -> Value {
    let mut value = workload();
    value["metadata"]["name"] = json!(name());
    value["metadata"]["resourceVersion"] = json!(version);
    value["status"]["conditions"] = json!([
        {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": ""},
    ]);
    value["status"]["admissionChecks"] =
        json!([{"name": "workers", "state": "Pending", "message": ""}]);
    value["status"]["nominatedClusterNames"] = json!(nominated);
    value
}

/// A manager of the workers `east` and `west`, which report nothing.
fn manager() -> ManagerControl {
    manager_of(dispatching_settings("kueue.x-k8s.io/multikueue-dispatcher-all-at-once"))
}

fn manager_of(settings: ManagerSettings) -> ManagerControl {
    let mut control = leading(settings);
    let mut job = hub_job("20", true, &json!({}));
    job["metadata"]["annotations"] = json!({});
    let lists = dispatching_lists(&job, &[reserved("30", &[])]);
    lists.into_iter().for_each(|input| control.observe(input, NOW));
    let config = json!({
        "apiVersion": API, "kind": "MultiKueueConfig", "metadata": {"name": "all", "resourceVersion": "40"},
        "spec": {"clusters": ["west", "east"]},
    });
    control.observe(ManagerInput::MultiKueueConfig(Change::Apply(shared(config))), NOW);
    let west = json!({"metadata": {"name": "west", "resourceVersion": "41"}, "spec": {}});
    control.observe(ManagerInput::MultiKueueCluster(Change::Apply(shared(west))), NOW);
    control
}

fn worker(control: &mut ManagerControl, name: &str, input: WorkerInput) {
    control.observe(ManagerInput::Worker(name.into(), input), NOW);
}

fn connect(control: &mut ManagerControl, name: &str) {
    let link = Connection { active: true, reason: "Active", message: String::new() };
    worker(control, name, WorkerInput::Connection(link));
    worker(control, name, WorkerInput::Workload(list(vec![])));
    worker(control, name, WorkerInput::Job(batch_job(), jobs(vec![])));
    worker(control, name, WorkerInput::Capacity(list(vec![])));
}

/// The clone as its worker holds it.
fn clone(version: &str, admitted: bool) -> Value {
    let mut value = workload();
    value["metadata"] = json!({
        "name": name(), "namespace": "ns", "uid": "clone", "resourceVersion": version,
        "labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"},
        "annotations": {"sluice.dev/epoch": "1"},
    });
    let status = if admitted { "True" } else { "False" };
    let condition = json!({
        "type": "Admitted", "status": status, "reason": "Admitted", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    value["status"] = json!({"conditions": [condition]});
    value
}

/// The create of a clone is answered, and the watch shows it.
fn created(control: &mut ManagerControl, step: &Decisions, name: &str, clone: Value) {
    dispatched::done(control, step, "clone-create", clone.clone(), NOW);
    worker(control, name, WorkerInput::Workload(Change::Apply(shared(clone))));
}

/// The body of the only order to a place.
fn body(step: &Decisions, to: &str) -> Value {
    let is_there = |order: &&Order| match &order.ticket.target.to {
        Destination::Home => to == "hub" && order.ticket.purpose.name() == "reserve",
        Destination::Worker(name) => **name == *to,
    };
    let order = step.orders.iter().find(is_there).expect("it was ordered");
    serde_json::from_slice(order.write.request().body()).expect("JSON")
}

fn observe(control: &mut ManagerControl, workload: Value) {
    control.observe(ManagerInput::Workload(Change::Apply(shared(workload))), NOW);
}

#[test]
fn every_cluster_gets_a_clone_and_only_the_first_to_admit_the_job() {
    let mut control = manager();
    assert_eq!(orders(&control.decide(NOW)), [""; 0], "no cluster is reached, and the quota stays");

    connect(&mut control, "east");
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub reserve"]);
    assert_eq!(body(&step, "hub")["status"]["nominatedClusterNames"], json!(["east"]));
    dispatched::done(&mut control, &step, "reserve", reserved("50", &["east"]), NOW);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["east clone-create"], "the job waits for the winner");
    let annotations = &body(&step, "east")["metadata"]["annotations"];
    assert_eq!(annotations["sluice.dev/assignment"], "{\"main\":{}}", "agents have no flavors");
    created(&mut control, &step, "east", clone("60", false));

    connect(&mut control, "west");
    let step = control.decide(NOW);
    assert_eq!(body(&step, "hub")["status"]["nominatedClusterNames"], json!(["east", "west"]));
    dispatched::done(&mut control, &step, "reserve", reserved("51", &["east", "west"]), NOW);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["west clone-create"]);
    created(&mut control, &step, "west", clone("70", false));

    worker(&mut control, "west", WorkerInput::Workload(Change::Apply(shared(clone("71", true)))));
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["east clone-delete"], "only one may run it");
    let key = Key { namespace: Some("ns".into()), name: name().into() };
    worker(&mut control, "east", WorkerInput::Workload(Change::Delete(key)));
    dispatched::done(&mut control, &step, "clone-delete", Value::Null, NOW);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub dispatched"]);

    let mut recorded = reserved("52", &[]);
    recorded["status"]["clusterName"] = json!("west");
    recorded["status"]["admissionChecks"][0]["state"] = json!("Ready");
    dispatched::done(&mut control, &step, "dispatched", recorded, NOW);
    let step = control.decide(NOW);
    assert!(orders(&step).contains(&"west job-create".to_owned()), "{:?}", orders(&step));
}

#[test]
fn clusters_race_under_capacity_dispatch_if_none_reports() {
    let mut control = manager_of(capacity_settings());
    connect(&mut control, "east");
    connect(&mut control, "west");
    let step = control.decide(NOW);
    assert_eq!(body(&step, "hub")["status"]["nominatedClusterNames"], json!(["east", "west"]));
    dispatched::done(&mut control, &step, "reserve", reserved("51", &["east", "west"]), NOW);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["east clone-create", "west clone-create"], "no job before one wins");
    // A report of one does not end a race that goes on.
    let report = gang_reservation::capacity();
    let report = WorkerInput::Capacity(Change::Apply(shared(report)));
    worker(&mut control, "east", report);
    created(&mut control, &step, "east", clone("60", true));
    let step = control.decide(NOW);
    assert!(!orders(&step).contains(&"hub unplace".to_owned()), "{:?}", orders(&step));
}

#[test]
fn a_cluster_that_was_nominated_stays_so() {
    let mut control = manager();
    observe(&mut control, reserved("50", &["east"]));
    connect(&mut control, "west");
    let step = control.decide(NOW);
    assert_eq!(body(&step, "hub")["status"]["nominatedClusterNames"], json!(["east", "west"]));
}

/// A manager that adds one cluster in each round.
fn incremental() -> ManagerControl {
    let mut file = Configuration::without_file(None).expect("defaults");
    file.multi_kueue.dispatcher_name =
        "kueue.x-k8s.io/multikueue-dispatcher-incremental".to_owned();
    file.multi_kueue.incremental_dispatcher_config =
        Some(config::IncrementalDispatcher { step_size: 1 });
    manager_of(ManagerSettings::new(&file, &Gates::default(), &kinds(), true))
}

#[test]
fn a_round_adds_a_cluster_after_five_minutes() {
    let mut control = incremental();
    connect(&mut control, "east");
    connect(&mut control, "west");
    let step = control.decide(NOW);
    let nominated = |step: &Decisions| body(step, "hub")["status"]["nominatedClusterNames"].clone();
    assert_eq!(nominated(&step), json!(["west"]), "the first of the MultiKueueConfig");
    dispatched::done(&mut control, &step, "reserve", reserved("50", &["west"]), NOW);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["west clone-create"]);
    created(&mut control, &step, "west", clone("60", false));

    let step = control.decide(NOW + 299.seconds());
    assert_eq!(orders(&step), [""; 0], "the round goes on");
    assert!(step.wake.is_some_and(|at| at <= NOW + 300.seconds()), "{:?}", step.wake);
    let step = control.decide(NOW + 300.seconds());
    assert_eq!(nominated(&step), json!(["east", "west"]), "nothing is withdrawn");
    let now = NOW + 300.seconds();
    dispatched::done(&mut control, &step, "reserve", reserved("51", &["east", "west"]), now);
    assert_eq!(orders(&control.decide(now)), ["east clone-create"]);
}

#[test]
fn a_new_leader_lets_the_round_pass_first() {
    let mut control = incremental();
    observe(&mut control, reserved("31", &["west"]));
    connect(&mut control, "east");
    connect(&mut control, "west");
    let mut copy = clone("60", false);
    copy["metadata"]["resourceVersion"] = json!("61");
    worker(&mut control, "west", WorkerInput::Workload(Change::Apply(shared(copy))));
    assert_eq!(orders(&control.decide(NOW + 10.seconds())), [""; 0]);
    let step = control.decide(NOW + 400.seconds());
    assert_eq!(body(&step, "hub")["status"]["nominatedClusterNames"], json!(["east", "west"]));
}
