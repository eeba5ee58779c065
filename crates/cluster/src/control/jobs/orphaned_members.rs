//! Held pods of a set that is gone, such as those of a LeaderWorkerSet that was deleted without its dependents.
//!
//! The set alone puts its pods into groups, so a pod that is in none would wait for ever: it loses its gate, as upstream does it. A
//! member of a group has a Workload, which starts it.

use std::time::Duration;

use ::jobs::{JobObject, Pod, pods};
use jiff::Timestamp;

use super::{
    Jobs,
    change::{JobChange, submit},
};
use crate::control::{
    context::Context,
    job_key::JobKey,
    outbox::{Purpose, Target, after},
    timers::Reevaluation,
};

/// How old a pod is before its set counts as gone. The watches of pods and sets are not in step: a pod may be seen before its new set.
const SHOWN_AFTER: Duration = Duration::from_mins(1);

impl Jobs {
    /// Releases the held pods of a set that does not exist. `managed` says which pods are this process's to start.
    pub(crate) fn release_members_of_absent(
        &self,
        set: &JobKey,
        managed: &dyn Fn(&JobKey, &JobObject) -> bool,
        ctx: &mut Context,
    ) {
        // On a worker only copies are seen, so a set that is not seen may be there.
        let is_unknown = !self.config.creates_workloads || !self.kinds.lists(&set.kind);
        if is_unknown || self.jobs.get(set).is_some() {
            return;
        }
        for key in self.sets.members(set) {
            let Some(tracked) = self.jobs.get(key) else { continue };
            let waits = |pod: &&Pod| pod.is_gated() && !pod.is_deleting();
            let pod = tracked.object().as_pod().filter(waits);
            let pod =
                pod.filter(|_| self.group_of(key).is_none() && managed(key, tracked.object()));
            let Some((pod, shown)) = pod.and_then(|pod| Some((pod, shown_at(pod)?))) else {
                continue;
            };
            if shown > ctx.now {
                ctx.agenda.at(shown, Reevaluation::Job(set.clone()));
                continue;
            }
            let waiter = Reevaluation::Job(set.clone());
            if !ctx.is_free(&Target::job(key), &tracked.stamp(), &waiter) {
                continue;
            }
            let mut released = pod.clone();
            pods::ungate(&mut released);
            let released = Box::new(JobObject::from(released));
            submit(key, tracked, &JobChange::spec(released, Purpose::Adopt), ctx);
        }
    }
}

/// When the set of a pod has to be seen, if there is one.
fn shown_at(pod: &Pod) -> Option<Timestamp> {
    Some(after(pod.metadata.creation_timestamp.as_ref()?.0, SHOWN_AFTER))
}
