//! Objects of users that have a name which an operator looks up, without the label by which the agent sees its own.

use serde_json::{Value, json};

use super::{
    run::SimulatedRun,
    specs::{cluster_with, job_with, service_with},
    world::SharedWorld,
};
use crate::operators::object_cache::ObjectId;

/// Runs an object beside an object of its user.
async fn run_beside(parent: Value, other: Value) -> SimulatedRun {
    let world = SharedWorld::new(parent, None);
    world.lock().settings.ray.gates.embedded_storage = true;
    world.lock().settings.ray.gates.network_policy = true;
    world.create(other);
    let mut run = SimulatedRun::start(world);
    run.run_for(60).await;
    run
}

fn of_user(api_version: &str, kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "spec": {},
        "metadata": {"name": name, "namespace": "ns"},
    })
}

/// The cluster is ready, the object of the user is as it was, and no write was tried in vain.
fn assert_ready(run: &SimulatedRun, kind: &str) {
    let world = run.world.lock();
    assert_eq!(world.parent()["status"]["state"], "ready", "{:#?}", world.api.events);
    let attempt = format!("POST {kind} ");
    assert!(!world.lines.iter().any(|line| line.starts_with(&attempt)), "{:#?}", world.lines);
}

fn has_event(run: &SimulatedRun, reason: &str) -> bool {
    run.world.lock().api.events.iter().any(|(one, _)| one == reason)
}

/// As in `raycluster/autoscaler-service-account`.
#[tokio::test(start_paused = true)]
async fn an_autoscaler_runs_as_the_service_account_of_the_user() {
    let template = json!({"spec": {
        "serviceAccountName": "mine", "containers": [{"name": "head", "image": "ray"}],
    }});
    let fields = json!({"enableInTreeAutoscaling": true, "headGroupSpec": {"template": template}});
    let account = of_user("v1", "ServiceAccount", "mine");
    let run = run_beside(cluster_with(1, &fields), account).await;
    assert_ready(&run, "ServiceAccount");
    assert!(!has_event(&run, "AutoscalerServiceAccountNotFound"));
}

/// As in `raycluster/ingress-name-taken`.
#[tokio::test(start_paused = true)]
async fn an_ingress_of_the_user_holds_up_no_cluster() {
    let fields = json!({"headGroupSpec": {"enableIngress": true}});
    let ingress = of_user("networking.k8s.io/v1", "Ingress", "c-head-ingress");
    let run = run_beside(cluster_with(1, &fields), ingress).await;
    assert_ready(&run, "Ingress");
    assert!(has_event(&run, "FailedToCreateIngress"));
}

/// As in `raycluster-gates/rocksdb-claim-exists`.
#[tokio::test(start_paused = true)]
async fn a_claim_of_the_user_is_found() {
    let storage = json!({"backend": "rocksdb", "storage": {"claimName": "mine"}});
    let cluster = cluster_with(1, &json!({"gcsFaultToleranceOptions": storage}));
    let run = run_beside(cluster, of_user("v1", "PersistentVolumeClaim", "mine")).await;
    assert_ready(&run, "PersistentVolumeClaim");
    assert!(!has_event(&run, "FailedToCreatePVC"));
}

#[tokio::test(start_paused = true)]
async fn rights_and_tokens_of_the_user_are_used() {
    let rbac = "rbac.authorization.k8s.io/v1";
    for (api_version, kind) in
        [("v1", "ServiceAccount"), (rbac, "Role"), (rbac, "RoleBinding"), ("v1", "Secret")]
    {
        let fields = json!({"enableInTreeAutoscaling": true, "authOptions": {"mode": "token"}});
        let run = run_beside(cluster_with(1, &fields), of_user(api_version, kind, "c")).await;
        assert_ready(&run, kind);
    }
}

#[tokio::test(start_paused = true)]
async fn a_network_policy_of_the_user_is_a_collision() {
    let cluster = cluster_with(1, &json!({"networkPolicy": {"mode": "DenyAll"}}));
    let policy = of_user("networking.k8s.io/v1", "NetworkPolicy", "c-head");
    let run = run_beside(cluster, policy).await;
    assert!(has_event(&run, "NetworkPolicyNameCollision"));
    let world = run.world.lock();
    assert_eq!(world.parent()["status"]["state"], "ready", "{:#?}", world.api.events);
    let made = world.lines.iter().filter(|line| line.starts_with("POST NetworkPolicy "));
    // That of the group, once.
    let made: Vec<&String> = made.collect();
    assert!(matches!(made[..], [one] if one.contains("c-workers-")), "{made:#?}");
}

/// A Service for Serve that is there is left as it is.
#[tokio::test(start_paused = true)]
async fn a_serve_service_of_the_user_holds_up_no_cluster() {
    let mut cluster = cluster_with(1, &json!({}));
    cluster["metadata"]["annotations"] = json!({"ray.io/enable-serve-service": "true"});
    let run = run_beside(cluster, of_user("v1", "Service", "c-serve-svc")).await;
    let world = run.world.lock();
    assert_eq!(world.parent()["status"]["state"], "ready", "{:#?}", world.api.events);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_job_holds_up_its_ray_job_and_says_so() {
    let job = of_user("batch/v1", "Job", "j");
    let run = run_beside(job_with("K8sJobMode", &json!({})), job).await;
    assert!(has_event(&run, "FailedToCreateRayJobSubmitter"));
    let world = run.world.lock();
    assert_eq!(world.parent()["status"]["jobDeploymentStatus"], "Initializing");
    assert!(!world.lines.iter().any(|line| line.starts_with("POST Job ")), "{:#?}", world.lines);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_service_holds_up_no_ray_job_and_is_named() {
    let service = of_user("v1", "Service", "j-head-svc");
    let run = run_beside(job_with("HTTPMode", &json!({})), service).await;
    assert!(has_event(&run, "FailedToCreateService"));
    assert_eq!(run.world.lock().parent()["status"]["jobDeploymentStatus"], "Complete");
}

/// No watch tells the agent that the Service of the user is gone.
#[tokio::test(start_paused = true)]
async fn a_ray_service_gets_its_service_once_that_of_the_user_is_gone() {
    for name in ["s-head-svc", "s-serve-svc"] {
        let service = of_user("v1", "Service", name);
        let id = ObjectId::of(&service);
        let mut run = run_beside(service_with(&json!({})), service).await;
        assert!(run.world.lock().api.objects[&id]["metadata"]["ownerReferences"].is_null());
        run.world.lock().api.delete(&id);
        run.run_for(600).await;
        let world = run.world.lock();
        let made = world.api.objects.get(&id).unwrap_or(&Value::Null);
        assert_eq!(made["metadata"]["ownerReferences"][0]["name"], "s", "{name} {made}");
    }
}

/// The watch has not shown yet that the Service is another one.
#[tokio::test(start_paused = true)]
async fn a_patch_does_not_reach_the_successor_of_an_object() {
    let world = SharedWorld::new(cluster_with(1, &json!({})), None);
    let mut run = SimulatedRun::start(world);
    run.run_for(60).await;
    let mut successor = of_user("v1", "Service", "c-head-svc");
    successor["metadata"]["uid"] = json!("of the user");
    successor["spec"] = json!({"selector": {"app": "mine"}});
    let id = ObjectId::of(&successor);
    {
        let mut world = run.world.lock();
        world.api.successor = Some(successor.clone());
        world.api.change(&id, |it| it["spec"]["selector"]["ray.io/cluster"] = json!("another"));
    }
    run.run_for(60).await;
    assert!(has_event(&run, "FailedToUpdateService"));
    let world = run.world.lock();
    assert!(world.api.successor.is_none(), "{:#?}", world.lines);
    let service = world.api.objects.get(&id).expect("the Service of the user");
    assert_eq!(service["spec"], successor["spec"]);
}
