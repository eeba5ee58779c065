//! A hub that is being rebuilt from the copies on its workers (docs/reference/dispatch.md §11).

use jiff::ToSpan;

use super::{
    dispatched::{
        connect, copies, dispatching, east, hub_job, hub_workload, name, on_east, orders,
    },
    incarnation::stamped,
    orphan_cleanup::asks,
    *,
};

const MARK: &str = "sluice.dev/rebuild";

fn marked(mut object: Value) -> Value {
    object["metadata"]["annotations"][MARK] = json!("clone-1");
    object
}

/// The hub's Job as it is rebuilt.
fn waiting() -> Value {
    let mut job = hub_job("20", true, &json!({}));
    job["metadata"]["annotations"] = json!({});
    job
}

/// The Workload before its status is written, without an admission.
fn without_status() -> Value {
    let mut workload = hub_workload();
    workload["status"] = json!({});
    workload
}

#[test]
fn nothing_is_decided_about_a_marked_job_before_its_workload_is_there() {
    let job = waiting();
    let mut control = dispatching(&marked(job.clone()), &[]);
    assert_eq!(orders(&control.decide(NOW)), [""; 0]);
    let mut control = dispatching(&job, &[]);
    assert_eq!(orders(&control.decide(NOW)), ["hub workload-create"], "without the mark");
}

#[test]
fn nothing_is_decided_about_a_marked_workload_and_its_copies_of_whatever_state() {
    for (workload, seconds) in [(without_status(), 0), (hub_workload(), 0), (hub_workload(), 4000)]
    {
        let job = waiting();
        let mut control = dispatching(&marked(job), &[marked(workload)]);
        let (clone, copy) = copies();
        // Copies without stamps are known to every hub: they would be followed, or withdrawn.
        connect(&mut control, vec![clone], vec![copy]);
        let step = control.decide(NOW + seconds.seconds());
        assert_eq!(orders(&step), [""; 0]);
    }
}

#[test]
fn copies_are_followed_once_the_marks_are_gone() {
    let job = waiting();
    let mut control = dispatching(&marked(job), &[marked(hub_workload())]);
    let (clone, copy) = copies();
    connect(&mut control, vec![clone], vec![copy]);
    assert_eq!(orders(&control.decide(NOW)), [""; 0]);
    let change = |object: Value| Change::Apply(shared(object));
    let (mut job, mut workload) = (waiting(), hub_workload());
    job["metadata"]["resourceVersion"] = json!("30");
    workload["metadata"]["resourceVersion"] = json!("31");
    let job = batch_job().decode(job).expect("a Job");
    control.observe(ManagerInput::Job(batch_job(), Change::Apply(Arc::new(job))), NOW);
    control.observe(ManagerInput::Workload(change(workload)), NOW);
    let orders = orders(&control.decide(NOW));
    assert!(orders.iter().any(|one| one.starts_with("hub ")), "{orders:?}");
    assert!(orders.iter().all(|one| !one.starts_with("east ")), "{orders:?}");
}

/// A person gives the Workload up while it is being rebuilt.
#[test]
fn a_deleted_workload_is_released_in_spite_of_its_mark() {
    for job in [marked(waiting()), waiting()] {
        let mut workload = marked(hub_workload());
        workload["metadata"]["deletionTimestamp"] = json!("2026-06-01T00:00:00Z");
        workload["metadata"]["finalizers"] = json!(["kueue.x-k8s.io/resource-in-use"]);
        let mut control = dispatching(&job, &[workload]);
        let (clone, copy) = copies();
        connect(&mut control, vec![clone], vec![copy]);
        assert_eq!(orders(&control.decide(NOW)), ["hub unfinalize"]);
    }
}

/// A hub that was rebuilt: first the copies have stamps of the lost hub, then of this incarnation and this Workload.
fn rebuilt(workload_uid: &str) -> ManagerControl {
    let mut control = dispatching(&marked(waiting()), &[marked(hub_workload())]);
    let (clone, copy) = stamped(&[("sluice.dev/incarnation", "6")]);
    connect(&mut control, vec![clone], vec![copy]);
    assert_eq!(orders(&control.decide(NOW)), [""; 0]);
    assert!(asks(&control), "this hub does not know the copies");
    let known = [("sluice.dev/incarnation", "7"), ("sluice.dev/workload-uid", workload_uid)];
    let (mut clone, mut copy) = stamped(&known);
    clone["metadata"]["resourceVersion"] = json!("901");
    copy["metadata"]["resourceVersion"] = json!("902");
    let copy = Change::Apply(Arc::new(batch_job().decode(copy).expect("a Job")));
    control.observe(east(WorkerInput::Job(batch_job(), copy)), NOW);
    control.observe(east(WorkerInput::Workload(Change::Apply(shared(clone)))), NOW);
    let (mut job, mut workload) = (waiting(), hub_workload());
    job["metadata"]["resourceVersion"] = json!("30");
    workload["metadata"]["resourceVersion"] = json!("31");
    let job = Change::Apply(Arc::new(batch_job().decode(job).expect("a Job")));
    control.observe(ManagerInput::Job(batch_job(), job), NOW);
    control.observe(ManagerInput::Workload(Change::Apply(shared(workload))), NOW);
    assert_eq!(on_east(&control.decide(NOW)), [""; 0]);
    control
}

/// The Workload is deleted before its worker is compared again.
#[test]
fn a_workload_that_is_deleted_after_its_rebuild_takes_its_copies_with_it() {
    for (uid, removed) in [("wl-1", true), ("wl-0", false)] {
        let mut control = rebuilt(uid);
        let key = Key { namespace: Some("ns".into()), name: name().into() };
        control.observe(ManagerInput::Workload(Change::Delete(key)), NOW);
        assert_eq!(!on_east(&control.decide(NOW)).is_empty(), removed, "copies of {uid}");
    }
}
