//! Objects that cannot be run: each says why, and makes nothing that it should not.

use serde_json::{Value, json};

use super::{
    run::SimulatedRun,
    scenario::OperatedObject,
    specs::{cluster_spec, ray},
    world::SharedWorld,
};

/// Runs an object beside others for some minutes.
async fn run(parent: Value, others: Vec<Value>, seconds: u64) -> SimulatedRun {
    let world = SharedWorld::new(parent, None);
    for other in others {
        world.create(other);
    }
    let mut run = SimulatedRun::start(world);
    run.run_for(seconds).await;
    let violations = run.world.lock().api.violations.clone();
    assert!(violations.is_empty(), "{violations:?}");
    run
}

/// Asserts that an event of the object says this.
fn assert_event(run: &SimulatedRun, reason: &str, part: &str) {
    let world = run.world.lock();
    let says = |(one, note): &(String, String)| one == reason && note.contains(part);
    assert!(world.api.events.iter().any(says), "{:#?}", world.api.events);
}

fn count(run: &SimulatedRun, kind: &str) -> usize {
    run.world.lock().api.of_kind(kind).count()
}

async fn refused_cluster(change: impl FnOnce(&mut Value), reason: &str, part: &str) {
    let mut cluster = OperatedObject::Cluster.object();
    change(&mut cluster);
    let run = run(cluster, Vec::new(), 60).await;
    assert_event(&run, reason, part);
    assert_eq!((count(&run, "Pod"), count(&run, "Service")), (0, 0));
    assert_eq!(run.world.lock().lines, Vec::<String>::new(), "nothing is written");
}

#[tokio::test(start_paused = true)]
async fn a_head_without_a_container_is_refused() {
    let change = |it: &mut Value| it["spec"]["headGroupSpec"]["template"]["spec"] = json!({});
    let why = "headGroupSpec should have at least one container";
    refused_cluster(change, "InvalidRayClusterSpec", why).await;
}

#[tokio::test(start_paused = true)]
async fn a_name_of_54_letters_is_refused() {
    let change = |it: &mut Value| it["metadata"]["name"] = json!("c".repeat(54));
    let why = "RayCluster name should be no more than 53 characters";
    refused_cluster(change, "InvalidRayClusterMetadata", why).await;
}

#[tokio::test(start_paused = true)]
async fn a_group_with_more_fewest_than_most_replicas_is_refused() {
    let change = |it: &mut Value| it["spec"]["workerGroupSpecs"][0]["minReplicas"] = json!(6);
    refused_cluster(change, "InvalidRayClusterSpec", "minReplicas 6").await;
}

#[tokio::test(start_paused = true)]
async fn a_group_of_workers_that_is_named_as_the_head_is_refused() {
    let change =
        |it: &mut Value| it["spec"]["workerGroupSpecs"][0]["groupName"] = json!("headgroup");
    let why = "worker group name headgroup is the name of the group of the head";
    refused_cluster(change, "InvalidRayClusterSpec", why).await;
}

/// Another operator made a second head: the older one stays, and the cluster gets ready.
#[tokio::test(start_paused = true)]
async fn of_two_heads_the_older_one_stays() {
    let world = SharedWorld::new(OperatedObject::Cluster.object(), None);
    let mut run = SimulatedRun::start(world);
    run.run_for(30).await;
    let (first, mut second) = {
        let world = run.world.lock();
        let is_head = |pod: &&Value| pod["metadata"]["labels"]["ray.io/node-type"] == "head";
        let head = world.api.of_kind("Pod").find(is_head).cloned().expect("a head");
        (head["metadata"]["name"].clone(), head)
    };
    second["metadata"]["name"] = json!("c-head-a");
    run.world.create(second);
    run.run_for(30).await;
    let world = run.world.lock();
    let heads = world
        .api
        .of_kind("Pod")
        .filter(|pod| pod["metadata"]["labels"]["ray.io/node-type"] == "head");
    let names: Vec<&Value> = heads.map(|head| &head["metadata"]["name"]).collect();
    assert_eq!(names, [&first]);
    assert_eq!(world.parent()["status"]["state"], "ready");
    let said = world.api.events.iter().any(|(_, note)| note.contains("it is not the only head"));
    assert!(said, "{:#?}", world.api.events);
}

/// With and without the label by which the agent sees it.
#[tokio::test(start_paused = true)]
async fn a_foreign_service_with_the_name_of_the_head_is_left_alone() {
    for labels in [json!({}), json!({"ray.io/cluster": "c"})] {
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "spec": {"selector": {"a": "b"}},
            "metadata": {"name": "c-head-svc", "namespace": "ns", "labels": labels},
        });
        let run = run(OperatedObject::Cluster.object(), vec![service.clone()], 120).await;
        assert_event(&run, "FailedToCreateService", "c-head-svc");
        assert_eq!(count(&run, "Pod"), 0, "no pod without its Service");
        let world = run.world.lock();
        let kept = world.api.of_kind("Service").next().expect("the Service");
        assert_eq!(kept["spec"], service["spec"]);
        let writes = world.lines.len();
        assert!(writes <= 70, "{writes} writes in two minutes: {:#?}", world.lines);
    }
}

fn wrapper_of(component: &Value) -> Value {
    json!({
        "apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper",
        "metadata": {"name": "w", "namespace": "ns"}, "spec": {"components": [component]},
    })
}

/// An AppWrapper of one component ends as Failed, and its condition says why.
async fn failed_wrapper(component: Value, part: &str) {
    let run = run(wrapper_of(&component), Vec::new(), 60).await;
    let world = run.world.lock();
    let status = &world.parent()["status"];
    assert_eq!(status["phase"], "Failed", "{status:#}");
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let why = conditions.iter().find(|it| it["type"] == "Unhealthy").expect("a condition");
    assert_eq!(why["reason"], "CreateFailed");
    assert!(why["message"].as_str().unwrap_or_default().contains(part), "{why:#}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_set_path_to_nothing_fails_its_app_wrapper() {
    let template = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
        "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}},
    });
    let component = json!({
        "template": template, "podSets": [{"path": "template.spec.nothing", "replicas": 1}],
        "podSetInfos": [{"labels": {"a": "b"}}],
    });
    failed_wrapper(component, "missing field 'nothing'").await;
}

#[tokio::test(start_paused = true)]
async fn a_component_without_a_name_fails_its_app_wrapper() {
    let spec = json!({"containers": [{"name": "c"}]});
    let template = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec});
    failed_wrapper(json!({"template": template}), "name or generateName is required").await;
}

#[tokio::test(start_paused = true)]
async fn an_app_wrapper_in_an_app_wrapper_fails_it() {
    let mut inner = OperatedObject::Wrapper.object();
    inner["metadata"]["name"] = json!("inner");
    failed_wrapper(json!({"template": inner}), "AppWrapper").await;
}

#[tokio::test(start_paused = true)]
async fn a_component_of_an_unknown_kind_fails_its_app_wrapper() {
    let template = json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"},
    });
    failed_wrapper(json!({"template": template}), "makes no objects of example.com/v1 Thing").await;
}

/// The agent could make them: it makes the roles of autoscalers.
#[tokio::test(start_paused = true)]
async fn a_component_that_grants_rights_fails_its_app_wrapper() {
    for kind in ["Role", "RoleBinding"] {
        let template = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "r"},
        });
        failed_wrapper(json!({"template": template}), "makes no objects of rbac").await;
    }
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    failed_wrapper(json!({"template": secret}), "makes no objects of v1 Secret").await;
}

#[tokio::test(start_paused = true)]
async fn a_zone_in_the_schedule_of_a_ray_cron_job_is_refused() {
    let spec = json!({
        "schedule": "CRON_TZ=Asia/Tokyo * * * * *",
        "jobTemplate": {"entrypoint": "e", "rayClusterSpec": cluster_spec(1)},
    });
    let run = run(ray("RayCronJob", "cron", &spec), Vec::new(), 180).await;
    assert_event(&run, "InvalidRayCronJobSpec", "cannot use TZ or CRON_TZ in schedule");
    assert_eq!(count(&run, "RayJob"), 0);
}

/// A dashboard that answers with a page ends the RayJob once the timeout of its checks is over.
#[tokio::test(start_paused = true)]
async fn a_dashboard_that_answers_html_fails_its_ray_job() {
    let world = SharedWorld::new(OperatedObject::HttpJob.object(), None);
    world.lock().heads.page = Some("<html><body>Sign in</body></html>".to_owned());
    let mut run = SimulatedRun::start(world);
    run.run_for(60).await;
    {
        let world = run.world.lock();
        let status = &world.parent()["status"];
        assert!(status["jobStatusCheckFailureStartTime"].is_string(), "{status:#}");
    }
    run.run_for(400).await;
    let world = run.world.lock();
    let status = &world.parent()["status"];
    assert_eq!(status["jobDeploymentStatus"], "Failed");
    assert_eq!(status["reason"], "JobStatusCheckTimeoutExceeded");
    assert!(world.heads.ledger.is_empty(), "nothing was submitted");
    assert_eq!(world.api.of_kind("RayCluster").count(), 0, "the cluster goes with the job");
}
