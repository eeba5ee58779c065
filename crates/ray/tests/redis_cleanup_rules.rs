//! Rules for the removal of a cluster's keys from Redis that no recording shows.

use std::time::Duration;

use jiff::Timestamp;
use ray::{Moment, cluster, names, settings::OperatorSettings, step::RayStep};
use serde_json::{Value, json};

const DELETED_AT: &str = "2026-01-01T00:00:00Z";

/// A cluster that is being deleted, with its state in Redis.
fn deleted_cluster(redis: &Value) -> Value {
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {
            "name": "c1", "namespace": "default", "uid": "u1",
            "deletionTimestamp": DELETED_AT,
            "finalizers": [names::REDIS_FINALIZER],
        },
        "spec": {
            "headGroupSpec": {"template": {"spec": {"containers": [{"name": "ray", "image": "ray:1"}]}}},
            "gcsFaultToleranceOptions": redis,
        },
    })
}

/// The steps so many seconds after the deletion.
fn steps_after(cluster: &Value, children: &[Value], seconds: i64) -> Vec<RayStep> {
    let deleted: Timestamp = DELETED_AT.parse().expect("a time");
    let now = Timestamp::from_second(deleted.as_second() + seconds).expect("a time");
    let moment = Moment { now, seed: [1; 32] };
    let children: Vec<&Value> = children.iter().collect();
    cluster::decide(cluster, &children, &[], &moment, &OperatorSettings::default())
}

/// The script of the Job that removes the keys.
fn script(redis: &Value) -> String {
    let steps = steps_after(&deleted_cluster(redis), &[], 1);
    let job = steps.into_iter().find_map(|step| match step {
        RayStep::Create(job) if job["kind"] == "Job" => Some(job),
        _ => None,
    });
    let job = job.expect("a Job");
    job["spec"]["template"]["spec"]["containers"][0]["args"][0].as_str().expect("a text").to_owned()
}

#[test]
fn the_user_of_redis_logs_in_by_name() {
    let password = json!({"redisAddress": "redis:6379", "redisPassword": {"value": "p"}});
    assert!(!script(&password).contains("username"), "an old Ray knows no such parameter");
    let mut user = password.clone();
    user["redisUsername"] = json!({"valueFrom": {"secretKeyRef": {"name": "s", "key": "u"}}});
    let argument = "    username=os.environ.get('REDIS_USERNAME', url.username),\n";
    assert_eq!(script(&user).replacen(argument, "", 1), script(&password));
    assert!(script(&user).contains(argument));
}
