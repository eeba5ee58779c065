//! A Job that runs on a worker `east`, as the manager sees it.

use super::*;

/// The Workload's name is the one that is made for the Job.
pub(super) fn name() -> String {
    ::jobs::construct_workload::workload_name_for(&job(), ::jobs::JobGates::default())
}

/// The hub's Job, which shows the status of its copy.
pub(super) fn hub_job(version: &str, suspend: bool, status: &Value) -> Value {
    let mut job = serde_json::to_value(job()).expect("encodes");
    job["metadata"]["resourceVersion"] = json!(version);
    job["spec"]["suspend"] = json!(suspend);
    if suspend {
        job["metadata"]["annotations"] = json!({"kueue.x-k8s.io/stopping": "true"});
    }
    job["spec"]["managedBy"] = json!("kueue.x-k8s.io/multikueue");
    job["status"] = status.clone();
    job
}

pub(super) fn running() -> Value {
    let suspended = json!({"type": "Suspended", "status": "False"});
    json!({"active": 2, "ready": 2, "startTime": "2026-01-01T00:00:00Z", "conditions": [suspended]})
}

pub(super) fn hub_workload() -> Value {
    let mut workload = workload();
    workload["metadata"]["name"] = json!(name());
    workload["status"]["clusterName"] = json!("east");
    workload["status"]["admissionChecks"] =
        json!([{"name": "workers", "state": "Ready", "message": ""}]);
    workload
}

/// What the worker has: a clone and a Job that names it.
pub(super) fn copies() -> (Value, Value) {
    let origin = json!({"kueue.x-k8s.io/multikueue-origin": "multikueue"});
    let mut clone = workload();
    clone["metadata"] = json!({
        "name": name(), "namespace": "ns", "uid": "clone-1", "resourceVersion": "51",
        "labels": origin, "annotations": {"sluice.dev/epoch": "1"},
    });
    let mut copy = hub_job("52", false, &running());
    copy["metadata"]["uid"] = json!("copy-1");
    copy["metadata"]["labels"] = origin;
    copy["metadata"]["annotations"] =
        json!({"sluice.dev/epoch": "1", "kueue.x-k8s.io/prebuilt-workload-name": name()});
    (clone, copy)
}

/// What a manager with workers knows when it has listed everything; without the Workload where it is gone.
pub(super) fn dispatching(job: &Value, workloads: &[Value]) -> ManagerControl {
    let mut control = leading(capacity_settings());
    dispatching_lists(job, workloads).into_iter().for_each(|input| control.observe(input, NOW));
    control
}

/// Everything that a manager with workers lists.
pub(super) fn dispatching_lists(job: &Value, workloads: &[Value]) -> Vec<ManagerInput> {
    let api = "kueue.x-k8s.io/v1beta2";
    let check = json!({
        "apiVersion": api, "kind": "AdmissionCheck",
        "metadata": {"name": "workers", "resourceVersion": "5"},
        "spec": {
            "controllerName": "kueue.x-k8s.io/multikueue",
            "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all"},
        },
    });
    let config = json!({
        "metadata": {"name": "all", "resourceVersion": "6"}, "spec": {"clusters": ["east"]},
    });
    let east = json!({"metadata": {"name": "east", "resourceVersion": "7"}, "spec": {}});
    let mut inputs = lists();
    for input in &mut inputs {
        match input {
            ManagerInput::AdmissionCheck(change) => *change = list(vec![check.clone()]),
            ManagerInput::Workload(change) => *change = list(workloads.to_vec()),
            ManagerInput::Job(_, change) => *change = jobs(vec![job.clone()]),
            ManagerInput::ClusterQueue(Change::Reset { objects, .. }) => {
                let strategy = json!({"admissionChecks": [{"name": "workers"}]});
                Arc::make_mut(&mut objects[0]).spec.admission_checks_strategy =
                    Some(object(strategy));
            }
            _ => {}
        }
    }
    inputs.push(ManagerInput::MultiKueueConfig(list(vec![config])));
    inputs.push(ManagerInput::MultiKueueCluster(list(vec![east])));
    inputs.push(ManagerInput::DispatchPolicy(list(vec![])));
    inputs
}

pub(super) fn east(input: WorkerInput) -> ManagerInput {
    ManagerInput::Worker("east".into(), input)
}

pub(super) fn linked(active: bool) -> ManagerInput {
    let reason = if active { "Active" } else { "ClientConnectionFailed" };
    east(WorkerInput::Connection(ConnectionStatus { active, reason, message: String::new() }))
}

/// The worker is connected, and lists these.
pub(super) fn connect(control: &mut ManagerControl, clones: Vec<Value>, copies: Vec<Value>) {
    control.observe(linked(true), NOW);
    control.observe(east(WorkerInput::Workload(list(clones))), NOW);
    control.observe(east(WorkerInput::Job(batch_job(), jobs(copies))), NOW);
}

/// Orders, as `where purpose`.
pub(super) fn orders(step: &Decisions) -> Vec<String> {
    let words = step.orders.iter().map(|order| {
        let to = match &order.ticket.target.to {
            Destination::Home => "hub",
            Destination::Worker(name) => name,
        };
        format!("{to} {}", order.ticket.purpose)
    });
    let queues = |one: &String| one.contains("-status") || one.contains("-condition");
    let protects = |one: &String| one.contains("protect");
    words.filter(|one| !queues(one) && !protects(one)).collect()
}

/// What is ordered of the worker.
pub(super) fn on_east(step: &Decisions) -> Vec<String> {
    orders(step).into_iter().filter(|order| order.starts_with("east")).collect()
}

/// The order for this purpose is done, and the object is this now.
pub(super) fn done(
    control: &mut ManagerControl,
    step: &Decisions,
    purpose: &str,
    value: Value,
    now: Timestamp,
) {
    let order = step.orders.iter().find(|order| order.ticket.purpose.name() == purpose);
    let ticket = order.expect("it was ordered").ticket.clone();
    control.answered(&ticket, WriteOutcome::done(value), now);
}

fn gone(control: &mut ManagerControl) {
    let key = |name: &str| Key { namespace: Some("ns".into()), name: name.into() };
    control.observe(east(WorkerInput::Job(batch_job(), Change::Delete(key("train")))), NOW);
    control.observe(east(WorkerInput::Workload(Change::Delete(key(&name())))), NOW);
}

/// A manager with a Workload that runs on `east`.
pub(super) fn dispatched_to_east() -> ManagerControl {
    let mut control = dispatching(&hub_job("20", false, &json!({})), &[hub_workload()]);
    let (clone, copy) = copies();
    connect(&mut control, vec![clone], vec![copy]);
    control
}

#[test]
fn an_orphaned_job_shows_no_active_pods_once_its_copies_are_gone() {
    let mut control = dispatching(&hub_job("20", false, &running()), &[hub_workload()]);
    let (clone, copy) = copies();
    connect(&mut control, vec![clone], vec![copy]);
    assert_eq!(orders(&control.decide(NOW)), ["hub pods-ready"], "it runs");

    let key = Key { namespace: Some("ns".into()), name: name().into() };
    control.observe(ManagerInput::Workload(Change::Delete(key)), NOW);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub stop", "east job-delete"]);
    done(&mut control, &step, "stop", hub_job("60", true, &running()), NOW);
    assert_eq!(orders(&control.decide(NOW)), [""; 0], "its copy is still there");

    gone(&mut control);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub idle"]);
    let suspended = json!({"conditions": [{"type": "Suspended", "status": "True"}]});
    done(&mut control, &step, "idle", hub_job("61", true, &suspended), NOW);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub stop"], "the mark goes");
    let mut waiting = hub_job("62", true, &suspended);
    waiting["metadata"]["annotations"] = json!({});
    done(&mut control, &step, "stop", waiting, NOW);
    assert_eq!(orders(&control.decide(NOW)), ["hub workload-create"]);
}

#[test]
fn after_a_restart_an_orphaned_job_waits_for_every_worker() {
    let mut control = dispatching(&hub_job("60", true, &running()), &[]);
    assert_eq!(orders(&control.decide(NOW)), [""; 0], "nothing is known of the worker");
    control.observe(linked(false), NOW);
    assert_eq!(orders(&control.decide(NOW)), [""; 0], "it cannot be reached");
    let lost = NOW + jiff::SignedDuration::from_secs(15 * 60);
    assert_eq!(orders(&control.decide(lost)), ["hub idle"], "it is lost");

    let mut control = dispatching(&hub_job("60", true, &running()), &[]);
    connect(&mut control, vec![], vec![]);
    assert_eq!(orders(&control.decide(NOW)), ["hub idle"], "it has nothing");
}

/// The registration of an unreachable worker.
fn unreachable() -> ManagerInput {
    let west = json!({"metadata": {"name": "west", "resourceVersion": "8"}, "spec": {}});
    ManagerInput::MultiKueueCluster(Change::Apply(shared(west)))
}

#[test]
fn an_orphaned_job_waits_only_for_its_worker_if_that_is_known() {
    let mut control = dispatching(&hub_job("20", false, &running()), &[hub_workload()]);
    let (clone, copy) = copies();
    connect(&mut control, vec![clone], vec![copy]);
    control.observe(unreachable(), NOW);
    control.decide(NOW);

    let key = Key { namespace: Some("ns".into()), name: name().into() };
    control.observe(ManagerInput::Workload(Change::Delete(key)), NOW);
    let step = control.decide(NOW);
    done(&mut control, &step, "stop", hub_job("60", true, &running()), NOW);
    assert_eq!(orders(&control.decide(NOW)), [""; 0], "its copy is still there");
    gone(&mut control);
    assert_eq!(orders(&control.decide(NOW)), ["hub idle"]);
}

#[test]
fn an_orphaned_job_does_not_wait_for_a_deleted_multikueue_cluster() {
    let mut control = dispatching(&hub_job("60", true, &running()), &[]);
    control.observe(unreachable(), NOW);
    connect(&mut control, vec![], vec![]);
    assert_eq!(orders(&control.decide(NOW)), [""; 0], "west may have it");
    let west = Key { namespace: None, name: "west".into() };
    control.observe(ManagerInput::MultiKueueCluster(Change::Delete(west)), NOW);
    assert_eq!(orders(&control.decide(NOW)), ["hub idle"]);
}

/// Quota is held, the worker is nominated; whether it is being evicted.
pub(super) fn nominated(version: &str, evicted: bool) -> Value {
    let mut workload = hub_workload();
    workload["metadata"]["resourceVersion"] = json!(version);
    let status = &mut workload["status"];
    status["clusterName"] = Value::Null;
    status["nominatedClusterNames"] = json!(["east"]);
    status["admissionChecks"][0]["state"] = json!("Pending");
    status["conditions"][1]["status"] = json!("False");
    if evicted {
        let evicted =
            json!({"type": "Evicted", "status": "True", "reason": "Preempted", "message": ""});
        status["conditions"].as_array_mut().expect("a list").push(evicted);
    }
    workload
}

#[test]
fn a_create_in_flight_when_a_worker_is_lost_may_still_be_applied() {
    let waiting = hub_job("20", true, &json!({}));
    let mut control = dispatching(&waiting, &[nominated("21", false)]);
    connect(&mut control, vec![], vec![]);
    let creates = control.decide(NOW);
    let sent = orders(&creates);
    assert!(sent.contains(&"east clone-create".to_owned()), "{sent:?}");
    assert!(sent.contains(&"east job-create".to_owned()), "{sent:?}");

    control.observe(linked(false), NOW);
    connect(&mut control, vec![], vec![]);
    let evicted = shared(nominated("22", true));
    control.observe(ManagerInput::Workload(Change::Apply(evicted)), NOW);
    let early = orders(&control.decide(NOW));
    assert!(!early.contains(&"hub raise-epoch".to_owned()), "they may arrive yet: {early:?}");

    for order in creates.orders {
        if order.ticket.target.to != Destination::Home {
            let unknown = WriteOutcome::Unknown("no answer within 10s".to_owned());
            control.answered(&order.ticket, unknown, NOW);
        }
    }
    let early = orders(&control.decide(NOW));
    assert!(!early.contains(&"hub raise-epoch".to_owned()), "still: {early:?}");
    let later = NOW + jiff::SignedDuration::from_secs(9_999);
    let reads = control.decide(later);
    assert_eq!(orders(&reads), ["east settle", "east settle"], "time settles nothing");
    for order in &reads.orders {
        let nothing = json!({"metadata": {"resourceVersion": "90"}, "items": []});
        control.answered(&order.ticket, WriteOutcome::done(nothing), later);
    }
    let late = orders(&control.decide(later));
    assert!(late.contains(&"hub raise-epoch".to_owned()), "nothing came of them: {late:?}");
}

#[test]
fn a_read_finds_the_copy_that_a_create_without_an_answer_has_made() {
    let waiting = hub_job("20", true, &json!({}));
    let mut control = dispatching(&waiting, &[nominated("21", false)]);
    connect(&mut control, vec![], vec![]);
    for order in control.decide(NOW).orders {
        if order.ticket.purpose.is_create() {
            control.answered(&order.ticket, WriteOutcome::Unknown(String::new()), NOW);
        }
    }
    let later = NOW + jiff::SignedDuration::from_secs(1);
    let reads = control.decide(later);
    let (clone, copy) = copies();
    for order in reads.orders.iter().filter(|order| order.ticket.purpose == Purpose::Settle) {
        let object = if order.ticket.target.subject == Subject::Workload { &clone } else { &copy };
        let list = json!({"metadata": {"resourceVersion": "90"}, "items": [object]});
        control.answered(&order.ticket, WriteOutcome::done(list), later);
    }
    assert!(orders(&control.decide(later)).contains(&"hub dispatched".to_owned()));
}

#[test]
fn a_late_deletion_of_an_earlier_copy_does_not_hide_the_one_that_was_created() {
    let waiting = hub_job("20", true, &json!({}));
    let mut control = dispatching(&waiting, &[nominated("21", false)]);
    connect(&mut control, vec![], vec![]);
    let step = control.decide(NOW);
    let (clone, copy) = copies();
    done(&mut control, &step, "clone-create", clone, NOW);
    done(&mut control, &step, "job-create", copy, NOW);
    let key = Key { namespace: Some("ns".into()), name: name().into() };
    control.observe(east(WorkerInput::Workload(Change::Delete(key))), NOW);
    let step = control.decide(NOW);
    assert_eq!(on_east(&step), ["east settle"], "a read decides, and nothing is created again");
}

#[test]
fn a_404_to_a_write_removes_the_workload() {
    let mut control = dispatching(&hub_job("20", false, &running()), &[hub_workload()]);
    let (clone, copy) = copies();
    connect(&mut control, vec![clone], vec![copy]);
    let step = control.decide(NOW);
    let noted = step.orders.iter().find(|order| order.ticket.purpose == Purpose::PodsReady);
    let ticket = noted.expect("its pods are ready").ticket.clone();
    control.answered(&ticket, WriteOutcome::Gone, NOW);
    assert_eq!(orders(&control.decide(NOW)), ["hub stop", "east job-delete"]);
}

#[test]
fn copies_of_many_unknown_workloads_are_kept_until_a_user_confirms() {
    let mut control = dispatching(&hub_job("20", true, &json!({})), &[]);
    let (clone, copy) = copies();
    connect(&mut control, vec![clone.clone()], vec![copy.clone()]);
    let step = control.decide(NOW);
    assert!(!orders(&step).iter().any(|one| one.starts_with("east")), "{:?}", orders(&step));
    let said = east_message(&control);
    assert!(
        said.contains("copies of 1 workloads") && said.contains("sluice.dev/cleanup"),
        "{said}"
    );

    control.observe(linked(false), NOW);
    connect(&mut control, vec![clone], vec![copy]);
    let again = orders(&control.decide(NOW));
    assert!(!again.iter().any(|one| one.starts_with("east")), "it still asks: {again:?}");

    let east = json!({"spec": {}, "metadata": {
        "name": "east", "resourceVersion": "9", "annotations": {"sluice.dev/cleanup": "confirmed"},
    }});
    control.observe(ManagerInput::MultiKueueCluster(Change::Apply(shared(east))), NOW);
    let confirmed = orders(&control.decide(NOW));
    assert!(confirmed.contains(&"east job-delete".to_owned()), "{confirmed:?}");
}

#[test]
fn a_workload_that_leaves_an_unregistered_worker_gets_an_event() {
    let mut workload = hub_workload();
    workload["status"]["clusterName"] = json!("west");
    let mut control = dispatching(&hub_job("20", false, &running()), &[workload]);
    let lost = NOW + jiff::SignedDuration::from_secs(15 * 60);
    let left_behind_notes = |step: Decisions| -> Vec<String> {
        step.events
            .into_iter()
            .filter(|news| news.reason == "LeftBehind" && news.regarding.kind == "Workload")
            .map(|news| news.note)
            .collect()
    };
    assert_eq!(left_behind_notes(control.decide(NOW)), [""; 0], "it may come yet");
    let expected = "worker cluster \"west\" is not registered any more; what it has of this workload is left behind";
    assert_eq!(left_behind_notes(control.decide(lost)), [expected]);
    control.observe(linked(false), lost);
    assert_eq!(left_behind_notes(control.decide(lost)), [""; 0], "the Event is published once");
}

/// What the last write of a stop changes in the template, which the start has added to.
fn put_back(control: &mut ManagerControl, started: &Value) -> Value {
    let key = Key { namespace: Some("ns".into()), name: name().into() };
    control.observe(ManagerInput::Workload(Change::Delete(key)), NOW);
    let step = control.decide(NOW);
    let mut stopped = hub_job("60", true, &running());
    stopped["spec"]["template"] = started.clone();
    done(control, &step, "stop", stopped.clone(), NOW);
    gone(control);
    let step = control.decide(NOW);
    stopped["metadata"]["resourceVersion"] = json!("61");
    stopped["status"] = json!({"conditions": [{"type": "Suspended", "status": "True"}]});
    done(control, &step, "idle", stopped, NOW);
    let step = control.decide(NOW);
    let last = step.orders.iter().find(|order| order.ticket.purpose.name() == "stop");
    let last = last.expect("the mark goes").write.request().body();
    let patch: Value = serde_json::from_slice(last).expect("JSON");
    let mut waiting = hub_job("62", true, &json!({}));
    waiting["metadata"]["annotations"] = json!({});
    done(control, &step, "stop", waiting, NOW);
    control.decide(NOW);
    patch["spec"]["template"].clone()
}

#[test]
fn an_orphaned_job_is_restored_to_its_template() {
    let mut started = hub_job("20", false, &running());
    started["spec"]["template"]["spec"]["nodeSelector"] = json!({"pool": "large"});
    let template = started["spec"]["template"].clone();
    let mut control = dispatching(&started, &[hub_workload()]);
    let (clone, copy) = copies();
    connect(&mut control, vec![clone], vec![copy]);
    control.decide(NOW);
    assert_eq!(put_back(&mut control, &template), json!({"spec": {"nodeSelector": null}}));
    assert!(!control.core.jobs.remembers_any(), "it has stopped");
}

/// The hub's Workload with this priority.
pub(super) fn with_priority(version: &str, priority: i32) -> ManagerInput {
    let mut raised = hub_workload();
    raised["metadata"]["resourceVersion"] = json!(version);
    raised["spec"]["priority"] = json!(priority);
    ManagerInput::Workload(Change::Apply(shared(raised)))
}

/// The priority of a Workload that runs on `east` was raised to 100. Returns what is written for it.
pub(super) fn priority_raised() -> (ManagerControl, Decisions) {
    let mut control = dispatching(&hub_job("20", false, &running()), &[hub_workload()]);
    let (clone, copy) = copies();
    connect(&mut control, vec![clone], vec![copy]);
    control.decide(NOW);
    control.observe(with_priority("70", 100), NOW);
    let step = control.decide(NOW);
    (control, step)
}

#[test]
fn a_changed_priority_is_written_to_the_clone_and_running_work_stays() {
    let (mut control, step) = priority_raised();
    assert_eq!(on_east(&step), ["east priority"]);
    let order = step.orders.iter().find(|order| order.ticket.purpose == Purpose::Priority);
    let order = order.expect("a push");
    let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
    assert_eq!(
        (&body["spec"]["priority"], &body["metadata"]["uid"]),
        (&json!(100), &json!("clone-1"))
    );
    let refused =
        WriteOutcome::Refused { code: 422, reason: String::new(), message: "no".to_owned() };
    control.answered(&order.ticket, refused, NOW);
    let east: Vec<String> = orders(&control.decide(NOW));
    assert!(!east.iter().any(|order| order.starts_with("east")), "it is not asked again: {east:?}");
    assert!(!east.contains(&"hub retry".to_owned()), "the work goes on");
}

#[test]
fn hazard_6_a_job_of_another_owner_under_the_name_of_a_copy_is_a_refusal() {
    let mut control = dispatching(&hub_job("20", false, &json!({})), &[hub_workload()]);
    connect(&mut control, vec![copies().0], vec![]);
    let (mut n_creates, mut now) = (0, NOW);
    for seconds in [0, 1, 2, 4, 8, 16, 30, 30, 30] {
        now += jiff::SignedDuration::from_secs(seconds);
        let step = control.decide(now);
        let east: Vec<String> =
            orders(&step).into_iter().filter(|order| !order.starts_with("hub pods")).collect();
        // What exists is read first: it may be ours.
        let read = step.orders.iter().find(|order| order.ticket.purpose == Purpose::Settle);
        let step = match read {
            Some(read) => {
                let nothing = json!({"metadata": {"resourceVersion": "90"}, "items": []});
                control.answered(&read.ticket, WriteOutcome::done(nothing), now);
                control.decide(now)
            }
            None => step,
        };
        let create = step.orders.iter().find(|order| order.ticket.purpose == Purpose::JobCreate);
        let Some(create) = create else {
            assert_eq!(east, ["hub retry"], "the worker is taken for refusing it");
            break;
        };
        n_creates += 1;
        control.answered(&create.ticket, WriteOutcome::Exists, now);
        let at_once = orders(&control.decide(now));
        assert!(!at_once.contains(&"east job-create".to_owned()), "{at_once:?}");
        if at_once == ["hub retry"] {
            break;
        }
    }
    assert_eq!(n_creates, 4);
}

#[test]
fn a_process_that_observes_a_workload_late_removes_no_newer_copy() {
    let mut control = dispatching(&hub_job("20", false, &running()), &[hub_workload()]);
    let (mut clone, mut copy) = copies();
    clone["metadata"]["annotations"]["sluice.dev/epoch"] = json!("2");
    copy["metadata"]["annotations"]["sluice.dev/epoch"] = json!("2");
    connect(&mut control, vec![clone], vec![copy]);
    assert_eq!(on_east(&control.decide(NOW)), [""; 0], "the leader before raised the epoch");
    let mut raised = hub_workload();
    raised["metadata"]["resourceVersion"] = json!("80");
    raised["metadata"]["annotations"] = json!({"sluice.dev/epoch": "2"});
    control.observe(ManagerInput::Workload(Change::Apply(shared(raised))), NOW);
    assert_eq!(on_east(&control.decide(NOW)), [""; 0], "it is the recorded copy");
}

#[test]
fn hazard_3_a_status_is_copied_in_the_decision_that_observes_it() {
    let mut control = dispatched_to_east();
    let step = control.decide(NOW);
    assert!(step.orders.iter().any(|order| order.ticket.purpose == Purpose::SyncStatus));
}

#[test]
fn a_reservation_that_ends_after_a_refusal_keeps_its_first_reason() {
    let waiting = hub_job("20", true, &json!({}));
    let mut control = dispatching(&waiting, &[nominated("21", false)]);
    let (mut clone, _) = copies();
    clone["status"]["conditions"] = json!([{
        "type": "sluice.dev/Refused", "status": "True", "reason": "ProvisioningFailed",
        "message": "no nodes", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    connect(&mut control, vec![clone], vec![]);
    let step = control.decide(NOW);
    let mut raised = nominated("22", false);
    raised["metadata"]["annotations"] = json!({"sluice.dev/epoch": "2"});
    done(&mut control, &step, "raise-epoch", raised, NOW);
    let ends = control.decide(NOW);
    let message = |step: &Decisions| {
        let order = step.orders.iter().find(|order| {
            order.ticket.target.subject == Subject::Workload
                && order.ticket.target.to == Destination::Home
        });
        let body = order.map(|order| order.write.request().body().clone()).unwrap_or_default();
        String::from_utf8(body).expect("UTF-8")
    };
    assert!(message(&ends).contains("did not take it: no nodes"), "{}", message(&ends));
    // The clone goes, and the end of the reservation was not written.
    let key = Key { namespace: Some("ns".into()), name: name().into() };
    control.observe(east(WorkerInput::Workload(Change::Delete(key))), NOW);
    for order in &ends.orders {
        control.answered(&order.ticket, WriteOutcome::Unknown(String::new()), NOW);
    }
    let again = control.decide(NOW + jiff::SignedDuration::from_secs(90));
    assert!(message(&again).contains("did not take it: no nodes"), "{}", message(&again));
}

#[test]
fn a_late_refusal_says_nothing_about_a_later_workload_of_the_name() {
    let waiting = hub_job("20", true, &json!({}));
    let mut control = dispatching(&waiting, &[nominated("21", false)]);
    connect(&mut control, vec![], vec![]);
    let step = control.decide(NOW);
    let create = step.orders.iter().find(|one| one.ticket.purpose == Purpose::CloneCreate);
    let create = create.expect("the clone is created").ticket.clone();
    let job = step.orders.iter().find(|one| one.ticket.purpose == Purpose::JobCreate);
    let job = job.expect("the job is created").ticket.clone();

    let key = Key { namespace: Some("ns".into()), name: name().into() };
    control.observe(ManagerInput::Workload(Change::Delete(key)), NOW);
    control.decide(NOW);
    let mut successor = nominated("40", false);
    successor["metadata"]["uid"] = json!("wl-2");
    control.observe(ManagerInput::Workload(Change::Apply(shared(successor))), NOW);
    let message = "exceeded quota: small".to_owned();
    for ticket in [create, job] {
        let refused = WriteOutcome::Refused {
            code: 403,
            reason: "Forbidden".to_owned(),
            message: message.clone(),
        };
        control.answered(&ticket, refused, NOW);
    }
    let later = NOW + jiff::SignedDuration::from_secs(2);
    let ordered = orders(&control.decide(later));
    assert!(ordered.contains(&"east clone-create".to_owned()), "{ordered:?}");
}

#[test]
fn work_that_names_no_cluster_is_recorded_where_it_is_admitted() {
    let mut unrecorded = hub_workload();
    unrecorded["status"]["clusterName"] = Value::Null;
    let ready = &mut unrecorded["status"]["conditions"][2];
    (ready["status"], ready["reason"]) = (json!("True"), json!("Started"));
    let mut control = dispatching(&hub_job("20", false, &running()), &[unrecorded.clone()]);
    assert_eq!(orders(&control.decide(NOW)), [""; 0], "the worker is not listed yet");
    let (clone, copy) = copies();
    connect(&mut control, vec![clone], vec![copy]);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub dispatched"]);
    let order = step.orders.iter().find(|order| order.ticket.purpose == Purpose::Dispatched);
    let body = order.expect("it was ordered").write.request().body();
    let body: Value = serde_json::from_slice(body).expect("JSON");
    assert_eq!(body["status"]["clusterName"], "east");

    let mut alone = dispatching(&hub_job("20", false, &running()), &[unrecorded]);
    connect(&mut alone, vec![], vec![]);
    assert_eq!(orders(&alone.decide(NOW)), ["hub retry"]);
}

/// A cluster without a garbage collector would keep a job that is deleted in the foreground.
#[test]
fn a_job_that_may_have_pods_is_deleted_in_the_foreground() {
    let ended = json!({"succeeded": 2, "conditions": [{"type": "Complete", "status": "True"}]});
    for (suspended, status, expected) in [
        (false, running(), "Foreground"),
        (false, json!({}), "Foreground"),
        (true, json!({"active": 1}), "Foreground"),
        (true, json!({"active": 0, "terminating": 1}), "Foreground"),
        (true, json!({}), "Background"),
        (false, ended, "Background"),
    ] {
        let mut control = dispatching(&hub_job("20", false, &running()), &[hub_workload()]);
        let (clone, mut copy) = copies();
        (copy["spec"]["suspend"], copy["status"]) = (json!(suspended), status);
        connect(&mut control, vec![clone], vec![copy]);
        let key = Key { namespace: Some("ns".into()), name: name().into() };
        control.observe(ManagerInput::Workload(Change::Delete(key)), NOW);
        let step = control.decide(NOW);
        let order = step.orders.iter().find(|order| order.ticket.purpose == Purpose::JobDelete);
        let body = order.expect("it was ordered").write.request().body();
        let body: Value = serde_json::from_slice(body).expect("JSON");
        assert_eq!(body["propagationPolicy"], expected, "suspended: {suspended}");
        // It may have been started meanwhile.
        let version = &body["preconditions"]["resourceVersion"];
        assert_eq!(version.is_string(), suspended && expected == "Background");
    }
}
