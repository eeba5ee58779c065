//! Every write in the life of a plain pod in one cluster. Its creation is one more, by the user.

use super::{cluster::Cluster, lookups::settings_with, workloads_of_groups::pod_kind, *};

const OF_QUEUES: [Purpose; 2] = [Purpose::ClusterQueueStatus, Purpose::LocalQueueStatus];

fn cluster(gates: &Gates) -> Cluster {
    let mut cluster = Cluster::with(settings_with(&["pod"], gates));
    let none = Change::Reset { objects: vec![], removed: vec![] };
    cluster.observe(ManagerInput::Job(pod_kind(), none));
    cluster
}

/// The pod in this state.
fn pod(version: u32, is_gated: bool, status: &Value) -> Value {
    let gates = if is_gated { json!([{"name": "kueue.x-k8s.io/admission"}]) } else { json!([]) };
    let container = json!({"name": "main", "resources": {"requests": {"cpu": "1"}}});
    json!({
        "metadata": {
            "name": "p", "namespace": "ns", "uid": "uid-p", "resourceVersion": version.to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kueue.x-k8s.io/managed"],
            "labels": {"kueue.x-k8s.io/queue-name": "lq", "kueue.x-k8s.io/managed": "true"},
        },
        "spec": {"containers": [container], "schedulingGates": gates},
        "status": status,
    })
}

/// Decides until nothing is left, and adds what is written.
fn write(cluster: &mut Cluster, written: &mut Vec<&'static str>) {
    loop {
        let step = cluster.control.decide(cluster.now);
        if step.orders.is_empty() {
            return;
        }
        let purposes = step.orders.iter().map(|order| order.ticket.purpose);
        // Those are writes per period, however many pods there are.
        let of_pods = purposes.filter(|one| !OF_QUEUES.contains(one));
        written.extend(of_pods.map(Purpose::name));
        cluster.take(step);
    }
}

/// The writes until the pod has ended and nothing of it is left to do.
fn life(gates: &Gates) -> Vec<&'static str> {
    let (mut cluster, mut written) = (cluster(gates), Vec::new());
    let mut show = |pod: Value, answers: bool| {
        if answers {
            cluster.answer_job("p", &WriteOutcome::done(pod));
        } else {
            let pod = Arc::new(pod_kind().decode(pod).expect("a pod decodes"));
            cluster.observe(ManagerInput::Job(pod_kind(), Change::Apply(pod)));
        }
        write(&mut cluster, &mut written);
    };
    let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    show(pod(20, true, &json!({"phase": "Pending"})), false);
    show(pod(21, false, &json!({"phase": "Pending"})), true);
    show(pod(22, false, &ready), false);
    show(pod(23, false, &json!({"phase": "Succeeded"})), false);
    let mut finalized = pod(24, false, &json!({"phase": "Succeeded"}));
    finalized["metadata"]["finalizers"] = json!([]);
    show(finalized, true);
    written
}

/// The status of a Workload and its finalizers are written by different requests, as is each of both objects.
#[test]
fn a_plain_pod_costs_seven_writes_and_six_without_its_condition_of_readiness() {
    let mut written = life(&Gates::default());
    let ready = written.iter().position(|purpose| *purpose == "pods-ready");
    assert_eq!(
        written,
        [
            "workload-create",
            "reserve",
            "start",
            "pods-ready",
            "finish",
            "job-unfinalize",
            "unfinalize"
        ]
    );
    written.remove(ready.expect("it is written"));
    let off = Gates::parse("DisableWaitForPodsReady=true").expect("gates");
    assert_eq!(life(&off), written);
}
