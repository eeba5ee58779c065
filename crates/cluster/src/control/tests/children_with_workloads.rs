//! Children with Workloads of their own, which a former version or configuration gave them.

use super::{
    cluster::json_merge,
    unobserved_owners::{
        decide, manager, name_of, observe, orders, owned_job, owned_object, owner, shows,
    },
    *,
};

/// What a read shows of the owner `middle` of a child, by the kind of that: a managed job owns it, it is an external job, or it is
/// gone.
fn standings() -> Vec<(&'static str, WriteOutcome)> {
    vec![
        ("JobSet", shows("middle", None, Some(owner("Job", "top")))),
        ("Recipe", shows("middle", Some("lq"), None)),
        ("JobSet", WriteOutcome::Gone),
    ]
}

/// The admitted Workload of a job, with these fields.
fn workload_of(job: &str, fields: &Value) -> Value {
    let mut object = workload();
    object["metadata"]["name"] = json!(format!("job-{job}"));
    object["metadata"]["uid"] = json!(format!("workload-of-{job}"));
    object["metadata"]["ownerReferences"][0]["name"] = json!(job);
    object["metadata"]["ownerReferences"][0]["uid"] = json!(format!("{job}-uid"));
    json_merge(&mut object, fields);
    object
}

fn show(control: &mut ManagerControl, workload: Value) {
    control.observe(ManagerInput::Workload(Change::Apply(shared(workload))), NOW);
}

fn conditions(all: &[(&str, &str)]) -> Value {
    let one = |(name, status): &(&str, &str)| {
        json!({
            "type": name, "status": status, "reason": "Preempted", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    json!(all.iter().map(one).collect::<Vec<_>>())
}

/// A child below `middle` with these fields, and its Workload.
fn with_child(kind: &str, child: &Value, workload: Value) -> ManagerControl {
    let mut control = manager(false);
    show(&mut control, workload_of("top", &json!({"metadata": {"name": "admitted"}})));
    show(&mut control, workload);
    let running = json!({"spec": {"suspend": false}});
    observe(&mut control, owned_job("top", None, &running));
    observe(&mut control, owned_job("child", Some(&owner(kind, "middle")), child));
    control
}

#[test]
fn the_admitted_workload_of_a_child_finishes_with_it() {
    for (kind, shown) in standings() {
        let ended = json!({"spec": {"suspend": false}, "status": {
            "succeeded": 2, "conditions": [{"type": "Complete", "status": "True"}],
        }});
        let mut control = with_child(kind, &ended, workload_of("child", &json!({})));
        let (writes, _) = decide(&mut control, NOW, |_| shown.clone());
        assert!(writes.contains(&"finish job".to_owned()), "{shown:?} {writes:?}");
    }
}

#[test]
fn a_child_whose_workload_is_evicted_stops_and_gets_no_workload_again() {
    let held = conditions(&[("QuotaReserved", "True"), ("Admitted", "True"), ("Evicted", "True")]);
    let evicted = workload_of("child", &json!({"status": {"conditions": held}}));
    for (kind, shown) in standings() {
        let running = json!({"spec": {"suspend": false}});
        let mut control = with_child(kind, &running, evicted.clone());
        let (writes, _) = orders(&mut control, NOW, |_| shown.clone());
        let stop = writes.iter().find(|order| name_of(order) == "stop child");
        let stop = stop.unwrap_or_else(|| panic!("the child goes on: {shown:?} {writes:?}"));
        let suspended = json!({"metadata": {"resourceVersion": "30"}});
        let suspended = owned_object("child", Some(&owner(kind, "middle")), &suspended);
        control.answered(&stop.ticket, WriteOutcome::done(suspended), NOW);
        let (writes, _) = orders(&mut control, NOW, |_| shown.clone());
        let release = writes.iter().find(|order| name_of(order) == "release job");
        let release = release.unwrap_or_else(|| panic!("no release: {shown:?} {writes:?}"));
        let mut released = evicted.clone();
        released["metadata"]["resourceVersion"] = json!("31");
        released["status"] = json!({"conditions": conditions(&[
            ("QuotaReserved", "False"), ("Admitted", "False"), ("Evicted", "True"),
        ])});
        control.answered(&release.ticket, WriteOutcome::done(released), NOW);
        let (writes, _) = orders(&mut control, NOW, |_| shown.clone());
        let names: Vec<String> = writes.iter().map(name_of).collect();
        assert!(names.contains(&"workload-delete job".to_owned()), "{shown:?} {names:?}");
        let key = Key { namespace: Some("ns".into()), name: "job-child".into() };
        control.observe(ManagerInput::Workload(Change::Delete(key)), NOW);
        let (writes, _) = decide(&mut control, NOW, |_| shown.clone());
        assert!(!writes.contains(&"workload-create job".to_owned()), "{shown:?} {writes:?}");
    }
}

#[test]
fn the_pending_workload_of_a_suspended_child_is_deleted() {
    // No cycle reserves quota for it while the owner is read.
    let pending = json!({"spec": {"queueName": "absent"}, "status": null});
    let mut pending = workload_of("child", &pending);
    pending["status"] = json!({});
    let unknown = WriteOutcome::Unknown("no answer".to_owned());
    let all = standings().into_iter().map(|(kind, shown)| (kind, shown, true));
    // What the job is a child of is not known before its owner was read.
    for (kind, shown, deleted) in all.chain([("JobSet", unknown, false)]) {
        let mut control = with_child(kind, &json!({}), pending.clone());
        let (writes, _) = decide(&mut control, NOW, |_| shown.clone());
        let delete = writes.contains(&"workload-delete job".to_owned());
        assert_eq!(delete, deleted, "{shown:?} {writes:?}");
        assert!(!writes.contains(&"workload-create job".to_owned()), "{shown:?} {writes:?}");
    }
}

#[test]
fn the_pending_workload_of_a_job_stays_until_its_owner_is_seen() {
    let mut pending = workload_of("child", &json!({"spec": {"queueName": "absent"}}));
    pending["status"] = json!({});
    for (queue, deleted) in [(json!("lq"), true), (Value::Null, false)] {
        // The watch of Jobs shows the child before the Job that controls it.
        let mut control = with_child("Job", &json!({}), pending.clone());
        let (writes, _) = decide(&mut control, NOW, |path| panic!("{path} is read"));
        assert!(!writes.contains(&"workload-delete job".to_owned()), "{writes:?}");
        let labels = json!({"metadata": {"labels": {"kueue.x-k8s.io/queue-name": queue}}});
        observe(&mut control, owned_job("middle", None, &labels));
        let (writes, _) = decide(&mut control, NOW, |path| panic!("{path} is read"));
        let delete = writes.contains(&"workload-delete job".to_owned());
        assert_eq!(delete, deleted, "{queue}: {writes:?}");
    }
}

#[test]
fn an_evicted_job_stops_also_before_its_owner_was_read() {
    let held = conditions(&[("QuotaReserved", "True"), ("Evicted", "True")]);
    let evicted = workload_of("child", &json!({"status": {"conditions": held}}));
    let mut control = with_child("JobSet", &json!({"spec": {"suspend": false}}), evicted);
    let unknown = |_: &str| WriteOutcome::Unknown("no answer".to_owned());
    let (writes, _) = decide(&mut control, NOW, unknown);
    assert!(writes.contains(&"stop child".to_owned()), "{writes:?}");
}
