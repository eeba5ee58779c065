//! What a change of a worker's connection, or of its MultiKueueCluster, has evaluated again.

use super::{
    dispatched::{copies, dispatched_to_east, dispatching, east, hub_job, hub_workload},
    *,
};

/// What the next decision begins with.
#[derive(Debug, PartialEq, Eq)]
struct Due {
    /// Names of the Workloads that are evaluated.
    workloads: Vec<String>,
    /// A scheduling cycle runs.
    cycle: bool,
    /// Changes of the fleet, by which classes of waiting Workloads are judged again.
    n_changes: u64,
}

fn due(control: &mut ManagerControl) -> Due {
    let ManagerControl { core, dispatching, .. } = control;
    dispatching.workers_changed(core);
    dispatching.clusters_changed(core);
    let pending = core.ctx.agenda.pending_workloads().iter();
    Due {
        workloads: pending.map(|key| key.name.to_string()).collect(),
        cycle: core.scheduler.is_pending(),
        n_changes: dispatching.fleet.n_changes(),
    }
}

/// Decides about everything that is due, and returns what is due then: nothing.
fn at_rest(control: &mut ManagerControl) -> Due {
    control.decide(NOW);
    let rest = due(control);
    assert_eq!((rest.workloads.len(), rest.cycle), (0, false));
    rest
}

/// The MultiKueueCluster `east` with these labels, and this message in its condition.
fn cluster(version: u32, labels: &Value, message: &str) -> ManagerInput {
    let active =
        json!({"type": "Active", "status": "True", "reason": "Active", "message": message});
    let object = json!({
        "metadata": {"name": "east", "resourceVersion": version.to_string(), "labels": labels},
        "spec": {}, "status": {"conditions": [active]},
    });
    ManagerInput::MultiKueueCluster(Change::Apply(shared(object)))
}

fn failed(attempt: u32) -> ManagerInput {
    let message =
        format!("no answer; connection attempts: {attempt}, next connection attempt: later");
    east(WorkerInput::Connection(ConnectionStatus {
        active: false,
        reason: "ClientConnectionFailed",
        message,
    }))
}

#[test]
fn a_condition_of_a_multikueue_cluster_has_nothing_evaluated() {
    let mut control = dispatched_to_east();
    let rest = at_rest(&mut control);
    control.observe(cluster(50, &json!({}), "Connected"), NOW);
    assert_eq!(due(&mut control), rest);
    control.observe(cluster(51, &json!({"region": "eu"}), "Connected"), NOW);
    let relabelled = due(&mut control);
    assert!(relabelled.cycle && relabelled.n_changes > rest.n_changes, "{relabelled:?}");
}

#[test]
fn a_further_failed_attempt_has_nothing_evaluated() {
    let mut control = dispatched_to_east();
    control.observe(failed(1), NOW);
    assert_eq!(due(&mut control).workloads, [dispatched::name()], "its worker is away");
    let rest = at_rest(&mut control);
    control.observe(failed(2), NOW);
    assert_eq!(due(&mut control), rest);
    let message = east_message(&control);
    assert!(message.contains("attempts: 2"), "the condition shows it: {message}");
}

#[test]
fn a_change_of_a_connection_has_a_workload_without_quota_evaluated_whose_copy_is_there() {
    let mut control = dispatched_to_east();
    let mut released = hub_workload();
    released["metadata"]["resourceVersion"] = json!("70");
    released["status"] = json!({"conditions": [
        {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": ""},
    ]});
    control.observe(ManagerInput::Workload(Change::Apply(shared(released))), NOW);
    at_rest(&mut control);
    control.observe(failed(1), NOW);
    assert_eq!(due(&mut control).workloads, [dispatched::name()]);
}

/// The name of a worker, or of a Workload.
fn numbered(prefix: &str, number: usize) -> String {
    format!("{prefix}-{number}")
}

/// An input about a worker.
fn of_worker(number: usize, input: WorkerInput) -> ManagerInput {
    ManagerInput::Worker(numbered("worker", number).into(), input)
}

fn link(active: bool) -> WorkerInput {
    let reason = if active { "Active" } else { "ClientConnectionFailed" };
    WorkerInput::Connection(ConnectionStatus { active, reason, message: String::new() })
}

/// A Workload that is nominated for a worker, or recorded there.
fn on_worker(number: usize, worker: usize) -> Value {
    let mut one = match number % 2 {
        0 => hub_workload(),
        _ => dispatched::nominated("21", false),
    };
    let metadata = &mut one["metadata"];
    metadata["name"] = json!(numbered("w", number));
    metadata["uid"] = json!(numbered("uid", number));
    metadata["ownerReferences"] = json!([]);
    match number % 2 {
        0 => one["status"]["clusterName"] = json!(numbered("worker", worker)),
        _ => one["status"]["nominatedClusterNames"] = json!([numbered("worker", worker)]),
    }
    one
}

/// A manager of so many workers, all connected, and so many Workloads: the first ones are on `worker-0`, all others on `worker-1`.
fn of_many(n_workers: usize, n_workloads: usize, n_on_first: usize) -> ManagerControl {
    let on = |number| usize::from(number >= n_on_first);
    let all: Vec<Value> = (0..n_workloads).map(|number| on_worker(number, on(number))).collect();
    let mut control = dispatching(&hub_job("20", true, &json!({})), &all);
    let names: Vec<String> = (0..n_workers).map(|number| numbered("worker", number)).collect();
    let config =
        json!({"metadata": {"name": "all", "resourceVersion": "60"}, "spec": {"clusters": names}});
    control.observe(ManagerInput::MultiKueueConfig(Change::Apply(shared(config))), NOW);
    for number in 0..n_workers {
        let name = numbered("worker", number);
        let cluster = json!({"metadata": {"name": name, "resourceVersion": "61"}, "spec": {}});
        control.observe(ManagerInput::MultiKueueCluster(Change::Apply(shared(cluster))), NOW);
        for input in [
            link(true),
            WorkerInput::Workload(list(vec![])),
            WorkerInput::Job(batch_job(), jobs(vec![])),
            WorkerInput::Capacity(list(vec![])),
        ] {
            control.observe(of_worker(number, input), NOW);
        }
    }
    control.decide(NOW);
    control
}

#[test]
fn a_change_of_a_connection_has_evaluated_what_is_on_that_worker() {
    let (n_workloads, n_on_first) = (2_000, 7);
    let mut on_first: Vec<String> = (0..n_on_first).map(|number| numbered("w", number)).collect();
    for n_workers in [3, 500] {
        let mut control = of_many(n_workers, n_workloads, n_on_first);
        // A copy of a Workload that the hub does not have.
        let mut stray = copies().0;
        stray["metadata"]["name"] = json!("stray");
        control.observe(of_worker(0, WorkerInput::Workload(Change::Apply(shared(stray)))), NOW);
        control.decide(NOW);
        on_first.push("stray".to_owned());
        on_first.sort();
        for active in [false, true] {
            due(&mut control);
            control.decide(NOW);
            control.observe(of_worker(0, link(active)), NOW);
            assert_eq!(due(&mut control).workloads, on_first, "of {n_workers}");
            control.decide(NOW);
            control.observe(of_worker(2, link(active)), NOW);
            assert_eq!(due(&mut control).workloads, [""; 0], "nothing is there");
        }
        on_first.retain(|name| name != "stray");
        control.observe(of_worker(0, WorkerInput::Workload(list(vec![]))), NOW);
        control.observe(of_worker(0, WorkerInput::Job(batch_job(), jobs(vec![]))), NOW);
        let listed = due(&mut control).workloads;
        let missing = |name: &&String| !listed.contains(name);
        assert_eq!(on_first.iter().find(missing), None, "what is missing there is created");
        assert!(listed.len() <= on_first.len() + 1, "and nothing else: {listed:?}");
    }
}

/// The MultiKueueClusters that the next decision looks at; `None` for all.
fn clusters_due(control: &ManagerControl) -> Option<Vec<&str>> {
    let clusters = control.core.ctx.agenda.pending_clusters();
    let names = clusters.names.iter().map(|name| &**name).collect();
    (!clusters.all).then_some(names)
}

#[test]
fn a_report_has_its_own_cluster_evaluated() {
    let mut control = of_many(5, 10, 7);
    assert_eq!(clusters_due(&control), Some(vec![]));
    let report = json!({
        "metadata": {"name": "local", "resourceVersion": "70"},
        "status": {"protocol": 1, "asOf": "60", "reportedAt": "1970-01-01T00:00:00.000000Z"},
    });
    let report = || WorkerInput::Capacity(Change::Apply(shared(report.clone())));
    control.observe(of_worker(3, report()), NOW);
    assert_eq!(clusters_due(&control), Some(vec!["worker-3"]));
    control.decide(NOW);
    assert_eq!(clusters_due(&control), Some(vec![]));

    control.observe(of_worker(4, link(false)), NOW);
    assert_eq!(clusters_due(&control), Some(vec!["worker-4"]));
}
