//! A hub that was restored from a backup: its incarnation, and copies that it does not know.

use dispatch::AcceptedIncarnation;
use jiff::ToSpan;
use k8s_openapi::api::core::v1::ConfigMap;

use super::{
    dispatched::{
        connect, copies, dispatching, dispatching_lists, done, hub_job, hub_workload, name,
        on_east, orders, running,
    },
    orphan_cleanup::{asks, confirm},
    *,
};

/// The copies, with more annotations each.
pub(super) fn stamped(annotations: &[(&str, &str)]) -> (Value, Value) {
    let (mut clone, mut copy) = copies();
    for object in [&mut clone, &mut copy] {
        for (name, value) in annotations {
            object["metadata"]["annotations"][name] = json!(value);
        }
    }
    (clone, copy)
}

fn hub(workloads: &[Value]) -> ManagerControl {
    dispatching(&hub_job("20", false, &running()), workloads)
}

/// Stamps of copies that only a person decides about.
fn unknown() -> Vec<Vec<(&'static str, &'static str)>> {
    vec![
        vec![("sluice.dev/incarnation", "6")],
        // Another leader of this incarnation wrote it, after the present one began.
        vec![
            ("sluice.dev/incarnation", "7"),
            ("sluice.dev/term", "8"),
            ("sluice.dev/hub-version", "1001"),
        ],
    ]
}

#[test]
fn a_restored_hub_deletes_no_copy_that_it_does_not_know() {
    for annotations in unknown() {
        for workloads in [vec![], vec![hub_workload()]] {
            let mut control = hub(&workloads);
            let (clone, copy) = stamped(&annotations);
            connect(&mut control, vec![clone], vec![copy]);
            for seconds in [0, 400, 4000] {
                let step = control.decide(NOW + seconds.seconds());
                assert_eq!(on_east(&step), [""; 0], "{annotations:?}");
            }
            assert!(asks(&control), "{annotations:?}");
        }
    }
}

/// A worker without an agent has no entries of managers, so both are served there.
#[test]
fn hazard_8_managers_of_one_origin_delete_nothing_of_each_other_on_a_worker_without_an_agent() {
    for workloads in [vec![], vec![hub_workload()]] {
        let mut control = hub(&workloads);
        let (clone, copy) = stamped(&[
            ("sluice.dev/incarnation", "123"),
            ("sluice.dev/term", "123"),
            ("sluice.dev/workload-uid", "that of the other manager"),
        ]);
        connect(&mut control, vec![clone], vec![copy]);
        control.observe(dispatched::east(WorkerInput::Capacity(list(vec![]))), NOW);
        for seconds in [0, 400, 4000] {
            assert_eq!(on_east(&control.decide(NOW + seconds.seconds())), [""; 0]);
        }
        assert!(asks(&control), "a person is asked");
    }
}

#[test]
fn copies_of_a_higher_epoch_or_another_uid_stay_and_a_person_is_asked() {
    for annotations in [("sluice.dev/epoch", "2"), ("sluice.dev/workload-uid", "wl-0")] {
        let mut control = hub(&[hub_workload()]);
        let (clone, copy) = stamped(&[annotations]);
        connect(&mut control, vec![clone], vec![copy]);
        for seconds in [0, 361, 4000] {
            let step = control.decide(NOW + seconds.seconds());
            assert_eq!(on_east(&step), [""; 0], "{annotations:?}");
            assert!(!orders(&step).contains(&"hub retry".to_owned()), "{annotations:?}");
        }
        assert!(asks(&control), "{annotations:?}");
    }
}

#[test]
fn copies_of_a_later_version_of_their_workload_stay_and_a_person_is_asked() {
    // The revisions of the hub were raised at its restore: the leader begins far above everything that was lost.
    let lost = [
        ("sluice.dev/incarnation", "7"),
        ("sluice.dev/term", "8"),
        ("sluice.dev/hub-version", "300"),
        ("sluice.dev/workload-uid", "wl-1"),
    ];
    for (version, is_lost) in [("299", true), ("300", false)] {
        let mut restored = hub_workload();
        restored["metadata"]["resourceVersion"] = json!(version);
        restored["metadata"]["annotations"] = json!({"sluice.dev/epoch": "2"});
        let mut control = hub(&[restored]);
        leads_since(&mut control, 1_000_000);
        let (clone, copy) = stamped(&lost);
        connect(&mut control, vec![clone], vec![copy]);
        let step = control.decide(NOW);
        assert_eq!(on_east(&step).is_empty(), is_lost, "{version}: {:?}", on_east(&step));
        assert_eq!(asks(&control), is_lost, "{version}");
    }
}

#[test]
fn copies_of_a_workload_whose_deletion_was_observed_are_removed() {
    let mut control = hub(&[hub_workload()]);
    let (clone, copy) = stamped(&[("sluice.dev/workload-uid", "wl-1")]);
    connect(&mut control, vec![clone], vec![copy]);
    control.decide(NOW);
    let mut next = hub_workload();
    next["metadata"]["uid"] = json!("wl-2");
    next["metadata"]["resourceVersion"] = json!("90");
    next["status"] = json!({});
    control.observe(ManagerInput::Workload(Change::Apply(shared(next))), NOW);
    assert_eq!(on_east(&control.decide(NOW)), ["east job-delete"]);
}

#[test]
fn the_epoch_rises_above_the_copies_before_a_confirmed_cleanup_removes_them() {
    let mut pending = hub_workload();
    pending["status"]["clusterName"] = json!(null);
    pending["status"]["nominatedClusterNames"] = json!(["east"]);
    pending["status"]["admissionChecks"][0]["state"] = json!("Pending");
    let mut control = dispatching(&hub_job("20", true, &json!({})), &[pending.clone()]);
    let (clone, copy) = stamped(&[("sluice.dev/epoch", "5")]);
    connect(&mut control, vec![clone], vec![copy]);
    control.decide(NOW);
    let later = NOW + 400.seconds();
    let step = control.decide(later);
    assert_eq!(on_east(&step), [""; 0]);
    pending["metadata"]["resourceVersion"] = json!("89");
    done(&mut control, &step, "dispatched", pending.clone(), later);
    confirm(&mut control, "9", true);
    let step = control.decide(later);
    assert_eq!(orders(&step), ["hub raise-epoch"]);
    let order = step.orders.iter().find(|one| one.ticket.purpose == Purpose::RaiseEpoch);
    let body = order.expect("the epoch rises").write.request().body();
    let body: Value = serde_json::from_slice(body).expect("JSON");
    assert_eq!(body["metadata"]["annotations"]["sluice.dev/epoch"], "6");
    pending["metadata"]["annotations"] = json!({"sluice.dev/epoch": "6"});
    pending["metadata"]["resourceVersion"] = json!("91");
    done(&mut control, &step, "raise-epoch", pending, later);
    assert_eq!(on_east(&control.decide(later)), ["east job-delete"]);
}

/// The present leader began at this version.
pub(super) fn leads_since(control: &mut ManagerControl, began_at: u64) {
    let multikueue = control.dispatching.multikueue.as_mut().expect("a manager that dispatches");
    multikueue.set_incarnation(dispatch::HubIncarnation { began_at, ..incarnation() });
}

/// The ConfigMap of the incarnation.
fn record(version: &str, data: &Value) -> ConfigMap {
    object(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "sluice-incarnation", "namespace": "kueue-system", "uid": "u-1",
            "resourceVersion": version,
        },
        "data": data,
    }))
}

/// A manager that has listed everything, this ConfigMap included, at this second.
fn beginning(
    objects: Vec<Value>,
    annotations: &[(&str, &str)],
    second: i64,
) -> (ManagerControl, Decisions) {
    let mut control = ManagerControl::new(capacity_settings());
    let now = NOW + second.seconds();
    let lists = dispatching_lists(&hub_job("20", false, &running()), &[hub_workload()]);
    lists.into_iter().for_each(|input| control.observe(input, now));
    let (clone, copy) = stamped(annotations);
    connect(&mut control, vec![clone], vec![copy]);
    control.observe(ManagerInput::Incarnation(list(objects)), now);
    let step = control.decide(now);
    (control, step)
}

/// The data of the record that a step writes.
fn written(step: &Decisions) -> Value {
    let order = step.orders.iter().find(|one| one.ticket.purpose == Purpose::Incarnation);
    let body = order.expect("it is written").write.request().body();
    serde_json::from_slice::<Value>(body).expect("JSON")["data"].clone()
}

#[test]
fn a_leader_writes_its_term_before_anything_happens_on_a_worker() {
    let (mut control, step) = beginning(vec![], &[], 500);
    assert_eq!(on_east(&step), [""; 0]);
    assert_eq!(written(&step), json!({"incarnation": "500", "term": "500"}));
    let known = record("70", &written(&step));
    done(&mut control, &step, "incarnation", json!(known), NOW);
    let key = Key { namespace: Some("ns".into()), name: name().into() };
    control.observe(ManagerInput::Workload(Change::Delete(key)), NOW);
    assert!(on_east(&control.decide(NOW)).contains(&"east job-delete".to_owned()));

    let (_, next) = beginning(vec![json!(record("71", &written(&step)))], &[], 400);
    let data = json!({"incarnation": "500", "term": "501", "uid": "u-1"});
    assert_eq!(written(&next), data, "the clock went back");
}

/// The watch reports the ConfigMap before its create is answered: the uid, which the create does not know, is no reason to write again.
#[test]
fn a_term_is_written_once_while_its_answer_is_out() {
    let (mut control, step) = beginning(vec![], &[], 500);
    let now = NOW + 500.seconds();
    let known = record("70", &written(&step));
    control.observe(ManagerInput::Incarnation(Change::Apply(known.clone().into())), now);
    let next = control.decide(now);
    let writes = next.orders.iter().filter(|one| one.ticket.purpose == Purpose::Incarnation);
    assert_eq!(writes.count(), 0);
    done(&mut control, &step, "incarnation", json!(known), now);
    let key = Key { namespace: Some("ns".into()), name: name().into() };
    control.observe(ManagerInput::Workload(Change::Delete(key)), now);
    assert!(on_east(&control.decide(now)).contains(&"east job-delete".to_owned()));
}

#[test]
fn the_incarnation_rises_when_its_record_was_restored_as_an_object() {
    let data = json!({"incarnation": "500", "term": "600", "uid": "u-0"});
    let (_, step) = beginning(vec![json!(record("71", &data))], &[], 700);
    assert_eq!(written(&step), json!({"incarnation": "700", "term": "700", "uid": "u-1"}));
}

#[test]
fn the_incarnation_rises_when_a_copy_proves_that_the_hub_went_back() {
    let data = json!({"incarnation": "7", "term": "8", "uid": "u-1"});
    let lost = [
        ("sluice.dev/incarnation", "7"),
        ("sluice.dev/term", "8"),
        ("sluice.dev/hub-version", "102"),
    ];
    let (mut control, step) = beginning(vec![json!(record("100", &data))], &lost, 900);
    done(&mut control, &step, "incarnation", json!(record("101", &written(&step))), NOW);
    let step = control.decide(NOW + 950.seconds());
    assert_eq!(on_east(&step), [""; 0]);
    let expected =
        json!({"incarnation": "950", "term": "950", "uid": "u-1", "accepted": "7@101/900"});
    assert_eq!(written(&step), expected);
    done(&mut control, &step, "incarnation", json!(record("103", &expected)), NOW);
    let step = control.decide(NOW + 951.seconds());
    assert_eq!(on_east(&step), [""; 0]);
    assert!(asks(&control), "what is lost stays, also after the next start");
}

#[test]
fn hostile_worker_forged_stamps_raise_the_incarnation_once() {
    let data = json!({"incarnation": "7", "term": "8", "uid": "u-1"});
    let forged = |incarnation: &'static str| {
        [
            ("sluice.dev/incarnation", incarnation),
            ("sluice.dev/term", "1"),
            ("sluice.dev/hub-version", "99999"),
        ]
    };
    let (mut control, step) = beginning(vec![json!(record("100", &data))], &forged("7"), 900);
    done(&mut control, &step, "incarnation", json!(record("101", &written(&step))), NOW);
    let step = control.decide(NOW + 950.seconds());
    let raised = written(&step);
    assert_eq!(raised["incarnation"], "950");
    done(&mut control, &step, "incarnation", json!(record("103", &raised)), NOW);
    let (clone, copy) = stamped(&forged("950"));
    control.observe(dispatched::linked(false), NOW);
    connect(&mut control, vec![clone], vec![copy]);
    let step = control.decide(NOW + 951.seconds());
    let writes = step.orders.iter().filter(|one| one.ticket.purpose == Purpose::Incarnation);
    assert_eq!((writes.count(), on_east(&step)), (0, vec![]));
    assert!(asks(&control), "a person decides about it");
}

#[test]
fn the_newest_hundred_accepted_incarnations_are_kept() {
    let former: Vec<String> = (1000..1100).map(|id| id.to_string()).collect();
    let data = json!({"incarnation": "7", "term": "8", "uid": "u-1", "accepted": former.join(",")});
    let lost = [
        ("sluice.dev/incarnation", "7"),
        ("sluice.dev/term", "8"),
        ("sluice.dev/hub-version", "102"),
    ];
    let (mut control, step) = beginning(vec![json!(record("100", &data))], &lost, 900);
    done(&mut control, &step, "incarnation", json!(record("101", &written(&step))), NOW);
    let step = written(&control.decide(NOW + 950.seconds()));
    let accepted: Vec<&str> = step["accepted"].as_str().expect("text").split(',').collect();
    assert_eq!((accepted.len(), accepted[0]), (100, "1001"));
    assert_eq!(accepted[99], "7@101/900");
}

#[test]
fn a_person_accepts_the_copies_of_an_earlier_incarnation() {
    let mut control = hub(&[hub_workload()]);
    let accepted = vec![AcceptedIncarnation { id: 6, shared: None }];
    let multikueue = control.dispatching.multikueue.as_mut().expect("it dispatches");
    multikueue.set_incarnation(dispatch::HubIncarnation { accepted, ..incarnation() });
    let (clone, copy) = stamped(&[("sluice.dev/incarnation", "6")]);
    connect(&mut control, vec![clone], vec![copy]);
    assert_eq!(orders(&control.decide(NOW)), ["hub pods-ready"], "it is followed");
    assert!(!asks(&control));
}
