//! An agent with clones under ExactlyOnce.

use jiff::ToSpan;
use k8s_openapi::api::coordination::v1::Lease;

use super::*;

const GRANT: i64 = 20;

/// An agent with one node, that has listed this clone and its job.
fn agent(clone: &Value, job: &Value) -> ManagedAgent {
    let settings = AgentSettings::new(AgentPolicy::default(), &kinds().handled);
    let mut control = AgentControl::new(settings.with_lease("kueue-system", "boot"));
    let node = json!({
        "metadata": {"name": "node", "resourceVersion": "1"},
        "status": {
            "allocatable": {"cpu": "4", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    });
    let lists = [
        AgentInput::LimitRange(list(vec![])),
        AgentInput::RuntimeClass(list(vec![])),
        AgentInput::Node(list(vec![node])),
        AgentInput::Pod(list(vec![pod()])),
        AgentInput::Capacity(list(vec![])),
        AgentInput::Lease(list(vec![
            lease(
                "sluice-agent",
                "4",
                &json!({"sluice.dev/beat": "3"}),
                &json!({"holderIdentity": "old"}),
            ),
            hub_lease("5", "0", Some("old/3")),
        ])),
        AgentInput::Job(batch_job(), jobs(vec![job.clone()])),
        AgentInput::Workload(list(vec![clone.clone()])),
    ];
    lists.into_iter().for_each(|list| control.observe(list, NOW));
    ManagedAgent { control, beats: 0 }
}

struct ManagedAgent {
    control: AgentControl,
    beats: u64,
}

impl ManagedAgent {
    /// Purposes of the orders, without reports.
    fn decide(&mut self, now: Timestamp) -> Vec<&'static str> {
        let step = self.control.decide(now);
        let mut purposes = Vec::new();
        for order in step.orders {
            let purpose = order.ticket.purpose;
            if matches!(purpose, Purpose::Beat | Purpose::BeatCreate) {
                self.beats += 1;
                let number = json!({"sluice.dev/beat": self.beats.to_string()});
                let version = (100 + self.beats).to_string();
                let spec = json!({"holderIdentity": "boot"});
                let beat = lease("sluice-agent", &version, &number, &spec);
                self.control.answered(&order.ticket, WriteOutcome::done(beat), now);
            }
            purposes.push(purpose.name());
        }
        purposes.retain(|one| !one.contains("capacity"));
        purposes
    }

    /// The manager echoes the last beat.
    fn echo(&mut self, version: &str, session: &str, now: Timestamp) {
        let echo = format!("boot/{}", self.beats);
        let grant = hub_lease(version, session, Some(&echo));
        self.control.observe(AgentInput::Lease(Change::Apply(shared(grant))), now);
    }
}

pub(super) fn lease(name: &str, version: &str, annotations: &Value, spec: &Value) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {
            "name": name, "namespace": "kueue-system", "resourceVersion": version,
            "annotations": annotations,
        },
        "spec": spec,
    })
}

pub(super) fn hub_lease(version: &str, session: &str, echo: Option<&str>) -> Value {
    let mut annotations = json!({"sluice.dev/term": "9", "sluice.dev/session": session});
    if let Some(echo) = echo {
        annotations["sluice.dev/echo"] = json!(echo);
    }
    lease("sluice-hub-multikueue", version, &annotations, &json!({"leaseDurationSeconds": 30}))
}

fn clone(admitted: bool) -> Value {
    let mut clone = workload();
    clone["metadata"]["ownerReferences"] = json!([]);
    clone["metadata"]["labels"] = json!({"kueue.x-k8s.io/multikueue-origin": "multikueue"});
    clone["metadata"]["annotations"] = json!({"sluice.dev/lease": "0/9"});
    if !admitted {
        clone["status"] = json!({});
    }
    clone
}

/// Its job, which runs or not.
fn copy(suspend: bool) -> Value {
    let mut copy = serde_json::to_value(job()).expect("encodes");
    copy["spec"]["suspend"] = json!(suspend);
    copy["metadata"]["labels"] = json!({
        "kueue.x-k8s.io/multikueue-origin": "multikueue",
        "kueue.x-k8s.io/prebuilt-workload-name": "job-train",
    });
    copy
}

/// A pod of the clone.
fn pod() -> Value {
    json!({
        "metadata": {
            "name": "train-0", "namespace": "ns", "uid": "pod-1", "resourceVersion": "9",
            "labels": {"kueue.x-k8s.io/multikueue-worker-workload-pod": "true"},
            "annotations": {"kueue.x-k8s.io/workload": "job-train"},
        },
        "spec": {"nodeName": "node", "containers": []}, "status": {"phase": "Running"},
    })
}

#[test]
fn a_clone_is_admitted_when_a_beat_was_echoed_that_was_sent_after_it_was_observed() {
    let mut agent = agent(&clone(false), &copy(true));
    assert_eq!(agent.decide(NOW), ["beat"]);
    assert_eq!(agent.decide(NOW), [""; 0], "it waits for the echo");
    agent.echo("6", "0", NOW);
    assert_eq!(agent.decide(NOW), ["reserve"]);
}

#[test]
fn without_a_hub_lease_nothing_is_written_and_a_clone_without_a_stamp_needs_none() {
    let mut plain = clone(false);
    plain["metadata"]["annotations"] = json!({});
    let mut agent = agent(&plain, &copy(true));
    let key = Key { namespace: Some("kueue-system".into()), name: "sluice-hub-multikueue".into() };
    agent.control.observe(AgentInput::Lease(Change::<Lease>::Delete(key)), NOW);
    assert_eq!(agent.decide(NOW), ["reserve"]);
}

#[test]
fn at_the_end_of_its_grant_a_clone_is_evicted_for_good_and_its_pods_are_deleted() {
    let mut agent = agent(&clone(true), &copy(false));
    assert_eq!(agent.decide(NOW), ["beat"]);
    agent.echo("6", "0", NOW);
    let before = agent.decide(NOW + (GRANT - 1).seconds());
    assert!(!before.contains(&"evict"), "{before:?}");
    let step = agent.control.decide(NOW + GRANT.seconds());
    let body = |purpose: Purpose| -> Value {
        let order = step.orders.iter().find(|order| order.ticket.purpose == purpose);
        let order = order.unwrap_or_else(|| panic!("no {purpose}"));
        serde_json::from_slice(order.write.request().body()).expect("JSON")
    };
    let eviction = body(Purpose::Evict);
    let evicted = eviction["status"]["conditions"].as_array().into_iter().flatten();
    let evicted = evicted.filter(|one| one["type"] == "Evicted").collect::<Vec<_>>();
    assert_eq!(evicted[0]["reason"], "Fenced");
    assert!(eviction["status"]["requeueState"]["requeueAt"].as_str() > Some("1979"));
    let deletion = body(Purpose::FencePod);
    assert_eq!(deletion["gracePeriodSeconds"], 5);
    assert_eq!(deletion["preconditions"]["uid"], "pod-1");
}

#[test]
fn a_clone_of_an_ended_session_is_evicted_although_a_grant_lasts() {
    let mut agent = agent(&clone(true), &copy(false));
    agent.decide(NOW);
    agent.echo("6", "1", NOW);
    let step = agent.decide(NOW);
    assert!(step.contains(&"evict") && step.contains(&"fence-pod"), "{step:?}");
}

#[test]
fn a_clone_without_a_grant_starts_no_job() {
    let mut agent = agent(&clone(true), &copy(true));
    let step = agent.decide(NOW + GRANT.seconds());
    assert!(step.contains(&"evict") && !step.contains(&"start"), "{step:?}");
}

#[test]
fn a_clone_that_replaces_one_of_its_name_needs_an_echo_of_its_own() {
    let mut agent = agent(&clone(false), &copy(true));
    agent.decide(NOW);
    let mut next = clone(false);
    next["metadata"]["uid"] = json!("wl-2");
    next["metadata"]["resourceVersion"] = json!("40");
    agent.control.observe(AgentInput::Workload(Change::Apply(shared(next))), NOW);
    agent.echo("6", "0", NOW);
    assert_eq!(agent.decide(NOW), ["beat"], "the echo is older than the clone");
    agent.echo("7", "0", NOW);
    assert_eq!(agent.decide(NOW), ["reserve"]);
}
