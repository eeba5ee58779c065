//! Pods that cannot start on a worker: its agent shows why on the clone, and the manager on the Workload.

use jiff::ToSpan;

use super::{
    dispatched::{connect, copies, dispatching, east, hub_job, hub_workload, running},
    *,
};

const CAUSE: &str = "failed to resolve image: not found";

/// A pod of the clone. Its container waits for this reason, or runs.
pub(super) fn pod(version: i64, waits: Option<(&str, &str)>) -> Value {
    let state = match waits {
        Some((reason, message)) => json!({"waiting": {"reason": reason, "message": message}}),
        None => json!({"running": {}}),
    };
    json!({
        "metadata": {
            "name": "train-1", "namespace": "ns", "resourceVersion": version.to_string(),
            "labels": {"kueue.x-k8s.io/multikueue-worker-workload-pod": "true"},
            "annotations": {"kueue.x-k8s.io/workload": "job-train"},
        },
        "spec": {"containers": [], "nodeName": "node"},
        "status": {"containerStatuses": [{"name": "main", "state": state}]},
    })
}

/// The status that a decision writes for what is known of the pods.
fn written(step: &Decisions) -> Option<(&Ticket, Value)> {
    let order = step.orders.iter().find(|one| one.ticket.purpose == Purpose::PodsReady)?;
    let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
    Some((&order.ticket, body["status"].clone()))
}

/// The condition in a status, as `status reason message`.
fn failing(status: &Value) -> Option<String> {
    let all = status["conditions"].as_array()?;
    let one = all.iter().find(|one| one["type"] == "sluice.dev/PodsFailing")?;
    let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
    Some(format!("{} {} {}", text("status"), text("reason"), text("message")))
}

/// Decides. The API server stores the status that is written. Returns the condition of that, and the Events.
pub(super) fn stored<C: Control>(
    control: &mut C,
    (object, version): (&Value, i64),
    now: Timestamp,
) -> (Option<String>, Vec<String>) {
    let step = control.decide(now);
    let Some((ticket, status)) = written(&step) else {
        return (None, Vec::new());
    };
    let mut after = object.clone();
    after["metadata"]["resourceVersion"] = json!(version.to_string());
    after["status"] = status.clone();
    control.answered(ticket, WriteOutcome::done(after), now);
    let events = control.decide(now).events.into_iter();
    let about_pods = events.filter(|event| event.reason == "PodsFailing").map(|event| event.note);
    (failing(&status), about_pods.collect())
}

#[test]
fn an_agent_shows_once_why_pods_cannot_start_and_when_they_do() {
    let mut clone = workload();
    clone["metadata"]["ownerReferences"] = json!([]);
    let mut control = unschedulable::running(vec![pod(30, Some(("ErrImagePull", CAUSE)))]);
    let nothing = (None, Vec::new());
    let mut next = |pod: Option<Value>, version, second: i64| {
        if let Some(pod) = pod {
            control.observe(AgentInput::Pod(Change::Apply(shared(pod))), NOW + second.seconds());
        }
        stored(&mut control, (&clone, version), NOW + second.seconds())
    };
    assert_eq!(next(None, 0, 9), nothing, "it may start yet");
    let said = format!("pod train-1, container main: {CAUSE}");
    let shown = (Some(format!("True ErrImagePull {said}")), vec![format!("ErrImagePull: {said}")]);
    assert_eq!(next(None, 60, 10), shown);
    let again = pod(31, Some(("ImagePullBackOff", "Back-off pulling image")));
    assert_eq!(next(Some(again), 0, 20), nothing, "the kubelet alternates");
    let (ended, events) = next(Some(pod(32, None)), 61, 30);
    assert_eq!(ended, Some(format!("False ErrImagePull {said}")));
    assert_eq!(events, [""; 0]);
}

#[test]
fn an_agent_writes_nothing_for_pods_that_run() {
    let mut control = unschedulable::running(vec![pod(30, None)]);
    for second in [0, 10, 60] {
        assert_eq!(written(&control.decide(NOW + second.seconds())), None);
    }
}

/// The clone of the worker with the condition that its agent gave it.
fn clone_with(version: i64, condition: Option<(&str, &str)>) -> Value {
    let mut clone = copies().0;
    clone["metadata"]["resourceVersion"] = json!(version.to_string());
    let all = clone["status"]["conditions"].as_array_mut().expect("a list");
    all.extend(condition.map(|(status, reason)| {
        json!({
            "type": "sluice.dev/PodsFailing", "status": status, "reason": reason,
            "message": "pod train-1, container main: no such image",
        })
    }));
    clone
}

#[test]
fn the_manager_shows_what_the_clone_says_about_its_pods() {
    let mut hub = hub_workload();
    // Pods that are ready already cause no write beside that of the condition.
    hub["status"]["conditions"][2]["status"] = json!("True");
    let mut control = dispatching(&hub_job("20", false, &running()), &[hub.clone()]);
    connect(&mut control, vec![clone_with(51, None)], vec![copies().1]);
    control.decide(NOW);
    let mut next = |version, condition, second: i64| {
        let clone = shared(clone_with(version, condition));
        control.observe(east(WorkerInput::Workload(Change::Apply(clone))), NOW);
        stored(&mut control, (&hub, version), NOW + second.seconds())
    };
    let nothing = (None, Vec::new());
    assert_eq!(next(52, Some(("True", "ReasonOfALaterAgent")), 1), nothing);
    let said = "east: pod train-1, container main: no such image";
    let shown = Some(format!("True CreateContainerConfigError {said}"));
    let note = format!("CreateContainerConfigError: {said}");
    let failing = Some(("True", "CreateContainerConfigError"));
    assert_eq!(next(53, failing, 2), (shown, vec![note]));
    assert_eq!(next(54, failing, 3), nothing, "it is shown");
    let ended = Some(format!("False CreateContainerConfigError {said}"));
    assert_eq!(next(55, Some(("False", "CreateContainerConfigError")), 4), (ended, vec![]));
}

#[test]
fn the_manager_keeps_what_it_shows_while_the_clone_is_not_seen() {
    let mut hub = hub_workload();
    hub["status"]["conditions"][2]["status"] = json!("True");
    let condition = json!({
        "type": "sluice.dev/PodsFailing", "status": "True", "reason": "ImagePullBackOff",
        "message": "east: pod train-1", "lastTransitionTime": "1970-01-01T00:00:00Z",
    });
    hub["status"]["conditions"].as_array_mut().expect("a list").push(condition);
    let mut control = dispatching(&hub_job("20", false, &running()), &[hub]);
    assert_eq!(written(&control.decide(NOW)), None, "the worker is not connected yet");
    connect(&mut control, vec![clone_with(51, None)], vec![copies().1]);
    let step = control.decide(NOW);
    let status = written(&step).map(|(_, status)| status).expect("its pods run");
    let shown = failing(&status);
    assert_eq!(shown.as_deref(), Some("False ImagePullBackOff east: pod train-1"));
}
