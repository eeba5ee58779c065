//! What happened to each job, from watches of the clusters.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use e2e::objects::job_is;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

/// The life of one job.
#[derive(Clone, Debug, Default)]
pub(super) struct ObservedJob {
    /// Just before it was sent.
    pub(super) submitted: Option<Instant>,
    /// By pod: the time at which it was first seen running.
    running: BTreeMap<String, Instant>,
    /// By pod: the time at which it had ended.
    ended: BTreeMap<String, Instant>,
    /// The cluster of the pods.
    pub(super) cluster: Option<String>,
    /// A pod was refused by the scheduler of its cluster.
    pub(super) is_unbindable: bool,
    /// The clusters that had a clone.
    clones: BTreeSet<String>,
    /// The Job on the manager was complete.
    pub(super) complete: Option<Instant>,
}

impl ObservedJob {
    /// A pod of the job on a worker.
    pub(super) fn observe_pod(&mut self, cluster: &str, pod: &Pod, now: Instant) {
        let name = format!("{cluster}/{}", pod.name_any());
        let status = pod.status.as_ref();
        self.cluster = Some(cluster.to_owned());
        match status.and_then(|status| status.phase.as_deref()) {
            Some("Running") => drop(self.running.entry(name).or_insert(now)),
            Some("Succeeded" | "Failed") => drop(self.ended.entry(name).or_insert(now)),
            _ => {}
        }
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let refused = conditions.into_iter().flatten().any(|one| {
            one.type_ == "PodScheduled" && one.reason.as_deref() == Some("Unschedulable")
        });
        self.is_unbindable |= refused;
    }

    /// A clone of its Workload.
    pub(super) fn observe_clone(&mut self, cluster: &str) {
        self.clones.insert(cluster.to_owned());
    }

    /// The Job on the manager.
    pub(super) fn observe_job(&mut self, job: &Job, now: Instant) {
        if job_is(job, "Complete") {
            self.complete.get_or_insert(now);
        }
    }

    /// Clusters that had a clone.
    pub(super) fn clones(&self) -> usize {
        self.clones.len()
    }

    /// The time from which all `pods` ran at once, if they did.
    pub(super) fn whole(&self, pods: u32) -> Option<Instant> {
        let last = self.running.values().max().copied()?;
        let first_end = self.ended.values().min();
        let is_whole =
            self.running.len() >= pods as usize && first_end.is_none_or(|end| last < *end);
        is_whole.then_some(last)
    }

    /// From its submission until all pods ran, or until its first pod ran if they never all did.
    pub(super) fn wait(&self, pods: u32) -> Option<Duration> {
        let started = self.whole(pods).or_else(|| self.running.values().min().copied())?;
        Some(started.saturating_duration_since(self.submitted?))
    }

    /// When its pods ran, for the SVG.
    pub(super) fn span(&self) -> Option<(Instant, Instant)> {
        let begin = self.running.values().min().copied()?;
        Some((begin, self.ended.values().max().copied().unwrap_or(begin)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, phase: &str, reason: &str) -> Pod {
        let condition = json!({"type": "PodScheduled", "status": "True", "reason": reason});
        let status = json!({"phase": phase, "conditions": [condition]});
        serde_json::from_value(json!({"metadata": {"name": name}, "status": status}))
            .expect("a pod")
    }

    #[test]
    fn a_gang_is_whole_when_all_its_pods_run_at_once() {
        let (begun, second) = (Instant::now(), Duration::from_secs(1));
        let mut job = ObservedJob { submitted: Some(begun), ..ObservedJob::default() };
        job.observe_pod("a", &pod("p", "Running", ""), begun + second);
        assert_eq!(job.whole(2), None);
        job.observe_pod("a", &pod("p", "Running", ""), begun + 9 * second);
        job.observe_pod("a", &pod("q", "Running", ""), begun + 2 * second);
        assert_eq!(job.wait(2), Some(2 * second));
        let mut late = ObservedJob { submitted: Some(begun), ..ObservedJob::default() };
        late.observe_pod("a", &pod("p", "Running", ""), begun + second);
        late.observe_pod("a", &pod("p", "Succeeded", ""), begun + 2 * second);
        late.observe_pod("a", &pod("q", "Running", ""), begun + 3 * second);
        assert_eq!((late.whole(2), late.wait(2)), (None, Some(second)));
    }

    #[test]
    fn a_pod_without_a_node_is_unbindable() {
        let mut job = ObservedJob::default();
        job.observe_pod("a", &pod("p", "Pending", ""), Instant::now());
        assert!(!job.is_unbindable);
        job.observe_pod("a", &pod("p", "Pending", "Unschedulable"), Instant::now());
        job.observe_pod("a", &pod("p", "Running", ""), Instant::now());
        assert!(job.is_unbindable, "also when it gets a node later");
    }
}
