//! A pod with a node selector for a node that takes it no more ends as failed, so that its job replaces it.

use ::jobs::pods;
use crds::names::{conditions::TERMINATED_BY_KUEUE, reasons, reporters};
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
};

use super::topology_pods::KeyedPod;
use crate::control::{
    context::Context,
    jobs::resource,
    outbox::{Intent, Purpose, Subject, Target},
    pod_end::PodEnd,
    timers::Reevaluation,
};

/// Message of the condition and the Event.
const MESSAGE: &str = "Pod terminated by Kueue NodeController due to node taint";

/// Ends a pod.
pub(super) fn terminate(workload: &Key, keyed: KeyedPod<'_>, ctx: &mut Context) {
    let KeyedPod { key, pod } = keyed;
    let target = Target::home(Subject::Job(pods::kind().clone()), key);
    let waiter = Reevaluation::Workload(workload.clone());
    let base = pod.stamp();
    if !ctx.free_or_wait(&target, &base, &waiter) {
        return;
    }
    let end = PodEnd {
        condition: TERMINATED_BY_KUEUE,
        reason: reasons::UNSCHEDULABLE_ON_ASSIGNED_NODE,
        message: MESSAGE,
    };
    let intent = Intent { target, purpose: Purpose::TerminatePod, base, waiter };
    if end.submit(intent, ctx) {
        ctx.outbox.announce(event(keyed));
    }
}

fn event(KeyedPod { key, pod }: KeyedPod<'_>) -> EventRecord {
    let uid = pod.content().uid.as_deref().unwrap_or_default();
    EventRecord {
        regarding: Regarding::dynamic(&resource(pods::kind()), key.clone(), uid),
        event_type: EventType::Normal,
        action: "PodTerminated".to_owned(),
        reason: reasons::POD_TERMINATED_BY_KUEUE.to_owned(),
        note: MESSAGE.to_owned(),
        controller: Some(reporters::WORKLOAD_CONTROLLER.to_owned()),
    }
}
