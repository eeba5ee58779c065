//! An agent: it admits what its worker is given, starts its Jobs, and reports its room.

use std::{convert::Infallible, sync::Arc, time::Duration};

use anyhow::Result;
use harness::secs;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{
    JOBS, REPORTS, WORKLOADS,
    hub::{self, NAME},
};
use crate::{
    api_double::{DoubleChange, DoubleCluster, now},
    installation::NAMESPACE,
};

/// Between two reports of an agent with the same work.
const HEARTBEAT: Duration = secs(10);

/// Between two reports of an agent with other work.
const REPORT_AGAIN: Duration = secs(1);

/// The object of the report; there is one per cluster.
const REPORT: &str = "/local";

/// Namespaces, and a report of room for so many pods.
pub(super) fn furnish(worker: &DoubleCluster, room: usize) -> Result<()> {
    for name in ["kube-system", NAMESPACE, NAME] {
        let metadata = json!({ "name": name });
        hub::create(worker, "/namespaces", ("v1", "Namespace"), &metadata, Value::Null)?;
    }
    let report = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "ClusterCapacity", "metadata": {"name": "local"},
        "spec": {}, "status": report(room, 0, "0"),
    });
    worker.create(REPORTS, report)?;
    Ok(())
}

/// Runs until it is dropped.
///
/// # Errors
/// If more was changed at once than the double keeps: the agent has missed something.
pub(super) async fn run(worker: Arc<DoubleCluster>, room: usize) -> Result<Infallible> {
    let mut agent = PlayedAgent { worker, room, running: 0, newest: "0".to_owned() };
    let mut workloads = agent.worker.follow(WORKLOADS);
    let mut jobs = agent.worker.follow(JOBS);
    let mut ticks = interval(REPORT_AGAIN);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut reported = (Instant::now(), 0);
    loop {
        tokio::select! {
            changes = workloads.next() => changes?.into_iter().for_each(|change| agent.admit(change)),
            changes = jobs.next() => changes?.into_iter().for_each(|change| agent.start(change)),
            _ = ticks.tick() => {
                if reported.1 != agent.running || reported.0.elapsed() >= HEARTBEAT {
                    reported = (Instant::now(), agent.running);
                    agent.report();
                }
            }
        }
    }
}

struct PlayedAgent {
    worker: Arc<DoubleCluster>,
    room: usize,
    running: usize,
    /// The version of the newest Workload.
    newest: String,
}

impl PlayedAgent {
    fn admit(&mut self, (key, workload): DoubleChange) {
        let Some(workload) = workload else { return };
        if let Some(version) = workload["metadata"]["resourceVersion"].as_str() {
            version.clone_into(&mut self.newest);
        }
        if !workload["status"]["admission"].is_null() {
            return;
        }
        // What was deleted meanwhile needs no admission.
        let _ = self.worker.merge(WORKLOADS, &key, json!({"status": admission(&workload)}));
    }

    fn start(&mut self, (key, job): DoubleChange) {
        let Some(job) = job else {
            self.running = self.running.saturating_sub(1);
            return;
        };
        if job["spec"]["suspend"] != json!(true) {
            return;
        }
        self.running += 1;
        let suspended = condition("Suspended", "False", "JobResumed");
        let status = json!({
            "active": 1, "ready": 0, "startTime": now(), "conditions": [suspended],
            "uncountedTerminatedPods": {},
        });
        let _ =
            self.worker.merge(JOBS, &key, json!({"spec": {"suspend": false}, "status": status}));
    }

    fn report(&self) {
        let status = report(self.room, self.running, &self.newest);
        let _ = self.worker.merge(REPORTS, REPORT, json!({ "status": status }));
    }
}

fn condition(name: &str, status: &str, reason: &str) -> Value {
    json!({
        "type": name, "status": status, "reason": reason, "message": "", "lastTransitionTime": now(),
        "observedGeneration": 1,
    })
}

/// The status of an admitted Workload.
fn admission(workload: &Value) -> Value {
    let sets = workload["spec"]["podSets"].as_array();
    let assignments = sets.into_iter().flatten().map(|set| {
        json!({
            "name": set["name"], "count": set["count"], "flavors": {"cpu": NAME},
            "resourceUsage": {"cpu": set["count"].as_u64().unwrap_or(1).to_string()},
        })
    });
    json!({
        "admission": {"clusterQueue": NAME, "podSetAssignments": assignments.collect::<Vec<_>>()},
        "conditions": [
            condition("QuotaReserved", "True", "QuotaReserved"),
            condition("Admitted", "True", "Admitted"),
        ],
    })
}

/// The room of one large node.
fn report(room: usize, running: usize, as_of: &str) -> Value {
    let free = room.saturating_sub(running).to_string();
    let pods = room + 100;
    json!({
        "protocol": 1, "mode": "Thin", "asOf": as_of, "reportedAt": now(),
        "kinds": [{"group": "batch", "version": "v1", "kind": "Job"}],
        "nodeClasses": [{
            "count": 1,
            "free": {"cpu": free, "pods": (pods - running).to_string()},
            "size": {"cpu": room.to_string(), "pods": pods.to_string()},
        }],
        "pending": {"own": 0, "others": 0}, "running": {"own": running, "others": 0},
    })
}

#[cfg(test)]
mod tests {
    use tokio::{task::yield_now, time::timeout};

    use super::*;
    use crate::api_double::ApiDouble;

    #[tokio::test]
    async fn an_agent_that_has_missed_changes_ends_with_an_error() {
        let double = ApiDouble::start().await.unwrap();
        let worker = double.add("worker-1", &super::super::SERVED);
        furnish(&worker, 1).unwrap();
        let agent = tokio::spawn(run(Arc::clone(&worker), 1));
        yield_now().await;
        let metadata = json!({"namespace": NAME, "name": "one"});
        worker.create(WORKLOADS, json!({ "metadata": metadata })).unwrap();
        let key = format!("{NAME}/one");
        for number in 0..25_000 {
            worker.merge(WORKLOADS, &key, json!({"spec": {"number": number}})).unwrap();
        }
        let ended = timeout(secs(30), agent).await.unwrap().unwrap();
        assert_eq!(ended.unwrap_err().to_string(), "too old resource version");
    }
}
