//! What a change of a worker's connection, or of its MultiKueueCluster, has evaluated again.

use super::{
    dispatched::{connect, copies, dispatching, east, hub_job, hub_workload},
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
    dispatching.clusters_changed(core);
    let pending = core.ctx.agenda.pending_workloads().iter();
    Due {
        workloads: pending.map(|key| key.name.to_string()).collect(),
        cycle: core.scheduler.is_pending(),
        n_changes: dispatching.registry.fleet().n_changes(),
    }
}

/// Decides about everything that is due, and returns what is due then: nothing.
fn at_rest(control: &mut ManagerControl) -> Due {
    control.decide(NOW);
    let rest = due(control);
    assert_eq!((rest.workloads.len(), rest.cycle), (0, false));
    rest
}

/// A manager with a Workload that runs on `east`.
fn running() -> ManagerControl {
    let mut control = dispatching(&hub_job("20", false, &json!({})), &[hub_workload()]);
    let (clone, copy) = copies();
    connect(&mut control, vec![clone], vec![copy]);
    control
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
    east(WorkerInput::Connection(Connection {
        active: false,
        reason: "ClientConnectionFailed",
        message,
    }))
}

#[test]
fn a_condition_of_a_multikueue_cluster_has_nothing_evaluated() {
    let mut control = running();
    let rest = at_rest(&mut control);
    control.observe(cluster(50, &json!({}), "Connected"), NOW);
    assert_eq!(due(&mut control), rest);
    control.observe(cluster(51, &json!({"region": "eu"}), "Connected"), NOW);
    let relabelled = due(&mut control);
    assert!(relabelled.cycle && relabelled.n_changes > rest.n_changes, "{relabelled:?}");
}

#[test]
fn a_further_failed_attempt_has_nothing_evaluated() {
    let mut control = running();
    control.observe(failed(1), NOW);
    assert_eq!(due(&mut control).workloads, [dispatched::name()], "its worker is away");
    let rest = at_rest(&mut control);
    control.observe(failed(2), NOW);
    assert_eq!(due(&mut control), rest);
    let message = east_message(&control);
    assert!(message.contains("attempts: 2"), "the condition shows it: {message}");
}
