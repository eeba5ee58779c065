//! Jobs of a declared kind, children of managed jobs, and kinds that cannot be observed.

use std::time::Duration;

use runtime::watch::Unavailable;

use super::{
    cluster::observe_queues,
    dispatched::{connect, dispatching_lists, done, east, orders},
    measurement::Measurement,
    *,
};

/// A kind that nothing else knows.
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
  - { name: { fixed: main }, template: /spec/template, replicas: { at: /spec/size } }
  outcomes:
  - values: { at: /status/state, succeeded: [Done], failed: [Broken] }
  active: { anyAbove: [/status/active] }
";

pub(super) fn training_kind() -> Kind {
    Kind::parse(TRAINING).expect("a kind")
}

fn kinds_with_training() -> JobKinds {
    JobKinds::configured(
        &Configuration::default(),
        &Gates::default(),
        &Kinds::new([training_kind()]),
    )
}

/// A Training with the name of the Job.
pub(super) fn training(version: &str, suspend: bool, status: &Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Training",
        "metadata": {
            "name": "train", "namespace": "ns", "uid": "training-1", "resourceVersion": version,
            "labels": {"kueue.x-k8s.io/queue-name": "lq"},
        },
        "spec": {
            "run": {"suspend": suspend, "managedBy": "kueue.x-k8s.io/multikueue"},
            "size": 2,
            "template": {"spec": {"containers": [
                {"name": "main", "resources": {"requests": {"cpu": "1"}}},
            ]}},
        },
        "status": status,
    })
}

fn trainings(objects: Vec<Value>) -> ManagerInput {
    ManagerInput::Job(training_kind(), training_list(objects))
}

fn training_list(objects: Vec<Value>) -> Change<JobObject> {
    let decode = |object| training_kind().decode(object).expect("a Training decodes");
    Change::Reset {
        objects: objects.into_iter().map(decode).map(Arc::new).collect(),
        removed: vec![],
    }
}

/// The Workload of the Training, dispatched to `east`.
pub(super) fn training_workload() -> Value {
    let mut workload = dispatched::hub_workload();
    workload["metadata"]["name"] = json!("training-train");
    workload["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "example.com/v1", "kind": "Training", "name": "train", "uid": "training-1",
        "controller": true,
    }]);
    workload["spec"]["podSets"] = json!(
        training_kind()
            .decode(training("1", true, &json!({})))
            .expect("decodes")
            .pod_sets(::jobs::JobGates::default())
    );
    workload
}

/// Its clone on the worker.
pub(super) fn training_clone() -> Value {
    let mut clone = training_workload();
    clone["metadata"] = json!({
        "name": "training-train", "namespace": "ns", "uid": "clone-1", "resourceVersion": "51",
        "labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"},
        "annotations": {"sluice.dev/epoch": "1"},
    });
    clone
}

/// A manager that dispatches, with a Job and a Training of one name.
pub(super) fn manager(training: Value, workloads: &[Value]) -> ManagerControl {
    let settings = dispatching_settings_for(CAPACITY, &kinds_with_training());
    let mut control = leading(settings);
    let mut job = json!(job());
    job["metadata"]["labels"] = json!({});
    let inputs = dispatching_lists(&job, workloads).into_iter();
    inputs.for_each(|input| control.observe(input, NOW));
    control.observe(trainings(vec![training]), NOW);
    control
}

pub(super) fn connect_with(control: &mut ManagerControl, clones: Vec<Value>, copies: Vec<Value>) {
    connect(control, clones, vec![]);
    let copies = WorkerInput::Job(training_kind(), training_list(copies));
    control.observe(east(copies), NOW);
}

/// The body of the only order for this purpose.
fn body(step: &Decisions, purpose: &str) -> Value {
    let order = step.orders.iter().find(|order| order.ticket.purpose.name() == purpose);
    serde_json::from_slice(order.expect("it was ordered").write.request().body()).expect("JSON")
}

#[test]
fn a_job_of_a_declared_kind_gets_a_workload_of_its_own() {
    let mut control = manager(training("30", true, &json!({})), &[]);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub workload-create"]);
    let workload = body(&step, "workload-create");
    let owner = &workload["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["apiVersion"]),
        (&json!("Training"), &json!("example.com/v1"))
    );
    assert_eq!(workload["spec"]["podSets"][0]["count"], 2);
}

#[test]
fn a_declared_job_is_started_copied_and_followed() {
    let mut control = manager(training("30", false, &json!({})), &[training_workload()]);
    connect_with(&mut control, vec![training_clone()], vec![]);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["east job-create"]);
    let copy = body(&step, "job-create");
    assert_eq!(copy["spec"]["run"], json!({"suspend": true}));
    assert_eq!(
        (&copy["kind"], &copy["apiVersion"]),
        (&json!("Training"), &json!("example.com/v1"))
    );

    // The answer is the copy; its status comes back to the Training and not to the Job of that name.
    let mut copy = copy;
    copy["metadata"]["uid"] = json!("copy-1");
    copy["metadata"]["resourceVersion"] = json!("52");
    done(&mut control, &step, "job-create", copy.clone(), NOW);
    copy["metadata"]["resourceVersion"] = json!("53");
    copy["status"] = json!({"state": "Running", "active": 2});
    let copy = training_kind().decode(copy).expect("a Training");
    control.observe(east(WorkerInput::Job(training_kind(), Change::Apply(Arc::new(copy)))), NOW);
    let step = control.decide(NOW);
    let order = step.orders.iter().find(|one| one.ticket.purpose == Purpose::SyncStatus);
    let order = order.expect("a copy of the status");
    assert_eq!(order.ticket.target.subject, Subject::Job(training_kind()));
    assert_eq!(
        order.write.request().uri(),
        "/apis/example.com/v1/namespaces/ns/trainings/train/status?&fieldManager=sluice"
    );
    assert_eq!(body(&step, "sync-status")["status"], json!({"state": "Running", "active": 2}));
}

#[test]
fn a_job_that_is_left_alone_is_reported_again_when_it_gets_its_queue_back() {
    let text = format!("{TRAINING}  skip: {{ present: /spec/selector }}\n");
    let kind = Kind::parse(&text).expect("a kind");
    let kinds = JobKinds::configured(
        &Configuration::default(),
        &Gates::default(),
        &Kinds::new([kind.clone()]),
    );
    let mut control = leading(dispatching_settings_for(CAPACITY, &kinds));
    dispatching_lists(&json!(job()), &[]).into_iter().for_each(|one| control.observe(one, NOW));
    let mut reports = |version: &str, has_queue: bool| {
        let mut object = training(version, true, &json!({}));
        object["spec"]["selector"] = json!({"cluster": "mine"});
        if !has_queue {
            object["metadata"]["labels"] = json!({});
        }
        let object = Arc::new(kind.decode(object).expect("a Training decodes"));
        let change = Change::Reset { objects: vec![object], removed: vec![] };
        control.observe(ManagerInput::Job(kind.clone(), change), NOW);
        control.decide(NOW).events.iter().any(|one| one.note.contains("is left alone"))
    };
    assert!(reports("30", true));
    assert!(!reports("31", true), "nothing is new");
    assert!(!reports("32", false));
    assert!(reports("33", true), "it waits again");
}

/// The status that a clear writes.
fn cleared(step: &Decisions) -> Value {
    assert_eq!(orders(step), ["hub idle"]);
    body(step, "idle").get("status").expect("it writes the status").clone()
}

#[test]
fn a_status_that_may_not_be_removed_gets_counts_of_zero() {
    let status = json!({"state": "Running", "active": 2});
    let mut control = manager(training("30", true, &status), &[]);
    connect_with(&mut control, vec![], vec![]);
    let step = control.decide(NOW);
    assert_eq!(cleared(&step), Value::Null, "a schema may require fields of a status");
    let refused = WriteOutcome::Refused {
        code: 422,
        reason: "Invalid".to_owned(),
        message: "status.state: Required value".to_owned(),
    };
    control.answered(&step.orders[0].ticket, refused, NOW);
    let later = NOW + Duration::from_secs(11);
    let step = control.decide(later);
    assert_eq!(cleared(&step), json!({"active": 0}), "the fields that are required stay");
    let idle = training("31", true, &json!({"state": "Running", "active": 0}));
    done(&mut control, &step, "idle", idle, later);
    assert_eq!(orders(&control.decide(later)), ["hub workload-create"], "it waits again");
}

#[test]
fn a_withdrawn_job_shows_no_copy_that_is_gone() {
    let status = json!({"state": "Running", "active": 0});
    let mut workload = training_workload();
    let evicted =
        json!({"type": "Evicted", "status": "True", "reason": "Preempted", "message": ""});
    workload["status"]["conditions"].as_array_mut().expect("a list").push(evicted);
    let mut control = manager(training("30", true, &status), &[workload.clone()]);
    connect_with(&mut control, vec![], vec![]);
    let step = control.decide(NOW);
    workload["metadata"]["resourceVersion"] = json!("70");
    workload["metadata"]["annotations"] = json!({"sluice.dev/epoch": "2"});
    done(&mut control, &step, "raise-epoch", workload, NOW);
    let step = control.decide(NOW);
    assert_eq!(cleared(&step), Value::Null, "no pod is active, but it is shown as running");
    done(&mut control, &step, "idle", training("31", true, &json!({})), NOW);
    assert!(orders(&control.decide(NOW)).contains(&"hub release".to_owned()));
}

#[test]
fn hazard_7_a_worker_that_does_not_serve_a_kind_is_used_for_others_and_not_asked_twice() {
    let mut control = manager(training("30", false, &json!({})), &[training_workload()]);
    connect(&mut control, vec![training_clone()], vec![]);
    let missing = Change::Unavailable { reason: Unavailable::NotServed, removed: vec![] };
    control.observe(east(WorkerInput::Job(training_kind(), missing)), NOW);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["east job-create"]);
    let create = step.orders.iter().find(|order| order.ticket.purpose == Purpose::JobCreate);
    let ticket = create.expect("a create").ticket.clone();
    control.answered(&ticket, page(), NOW);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub retry"], "the worker refused the job");
}

/// What the default backend of an ingress answers to a create, and an API server that does not serve the kind.
fn page() -> WriteOutcome {
    WriteOutcome::UnnamedNotFound("default backend - 404".to_owned())
}

#[test]
fn a_404_to_a_create_of_a_kind_that_is_served_refuses_nothing() {
    let mut control = manager(training("30", false, &json!({})), &[training_workload()]);
    connect_with(&mut control, vec![training_clone()], vec![]);
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["east job-create"]);
    control.answered(&step.orders[0].ticket, page(), NOW);
    let later = NOW + Duration::from_secs(2);
    let step = control.decide(later);
    assert_eq!(orders(&step), ["east settle"], "the copy may have been created");
    let nothing = json!({"metadata": {"resourceVersion": "90"}, "items": []});
    done(&mut control, &step, "settle", nothing, later);
    let step = control.decide(later + Duration::from_secs(2));
    assert_eq!(orders(&step), ["east job-create"]);
}

#[test]
fn what_a_worker_hides_is_not_taken_for_absent() {
    let mut control = manager(training("30", false, &json!({})), &[training_workload()]);
    connect(&mut control, vec![], vec![]);
    let hidden = Change::Unavailable { reason: Unavailable::Forbidden, removed: vec![] };
    control.observe(east(WorkerInput::Job(training_kind(), hidden)), NOW);
    let step = orders(&control.decide(NOW));
    assert!(
        step.iter().all(|order| !order.starts_with("east") && order != "hub retry"),
        "{step:?}"
    );
}

#[test]
fn a_kind_that_cannot_be_observed_holds_up_no_other() {
    for reason in [Unavailable::NotServed, Unavailable::Forbidden] {
        let file = Configuration::without_file(None).expect("defaults");
        let settings =
            ManagerSettings::new(&file, &Gates::default(), &kinds_with_training(), false);
        let mut control = leading(settings);
        lists().into_iter().for_each(|input| control.observe(input, NOW));
        assert!(!control.is_complete(), "the kind was not listed");
        let change = Change::Unavailable { reason, removed: vec![] };
        control.observe(ManagerInput::Job(training_kind(), change), NOW);
        assert!(control.is_complete());
    }
}

/// A manager that has listed everything but Trainings.
fn manager_without_trainings() -> (Configuration, ManagerControl) {
    let file = Configuration::without_file(None).expect("defaults");
    let settings = ManagerSettings::new(&file, &Gates::default(), &kinds_with_training(), false);
    let mut control = leading(settings);
    lists().into_iter().for_each(|input| control.observe(input, NOW));
    (file, control)
}

fn unavailable(reason: Unavailable) -> Change<JobObject> {
    Change::Unavailable { reason, removed: vec![] }
}

/// Events and series about integrations.
fn integrations(step: &Decisions) -> Vec<String> {
    let events = step.events.iter().filter(|event| event.regarding.kind == "Namespace");
    let events = events.map(|event| {
        format!("{} {:?} {}", event.regarding.key.name, event.event_type, event.reason)
    });
    let series = step.measurements.iter().filter_map(|one| match one {
        Measurement::IntegrationUnavailable { framework, reason, unavailable } => {
            Some(format!("{framework} {reason} {unavailable}"))
        }
        _ => None,
    });
    events.chain(series).collect()
}

#[test]
fn an_enabled_kind_that_cannot_be_observed_is_reported_until_it_can() {
    let (file, mut control) = manager_without_trainings();
    let (namespace, mut now) = (file.namespace(), NOW);
    // At once, and half a minute later.
    let mut reported = |change| {
        control.observe(ManagerInput::Job(training_kind(), change), now);
        let at_once = integrations(&control.decide(now));
        now += Duration::from_secs(30);
        (at_once, integrations(&control.decide(now)))
    };
    let texts = |all: &[&str]| -> Vec<String> { all.iter().map(ToString::to_string).collect() };
    // Only clusters that have it are to list a kind that is not built in.
    let missing = format!("{namespace} Warning IntegrationUnavailable");
    let hidden = format!("{namespace} Warning IntegrationUnavailable");
    let again = format!("{namespace} Normal IntegrationAvailable");
    let (not_served, forbidden) = (Unavailable::NotServed, Unavailable::Forbidden);
    let series = "example.com/training NotServed true";
    assert_eq!(reported(unavailable(not_served)), (texts(&[series]), vec![missing]));
    assert_eq!(reported(unavailable(not_served)), (vec![], vec![]), "nothing is new");
    let series = ["example.com/training NotServed false", "example.com/training Forbidden true"];
    assert_eq!(reported(unavailable(forbidden)), (texts(&series), vec![hidden]));
    let series = "example.com/training Forbidden false";
    assert_eq!(reported(training_list(vec![])), (texts(&[&again, series]), vec![]));
    assert_eq!(reported(training_list(vec![])), (vec![], vec![]), "nothing is new");
}

#[test]
fn a_kind_that_is_hidden_for_a_moment_gets_no_event() {
    let (_, mut control) = manager_without_trainings();
    let later = |seconds| NOW + Duration::from_secs(seconds);
    let shown = [(0, unavailable(Unavailable::Forbidden)), (5, training_list(vec![]))];
    let mut events = vec![];
    for (seconds, change) in shown {
        control.observe(ManagerInput::Job(training_kind(), change), later(seconds));
        events.extend(control.decide(later(seconds)).events);
    }
    events.extend(control.decide(later(60)).events);
    let reasons: Vec<&str> = events.iter().map(|event| &*event.reason).collect();
    assert!(!reasons.iter().any(|one| one.starts_with("Integration")), "{reasons:?}");
}

/// Orders about a Workload with a finalizer, without the Training that owns it.
fn orders_without_training(reason: Unavailable) -> Vec<String> {
    let settings = dispatching_settings_for(CAPACITY, &kinds_with_training());
    let mut control = leading(settings);
    let mut workload = training_workload();
    workload["metadata"]["finalizers"] = json!(["kueue.x-k8s.io/resource-in-use"]);
    let mut job = json!(job());
    job["metadata"]["labels"] = json!({});
    let inputs = dispatching_lists(&job, &[workload]).into_iter();
    inputs.for_each(|input| control.observe(input, NOW));
    let change = Change::Unavailable { reason, removed: vec![] };
    control.observe(ManagerInput::Job(training_kind(), change), NOW);
    orders(&control.decide(NOW))
}

#[test]
fn a_workload_whose_job_is_hidden_keeps_its_finalizer() {
    let unfinalize = "hub unfinalize".to_owned();
    assert!(!orders_without_training(Unavailable::Forbidden).contains(&unfinalize));
    assert!(orders_without_training(Unavailable::NotServed).contains(&unfinalize));
}

/// A Job that a Training controls, with the labels that its operator copied.
fn child(suspend: bool) -> Value {
    let mut child = json!(job());
    child["metadata"]["name"] = json!("child");
    child["metadata"]["uid"] = json!("child-1");
    child["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "example.com/v1", "kind": "Training", "name": "train", "uid": "training-1",
        "controller": true,
    }]);
    child["spec"]["suspend"] = json!(suspend);
    child
}

#[test]
fn a_child_of_a_managed_job_gets_no_workload_and_runs_only_with_its_owner() {
    for (workloads, suspend, expected) in [
        (vec![training_workload()], false, vec![]),
        (vec![], false, vec!["hub stop", "hub workload-create"]),
        (vec![], true, vec!["hub workload-create"]),
    ] {
        let running = json!({"state": "Running"});
        let stopped = workloads.is_empty();
        let mut control = manager(training("30", stopped, &running), &workloads);
        control.observe(ManagerInput::Job(batch_job(), jobs(vec![child(suspend)])), NOW);
        let step = control.decide(NOW);
        assert_eq!(orders(&step), expected, "{suspend}");
        let stops = step.orders.iter().filter(|order| order.ticket.purpose == Purpose::Stop);
        let stopped: Vec<String> = stops.map(|order| order.ticket.target.key.to_string()).collect();
        assert!(stopped.iter().all(|key| key == "ns/child"), "{stopped:?}");
        for order in step.orders.iter().filter(|one| one.ticket.purpose == Purpose::Stop) {
            let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
            assert_eq!(body["spec"], json!({"suspend": true}), "only the switch");
            assert_eq!(body["metadata"].get("annotations"), None, "it is not being stopped");
        }
        let stops = step.orders.iter().filter(|order| order.ticket.purpose == Purpose::Stop);
        for order in stops {
            control.answered(&order.ticket, WriteOutcome::done(child(true)), NOW);
        }
        let events = control.decide(NOW).events;
        let suspended = events.iter().filter(|event| event.reason == "Suspended").count();
        assert_eq!(suspended, stopped.len(), "an Event reports the stop");
    }
}

#[test]
fn a_child_is_no_copy_of_a_job() {
    let mut control = manager(training("30", false, &json!({})), &[training_workload()]);
    let mut copied = child(false);
    copied["metadata"]["annotations"] =
        json!({"kueue.x-k8s.io/prebuilt-workload-name": "training-train", "sluice.dev/epoch": "1"});
    connect(&mut control, vec![], vec![copied]);
    control.observe(east(WorkerInput::Job(training_kind(), training_list(vec![]))), NOW);
    let step = orders(&control.decide(NOW));
    assert!(!step.contains(&"east job-delete".to_owned()), "{step:?}");
}

/// Kinds in the report that an agent writes now, if it writes one. `stored` is the report on the API server.
fn reported_kinds(
    control: &mut AgentControl,
    stored: &mut Value,
    now: Timestamp,
) -> Option<Vec<String>> {
    let step = control.decide(now);
    let mut reports = step.orders.iter().filter(|one| one.ticket.purpose == Purpose::Capacity);
    let order = reports.next()?;
    for (field, value) in body(&step, "capacity")["status"].as_object().into_iter().flatten() {
        stored["status"][field] = value.clone();
    }
    stored["metadata"]["resourceVersion"] = json!((now.as_second() + 2).to_string());
    control.answered(&order.ticket, WriteOutcome::done(stored.clone()), now);
    // The answer is compared with the capacity once, so that only a change makes another report.
    assert!(control.decide(now + Duration::from_secs(9)).orders.is_empty());
    let kinds = stored["status"]["kinds"].as_array()?.iter();
    Some(kinds.map(|kind| kind["kind"].as_str().expect("a kind").to_owned()).collect())
}

#[test]
fn an_agent_reports_a_kind_when_its_cluster_serves_it_and_when_it_does_not() {
    let kinds = kinds_with_training().handled;
    let mut control = AgentControl::new(AgentSettings::new(AgentPolicy::default(), &kinds));
    let mut stored = json!({"metadata": {"name": "local", "resourceVersion": "1"}, "status": {}});
    let mut reported = |control: &mut AgentControl, now| {
        reported_kinds(control, &mut stored, now).map(|kinds| kinds.join(" "))
    };
    let not_served = || Change::Unavailable { reason: Unavailable::NotServed, removed: vec![] };
    let lists = [
        AgentInput::LimitRange(list(vec![])),
        AgentInput::RuntimeClass(list(vec![])),
        AgentInput::Node(list(vec![])),
        AgentInput::Pod(list(vec![])),
        AgentInput::Lease(list(vec![])),
        AgentInput::Capacity(list(vec![
            json!({"metadata": {"name": "local", "resourceVersion": "1"}}),
        ])),
        AgentInput::Workload(list(vec![])),
        AgentInput::Job(batch_job(), jobs(vec![])),
        AgentInput::Job(training_kind(), not_served()),
    ];
    lists.into_iter().for_each(|list| control.observe(list, NOW));
    assert_eq!(reported(&mut control, NOW), Some("Job".to_owned()));

    let later = |seconds| NOW + Duration::from_secs(seconds);
    control.observe(AgentInput::Job(training_kind(), training_list(vec![])), later(60));
    assert_eq!(reported(&mut control, later(60)), Some("Job Training".to_owned()));
    control.observe(AgentInput::Job(training_kind(), training_list(vec![])), later(120));
    let beat = reported(&mut control, later(120));
    assert_eq!(beat, Some("Job Training".to_owned()), "a heartbeat, and nothing has changed");
    control.observe(AgentInput::Job(training_kind(), not_served()), later(180));
    assert_eq!(reported(&mut control, later(180)), Some("Job".to_owned()));
}

#[test]
fn a_job_that_names_another_prebuilt_workload_is_no_longer_that_of_the_first() {
    let mut control = leading(settings());
    let key = |name: &str| Key { namespace: Some("ns".into()), name: name.into() };
    let observe = |control: &mut ManagerControl, version: &str, workload: &str| {
        let mut job = json!(job());
        job["metadata"]["resourceVersion"] = json!(version);
        job["metadata"]["annotations"] = json!({"kueue.x-k8s.io/prebuilt-workload-name": workload});
        control.observe(ManagerInput::Job(batch_job(), jobs(vec![job])), NOW);
    };
    observe(&mut control, "1", "first");
    observe(&mut control, "2", "second");
    let of = |name: &str| control.core.jobs.of(&key(name), &Workload::default()).is_some();
    assert_eq!((of("first"), of("second")), (false, true));
}

/// The writes of a manager of these kinds in a cluster with queues and without jobs.
fn orders_without_jobs(kinds: &JobKinds) -> Vec<String> {
    let settings = ManagerSettings::new(&Configuration::default(), &Gates::default(), kinds, false);
    let mut control = ManagerControl::new(settings);
    observe_queues(&mut control);
    let observed = kinds.observed();
    let none = || Change::Reset { objects: vec![], removed: vec![] };
    for kind in &observed {
        control.observe(ManagerInput::Job(kind.clone(), none()), NOW);
        if kind.members().is_some() {
            control.observe(ManagerInput::Members(kind.clone(), none()), NOW);
        }
    }
    for needed in observed.looked_up() {
        let none = Change::Reset { objects: vec![], removed: vec![] };
        control.observe(ManagerInput::LookedUp(needed, none), NOW);
    }
    let step = control.decide(NOW);
    let order = |order: &Order| format!("{} {:?}", order.ticket.purpose, order.ticket.target);
    step.orders.iter().map(order).collect()
}

#[test]
fn an_enabled_kind_without_jobs_costs_no_write() {
    let mut file = Configuration::without_file(None).expect("defaults");
    file.integrations.frameworks = vec!["batch/job".to_owned()];
    let jobs = JobKinds::configured(&file, &Gates::default(), &Kinds::default());
    let all = orders_without_jobs(&JobKinds::all(&Kinds::default()));
    assert_eq!(all, orders_without_jobs(&jobs));
    assert!(!all.is_empty(), "the statuses of queues: it decides");
}
