//! Orphan cleanup: copies of unknown Workloads are deleted, or wait for a user to confirm.

use jiff::ToSpan;

use super::{
    dispatched::{
        connect, copies, dispatching, dispatching_lists, done, east, hub_job, hub_workload, on_east,
    },
    *,
};

fn key(name: &str) -> Key {
    Key { namespace: Some("ns".into()), name: name.into() }
}

/// A Workload, or its clone.
fn named(mut object: Value, name: &str) -> Value {
    object["metadata"]["name"] = json!(name);
    object["metadata"]["uid"] = json!(format!("uid of {name}"));
    object["metadata"]["ownerReferences"] = json!([]);
    object
}

fn waiting() -> Value {
    hub_job("20", true, &json!({}))
}

/// A hub and its worker, which have so many Workloads.
fn with_many(n: usize) -> ManagerControl {
    let names: Vec<String> = (0..n).map(|number| format!("w-{number}")).collect();
    let on_hub: Vec<Value> = names.iter().map(|name| named(hub_workload(), name)).collect();
    let clones = names.iter().map(|name| named(copies().0, name)).collect();
    let mut control = dispatching(&waiting(), &on_hub);
    connect(&mut control, clones, vec![]);
    control
}

/// Whether a person is asked about what the worker has.
pub(super) fn asks(control: &ManagerControl) -> bool {
    east_message(control).contains("not known here")
}

pub(super) fn confirm(control: &mut ManagerControl, version: &str, confirmed: bool) {
    let value = if confirmed { "confirmed" } else { "" };
    let east = json!({"spec": {}, "metadata": {
        "name": "east", "resourceVersion": version, "annotations": {"sluice.dev/cleanup": value},
    }});
    control.observe(ManagerInput::MultiKueueCluster(Change::Apply(shared(east))), NOW);
}

#[test]
fn a_worker_is_compared_when_it_and_the_hub_were_listed() {
    let mut control = leading(capacity_settings());
    let mut lists = dispatching_lists(&waiting(), &[hub_workload()]);
    let of_workloads = lists.iter().position(|input| matches!(input, ManagerInput::Workload(_)));
    let of_workloads = lists.remove(of_workloads.expect("a list of Workloads"));
    lists.into_iter().for_each(|input| control.observe(input, NOW));
    let (clone, copy) = copies();
    connect(&mut control, vec![clone], vec![copy]);
    control.observe(of_workloads, NOW);
    let step = control.decide(NOW);
    assert_eq!(on_east(&step), [""; 0]);
    assert!(!asks(&control), "the hub knows all of it");
}

#[test]
fn the_breaker_trips_when_many_workloads_vanish_in_one_list() {
    for (lost, asks) in [(10, false), (11, true)] {
        let mut control = with_many(20);
        control.decide(NOW);
        let removed = (0..lost).map(|number| key(&format!("w-{number}"))).collect();
        control.observe(ManagerInput::Workload(Change::Reset { objects: vec![], removed }), NOW);
        let step = control.decide(NOW);
        assert_eq!(on_east(&step).is_empty(), asks, "{lost} lost: {:?}", on_east(&step));
        assert_eq!(self::asks(&control), asks);
    }
}

#[test]
fn workloads_deleted_one_by_one_never_trip_the_breaker() {
    let mut control = with_many(20);
    control.decide(NOW);
    (0..20).for_each(|number| {
        let gone = Change::Delete(key(&format!("w-{number}")));
        control.observe(ManagerInput::Workload(gone), NOW);
    });
    assert_eq!(on_east(&control.decide(NOW)).len(), 20);
    control.observe(east(WorkerInput::Job(batch_job(), jobs(vec![]))), NOW);
    assert!(!asks(&control), "they are on their way out");
}

/// A copy on the worker that is not evaluated when the watch reports it.
fn passed_over(gc_interval: Option<std::time::Duration>) -> ManagerControl {
    let lists = dispatching_lists(&waiting(), &[]);
    let mut settings = capacity_settings();
    settings.dispatch.as_mut().expect("it dispatches").gc_interval = gc_interval;
    let mut control = leading(settings);
    lists.into_iter().for_each(|input| control.observe(input, NOW));
    connect(&mut control, vec![], vec![]);
    control.decide(NOW);
    let orphan = shared(named(copies().0, "orphan"));
    control.observe(east(WorkerInput::Workload(Change::Apply(orphan))), NOW);
    control.core.ctx.agenda.take_workloads();
    control
}

#[test]
fn garbage_collection_finds_orphans_after_each_interval() {
    let interval =
        capacity_settings().dispatch.and_then(|one| one.gc_interval).expect("upstream's default");
    let at = |seconds: i64| NOW + seconds.seconds();
    let mut control = passed_over(Some(interval));
    let early = control.decide(at(59));
    assert_eq!((on_east(&early).len(), early.wake), (0, Some(at(60))));
    assert_eq!(on_east(&control.decide(at(60))), ["east clone-delete"]);
    assert_eq!(on_east(&control.decide(at(120))), [""; 0], "it is on its way out");
    let mut control = passed_over(None);
    assert_eq!(on_east(&control.decide(at(3600))), [""; 0]);
}

#[test]
fn the_interval_of_garbage_collection_goes_on_when_the_clock_is_set() {
    for by in [3, -3].map(jiff::SignedDuration::from_hours) {
        let interval = std::time::Duration::from_secs(60);
        let mut control = passed_over(Some(interval));
        control.clock_jumped(by);
        // Of the evaluation that follows the jump.
        control.core.ctx.agenda.take_workloads();
        let at = |seconds| NOW + by + jiff::SignedDuration::from_secs(seconds);
        let early = control.decide(at(59));
        assert_eq!(on_east(&early), [""; 0], "{by}");
        assert!(early.wake.is_some_and(|wake| wake <= at(60)), "{by}: {:?}", early.wake);
        assert_eq!(on_east(&control.decide(at(60))), ["east clone-delete"], "{by}");
    }
}

#[test]
fn jobs_of_this_origin_that_name_no_workload_are_deleted() {
    let mut control = dispatching(&waiting(), &[]);
    connect(&mut control, vec![], vec![]);
    control.decide(NOW);
    for name in ["a", "b"] {
        let mut job = named(copies().1, name);
        job["metadata"]["annotations"] = json!({});
        let job = Arc::new(batch_job().decode(job).expect("a Job"));
        control.observe(east(WorkerInput::Job(batch_job(), Change::Apply(job))), NOW);
    }
    let deleted = |step: Decisions| -> Vec<String> {
        let jobs = step.orders.iter().filter(|one| one.ticket.purpose.name() == "job-delete");
        jobs.map(|one| one.ticket.target.key.name.to_string()).collect()
    };
    assert_eq!(deleted(control.decide(NOW)), ["a", "b"]);
}

#[test]
fn the_breaker_closes_when_no_orphan_is_left() {
    let mut control = dispatching(&waiting(), &[]);
    connect(&mut control, vec![copies().0], vec![]);
    assert_eq!(on_east(&control.decide(NOW)), [""; 0], "it asks");
    confirm(&mut control, "9", true);
    let step = control.decide(NOW);
    assert_eq!(on_east(&step), ["east clone-delete"]);
    done(&mut control, &step, "clone-delete", json!({"kind": "Status"}), NOW);
    let gone = key(copies().0["metadata"]["name"].as_str().expect("a name"));
    control.observe(east(WorkerInput::Workload(Change::Delete(gone))), NOW);
    let later = NOW + 60.seconds();
    control.decide(later);
    confirm(&mut control, "10", false);
    let orphan = shared(named(copies().0, "orphan"));
    control.observe(east(WorkerInput::Workload(Change::Apply(orphan))), later);
    assert_eq!(on_east(&control.decide(later)), ["east clone-delete"], "it need not ask again");
}

/// The annotations that the MultiKueueCluster loses or gets by this step.
fn annotations_written(step: &Decisions) -> Vec<Value> {
    let about = |order: &&Order| order.ticket.target.subject == Subject::MultiKueueCluster;
    let body = |order: &Order| -> Value {
        serde_json::from_slice(order.write.request().body()).expect("JSON")
    };
    let bodies = step.orders.iter().filter(about).map(body);
    bodies
        .map(|body| body["metadata"]["annotations"].clone())
        .filter(|one| !one.is_null())
        .collect()
}

/// Writes of the MultiKueueCluster are done.
fn cluster_written(control: &mut ManagerControl, step: &Decisions) {
    for order in &step.orders {
        if order.ticket.target.subject == Subject::MultiKueueCluster {
            control.answered(&order.ticket, WriteOutcome::done(json!({})), NOW);
        }
    }
}

#[test]
fn a_confirmation_is_about_the_copies_that_were_asked_about() {
    let later = NOW + 60.seconds();
    let mut control = dispatching(&waiting(), &[]);
    connect(&mut control, vec![copies().0], vec![]);
    let step = control.decide(NOW);
    assert_eq!(on_east(&step), [""; 0], "it asks");
    cluster_written(&mut control, &step);
    confirm(&mut control, "9", true);
    let step = control.decide(NOW);
    assert_eq!(on_east(&step), ["east clone-delete"]);
    assert_eq!(annotations_written(&step), [json!(null); 0], "the cleanup goes on");
    cluster_written(&mut control, &step);
    done(&mut control, &step, "clone-delete", json!({"kind": "Status"}), NOW);
    let gone = key(copies().0["metadata"]["name"].as_str().expect("a name"));
    control.observe(east(WorkerInput::Workload(Change::Delete(gone))), NOW);
    let step = control.decide(later);
    assert_eq!(annotations_written(&step), [json!({"sluice.dev/cleanup": null})], "it is over");

    // The annotation is still there when another history shows up.
    let mut lost = named(copies().0, "lost");
    lost["metadata"]["annotations"] = json!({"sluice.dev/incarnation": "6"});
    control.observe(east(WorkerInput::Workload(list(vec![lost]))), later);
    let step = control.decide(later);
    assert_eq!(on_east(&step), [""; 0]);
    assert!(asks(&control));
    confirm(&mut control, "11", false);
    assert_eq!(on_east(&control.decide(later)), [""; 0]);
    confirm(&mut control, "12", true);
    assert_eq!(on_east(&control.decide(later)), ["east clone-delete"]);
}

#[test]
fn a_confirmation_that_is_older_than_its_question_is_void() {
    let mut control = dispatching(&waiting(), &[]);
    confirm(&mut control, "9", true);
    connect(&mut control, vec![copies().0], vec![]);
    let step = control.decide(NOW);
    assert_eq!(on_east(&step), [""; 0], "it asks");
    assert_eq!(annotations_written(&step), [json!({"sluice.dev/cleanup": null})]);
}
