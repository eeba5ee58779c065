//! A clone on a thin worker whose pods do not run: no node takes one, or the API server refuses them.

use super::*;

pub(super) fn pod(reason: &str) -> Value {
    json!({
        "metadata": {
            "name": "train-1", "namespace": "ns", "resourceVersion": "30",
            "labels": {"kueue.x-k8s.io/multikueue-worker-workload-pod": "true"},
            "annotations": {"kueue.x-k8s.io/workload": "job-train"},
        },
        "spec": {"containers": []},
        "status": {"conditions": [{
            "type": "PodScheduled", "status": "False", "reason": reason, "message": "0/1 nodes",
            "lastTransitionTime": "1970-01-01T00:00:10Z",
        }]},
    })
}

pub(super) fn evictions(step: &Decisions) -> usize {
    step.orders.iter().filter(|order| order.ticket.purpose == Purpose::Evict).count()
}

#[test]
fn a_clone_is_evicted_when_a_pod_is_unschedulable_for_a_minute() {
    for (reason, second, evicted) in
        [("Unschedulable", 69, 0), ("Unschedulable", 70, 1), ("SchedulingGated", 70, 0)]
    {
        let mut control =
            AgentControl::new(AgentSettings::new(AgentPolicy::default(), &kinds().handled));
        let mut clone = workload();
        clone["metadata"]["ownerReferences"] = json!([]);
        let lists = [
            AgentInput::LimitRange(list(vec![])),
            AgentInput::RuntimeClass(list(vec![])),
            AgentInput::Node(list(vec![])),
            AgentInput::Pod(list(vec![pod(reason)])),
            AgentInput::Capacity(list(vec![])),
            AgentInput::Lease(list(vec![])),
            AgentInput::Job(batch_job(), jobs(vec![])),
            AgentInput::Workload(list(vec![clone])),
        ];
        lists.into_iter().for_each(|list| control.observe(list, NOW));
        assert_eq!(evictions(&control.decide(NOW)), 0);
        let later = NOW + jiff::SignedDuration::from_secs(second);
        assert_eq!(evictions(&control.decide(later)), evicted, "{reason} at {second}");
    }
}

/// An Event about the Job of this uid.
pub(super) fn refusal(uid: &str) -> AgentInput {
    let message = "Error creating: pods \"train-x\" is forbidden: exceeded quota: small";
    AgentInput::RefusedPods(Change::Apply(shared(json!({
        "metadata": {"name": "train.1", "namespace": "ns", "resourceVersion": "40"},
        "involvedObject": {
            "apiVersion": "batch/v1", "kind": "Job", "namespace": "ns", "name": "train", "uid": uid,
        },
        "reason": "FailedCreate", "type": "Warning", "message": message,
    }))))
}

/// An agent with an admitted clone and its running Job, whose pods these are.
pub(super) fn running(pods: Vec<Value>) -> AgentControl {
    let mut control =
        AgentControl::new(AgentSettings::new(AgentPolicy::default(), &kinds().handled));
    let mut clone = workload();
    clone["metadata"]["ownerReferences"] = json!([]);
    let mut job = serde_json::to_value(job()).expect("encodes");
    job["spec"]["suspend"] = json!(false);
    job["metadata"]["annotations"] = json!({"kueue.x-k8s.io/prebuilt-workload-name": "job-train"});
    let lists = [
        AgentInput::LimitRange(list(vec![])),
        AgentInput::RuntimeClass(list(vec![])),
        AgentInput::Node(list(vec![])),
        AgentInput::Pod(list(pods)),
        AgentInput::Capacity(list(vec![])),
        AgentInput::Lease(list(vec![])),
        AgentInput::Job(batch_job(), jobs(vec![job])),
        AgentInput::Workload(list(vec![clone])),
    ];
    lists.into_iter().for_each(|list| control.observe(list, NOW));
    control.decide(NOW);
    control
}

fn pod_named(name: &str) -> Value {
    let mut pod = pod("");
    pod["metadata"]["name"] = json!(name);
    pod
}

#[test]
fn a_clone_is_evicted_in_the_words_of_the_api_server_when_its_pods_are_refused_for_long() {
    let both = || vec![pod_named("train-1"), pod_named("train-2")];
    for (uid, pods, evicted) in [
        ("job-1", vec![], 1),
        ("job-1", vec![pod_named("train-1")], 1),
        ("job-1", both(), 0),
        ("an earlier job", vec![], 0),
    ] {
        let mut control = running(pods);
        control.observe(refusal(uid), NOW);
        let at = |second| NOW + jiff::SignedDuration::from_secs(second);
        assert_eq!(evictions(&control.decide(at(29))), 0, "{uid}");
        let step = control.decide(at(30));
        assert_eq!(evictions(&step), evicted, "{uid}");
        let mut orders = step.orders.iter();
        if let Some(order) = orders.find(|order| order.ticket.purpose == Purpose::Evict) {
            let body = String::from_utf8_lossy(order.write.request().body());
            assert!(
                body.contains("PodsRefused") && body.contains("exceeded quota: small"),
                "{body}"
            );
        }
    }
}

#[test]
fn pods_that_were_refused_for_a_moment_are_no_reason_to_evict() {
    let mut control = running(vec![]);
    control.observe(refusal("job-1"), NOW);
    control.decide(NOW);
    for name in ["train-1", "train-2"] {
        control.observe(AgentInput::Pod(Change::Apply(shared(pod_named(name)))), NOW);
    }
    control.decide(NOW);
    let gone = Key { namespace: Some("ns".into()), name: "train-1".into() };
    control.observe(AgentInput::Pod(Change::Delete(gone)), NOW);
    let later = NOW + jiff::SignedDuration::from_secs(60);
    assert_eq!(evictions(&control.decide(later)), 0);
}

/// An Event about a child of a job.
fn child_refusal(kind: &str, name: &str, uid: &str) -> AgentInput {
    let api = if kind == "Job" { "batch/v1" } else { "apps/v1" };
    AgentInput::RefusedPods(Change::Apply(shared(json!({
        "metadata": {"name": format!("{name}.1"), "namespace": "ns", "resourceVersion": "41"},
        "involvedObject": {
            "apiVersion": api, "kind": kind, "namespace": "ns", "name": name, "uid": uid,
        },
        "reason": "FailedCreate", "type": "Warning", "message": "exceeded quota: small",
    }))))
}

/// Answers the only read of an owner with an object of this uid and controller. Returns the path that was read.
fn owner_read(control: &mut AgentControl, uid: &str, owner: &Value) -> Option<String> {
    let step = control.decide(NOW);
    let read = step.orders.iter().find(|order| order.ticket.purpose == Purpose::Owner)?;
    let metadata = json!({"uid": uid, "ownerReferences": [owner]});
    let list = json!({"metadata": {"resourceVersion": "50"}, "items": [{"metadata": metadata}]});
    control.answered(&read.ticket, WriteOutcome::done(list), NOW);
    Some(read.write.request().uri().to_string())
}

fn owner(api_version: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true})
}

#[test]
fn pods_that_are_refused_to_a_child_count_for_the_clone_of_its_job() {
    let train = |uid| owner("batch/v1", "Job", "train", uid);
    for (uid, evicted) in [("job-1", 1), ("an earlier job", 0)] {
        let mut control = running(vec![]);
        control.observe(child_refusal("StatefulSet", "train-0", "set-1"), NOW);
        let path =
            owner_read(&mut control, "set-1", &owner("apps/v1", "ReplicaSet", "mid", "mid-1"));
        let path = path.expect("the child is read");
        assert!(path.contains("/apps/v1/namespaces/ns/statefulsets?"), "{path}");
        let path = owner_read(&mut control, "mid-1", &train(uid)).expect("its owner is read");
        assert!(path.contains("/replicasets?"), "{path}");
        let at = |second| NOW + jiff::SignedDuration::from_secs(second);
        assert_eq!(evictions(&control.decide(at(29))), 0, "{uid}");
        assert_eq!(evictions(&control.decide(at(30))), evicted, "{uid}");
    }
}

#[test]
fn an_object_without_an_owner_of_ours_is_read_once() {
    let mut control = running(vec![]);
    control.observe(child_refusal("StatefulSet", "other", "set-9"), NOW);
    let foreign = json!({"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "o"});
    assert!(owner_read(&mut control, "set-9", &foreign).is_some());
    control.observe(child_refusal("StatefulSet", "other", "set-9"), NOW);
    assert!(owner_read(&mut control, "set-9", &foreign).is_none(), "it belongs to no clone");
}

#[test]
fn owners_are_followed_a_few_steps_at_most() {
    let mut control = running(vec![]);
    control.observe(child_refusal("StatefulSet", "loop", "set-1"), NOW);
    let own = owner("apps/v1", "StatefulSet", "loop", "set-1");
    let reads = (0..20).take_while(|_| owner_read(&mut control, "set-1", &own).is_some());
    assert_eq!(reads.count(), 5);
}
