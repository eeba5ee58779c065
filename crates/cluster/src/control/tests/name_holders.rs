//! A Job that is made again while the copy of an earlier one of its name still leaves the worker.

use jiff::ToSpan;

use super::{
    cluster::json_merge,
    dispatched::{
        connect, copies, dispatching, dispatching_lists, done, east, hub_job, hub_workload, name,
        nominated, on_east, orders, running,
    },
    timers::Reevaluation,
    workloads_of_groups::verifying_role_requests,
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

/// The Workload of the earlier Job, which the copy is newer than.
fn earlier_workload(epoch: &str, version: &str) -> Value {
    let mut workload = hub_workload();
    workload["metadata"] = json!({
        "name": "job-train-earlier", "namespace": "ns", "uid": "wl-0", "resourceVersion": version,
        "annotations": {"sluice.dev/epoch": epoch},
    });
    workload
}

/// Another Workload that the hub observes at epoch 1, and its copy of epoch 2, which holds the name.
fn another_holder() -> (Value, Value) {
    let mut workload = earlier_workload("1", "23");
    workload["metadata"]["name"] = json!("job-train-another");
    workload["metadata"]["uid"] = json!("wl-2");
    let mut copy = earlier(false);
    copy["metadata"]["uid"] = json!("copy-2");
    copy["metadata"]["resourceVersion"] = json!("62");
    let annotations = &mut copy["metadata"]["annotations"];
    annotations["kueue.x-k8s.io/prebuilt-workload-name"] = json!("job-train-another");
    annotations["sluice.dev/epoch"] = json!("2");
    annotations["sluice.dev/workload-uid"] = json!("wl-2");
    (workload, copy)
}

/// A manager that has observed the earlier Workload at epoch 1, while the copy that holds the name is of epoch 2.
fn late_observer() -> ManagerControl {
    let mut copy = earlier(false);
    copy["metadata"]["annotations"]["sluice.dev/epoch"] = json!("2");
    copy["metadata"]["annotations"]["sluice.dev/workload-uid"] = json!("wl-0");
    let job = hub_job("20", true, &json!({}));
    let lists = [nominated("21", false), earlier_workload("1", "22")];
    let mut control = dispatching(&job, &lists);
    connect(&mut control, vec![], vec![copy]);
    control
}

#[test]
fn a_process_that_observes_the_workload_of_the_copy_late_refuses_nothing_for_six_minutes() {
    let mut control = late_observer();
    admit(&mut control);
    for seconds in [61, 120, 359] {
        let ordered = orders(&control.decide(NOW + seconds.seconds()));
        assert_eq!(ordered, [""; 0], "after {seconds} s");
    }
    let late = NOW + 360.seconds();
    let step = control.decide(late);
    let mut raised = nominated("30", false);
    raised["metadata"]["annotations"] = json!({"sluice.dev/epoch": "2"});
    done(&mut control, &step, "raise-epoch", raised, late);
    let said = texts(&control.decide(late));
    assert!(said.contains("is held by a copy that awaits a confirmation"), "{said}");
}

#[test]
fn the_next_copy_that_holds_the_name_is_awaited_as_long_as_the_first() {
    let mut control = late_observer();
    let (workload, copy) = another_holder();
    control.observe(ManagerInput::Workload(Change::Apply(shared(workload))), NOW);
    admit(&mut control);
    let next = NOW + 359.seconds();
    assert_eq!(orders(&control.decide(next)), [""; 0]);
    control.observe(gone(), next);
    let copy = Arc::new(batch_job().decode(copy).expect("a Job decodes"));
    control.observe(east(WorkerInput::Job(batch_job(), Change::Apply(copy))), next);
    for seconds in [0, 1, 120, 359] {
        let ordered = orders(&control.decide(next + seconds.seconds()));
        assert!(!ordered.contains(&"hub raise-epoch".to_owned()), "{seconds} s: {ordered:?}");
    }
    let ordered = orders(&control.decide(next + 360.seconds()));
    assert!(ordered.contains(&"hub raise-epoch".to_owned()), "{ordered:?}");
}

#[test]
fn a_copy_of_a_later_version_of_its_workload_is_awaited_as_long() {
    let manager = |hub_version: &str| {
        let mut copy = earlier(false);
        let annotations = &mut copy["metadata"]["annotations"];
        annotations["sluice.dev/workload-uid"] = json!("wl-0");
        annotations["sluice.dev/incarnation"] = json!("7");
        annotations["sluice.dev/term"] = json!("8");
        annotations["sluice.dev/hub-version"] = json!(hub_version);
        let job = hub_job("20", true, &json!({}));
        let mut control = dispatching(&job, &[nominated("21", false), earlier_workload("1", "5")]);
        connect(&mut control, vec![], vec![copy]);
        control
    };
    // The present leader began at version 10.
    let mut control = manager("8");
    admit(&mut control);
    assert_eq!(orders(&control.decide(NOW + 359.seconds())), [""; 0]);
    let late = NOW + 360.seconds();
    assert_eq!(orders(&control.decide(late)), ["hub raise-epoch"]);
    // A later one proves that the hub went back.
    assert_eq!(on_east(&manager("11").decide(NOW)), [""; 0]);
}

#[test]
fn a_copy_that_was_observed_before_its_workload_is_awaited_like_others() {
    let mut control = late_observer();
    admit(&mut control);
    let caught_up = earlier_workload("2", "40");
    control.observe(ManagerInput::Workload(Change::Apply(shared(caught_up))), NOW);
    assert!(!texts(&control.decide(NOW + 61.seconds())).contains("is held by"));
    control.observe(gone(), NOW + 62.seconds());
    let ordered = on_east(&control.decide(NOW + 62.seconds()));
    assert!(ordered.contains(&"east job-create".to_owned()), "{ordered:?}");
}

fn pod_kind() -> Kind {
    ::jobs::pods::kind().clone()
}

/// A member of the group `team` on the hub, which stays gated; on a worker with this Workload it runs.
pub(super) fn member(name: &str, on_worker_for: Option<&str>) -> Arc<JobObject> {
    let mut pod = json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": "20",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["kueue.x-k8s.io/managed"],
            "labels": {"kueue.x-k8s.io/queue-name": "lq", "kueue.x-k8s.io/managed": "true"},
            "annotations": {
                "kueue.x-k8s.io/pod-group-name": "team",
                "kueue.x-k8s.io/pod-group-total-count": "3", "kueue.x-k8s.io/role-hash": "role",
            },
        },
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
            "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
        },
        "status": {"phase": "Running"},
    });
    if let Some(workload) = on_worker_for {
        let of_copy = json!({
            "metadata": {
                "uid": format!("copy-{name}"),
                "labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"},
                "annotations": {
                    "sluice.dev/epoch": "1", "kueue.x-k8s.io/prebuilt-workload-name": workload,
                },
            },
            "spec": {"schedulingGates": []},
        });
        json_merge(&mut pod, &of_copy);
    }
    Arc::new(pod_kind().decode(pod).expect("a pod decodes"))
}

/// The Workload of the group, which runs on the worker.
fn of_group() -> Value {
    let owner = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": format!("uid-{name}")});
    let mut workload = hub_workload();
    let owners = ["a", "b", "c"].map(owner);
    workload["metadata"] = json!({
        "name": "team", "namespace": "ns", "uid": "wl-1", "resourceVersion": "21",
        "annotations": {"kueue.x-k8s.io/is-group-workload": "true"},
        "ownerReferences": owners,
    });
    workload["spec"]["podSets"] = json!([{"name": "role", "count": 3, "template": {"spec": {
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
    }}}]);
    let assigned = json!([{"name": "role", "count": 3, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "3"}}]);
    workload["status"]["admission"]["podSetAssignments"] = assigned;
    workload
}

/// A manager of the group, and these pods on its worker.
pub(super) fn group_manager(on_worker: Vec<Arc<JobObject>>) -> ManagerControl {
    let mut file = Configuration::without_file(None).expect("defaults");
    file.integrations.frameworks = ["batch/job", "pod"].map(str::to_owned).to_vec();
    let kinds = JobKinds::configured(&file, &Gates::default(), &Kinds::default());
    let gates = verifying_role_requests();
    let mut control = leading(dispatching_settings_with(CAPACITY, &gates, &kinds));
    let other = json!({"metadata": {"name": "other", "namespace": "ns", "uid": "o", "resourceVersion": "9"},
        "spec": {"suspend": true, "template": {}}});
    let lists = dispatching_lists(&other, &[of_group()]);
    lists.into_iter().for_each(|input| control.observe(input, NOW));
    let pods = |objects| Change::Reset { objects, removed: vec![] };
    let members = ["a", "b", "c"].map(|name| member(name, None)).to_vec();
    control.observe(ManagerInput::Job(pod_kind(), pods(members)), NOW);
    let mut clone = of_group();
    clone["metadata"] = json!({
        "name": "team", "namespace": "ns", "uid": "clone-1", "resourceVersion": "51",
        "labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"},
        "annotations": {"sluice.dev/epoch": "1", "kueue.x-k8s.io/is-group-workload": "true"},
    });
    connect(&mut control, vec![clone], vec![]);
    control.observe(east(WorkerInput::Job(pod_kind(), pods(on_worker))), NOW);
    control
}

/// Whether the group is withdrawn from its worker within a day.
fn is_withdrawn(on_worker: Vec<Arc<JobObject>>) -> bool {
    let mut control = group_manager(on_worker);
    [0, 61, 3600, 24 * 3600].into_iter().any(|seconds: i64| {
        orders(&control.decide(NOW + seconds.seconds())).contains(&"hub retry".to_owned())
    })
}

#[test]
fn a_group_that_runs_is_not_withdrawn_for_the_name_of_a_replacement() {
    let running = ["a", "b"].map(|name| member(name, Some("team")));
    let leftover = member("c", Some("another"));
    let with_leftover = running.iter().cloned().chain([Arc::clone(&leftover)]).collect();
    assert!(!is_withdrawn(with_leftover), "two members run");
    assert!(is_withdrawn(vec![leftover]), "no member runs");
}
