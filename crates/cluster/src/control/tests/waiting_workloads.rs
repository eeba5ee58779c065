//! No Workload is forgotten while it waits for room on a worker, whatever happens to others, their queue and the worker.

use super::{
    capacity_waits::check,
    cluster::Cluster,
    dispatched::east,
    gang_reservation::{capacity, manager, waiting},
    *,
};

/// A Workload of any name comes, changes or goes; or its queue or its worker changes.
#[derive(Clone, Copy, Debug)]
enum WaitStep {
    Submit(u8, usize, i32),
    Finish(u8),
    /// Set by the API server while a finalizer is left.
    MarkDeleted(u8),
    Remove(u8),
    Deactivate(u8, bool),
    /// The number of free nodes of 8 cpus that the worker reports.
    Report(usize),
    Check(bool),
    /// Seconds; never as many as a worker has for its admission.
    Wait(i64),
}

fn wait_step() -> impl Strategy<Value = WaitStep> {
    let name = || 0..5_u8;
    prop_oneof![
        4 => (name(), 1..3_usize, 1..9_i32).prop_map(|(name, pods, cpus)| WaitStep::Submit(name, pods, cpus)),
        2 => name().prop_map(WaitStep::Finish),
        1 => name().prop_map(WaitStep::MarkDeleted),
        1 => name().prop_map(WaitStep::Remove),
        1 => (name(), any::<bool>()).prop_map(|(name, active)| WaitStep::Deactivate(name, active)),
        3 => (0..3_usize).prop_map(WaitStep::Report),
        1 => any::<bool>().prop_map(WaitStep::Check),
        1 => (1..3_i64).prop_map(WaitStep::Wait),
    ]
}

/// A manager with one worker, and the steps that were taken.
struct Waits {
    cluster: Cluster,
    version: usize,
}

impl Waits {
    fn new() -> Self {
        Self { cluster: Cluster::of(manager(&json!({})), vec![]), version: 1000 }
    }

    fn take(&mut self, step: WaitStep) {
        let name = |number: u8| format!("w{number}");
        let known = |cluster: &Cluster, name: &str| cluster.workloads.contains_key(name);
        self.version += 1;
        match step {
            WaitStep::Submit(number, pods, cpus) if !known(&self.cluster, &name(number)) => {
                let mut object = waiting(&name(number), pods.try_into().expect("few"), cpus);
                // Each is another object.
                object["metadata"]["uid"] = json!(format!("uid-{}", self.version));
                self.cluster.workload(&name(number), pods, &object);
            }
            WaitStep::Finish(number) if known(&self.cluster, &name(number)) => {
                let finished = json!({"type": "Finished", "status": "True", "reason": "Succeeded", "message": ""});
                let known = &self.cluster.workloads[&name(number)]["status"]["conditions"];
                let mut conditions = known.as_array().cloned().unwrap_or_default();
                conditions.push(finished);
                let status = json!({"status": {"conditions": conditions}});
                self.cluster.workload(&name(number), 0, &status);
            }
            WaitStep::MarkDeleted(number) if known(&self.cluster, &name(number)) => {
                let mark = json!({"metadata": {
                    "deletionTimestamp": NOW.to_string(), "finalizers": ["example.com/other"],
                }});
                self.cluster.workload(&name(number), 0, &mark);
            }
            WaitStep::Remove(number) if self.cluster.workloads.remove(&name(number)).is_some() => {
                let key = Key { namespace: Some("ns".into()), name: name(number).into() };
                self.cluster.observe(ManagerInput::Workload(Change::Delete(key)));
            }
            WaitStep::Deactivate(number, active) if known(&self.cluster, &name(number)) => {
                self.cluster.workload(&name(number), 0, &json!({"spec": {"active": active}}));
            }
            WaitStep::Report(nodes) => self.report(nodes),
            WaitStep::Check(active) => {
                self.cluster.observe(check(&self.version.to_string(), active));
            }
            WaitStep::Wait(seconds) => {
                self.cluster.wait(seconds);
            }
            _ => {}
        }
        self.cluster.settle();
    }

    fn report(&mut self, nodes: usize) {
        let mut report = capacity();
        report["metadata"]["resourceVersion"] = json!(self.version.to_string());
        report["status"]["nodeClasses"][0]["count"] = json!(nodes);
        report["status"]["nodeClasses"][1]["count"] = json!(0);
        self.cluster.observe(east(WorkerInput::Capacity(Change::Apply(shared(report)))));
    }

    /// Workloads that are neither finished, deactivated nor deleted, and have no quota.
    fn without_quota(&self) -> Vec<&str> {
        let holds = |one: &Value, condition: &str| {
            let all = one["status"]["conditions"].as_array();
            all.into_iter().flatten().any(|it| it["type"] == condition && it["status"] == "True")
        };
        let waits = |one: &Value| {
            let over = holds(one, "Finished") || holds(one, "QuotaReserved");
            !over
                && one["metadata"]["deletionTimestamp"].is_null()
                && one["spec"]["active"] != false
        };
        let all = self.cluster.workloads.iter().filter(|(_, one)| waits(one));
        all.map(|(name, _)| name.as_str()).collect()
    }
}

proptest! {
    /// Whatever happened before: with room for all, every Workload gets quota.
    #[test]
    fn no_workload_is_forgotten_while_it_waits(
        steps in proptest::collection::vec(wait_step(), 1..40),
    ) {
        let mut waits = Waits::new();
        steps.into_iter().for_each(|step| waits.take(step));
        for step in [WaitStep::Check(true), WaitStep::Report(20)] {
            waits.take(step);
        }
        prop_assert_eq!(waits.without_quota(), Vec::<&str>::new());
    }
}
