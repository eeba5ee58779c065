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
