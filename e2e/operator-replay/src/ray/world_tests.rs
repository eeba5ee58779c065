//! What the world does that no recorded case shows.

use ray::settings::OperatorSettings;
use serde_json::{Value, json};

use super::world::{Pace, RayWorld};

/// A world with a RayCluster that has a worker, and an annotation of its head's template.
fn world_with(annotations: &Value, others: &[Value]) -> RayWorld {
    let mut world = RayWorld::new(OperatorSettings::default());
    for object in others {
        let _ = world.create(object.clone());
    }
    let template = |annotations: &Value| {
        json!({
            "metadata": {"annotations": annotations},
            "spec": {"containers": [{"name": "ray", "image": "ray:1"}]},
        })
    };
    let _ = world.create(json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "c1", "annotations": {"ray.io/gcs-ft-deletion-timeout": "40"}},
        "spec": {
            "gcsFaultToleranceOptions": {"redisAddress": "redis:6379"},
            "headGroupSpec": {"rayStartParams": {}, "template": template(annotations)},
            "workerGroupSpecs": [{
                "groupName": "small", "replicas": 1, "minReplicas": 0, "maxReplicas": 5,
                "rayStartParams": {}, "template": template(&json!({})),
            }],
        },
    }));
    world.settle();
    world
}

/// A cluster with a clean-up that runs with these annotations, just deleted.
fn deleted(annotations: &Value) -> RayWorld {
    let mut world = world_with(annotations, &[]);
    world.begin();
    world.delete("RayCluster/c1");
    world.settle();
    world
}

#[test]
fn a_clean_up_that_succeeds_lets_the_cluster_go() {
    let world = deleted(&json!({}));
    assert!(world.objects.is_empty(), "{:?}", world.objects.keys());
    let job = &world.passed["Job/c1-redis-cleanup"];
    assert_eq!(job["status"]["conditions"][0]["type"], "Complete");
}

#[test]
fn a_clean_up_that_fails_lets_the_cluster_go() {
    let world = deleted(&json!({"lab.sluice.dev/exit-code": "7"}));
    assert!(world.objects.is_empty(), "{:?}", world.objects.keys());
    let job = &world.passed["Job/c1-redis-cleanup"];
    assert_eq!(job["status"]["conditions"][0]["reason"], "BackoffLimitExceeded");
}

#[test]
fn a_clean_up_that_hangs_holds_the_cluster_until_its_time_is_over() {
    let mut world = deleted(&json!({"lab.sluice.dev/run-seconds": "3600"}));
    assert!(world.objects.contains_key("RayCluster/c1"));
    assert!(world.objects.contains_key("Job/c1-redis-cleanup"));
    world.run_until(60, |_| false);
    world.settle();
    assert!(world.objects.is_empty(), "{:?}", world.objects.keys());
    assert!(world.events.iter().any(|(_, event)| event.reason == "ForceDeletedStuckCluster"));
}

#[test]
fn a_job_beyond_its_deadline_fails_and_loses_its_pod() {
    let mut world = RayWorld::at(OperatorSettings::default(), Pace::FINE);
    let template = json!({
        "metadata": {"annotations": {"lab.sluice.dev/run-seconds": "3600"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]},
    });
    let _ = world.create(json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
        "spec": {"activeDeadlineSeconds": 20, "template": template},
    }));
    world.settle();
    assert_eq!(world.ids("Pod/").len(), 1);
    world.run_until(15, |_| false);
    assert_eq!(world.ids("Pod/").len(), 0);
    let condition = &world.objects["Job/j"]["status"]["conditions"][0];
    assert_eq!(condition["reason"], "DeadlineExceeded");
}

#[test]
fn a_pod_ends_and_goes_after_its_seconds() {
    let mut world = RayWorld::at(OperatorSettings::default(), Pace::FINE);
    let pod = |name: &str, annotations: Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]},
        })
    };
    let ends = json!({"lab.sluice.dev/run-seconds": "20", "lab.sluice.dev/exit-code": "3"});
    let stops = json!({"lab.sluice.dev/run-seconds": "3600", "lab.sluice.dev/stop-seconds": "12"});
    let _ = world.create(pod("ends", ends));
    let _ = world.create(pod("stops", stops));
    world.settle();
    world.delete("Pod/stops");
    let phase = |world: &RayWorld, id: &str| world.objects[id]["status"]["phase"].clone();
    world.run_until(5, |_| false);
    assert_eq!([phase(&world, "Pod/ends"), phase(&world, "Pod/stops")], ["Running", "Running"]);
    world.run_until(10, |_| false);
    assert!(!world.objects.contains_key("Pod/stops"));
    assert_eq!(phase(&world, "Pod/ends"), "Failed");
    let state = &world.objects["Pod/ends"]["status"]["containerStatuses"][0]["state"];
    assert_eq!(state["terminated"]["exitCode"], 3);
}

#[test]
fn a_quota_of_one_pod_lets_the_head_in_alone() {
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}},
    });
    let world = world_with(&json!({}), &[quota]);
    let pods = world.ids("Pod/");
    assert!(matches!(&pods[..], [head] if head.contains("-head-")), "{pods:?}");
    let message = "exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1";
    assert!(world.events.iter().any(|(_, event)| event.message.ends_with(message)));
}
