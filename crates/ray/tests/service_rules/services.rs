//! The Services of a RayService when its clusters change.

use super::*;

/// The patches of the Services with these names, in a pass in which `former` are the stored specs.
fn patch_of(service: &Value, name: &str, former: &Value) -> Value {
    let mut children = cluster_of(service.clone(), "rs-a");
    let owner = json!({"kind": "RayService", "uid": "u", "controller": true});
    children.push(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "ns", "uid": "s", "ownerReferences": [owner]},
        "spec": former,
    }));
    let (orders, _) = pass(service, &children, &ServiceMemory::default(), head("RUNNING"));
    let patch = orders.into_iter().find_map(|step| match step {
        RayStep::Patch { target, patch } if target.name == name => Some(patch),
        _ => None,
    });
    patch.expect("a patch")
}

/// As the API server stores it.
fn stored() -> Value {
    json!({
        "type": "LoadBalancer",
        "selector": {"ray.io/cluster": "rs-old", "ray.io/serve": "true"},
        "ports": [{"name": "serve", "port": 8000, "protocol": "TCP", "targetPort": 8000, "nodePort": 30000}],
        "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
        "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
        "sessionAffinity": "ClientIP",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10}},
        "externalTrafficPolicy": "Local", "healthCheckNodePort": 31000,
        "loadBalancerSourceRanges": ["10.0.0.0/8"],
        "publishNotReadyAddresses": true,
    })
}

#[test]
fn a_service_that_switches_loses_what_its_spec_does_not_name_any_more() {
    let mut service = ray_service("ray:1", &active("rs-a"));
    service["spec"]["serveService"] = json!({"spec": {"externalIPs": ["192.0.2.1"]}});
    for name in ["rs-serve-svc", "rs-head-svc"] {
        let mut after = stored();
        json_patch::merge(&mut after, &patch_of(&service, name, &stored())["spec"]);
        let fields = after.as_object().expect("an object");
        for gone in [
            "sessionAffinity",
            "sessionAffinityConfig",
            "externalTrafficPolicy",
            "loadBalancerSourceRanges",
        ] {
            assert!(!fields.contains_key(gone), "{name}: {gone}");
        }
        // The API server gave these, and may refuse to take them back.
        for kept in
            ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"]
        {
            assert_eq!(after[kept], stored()[kept], "{name}: {kept}");
        }
        assert_eq!(after["selector"]["ray.io/cluster"], "rs-a");
    }
    let mut after = stored();
    json_patch::merge(&mut after, &patch_of(&service, "rs-serve-svc", &stored())["spec"]);
    assert_eq!(after["externalIPs"], json!(["192.0.2.1"]));
    assert_eq!(after["type"], "ClusterIP");
    assert_eq!(after.get("publishNotReadyAddresses"), None);
}

/// The API server refuses another class, and none, while the type stays.
#[test]
fn a_load_balancer_keeps_its_class_and_the_service_its_addresses() {
    let spec_after = |given: Value, former: &Value| {
        let mut service = ray_service("ray:1", &active("rs-a"));
        service["spec"]["serveService"] = json!({"spec": given});
        let mut after = former.clone();
        json_patch::merge(&mut after, &patch_of(&service, "rs-serve-svc", former)["spec"]);
        after
    };
    let load_balancer = json!({"type": "LoadBalancer", "loadBalancerClass": "example.com/b"});
    let mut former = stored();
    former["loadBalancerClass"] = json!("example.com/a");
    for given in [json!({"type": "LoadBalancer"}), load_balancer.clone()] {
        assert_eq!(spec_after(given, &former)["loadBalancerClass"], "example.com/a");
    }
    let classless = spec_after(load_balancer.clone(), &stored());
    assert_eq!(classless.get("loadBalancerClass"), None);
    let mut node_ports = stored();
    node_ports["type"] = json!("NodePort");
    assert_eq!(spec_after(load_balancer, &node_ports)["loadBalancerClass"], "example.com/b");
    let headless = json!({"clusterIP": "None", "clusterIPs": ["None"]});
    assert_eq!(spec_after(headless, &stored())["clusterIPs"], json!(["10.0.0.1"]));
}

/// As upstream: the port of the pod is no port of the Service.
#[test]
fn a_dashboard_is_not_asked_at_an_address_without_its_port() {
    let asked = |given: Value| {
        let mut service = ray_service("ray:1", &active("rs-a"));
        let group = &mut service["spec"]["rayClusterConfig"]["headGroupSpec"];
        group["headService"] = json!({"spec": given});
        let container = "/spec/rayClusterConfig/headGroupSpec/template/spec/containers/0";
        service.pointer_mut(container).expect("a container")["ports"] =
            json!([{"name": "serve", "containerPort": 8000}]);
        let children = cluster_of(service.clone(), "rs-a");
        let (orders, ends) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
        let is_asked =
            |step: &RayStep| matches!(step, RayStep::Ask(it) if it.url.contains("/api/serve/"));
        let is_status = |step: &RayStep| matches!(step, RayStep::ReplaceStatus(_));
        let message = "Failed to update serve applications to the RayCluster ns/rs-a: dashboard port is not found";
        let is_event = |step: &RayStep| matches!(step, RayStep::Event(it) if it.warning && it.message == message);
        [orders.iter().any(is_asked), ends.iter().any(is_status), ends.iter().any(is_event)]
    };
    assert_eq!(asked(json!({"type": "ClusterIP"})), [false, false, true]);
    assert_eq!(asked(json!({"clusterIP": "None"})), [true, true, false]);
    let port = json!({"name": "dashboard", "port": 80});
    assert_eq!(asked(json!({"ports": [port]})), [true, true, false]);
    let port = json!({"name": "web", "port": 80, "targetPort": 8265});
    assert_eq!(asked(json!({"ports": [port]})), [true, true, false]);
}

#[test]
fn a_selector_that_was_changed_by_hand_is_put_back() {
    let service = ray_service("ray:1", &active("rs-a"));
    let mut former = stored();
    former["selector"] = json!({"ray.io/cluster": "rs-a", "ray.io/serve": "false", "app": "mine"});
    let patch = patch_of(&service, "rs-serve-svc", &former);
    assert_eq!(patch["spec"]["selector"], json!({"ray.io/serve": "true", "app": null}));
}
