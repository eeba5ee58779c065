//! How many replicas of a pod set are active, ready, succeeded and failed.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::replicated_pods::{REPLICA, ReplicatedPods};

/// The numbers of active, ready, succeeded and failed replicas. A replica that is ready is active, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ReplicaCounts {
    pub(super) pod_set: String,
    pub(super) replicas: i32,
    pub(super) active: i32,
    pub(super) ready: i32,
    pub(super) succeeded: i32,
    pub(super) failed: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PodState {
    Active,
    Ready,
    Succeeded,
    Failed,
    /// Its containers have stopped, and it was deleted before.
    Removed,
}

impl ReplicaCounts {
    /// The counts of a pod set among the pods of its job.
    pub(super) fn of(set: &ReplicatedPods, pods: &[&Pod]) -> Self {
        let (pod_set, replicas) = (set.name.clone(), set.replicas);
        let mut counts = Self { pod_set, replicas, ..Self::default() };
        for replica in 0..set.replicas {
            let index = replica.to_string();
            let own = pods
                .iter()
                .filter(|pod| set.has(pod.labels()) && pod.labels().get(REPLICA) == Some(&index));
            let states: Vec<PodState> = own.map(|pod| state(pod)).collect();
            counts.add(&states, usize::try_from(set.pods_per_replica).unwrap_or_default());
        }
        counts
    }

    fn add(&mut self, states: &[PodState], pods: usize) {
        let number = |wanted: &[PodState]| states.iter().filter(|one| wanted.contains(one)).count();
        let succeeded = number(&[PodState::Succeeded]);
        let active = number(&[PodState::Active, PodState::Ready]) > 0;
        let ready = number(&[PodState::Ready, PodState::Succeeded]) == pods;
        self.active += i32::from(active);
        self.ready += i32::from(ready && active);
        self.succeeded += i32::from(succeeded == pods);
        self.failed += i32::from(number(&[PodState::Failed]) > 0);
    }
}

/// Whether a pod has ended.
pub(super) fn has_ended(pod: &Pod) -> bool {
    !matches!(state(pod), PodState::Active | PodState::Ready)
}

fn state(pod: &Pod) -> PodState {
    let status = pod.status.as_ref();
    let deleted = pod.metadata.deletion_timestamp.is_some();
    match status.and_then(|status| status.phase.as_deref()) {
        Some("Succeeded" | "Failed") if deleted => PodState::Removed,
        Some("Succeeded") => PodState::Succeeded,
        Some("Failed") => PodState::Failed,
        _ if !deleted && is_ready(pod) => PodState::Ready,
        _ => PodState::Active,
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
}
