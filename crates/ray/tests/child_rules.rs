//! Rules for the Services, the policies and the metadata of pods of a RayCluster that no recording shows.

use jiff::Timestamp;
use ray::{
    PassInputs, cluster,
    settings::OperatorSettings,
    step::{RayAnswer, RayRefusal, RayStep},
};
use serde_json::{Value, json};

fn cluster_named(name: &str, part: &Value) -> Value {
    let template = json!({"spec": {"containers": [{"name": "ray", "image": "ray:1"}]}});
    let group = json!({
        "groupName": "w", "replicas": 1, "minReplicas": 0, "maxReplicas": 1, "numOfHosts": 1,
        "template": template,
    });
    let mut cluster = json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name, "namespace": "ns", "uid": "u", "generation": 1},
        "spec": {"headGroupSpec": {"template": template}, "workerGroupSpecs": [group]},
    });
    json_patch::merge(&mut cluster, part);
    cluster
}

/// What a pass did: its orders, and the steps at its end.
fn pass(
    cluster: &Value,
    children: &[Value],
    settings: &OperatorSettings,
    answer: impl Fn(&RayStep) -> RayAnswer,
) -> (Vec<RayStep>, Vec<RayStep>) {
    let inputs = PassInputs { now: Timestamp::UNIX_EPOCH, seed: [1; 32] };
    let children: Vec<&Value> = children.iter().collect();
    let (mut orders, mut answers) = (Vec::new(), Vec::new());
    loop {
        let steps = cluster::decide(cluster, &children, &answers, &inputs, settings);
        if !steps.iter().any(RayStep::is_order) {
            return (orders, steps);
        }
        for step in steps {
            let answer = answer(&step);
            let is_refused = matches!(answer, RayAnswer::Refused(_));
            answers.push(answer);
            orders.push(step);
            if is_refused {
                break;
            }
        }
    }
}

fn done(step: &RayStep) -> RayAnswer {
    match step {
        RayStep::Create(object) => RayAnswer::Done(object.clone().into()),
        _ => RayAnswer::Done(Value::Null.into()),
    }
}

fn created(orders: &[RayStep], kind: &str) -> Vec<Value> {
    let created = orders.iter().filter_map(|step| match step {
        RayStep::Create(object) if object["kind"] == kind => Some(object.clone()),
        _ => None,
    });
    created.collect()
}

fn warnings(steps: &[RayStep]) -> Vec<(&str, &str)> {
    let warnings = steps.iter().filter_map(|step| match step {
        RayStep::Event(event) if event.warning => Some((event.reason, event.message.as_str())),
        _ => None,
    });
    warnings.collect()
}

fn services(name: &str, part: &Value) -> Vec<Value> {
    let cluster = cluster_named(name, part);
    created(&pass(&cluster, &[], &OperatorSettings::default(), done).0, "Service")
}

#[test]
fn a_given_service_without_a_type_has_that_of_the_head() {
    for (given, wanted, expected) in [
        (Value::Null, "NodePort", json!("NodePort")),
        (json!("LoadBalancer"), "NodePort", json!("LoadBalancer")),
        (Value::Null, "", Value::Null),
    ] {
        let service = json!({"metadata": {"name": "mine"}, "spec": {"type": given}});
        let head = json!({"headService": service, "serviceType": wanted});
        let made = services("c1", &json!({"spec": {"headGroupSpec": head}}));
        assert_eq!(made[0]["spec"]["type"], expected);
    }
}

#[test]
fn the_selector_of_a_given_service_is_replaced_by_the_labels_of_the_head() {
    let given = json!({
        "metadata": {"labels": {"x": "y"}},
        "spec": {"selector": {"app": "mine", "ray.io/cluster": "c2"}},
    });
    let labels = json!({"app.kubernetes.io/name": "mine", "ray.io/identifier": "h", "z": "z"});
    let head = json!({
        "headService": given,
        "template": {"metadata": {"labels": labels}},
        "labels": {"app.kubernetes.io/created-by": "me"},
    });
    let part = json!({"spec": {"headGroupSpec": head}});
    let (orders, _) = pass(&cluster_named("c1", &part), &[], &OperatorSettings::default(), done);
    let service = created(&orders, "Service").remove(0);
    let selector = service["spec"]["selector"].as_object().expect("a selector");
    let keys: Vec<&str> = selector.keys().map(String::as_str).collect();
    let default_keys = [
        "app.kubernetes.io/created-by",
        "app.kubernetes.io/name",
        "ray.io/cluster",
        "ray.io/identifier",
        "ray.io/node-type",
    ];
    assert_eq!(keys, default_keys);
    let pod = &created(&orders, "Pod")[0];
    for (key, value) in selector {
        assert_eq!(pod["metadata"]["labels"][key], *value, "{key}");
    }
    assert_eq!(service["metadata"]["labels"]["x"], "y");
}

#[test]
fn the_service_of_a_head_selects_the_head_that_runs() {
    let cluster = cluster_named("c1", &json!({}));
    let (orders, _) = pass(&cluster, &[], &OperatorSettings::default(), done);
    let (service, pod) = (created(&orders, "Service").remove(0), created(&orders, "Pod").remove(0));
    let patched = |service: &Value, pod: &Value| {
        let children = [service.clone(), pod.clone()];
        let (orders, _) = pass(&cluster, &children, &OperatorSettings::default(), done);
        let patch = orders.into_iter().find_map(|step| match step {
            RayStep::Patch { target, patch } if target.kind == "Service" => Some(patch),
            _ => None,
        });
        patch.unwrap_or_default()
    };
    assert_eq!(patched(&service, &pod), Value::Null);
    let mut former = service.clone();
    former["spec"]["selector"]["app"] = json!("mine");
    assert_eq!(patched(&former, &pod), json!({"spec": {"selector": {"app": null}}}));
    let mut older = pod.clone();
    older["metadata"]["labels"]["ray.io/identifier"] = json!("h");
    let follows = json!({"spec": {"selector": {"ray.io/identifier": "h"}}});
    assert_eq!(patched(&service, &older), follows, "it keeps the head");
    former["metadata"]["ownerReferences"][0]["uid"] = json!("other");
    assert_eq!(patched(&former, &pod), Value::Null, "not its Service");
}

#[test]
fn the_serve_service_of_a_cluster_has_its_type_and_its_whole_name() {
    let annotations = json!({"ray.io/enable-serve-service": "true"});
    let name = "c".repeat(53);
    for (wanted, expected) in [("NodePort", json!("NodePort")), ("", Value::Null)] {
        let part = json!({
            "metadata": {"annotations": annotations},
            "spec": {"headGroupSpec": {"serviceType": wanted}},
        });
        let made = services(&name, &part);
        assert_eq!(made[1]["metadata"]["name"], format!("{name}-serve-svc"));
        assert_eq!(made[1]["spec"]["type"], expected);
    }
}

#[test]
fn a_serve_service_is_made_without_an_event() {
    let part = json!({"metadata": {"annotations": {"ray.io/enable-serve-service": "true"}}});
    let (orders, steps) = pass(&cluster_named("c", &part), &[], &OperatorSettings::default(), done);
    assert_eq!(created(&orders, "Service").len(), 2);
    let events = steps.iter().filter_map(|step| match step {
        RayStep::Event(event) if event.reason == "CreatedService" => Some(event.message.as_str()),
        _ => None,
    });
    assert_eq!(events.collect::<Vec<_>>(), ["Created service ns/c-head-svc"]);
}

fn with_policies() -> OperatorSettings {
    let mut settings = OperatorSettings::default();
    settings.gates.network_policy = true;
    settings
}

#[test]
fn pods_do_not_wait_for_a_policy_whose_name_is_taken() {
    let cluster = cluster_named("c1", &json!({"spec": {"networkPolicy": {}}}));
    let owner = json!({"kind": "RayCluster", "uid": "other", "controller": true});
    let metadata = json!({"name": "c1-head", "namespace": "ns", "ownerReferences": [owner]});
    let foreign = json!({"kind": "NetworkPolicy", "metadata": metadata});
    let (orders, end) = pass(&cluster, &[foreign], &with_policies(), done);
    assert_eq!(created(&orders, "Service").len(), 1);
    assert_eq!(created(&orders, "Pod").len(), 2);
    let message = "NetworkPolicy ns/c1-head already exists and is not owned by this RayCluster, network isolation will not be applied. Rename the existing NetworkPolicy or use a different RayCluster name to avoid the collision";
    assert_eq!(warnings(&end), [("NetworkPolicyNameCollision", message)]);
    assert!(end.iter().any(|step| matches!(step, RayStep::ReplaceStatus(_))));
    assert!(end.iter().any(|step| matches!(step, RayStep::RequeueAfter(it) if it.as_secs() == 2)));
}

#[test]
fn a_policy_that_cannot_be_written_holds_up_no_other() {
    let cluster = cluster_named("c1", &json!({"spec": {"networkPolicy": {}}}));
    let policy = |name: &str, owner: &str| {
        let owner = json!({"kind": "RayCluster", "uid": owner, "controller": true});
        let metadata = json!({"name": name, "namespace": "ns", "ownerReferences": [owner]});
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata})
    };
    let uid = cluster["metadata"]["uid"].as_str().expect("a uid");
    let children = [policy("c1-head", "other"), policy("c1-workers-former", uid)];
    let (orders, end) = pass(&cluster, &children, &with_policies(), done);
    let made = created(&orders, "NetworkPolicy");
    let names: Vec<&Value> = made.iter().map(|it| &it["metadata"]["name"]).collect();
    assert_eq!(names, ["c1-workers-w"]);
    let is_deletion =
        |step: &RayStep| matches!(step, RayStep::Delete(it) if it.name == "c1-workers-former");
    assert!(orders.iter().any(is_deletion), "{orders:?}");
    assert_eq!(warnings(&end).len(), 1);
    assert!(end.iter().any(|step| matches!(step, RayStep::RequeueAfter(it) if it.as_secs() == 2)));
    let (orders, end) = pass(&cluster, &[], &with_policies(), |step| match step {
        RayStep::Create(object) if object["metadata"]["name"] == "c1-head" => {
            RayAnswer::Refused(RayRefusal { code: 403, message: "no".to_owned() })
        }
        step => done(step),
    });
    assert!(created(&orders, "NetworkPolicy").len() >= 2);
    assert_eq!(warnings(&end).len(), 1);
}

#[test]
fn a_refused_policy_is_an_event_and_a_new_attempt() {
    let cluster = cluster_named("c1", &json!({"spec": {"networkPolicy": {}}}));
    let (orders, end) = pass(&cluster, &[], &with_policies(), |step| match step {
        RayStep::Create(object) if object["kind"] == "NetworkPolicy" => {
            RayAnswer::Refused(RayRefusal { code: 403, message: "no".to_owned() })
        }
        step => done(step),
    });
    assert_eq!(created(&orders, "Pod").len(), 2);
    let messages = ["c1-head", "c1-workers-w"]
        .map(|name| format!("Failed to create NetworkPolicy ns/{name}: no"));
    let reason = "FailedToCreateNetworkPolicy";
    assert_eq!(warnings(&end), messages.each_ref().map(|message| (reason, &**message)));
}

/// Each refusal costs a decision, and what refuses so many hardly admits the next one.
#[test]
fn after_several_refused_policies_a_pass_writes_no_more_of_them() {
    let mut cluster = cluster_named("c1", &json!({"spec": {"networkPolicy": {}}}));
    let group = cluster["spec"]["workerGroupSpecs"][0].clone();
    let groups = (0..20).map(|index| {
        let mut group = group.clone();
        group["groupName"] = json!(format!("w{index}"));
        group
    });
    cluster["spec"]["workerGroupSpecs"] = groups.collect();
    let owner = json!({"kind": "RayCluster", "uid": "u", "controller": true});
    let former = |index: usize| {
        let name = format!("c1-workers-former{index}");
        let metadata = json!({"name": name, "namespace": "ns", "ownerReferences": [owner]});
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata})
    };
    let children: Vec<Value> = (0..20).map(former).collect();
    let (orders, end) = pass(&cluster, &children, &with_policies(), |step| match step {
        RayStep::Create(object) if object["kind"] != "NetworkPolicy" => done(step),
        RayStep::Create(_) | RayStep::Delete(_) => {
            RayAnswer::Refused(RayRefusal { code: 403, message: "no".to_owned() })
        }
        step => done(step),
    });
    assert_eq!(created(&orders, "NetworkPolicy").len(), 16);
    let is_deletion = |step: &&RayStep| matches!(step, RayStep::Delete(_));
    assert_eq!(orders.iter().filter(is_deletion).count(), 16);
    assert_eq!(created(&orders, "Pod").len(), 21);
    assert!(end.iter().any(|step| matches!(step, RayStep::RequeueAfter(it) if it.as_secs() == 2)));
}

#[test]
fn labels_of_a_policy_are_put_back() {
    let cluster = cluster_named("c1", &json!({"spec": {"networkPolicy": {}}}));
    let (orders, _) = pass(&cluster, &[], &with_policies(), done);
    let mut own = created(&orders, "NetworkPolicy").remove(0);
    own["metadata"]["uid"] = json!("p");
    let patches = |own: &Value| {
        let (orders, _) = pass(&cluster, std::slice::from_ref(own), &with_policies(), done);
        let patches = orders.into_iter().filter_map(|step| match step {
            RayStep::Patch { target, patch } if target.kind == "NetworkPolicy" => Some(patch),
            _ => None,
        });
        patches.collect::<Vec<Value>>()
    };
    assert_eq!(patches(&own), [Value::Null; 0]);
    own["metadata"]["labels"]["ray.io/cluster"] = json!("x");
    own["metadata"]["labels"]["more"] = json!("y");
    let labels = json!({"ray.io/cluster": "c1", "more": null});
    assert_eq!(patches(&own)[0]["metadata"]["labels"], labels);
    assert_eq!(patches(&own)[0]["spec"], own["spec"]);
}

/// As the API server stores a policy, it is not written again.
#[test]
fn a_rule_without_protocol_or_with_empty_lists_is_written_once() {
    let peer = json!({"podSelector": {"matchLabels": {}}, "namespaceSelector": {}});
    let rule = json!({"ports": [{"port": 8265}], "from": [peer]});
    let policy = json!({"head": {"ingressRules": [rule, {"from": [], "ports": []}]}});
    let cluster = cluster_named("c1", &json!({"spec": {"networkPolicy": policy}}));
    let (orders, _) = pass(&cluster, &[], &with_policies(), done);
    let made = created(&orders, "NetworkPolicy").remove(0);
    let peer = json!({"podSelector": {}, "namespaceSelector": {}});
    let stored = json!({"ports": [{"port": 8265, "protocol": "TCP"}], "from": [peer]});
    assert_eq!(made["spec"]["ingress"].as_array().expect("rules")[1..], [stored, json!({})]);
}

/// A label that any cluster may have opens nothing.
#[test]
fn a_policy_admits_the_submitter_of_the_owner() {
    let owner = |group: &str| {
        let api = format!("{group}/v1");
        json!([{"apiVersion": api, "kind": "RayJob", "name": "rj", "uid": "j", "controller": true}])
    };
    let labels = json!({
        "ray.io/job-submission-mode": "K8sJobMode",
        "ray.io/originated-from-crd": "RayJob",
        "ray.io/originated-from-cr-name": "other",
    });
    let admitted = |owners: &Value| {
        let metadata = json!({"labels": labels, "ownerReferences": owners});
        let part = json!({"metadata": metadata, "spec": {"networkPolicy": {}}});
        let (orders, _) = pass(&cluster_named("c1", &part), &[], &with_policies(), done);
        let rules = created(&orders, "NetworkPolicy").remove(0)["spec"]["ingress"].clone();
        rules[1]["from"][0]["podSelector"]["matchLabels"].clone()
    };
    let submitter =
        json!({"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "rj"});
    assert_eq!(admitted(&owner("ray.io")), submitter);
    assert_eq!(admitted(&owner("example.com")), Value::Null, "a RayJob of another API");
    assert_eq!(admitted(&json!([])), Value::Null);
}

#[test]
fn a_template_gives_its_head_a_name_and_all_pods_their_finalizers() {
    let metadata = json!({"name": "mine", "finalizers": ["a/b"]});
    let mut cluster = cluster_named("c1", &json!({}));
    cluster["spec"]["headGroupSpec"]["template"]["metadata"] = metadata.clone();
    cluster["spec"]["workerGroupSpecs"][0]["template"]["metadata"] = metadata;
    let pods = |settings: &OperatorSettings| {
        let pods = created(&pass(&cluster, &[], settings, done).0, "Pod");
        pods.into_iter().map(|pod| pod["metadata"].clone()).collect::<Vec<Value>>()
    };
    let mut settings = OperatorSettings::default();
    let [head, worker] = &pods(&settings)[..] else { unreachable!("two pods") };
    assert_eq!(head["name"], "mine");
    assert_eq!(head["generateName"], "c1-head-");
    assert_eq!(head["finalizers"], json!(["a/b"]));
    assert!(worker["name"].as_str().is_some_and(|name| name.starts_with("c1-w-worker-")));
    assert_eq!(worker["finalizers"], json!(["a/b"]));
    settings.deterministic_head_name = true;
    assert_eq!(pods(&settings)[0]["name"], "c1-head");
}

#[test]
fn a_pod_that_its_finalizer_holds_is_neither_replaced_nor_deleted_twice() {
    let mut cluster = cluster_named("c1", &json!({"spec": {"suspend": true}}));
    let settings = OperatorSettings::default();
    let running = cluster_named("c1", &json!({}));
    let mut pods = created(&pass(&running, &[], &settings, done).0, "Pod");
    for pod in &mut pods {
        pod["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
        pod["metadata"]["finalizers"] = json!(["a/b"]);
        pod["status"] = json!({"phase": "Running"});
    }
    let (orders, _) = pass(&running, &pods, &settings, done);
    assert_eq!(created(&orders, "Pod"), [Value::Null; 0], "their places are taken");
    let suspending = json!([{"type": "RayClusterSuspending", "status": "True"}]);
    cluster["status"] = json!({"conditions": suspending});
    let (orders, end) = pass(&cluster, &pods, &settings, done);
    assert!(!orders.iter().any(|step| matches!(step, RayStep::Delete(_))), "{orders:?}");
    let suspended = end.iter().any(|step| match step {
        RayStep::ReplaceStatus(status) => status["state"] == "suspended",
        _ => false,
    });
    assert!(!suspended, "its pods use quota until they are gone");
}

/// The backend of an Ingress is a port of the Service, which need not have the number of the container's port.
#[test]
fn an_ingress_leads_to_the_port_of_the_head_service() {
    let port_of = |service: Value| {
        let head = json!({"enableIngress": true, "headService": service});
        let cluster = cluster_named("c", &json!({"spec": {"headGroupSpec": head}}));
        let (orders, _) = pass(&cluster, &[], &OperatorSettings::default(), done);
        let ingress = orders.iter().find_map(|step| match step {
            RayStep::Create(object) if object["kind"] == "Ingress" => Some(object),
            _ => None,
        });
        let port = "/spec/rules/0/http/paths/0/backend/service/port/number";
        ingress.expect("an Ingress").pointer(port).cloned()
    };
    let with = |ports: Value| json!({"spec": {"ports": ports}});
    assert_eq!(port_of(Value::Null), Some(json!(8265)));
    assert_eq!(port_of(with(json!([{"name": "dashboard", "port": 80}]))), Some(json!(80)));
    let other = json!([{"name": "web", "port": 80, "targetPort": 8265}]);
    assert_eq!(port_of(with(other)), Some(json!(8265)), "beside the default port of the head");
    // The backend is named by the port of a Service without an address as well.
    let mut headless = with(json!([{"name": "dashboard", "port": 80, "targetPort": 8265}]));
    headless["spec"]["clusterIP"] = json!("None");
    assert_eq!(port_of(headless), Some(json!(80)));
}
