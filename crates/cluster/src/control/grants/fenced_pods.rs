//! Pods of clones, and their end when the grant has ended.
//!
//! The job is suspended as well, but its controller may be slow and gives the pods their own time to end. Each pod is therefore deleted by
//! the agent, and so is one that its controller creates before it sees the end of the job.

use ::jobs::pods;
use runtime::{
    watch::Key,
    write::{DeletePreconditions, Write},
    writer::WriteOutcome,
};

use crate::control::{
    capacity::CloneOfPod,
    context::Context,
    jobs::resource,
    key_map::KeyMap,
    outbox::{Intent, Purpose, Stamp, Subject, Target},
    timers::Reevaluation,
};

/// Seconds that a pod gets to end ([`dispatch::STOP_TIME`] has room for them).
const GRACE: u32 = 5;

/// Pods of clones that have not ended, by clone.
#[derive(Debug, Default)]
pub(super) struct FencedPods {
    clones: KeyMap<Key, Key>,
    pods: KeyMap<Key, KeyMap<Key, CloneOfPod>>,
}

impl FencedPods {
    /// Records a pod; `None` if it is gone, has ended, or belongs to no clone. Returns the clone that has another pod now.
    pub(super) fn observe(&mut self, key: &Key, pod: Option<&CloneOfPod>) -> Option<Key> {
        let known = self.clones.get(key).and_then(|clone| self.pods.get(clone)?.get(key));
        if known == pod {
            return None;
        }
        if let Some(clone) = self.clones.remove(key)
            && let Some(pods) = self.pods.get_mut(&clone)
        {
            pods.remove(key);
            if pods.is_empty() {
                self.pods.remove(&clone);
            }
        }
        let pod = pod?;
        self.clones.insert(key.clone(), pod.clone.clone());
        self.pods.entry(pod.clone.clone()).or_default().insert(key.clone(), pod.clone());
        Some(pod.clone.clone())
    }

    /// Deletes the pods of a clone that are not about to end.
    pub(super) fn end(&self, clone: &Key, ctx: &mut Context) {
        for (key, pod) in self.pods.get(clone).into_iter().flat_map(|pods| pods.iter()) {
            if pod.grace.is_some_and(|grace| grace <= i64::from(GRACE)) {
                continue;
            }
            let target = Target::home(Subject::Job(pods::kind().clone()), key);
            let waiter = Reevaluation::Workload(clone.clone());
            let base = Stamp { version: 0, uid: pod.uid.clone() };
            if !ctx.free_or_wait(&target, &base, &waiter) {
                continue;
            }
            let uid = pod.uid.as_deref().map(str::to_owned);
            let only = DeletePreconditions { uid, resource_version: None };
            let intent = Intent { target, purpose: Purpose::FencePod, base, waiter };
            ctx.outbox.submit(intent, |purpose, key| {
                Write::of(purpose, &resource(pods::kind())).delete_within(key, only, GRACE)
            });
        }
    }

    /// Takes the answer to a deletion: the watch may report it late.
    pub(super) fn answered(&mut self, key: &Key, answer: &WriteOutcome) {
        let Some(clone) = self.clones.get(key).cloned() else {
            return;
        };
        match answer {
            WriteOutcome::Done(_) => {
                if let Some(pod) = self.pods.get_mut(&clone).and_then(|pods| pods.get_mut(key)) {
                    pod.grace = Some(i64::from(GRACE));
                }
            }
            WriteOutcome::Gone => {
                self.observe(key, None);
            }
            _ => {}
        }
    }
}
