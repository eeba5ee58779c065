//! Workers that remove, or change, what they were given, again and again (docs/reference/dispatch.md §3).

use jiff::ToSpan;

use super::{
    dispatched::{
        connect, copies, dispatching, done, east, hub_job, hub_workload, name, nominated, on_east,
        orders, running,
    },
    *,
};

/// The hub's Workload under this epoch, recorded for `east`.
fn recorded(version: &str, epoch: u32) -> Value {
    let mut workload = hub_workload();
    workload["metadata"]["resourceVersion"] = json!(version);
    workload["metadata"]["annotations"] = json!({"sluice.dev/epoch": epoch.to_string()});
    workload
}

/// Whether `east` is left out for work like that of the Workload.
fn is_left_out(control: &ManagerControl) -> bool {
    let key = Key { namespace: Some("ns".into()), name: name().into() };
    let id = control.core.workloads.get(&key).and_then(|record| record.id()).expect("known");
    let request = control.core.scheduler.request(id).expect("a request");
    let fleet = &control.dispatching.fleet;
    let east = fleet.find("east").expect("known");
    !fleet.may_join("all", request, east, engine::Time(0))
}

/// The recorded clone of each of these epochs is gone. Returns whether `east` is left out after each.
fn lose(epochs: &[u32]) -> Vec<bool> {
    let mut control = dispatching(&hub_job("20", false, &running()), &[recorded("21", epochs[0])]);
    connect(&mut control, vec![], vec![]);
    let mut all = vec![];
    for (at, epoch) in epochs.iter().enumerate() {
        let version = (30 + at).to_string();
        let change = ManagerInput::Workload(Change::Apply(shared(recorded(&version, *epoch))));
        control.observe(change, NOW);
        let sent = orders(&control.decide(NOW));
        assert!(at > 0 || sent.contains(&"hub retry".to_owned()), "{sent:?}");
        // The step repeats until the check shows it.
        control.decide(NOW);
        all.push(is_left_out(&control));
    }
    all
}

#[test]
fn a_cluster_that_removes_the_admitted_copy_is_left_out_from_the_second_time_on() {
    assert_eq!(lose(&[1, 2, 3]), [false, true, true]);
    assert_eq!(lose(&[1, 1]), [false, false], "an epoch counts once");
}

#[test]
fn a_clone_that_is_stored_with_another_spec_is_a_refusal() {
    let mut pending = nominated("21", false);
    pending["metadata"]["generation"] = json!(3);
    let mut control = dispatching(&hub_job("20", true, &json!({})), &[pending]);
    connect(&mut control, vec![], vec![]);
    let step = control.decide(NOW);
    assert_eq!(on_east(&step), ["east clone-create", "east job-create"]);
    let (mut clone, copy) = copies();
    clone["status"] = json!({});
    clone["spec"]["queueName"] = json!("another");
    done(&mut control, &step, "clone-create", clone.clone(), NOW);
    done(&mut control, &step, "job-create", copy.clone(), NOW);
    control.observe(east(WorkerInput::Workload(Change::Apply(shared(clone)))), NOW);
    let copy = Arc::new(batch_job().decode(copy).expect("a Job decodes"));
    control.observe(east(WorkerInput::Job(batch_job(), Change::Apply(copy))), NOW);
    let step = control.decide(NOW);
    assert_eq!(on_east(&step), ["east job-delete"]);
    let gone = Change::Delete(Key { namespace: Some("ns".into()), name: "train".into() });
    control.observe(east(WorkerInput::Job(batch_job(), gone)), NOW);
    let sent = orders(&control.decide(NOW));
    assert!(sent.contains(&"hub raise-epoch".to_owned()), "the nomination ends: {sent:?}");
}

#[test]
fn a_clone_of_an_earlier_version_of_the_workload_is_no_refusal() {
    let mut pending = nominated("21", false);
    pending["metadata"]["generation"] = json!(3);
    let mut control = dispatching(&hub_job("20", true, &json!({})), &[pending.clone()]);
    connect(&mut control, vec![], vec![]);
    let step = control.decide(NOW);
    pending["metadata"]["generation"] = json!(4);
    pending["metadata"]["resourceVersion"] = json!("22");
    pending["spec"]["maximumExecutionTimeSeconds"] = json!(77);
    control.observe(ManagerInput::Workload(Change::Apply(shared(pending))), NOW);
    let (mut clone, copy) = copies();
    clone["status"] = json!({});
    done(&mut control, &step, "clone-create", clone, NOW);
    done(&mut control, &step, "job-create", copy, NOW);
    let step = control.decide(NOW);
    assert!(!orders(&step).contains(&"hub raise-epoch".to_owned()), "{:?}", orders(&step));
}

#[test]
fn in_a_race_a_cluster_that_removes_copies_again_gets_none_for_a_while_and_takes_other_work() {
    let settings = dispatching_settings("kueue.x-k8s.io/multikueue-dispatcher-all-at-once");
    let mut control = race::manager_of(settings);
    ["east", "west"].into_iter().for_each(|name| race::connect(&mut control, name));
    let observe = |control: &mut ManagerControl, workload: Value| {
        control.observe(ManagerInput::Workload(Change::Apply(shared(workload))), NOW);
    };
    for epoch in [1, 2] {
        observe(&mut control, recorded(&(50 + epoch).to_string(), epoch));
        let sent = orders(&control.decide(NOW));
        assert!(epoch > 1 || sent.contains(&"hub retry".to_owned()), "{sent:?}");
    }
    assert!(!is_left_out(&control), "other work of the shape may go there");

    let mut again = race::reserved("60", &["east", "west"]);
    again["metadata"]["annotations"] = json!({"sluice.dev/epoch": "3"});
    observe(&mut control, again);
    let creates = |step: &Decisions| {
        let all = orders(step).into_iter();
        all.filter(|order| order.ends_with("clone-create")).collect::<Vec<_>>()
    };
    assert_eq!(creates(&control.decide(NOW)), ["west clone-create"]);
    assert_eq!(creates(&control.decide(NOW + 59.seconds())), [""; 0]);
    assert_eq!(creates(&control.decide(NOW + 60.seconds())), ["east clone-create"]);
}
