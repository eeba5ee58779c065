//! The conditions of a RayService.
//!
//! Source: docs/reference/ray.md §9.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::state::ServiceState;
use crate::{cluster::rfc3339, json::text};

/// Condition: whether any pod serves.
pub(super) const READY: &str = "Ready";
/// Condition: whether a second cluster is on its way.
pub(super) const UPGRADE_IN_PROGRESS: &str = "UpgradeInProgress";
/// Condition: whether an upgrade is taken back.
pub(super) const ROLLBACK_IN_PROGRESS: &str = "RollbackInProgress";
/// Condition: whether everything is being removed.
pub(super) const SUSPENDING: &str = "Suspending";
/// Condition: whether everything is removed.
pub(super) const SUSPENDED: &str = "Suspended";

/// Reason: the first cluster does not serve yet.
pub(super) const INITIALIZING: &str = "Initializing";
/// Reason: the first cluster did not serve in time.
pub(super) const INITIALIZING_TIMEOUT: &str = "InitializingTimeout";
/// Reason: the RayService is refused.
pub(super) const VALIDATION_FAILED: &str = "ValidationFailed";

/// A condition as it is to be.
pub(super) struct ServiceCondition<'a> {
    pub(super) kind: &'static str,
    /// `True`, `False` or `Unknown`.
    pub(super) status: &'static str,
    pub(super) reason: &'static str,
    pub(super) message: &'a str,
}

impl ServiceState {
    pub(super) fn condition(&self, kind: &str) -> Option<&Value> {
        self.conditions.iter().find(|condition| condition["type"] == kind)
    }

    pub(super) fn is_true(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition["status"] == "True")
    }

    /// The reason of a condition; empty if there is none.
    pub(super) fn reason(&self, kind: &str) -> &str {
        self.condition(kind).map_or("", |condition| text(&condition["reason"]))
    }

    /// Sets a condition. Its time is that of the last change of its status.
    pub(super) fn set(&mut self, wanted: &ServiceCondition<'_>, now: Timestamp) {
        let ServiceCondition { kind, status, reason, message } = *wanted;
        let present = self.conditions.iter().position(|condition| condition["type"] == kind);
        let present = present.and_then(|at| self.conditions.get_mut(at));
        let since = present.as_ref().filter(|it| it["status"] == status);
        let since =
            since.map_or_else(|| json!(rfc3339(now)), |it| it["lastTransitionTime"].clone());
        let mut condition = json!({
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": since,
        });
        if self.observed_generation != 0 {
            condition["observedGeneration"] = json!(self.observed_generation);
        }
        match present {
            Some(present) => *present = condition,
            None => self.conditions.push(condition),
        }
    }

    pub(super) fn remove_condition(&mut self, kind: &str) {
        self.conditions.retain(|condition| condition["type"] != kind);
    }

    /// Both conditions of a RayService that has nothing yet.
    pub(super) fn initialize_conditions(&mut self, now: Timestamp) {
        for kind in [READY, UPGRADE_IN_PROGRESS] {
            let message = "RayService is initializing";
            let reason = INITIALIZING;
            self.set(&ServiceCondition { kind, status: "False", reason, message }, now);
        }
    }

    /// The condition Ready, from the number of pods that serve. One that is initializing stays so until then.
    pub(super) fn update_ready(&mut self, now: Timestamp) {
        let wanted = if self.endpoints > 0 {
            let message = "Number of serve endpoints is greater than 0";
            let reason = "NonZeroServeEndpoints";
            ServiceCondition { kind: READY, status: "True", reason, message }
        } else if self.is_true(READY) {
            let message = "Number of serve endpoints dropped to 0";
            let reason = "ZeroServeEndpoints";
            ServiceCondition { kind: READY, status: "False", reason, message }
        } else {
            return;
        };
        self.set(&wanted, now);
    }

    /// The condition UpgradeInProgress, from the clusters that are in use.
    pub(super) fn update_upgrade(&mut self, now: Timestamp) {
        let kind = UPGRADE_IN_PROGRESS;
        let (status, reason, message) = match self.clusters().map(|name| !name.is_empty()) {
            [true, true] => (
                "True",
                "BothActivePendingClustersExist",
                "Both active and pending Ray clusters exist",
            ),
            [true, false] => (
                "False",
                "NoPendingCluster",
                "Active Ray cluster exists and no pending Ray cluster",
            ),
            // The first cluster is no upgrade.
            [false, _] if [INITIALIZING, INITIALIZING_TIMEOUT].contains(&self.reason(kind)) => {
                return;
            }
            [false, _] => (
                "Unknown",
                "NoActiveCluster",
                "No active Ray cluster exists, and the RayService is not initializing. Please open a GitHub issue in the KubeRay repository.",
            ),
        };
        self.set(&ServiceCondition { kind, status, reason, message }, now);
    }
}
