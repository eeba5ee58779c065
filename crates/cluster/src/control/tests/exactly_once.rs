//! A manager under `execution: ExactlyOnce`.

use jiff::ToSpan;
use k8s_openapi::api::coordination::v1::Lease;

use super::{
    dispatched::{
        copies, dispatching_lists, done, east, hub_job, hub_workload, linked, name, on_east,
        orders, running,
    },
    *,
};

/// A manager with this Workload. Its only worker is used under ExactlyOnce.
fn manager(fencing: &str, workload: Value) -> ManagerControl {
    manager_under(
        &json!({
            "execution": "ExactlyOnce", "fencing": fencing, "leaseDuration": "30s", "lostAfter": "60s",
        }),
        workload,
    )
}

/// A manager with this Workload, and a policy that says this about its only worker.
fn manager_under(disconnection: &Value, workload: Value) -> ManagerControl {
    let suspended = workload["status"]["clusterName"].is_null();
    let status = if suspended { json!({}) } else { running() };
    let mut control = leading(capacity_settings());
    let policy = json!({
        "metadata": {"name": "once", "resourceVersion": "8"},
        "spec": {"disconnection": disconnection},
    });
    for input in dispatching_lists(&hub_job("20", suspended, &status), &[workload]) {
        control.observe(
            match input {
                ManagerInput::DispatchPolicy(_) => {
                    ManagerInput::DispatchPolicy(list(vec![policy.clone()]))
                }
                ManagerInput::MultiKueueConfig(_) => {
                    ManagerInput::MultiKueueConfig(list(vec![json!({
                        "metadata": {
                            "name": "all", "resourceVersion": "6",
                            "annotations": {"sluice.dev/policy": "once"},
                        },
                        "spec": {"clusters": ["east"]},
                    })]))
                }
                other => other,
            },
            NOW,
        );
    }
    control
}

/// The Workload, nominated for `east`.
fn nominated(version: &str, annotations: Value) -> Value {
    let mut workload = hub_workload();
    workload["metadata"]["resourceVersion"] = json!(version);
    workload["metadata"]["annotations"] = annotations;
    workload["status"]["clusterName"] = json!(null);
    workload["status"]["nominatedClusterNames"] = json!(["east"]);
    workload["status"]["admissionChecks"][0]["state"] = json!("Pending");
    workload
}

/// The MultiKueueCluster with these annotations.
fn cluster(version: &str, annotations: &Value) -> Value {
    let active = json!({
        "type": "Active", "status": "True", "reason": "Active", "message": "Connected",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    });
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueCluster",
        "metadata": {"name": "east", "resourceVersion": version, "annotations": annotations},
        "spec": {}, "status": {"conditions": [active]},
    })
}

fn hub_lease(version: &str, echo: Option<&str>) -> Value {
    grants::hub_lease(version, "0", echo)
}

fn beat(version: &str, number: &str) -> Value {
    let spec = json!({"holderIdentity": "host_1"});
    grants::lease("sluice-agent", version, &json!({"sluice.dev/beat": number}), &spec)
}

fn leases(change: Change<Lease>) -> ManagerInput {
    east(WorkerInput::Lease(change))
}

/// Worker `east` is connected, and lists these.
fn connect(control: &mut ManagerControl, clones: Vec<Value>, jobs_of: Vec<Value>) {
    control.observe(linked(true), NOW);
    control.observe(east(WorkerInput::Workload(list(clones))), NOW);
    control.observe(east(WorkerInput::Job(batch_job(), jobs(jobs_of))), NOW);
    control.observe(leases(list(vec![])), NOW);
}

/// The body of the order for a purpose.
fn body(step: &Decisions, purpose: Purpose) -> Value {
    let order = step.orders.iter().find(|order| order.ticket.purpose == purpose);
    serde_json::from_slice(order.expect("it is ordered").write.request().body()).expect("JSON")
}

/// The leader has claimed the worker, and its agent gets grants.
fn open(control: &mut ManagerControl) {
    let step = control.decide(NOW);
    assert_eq!(on_east(&step), [""; 0]);
    let record = body(&step, Purpose::FenceRecord);
    let record = &record["metadata"]["annotations"]["sluice.dev/fence-record"];
    assert!(*record == "0/9/30" || *record == "0/9/60", "with leaseDuration: {record}");
    let claimed = cluster("30", &json!({"sluice.dev/fence-record": record}));
    done(control, &step, "fence-record", claimed, NOW);
    let step = control.decide(NOW);
    condition_written(control, &step, NOW);
    done(control, &step, "grant-create", hub_lease("60", None), NOW);
    control.observe(leases(Change::Apply(shared(beat("61", "1")))), NOW);
    let step = control.decide(NOW);
    let fields = body(&step, Purpose::Grant);
    assert_eq!(fields["metadata"]["annotations"]["sluice.dev/echo"], "host_1/1");
    assert_eq!(fields["metadata"]["resourceVersion"], "60");
    condition_written(control, &step, NOW);
    done(control, &step, "grant", hub_lease("62", Some("host_1/1")), NOW);
}

#[test]
fn the_leader_claims_a_worker_before_it_writes_there_and_creates_after_the_first_echo() {
    let mut control = manager("Confirmed", nominated("21", json!({})));
    connect(&mut control, vec![], vec![]);
    open(&mut control);
    // What was listed before the claim proves nothing.
    let step = control.decide(NOW);
    assert_eq!(on_east(&step), ["east settle", "east settle"]);
    for order in &step.orders {
        if order.ticket.purpose == Purpose::Settle {
            let nothing = json!({"metadata": {"resourceVersion": "63"}, "items": []});
            control.answered(&order.ticket, WriteOutcome::done(nothing), NOW);
        }
    }
    let step = control.decide(NOW);
    assert_eq!(orders(&step), ["hub confirm-version"], "the guarantee comes before the copies");
    let marked = json!({"sluice.dev/execution": "ExactlyOnce", "sluice.dev/term": "9"});
    assert_eq!(body(&step, Purpose::ConfirmVersion)["metadata"]["annotations"], marked);
    done(&mut control, &step, "confirm-version", nominated("70", marked), NOW);
    let step = control.decide(NOW);
    assert_eq!(on_east(&step), ["east clone-create", "east job-create"]);
    for purpose in [Purpose::CloneCreate, Purpose::JobCreate] {
        let copy = body(&step, purpose);
        assert_eq!(copy["metadata"]["annotations"]["sluice.dev/lease"], "0/9");
    }
}

/// A manager of a Workload with copies of a former leader, their clone, and the step that stamps it.
fn stamping() -> (ManagerControl, Value, Decisions) {
    let marked = json!({"sluice.dev/execution": "ExactlyOnce", "sluice.dev/term": "9"});
    let mut control = manager("Confirmed", nominated("1021", marked));
    let (mut clone, mut copy) = copies();
    for object in [&mut clone, &mut copy] {
        object["metadata"]["annotations"]["sluice.dev/lease"] = json!("0/8");
    }
    clone["status"] = json!({});
    connect(&mut control, vec![clone.clone()], vec![copy.clone()]);
    open(&mut control);
    let step = control.decide(NOW);
    let listed = |object: &Value| json!({"metadata": {"resourceVersion": "63"}, "items": [object]});
    for order in step.orders.iter().filter(|one| one.ticket.purpose == Purpose::Settle) {
        let is_job = matches!(order.ticket.target.subject, Subject::Job(_));
        let found = listed(if is_job { &copy } else { &clone });
        control.answered(&order.ticket, WriteOutcome::done(found), NOW);
    }
    let step = control.decide(NOW);
    assert_eq!(on_east(&step), ["east stamp"]);
    clone["metadata"]["resourceVersion"] = json!("80");
    (control, clone, step)
}

#[test]
fn a_worker_that_keeps_the_stamp_of_a_former_leader_does_not_take_the_workload() {
    let (mut control, clone, step) = stamping();
    done(&mut control, &step, "stamp", clone, NOW);
    assert_eq!(on_east(&control.decide(NOW)), ["east job-delete"], "it is not stamped again");
}

#[test]
fn the_answer_to_a_stamp_that_is_not_remembered_is_no_refusal() {
    let (mut control, mut clone, step) = stamping();
    let key = Key { namespace: Some("ns".into()), name: name().into() };
    let multikueue = control.dispatching.multikueue.as_mut().expect("it dispatches");
    multikueue.reserved(&key, NOW);
    clone["metadata"]["annotations"]["sluice.dev/lease"] = json!("0/9");
    done(&mut control, &step, "stamp", clone, NOW);
    let sent = on_east(&control.decide(NOW));
    assert!(!sent.contains(&"east job-delete".to_owned()), "{sent:?}");
}

fn marked_workload() -> Value {
    let mut workload = hub_workload();
    workload["metadata"]["annotations"] = json!({"sluice.dev/execution": "ExactlyOnce"});
    workload["status"]["conditions"][2]["status"] = json!("True");
    workload
}

fn stamped_copies() -> (Value, Value) {
    let (mut clone, copy) = copies();
    clone["metadata"]["annotations"]["sluice.dev/lease"] = json!("0/9");
    (clone, copy)
}

/// A manager with a Workload that runs on `east`, which is cut off.
fn cut_off(fencing: &str) -> ManagerControl {
    let mut control = manager(fencing, marked_workload());
    let (clone, copy) = stamped_copies();
    connect(&mut control, vec![clone], vec![copy]);
    open(&mut control);
    let step = control.decide(NOW);
    condition_written(&mut control, &step, NOW);
    control.observe(linked(false), NOW);
    control
}

/// Whether the check becomes Retry. The condition of the worker is written.
fn retries(control: &mut ManagerControl, now: Timestamp) -> bool {
    let step = control.decide(now);
    condition_written(control, &step, now);
    message_written(control, &step, now);
    orders(&step).contains(&"hub retry".to_owned())
}

/// The check of the Workload has the message that was ordered.
fn message_written(control: &mut ManagerControl, step: &Decisions, now: Timestamp) {
    if !orders(step).contains(&"hub dispatched".to_owned()) {
        return;
    }
    let mut written = marked_workload();
    written["metadata"]["resourceVersion"] = json!("80");
    let checks = &body(step, Purpose::Dispatched)["status"]["admissionChecks"];
    written["status"]["admissionChecks"] = checks.clone();
    done(control, step, "dispatched", written, now);
}

/// The MultiKueueCluster is free again.
fn condition_written(control: &mut ManagerControl, step: &Decisions, now: Timestamp) {
    for order in &step.orders {
        if order.ticket.purpose == Purpose::ClusterCondition {
            control.answered(&order.ticket, WriteOutcome::done(json!({})), now);
        }
    }
}

#[test]
fn a_lost_worker_is_replaced_when_a_person_has_confirmed_and_the_session_has_ended() {
    let mut control = cut_off("Confirmed");
    let later = NOW + 10_000.seconds();
    assert!(!retries(&mut control, later), "no time fences it");
    assert!(east_message(&control).contains("WaitingForFence"), "{}", east_message(&control));
    let confirmed = cluster(
        "40",
        &json!({
            "sluice.dev/fence-record": "0/9/30", "sluice.dev/fence": "0",
        }),
    );
    control.observe(ManagerInput::MultiKueueCluster(Change::Apply(shared(confirmed))), later);
    let step = control.decide(later);
    let fields = body(&step, Purpose::FenceRecord);
    assert_eq!(fields["metadata"]["annotations"]["sluice.dev/fence-record"], "1/9/30");
    assert_eq!(fields["metadata"]["annotations"]["sluice.dev/fence"], Value::Null);
    assert!(!retries(&mut control, later), "the end of the session is not recorded yet");
    let ended = cluster("41", &json!({"sluice.dev/fence-record": "1/9/30"}));
    done(&mut control, &step, "fence-record", ended, later);
    assert!(retries(&mut control, later));
}

#[test]
fn the_check_says_that_the_workload_waits_for_the_fence_of_its_worker() {
    let mut control = cut_off("Confirmed");
    let lost = NOW + 61.seconds();
    let step = control.decide(lost);
    let check = body(&step, Purpose::Dispatched)["status"]["admissionChecks"][0].clone();
    let message = check["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("Worker cluster \"east\" is lost; WaitingForFence: "), "{check}");
    assert_eq!(check["state"], "Ready");
    message_written(&mut control, &step, lost);
    assert!(!orders(&control.decide(lost)).contains(&"hub dispatched".to_owned()), "shown");

    let (clone, copy) = stamped_copies();
    connect(&mut control, vec![clone], vec![copy]);
    let fields = body(&control.decide(lost), Purpose::Dispatched);
    let message = &fields["status"]["admissionChecks"][0]["message"];
    assert_eq!(message, "The workload was admitted on \"east\"");
}

#[test]
fn under_timed_fencing_a_lost_worker_is_replaced_when_its_last_grant_has_ended() {
    let mut control = cut_off("Timed");
    // 1.01 times 30 s, 10 s to stop and a margin of 5 s; and it is lost after 60 s.
    assert!(!retries(&mut control, NOW + 59.seconds()));
    let lost = NOW + 60.seconds();
    let step = control.decide(lost);
    condition_written(&mut control, &step, lost);
    let ended = cluster("41", &json!({"sluice.dev/fence-record": "1/9/30"}));
    done(&mut control, &step, "fence-record", ended, lost);
    assert!(retries(&mut control, lost));
}

#[test]
fn a_confirmation_of_a_worker_that_is_reached_is_removed() {
    let mut control = manager("Confirmed", nominated("21", json!({})));
    connect(&mut control, vec![], vec![]);
    open(&mut control);
    let confirmed = cluster(
        "40",
        &json!({
            "sluice.dev/fence-record": "0/9/30", "sluice.dev/fence": "0",
        }),
    );
    control.observe(ManagerInput::MultiKueueCluster(Change::Apply(shared(confirmed))), NOW);
    let fields = body(&control.decide(NOW), Purpose::FenceRecord);
    let annotations = json!({"sluice.dev/fence-record": "0/9/30", "sluice.dev/fence": null});
    assert_eq!(fields["metadata"]["annotations"], annotations);
}

/// The Workload as its job made it, nominated, with this guarantee.
fn asks(execution: &str) -> Value {
    nominated("21", json!({"sluice.dev/execution": execution}))
}

#[test]
fn a_job_that_asks_for_exactly_once_gets_leases_and_stamps_under_any_policy() {
    for disconnection in [json!({}), json!({"execution": "KeepRunning"})] {
        let mut control = manager_under(&disconnection, asks("ExactlyOnce"));
        connect(&mut control, vec![], vec![]);
        open(&mut control);
        let step = control.decide(NOW);
        assert!(!on_east(&step).iter().any(|one| one.contains("create")), "{disconnection}");
        for order in &step.orders {
            if order.ticket.purpose == Purpose::Settle {
                let nothing = json!({"metadata": {"resourceVersion": "63"}, "items": []});
                control.answered(&order.ticket, WriteOutcome::done(nothing), NOW);
            }
        }
        let step = control.decide(NOW);
        assert_eq!(on_east(&step), ["east clone-create", "east job-create"], "{disconnection}");
        for purpose in [Purpose::CloneCreate, Purpose::JobCreate] {
            let copy = body(&step, purpose);
            assert_eq!(copy["metadata"]["annotations"]["sluice.dev/lease"], "0/9");
        }
        let fleet = &mut control.dispatching.fleet;
        let id = fleet.intern_cluster("east");
        assert_eq!(fleet.lease_policy(id), Some(dispatch::LeasePolicy::DEFAULT));
        // The last Workload that asks for it is gone.
        let key = Key { namespace: Some("ns".into()), name: name().into() };
        control.observe(ManagerInput::Workload(Change::Delete(key)), NOW);
        assert_eq!(control.dispatching.fleet.lease_policy(id), None);
    }
}

#[test]
fn nothing_is_created_for_a_job_that_asks_for_exactly_once_before_its_worker_has_leases() {
    let mut control = manager_under(&json!({}), asks("ExactlyOnce"));
    connect(&mut control, vec![], vec![]);
    assert_eq!(on_east(&control.decide(NOW)), [""; 0]);
}

#[test]
fn a_job_that_declines_exactly_once_runs_without_leases() {
    let mut control = manager("Confirmed", asks("KeepRunning"));
    connect(&mut control, vec![], vec![]);
    let step = control.decide(NOW);
    assert_eq!(on_east(&step), ["east clone-create", "east job-create"]);
    for purpose in [Purpose::CloneCreate, Purpose::JobCreate] {
        let copy = body(&step, purpose);
        assert_eq!(copy["metadata"]["annotations"]["sluice.dev/lease"], Value::Null);
    }
}

/// A worker that is used under ExactlyOnce, with grants.
fn granted() -> ManagerControl {
    let mut control = manager("Confirmed", marked_workload());
    let (clone, copy) = stamped_copies();
    connect(&mut control, vec![clone], vec![copy]);
    open(&mut control);
    let step = control.decide(NOW);
    condition_written(&mut control, &step, NOW);
    control
}

/// The next beat arrives. Returns the resourceVersion that the grant for it names.
fn next_grant(control: &mut ManagerControl) -> Value {
    control.observe(leases(Change::Apply(shared(beat("70", "2")))), NOW);
    let step = control.decide(NOW);
    let purposes: Vec<_> = step.orders.iter().map(|order| order.ticket.purpose).collect();
    assert!(!purposes.contains(&Purpose::FenceRecord), "{purposes:?}");
    assert!(!purposes.contains(&Purpose::GrantCreate), "{purposes:?}");
    let fields = body(&step, Purpose::Grant);
    assert_eq!(fields["metadata"]["annotations"]["sluice.dev/echo"], "host_1/2");
    fields["metadata"]["resourceVersion"].clone()
}

#[test]
fn a_further_list_of_the_leases_on_one_connection_keeps_what_it_does_not_name() {
    let mut control = granted();
    control.observe(leases(Change::Reset { objects: vec![], removed: vec![] }), NOW);
    assert_eq!(next_grant(&mut control), "62");
}

#[test]
fn leases_of_an_earlier_connection_do_not_count() {
    let mut control = granted();
    control.observe(linked(false), NOW);
    let (clone, copy) = stamped_copies();
    connect(&mut control, vec![clone], vec![copy]);
    let step = control.decide(NOW);
    body(&step, Purpose::GrantCreate);
}

#[test]
fn a_report_about_the_same_connection_keeps_the_leases() {
    let mut control = granted();
    control.observe(linked(true), NOW);
    assert_eq!(next_grant(&mut control), "62");
}

#[test]
fn the_hub_lease_of_another_manager_is_no_grant_of_this_one() {
    let mut control = granted();
    let annotations = json!({"sluice.dev/term": "99", "sluice.dev/session": "5"});
    let spec = json!({"leaseDurationSeconds": 30});
    let other = grants::lease("sluice-hub-other", "65", &annotations, &spec);
    control.observe(leases(Change::Apply(shared(other))), NOW);
    assert_eq!(next_grant(&mut control), "62");
}

#[test]
fn a_worker_without_its_multikueue_cluster_keeps_its_grants_while_it_has_work() {
    let mut control = granted();
    let key = Key { namespace: None, name: "east".into() };
    control.observe(ManagerInput::MultiKueueCluster(Change::Delete(key)), NOW);
    control.decide(NOW);
    assert_eq!(next_grant(&mut control), "62");
}
