//! The steps that end a registration, in their order. Pure.
//!
//! What a MultiKueueCluster or a mark of a Secret says is gone with it; so everything is read before the first step.

use crds::v1beta2::MultiKueueCluster;
use kube::api::ObjectMeta;

use super::{
    LeaveFailure, RemainingWork,
    secret::{needs_mark, secret_name, secret_removal},
};
use crate::made_by::is_made_by_sluicectl;

/// A registration as the command finds it.
pub(super) struct FoundRegistration<'a> {
    pub(super) name: &'a str,
    /// The MultiKueueCluster, if it exists.
    pub(super) cluster: Option<&'a MultiKueueCluster>,
    /// The Secrets that `join` made.
    pub(super) joined: &'a [ObjectMeta],
    /// All MultiKueueClusters.
    pub(super) all: &'a [MultiKueueCluster],
    /// The worker can be reached.
    pub(super) has_worker: bool,
}

/// How a registration ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LeavePlan {
    /// The Secret of the registration.
    pub(super) secret: String,
    pub(super) steps: Vec<LeaveStep>,
}

/// A step. Each can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaveStep {
    /// The MultiKueueCluster is gone already.
    ReportAbsence,
    /// No new work, and none left at the end.
    EndWork,
    /// The worker leaves the configurations that `join` added it to.
    LeaveConfigs,
    /// The Secret is marked as that of the registration.
    MarkSecret,
    /// The MultiKueueCluster goes.
    RemoveCluster,
    /// No Workload is on the worker.
    AwaitNoWork,
    /// The worker has no copy.
    AwaitNoCopies,
    /// The Secret goes, unless another MultiKueueCluster reads it.
    RemoveSecret,
    /// Account and rights on the worker go.
    RemoveFromWorker,
    /// The drain ends.
    EndDrain,
}

/// Plans the end of a registration.
///
/// # Errors
/// If there is nothing to end, or `join` did not make it.
pub(super) fn plan(
    found: &FoundRegistration<'_>,
    work: RemainingWork,
) -> Result<LeavePlan, LeaveFailure> {
    let FoundRegistration { name, cluster, joined, all, has_worker } = *found;
    let secret = secret_name(name, cluster, joined);
    let removal = secret_removal(name, &secret, all);
    let mut steps = Vec::new();
    match cluster {
        Some(cluster) if !is_made_by_sluicectl(&cluster.metadata) => {
            return Err(LeaveFailure::NotJoined(name.to_owned()));
        }
        Some(_) => {
            steps.extend([LeaveStep::EndWork, LeaveStep::LeaveConfigs]);
            steps.extend(needs_mark(name, &removal, joined).then_some(LeaveStep::MarkSecret));
        }
        // A command that ended early has left a Secret or objects on the worker.
        None if !has_worker && !removal.deletes_any(joined) => {
            return Err(LeaveFailure::NoCluster(name.to_owned()));
        }
        None => steps.push(LeaveStep::ReportAbsence),
    }
    steps.push(LeaveStep::RemoveCluster);
    if work != RemainingWork::Ignore {
        // A nomination from before the deletion is withdrawn by then.
        steps.push(LeaveStep::AwaitNoWork);
        steps.extend(has_worker.then_some(LeaveStep::AwaitNoCopies));
    }
    steps.push(LeaveStep::RemoveSecret);
    steps.extend(has_worker.then_some(LeaveStep::RemoveFromWorker));
    // A cluster of this name that joins later is not drained.
    steps.push(LeaveStep::EndDrain);
    Ok(LeavePlan { secret, steps })
}

#[cfg(test)]
mod tests {
    use crds::names::{SLUICECTL, labels::MANAGED_BY};
    use serde_json::json;

    use super::{LeaveStep::*, *};

    fn registration(secret: &str) -> MultiKueueCluster {
        serde_json::from_value(json!({
            "metadata": {"name": "east", "labels": {MANAGED_BY: SLUICECTL}},
            "spec": {"clusterSource": {"kubeConfig": {"location": secret}}},
        }))
        .expect("a MultiKueueCluster")
    }

    fn secret(name: &str) -> ObjectMeta {
        ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
    }

    fn steps(
        cluster: Option<&MultiKueueCluster>,
        joined: &[ObjectMeta],
        (has_worker, work): (bool, RemainingWork),
    ) -> Result<Vec<LeaveStep>, String> {
        let all: Vec<_> = cluster.cloned().into_iter().collect();
        let found = FoundRegistration { name: "east", cluster, joined, all: &all, has_worker };
        plan(&found, work).map(|plan| plan.steps).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_registration_ends_after_its_work_and_before_its_secret() {
        let (cluster, joined) = (registration("east"), [secret("east")]);
        assert_eq!(
            steps(Some(&cluster), &joined, (true, RemainingWork::Refuse)).expect("a plan"),
            [
                EndWork,
                LeaveConfigs,
                RemoveCluster,
                AwaitNoWork,
                AwaitNoCopies,
                RemoveSecret,
                RemoveFromWorker,
                EndDrain
            ]
        );
        assert_eq!(
            steps(Some(&cluster), &joined, (false, RemainingWork::Refuse)).expect("a plan"),
            [EndWork, LeaveConfigs, RemoveCluster, AwaitNoWork, RemoveSecret, EndDrain]
        );
        // Copies may stay, and so does what they need on the worker of another command.
        assert_eq!(
            steps(Some(&cluster), &joined, (true, RemainingWork::Ignore)).expect("a plan"),
            [EndWork, LeaveConfigs, RemoveCluster, RemoveSecret, RemoveFromWorker, EndDrain]
        );
    }

    #[test]
    fn a_secret_of_another_name_is_marked_before_the_registration_goes() {
        let cluster = registration("other");
        let steps = steps(Some(&cluster), &[secret("other")], (false, RemainingWork::Ignore));
        assert_eq!(
            steps.expect("a plan"),
            [EndWork, LeaveConfigs, MarkSecret, RemoveCluster, RemoveSecret, EndDrain]
        );
    }

    #[test]
    fn an_early_end_is_taken_up_where_it_left_something() {
        let ignore = |has_worker| (has_worker, RemainingWork::Ignore);
        let left = steps(None, &[secret("east")], ignore(false));
        assert_eq!(left.expect("a plan"), [ReportAbsence, RemoveCluster, RemoveSecret, EndDrain]);
        let on_worker = steps(None, &[], ignore(true));
        assert_eq!(
            on_worker.expect("a plan"),
            [ReportAbsence, RemoveCluster, RemoveSecret, RemoveFromWorker, EndDrain]
        );
        let nothing = steps(None, &[], ignore(false));
        assert_eq!(nothing, Err("no MultiKueueCluster east".to_owned()));
    }

    #[test]
    fn a_registration_made_by_hand_stays() {
        let mut cluster = registration("east");
        cluster.metadata.labels = None;
        let refused = steps(Some(&cluster), &[secret("east")], (true, RemainingWork::Ignore));
        assert!(refused.expect_err("refused").contains("was not made by join"));
    }
}
