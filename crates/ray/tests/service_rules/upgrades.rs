//! Incremental upgrades, where they differ from the official operator's.

use super::*;

#[test]
fn a_group_appended_to_the_active_cluster_keeps_the_replicas_of_the_spec() {
    let (mut service, _) = upgrade();
    service["status"] = active("rs-a");
    let template = json!({"spec": {"containers": [{"name": "ray", "image": "ray:1"}]}});
    let group = |name: &str, replicas: u8| {
        json!({
            "groupName": name, "replicas": replicas, "minReplicas": 0, "maxReplicas": 9,
            "template": template,
        })
    };
    let groups = "workerGroupSpecs";
    service["spec"]["rayClusterConfig"][groups] = json!([group("a", 2)]);
    let children = cluster_of(service.clone(), "rs-a");
    service["spec"]["rayClusterConfig"][groups] = json!([group("a", 2), group("b", 3)]);
    let (orders, _) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    let patch = orders.iter().find_map(|step| match step {
        RayStep::Patch { target, patch } if target.kind == "RayCluster" => Some(patch),
        _ => None,
    });
    let stored = patch.expect("a patch")["spec"][groups].as_array().expect("groups");
    let replicas: Vec<&Value> = stored.iter().map(|group| &group["replicas"]).collect();
    assert_eq!(replicas, [2, 3]);
}

#[test]
fn a_capacity_that_the_configuration_has_already_is_sent_and_noted() {
    let (mut service, children) = upgrade();
    service["spec"]["serveConfigV2"] = json!("applications:\n- name: one\ntarget_capacity: 50\n");
    let (orders, ends) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    let sent = orders.iter().filter_map(|step| match step {
        RayStep::Ask(it) if it.method == HeadMethod::Put && it.url.starts_with("http://rs-a-") => {
            it.body.as_ref().map(|body| body["target_capacity"].clone())
        }
        _ => None,
    });
    assert_eq!(sent.collect::<Vec<_>>(), [50]);
    let status = status(&ends).expect("a status");
    assert_eq!(status["activeServiceStatus"]["targetCapacity"], 50);
}

/// A RayService whose next cluster has a name and is not made yet. Its active cluster is of the image `ray:1`.
fn before_the_second_cluster(image: &str) -> (Value, Vec<Value>) {
    let mut state = active("rs-a");
    state["pendingServiceStatus"] = json!({"rayClusterName": "rs-b"});
    state["conditions"][1]["status"] = json!("True");
    (ray_service(image, &state), cluster("rs-a", "ray:1"))
}

#[test]
fn a_spec_that_goes_back_before_the_new_cluster_is_made_makes_none() {
    let (service, children) = before_the_second_cluster("ray:1");
    let (orders, ends) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    assert_eq!(new_clusters(&orders), 0);
    assert_eq!(sent(&orders), 1, "the active cluster gets its configuration");
    let status = status(&ends).expect("a status");
    assert_eq!(status["activeServiceStatus"]["rayClusterName"], "rs-a");
    assert_eq!(status["pendingServiceStatus"]["rayClusterName"], Value::Null);
    assert_eq!(status["conditions"][1]["reason"], "NoPendingCluster");
    let (service, children) = before_the_second_cluster("ray:2");
    let (orders, _) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
    assert_eq!(new_clusters(&orders), 1, "the spec is another one");
}

#[test]
fn an_incremental_upgrade_ends_without_a_second_cluster_if_nothing_has_moved() {
    let pass_with = |capacity: i32, traffic: i32| {
        let (mut service, mut children) = upgrade();
        children.retain(|it| it["metadata"]["name"] != "rs-b");
        service["spec"]["rayClusterConfig"]["headGroupSpec"] =
            cluster_spec("ray:1")["headGroupSpec"].clone();
        let status = &mut service["status"];
        status["activeServiceStatus"]["targetCapacity"] = json!(capacity);
        status["activeServiceStatus"]["trafficRoutedPercent"] = json!(traffic);
        let rollback = json!({"type": "RollbackInProgress", "status": "True"});
        status["conditions"].as_array_mut().expect("conditions").push(rollback);
        let (orders, ends) = pass(&service, &children, &ServiceMemory::default(), head("RUNNING"));
        (new_clusters(&orders), status_of(&ends))
    };
    let (n_made, status) = pass_with(100, 100);
    assert_eq!((n_made, &status["pendingServiceStatus"]["rayClusterName"]), (0, &Value::Null));
    assert_eq!(condition(&status, "RollbackInProgress"), Value::Null);
    assert_eq!(condition(&status, "UpgradeInProgress")["status"], "False");
    // The capacity that the active cluster gave up comes back with a second cluster only.
    assert_eq!(pass_with(50, 100).0, 1);
    assert_eq!(pass_with(100, 80).0, 1);
}

fn status_of(ends: &[RayStep]) -> Value {
    status(ends).expect("a status").clone()
}

fn condition(status: &Value, kind: &str) -> Value {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.find(|it| it["type"] == kind).cloned().unwrap_or_default()
}
