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
    let phase = |service: Value| {
        let mut starting = running();
        starting["jobDeploymentStatus"] = json!("Initializing");
        starting["dashboardURL"] = json!("");
        let head = json!({"headGroupSpec": {"headService": service}});
        let mut job = ray_job(&json!({"rayClusterSpec": head}), &starting);
        let container = "/spec/rayClusterSpec/headGroupSpec/template/spec/containers/0";
        job.pointer_mut(container).expect("a container")["ports"] =
            json!([{"name": "gcs-server", "containerPort": 6379}]);
        let mut cluster = cluster();
        cluster["spec"] = job["spec"]["rayClusterSpec"].clone();
        let done = pass(&job, &[cluster], unreachable);
        let status = done.status().cloned().unwrap_or_default();
        assert_eq!(done.reasons(), [""; 0]);
        (status["jobDeploymentStatus"].clone(), status["dashboardURL"].clone())
    };
    let ports = json!([{"name": "dashboard", "port": 80}]);
    let (none, runs) = ((Value::Null, Value::Null), json!("Running"));
    let address = |port: u16| json!(format!("rj-a-head-svc.ns.svc.cluster.local:{port}"));
    assert_eq!(phase(json!({"spec": {"type": "ClusterIP"}})), none);
    assert_eq!(phase(json!({"spec": {"ports": ports}})), (runs.clone(), address(80)));
    // A Service without an address leads to the pod, and Ray listens there.
    assert_eq!(phase(json!({"spec": {"clusterIP": "None"}})), (runs, address(8265)));
}
