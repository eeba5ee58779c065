//! A pod with a node selector for a node that takes it no more ends as failed, so that its job replaces it.

use ::jobs::pods;
use crds::names::{conditions::TERMINATED_BY_KUEUE, reasons, reporters};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use runtime::{
    events::{EventRecord, EventType, Regarding},
    watch::Key,
    write::Write,
};
use serde_json::json;

use super::topology_pods::TrackedPod;
use crate::control::{
    context::Context,
    jobs::resource,
    outbox::{Intent, Purpose, Subject, Target},
    timers::Reevaluation,
};

/// The field manager of the end of a pod.
const FIELD_MANAGER: &str = "kueue";

/// Message of the condition and the Event.
const MESSAGE: &str = "Pod terminated by Kueue NodeController due to node taint";

/// Ends a pod.
pub(super) fn terminate(workload: &Key, (key, pod): (&Key, &TrackedPod), ctx: &mut Context) {
    let target = Target::home(Subject::Job(pods::kind().clone()), key);
    let waiter = Reevaluation::Workload(workload.clone());
    let base = pod.stamp();
    if !ctx.is_free(&target, &base, &waiter) {
        return;
    }
    let fields = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": key.name, "namespace": key.namespace,
            "uid": pod.content().uid, "resourceVersion": pod.resource_version(),
        },
        "status": { "phase": "Failed", "conditions": [{
            "type": TERMINATED_BY_KUEUE, "status": "True",
            "reason": reasons::UNSCHEDULABLE_ON_ASSIGNED_NODE, "message": MESSAGE,
            "lastTransitionTime": Time(ctx.now),
        }] },
    });
    let intent = Intent { target, purpose: Purpose::TerminatePod, base, waiter };
    // Applied, so that the conditions of the scheduler stay.
    let submitted = ctx.outbox.submit(intent, |purpose, key| {
        let resource = resource(pods::kind());
        Write::of(purpose, &resource).apply(key, Some("status"), FIELD_MANAGER, &fields)
    });
    if submitted {
        ctx.outbox.publish(event(key, pod));
    }
}

fn event(key: &Key, pod: &TrackedPod) -> EventRecord {
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
