//! Clusters race for a Workload: the dispatchers AllAtOnce and Incremental (docs/reference/multikueue.md §2.4).

use jiff::ToSpan;

use super::{
    dispatched::{dispatching_lists, hub_job, name, orders},
    *,
};

const API: &str = "kueue.x-k8s.io/v1beta2";

/// The Workload with quota, nominated for these clusters.
pub(super) fn reserved(version: &str, nominated: &[&str]) -> Value {
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

pub(super) fn manager_of(settings: ManagerSettings) -> ManagerControl {
    let mut control = leading(settings);
    let mut job = hub_job("20", true, &json!({}));
    job["metadata"]["annotations"] = json!({});
    let lists = dispatching_lists(&job, &[reserved("30", &[])]);
    lists.into_iter().for_each(|input| control.observe(input, NOW));
    add_west(&mut control);
    control
}

/// Adds the worker `west` beside `east`.
fn add_west(control: &mut ManagerControl) {
    let config = json!({
        "apiVersion": API, "kind": "MultiKueueConfig", "metadata": {"name": "all", "resourceVersion": "40"},
        "spec": {"clusters": ["west", "east"]},
    });
    control.observe(ManagerInput::MultiKueueConfig(Change::Apply(shared(config))), NOW);
    let west = json!({"metadata": {"name": "west", "resourceVersion": "41"}, "spec": {}});
    control.observe(ManagerInput::MultiKueueCluster(Change::Apply(shared(west))), NOW);
}

pub(super) fn worker(control: &mut ManagerControl, name: &str, input: WorkerInput) {
    control.observe(ManagerInput::Worker(name.into(), input), NOW);
}

pub(super) fn connect(control: &mut ManagerControl, name: &str) {
    let link = ConnectionStatus { active: true, reason: "Active", message: String::new() };
    worker(control, name, WorkerInput::Connection(link));
    worker(control, name, WorkerInput::Workload(list(vec![])));
    worker(control, name, WorkerInput::Job(batch_job(), jobs(vec![])));
    worker(control, name, WorkerInput::Capacity(list(vec![])));
}

/// The clone as its worker holds it.
pub(super) fn clone(version: &str, admitted: bool) -> Value {
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
pub(super) fn created(control: &mut ManagerControl, step: &Decisions, name: &str, clone: Value) {
    dispatched::done(control, step, "clone-create", clone.clone(), NOW);
    worker(control, name, WorkerInput::Workload(Change::Apply(shared(clone))));
}

/// The body of the only order to a place.
pub(super) fn body(step: &Decisions, to: &str) -> Value {
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
    // The other one admits its clone as well, in the same second, while the deletion is on the way.
    worker(&mut control, "east", WorkerInput::Workload(Change::Apply(shared(clone("61", true)))));
    assert_eq!(
        orders(&control.decide(NOW)),
        ["east clone-delete"],
        "the first one stays the first"
    );
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
fn the_queues_of_a_single_worker_without_a_report_have_all_the_time_they_need() {
    let mut control = manager_of(capacity_settings());
    connect(&mut control, "east");
    let step = control.decide(NOW);
    assert_eq!(body(&step, "hub")["status"]["nominatedClusterNames"], json!(["east"]));
    dispatched::done(&mut control, &step, "reserve", reserved("51", &["east"]), NOW);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["east clone-create"], "no job before its queues admit it");
    created(&mut control, &step, "east", clone("60", false));
    for minutes in [0, 2, 20] {
        assert_eq!(orders(&control.decide(NOW + minutes.minutes())), [""; 0], "{minutes}");
    }
    worker(&mut control, "east", WorkerInput::Workload(Change::Apply(shared(clone("61", true)))));
    assert_eq!(orders(&control.decide(NOW + 21.minutes())), ["hub dispatched"]);
}

/// A Workload that fits on no node of `east`, in the state after a write that reserved its quota, nominated for these clusters.
pub(super) fn large(version: &str, nominated: &[&str]) -> Value {
    let mut value = gang_reservation::waiting("large", 1, 20);
    value["metadata"]["resourceVersion"] = json!(version);
    value["status"] = json!({
        "admission": {"clusterQueue": "cq", "podSetAssignments": [
            {"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "20"}},
        ]},
        "conditions": [
            {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": ""},
        ],
        "admissionChecks": [{"name": "workers", "state": "Pending", "message": ""}],
        "nominatedClusterNames": nominated,
    });
    value
}

#[test]
fn the_queues_of_a_worker_without_a_report_get_a_round_beside_one_that_reports() {
    let mut control = gang_reservation::manager(&json!({}));
    add_west(&mut control);
    connect(&mut control, "west");
    observe(&mut control, gang_reservation::waiting("large", 1, 20));
    let step = control.decide(NOW);
    assert!(orders(&step).contains(&"hub reserve".to_owned()), "{:?}", orders(&step));
    assert_eq!(body(&step, "hub")["status"]["nominatedClusterNames"], Value::Null);
    dispatched::done(&mut control, &step, "reserve", large("50", &[]), NOW);

    let step = control.decide(NOW);
    assert_eq!(body(&step, "hub")["status"]["nominatedClusterNames"], json!(["west"]));
    dispatched::done(&mut control, &step, "reserve", large("51", &["west"]), NOW);
    let ends = NOW + 5.minutes();
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["west clone-create"]);
    let mut copy = large("60", &[]);
    (copy["metadata"]["labels"], copy["status"]) =
        (clone("60", false)["metadata"]["labels"].take(), json!({}));
    copy["metadata"]["annotations"] = json!({"sluice.dev/epoch": "1"});
    created(&mut control, &step, "west", copy);
    let step = control.decide(ends - 1.seconds());
    assert!(!orders(&step).iter().any(|one| one.contains("epoch")), "{:?}", orders(&step));
    let step = control.decide(ends);
    assert!(orders(&step).iter().any(|one| one.contains("epoch")), "{:?}", orders(&step));
}

/// The Workload as an external dispatcher leaves it.
fn nominated_by_others(
    control: &mut ManagerControl,
    version: &str,
    clusters: &[&str],
) -> Decisions {
    observe(control, reserved(version, clusters));
    control.decide(NOW)
}

/// A manager whose clusters are nominated by another program.
fn external() -> ManagerControl {
    let mut control = manager_of(dispatching_settings("example.com/dispatcher"));
    connect(&mut control, "east");
    connect(&mut control, "west");
    control
}

#[test]
fn an_external_dispatcher_nominates_adds_and_withdraws() {
    let mut control = external();
    assert_eq!(orders(&control.decide(NOW)), [""; 0], "quota stays, and nothing is nominated");
    let step = nominated_by_others(&mut control, "50", &["east"]);
    assert_eq!(orders(&step), ["east clone-create"], "the job follows the cluster that admits");
    created(&mut control, &step, "east", clone("60", false));
    assert_eq!(
        orders(&control.decide(NOW + 10.minutes())),
        [""; 0],
        "the dispatcher has its own time"
    );
    let step = nominated_by_others(&mut control, "51", &["east", "west"]);
    assert_eq!(orders(&step), ["west clone-create"]);
    created(&mut control, &step, "west", clone("70", false));
    let step = nominated_by_others(&mut control, "52", &["west"]);
    assert_eq!(orders(&step), ["east clone-delete"], "it was withdrawn");
    worker(&mut control, "west", WorkerInput::Workload(Change::Apply(shared(clone("71", true)))));
    let key = Key { namespace: Some("ns".into()), name: name().into() };
    worker(&mut control, "east", WorkerInput::Workload(Change::Delete(key)));
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub dispatched"]);
    let order = step.orders.iter().find(|one| one.ticket.purpose == Purpose::Dispatched);
    let body: Value = serde_json::from_slice(order.expect("it was ordered").write.request().body())
        .expect("JSON");
    assert_eq!(body["status"]["clusterName"], "west");
    let left = &body["status"]["nominatedClusterNames"];
    assert_eq!(*left, json!([]), "left out, it would stay with its field manager");
}

#[test]
fn what_an_external_dispatcher_nominates_waits_for_its_connection() {
    let mut control = manager_of(dispatching_settings("example.com/dispatcher"));
    let step = nominated_by_others(&mut control, "50", &["east"]);
    assert_eq!(orders(&step), [""; 0]);
    assert_eq!(orders(&control.decide(NOW + 40.minutes())), [""; 0], "quota and nomination stay");
    connect(&mut control, "east");
    assert_eq!(orders(&control.decide(NOW + 41.minutes())), ["east clone-create"]);
}

#[test]
fn an_external_dispatcher_cannot_nominate_a_cluster_of_another_config() {
    let mut control = external();
    let north = json!({"metadata": {"name": "north", "resourceVersion": "43"}, "spec": {}});
    control.observe(ManagerInput::MultiKueueCluster(Change::Apply(shared(north))), NOW);
    connect(&mut control, "north");
    let step = nominated_by_others(&mut control, "50", &["north"]);
    assert_eq!(orders(&step), [""; 0]);
    let step = nominated_by_others(&mut control, "51", &["north", "west"]);
    assert_eq!(orders(&step), ["west clone-create"]);
}

#[test]
fn an_external_dispatcher_cannot_nominate_a_cluster_without_the_checkpoint_that_a_job_requires() {
    let mut control = external();
    let mut workload = reserved("50", &["east", "west"]);
    workload["metadata"]["annotations"] =
        json!({"sluice.dev/checkpoint": "required", "sluice.dev/last-cluster": "west"});
    observe(&mut control, workload.clone());
    assert_eq!(orders(&control.decide(NOW)), ["west clone-create"]);
    workload["metadata"]["annotations"]["sluice.dev/checkpoint"] = json!("preferred");
    let mut control = external();
    observe(&mut control, workload);
    assert_eq!(orders(&control.decide(NOW)), ["east clone-create", "west clone-create"]);
}

#[test]
fn a_cluster_that_was_nominated_stays_so() {
    let mut control = manager();
    observe(&mut control, reserved("50", &["east"]));
    connect(&mut control, "west");
    let step = control.decide(NOW);
    assert_eq!(body(&step, "hub")["status"]["nominatedClusterNames"], json!(["east", "west"]));
}

/// The MultiKueueConfig has these clusters from now on.
fn configure(control: &mut ManagerControl, clusters: &[&str]) {
    let config = json!({
        "apiVersion": API, "kind": "MultiKueueConfig", "metadata": {"name": "all", "resourceVersion": "45"},
        "spec": {"clusters": clusters},
    });
    control.observe(ManagerInput::MultiKueueConfig(Change::Apply(shared(config))), NOW);
}

#[test]
fn a_nominated_cluster_that_leaves_the_config_loses_nomination_and_clone() {
    let mut control = manager();
    connect(&mut control, "east");
    let step = control.decide(NOW);
    dispatched::done(&mut control, &step, "reserve", reserved("50", &["east"]), NOW);
    let step = control.decide(NOW);
    created(&mut control, &step, "east", clone("60", false));
    connect(&mut control, "west");
    let step = control.decide(NOW);
    dispatched::done(&mut control, &step, "reserve", reserved("51", &["east", "west"]), NOW);
    let step = control.decide(NOW);
    created(&mut control, &step, "west", clone("70", true));
    configure(&mut control, &["east"]);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["west clone-delete", "hub reserve"]);
    assert_eq!(body(&step, "hub")["status"]["nominatedClusterNames"], json!(["east"]));
    dispatched::done(&mut control, &step, "reserve", reserved("52", &["east"]), NOW);
    let key = Key { namespace: Some("ns".into()), name: name().into() };
    worker(&mut control, "west", WorkerInput::Workload(Change::Delete(key)));
    dispatched::done(&mut control, &step, "clone-delete", Value::Null, NOW);
    assert_eq!(orders(&control.decide(NOW)), [""; 0], "the race goes on without it");

    configure(&mut control, &["north"]);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["east clone-delete", "hub reserve"]);
    assert_eq!(body(&step, "hub")["status"]["nominatedClusterNames"], json!([]));
}

#[test]
fn a_config_that_is_made_again_keeps_its_nominations() {
    let mut control = manager();
    connect(&mut control, "east");
    let step = control.decide(NOW);
    dispatched::done(&mut control, &step, "reserve", reserved("51", &["east"]), NOW);
    let step = control.decide(NOW);
    created(&mut control, &step, "east", clone("60", false));
    let key = Key { namespace: None, name: "all".into() };
    control.observe(ManagerInput::MultiKueueConfig(Change::Delete(key.clone())), NOW);
    assert!(!orders(&control.decide(NOW)).iter().any(|one| one.contains("clone-delete")));
    configure(&mut control, &["east"]);
    assert_eq!(orders(&control.decide(NOW)), [""; 0]);
    control.observe(ManagerInput::MultiKueueConfig(Change::Delete(key)), NOW);
    control.decide(NOW);
    configure(&mut control, &["north"]);
    assert_eq!(orders(&control.decide(NOW)), ["east clone-delete", "hub reserve"]);
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
    assert_eq!(nominated(&step), json!(["west", "east"]), "the next one comes last");
    let now = NOW + 300.seconds();
    dispatched::done(&mut control, &step, "reserve", reserved("51", &["west", "east"]), now);
    assert_eq!(orders(&control.decide(now)), ["east clone-create"], "the order is no change");
}

#[test]
fn hazard_5_a_new_leader_lets_the_round_pass_first() {
    let mut control = incremental();
    observe(&mut control, reserved("31", &["west"]));
    connect(&mut control, "east");
    connect(&mut control, "west");
    let mut copy = clone("60", false);
    copy["metadata"]["resourceVersion"] = json!("61");
    worker(&mut control, "west", WorkerInput::Workload(Change::Apply(shared(copy))));
    assert_eq!(orders(&control.decide(NOW + 10.seconds())), [""; 0]);
    let step = control.decide(NOW + 400.seconds());
    assert_eq!(body(&step, "hub")["status"]["nominatedClusterNames"], json!(["west", "east"]));
}

#[test]
fn hazard_1_a_worker_that_hangs_delays_no_other() {
    let mut control = manager();
    connect(&mut control, "east");
    // It accepts connections and completes no list.
    let link = ConnectionStatus { active: true, reason: "Active", message: String::new() };
    worker(&mut control, "west", WorkerInput::Connection(link));
    let step = control.decide(NOW);
    assert_eq!(body(&step, "hub")["status"]["nominatedClusterNames"], json!(["east"]));
    dispatched::done(&mut control, &step, "reserve", reserved("50", &["east"]), NOW);
    assert_eq!(orders(&control.decide(NOW)), ["east clone-create"]);
}

#[test]
fn hazard_2_nothing_is_read_on_the_path_of_a_dispatch() {
    let mut control = manager();
    connect(&mut control, "east");
    connect(&mut control, "west");
    let nominate = control.decide(NOW);
    dispatched::done(&mut control, &nominate, "reserve", reserved("50", &["east", "west"]), NOW);
    let create = control.decide(NOW);
    assert_eq!(orders(&create), ["east clone-create", "west clone-create"]);
    created(&mut control, &create, "east", clone("60", true));
    let all = [nominate, create, control.decide(NOW)];
    let mut sent = all.iter().flat_map(|step| &step.orders);
    assert!(sent.all(|order| !order.ticket.purpose.is_read() && order.write.request().method() != "GET"));
}

/// The Workload is recorded on `east`, which has admitted it. Returns the write.
fn record(control: &mut ManagerControl) -> Decisions {
    connect(control, "east");
    let step = control.decide(NOW);
    dispatched::done(control, &step, "reserve", reserved("50", &["east"]), NOW);
    let step = control.decide(NOW);
    created(control, &step, "east", clone("60", true));
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub dispatched"]);
    dispatched::done(control, &step, "dispatched", recorded("52", "Ready"), NOW);
    step
}

/// The Workload on `east` with its check in this state.
fn recorded(version: &str, state: &str) -> Value {
    let mut recorded = reserved(version, &[]);
    recorded["status"]["clusterName"] = json!("east");
    recorded["status"]["admissionChecks"][0]["state"] = json!(state);
    // Admitted, and its pods are not ready yet.
    recorded["status"]["conditions"] = workload()["status"]["conditions"].clone();
    recorded
}

#[test]
fn a_job_with_ended_pods_of_an_earlier_dispatch_is_created_on_the_cluster_that_has_won() {
    let mut control =
        leading(dispatching_settings("kueue.x-k8s.io/multikueue-dispatcher-all-at-once"));
    let suspended = json!({"type": "Suspended", "status": "True"});
    let before = json!({"failed": 1, "conditions": [suspended]});
    let mut job = hub_job("20", true, &before);
    job["metadata"]["annotations"] = json!({});
    let lists = dispatching_lists(&job, &[reserved("30", &[])]);
    lists.into_iter().for_each(|input| control.observe(input, NOW));
    add_west(&mut control);
    record(&mut control);
    let step = control.decide(NOW);
    assert!(orders(&step).contains(&"east job-create".to_owned()), "{:?}", orders(&step));
    assert!(!orders(&step).contains(&"hub check-retry".to_owned()), "{:?}", orders(&step));
}

/// Events of MultiKueue, with their types.
fn events(step: &Decisions) -> Vec<String> {
    let ours = step.events.iter().filter(|event| event.reason == "MultiKueue");
    ours.map(|event| format!("{:?} {}", event.event_type, event.note)).collect()
}

fn dispatches(step: &Decisions) -> Vec<String> {
    let named = step.measurements.iter().filter_map(|one| match one {
        measurement::Measurement::Worker(measurement::WorkerMeasurement::Dispatched(labels)) => {
            Some(("dispatched", labels))
        }
        measurement::Measurement::Worker(measurement::WorkerMeasurement::Admitted(labels)) => {
            Some(("admitted", labels))
        }
        _ => None,
    });
    named.map(|(what, one)| format!("{what} {} {}", one.cluster_queue, one.cluster)).collect()
}

#[test]
fn hazard_11_an_admission_is_reported_and_counted_once() {
    let mut control = manager();
    let before = record(&mut control);
    assert_eq!(dispatches(&before), ["dispatched cq east"]);
    let step = control.decide(NOW);
    assert_eq!(events(&step), ["Normal The workload was admitted on \"east\""]);
    assert_eq!(dispatches(&step), ["admitted cq east"]);
    for version in ["53", "54"] {
        observe(&mut control, recorded(version, "Ready"));
        let step = control.decide(NOW);
        assert_eq!((events(&step), dispatches(&step)), (vec![], vec![]), "a pass reports nothing");
    }
}

#[test]
fn an_eviction_on_a_worker_is_an_event_and_one_out_of_sync_a_warning() {
    let on_worker = "Normal Workload evicted on worker cluster: \"east\"";
    let evicted = ("Evicted", "Preempted", on_worker);
    let caused = ("Evicted", "DeactivatedDueToAdmissionCheck", on_worker);
    // A worker may write any text: the number of series is bounded.
    let unknown = ("Evicted", "Evicted4711", on_worker);
    let differs = ("Finished", "OutOfSync", "Warning Remote workload on worker cluster \"east\"");
    let lost = ("Finished", "OwnerNotFound", differs.2);
    for (condition, reason, expected) in [evicted, caused, unknown, differs, lost] {
        let mut control = manager();
        record(&mut control);
        control.decide(NOW);
        let mut copy = clone("80", true);
        let conditions = copy["status"]["conditions"].as_array_mut().expect("a list");
        conditions
            .push(json!({"type": condition, "status": "True", "reason": reason, "message": ""}));
        worker(&mut control, "east", WorkerInput::Workload(Change::Apply(shared(copy))));
        let step = control.decide(NOW);
        let order = step.orders.iter().find(|one| one.ticket.purpose == Purpose::Retry);
        let order = order.unwrap_or_else(|| panic!("{reason}: {:?}", orders(&step)));
        control.answered(&order.ticket, WriteOutcome::done(recorded("90", "Retry")), NOW);
        let step = control.decide(NOW);
        let found = events(&step);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{found:?}");
        let counted = step.measurements.iter().find_map(|one| match one {
            measurement::Measurement::Worker(measurement::WorkerMeasurement::Evicted(
                labels,
                reason,
            )) => Some((labels, reason)),
            _ => None,
        });
        let counted = counted.map(|(one, reason)| [&one.cluster_queue, &one.cluster, reason]);
        let shown = if reason == "Evicted4711" { "Other" } else { reason };
        let expected = (condition == "Evicted").then_some(["cq", "east", shown]);
        assert_eq!(counted.map(|all| all.map(String::as_str)), expected);
    }
}

#[test]
fn a_cluster_that_refused_the_clone_is_asked_again_while_the_race_goes_on() {
    let mut control = manager();
    connect(&mut control, "east");
    connect(&mut control, "west");
    let step = control.decide(NOW);
    dispatched::done(&mut control, &step, "reserve", reserved("51", &["east", "west"]), NOW);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["east clone-create", "west clone-create"]);
    let absent = || WriteOutcome::Refused {
        code: 404,
        reason: "NotFound".to_owned(),
        message: "namespaces \"ns\" not found".to_owned(),
    };
    let on_west = |order: &&Order| order.ticket.target.to == Destination::Worker("west".into());
    for order in &step.orders {
        let answer =
            if on_west(&order) { absent() } else { WriteOutcome::done(clone("60", false)) };
        control.answered(&order.ticket, answer, NOW);
    }
    let mut asked = vec![];
    for second in 1..=420_i64 {
        let now = NOW + second.seconds();
        let step = control.decide(now);
        for order in step.orders.iter().filter(on_west) {
            asked.push(second);
            control.answered(&order.ticket, absent(), now);
        }
    }
    assert_eq!(asked, [60, 180, 420], "after 1, 2 and 4 minutes");
}
