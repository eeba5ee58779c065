//! The generator of upstream's scheduler benchmark: cohorts of queues, and sets of Workloads for each queue.

use std::time::Duration;

use anyhow::{Context, Result};
use crds::v1beta2::Workload;
use serde::Deserialize;
use serde_json::{Value, json};

const API: &str = "kueue.x-k8s.io/v1beta2";

/// The flavor of all queues.
const FLAVOR: &str = "rf";

/// Cohorts of one class.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CohortSet {
    class_name: String,
    count: usize,
    queues_sets: Vec<QueueSet>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueueSet {
    class_name: String,
    count: usize,
    nominal_quota: u64,
    borrowing_limit: Option<u64>,
    reclaim_within_cohort: String,
    within_cluster_queue: String,
    workloads_sets: Vec<WorkloadsSet>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkloadsSet {
    count: usize,
    creation_interval_ms: u64,
    workloads: Vec<WorkloadTemplate>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkloadTemplate {
    class_name: String,
    runtime_ms: u64,
    priority: i32,
    request: String,
}

/// A ClusterQueue with its namespace and LocalQueue, all of one name.
#[derive(Clone, Debug)]
pub(super) struct GeneratedQueue {
    pub(super) name: String,
    cohort: String,
    set: QueueSet,
}

/// Workloads that are created one after the other.
#[derive(Clone, Debug)]
pub(super) struct WorkloadStream {
    /// Of each creation, the first included.
    pub(super) interval: Duration,
    /// Namespace and Workload.
    pub(super) workloads: Vec<GeneratedWorkload>,
}

/// A Workload and the time for which it runs.
#[derive(Clone, Debug)]
pub(super) struct GeneratedWorkload {
    pub(super) namespace: String,
    pub(super) object: Workload,
    pub(super) runtime: Duration,
}

/// All queues of a file.
pub(super) fn queues(text: &str) -> Result<Vec<GeneratedQueue>> {
    let cohorts: Vec<CohortSet> = serde_saphyr::from_str(text).context("reading the generator")?;
    let mut queues = Vec::new();
    for set in &cohorts {
        for cohort in (0..set.count).map(|number| format!("{}-{number}", set.class_name)) {
            for of in &set.queues_sets {
                queues.extend((0..of.count).map(|number| GeneratedQueue {
                    name: format!("{cohort}-{}-{number}", of.class_name),
                    cohort: cohort.clone(),
                    set: of.clone(),
                }));
            }
        }
    }
    Ok(queues)
}

/// The flavor that all queues have.
pub(super) fn flavor() -> Value {
    json!({"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": FLAVOR}})
}

impl GeneratedQueue {
    /// Namespace, ClusterQueue and LocalQueue.
    pub(super) fn objects(&self) -> [Value; 3] {
        let (name, set) = (&self.name, &self.set);
        let mut quota = json!({"name": "cpu", "nominalQuota": set.nominal_quota.to_string()});
        if let Some(limit) = set.borrowing_limit {
            quota["borrowingLimit"] = json!(limit.to_string());
        }
        let flavors = json!([{"name": FLAVOR, "resources": [quota]}]);
        [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
            json!({
                "apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": name},
                "spec": {
                    "cohortName": self.cohort,
                    "namespaceSelector": {},
                    "preemption": {
                        "reclaimWithinCohort": set.reclaim_within_cohort,
                        "withinClusterQueue": set.within_cluster_queue,
                    },
                    "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
                },
            }),
            json!({
                "apiVersion": API, "kind": "LocalQueue",
                "metadata": {"name": name, "namespace": name}, "spec": {"clusterQueue": name},
            }),
        ]
    }

    /// A stream per set of Workloads. `share` of them are made, at least one of each set.
    pub(super) fn streams(&self, share: f64) -> Result<Vec<WorkloadStream>> {
        let streams = self.set.workloads_sets.iter().enumerate().map(|(number, set)| {
            let count = scaled(set.count, share);
            let templates = set.workloads.iter().cycle().take(count * set.workloads.len());
            let workloads = templates.enumerate().map(|(index, template)| {
                let name = format!("{}-{number}-{index}", template.class_name);
                Ok(GeneratedWorkload {
                    namespace: self.name.clone(),
                    object: workload(&name, &self.name, &template.request, template.priority)?,
                    runtime: Duration::from_millis(template.runtime_ms),
                })
            });
            let interval = Duration::from_millis(set.creation_interval_ms);
            Ok(WorkloadStream { interval, workloads: workloads.collect::<Result<_>>()? })
        });
        streams.collect()
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "some hundred Workloads"
)]
fn scaled(count: usize, share: f64) -> usize {
    ((count as f64 * share).round() as usize).max(1)
}

/// A raw Workload of one pod.
pub(super) fn workload(name: &str, queue: &str, cpu: &str, priority: i32) -> Result<Workload> {
    let object = json!({
        "metadata": {"name": name, "namespace": queue},
        "spec": {
            "queueName": queue,
            "priority": priority,
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{
                    "name": "main", "image": "main", "resources": {"requests": {"cpu": cpu}},
                }],
            }}}],
        },
    });
    serde_json::from_value(object).with_context(|| format!("the Workload {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::BASELINE;

    #[test]
    fn the_baseline_has_upstreams_sizes() {
        let queues = queues(BASELINE).expect("queues");
        assert_eq!(queues.len(), 30);
        let streams: Vec<_> =
            queues.iter().flat_map(|queue| queue.streams(1.0).expect("streams")).collect();
        let sum = |of: fn(&WorkloadStream) -> usize| streams.iter().map(of).sum::<usize>();
        assert_eq!((streams.len(), sum(|one| one.workloads.len())), (90, 15_000));
        let longest = streams.iter().map(|one| one.interval * one.workloads.len() as u32).max();
        assert_eq!(longest, Some(Duration::from_secs(60)));
        let few = queues[0].streams(0.001).expect("streams");
        assert_eq!(few.iter().map(|one| one.workloads.len()).collect::<Vec<_>>(), [1, 1, 1]);
    }
}
