//! A worker whose registration ends.

use jiff::ToSpan;

use super::{
    dispatched::{
        self, connect, copies, dispatched_to_east, dispatching, done, east, hub_job, linked,
        nominated, on_east, orders,
    },
    gang_reservation::{manager, waiting},
    *,
};

fn unregister(control: &mut ManagerControl) {
    let key = Key { namespace: None, name: "east".into() };
    control.observe(ManagerInput::MultiKueueCluster(Change::Delete(key)), NOW);
}

/// The worker, if its connection may end.
fn clean(control: &mut ManagerControl) -> Vec<Box<str>> {
    let plans = control.decide(NOW).connections.expect("everything was listed");
    if plans.contains_key("east") { Vec::new() } else { vec!["east".into()] }
}

#[test]
fn a_worker_is_clean_when_its_watches_show_no_copies() {
    let mut control = dispatching(&hub_job("20", true, &json!({})), &[]);
    connect(&mut control, vec![copies().0], vec![copies().1]);
    unregister(&mut control);
    assert!(clean(&mut control).is_empty(), "it has a clone and a Job");
    let gone = |object: Value| Change::Delete(Key::of(&self::object::<Workload>(object)));
    control.observe(east(WorkerInput::Workload(gone(copies().0))), NOW);
    assert!(clean(&mut control).is_empty(), "it has a Job");
    let copy = batch_job().decode(copies().1).expect("a Job");
    let gone = Change::Delete(Key::of(&copy));
    control.observe(east(WorkerInput::Job(batch_job(), gone)), NOW);
    assert_eq!(clean(&mut control), ["east".into()]);
    control.observe(linked(false), NOW);
    assert!(clean(&mut control).is_empty(), "no watch shows it");
    connect(&mut control, vec![], vec![]);
    assert_eq!(clean(&mut control), ["east".into()]);
    let again = json!({"metadata": {"name": "east", "resourceVersion": "9"}, "spec": {}});
    control.observe(ManagerInput::MultiKueueCluster(Change::Apply(shared(again))), NOW);
    assert!(clean(&mut control).is_empty(), "it is registered again");
}

#[test]
fn a_worker_is_not_clean_while_a_create_may_be_applied() {
    let mut control = dispatching(&hub_job("20", true, &json!({})), &[nominated("21", false)]);
    connect(&mut control, vec![], vec![]);
    let sent = control.decide(NOW);
    assert!(orders(&sent).contains(&"east clone-create".to_owned()), "{:?}", orders(&sent));
    unregister(&mut control);
    assert!(clean(&mut control).is_empty(), "its clone may arrive");
    done(&mut control, &sent, "job-create", json!({"kind": "Status"}), NOW);
    assert!(clean(&mut control).is_empty(), "its clone may still arrive");
}

#[test]
fn an_unregistered_worker_gets_no_new_work() {
    for (registered, gets_it) in [(true, true), (false, false)] {
        let mut control = manager(&json!({}));
        if !registered {
            unregister(&mut control);
        }
        let submitted = Change::Apply(shared(waiting("small", 1, 1)));
        control.observe(ManagerInput::Workload(submitted), NOW);
        control.decide(NOW);
        let key = Key { namespace: Some("ns".into()), name: "small".into() };
        assert_eq!(
            control
                .core
                .workloads
                .get(&key)
                .is_some_and(|one| one.transitions().reservation().is_some()),
            gets_it
        );
    }
}

/// Whether the check of a Workload goes back for the loss of its worker.
fn resets(step: &Decisions) -> bool {
    orders(step).contains(&"hub retry".to_owned())
}

#[test]
fn a_job_runs_on_where_the_registration_has_ended_until_the_worker_is_lost() {
    let mut control = dispatched_to_east();
    control.decide(NOW);
    unregister(&mut control);
    for later in [0.minutes(), 10.hours()] {
        let step = control.decide(NOW + later);
        assert_eq!((on_east(&step), resets(&step)), (vec![], false), "{later}");
    }
    assert!(clean(&mut control).is_empty(), "its connection is kept");
    let lost = NOW + 10.hours();
    control.observe(linked(false), lost);
    assert!(!resets(&control.decide(lost + 899.seconds())));
    assert!(resets(&control.decide(lost + 900.seconds())), "workerLostTimeout");
}

/// Events about workers, and their number.
fn left_behind_notes(step: Decisions) -> Vec<String> {
    let news = step.events.into_iter().filter(|news| news.regarding.kind == "MultiKueueCluster");
    news.map(|news| format!("{} {}: {}", news.regarding.key, news.reason, news.note)).collect()
}

/// Workloads that hold quota on these workers.
fn placed(on: &[String]) -> Vec<Value> {
    let one = |(number, cluster): (usize, &String)| {
        let mut workload = dispatched::hub_workload();
        workload["metadata"]["name"] = json!(format!("w-{number}"));
        workload["metadata"]["uid"] = json!(format!("uid-{number}"));
        workload["status"]["clusterName"] = json!(cluster);
        workload
    };
    on.iter().enumerate().map(one).collect()
}

#[test]
fn after_a_restart_each_unregistered_worker_with_workloads_gets_one_event() {
    let on = ["west", "east", "west"].map(str::to_owned);
    let mut control = dispatching(&hub_job("20", true, &json!({})), &placed(&on));
    let expected = "west LeftBehind: worker cluster \"west\" is not registered any more; what it has of 2 workloads is left behind, unless it is registered again";
    assert_eq!(left_behind_notes(control.decide(NOW)), [expected]);
    connect(&mut control, vec![], vec![]);
    assert_eq!(left_behind_notes(control.decide(NOW)), [""; 0], "the Event was published");
}

#[test]
fn a_manager_without_dispatch_publishes_no_such_event() {
    let mut control = leading(settings());
    for mut input in lists() {
        if let ManagerInput::Workload(change) = &mut input {
            *change = list(placed(&["west".to_owned()]));
        }
        control.observe(input, NOW);
    }
    assert!(control.is_complete());
    assert_eq!(left_behind_notes(control.decide(NOW)), [""; 0]);
}

#[test]
fn the_number_of_events_about_unregistered_workers_is_bounded() {
    let on: Vec<String> = (0..30).map(|number| format!("gone-{number}")).collect();
    let mut control = dispatching(&hub_job("20", true, &json!({})), &placed(&on));
    assert_eq!(left_behind_notes(control.decide(NOW)).len(), 16);
}

#[test]
fn a_connection_that_ends_with_copies_gets_an_event_per_registration() {
    let mut control = dispatching(&hub_job("20", true, &json!({})), &[]);
    connect(&mut control, vec![copies().0], vec![copies().1]);
    control.observe(east(WorkerInput::GivenUp), NOW);
    assert_eq!(left_behind_notes(control.decide(NOW)), [""; 0], "it is registered");
    unregister(&mut control);
    for times in [1, 0] {
        control.observe(linked(false), NOW);
        control.observe(east(WorkerInput::GivenUp), NOW);
        assert_eq!(left_behind_notes(control.decide(NOW)).len(), times);
    }
    let again = json!({"metadata": {"name": "east", "resourceVersion": "9"}, "spec": {}});
    control.observe(ManagerInput::MultiKueueCluster(Change::Apply(shared(again))), NOW);
    unregister(&mut control);
    control.observe(east(WorkerInput::GivenUp), NOW);
    assert_eq!(left_behind_notes(control.decide(NOW)).len(), 1);
}
