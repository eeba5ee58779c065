//! Capacity reports: heartbeats, their age, and what counts while nothing is reported (docs/reference/dispatch.md §2).

use jiff::ToSpan;

use super::{
    dispatched::{east, orders},
    gang_reservation::{capacity, manager, waiting},
    *,
};

/// The report of `east` with this heartbeat.
fn report(version: u32, beat: i64) -> WorkerInput {
    let mut report = capacity();
    report["metadata"]["resourceVersion"] = json!(version.to_string());
    report["status"]["reportedAt"] = json!((NOW + beat.seconds()).to_string());
    WorkerInput::Capacity(Change::Apply(shared(report)))
}

/// A Workload that fits is submitted. Returns what is decided about it.
fn submit(control: &mut ManagerControl, now: Timestamp) -> Vec<String> {
    let small = waiting("small", 1, 4);
    control.observe(ManagerInput::Workload(Change::Apply(shared(small))), now);
    orders(&control.decide(now))
}

fn is_reserved(orders: &[String]) -> bool {
    orders.contains(&"hub reserve".to_owned())
}

/// A second worker, which is connected and reports without a heartbeat, as an agent of an earlier version.
fn with_west(control: &mut ManagerControl) {
    let config = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueConfig",
        "metadata": {"name": "all", "resourceVersion": "40"}, "spec": {"clusters": ["east", "west"]},
    });
    control.observe(ManagerInput::MultiKueueConfig(Change::Apply(shared(config))), NOW);
    let west = json!({"metadata": {"name": "west", "resourceVersion": "41"}, "spec": {}});
    control.observe(ManagerInput::MultiKueueCluster(Change::Apply(shared(west))), NOW);
    let mut full = capacity();
    full["status"]["nodeClasses"] = json!([]);
    let link = ConnectionStatus { active: true, reason: "Active", message: String::new() };
    for input in [
        WorkerInput::Connection(link),
        WorkerInput::Workload(list(vec![])),
        WorkerInput::Job(batch_job(), jobs(vec![])),
        WorkerInput::Capacity(list(vec![full])),
    ] {
        control.observe(ManagerInput::Worker("west".into(), input), NOW);
    }
}

/// Why no cluster takes the Workload.
fn reasons(control: &ManagerControl) -> String {
    let key = Key { namespace: Some("ns".into()), name: "small".into() };
    let record = control.core.workloads.get(&key).expect("the Workload");
    format!("{:?}", record.transitions())
}

#[test]
fn a_report_counts_for_three_heartbeats() {
    for (beat_again, seconds, counts) in
        [(false, 29, true), (false, 30, false), (true, 49, true), (true, 50, false)]
    {
        let mut control = manager(&json!({}));
        with_west(&mut control);
        control.observe(east(report(7, 0)), NOW);
        control.decide(NOW);
        if beat_again {
            control.observe(east(report(8, 20)), NOW + 20.seconds());
            control.decide(NOW + 20.seconds());
        }
        let got = submit(&mut control, NOW + seconds.seconds());
        assert_eq!(is_reserved(&got), counts, "{beat_again} {seconds}: {}", reasons(&control));
    }
}

#[test]
fn the_end_of_a_report_wakes_the_manager() {
    let mut control = manager(&json!({}));
    control.observe(east(report(7, 0)), NOW);
    let wake = control.decide(NOW).wake.expect("the age of the report");
    assert!(wake <= NOW + 30.seconds(), "{wake}");
}

#[test]
fn a_write_of_the_managers_own_is_no_heartbeat() {
    let mut control = manager(&json!({}));
    with_west(&mut control);
    control.observe(east(report(7, 0)), NOW);
    control.decide(NOW);
    // The labels that the manager asks for change the object, and not its heartbeat.
    control.observe(east(report(8, 0)), NOW + 20.seconds());
    control.decide(NOW + 20.seconds());
    assert!(!is_reserved(&submit(&mut control, NOW + 31.seconds())));
    // Before the reason to be pending is written.
    let soon = NOW + 31_500.milliseconds();
    control.observe(east(report(9, 31)), soon);
    let got = orders(&control.decide(soon));
    assert!(is_reserved(&got), "it reports again: {got:?} {}", reasons(&control));
}

#[test]
fn a_report_is_forgotten_with_its_connection() {
    let mut control = manager(&json!({}));
    with_west(&mut control);
    control.decide(NOW);
    for active in [false, true] {
        let link = ConnectionStatus { active, reason: "Active", message: String::new() };
        control.observe(east(WorkerInput::Connection(link)), NOW);
    }
    control.observe(east(WorkerInput::Workload(list(vec![]))), NOW);
    control.observe(east(WorkerInput::Job(batch_job(), jobs(vec![]))), NOW);
    assert!(!is_reserved(&submit(&mut control, NOW)), "what was free may be taken");
    control.observe(east(WorkerInput::Capacity(list(vec![capacity()]))), NOW);
    assert!(is_reserved(&orders(&control.decide(NOW))));
}

#[test]
fn quota_alone_is_reserved_if_the_reports_of_all_are_stale() {
    let mut control = manager(&json!({}));
    control.observe(east(report(7, 0)), NOW);
    control.decide(NOW);
    // By the report it would not fit.
    let large = waiting("large", 1, 64);
    let later = NOW + 31.seconds();
    control.observe(ManagerInput::Workload(Change::Apply(shared(large))), later);
    let step = control.decide(later);
    let reserve = step.orders.iter().find(|one| one.ticket.purpose == Purpose::Reserve);
    let body: Value =
        serde_json::from_slice(reserve.expect("quota suffices").write.request().body())
            .expect("JSON");
    assert_eq!(body["status"].get("nominatedClusterNames"), None, "quota first, as upstream");
}

#[test]
fn clusters_do_not_race_before_it_is_known_whether_they_report() {
    let mut control = manager(&json!({}));
    for active in [false, true] {
        let link = ConnectionStatus { active, reason: "Active", message: String::new() };
        control.observe(east(WorkerInput::Connection(link)), NOW);
    }
    control.observe(east(WorkerInput::Workload(list(vec![]))), NOW);
    control.observe(east(WorkerInput::Job(batch_job(), jobs(vec![]))), NOW);
    assert!(!is_reserved(&submit(&mut control, NOW)), "the report is not listed");
}

#[test]
fn clusters_do_not_race_before_the_first_report_of_an_agent() {
    // Without an agent, before its first report, with it. Labels that a manager asks for are written before it as well.
    let object = json!({
        "metadata": {"name": "local", "resourceVersion": "60"},
        "spec": {"managers": [{"origin": "multikueue", "labelKeys": ["zone"]}]},
    });
    let local = Key { namespace: None, name: "local".into() };
    let without_agent = WorkerInput::Capacity(Change::Delete(local));
    for (input, races) in
        [(without_agent, true), (WorkerInput::Capacity(Change::Apply(shared(object))), false)]
    {
        let mut control = manager(&json!({}));
        control.observe(east(input), NOW);
        assert_eq!(is_reserved(&submit(&mut control, NOW)), races, "{}", reasons(&control));
        if !races {
            assert!(reasons(&control).contains("does not report its capacity"));
            control.observe(east(report(61, 0)), NOW);
            assert!(is_reserved(&orders(&control.decide(NOW))), "{}", reasons(&control));
        }
    }
}

/// An agent of one node.
pub(super) fn agent(clones: Vec<Value>) -> AgentControl {
    let mut control =
        AgentControl::new(AgentSettings::new(AgentPolicy::default(), &kinds().handled));
    let node = json!({
        "metadata": {"name": "node", "resourceVersion": "1"},
        "status": {
            "allocatable": {"cpu": "4", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    });
    let local = json!({"metadata": {"name": "local", "resourceVersion": "2"}, "spec": {}});
    for input in [
        AgentInput::LimitRange(list(vec![])),
        AgentInput::RuntimeClass(list(vec![])),
        AgentInput::Node(list(vec![node])),
        AgentInput::Pod(list(vec![])),
        AgentInput::Capacity(list(vec![local])),
        AgentInput::Lease(list(vec![])),
        AgentInput::Job(batch_job(), jobs(vec![])),
        AgentInput::Workload(list(clones)),
    ] {
        control.observe(input, NOW);
    }
    control
}

/// The report as it is stored at first.
pub(super) fn stored() -> Value {
    json!({"metadata": {"name": "local"}, "spec": {}, "status": {}})
}

/// The write of an agent's report.
pub(super) fn report_order(step: &Decisions) -> Option<&Order> {
    step.orders.iter().find(|one| one.ticket.purpose == Purpose::Capacity)
}

/// The report that an agent writes now, as far as it differs. It is stored.
pub(super) fn written(
    control: &mut AgentControl,
    stored: &mut Value,
    now: Timestamp,
) -> Option<Value> {
    let step = control.decide(now);
    store(control, &step, stored, now)
}

/// The report of a step, as far as it differs. It is stored.
fn store(
    control: &mut AgentControl,
    step: &Decisions,
    stored: &mut Value,
    now: Timestamp,
) -> Option<Value> {
    let order = report_order(step)?;
    let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
    cluster::json_merge(&mut stored["status"], &body["status"]);
    stored["metadata"]["resourceVersion"] = json!((now.as_second() + 100).to_string());
    control.answered(&order.ticket, WriteOutcome::done(stored.clone()), now);
    Some(body["status"].clone())
}

#[test]
fn an_agent_reports_every_ten_seconds_though_nothing_changes() {
    let (mut control, mut stored) = (agent(vec![]), stored());
    let first = written(&mut control, &mut stored, NOW).expect("a report");
    assert_eq!(first["reportedAt"], "1970-01-01T00:00:00Z");
    let wake = control.decide(NOW + 2.seconds()).wake.expect("the heartbeat");
    assert_eq!(wake, NOW + 10.seconds());
    assert_eq!(written(&mut control, &mut stored, NOW + 9.seconds()), None);
    let beat = written(&mut control, &mut stored, NOW + 10.seconds()).expect("a heartbeat");
    assert_eq!(beat["reportedAt"], "1970-01-01T00:00:10Z");
    assert_eq!(written(&mut control, &mut stored, NOW + 19.seconds()), None);
}

#[test]
fn a_report_that_was_not_written_is_due_at_once() {
    for (answer, seconds) in [(WriteOutcome::Stale, 0), (WriteOutcome::Unknown("lost".into()), 2)] {
        let mut control = agent(vec![]);
        let step = control.decide(NOW);
        control.answered(&report_order(&step).expect("a report").ticket, answer, NOW);
        // Another writer has changed the spec.
        let changed = json!({
            "metadata": {"name": "local", "resourceVersion": "3"}, "spec": {"labelKeys": ["zone"]},
        });
        control.observe(AgentInput::Capacity(Change::Apply(shared(changed))), NOW);
        let mut stored = stored();
        let report = written(&mut control, &mut stored, NOW + seconds.seconds());
        assert!(report.is_some_and(|one| one["protocol"] == 1), "{seconds}");
    }
}

#[test]
fn as_of_never_falls() {
    let mut clone = workload();
    clone["metadata"]["resourceVersion"] = json!("77");
    clone["metadata"]["ownerReferences"] = json!([]);
    clone["status"] = json!({});
    let (mut control, mut stored) = (agent(vec![clone]), stored());
    assert_eq!(written(&mut control, &mut stored, NOW).expect("a report")["asOf"], "77");
    let gone = Key { namespace: Some("ns".into()), name: "job-train".into() };
    control.observe(AgentInput::Workload(Change::Delete(gone)), NOW + 5.seconds());
    let later = written(&mut control, &mut stored, NOW + 5.seconds()).expect("its room is free");
    assert!(later.get("asOf").is_none(), "unchanged: {later}");
}

#[test]
fn as_of_is_what_the_watch_has_shown_and_not_an_answer() {
    let clone_at = |version: &str| {
        let mut clone = workload();
        clone["metadata"]["resourceVersion"] = json!(version);
        clone["metadata"]["ownerReferences"] = json!([]);
        clone["status"] = json!({});
        clone
    };
    let (mut control, mut stored) = (agent(vec![clone_at("100")]), stored());
    let step = control.decide(NOW);
    let order = step.orders.iter().find(|one| one.ticket.target.subject == Subject::Workload);
    let ticket = order.expect("the clone gets a status").ticket.clone();
    control.answered(&ticket, WriteOutcome::done(clone_at("110")), NOW);
    store(&mut control, &step, &mut stored, NOW).expect("the first report");
    assert_eq!(stored["status"]["asOf"], "100");
    // A heartbeat.
    let beat = NOW + 10.seconds();
    written(&mut control, &mut stored, beat).expect("a heartbeat");
    assert_eq!(stored["status"]["asOf"], "100");
    control.observe(AgentInput::Workload(Change::Apply(shared(clone_at("110")))), beat);
    written(&mut control, &mut stored, beat + 10.seconds()).expect("a heartbeat");
    assert_eq!(stored["status"]["asOf"], "110");
}

fn is_created(step: &Decisions) -> bool {
    step.orders.iter().any(|one| one.ticket.purpose == Purpose::CapacityCreate)
}

#[test]
fn a_deleted_report_is_made_again() {
    let local = Key { namespace: None, name: "local".into() };
    let deleted = || AgentInput::Capacity(Change::Delete(local.clone()));
    // The watch shows the deletion before the answer to the last write, after it, or not within half a minute.
    for (before, answer, after, seconds) in [
        (true, WriteOutcome::done(stored()), false, 2),
        (false, WriteOutcome::done(stored()), true, 2),
        (false, WriteOutcome::Gone, false, 31),
    ] {
        let mut control = agent(vec![]);
        let step = control.decide(NOW);
        let ticket = &report_order(&step).expect("a report").ticket;
        if before {
            control.observe(deleted(), NOW);
        }
        control.answered(ticket, answer, NOW);
        if after {
            control.observe(deleted(), NOW);
        }
        let later = NOW + seconds.seconds();
        assert!(is_created(&control.decide(later)), "{before} {after}");
    }
}

/// The unknown fields are those of a later version.
fn of_protocol(version: &str, protocol: i32, mode: &str) -> WorkerInput {
    let mut report = capacity();
    report["metadata"]["resourceVersion"] = json!(version);
    report["status"]["protocol"] = json!(protocol);
    report["status"]["mode"] = json!(mode);
    report["status"]["later"] = json!([{"field": 1}]);
    report["status"]["nodeClasses"][0]["later"] = json!("field");
    WorkerInput::Capacity(Change::Apply(shared(report)))
}

#[test]
fn a_worker_whose_agent_is_two_versions_apart_takes_nothing_new() {
    let mut control = manager(&json!({}));
    control.observe(east(of_protocol("60", 3, "Thin")), NOW);
    let refused = submit(&mut control, NOW);
    assert!(!is_reserved(&refused), "not by a race either: {refused:?}");
    let expected = "its agent speaks version 3 of the dispatch protocol, the manager 1";
    assert!(reasons(&control).contains(expected), "{}", reasons(&control));
    // The agent is rolled back, or the manager's next version knows both.
    control.observe(east(of_protocol("61", 1, "Thin")), NOW);
    assert!(is_reserved(&orders(&control.decide(NOW))));
}

#[test]
fn an_agent_of_the_next_version_takes_new_work_in_a_mode_that_the_manager_knows() {
    let mut control = manager(&json!({}));
    control.observe(east(of_protocol("60", 2, "Later")), NOW);
    assert!(!is_reserved(&submit(&mut control, NOW)));
    let expected = "its agent admits in mode Later, which the manager does not know";
    assert!(reasons(&control).contains(expected), "{}", reasons(&control));
    control.observe(east(of_protocol("61", 2, "Thin")), NOW);
    assert!(is_reserved(&orders(&control.decide(NOW))));
}

#[test]
fn work_runs_on_and_new_work_comes_while_agents_are_replaced() {
    for versions in [[1, 2], [2, 1], [1, 3], [3, 1]] {
        let mut control = manager(&json!({}));
        let running = waiting("running", 1, 4);
        let mut clone = running.clone();
        clone["metadata"]["labels"] = json!({"kueue.x-k8s.io/multikueue-origin": "multikueue"});
        clone["metadata"]["uid"] = json!("clone-1");
        control.observe(ManagerInput::Workload(Change::Apply(shared(running))), NOW);
        control.observe(east(WorkerInput::Workload(Change::Apply(shared(clone)))), NOW);
        let ends = ["retry", "evict", "stop", "clone-delete", "job-delete", "clone-create"];
        for (resource_version, version) in ["60", "61"].into_iter().zip(versions) {
            control.observe(east(of_protocol(resource_version, version, "Thin")), NOW);
            let orders = orders(&control.decide(NOW));
            let ended = orders.iter().find(|one| ends.iter().any(|end| one.ends_with(end)));
            assert_eq!(ended, None, "{versions:?}: {orders:?}");
        }
        assert_eq!(is_reserved(&submit(&mut control, NOW)), versions[1] < 3, "{versions:?}");
    }
}
