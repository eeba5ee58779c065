//! Failure recovery: pods on unreachable nodes that are deleted by force (docs/reference/kueue.md §6.7).
//!
//! Inputs: Pods and Nodes, both reduced when they are decoded. Outputs: the phase Failed, with a condition and an Event, and then the
//! deletion without a grace period. A pod stays terminating for ever while its kubelet is silent; its job neither counts it as ended nor
//! replaces it until it is gone.

mod node_reachability;
mod terminating_pod;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use ::jobs::pods;
use crds::{
    go_duration,
    names::{
        annotations::SAFE_TO_FORCEFULLY_DELETE, conditions::FAILURE_RECOVERY, reasons, reporters,
    },
};
use jiff::Timestamp;
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
    write::{DeletePreconditions, Write},
    writer::WriteOutcome,
};

use self::terminating_pod::TerminatingPod;
pub use self::{node_reachability::NodeReachability, terminating_pod::WatchedTerminatingPod};
use super::{
    context::Context,
    jobs::resource,
    key_map::KeyMap,
    key_set::KeySet,
    observed::{AnsweredObject, Observed},
    outbox::{Intent, Purpose, Settled, Stamp, Subject, Target, Ticket, after, version},
    pod_end::PodEnd,
    timers::Reevaluation,
};

/// How long a pod may outlive the grace period of its deletion.
const FORCEFUL_TERMINATION_GRACE: Duration = Duration::from_secs(60);

/// The pods that failure recovery watches, and their nodes.
#[derive(Debug, Default)]
pub(crate) struct FailureRecovery {
    pods: KeyMap<Key, TrackedTerminatingPod>,
    by_node: KeyMap<Box<str>, KeySet<Key>>,
    unreachable: BTreeSet<Box<str>>,
}

/// A pod as it was last observed.
#[derive(Debug)]
struct TrackedTerminatingPod {
    content: Arc<TerminatingPod>,
    version: u64,
}

impl TrackedTerminatingPod {
    fn stamp(&self) -> Stamp {
        Stamp { version: self.version, uid: self.content.uid.clone() }
    }
}

impl FailureRecovery {
    /// Records a Pod; `None` if it is gone.
    pub(crate) fn observe_pod(
        &mut self,
        key: &Key,
        pod: Option<&Arc<Observed<WatchedTerminatingPod>>>,
        ctx: &mut Context,
    ) {
        let terminating = pod.and_then(|pod| Some((pod.content().terminating()?, version(&**pod))));
        if let Some(known) = self.pods.remove(key) {
            // The answer to a write may have come before the watch.
            let older = |(pod, version): &(&Arc<TerminatingPod>, u64)| {
                pod.uid == known.content.uid && *version < known.version
            };
            if terminating.as_ref().is_some_and(older) {
                self.pods.insert(key.clone(), known);
                return;
            }
            self.by_node.remove_member(&known.content.node, key);
        }
        let Some((content, version)) = terminating else { return };
        ctx.agenda.at(forceful_from(content), Reevaluation::TerminatingPod(key.clone()));
        self.by_node.entry(content.node.clone()).or_default().insert(key.clone());
        let tracked = TrackedTerminatingPod { content: Arc::clone(content), version };
        self.pods.insert(key.clone(), tracked);
    }

    /// Records a Node; `None` if it is gone. Pods of a node that does not exist are deleted by Kubernetes.
    pub(crate) fn observe_node(
        &mut self,
        name: &str,
        node: Option<NodeReachability>,
        ctx: &mut Context,
    ) {
        if node.is_none_or(|node| node.reachable) {
            self.unreachable.remove(name);
        } else if self.unreachable.insert(name.into()) {
            let pods = self.by_node.get(name).into_iter().flatten();
            pods.for_each(|pod| ctx.agenda.now(Reevaluation::TerminatingPod(pod.clone())));
        }
    }

    /// Ends the pods that are due, and then deletes them.
    pub(crate) fn evaluate(&self, ctx: &mut Context) {
        for key in ctx.agenda.take_terminating_pods() {
            let Some(pod) = self.pods.get(&key) else { continue };
            // A node that becomes unreachable later evaluates its pods again, and so does the clock.
            let due = forceful_from(&pod.content) <= ctx.now;
            if due && self.unreachable.contains(&pod.content.node) {
                terminate(&key, pod, ctx);
            }
        }
    }

    /// Takes the answer to the write of a pod.
    pub(crate) fn answered(
        &mut self,
        ticket: &Ticket,
        answer: WriteOutcome,
        settled: &Settled,
        ctx: &mut Context,
    ) {
        let key = &ticket.target.key;
        // The watch may have shown the end of the pod already, or a successor of its name.
        let Some(known) = self.pods.get(key) else { return };
        if !settled.is_of(known.content.uid.as_deref()) {
            return;
        }
        match AnsweredObject::of(answer) {
            AnsweredObject::Known(pod) => self.observe_pod(key, pod.as_ref(), ctx),
            // Another version of the pod, or the end of the backoff, evaluates it again.
            AnsweredObject::Unchanged | AnsweredObject::Unknown => {}
        }
    }
}

/// When a pod may be deleted by force.
fn forceful_from(pod: &TerminatingPod) -> Timestamp {
    after(pod.deletion, FORCEFUL_TERMINATION_GRACE)
}

/// Writes the end of a pod, or deletes it once it shows an end: the job of a pod that is gone at once may take it for one that never
/// ran. A pod that has ended by itself keeps its phase.
fn terminate(key: &Key, pod: &TrackedTerminatingPod, ctx: &mut Context) {
    let target = Target::home(Subject::Job(pods::kind().clone()), key);
    let (base, waiter) = (pod.stamp(), Reevaluation::TerminatingPod(key.clone()));
    if !ctx.free_or_wait(&target, &base, &waiter) {
        return;
    }
    if pod.content.ended {
        let intent = Intent { target, purpose: Purpose::ForcefullyDelete, base, waiter };
        let uid = pod.content.uid.as_deref().map(str::to_owned);
        let preconditions = DeletePreconditions { uid, resource_version: None };
        ctx.outbox.submit(intent, |purpose, key| {
            Write::of(purpose, &resource(pods::kind())).delete_now(key, preconditions)
        });
        return;
    }
    let message = message(&pod.content);
    let end = PodEnd {
        condition: FAILURE_RECOVERY,
        reason: reasons::FORCEFULLY_DELETED,
        message: &message,
    };
    let intent = Intent { target, purpose: Purpose::ForcefullyEnd, base, waiter };
    if end.submit(intent, ctx) {
        ctx.outbox.announce(event(key, &pod.content, message));
    }
}

/// Message of the condition and the Event.
fn message(pod: &TerminatingPod) -> String {
    let grace = go_duration::format(pod.grace + FORCEFUL_TERMINATION_GRACE);
    let node = &pod.node;
    format!(
        "Pod forcefully terminated after {grace} grace period due to unreachable node `{node}` (triggered by `{SAFE_TO_FORCEFULLY_DELETE}` annotation)"
    )
}

fn event(key: &Key, pod: &TerminatingPod, note: String) -> EventRecord {
    let uid = pod.uid.as_deref().unwrap_or_default();
    EventRecord {
        regarding: Regarding::dynamic(&resource(pods::kind()), key.clone(), uid),
        event_type: EventType::Warning,
        action: "ForcefulTermination".to_owned(),
        reason: reasons::FORCEFULLY_DELETED.to_owned(),
        note,
        controller: Some(reporters::POD_TERMINATION_CONTROLLER.to_owned()),
    }
}
