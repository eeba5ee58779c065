//! A worker whose registration ends.

use super::{
    dispatched::{connect, copies, dispatching, done, east, hub_job, linked, nominated, orders},
    keeping::{manager, waiting},
    *,
};

fn unregister(control: &mut Control) {
    let key = Key { namespace: None, name: "east".into() };
    control.hear(Input::MultiKueueCluster(Change::Delete(key)), NOW);
}

fn clean(control: &mut Control) -> Vec<Box<str>> {
    control.decide(NOW).clean.into_iter().collect()
}

#[test]
fn it_is_clean_when_its_watches_show_nothing_of_ours() {
    let mut control = dispatching(&hub_job("20", true, &json!({})), &[]);
    connect(&mut control, vec![copies().0], vec![copies().1]);
    unregister(&mut control);
    assert!(clean(&mut control).is_empty(), "it has a clone and a Job");
    let gone = |object: Value| Change::Delete(Key::of(&self::object::<Workload>(object)));
    control.hear(east(RemoteInput::Workload(gone(copies().0))), NOW);
    assert!(clean(&mut control).is_empty(), "it has a Job");
    let gone = Change::Delete(Key::of(&object::<Job>(copies().1)));
    control.hear(east(RemoteInput::Job(gone)), NOW);
    assert_eq!(clean(&mut control), ["east".into()]);
    control.hear(linked(false), NOW);
    assert!(clean(&mut control).is_empty(), "nobody sees it");
    connect(&mut control, vec![], vec![]);
    assert_eq!(clean(&mut control), ["east".into()]);
    let again = json!({"metadata": {"name": "east", "resourceVersion": "9"}, "spec": {}});
    control.hear(Input::MultiKueueCluster(Change::Apply(object(again))), NOW);
    assert!(clean(&mut control).is_empty(), "it is registered again");
}

#[test]
fn it_is_not_clean_while_something_is_on_its_way_there() {
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
fn it_gets_nothing_new_though_it_is_still_connected() {
    for (registered, gets_it) in [(true, true), (false, false)] {
        let mut control = manager(&json!({}));
        if !registered {
            unregister(&mut control);
        }
        let submitted = Change::Apply(object(waiting("small", 1, 1)));
        control.hear(Input::Workload(submitted), NOW);
        control.decide(NOW);
        let key = Key { namespace: Some("ns".into()), name: "small".into() };
        assert_eq!(control.workloads[&key].wants.reserve.is_some(), gets_it);
    }
}
