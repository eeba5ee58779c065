//! An elastic Job that runs on a worker and grows: a second Workload takes its place there (docs/reference/multikueue.md §2.13).

use super::{
    dispatched::{
        copies, dispatching_lists, done, east, hub_job, hub_workload, linked, name, running,
    },
    gang_reservation::capacity,
    *,
};

const ELASTIC: &str = "kueue.x-k8s.io/elastic-job";
const CHAIN: &str = "kueue.x-k8s.io/workload-slice-name";
const REPLACES: &str = "kueue.x-k8s.io/workload-slice-replacement-for";
const NAMED: &str = "kueue.x-k8s.io/prebuilt-workload-name";

/// The later slice.
const LATER: &str = "later";

/// The Job of the hub with so many pods.
fn job_of(pods: i32, version: &str) -> Value {
    let mut job = hub_job(version, false, &running());
    job["metadata"]["annotations"] = json!({ELASTIC: "true"});
    job["spec"]["parallelism"] = json!(pods);
    job
}

fn pods_of(workload: &mut Value, pods: i32) {
    workload["spec"]["podSets"][0]["count"] = json!(pods);
    let held = &mut workload["status"]["admission"]["podSetAssignments"][0];
    (held["count"], held["resourceUsage"]) = (json!(pods), json!({"cpu": pods.to_string()}));
}

/// The slice of two pods that runs on the worker.
fn first(version: &str) -> Value {
    let mut workload = hub_workload();
    workload["metadata"]["resourceVersion"] = json!(version);
    workload["metadata"]["annotations"] = json!({ELASTIC: "true", CHAIN: name()});
    let ready = &mut workload["status"]["conditions"][2];
    (ready["status"], ready["reason"]) = (json!("True"), json!("Started"));
    workload
}

/// The same, replaced by the later one.
fn replaced(version: &str) -> Value {
    with_condition(first(version), "Finished", "WorkloadSliceReplaced")
}

fn with_condition(mut workload: Value, kind: &str, reason: &str) -> Value {
    let condition = json!({"type": kind, "status": "True", "reason": reason, "message": ""});
    workload["status"]["conditions"].as_array_mut().expect("conditions").push(condition);
    workload
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Waits,
    Nominated,
    /// As upstream's scheduler leaves it: the cluster of the first slice is recorded together with the quota.
    Recorded,
    Admitted,
}

/// The later slice of five pods.
fn later(version: &str, stage: Stage) -> Value {
    let mut workload = first(version);
    let metadata = &mut workload["metadata"];
    metadata["name"] = json!(LATER);
    metadata["uid"] = json!("wl-2");
    metadata["annotations"][REPLACES] = json!(format!("ns/{}", name()));
    pods_of(&mut workload, 5);
    let status = &mut workload["status"];
    status["conditions"][2] = hub_workload()["status"]["conditions"][2].take();
    if stage == Stage::Waits {
        *status = json!({});
    }
    if stage == Stage::Nominated {
        status["clusterName"] = Value::Null;
        status["nominatedClusterNames"] = json!(["east"]);
        status["admissionChecks"][0]["state"] = json!("Pending");
        status["conditions"][1]["status"] = json!("False");
    }
    if stage == Stage::Recorded {
        status["admissionChecks"][0]["state"] = json!("Pending");
        status["conditions"][1]["status"] = json!("False");
    }
    workload
}

/// The clones of both slices, and the copy, which names the first.
fn first_copies() -> (Value, Value) {
    let (mut clone, mut copy) = copies();
    clone["metadata"]["annotations"][ELASTIC] = json!("true");
    clone["metadata"]["annotations"][CHAIN] = json!(name());
    for object in [&mut clone, &mut copy] {
        object["metadata"]["annotations"]["sluice.dev/hub-version"] = json!("21");
        object["metadata"]["annotations"]["sluice.dev/workload-uid"] = json!("wl-1");
    }
    copy["metadata"]["annotations"][ELASTIC] = json!("true");
    (clone, copy)
}

fn later_clone(version: &str, admitted: bool) -> Value {
    let (mut clone, _) = first_copies();
    let metadata = &mut clone["metadata"];
    metadata["name"] = json!(LATER);
    metadata["uid"] = json!("clone-2");
    metadata["resourceVersion"] = json!(version);
    metadata["annotations"][REPLACES] = json!(format!("ns/{}", name()));
    metadata["annotations"]["sluice.dev/workload-uid"] = json!("wl-2");
    pods_of(&mut clone, 5);
    if !admitted {
        clone["status"] = json!({});
    }
    clone
}

/// The copy, as it names the later slice.
fn renamed_copy(version: &str) -> Value {
    let (_, mut copy) = first_copies();
    let metadata = &mut copy["metadata"];
    metadata["resourceVersion"] = json!(version);
    metadata["annotations"][NAMED] = json!(LATER);
    metadata["annotations"]["sluice.dev/workload-uid"] = json!("wl-2");
    metadata["annotations"]["sluice.dev/hub-version"] = json!("40");
    copy["spec"]["parallelism"] = json!(5);
    copy
}

/// A manager of a worker that has so many cpus free beside the two pods.
fn manager(job: &Value, workloads: &[Value], clones: Vec<Value>, copy: &Value) -> ManagerControl {
    manager_with((capacity_settings(), Some(8)), (job, workloads), clones, copy)
}

fn manager_with(
    (settings, free): (ManagerSettings, Option<u32>),
    (job, workloads): (&Value, &[Value]),
    clones: Vec<Value>,
    copy: &Value,
) -> ManagerControl {
    let mut control = leading(settings);
    dispatching_lists(job, workloads).into_iter().for_each(|input| control.observe(input, NOW));
    let active = json!([{"type": "Active", "status": "True", "reason": "Active", "message": ""}]);
    let check = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck",
        "metadata": {"name": "workers", "resourceVersion": "50"},
        "spec": {
            "controllerName": "kueue.x-k8s.io/multikueue",
            "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all"},
        },
        "status": {"conditions": active},
    });
    control.observe(ManagerInput::AdmissionCheck(Change::Apply(shared(check))), NOW);
    let reports = free.map(report).into_iter().collect();
    control.observe(linked(true), NOW);
    control.observe(east(WorkerInput::Workload(list(clones))), NOW);
    control.observe(east(WorkerInput::Job(batch_job(), jobs(vec![copy.clone()]))), NOW);
    control.observe(east(WorkerInput::Capacity(list(reports))), NOW);
    control
}

/// A report that includes the clone of the first slice.
fn report(free: u32) -> Value {
    let mut report = capacity();
    let free = json!({"cpu": free.to_string(), "pods": "9"});
    report["status"]["nodeClasses"] =
        json!([{"count": 1, "free": free, "size": {"cpu": "10", "pods": "10"}}]);
    report["status"]["asOf"] = json!("55");
    report
}

fn observe(control: &mut ManagerControl, workload: Value) {
    control.observe(ManagerInput::Workload(Change::Apply(shared(workload))), NOW);
}

fn observe_clone(control: &mut ManagerControl, clone: Value) {
    control.observe(east(WorkerInput::Workload(Change::Apply(shared(clone)))), NOW);
}

/// Orders about slices and copies, as `where what purpose`.
fn said(step: &Decisions) -> Vec<String> {
    let words = step.orders.iter().filter_map(|order| {
        let Ticket { target, purpose, .. } = &order.ticket;
        if *purpose == Purpose::PodsReady {
            return None;
        }
        let what = match (&target.subject, &*target.key.name) {
            (Subject::Workload, LATER) => "later",
            (Subject::Workload, other) if *other == *name() => "first",
            (Subject::Workload, _) => "another",
            (Subject::Job(_), _) => "job",
            _ => return None,
        };
        let to = if target.to == Destination::Home { "hub" } else { "east" };
        Some(format!("{to} {what} {purpose}"))
    });
    words.collect()
}

fn body(step: &Decisions, purpose: Purpose) -> Value {
    let order = step.orders.iter().find(|order| order.ticket.purpose == purpose);
    serde_json::from_slice(order.expect("it was ordered").write.request().body()).expect("JSON")
}

#[test]
fn a_job_that_grows_gets_a_second_workload_and_runs_on() {
    let (clone, copy) = first_copies();
    let mut control = manager(&job_of(2, "20"), &[first("21")], vec![clone], &copy);
    assert_eq!(said(&control.decide(NOW)), [""; 0]);
    let larger = batch_job().decode(job_of(5, "70")).expect("a Job decodes");
    control.observe(ManagerInput::Job(batch_job(), Change::Apply(Arc::new(larger))), NOW);
    let step = control.decide(NOW);
    assert_eq!(said(&step), ["hub another workload-create"]);
    let annotations = &body(&step, Purpose::WorkloadCreate)["metadata"]["annotations"];
    assert_eq!(annotations[REPLACES], format!("ns/{}", name()));
    assert_eq!(annotations[CHAIN], name());
    assert!(step.events.iter().all(|one| one.reason != "SizeKept"));
}

/// A manager of both slices, with the later one at a stage, and these copies.
fn growing(stage: Stage, clones: Vec<Value>, copy: &Value) -> ManagerControl {
    manager(&job_of(5, "20"), &[first("21"), later("30", stage)], clones, copy)
}

#[test]
fn the_later_slice_is_admitted_on_the_worker_before_the_first_one_ends() {
    let (clone, copy) = first_copies();
    let mut control = growing(Stage::Waits, vec![clone], &copy);
    let step = control.decide(NOW);
    assert_eq!(said(&step), ["hub later reserve"]);
    let status = &body(&step, Purpose::Reserve)["status"];
    assert_eq!(status["nominatedClusterNames"], json!(["east"]));
    done(&mut control, &step, "reserve", later("31", Stage::Nominated), NOW);
    let step = control.decide(NOW);
    assert_eq!(said(&step), ["east later clone-create"], "the job is there");
    let annotations = &body(&step, Purpose::CloneCreate)["metadata"]["annotations"];
    assert_eq!(annotations[REPLACES], format!("ns/{}", name()), "a queue there charges the rest");
    done(&mut control, &step, "clone-create", later_clone("60", false), NOW);
    assert_eq!(said(&control.decide(NOW)), [""; 0], "both are as they were");

    observe_clone(&mut control, later_clone("61", true));
    let step = control.decide(NOW);
    assert_eq!(said(&step), ["hub later dispatched"]);
    done(&mut control, &step, "dispatched", later("40", Stage::Admitted), NOW);
    let step = control.decide(NOW);
    assert_eq!(said(&step), ["hub first finish"]);
    done(&mut control, &step, "finish", replaced("41"), NOW);

    let step = control.decide(NOW);
    assert_eq!(said(&step), ["east job resize-copy"]);
    let written = body(&step, Purpose::ResizeCopy);
    assert_eq!(written["spec"], json!({"parallelism": 5}));
    let expected = json!({
        "uid": "copy-1", "resourceVersion": "52", "labels": {NAMED: null},
        "annotations": {
            NAMED: LATER, "sluice.dev/epoch": "1", "sluice.dev/incarnation": "7", "sluice.dev/term": "9",
            "sluice.dev/hub-version": "40", "sluice.dev/workload-uid": "wl-2",
        },
    });
    assert_eq!(written["metadata"], expected);
    done(&mut control, &step, "resize-copy", renamed_copy("62"), NOW);
    let step = control.decide(NOW);
    assert_eq!(said(&step), ["east first clone-delete"]);
    let key = Key { namespace: Some("ns".into()), name: name().into() };
    done(&mut control, &step, "clone-delete", json!({"kind": "Status"}), NOW);
    control.observe(east(WorkerInput::Workload(Change::Delete(key))), NOW);
    assert_eq!(said(&control.decide(NOW)), [""; 0]);
}

#[test]
fn a_restarted_manager_goes_on_where_the_objects_are() {
    let (clone, copy) = first_copies();
    let both = |admitted: bool| vec![clone.clone(), later_clone("60", admitted)];
    let orders = |hub: [Value; 2], clones: Vec<Value>, copy: &Value| {
        said(&manager(&job_of(5, "20"), &hub, clones, copy).decide(NOW))
    };
    let nominated = || [first("21"), later("30", Stage::Nominated)];
    assert_eq!(orders(nominated(), vec![clone.clone()], &copy), ["east later clone-create"]);
    assert_eq!(orders(nominated(), both(false), &copy), [""; 0]);
    assert_eq!(orders(nominated(), both(true), &copy), ["hub later dispatched"]);
    let admitted = || [first("21"), later("40", Stage::Admitted)];
    assert_eq!(orders(admitted(), both(true), &copy), ["hub first finish"]);
    let over = || [replaced("41"), later("40", Stage::Admitted)];
    assert_eq!(orders(over(), both(true), &copy), ["east job resize-copy"]);
    assert_eq!(orders(over(), both(true), &renamed_copy("62")), ["east first clone-delete"]);
    assert_eq!(orders(over(), vec![later_clone("60", true)], &renamed_copy("62")), [""; 0]);
}

#[test]
fn a_slice_that_upstream_has_recorded_goes_to_its_cluster_and_the_job_runs_on() {
    let (clone, copy) = first_copies();
    for earlier in [first("21"), replaced("41")] {
        let hub = [earlier, later("42", Stage::Recorded)];
        let mut control = manager(&job_of(5, "20"), &hub, vec![clone.clone()], &copy);
        let step = control.decide(NOW);
        let of_later: Vec<String> =
            said(&step).into_iter().filter(|order| order.contains("later")).collect();
        assert_eq!(of_later, ["east later clone-create"]);
        assert!(step.orders.iter().all(|order| order.ticket.purpose != Purpose::JobDelete));
        done(&mut control, &step, "clone-create", later_clone("60", true), NOW);
        assert!(said(&control.decide(NOW)).contains(&"hub later dispatched".to_owned()));
    }
}

#[test]
fn a_copy_goes_on_with_the_later_slice_when_the_first_workload_is_gone() {
    let (clone, copy) = first_copies();
    let hub = [replaced("41"), later("40", Stage::Admitted)];
    let clones = vec![clone, later_clone("60", true)];
    let mut control = manager(&job_of(5, "20"), &hub, clones, &copy);
    let key = Key { namespace: Some("ns".into()), name: name().into() };
    control.observe(ManagerInput::Workload(Change::Delete(key)), NOW);
    let step = control.decide(NOW);
    assert_eq!(said(&step), ["east job resize-copy"], "and nothing is deleted");
    done(&mut control, &step, "resize-copy", renamed_copy("62"), NOW);
    assert_eq!(said(&control.decide(NOW)), ["east first clone-delete"]);
}

#[test]
fn a_copy_of_an_earlier_job_of_the_name_is_not_taken_over() {
    let (mut clone, copy) = first_copies();
    clone["metadata"]["annotations"][CHAIN] = json!("another-chain");
    let mut control = manager(
        &job_of(5, "20"),
        &[later("40", Stage::Admitted)],
        vec![clone, later_clone("60", true)],
        &copy,
    );
    assert_eq!(said(&control.decide(NOW)), ["hub later retry"], "it has no copy of its own");
}

#[test]
fn a_copy_that_names_a_slice_of_a_newer_version_is_not_turned_back() {
    let (clone, mut copy) = first_copies();
    // A watch of the hub is late: the third slice is not known here.
    let mut third = later_clone("65", true);
    third["metadata"]["name"] = json!("third");
    third["metadata"]["uid"] = json!("clone-3");
    third["metadata"]["annotations"][REPLACES] = json!(format!("ns/{LATER}"));
    copy["metadata"]["annotations"][NAMED] = json!("third");
    copy["metadata"]["annotations"]["sluice.dev/hub-version"] = json!("44");
    let hub = [replaced("41"), later("40", Stage::Admitted)];
    let clones = vec![clone, later_clone("60", true), third];
    let mut control = manager(&job_of(9, "20"), &hub, clones, &copy);
    let orders = said(&control.decide(NOW));
    assert!(!orders.contains(&"east job resize-copy".to_owned()), "{orders:?}");
}

#[test]
fn without_room_on_its_worker_the_later_slice_waits_and_says_so() {
    let (clone, copy) = first_copies();
    let mut control = growing(Stage::Waits, vec![clone], &copy);
    control.observe(
        east(WorkerInput::Capacity(Change::Apply(shared({
            let mut report = report(2);
            report["metadata"]["resourceVersion"] = json!("8");
            report
        })))),
        NOW,
    );
    let step = control.decide(NOW);
    assert_eq!(said(&step), [""; 0]);
    let step = control.decide(NOW + std::time::Duration::from_secs(10));
    assert_eq!(said(&step), ["hub later pending"]);
    let status = &body(&step, Purpose::Pending)["status"]["conditions"];
    let message = status[0]["message"].as_str().expect("a message");
    assert_eq!(message, "no cluster has room: east: pod set main: only 2 of 3 pods fit");
}

#[test]
fn the_placement_of_the_later_slice_is_the_difference_until_the_first_one_is_over() {
    let (clone, copy) = first_copies();
    let pods = |control: &ManagerControl, name: &str| -> Option<i64> {
        let key = Key { namespace: Some("ns".into()), name: name.into() };
        let work = control.core.workloads.id_of(&key);
        let work = work.and_then(|id| control.dispatching.fleet.placed_work(id));
        work.map(|work| work.assigned.iter().map(|one| one.count).sum())
    };
    let both = |control: &ManagerControl| (pods(control, &name()), pods(control, LATER));
    let mut control = growing(Stage::Waits, vec![clone.clone()], &copy);
    let step = control.decide(NOW);
    assert_eq!(both(&control), (Some(2), Some(3)));
    done(&mut control, &step, "reserve", later("31", Stage::Nominated), NOW);
    control.decide(NOW);
    assert_eq!(both(&control), (Some(2), Some(3)));
    let clones = vec![clone, later_clone("60", true)];
    let mut restarted = growing(Stage::Admitted, clones, &copy);
    let step = restarted.decide(NOW);
    assert_eq!(both(&restarted), (Some(2), Some(3)));
    done(&mut restarted, &step, "finish", replaced("41"), NOW);
    restarted.decide(NOW);
    assert_eq!(both(&restarted), (None, Some(5)));
}

#[test]
fn an_evicted_later_slice_leaves_the_job_as_it_runs() {
    let (clone, copy) = first_copies();
    let evicted =
        |version: &str| with_condition(later(version, Stage::Nominated), "Evicted", "Preempted");
    let hub = [first("21"), evicted("35")];
    let clones = vec![clone, later_clone("60", false)];
    let mut control = manager(&job_of(5, "20"), &hub, clones, &copy);
    let step = control.decide(NOW);
    assert_eq!(said(&step), ["east later clone-delete"], "neither job nor first slice");
    done(&mut control, &step, "clone-delete", json!({"kind": "Status"}), NOW);
    let key = Key { namespace: Some("ns".into()), name: LATER.into() };
    control.observe(east(WorkerInput::Workload(Change::Delete(key))), NOW);
    let step = control.decide(NOW);
    assert_eq!(said(&step), ["hub later raise-epoch"]);
    let mut raised = evicted("36");
    raised["metadata"]["annotations"]["sluice.dev/epoch"] = json!("2");
    done(&mut control, &step, "raise-epoch", raised, NOW);
    let step = control.decide(NOW);
    assert_eq!(said(&step), ["hub later release"], "the job shows its active pods");
}

#[test]
fn a_replacement_with_a_clone_follows_the_priority_class_of_its_job() {
    let (mut clone, copy) = first_copies();
    let class = |mut workload: Value, name: &str, priority: i32| {
        let class =
            json!({"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": name});
        workload["spec"]["priorityClassRef"] = class;
        workload["spec"]["priority"] = json!(priority);
        workload
    };
    clone = class(clone, "high", 100);
    let mut job = job_of(5, "20");
    job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = json!("high");
    let hub = [class(first("21"), "high", 100), class(later("30", Stage::Nominated), "low", 1)];
    let clones = vec![clone, class(later_clone("60", false), "low", 1)];
    let mut control = manager(&job, &hub, clones, &copy);
    let high = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass",
        "metadata": {"name": "high", "resourceVersion": "10"}, "value": 100,
    });
    control.observe(ManagerInput::WorkloadPriorityClass(Change::Apply(shared(high))), NOW);
    let step = control.decide(NOW);
    assert_eq!(said(&step), ["hub later priority"]);
    let raised = class(later("31", Stage::Nominated), "high", 100);
    done(&mut control, &step, "priority", raised, NOW);
    let step = control.decide(NOW);
    assert_eq!(said(&step), ["east later priority"]);
    assert_eq!(body(&step, Purpose::Priority)["spec"]["priority"], json!(100));
}

#[test]
fn an_evicted_job_takes_its_copy_along_whatever_slice_it_names() {
    let (clone, copy) = first_copies();
    let evicted = with_condition(later("45", Stage::Admitted), "Evicted", "Preempted");
    let hub = [replaced("41"), evicted];
    let clones = vec![clone, later_clone("60", true)];
    let mut control = manager(&job_of(5, "20"), &hub, clones, &copy);
    let step = control.decide(NOW);
    let orders = said(&step);
    assert!(orders.contains(&"east job job-delete".to_owned()), "{orders:?}");
    assert!(!orders.contains(&"hub later raise-epoch".to_owned()), "it waits for that: {orders:?}");
}

#[test]
fn a_worker_with_queues_finishes_the_first_clone_and_the_first_slice_goes_on() {
    let all_at_once = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once";
    let (clone, copy) = first_copies();
    let kueue = |stage, clones| {
        let hub = [first("21"), later("30", stage)];
        let settings = (dispatching_settings(all_at_once), None);
        manager_with(settings, (&job_of(5, "20"), &hub), clones, &copy)
    };
    let mut control = kueue(Stage::Waits, vec![clone.clone()]);
    let step = control.decide(NOW);
    assert_eq!(said(&step), ["hub later reserve"]);
    let mut reserved = later("31", Stage::Nominated);
    reserved["status"]["nominatedClusterNames"] = json!([]);
    done(&mut control, &step, "reserve", reserved, NOW);
    let step = control.decide(NOW);
    assert_eq!(said(&step), ["hub later reserve"]);
    let status = &body(&step, Purpose::Reserve)["status"];
    assert_eq!(status["nominatedClusterNames"], json!(["east"]), "its own worker only");

    let over = with_condition(clone, "Finished", "WorkloadSliceReplaced");
    let mut control = kueue(Stage::Nominated, vec![over.clone(), later_clone("60", true)]);
    assert_eq!(said(&control.decide(NOW)), ["hub later dispatched"], "the first one stays");
    // The later slice was withdrawn when the worker had finished the first clone for it.
    let mut control = kueue(Stage::Waits, vec![over]);
    let orders = said(&control.decide(NOW));
    assert!(orders.contains(&"hub first retry".to_owned()), "{orders:?}");
}

#[test]
fn under_exactly_once_a_job_keeps_its_size_and_says_so() {
    let (clone, copy) = first_copies();
    let mut once = first("21");
    once["metadata"]["annotations"]["sluice.dev/execution"] = json!("ExactlyOnce");
    let mut control = manager(&job_of(5, "20"), &[once], vec![clone], &copy);
    let step = control.decide(NOW);
    assert_eq!(said(&step), [""; 0]);
    let kept = step.events.iter().find(|one| one.reason == "SizeKept").expect("an Event");
    let expected = "The job runs on worker cluster \"east\" with 2 pods, and under execution ExactlyOnce does not grow there; its next start has the larger size";
    assert_eq!((&*kept.regarding.kind, &*kept.note), ("Job", expected));
    let step = control.decide(NOW);
    assert!(step.events.iter().all(|one| one.reason != "SizeKept"), "it is said once");
}

#[test]
fn a_refused_name_leaves_the_copy_with_the_clone_that_it_names() {
    let (clone, copy) = first_copies();
    let hub = [replaced("41"), later("40", Stage::Admitted)];
    let clones = vec![clone, later_clone("60", true)];
    let mut control = manager(&job_of(5, "20"), &hub, clones, &copy);
    let step = control.decide(NOW);
    let order = step.orders.iter().find(|order| order.ticket.purpose == Purpose::ResizeCopy);
    let refused =
        WriteOutcome::Refused { code: 422, reason: String::new(), message: "no".to_owned() };
    control.answered(&order.expect("a resize").ticket, refused, NOW);
    let step = control.decide(NOW);
    assert_eq!(said(&step), [""; 0]);
    assert!(step.events.iter().any(|one| one.reason == "ResizeRefused"), "{:?}", step.events);
    observe(&mut control, later("43", Stage::Admitted));
    let later = NOW + std::time::Duration::from_secs(599);
    assert_eq!(said(&control.decide(later)), [""; 0], "another version is no other size");
}

#[test]
fn a_deleted_job_takes_both_clones_and_its_copy_along() {
    let (clone, copy) = first_copies();
    for stage in [Stage::Nominated, Stage::Admitted] {
        let clones = vec![clone.clone(), later_clone("60", true)];
        let mut control = growing(stage, clones, &copy);
        let key = |name: &str| Key { namespace: Some("ns".into()), name: name.into() };
        let job = ManagerInput::Job(batch_job(), Change::Delete(key("train")));
        control.observe(job, NOW);
        for workload in [name(), LATER.to_owned()] {
            control.observe(ManagerInput::Workload(Change::Delete(key(&workload))), NOW);
        }
        let mut orders = said(&control.decide(NOW));
        orders.sort();
        assert_eq!(orders, ["east job job-delete", "east later clone-delete"]);
        control.observe(east(WorkerInput::Job(batch_job(), Change::Delete(key("train")))), NOW);
        let orders = said(&control.decide(NOW));
        assert_eq!(orders, ["east first clone-delete"]);
    }
}
