//! A Job that is made again under the name of one whose copy still leaves the worker.

use jiff::ToSpan;

use super::{
    dispatched::{
        connect, copies, dispatching, done, east, hub_job, name, nominated, orders, running,
    },
    orphan_cleanup::on_east,
    timers::Reevaluation,
    *,
};

/// The copy of the earlier Job, which names its Workload.
fn earlier(deleting: bool) -> Value {
    let (_, mut copy) = copies();
    let metadata = &mut copy["metadata"];
    metadata["annotations"]["kueue.x-k8s.io/prebuilt-workload-name"] = json!("job-train-earlier");
    if deleting {
        metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        metadata["finalizers"] = json!(["foregroundDeletion"]);
    }
    copy
}

fn manager(copy: Value) -> ManagerControl {
    let job = hub_job("20", true, &json!({}));
    let mut control = dispatching(&job, &[nominated("21", false)]);
    connect(&mut control, vec![], vec![copy]);
    control
}

/// The clone is created, and the worker admits it.
fn admit(control: &mut ManagerControl) {
    let step = control.decide(NOW);
    assert_eq!(on_east(&step), ["east clone-create"]);
    let (clone, _) = copies();
    done(control, &step, "clone-create", clone.clone(), NOW);
    control.observe(east(WorkerInput::Workload(Change::Apply(shared(clone)))), NOW);
    assert_eq!(on_east(&control.decide(NOW)), [""; 0], "the name is held");
}

fn gone() -> ManagerInput {
    let key = Key { namespace: Some("ns".into()), name: "train".into() };
    east(WorkerInput::Job(batch_job(), Change::Delete(key)))
}

/// What the bodies of a decision say.
fn texts(step: &Decisions) -> String {
    let bodies = step.orders.iter().map(|order| order.write.request().body());
    bodies.map(|body| String::from_utf8_lossy(body).into_owned()).collect()
}

#[test]
fn the_job_is_created_when_the_copy_of_the_earlier_one_is_gone() {
    let mut control = manager(earlier(true));
    admit(&mut control);
    control.observe(gone(), NOW);
    assert_eq!(on_east(&control.decide(NOW)), ["east job-create"]);
}

#[test]
fn a_long_grace_period_is_no_fault_of_the_cluster() {
    let mut copy = earlier(true);
    copy["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(600);
    let mut control = manager(copy);
    admit(&mut control);
    for seconds in [61, 300, 600] {
        let step = control.decide(NOW + seconds.seconds());
        assert_eq!(orders(&step), [""; 0], "after {seconds} s");
    }
    let late = NOW + 640.seconds();
    control.observe(gone(), late);
    assert_eq!(on_east(&control.decide(late)), ["east job-create"]);
    // The time to admit begins when the name is free.
    assert!(!orders(&control.decide(late + 59.seconds())).contains(&"hub raise-epoch".to_owned()));
}

#[test]
fn a_copy_that_is_never_gone_is_named_in_the_refusal() {
    let mut control = manager(earlier(true));
    admit(&mut control);
    let (early, late) = (NOW + 89.seconds(), NOW + 90.seconds());
    assert_eq!(orders(&control.decide(early)), [""; 0]);
    let step = control.decide(late);
    assert_eq!(orders(&step), ["hub raise-epoch"]);
    let mut raised = nominated("30", false);
    raised["metadata"]["annotations"] = json!({"sluice.dev/epoch": "2"});
    done(&mut control, &step, "raise-epoch", raised, late);
    let said = texts(&control.decide(late));
    assert!(said.contains("is held by the copy of an earlier one"), "{said}");
}

#[test]
fn a_copy_of_an_absent_workload_is_deleted_by_the_next_one_of_its_name() {
    let mut control = manager(earlier(false));
    let agenda = &mut control.core.ctx.agenda;
    // No watch reports the copy again.
    agenda.take_workloads();
    let key = Key { namespace: Some("ns".into()), name: name().into() };
    agenda.now(Reevaluation::Workload(key));
    let mut sent = on_east(&control.decide(NOW));
    sent.sort();
    assert_eq!(sent, ["east clone-create", "east job-delete"]);
}

#[test]
fn a_copy_that_awaits_a_confirmation_is_named_at_once() {
    let mut copy = earlier(false);
    copy["metadata"]["annotations"]["sluice.dev/incarnation"] = json!("6");
    copy["status"] = running();
    let mut control = manager(copy);
    let step = control.decide(NOW);
    assert_eq!(on_east(&step), [""; 0]);
    let mut raised = nominated("30", false);
    raised["metadata"]["annotations"] = json!({"sluice.dev/epoch": "2"});
    done(&mut control, &step, "raise-epoch", raised, NOW);
    let said = texts(&control.decide(NOW));
    assert!(said.contains("is held by a copy that awaits a confirmation"), "{said}");
}
