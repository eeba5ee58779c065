//! An elastic Job that runs on a worker and changes its size (docs/reference/multikueue.md §2.13).

use super::{
    dispatched::{
        connect, copies, dispatching, done, east, hub_job, hub_workload, name, orders, running,
    },
    *,
};

const PODS: &str = "/spec/podSets/0/count";

fn elastic(mut object: Value) -> Value {
    object["metadata"]["annotations"]["kueue.x-k8s.io/elastic-job"] = json!("true");
    object
}

/// The Job of the hub with so many pods.
fn job_of(pods: i32, version: &str) -> Value {
    let mut job = elastic(hub_job(version, false, &running()));
    job["spec"]["parallelism"] = json!(pods);
    job
}

/// Its Workload. Two pods were admitted.
fn workload_of(pods: i32, version: &str) -> Value {
    let mut workload = elastic(hub_workload());
    workload["metadata"]["resourceVersion"] = json!(version);
    workload["spec"]["podSets"][0]["count"] = json!(pods);
    workload
}

/// The clone and the copy with so many pods each.
fn copies_of(clone_pods: i32, job_pods: i32) -> (Value, Value) {
    let (clone, copy) = copies();
    let (mut clone, mut copy) = (elastic(clone), elastic(copy));
    clone["spec"]["podSets"][0]["count"] = json!(clone_pods);
    copy["spec"]["parallelism"] = json!(job_pods);
    (clone, copy)
}

/// A manager of a Job and its Workload with so many pods, and of copies with as many as these.
fn manager(pods: i32, (clone_pods, job_pods): (i32, i32)) -> ManagerControl {
    let mut control = dispatching(&job_of(pods, "20"), &[workload_of(pods, "21")]);
    let (clone, copy) = copies_of(clone_pods, job_pods);
    connect(&mut control, vec![clone], vec![copy]);
    control
}

/// Orders that end work, by their purposes, and those that write a size, as this describes their bodies.
pub(super) fn ends_and_sizes(
    step: &Decisions,
    describe: impl Fn(&Ticket, &Value) -> Option<String>,
) -> Vec<String> {
    let ends = ["stop", "retry", "evict", "job-delete", "clone-delete", "workload-delete"];
    let words = step.orders.iter().filter_map(|order| {
        let purpose = order.ticket.purpose;
        if ends.contains(&purpose.name()) {
            return Some(purpose.to_string());
        }
        let is_size = [Purpose::Resize, Purpose::ResizeCopy].contains(&purpose);
        let body: Value = serde_json::from_slice(order.write.request().body()).ok()?;
        describe(&order.ticket, &body).filter(|_| is_size)
    });
    words.collect()
}

/// Resizes as `where subject fields`, and every other order that ends work.
fn resizes(step: &Decisions) -> Vec<String> {
    ends_and_sizes(step, |ticket, body| {
        let pods = body.pointer(PODS).or(body.pointer("/spec/parallelism"));
        let what = if body.pointer(PODS).is_some() { "workload" } else { "job" };
        let to = if ticket.target.to == Destination::Home { "hub" } else { "east" };
        Some(format!("{to} {what} {}", pods.unwrap_or(body)))
    })
}

fn refuse(control: &mut ManagerControl, step: &Decisions) {
    let order = step.orders.iter().find(|order| order.ticket.purpose == Purpose::ResizeCopy);
    let refused =
        WriteOutcome::Refused { code: 422, reason: String::new(), message: "no".to_owned() };
    control.answered(&order.expect("a resize").ticket, refused, NOW);
}

#[test]
fn a_job_that_shrinks_shrinks_its_workload_then_the_clone_then_the_copy() {
    let mut control = manager(2, (2, 2));
    let step = control.decide(NOW);
    let mut ready = workload_of(2, "60");
    let conditions = ready["status"]["conditions"].as_array_mut().expect("conditions");
    conditions.retain(|one| one["type"] != "PodsReady");
    conditions.push(json!({"type": "PodsReady", "status": "True", "reason": "Started"}));
    let ready_again = |pods: i32, version: &str| {
        let mut workload = ready.clone();
        workload["metadata"]["resourceVersion"] = json!(version);
        workload["spec"]["podSets"][0]["count"] = json!(pods);
        workload
    };
    done(&mut control, &step, "pods-ready", ready_again(2, "60"), NOW);
    assert_eq!(resizes(&control.decide(NOW)), [""; 0]);
    let smaller = batch_job().decode(job_of(1, "70")).expect("a Job decodes");
    control.observe(ManagerInput::Job(batch_job(), Change::Apply(Arc::new(smaller))), NOW);
    let step = control.decide(NOW);
    assert_eq!(resizes(&step), ["hub workload 1"]);
    done(&mut control, &step, "resize", ready_again(1, "71"), NOW);
    let step = control.decide(NOW);
    assert_eq!(resizes(&step), ["east workload 1"]);
    let order = step.orders.iter().find(|order| order.ticket.purpose == Purpose::ResizeCopy);
    let body: Value =
        serde_json::from_slice(order.expect("a push").write.request().body()).expect("JSON");
    assert_eq!(body["metadata"], json!({"uid": "clone-1", "resourceVersion": "51"}));
    let (mut clone, mut copy) = copies_of(1, 1);
    clone["metadata"]["resourceVersion"] = json!("80");
    done(&mut control, &step, "resize-copy", clone, NOW);
    let step = control.decide(NOW);
    assert_eq!(resizes(&step), ["east job 1"]);
    copy["metadata"]["resourceVersion"] = json!("81");
    done(&mut control, &step, "resize-copy", copy, NOW);
    assert_eq!(resizes(&control.decide(NOW)), [""; 0], "all have one pod");
}

#[test]
fn step_5_a_scale_down_and_a_priority_keep_the_gates_of_the_clone() {
    let pushed = |purpose: Purpose, hub: Value| {
        let mut control = dispatching(&job_of(2, "20"), &[hub]);
        let (mut clone, copy) = copies_of(2, 2);
        clone["spec"]["preemptionGates"] = json!([{"name": "kueue.x-k8s.io/multikueue"}]);
        connect(&mut control, vec![clone], vec![copy]);
        let step = control.decide(NOW);
        let order = step.orders.into_iter().find(|one| one.ticket.purpose == purpose);
        let body: Value =
            serde_json::from_slice(order.expect("a push").write.request().body()).expect("JSON");
        let spec = body["spec"].as_object().expect("fields").clone();
        spec.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(pushed(Purpose::ResizeCopy, workload_of(1, "21")), ["podSets"]);
    let mut raised = workload_of(2, "21");
    raised["spec"]["priority"] = json!(7);
    assert_eq!(pushed(Purpose::Priority, raised), ["priority", "priorityClassRef"]);
}

#[test]
fn a_restarted_manager_goes_on_where_the_copies_are() {
    let after_restart = |copies| resizes(&manager(1, copies).decide(NOW));
    assert_eq!(after_restart((2, 2)), ["east workload 1"]);
    assert_eq!(after_restart((1, 2)), ["east job 1"]);
    assert_eq!(after_restart((1, 1)), [""; 0]);
    assert_eq!(after_restart((2, 1)), ["east workload 1"]);
}

#[test]
fn a_lost_answer_is_followed_by_what_the_watch_shows() {
    let mut control = manager(1, (2, 2));
    let step = control.decide(NOW);
    let order = step.orders.iter().find(|order| order.ticket.purpose == Purpose::ResizeCopy);
    let ticket = order.expect("a push").ticket.clone();
    control.answered(&ticket, WriteOutcome::Unknown("lost".into()), NOW);
    assert_eq!(resizes(&control.decide(NOW)), [""; 0], "not in a loop");
    let later = NOW + std::time::Duration::from_secs(60);
    assert_eq!(resizes(&control.decide(later)), ["east workload 1"], "it was not applied");
    let mut control = manager(1, (2, 2));
    let step = control.decide(NOW);
    let order = step.orders.iter().find(|order| order.ticket.purpose == Purpose::ResizeCopy);
    control.answered(&order.expect("a push").ticket, WriteOutcome::Unknown("lost".into()), NOW);
    let (mut clone, _) = copies_of(1, 2);
    clone["metadata"]["resourceVersion"] = json!("80");
    control.observe(east(WorkerInput::Workload(Change::Apply(shared(clone)))), NOW);
    assert_eq!(resizes(&control.decide(NOW)), ["east job 1"], "it was applied");
}

#[test]
fn a_refused_size_is_named_on_the_workload_and_not_written_again() {
    let expected = "worker cluster \"east\" does not take a change of the job: no";
    let said = |step: &Decisions| {
        let events = step.events.iter().filter(|one| one.reason == "ResizeRefused");
        events.map(|one| format!("{} {}", one.regarding.kind, one.note)).collect::<Vec<_>>()
    };
    // The copy of the job waits for its clone.
    for copies in [(2, 2), (1, 2)] {
        let mut control = manager(1, copies);
        let step = control.decide(NOW);
        refuse(&mut control, &step);
        let step = control.decide(NOW);
        assert_eq!(said(&step), [format!("Workload {expected}")]);
        let later = NOW + std::time::Duration::from_secs(599);
        for step in [step, control.decide(later)] {
            assert_eq!(resizes(&step), [""; 0], "{copies:?} {:?}", orders(&step));
        }
        let later = NOW + std::time::Duration::from_secs(600);
        assert_eq!(resizes(&control.decide(later)).len(), 1, "the cause may have ended");
    }
    let mut control = manager(1, (2, 2));
    let step = control.decide(NOW);
    refuse(&mut control, &step);
    control.decide(NOW);
    let empty = workload_of(0, "90");
    control.observe(ManagerInput::Workload(Change::Apply(shared(empty))), NOW);
    let later = NOW + std::time::Duration::from_secs(60);
    assert_eq!(resizes(&control.decide(later)), ["east workload 0"], "another size is tried");
}

#[test]
fn a_clone_of_another_size_whose_job_is_not_elastic_is_removed() {
    let mut control = dispatching(&hub_job("20", false, &running()), &[hub_workload()]);
    let (mut clone, copy) = copies();
    clone["spec"]["podSets"][0]["count"] = json!(3);
    connect(&mut control, vec![clone], vec![copy]);
    assert_eq!(resizes(&control.decide(NOW)), ["job-delete"]);
}

#[test]
fn the_placement_of_a_job_that_shrinks_is_as_small() {
    let mut control = manager(2, (2, 2));
    control.decide(NOW);
    let pods = |control: &ManagerControl| -> i64 {
        let fleet = &control.dispatching.fleet;
        let key = Key { namespace: Some("ns".into()), name: name().into() };
        let id = control.core.workloads.id_of(&key).expect("an id");
        fleet.placed_work(id).expect("placed").assigned.iter().map(|one| one.count).sum()
    };
    assert_eq!(pods(&control), 2);
    control.observe(ManagerInput::Workload(Change::Apply(shared(workload_of(1, "70")))), NOW);
    control.decide(NOW);
    assert_eq!(pods(&control), 1);
    let mut restarted = manager(1, (2, 2));
    restarted.decide(NOW);
    assert_eq!(pods(&restarted), 1);
}
