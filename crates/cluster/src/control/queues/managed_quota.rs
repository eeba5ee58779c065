//! The quota of ClusterQueues that follows their workers: the spec and the condition that says so (docs/reference/multikueue.md
//! §2.14). What it is belongs to the machine of quota automation.

use crds::{
    meta::Condition,
    names::conditions::MANAGER_QUOTA_AUTOMATION,
    v1beta2::{ClusterQueue, ResourceGroup},
};
use index::status::{NewCondition, StatusStamp, set_for_generation};
use runtime::{watch::Key, write::Write};
use serde_json::json;

use super::TrackedQueue;
use crate::control::{
    context::Context,
    outbox::{Intent, Purpose, Subject, Target},
    timers::Reevaluation,
};

/// What quota automation says about a ClusterQueue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ManagedQuota {
    /// No MultiKueue check: there is no condition.
    Unrelated,
    /// Not everything is known: quota and condition stay.
    Unknown,
    /// The quota stays, for this reason.
    Kept(QuotaCondition),
    /// The quota is this.
    Automated(Vec<ResourceGroup>, QuotaCondition),
}

/// The condition of a ClusterQueue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuotaCondition {
    status: bool,
    reason: &'static str,
    message: String,
}

impl QuotaCondition {
    pub(crate) fn new(status: bool, reason: &'static str, message: String) -> Self {
        Self { status, reason, message }
    }
}

impl ManagedQuota {
    /// Writes the quota, if it differs and the ClusterQueue may be written now. Its answer evaluates the queue again.
    pub(super) fn write(&self, name: &str, queue: &TrackedQueue<ClusterQueue>, ctx: &mut Context) {
        let Self::Automated(groups, _) = self else {
            return;
        };
        let object = queue.tracked.object();
        if object.spec.resource_groups == *groups || object.metadata.deletion_timestamp.is_some() {
            return;
        }
        let key = Key { namespace: None, name: name.into() };
        let target = Target::home(Subject::ClusterQueue, &key);
        let (base, waiter) = (queue.tracked.stamp(), Reevaluation::Queue(name.into()));
        if !ctx.free_or_wait(&target, &base, &waiter) {
            return;
        }
        // The list is replaced as a whole. With the resourceVersion, what a user has just changed in it stays.
        let fields = json!({
            "metadata": {
                "uid": object.metadata.uid,
                "resourceVersion": object.metadata.resource_version,
            },
            "spec": { "resourceGroups": groups },
        });
        let intent = Intent { target, purpose: Purpose::ManagerQuota, base, waiter };
        ctx.outbox.submit(intent, |purpose, key| {
            Write::merge::<ClusterQueue>(purpose, key, None, &fields)
        });
    }

    /// Sets or removes the condition.
    pub(super) fn set_condition(&self, conditions: &mut Vec<Condition>, at: StatusStamp) {
        match self {
            Self::Unknown => {}
            Self::Unrelated => conditions.retain(|one| one.r#type != MANAGER_QUOTA_AUTOMATION),
            Self::Kept(one) | Self::Automated(_, one) => {
                let QuotaCondition { status, reason, message } = one;
                let kind = MANAGER_QUOTA_AUTOMATION;
                let wanted = NewCondition { kind, status: *status, reason, message };
                set_for_generation(conditions, wanted, at);
            }
        }
    }
}
