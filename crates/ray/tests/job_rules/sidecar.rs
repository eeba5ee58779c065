//! A submitter beside the head.

use super::*;

fn settings(restarts: bool) -> OperatorSettings {
    let mut settings = OperatorSettings::default();
    settings.gates.sidecar_submitter_restart = restarts;
    settings
}

fn run(job: &Value, children: &[Value], restarts: bool) -> Done {
    let create = |object: &Value| RayAnswer::Done(object.clone().into());
    pass_with(job, children, unreachable, create, &settings(restarts))
}

fn job(config: &Value, status: &Value) -> Value {
    ray_job(&json!({"submissionMode": "SidecarMode", "submitterConfig": config}), status)
}

/// The phase and the message after a pass that finds the submitter so.
fn with_submitter(config: &Value, submitter: &Value) -> (String, String) {
    let mut container = json!({"name": "ray-job-submitter"});
    json_patch::merge(&mut container, submitter);
    let head = json!({
        "kind": "Pod",
        "metadata": {"name": "h", "labels": {"ray.io/cluster": "rj-a", "ray.io/node-type": "head"}},
        "status": {"containerStatuses": [container]},
    });
    let service = owned("Service", "rj-head-svc", "u");
    let done = run(&job(config, &running()), &[cluster(), head, service], true);
    let text = |name: &str| {
        let value = done.status().and_then(|status| status[name].as_str());
        value.unwrap_or_default().to_owned()
    };
    (text("jobDeploymentStatus"), text("message"))
}

#[test]
fn restarts_of_a_submitter_have_a_limit_with_their_gate_only() {
    let limit = json!({"backoffLimit": 3});
    let phase = |restarts: bool| {
        let done = run(&job(&limit, &Value::Null), &[], restarts);
        done.status().map(|status| status["jobDeploymentStatus"].clone())
    };
    assert_eq!(phase(false), Some(json!("ValidationFailed")));
    assert_eq!(phase(true), Some(json!("Initializing")));
}

#[test]
fn a_submitter_that_used_up_its_restarts_fails_the_attempt() {
    let limit = json!({"backoffLimit": 3});
    let failed = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
    let crashed = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    let runs = json!({"running": {}});
    let found = |restarts: i64, state: &Value| json!({"restartCount": restarts, "state": state, "lastState": if restarts > 0 { failed.clone() } else { json!({}) }});
    let runs_on = |config: &Value, found: &Value| {
        let (phase, message) = with_submitter(config, found);
        assert_ne!(phase, "Failed", "{message}");
    };
    for state in [&failed, &crashed] {
        let (phase, message) = with_submitter(&limit, &found(3, state));
        assert_eq!(phase, "Failed", "{state}");
        assert_eq!(
            message,
            "Ray head pod container ray-job-submitter failed after 3 restarts; submitterConfig.backoffLimit is 3"
        );
        runs_on(&limit, &found(2, state));
        runs_on(&Value::Null, &found(9, state));
        runs_on(&json!({}), &found(9, state));
    }
    runs_on(&limit, &found(3, &runs));
    assert_eq!(with_submitter(&limit, &found(4, &runs)).0, "Failed");
    // It waits for its image.
    runs_on(
        &json!({"backoffLimit": 0}),
        &found(0, &json!({"waiting": {"reason": "ImagePullBackOff"}})),
    );
    assert_eq!(with_submitter(&json!({"backoffLimit": 0}), &found(0, &failed)).0, "Failed");
    let done = json!({"terminated": {"exitCode": 0}});
    runs_on(&json!({"backoffLimit": 0}), &found(0, &done));
}

#[test]
fn the_cluster_of_a_job_that_runs_knows_the_address_of_its_dashboard() {
    let variable = |status: &Value| {
        let mut job = job(&Value::Null, status);
        job["spec"].as_object_mut().expect("a spec").remove("submitterConfig");
        let done = run(&job, &[], false);
        let cluster = done.orders.into_iter().find_map(|step| match step {
            RayStep::Create(object) if object["kind"] == "RayCluster" => Some(object),
            _ => None,
        });
        let containers = "/spec/headGroupSpec/template/spec/containers/1/env";
        let cluster = cluster.expect("a cluster");
        let env = cluster.pointer(containers).and_then(Value::as_array).cloned();
        env.into_iter().flatten().find(|it| it["name"] == "RAY_DASHBOARD_ADDRESS")
    };
    let address = "rj-a-head-svc.ns.svc.cluster.local:8265";
    let with_value = json!({"name": "RAY_DASHBOARD_ADDRESS", "value": address});
    assert_eq!(variable(&running()), Some(with_value));
    let mut first = running();
    first["jobDeploymentStatus"] = json!("Initializing");
    first["dashboardURL"] = json!("");
    assert_eq!(variable(&first), Some(json!({"name": "RAY_DASHBOARD_ADDRESS"})));
}
