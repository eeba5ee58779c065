//! The Service of the present head.

use super::*;

/// The next attempt may have another spec than the one before.
#[test]
fn a_service_that_switches_gets_the_whole_spec() {
    let job = ray_job(&json!({}), &running());
    let mut former = owned("Service", "rj-head-svc", "u");
    former["spec"] = json!({
        "type": "LoadBalancer",
        "clusterIP": "10.0.0.1",
        "loadBalancerSourceRanges": ["10.0.0.0/8"],
        "ports": [{"name": "dashboard", "port": 80}],
        "selector": {"ray.io/cluster": "rj-former", "app": "mine"},
    });
    let answer = |_: &HeadRequest| HeadAnswer::Unreachable("no answer".to_owned());
    let done = pass(&job, &[cluster(), former.clone()], answer);
    let patch = done.orders.iter().find_map(|step| match step {
        RayStep::Patch { target, patch } if target.kind == "Service" => Some(patch),
        _ => None,
    });
    let mut after = former;
    json_patch::merge(&mut after, patch.expect("a patch"));
    let spec = &after["spec"];
    assert_eq!(spec["type"], "ClusterIP");
    assert_eq!(spec["clusterIP"], "10.0.0.1");
    assert_eq!(spec.get("loadBalancerSourceRanges"), None);
    assert_eq!(spec["ports"].as_array().map(Vec::len), Some(5));
    assert_eq!(spec["selector"]["ray.io/cluster"], "rj-a");
    assert_eq!(spec["selector"].get("app"), None);
}

/// As upstream: the port of the pod is no port of the Service.
#[test]
fn a_dashboard_is_not_reached_by_an_address_without_its_port() {
    let phase = |service: Value, container_port: Value| {
        let mut starting = running();
        starting["jobDeploymentStatus"] = json!("Initializing");
        starting["dashboardURL"] = json!("");
        let head = json!({"headGroupSpec": {"headService": service}});
        let mut job = ray_job(&json!({"rayClusterSpec": head}), &starting);
        let container = "/spec/rayClusterSpec/headGroupSpec/template/spec/containers/0";
        job.pointer_mut(container).expect("a container")["ports"] =
            json!([container_port, {"name": "gcs-server", "containerPort": 6379}]);
        let mut cluster = cluster();
        cluster["spec"] = job["spec"]["rayClusterSpec"].clone();
        let done = pass(&job, &[cluster], unreachable);
        let status = done.status().cloned().unwrap_or_default();
        let is_event = |step: &RayStep| matches!(step, RayStep::Event(it) if it.warning && it.message == NO_PORT);
        assert_eq!(done.reasons().len(), usize::from(status.is_null()));
        assert_eq!(done.end.iter().any(is_event), status.is_null(), "{:?}", done.end);
        (status["jobDeploymentStatus"].clone(), status["dashboardURL"].clone())
    };
    let phase_with = |ports: Value| phase(json!({"spec": {"ports": ports}}), other());
    let (none, runs) = ((Value::Null, Value::Null), json!("Running"));
    let at =
        |port: u16| (runs.clone(), json!(format!("rj-a-head-svc.ns.svc.cluster.local:{port}")));
    let address = || json!({"spec": {"type": "ClusterIP"}});
    assert_eq!(phase(address(), other()), none);
    assert_eq!(phase_with(json!([{"name": "dashboard", "port": 80}])), at(80));
    // A Service without an address leads to the pod, and Ray listens there.
    assert_eq!(phase(json!({"spec": {"clusterIP": "None"}}), other()), at(8265));
    // Ports with other names, of the head and of the Service.
    assert_eq!(phase(address(), json!({"containerPort": 8265})), at(8265));
    assert_eq!(phase(address(), json!({"name": "http", "containerPort": 8265})), at(8265));
    let port = |target: Value| json!([{"name": "web", "port": 80, "targetPort": target}]);
    assert_eq!(phase_with(port(json!(8265))), at(80));
    assert_eq!(phase_with(json!([{"name": "web", "port": 8265}])), at(8265));
    assert_eq!(phase_with(json!([{"name": "web", "port": 8265, "targetPort": 81}])), none);
    let udp = json!([{"name": "web", "port": 8265, "protocol": "UDP"}]);
    assert_eq!(phase_with(udp), none);
    let given = json!({"spec": {"ports": port(json!("http"))}});
    assert_eq!(phase(given, json!({"name": "http", "containerPort": 8265})), at(80));
    // A port of the pod without a name has none, whatever it is called in the Service.
    let given = json!({"spec": {"ports": port(json!("8265-port"))}});
    assert_eq!(phase(given, json!({"containerPort": 8265})), at(8265));
}

const NO_PORT: &str = "RayCluster ns/rj-a: dashboard port is not found";

fn other() -> Value {
    json!({"name": "other", "containerPort": 9000})
}
