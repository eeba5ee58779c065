//! Rules of RayServices without a recording: lost memory, foreign objects, hostile heads, a spec that goes back.

mod clusters;
mod invalid;
mod services;
mod takeover;
mod upgrades;

use jiff::Timestamp;
use ray::{
    PassInputs,
    head::{HeadAnswer, HeadMethod, HeadRequest},
    service::{self, ServiceMemory},
    settings::OperatorSettings,
    step::{RayAnswer, RayRefusal, RayStep},
};
use serde_json::{Value, json};

const CONFIG: &str = "applications:\n- name: one\n";

fn cluster_spec(image: &str) -> Value {
    let container = json!({"name": "ray", "image": image});
    json!({"headGroupSpec": {"template": {"spec": {"containers": [container]}}}})
}

fn ray_service(image: &str, status: &Value) -> Value {
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {
            "name": "rs", "namespace": "ns", "uid": "u", "resourceVersion": "7", "generation": 3,
            "finalizers": ["ray.io/rayservice-finalizer"],
        },
        "spec": {"rayClusterConfig": cluster_spec(image), "serveConfigV2": CONFIG},
        "status": status,
    })
}

fn active(name: &str) -> Value {
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 3,
        })
    };
    json!({
        "activeServiceStatus": {"rayClusterName": name},
        "conditions": [
            condition("Ready", "True", "NonZeroServeEndpoints"),
            condition("UpgradeInProgress", "False", "NoPendingCluster"),
        ],
    })
}

fn inputs() -> PassInputs {
    PassInputs { now: "2026-01-02T00:00:00Z".parse::<Timestamp>().expect("a time"), seed: [3; 32] }
}

/// The cluster that a RayService with this image makes, ready, with its head.
fn cluster(name: &str, image: &str) -> Vec<Value> {
    cluster_of(ray_service(image, &Value::Null), name)
}

fn cluster_of(mut service: Value, name: &str) -> Vec<Value> {
    service["status"] = json!({"pendingServiceStatus": {"rayClusterName": name}});
    let steps = decide(&service, &[], &ServiceMemory::default(), &[]);
    let [RayStep::Create(cluster)] = steps.as_slice() else { unreachable!("{steps:?}") };
    let mut cluster = cluster.clone();
    cluster["metadata"]["uid"] = json!(format!("uid of {name}"));
    cluster["status"] = json!({
        "state": "ready",
        "conditions": [{"type": "HeadPodReady", "status": "True"}],
    });
    let owner = json!({"uid": cluster["metadata"]["uid"], "controller": true});
    let head = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("{name}-head"), "namespace": "ns", "uid": "h",
            "labels": {"ray.io/cluster": name, "ray.io/node-type": "head", "ray.io/serve": "true"},
            "ownerReferences": [owner],
        },
        "spec": {"containers": [{"name": "ray"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    vec![cluster, head]
}

fn decide(
    service: &Value,
    children: &[Value],
    memory: &ServiceMemory,
    answers: &[RayAnswer],
) -> Vec<RayStep> {
    let settings = OperatorSettings::default();
    service::decide(
        service,
        &children.iter().collect::<Vec<_>>(),
        memory,
        answers,
        &inputs(),
        &settings,
    )
}

/// A head with applications in this state.
fn head(state: &'static str) -> impl Fn(&HeadRequest) -> HeadAnswer {
    move |request| {
        let body = if request.url.ends_with("api_type=declarative") {
            json!({"applications": {"one": {"status": state}}}).to_string()
        } else {
            String::new()
        };
        HeadAnswer::Response { code: 200, body }
    }
}

/// Runs a pass in which every write succeeds, and returns its orders and what it leaves.
fn pass(
    service: &Value,
    children: &[Value],
    memory: &ServiceMemory,
    head: impl Fn(&HeadRequest) -> HeadAnswer,
) -> (Vec<RayStep>, Vec<RayStep>) {
    let (mut orders, mut answers) = (Vec::new(), Vec::new());
    loop {
        let steps = decide(service, children, memory, &answers);
        if !steps.iter().any(RayStep::is_order) {
            return (orders, steps);
        }
        for step in steps {
            answers.push(match &step {
                RayStep::Create(object) => RayAnswer::Done(object.clone().into()),
                RayStep::Ask(request) => RayAnswer::Head(head(request)),
                _ => RayAnswer::Done(Value::Null.into()),
            });
            orders.push(step);
        }
    }
}

fn remembered(steps: &[RayStep]) -> Option<&ServiceMemory> {
    steps.iter().find_map(|step| match step {
        RayStep::Remember(memory) => Some(memory),
        _ => None,
    })
}

fn status(steps: &[RayStep]) -> Option<&Value> {
    steps.iter().find_map(|step| match step {
        RayStep::ReplaceStatus(status) => Some(status),
        _ => None,
    })
}

fn sent(orders: &[RayStep]) -> usize {
    let is_put = |step: &&RayStep| matches!(step, RayStep::Ask(it) if it.method == HeadMethod::Put);
    orders.iter().filter(is_put).count()
}

#[test]
fn a_configuration_is_sent_once_and_again_after_the_memory_is_lost() {
    let service = ray_service("ray:1", &active("rs-a"));
    let children = cluster("rs-a", "ray:1");
    let lost = ServiceMemory::default();
    let (orders, ends) = pass(&service, &children, &lost, head("RUNNING"));
    assert_eq!(sent(&orders), 1);
    let memory = remembered(&ends).expect("a memory").clone();
    let (orders, _) = pass(&service, &children, &memory, head("RUNNING"));
    assert_eq!(sent(&orders), 0);
    let (orders, _) = pass(&service, &children, &lost, head("RUNNING"));
    assert_eq!(sent(&orders), 1, "sent again, which changes nothing at the head");
}

#[test]
fn the_name_of_a_cluster_is_stored_before_the_cluster_is_made() {
    let service = ray_service("ray:1", &Value::Null);
    let (orders, ends) = pass(&service, &[], &ServiceMemory::default(), head("RUNNING"));
    assert_eq!(orders, [], "nothing is made yet");
    let status = status(&ends).expect("a status");
    let name = status["pendingServiceStatus"]["rayClusterName"].as_str().expect("a name");
    assert!(name.starts_with("rs-"), "{name}");
}

#[test]
fn a_service_that_lost_its_cluster_says_where_to_report_it() {
    let service = ray_service("ray:1", &active(""));
    let (_, ends) = pass(&service, &[], &ServiceMemory::default(), head("RUNNING"));
    let condition = &status(&ends).expect("a status")["conditions"][1];
    let message = "No active Ray cluster exists, and the RayService is not initializing. Please open a GitHub issue in the KubeRay repository.";
    assert_eq!(condition["type"], "UpgradeInProgress");
    assert_eq!(
        (&condition["status"], &condition["reason"]),
        (&json!("Unknown"), &json!("NoActiveCluster"))
    );
    assert_eq!(condition["message"], message);
}

#[test]
fn a_head_that_answers_nonsense_changes_no_status() {
    let service = ray_service("ray:1", &active("rs-a"));
    let children = cluster("rs-a", "ray:1");
    for body in ["<html>", "{\"applications\":", "[1]"] {
        let answer = |_: &HeadRequest| HeadAnswer::Response { code: 200, body: body.to_owned() };
        let (orders, ends) = pass(&service, &children, &ServiceMemory::default(), answer);
        assert_eq!(status(&ends), None, "{body}");
        assert_eq!(sent(&orders), 0, "{body}");
    }
    let silent = |_: &HeadRequest| HeadAnswer::Unreachable("no answer".to_owned());
    let (orders, ends) = pass(&service, &children, &ServiceMemory::default(), silent);
    assert_eq!(status(&ends), None);
    // The head does not serve, so its label is taken away.
    assert!(matches!(orders.as_slice(), [RayStep::Ask(_), RayStep::Patch { .. }, RayStep::Ask(_)]));
}

#[test]
fn heads_are_asked_at_services_of_the_namespace_only() {
    let service = ray_service("ray:1", &active("rs-a"));
    let children = cluster("rs-a", "ray:1");
    let (orders, _) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    let hosts = orders.iter().filter_map(|step| match step {
        RayStep::Ask(request) => Some(request.url.as_str()),
        _ => None,
    });
    for url in hosts {
        assert!(url.starts_with("http://rs-a-head-svc.ns.svc.cluster.local:"), "{url}");
    }
}

#[test]
fn a_head_is_asked_at_the_ports_of_its_service() {
    let mut service = ray_service("a", &active("rs-1"));
    let port = |name: &str, port: u16, target: u16| json!({"name": name, "port": port, "targetPort": target});
    let ports = json!([port("dashboard", 80, 8265), port("serve", 81, 8000)]);
    let asked_at = |service: &Value| -> Vec<String> {
        let children = cluster_of(service.clone(), "rs-1");
        let (orders, _) = pass(service, &children, &ServiceMemory::default(), head("RUNNING"));
        let hosts = orders.iter().filter_map(|step| match step {
            RayStep::Ask(request) => request.url.split('/').nth(2).map(str::to_owned),
            _ => None,
        });
        let hosts = hosts.filter_map(|host| host.split_once(':').map(|it| it.1.to_owned()));
        hosts.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    };
    let group = &mut service["spec"]["rayClusterConfig"]["headGroupSpec"];
    group["headService"] = json!({"spec": {"type": "ClusterIP", "ports": ports}});
    assert_eq!(asked_at(&service), ["80", "81"]);
    // A Service without an address leads to the pod itself.
    let group = &mut service["spec"]["rayClusterConfig"]["headGroupSpec"];
    group["headService"]["spec"]["clusterIP"] = json!("None");
    assert_eq!(asked_at(&service), ["8000", "8265"]);
}

#[test]
fn the_service_of_the_active_head_has_no_foreign_key_in_its_selector() {
    let mut service = ray_service("a", &active("rs-1"));
    let group = &mut service["spec"]["rayClusterConfig"]["headGroupSpec"];
    group["headService"] = json!({"spec": {"selector": {"app": "mine"}}});
    let children = cluster_of(service.clone(), "rs-1");
    let (orders, _) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    let made = orders.iter().find_map(|step| match step {
        RayStep::Create(object) if object["metadata"]["name"] == "rs-head-svc" => Some(object),
        _ => None,
    });
    let selector = &made.expect("the Service of the head")["spec"]["selector"];
    assert_eq!(selector["ray.io/cluster"], "rs-1");
    assert_eq!(selector["app"], Value::Null);
    // A Service of an earlier version has it.
    let mut former = made.cloned().expect("the Service of the head");
    former["spec"]["selector"]["app"] = json!("mine");
    let children: Vec<Value> = children.iter().cloned().chain([former]).collect();
    let (orders, _) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    let patch = orders.iter().find_map(|step| match step {
        RayStep::Patch { target, patch } if target.name == "rs-head-svc" => Some(patch),
        _ => None,
    });
    assert_eq!(patch.expect("a patch")["spec"]["selector"], json!({"app": null}));
}

/// A RayService in an incremental upgrade, and its objects. Its active cluster gives up capacity next.
fn upgrade() -> (Value, Vec<Value>) {
    let mut state = active("rs-a");
    let slot = |name: &str, capacity: i32| json!({"rayClusterName": name, "targetCapacity": capacity, "trafficRoutedPercent": 50});
    state["activeServiceStatus"] = slot("rs-a", 100);
    state["pendingServiceStatus"] = slot("rs-b", 50);
    state["conditions"][1]["status"] = json!("True");
    let mut service = ray_service("ray:2", &state);
    service["spec"]["upgradeStrategy"] = json!({
        "type": "NewClusterWithIncrementalUpgrade",
        "clusterUpgradeOptions": {
            "maxSurgePercent": 50, "stepSizePercent": 10, "intervalSeconds": 1,
            "gatewayClassName": "istio",
        },
    });
    service["spec"]["serveConfigV2"] = json!("applications:\n- name: one\n  import_path: new\n");
    service["spec"]["rayClusterConfig"]["enableInTreeAutoscaling"] = json!(true);
    let mut before = service.clone();
    before["spec"]["rayClusterConfig"]["headGroupSpec"] =
        cluster_spec("ray:1")["headGroupSpec"].clone();
    let mut children = cluster_of(before, "rs-a");
    children.extend(cluster_of(service.clone(), "rs-b"));
    let conditions = |kinds: [&str; 2]| kinds.map(|it| json!({"type": it, "status": "True"}));
    let owner = json!({"kind": "RayService", "uid": "u", "controller": true});
    let route = |kind: &str, name: &str, status: Value| {
        let metadata = json!({"name": name, "namespace": "ns", "ownerReferences": [owner]});
        let api = "gateway.networking.k8s.io/v1";
        json!({"apiVersion": api, "kind": kind, "metadata": metadata, "status": status})
    };
    let accepted = json!({"conditions": conditions(["Accepted", "Programmed"])});
    children.push(route("Gateway", "rs-gateway", accepted));
    let parent = json!({
        "parentRef": {"name": "rs-gateway"},
        "conditions": conditions(["Accepted", "ResolvedRefs"]),
    });
    children.push(route("HTTPRoute", "rs-httproute", json!({"parents": [parent]})));
    (service, children)
}

#[test]
fn an_operator_that_restarts_in_an_upgrade_keeps_the_configuration_of_the_old_cluster() {
    let (service, children) = upgrade();
    let old = json!({"name": "one", "import_path": "old"});
    let sent_to_old = |deployed: &Value| -> Option<Value> {
        let head = |request: &HeadRequest| {
            let one = json!({"status": "RUNNING", "deployed_app_config": deployed});
            let gone = json!({"status": "DELETING", "deployed_app_config": null});
            let body = json!({
                "proxy_location": "EveryNode", "grpc_options": null, "target_capacity": 100,
                "applications": {"one": one, "gone": gone},
            });
            let answers = request.method == HeadMethod::Get;
            HeadAnswer::Response {
                code: 200,
                body: if answers { body.to_string() } else { String::new() },
            }
        };
        let (orders, _) = pass(&service, &children, &ServiceMemory::default(), head);
        let mut puts = orders.into_iter().filter_map(|step| match step {
            RayStep::Ask(it) if it.method == HeadMethod::Put => Some(it),
            _ => None,
        });
        puts.find(|put| put.url.starts_with("http://rs-a-"))?.body
    };
    let expected = json!({
        "applications": [old], "proxy_location": "EveryNode", "target_capacity": 50,
    });
    assert_eq!(sent_to_old(&old), Some(expected));
    // A head that does not say what it serves gets the present configuration, as by the official operator.
    let new =
        json!({"applications": [{"name": "one", "import_path": "new"}], "target_capacity": 50});
    assert_eq!(sent_to_old(&Value::Null), Some(new));
}

#[test]
fn a_spec_that_goes_back_gives_up_the_new_cluster() {
    let mut state = active("rs-a");
    state["pendingServiceStatus"] = json!({"rayClusterName": "rs-b"});
    state["conditions"][1]["status"] = json!("True");
    let service = ray_service("ray:1", &state);
    let mut children = cluster("rs-a", "ray:1");
    children.extend(cluster("rs-b", "ray:2"));
    let (orders, ends) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    assert_eq!(new_clusters(&orders), 0);
    let status = status(&ends).expect("a status");
    assert_eq!(status["activeServiceStatus"]["rayClusterName"], "rs-a");
    assert_eq!(status["pendingServiceStatus"]["rayClusterName"], Value::Null);
    let kind = |kind: &str| {
        let conditions = status["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().find(|it| it["type"] == kind).cloned().unwrap_or_default()
    };
    assert_eq!(kind("UpgradeInProgress")["reason"], "NoPendingCluster");
}

#[test]
fn a_service_of_another_owner_is_left_alone() {
    let service = ray_service("ray:1", &active("rs-a"));
    let mut children = cluster("rs-a", "ray:1");
    children.push(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "rs-head-svc", "namespace": "ns", "uid": "other"},
        "spec": {"selector": {"app": "database"}},
    }));
    let (orders, ends) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    let touches = |step: &RayStep| match step {
        RayStep::Patch { target, .. } | RayStep::Delete(target) => target.kind == "Service",
        _ => false,
    };
    assert!(!orders.iter().any(touches), "{orders:?}");
    let explains = |step: &RayStep| matches!(step, RayStep::Event(event) if event.message.contains("another Service has this name"));
    assert!(ends.iter().any(explains), "{ends:?}");
}

#[test]
fn a_cluster_of_another_owner_is_neither_used_nor_removed() {
    let service = ray_service("ray:1", &active("rs-a"));
    let mut children = cluster("rs-a", "ray:1");
    let mut foreign = cluster("rs-z", "ray:1").remove(0);
    foreign["metadata"]["ownerReferences"] = json!([]);
    children.push(foreign);
    let settings = OperatorSettings::default();
    let later = PassInputs { now: "2027-01-01T00:00:00Z".parse().expect("a time"), seed: [1; 32] };
    let family: Vec<&Value> = children.iter().collect();
    let steps =
        service::decide(&service, &family, &ServiceMemory::default(), &[], &later, &settings);
    assert!(!steps.iter().any(|step| matches!(step, RayStep::Delete(_))), "{steps:?}");
    let mut deleted = service;
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let (orders, _) = pass(&deleted, &children, &ServiceMemory::default(), head("RUNNING"));
    let names = orders.iter().filter_map(|step| match step {
        RayStep::Delete(target) => Some(target.name.as_str()),
        _ => None,
    });
    assert_eq!(names.collect::<Vec<_>>(), ["rs-a"]);
}

#[test]
fn a_refused_cluster_is_explained_and_tried_again() {
    let pending = json!({"pendingServiceStatus": {"rayClusterName": "rs-a"}});
    let service = ray_service("ray:1", &pending);
    let refusal = RayRefusal { code: 403, message: "exceeded quota".to_owned() };
    let steps = decide(&service, &[], &ServiceMemory::default(), &[RayAnswer::Refused(refusal)]);
    let explains = |step: &RayStep| matches!(step, RayStep::Event(event) if event.reason == "FailedToCreateRayCluster" && event.message.ends_with("exceeded quota"));
    assert!(steps.iter().any(explains), "{steps:?}");
    assert!(steps.iter().any(|step| matches!(step, RayStep::RequeueAfter(_))), "{steps:?}");
}

#[test]
fn a_replaced_cluster_is_removed_after_its_delay() {
    let mut service = ray_service("ray:1", &active("rs-a"));
    service["spec"]["rayClusterDeletionDelaySeconds"] = json!(30);
    let mut children = cluster("rs-a", "ray:1");
    children.extend(cluster("rs-old", "ray:0"));
    let (orders, ends) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    assert!(!orders.iter().any(|step| matches!(step, RayStep::Delete(_))));
    let memory = remembered(&ends).expect("a memory").clone();
    let settings = OperatorSettings::default();
    let family: Vec<&Value> = children.iter().collect();
    for (time, is_removed) in [("2026-01-02T00:00:29Z", false), ("2026-01-02T00:00:30Z", true)] {
        let later = PassInputs { now: time.parse().expect("a time"), seed: [1; 32] };
        let steps = service::decide(&service, &family, &memory, &[], &later, &settings);
        assert_eq!(matches!(steps.as_slice(), [RayStep::Delete(_)]), is_removed, "{time}");
    }
}

#[test]
fn a_cluster_that_kueue_suspended_runs_again_when_its_service_is_admitted() {
    let mut service = ray_service("ray:1", &active("rs-a"));
    service["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": "q"});
    let mut suspended = cluster("rs-a", "ray:1").remove(0);
    suspended["spec"]["suspend"] = json!(true);
    // Admitted to other nodes than before.
    let pod = "/spec/rayClusterConfig/headGroupSpec/template/spec";
    service.pointer_mut(pod).expect("a pod")["nodeSelector"] = json!({"pool": "b"});
    let run = |service: &Value| {
        let (orders, _) =
            pass(service, &[suspended.clone()], &ServiceMemory::default(), head("RUNNING"));
        orders
    };
    service["spec"]["rayClusterConfig"]["suspend"] = json!(true);
    assert_eq!(run(&service), [], "it waits for Kueue");
    service["spec"]["rayClusterConfig"]["suspend"] = json!(false);
    let orders = run(&service);
    let [RayStep::Patch { target, patch }] = orders.as_slice() else { unreachable!("{orders:?}") };
    assert_eq!((target.kind.as_str(), target.name.as_str()), ("RayCluster", "rs-a"));
    assert_eq!(patch["spec"]["suspend"], false);
    let selector = patch.pointer("/spec/headGroupSpec/template/spec/nodeSelector/pool");
    assert_eq!(selector, Some(&json!("b")));
    // Without Kueue the user suspends the cluster itself.
    service["metadata"]["labels"] = json!({});
    let touches = |step: &RayStep| matches!(step, RayStep::Patch { .. });
    assert!(!run(&service).iter().any(touches));
}

#[test]
fn a_service_whose_pods_are_gone_is_not_ready() {
    let service = ray_service("ray:1", &active("rs-a"));
    let children = [cluster("rs-a", "ray:1").remove(0)];
    let (_, ends) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    let status = status(&ends).expect("a status");
    assert_eq!(status["conditions"][0]["reason"], "ZeroServeEndpoints");
}

/// The clusters that a pass makes.
fn new_clusters(orders: &[RayStep]) -> usize {
    let is_new =
        |step: &&RayStep| matches!(step, RayStep::Create(it) if it["kind"] == "RayCluster");
    orders.iter().filter(is_new).count()
}

#[test]
fn all_ports_of_the_head_for_serve_are_in_its_service() {
    let ports = |ports: Value, given: Value| {
        let mut service = ray_service("ray:1", &active("rs-a"));
        service["spec"]["serveService"] = given;
        let container = "/spec/rayClusterConfig/headGroupSpec/template/spec/containers/0";
        service.pointer_mut(container).expect("a container")["ports"] = ports;
        let children = cluster_of(service.clone(), "rs-a");
        let (orders, _) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
        orders.into_iter().find_map(|step| match step {
            RayStep::Create(it) if it["metadata"]["name"] == "rs-serve-svc" => {
                let ports = it["spec"]["ports"].as_array().cloned().unwrap_or_default();
                Some(ports.iter().map(|port| port["port"].clone()).collect::<Vec<_>>())
            }
            _ => None,
        })
    };
    let named = |name: &str, number: u16| json!({"name": name, "containerPort": number});
    let two = json!([named("serve", 8000), named("serve-grpc", 9000), named("dashboard", 8265)]);
    assert_eq!(ports(two, Value::Null), Some(vec![json!(8000), json!(9000)]));
    // A port of the given Service counts only if the head has none.
    let given = json!({"spec": {"ports": [{"name": "serve", "port": 80}]}});
    assert_eq!(ports(Value::Null, given.clone()), Some(vec![json!(8000)]));
    assert_eq!(ports(json!([named("dashboard", 8265)]), given), Some(vec![json!(80)]));
}

#[test]
fn an_unknown_type_of_upgrade_and_a_token_of_kubernetes_are_refused() {
    let refused = |part: Value| {
        let mut service = ray_service("ray:1", &Value::Null);
        json_patch::merge(&mut service["spec"], &part);
        let spec = serde_json::from_value(service["spec"].clone()).expect("a spec decodes");
        service::check_service(&service, &spec, &OperatorSettings::default()).is_err()
    };
    assert!(refused(json!({"upgradeStrategy": {"type": ""}})));
    assert!(!refused(json!({"upgradeStrategy": {}})));
    let options = json!({"mode": "token", "enableK8sTokenAuth": true});
    let config = json!({"rayVersion": "2.55.0", "authOptions": options});
    assert!(refused(json!({"rayClusterConfig": config})));
}
