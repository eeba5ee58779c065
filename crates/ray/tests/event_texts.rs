//! The texts of events about what is deleted or refused, and of the ends of RayJobs, as the official operator words them.

use jiff::Timestamp;
use ray::{
    PassInputs, cluster,
    head::HeadAnswer,
    job,
    service::{self, ServiceMemory},
    settings::OperatorSettings,
    step::{RayAnswer, RayEvent, RayRefusal, RayStep},
};
use serde_json::{Value, json};

const NOW: &str = "2026-01-01T00:01:00Z";

fn inputs() -> PassInputs {
    PassInputs { now: NOW.parse::<Timestamp>().expect("a time"), seed: [1; 32] }
}

fn template() -> Value {
    json!({"spec": {"containers": [{"name": "ray", "image": "ray:1"}]}})
}

fn owned(object: &mut Value, kind: &str, owner: &str) {
    object["metadata"]["ownerReferences"] =
        json!([{"kind": kind, "uid": owner, "controller": true}]);
}

/// A RayCluster with a group of this size, its Service and its head.
fn cluster_of(n_hosts: i32, part: &Value) -> (Value, Vec<Value>) {
    let mut cluster = json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "c", "namespace": "ns", "uid": "u", "generation": 1},
        "spec": {
            "headGroupSpec": {"template": template()},
            "workerGroupSpecs": [{
                "groupName": "g", "replicas": 1, "minReplicas": 0, "maxReplicas": 1,
                "numOfHosts": n_hosts, "template": template(),
            }],
        },
    });
    json_patch::merge(&mut cluster, part);
    let mut head = pod("h", &json!({"ray.io/node-type": "head"}));
    head["metadata"]["annotations"] = json!({
        "ray.io/upgrade-strategy-recreate-hash": "OTHER",
        "ray.io/kuberay-version": OperatorSettings::default().version,
    });
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "c-head-svc", "uid": "s",
            "labels": {"ray.io/cluster": "c", "ray.io/node-type": "head"},
        },
    });
    owned(&mut service, "RayCluster", "u");
    let mut headless = service.clone();
    headless["metadata"] = json!({"name": "c-headless", "uid": "s2"});
    (cluster, vec![service, headless, head])
}

fn pod(name: &str, labels: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "uid": name, "labels": {"ray.io/cluster": "c"}},
        "spec": template()["spec"],
        "status": {"phase": "Running"},
    });
    json_patch::merge(&mut pod["metadata"]["labels"], labels);
    owned(&mut pod, "RayCluster", "u");
    pod
}

fn worker(name: &str) -> Value {
    let labels = json!({
        "ray.io/node-type": "worker", "ray.io/group": "g",
        "ray.io/worker-group-replica-name": "g-1", "ray.io/worker-group-replica-index": "0",
    });
    pod(name, &labels)
}

fn refused() -> RayAnswer {
    RayAnswer::Refused(RayRefusal { code: 403, message: "denied".to_owned() })
}

/// The events of a pass in which deletions are answered like this.
fn events(cluster: &Value, children: &[Value], deleted: &RayAnswer) -> Vec<String> {
    let children: Vec<&Value> = children.iter().collect();
    let settings = OperatorSettings::default();
    let mut answers = Vec::new();
    loop {
        let steps = cluster::decide(cluster, &children, &answers, &inputs(), &settings);
        if !steps.iter().any(RayStep::is_order) {
            return texts(steps);
        }
        for step in steps {
            answers.push(match step {
                RayStep::Create(object) => RayAnswer::Done(object.into()),
                _ => deleted.clone(),
            });
        }
    }
}

fn texts(steps: Vec<RayStep>) -> Vec<String> {
    let events = steps.into_iter().filter_map(|step| match step {
        RayStep::Event(RayEvent { reason, message, .. }) => Some(format!("{reason}: {message}")),
        _ => None,
    });
    events.collect()
}

fn done() -> RayAnswer {
    RayAnswer::Done(Value::Null.into())
}

#[test]
fn pods_that_cannot_be_deleted() {
    let suspending = json!([{"type": "RayClusterSuspending", "status": "True"}]);
    let part = json!({"spec": {"suspend": true}, "status": {"conditions": suspending}});
    let (cluster, children) = cluster_of(1, &part);
    let text = "FailedToDeletePodCollection: Failed deleting Pods due to suspension for RayCluster ns/c, denied";
    assert_eq!(events(&cluster, &children, &refused()), [text]);

    let (cluster, children) =
        cluster_of(1, &json!({"spec": {"upgradeStrategy": {"type": "Recreate"}}}));
    let text = "FailedToDeletePodCollection: Failed deleting Pods due to spec change with Recreate upgradeStrategy for RayCluster ns/c, denied";
    assert_eq!(events(&cluster, &children, &refused()), [text]);

    let (mut cluster, mut children) = cluster_of(1, &json!({}));
    cluster["spec"]["workerGroupSpecs"][0]["suspend"] = json!(true);
    children.push(worker("w"));
    let text = "FailedToDeleteWorkerPodCollection: Failed deleting worker Pods for suspended group g in RayCluster ns/c, denied";
    assert_eq!(events(&cluster, &children, &refused()), [text]);
}

#[test]
fn hosts_that_are_deleted() {
    let (cluster, children) = cluster_of(2, &json!({}));
    let with = |workers: &[Value]| [children.clone(), workers.to_vec()].concat();
    let incomplete = with(&[worker("w")]);
    let text = "DeletedWorkerPod: Deleted worker Pod ns/w for group g: cleanup of incomplete multi-host group";
    assert_eq!(events(&cluster, &incomplete, &done()), [text]);
    let text = "FailedToDeleteWorkerPod: Failed deleting worker Pod ns/w for group g; Pod status: Running; Pod restart policy: Always; Ray container terminated status: nil, denied";
    assert_eq!(events(&cluster, &incomplete, &refused()), [text]);

    let mut ended = worker("w");
    ended["spec"]["restartPolicy"] = json!("Never");
    let terminated = json!({"exitCode": 1, "reason": "Error"});
    ended["status"]["containerStatuses"] =
        json!([{"name": "ray", "state": {"terminated": terminated}}]);
    let found = events(&cluster, &with(&[ended, worker("x")]), &done());
    let state = "&ContainerStateTerminated{ExitCode:1,Signal:0,Reason:Error,Message:,StartedAt:,FinishedAt:,ContainerID:,}";
    let text = format!(
        "DeletedWorkerPod: Deleted worker Pod ns/w for group g: The Pod status of the worker Pod w is Running, and the Ray container terminated status is {state}. The container is unable to restart due to its restart policy Never, so KubeRay will delete it."
    );
    assert_eq!(found[0], text);

    let mut none = cluster;
    none["spec"]["workerGroupSpecs"][0]["replicas"] = json!(0);
    let found = events(&none, &with(&[worker("w"), worker("x")]), &done());
    assert_eq!(found[0], "DeletedWorkerPod: Deleted worker Pod ns/w for group g: scaling down");
}

/// The status of a RayJob after a pass.
fn job_status(spec: &Value, status: &Value, children: &[Value]) -> Value {
    let mut job = json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            "name": "rj", "namespace": "ns", "uid": "u",
            "finalizers": ["ray.io/rayjob-finalizer"],
        },
        "spec": {"entrypoint": "x", "rayClusterSpec": {"headGroupSpec": {"template": template()}}},
        "status": {"jobId": "id", "rayClusterName": "a", "startTime": "2026-01-01T00:00:00Z"},
    });
    json_patch::merge(&mut job["spec"], spec);
    json_patch::merge(&mut job["status"], status);
    let children: Vec<&Value> = children.iter().collect();
    let settings = OperatorSettings::default();
    let mut answers = Vec::new();
    loop {
        let steps = job::decide(&job, &children, &answers, &inputs(), &settings);
        if !steps.iter().any(RayStep::is_order) {
            let mut found = steps.into_iter().filter_map(|step| match step {
                RayStep::ReplaceStatus(status) => Some(status),
                _ => None,
            });
            return found.next().expect("a status");
        }
        for step in steps {
            answers.push(match step {
                RayStep::Ask(_) => RayAnswer::Head(HeadAnswer::Unreachable("x".to_owned())),
                _ => done(),
            });
        }
    }
}

#[test]
fn times_in_messages_of_rayjobs() {
    let running = json!({"jobDeploymentStatus": "Running"});
    let found = job_status(&json!({"activeDeadlineSeconds": 8}), &running, &[]);
    let text = "The RayJob has passed the activeDeadlineSeconds. StartTime: 2026-01-01 00:00:00 +0000 UTC. ActiveDeadlineSeconds: 8";
    assert_eq!(found["message"], text);
    let initializing = json!({"jobDeploymentStatus": "Initializing"});
    let found = job_status(&json!({"preRunningDeadlineSeconds": 8}), &initializing, &[]);
    let text = "The RayJob has passed the preRunningDeadlineSeconds. StartTime: 2026-01-01 00:00:00 +0000 UTC. PreRunningDeadlineSeconds: 8";
    assert_eq!(found["message"], text);

    let complete =
        json!({"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:10Z"});
    let mut submitter = json!({
        "kind": "Job", "metadata": {"name": "rj"}, "status": {"conditions": [complete]},
    });
    owned(&mut submitter, "RayJob", "u");
    let (mut cluster, _) = cluster_of(1, &json!({"metadata": {"name": "a"}}));
    owned(&mut cluster, "RayJob", "u");
    let found = job_status(&json!({}), &running, &[submitter, cluster]);
    let text = "The RayJob submitter finished at 2026-01-01 00:00:10 but the ray job did not reach terminal state within 30s";
    assert_eq!(found["message"], text);
}

/// The events of a RayService while writes of this kind are refused.
fn service_events(kind: &str, present: &[Value]) -> Vec<String> {
    let options = json!({"stepSizePercent": 10, "intervalSeconds": 1, "gatewayClassName": "istio"});
    let spec = json!({
        "rayClusterConfig": {"headGroupSpec": {"template": template()}, "enableInTreeAutoscaling": true},
        "serveConfigV2": "",
        "upgradeStrategy": {
            "type": "NewClusterWithIncrementalUpgrade", "clusterUpgradeOptions": options,
        },
    });
    let mut service = json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {
            "name": "rs", "namespace": "ns", "uid": "u",
            "finalizers": ["ray.io/rayservice-finalizer"],
        },
        "spec": spec,
        "status": {"pendingServiceStatus": {"rayClusterName": "rs-a"}},
    });
    let (memory, settings) = (ServiceMemory::default(), OperatorSettings::default());
    let first = service::decide(&service, &[], &memory, &[], &inputs(), &settings);
    let [RayStep::Create(cluster)] = &first[..] else { unreachable!("{first:?}") };
    let mut cluster = cluster.clone();
    cluster["metadata"]["uid"] = json!("c");
    service["status"] = json!({"activeServiceStatus": {"rayClusterName": "rs-a"}});
    let mut children = vec![cluster];
    children.extend(present.iter().cloned());
    let children: Vec<&Value> = children.iter().collect();
    let mut answers = Vec::new();
    loop {
        let steps = service::decide(&service, &children, &memory, &answers, &inputs(), &settings);
        if !steps.iter().any(RayStep::is_order) {
            return texts(steps);
        }
        for step in steps {
            answers.push(match step {
                RayStep::Create(object) if object["kind"] == kind => refused(),
                RayStep::Patch { target, .. } if target.kind == kind => refused(),
                RayStep::Create(object) => RayAnswer::Done(object.into()),
                _ => done(),
            });
        }
    }
}

#[test]
fn routes_that_cannot_be_written() {
    let drifted = |kind: &str, name: &str| {
        let mut object = json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": kind,
            "metadata": {"name": name, "uid": name}, "spec": {},
        });
        owned(&mut object, "RayService", "u");
        object
    };
    let has =
        |events: Vec<String>, text: &str| assert!(events.contains(&text.to_owned()), "{events:?}");
    let text = "FailedToUpdateGateway: Failed to update the Gateway ns/rs-gateway: denied";
    has(service_events("Gateway", &[drifted("Gateway", "rs-gateway")]), text);
    let text = "FailedToUpdateHTTPRoute: Failed to update the HTTPRoute ns/rs-httproute: denied";
    has(service_events("HTTPRoute", &[drifted("HTTPRoute", "rs-httproute")]), text);
    let text =
        "FailedToCreateGateway: Failed to create Gateway for RayService ns/rs-gateway: denied";
    has(service_events("Gateway", &[]), text);
    let text = "FailedToCreateHTTPRoute: Failed to create the HTTPRoute for RayService ns/rs-httproute: denied";
    has(service_events("HTTPRoute", &[]), text);
}
