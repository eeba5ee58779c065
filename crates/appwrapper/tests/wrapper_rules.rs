//! Rules for AppWrappers that no recording shows.

use std::collections::{BTreeMap, BTreeSet};

use appwrapper::{
    WrapperFacts, decide,
    pod_sets::inferred,
    settings::WrapperSettings,
    step::{WrapperAnswer, WrapperRefusal, WrapperStep},
    webhook::{WrapperRequester, validate_create},
};
use crds::validation::denial;
use jiff::Timestamp;
use serde_json::{Value, json};

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "main"}]},
    })
}

/// An AppWrapper in a phase, whose resources count as deployed.
fn wrapper_in(phase: &str, components: &Value) -> Value {
    let deployed = json!({
        "type": "ResourcesDeployed", "status": "True", "reason": "Resuming", "message": "",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    });
    json!({
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {
            "name": "aw1", "namespace": "default", "uid": "u1",
            "finalizers": ["workload.codeflare.dev/finalizer"],
        },
        "spec": {"components": components},
        "status": {"phase": phase, "conditions": [deployed]},
    })
}

fn steps(wrapper: &Value, children: &[Value], answers: &[WrapperAnswer]) -> Vec<WrapperStep> {
    let facts = WrapperFacts { now: Timestamp::UNIX_EPOCH, evicted_nodes: BTreeMap::new() };
    decide(
        wrapper,
        &children.iter().collect::<Vec<_>>(),
        answers,
        &facts,
        &WrapperSettings::default(),
    )
}

fn status(steps: &[WrapperStep]) -> Value {
    let status = steps.iter().find_map(|step| match step {
        WrapperStep::ReplaceStatus(status) => Some(status.clone()),
        _ => None,
    });
    status.unwrap_or_default()
}

fn unhealthy(steps: &[WrapperStep]) -> String {
    let status = status(steps);
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let unhealthy = conditions.iter().find(|condition| condition["type"] == "Unhealthy");
    unhealthy.map(|it| it["message"].as_str().unwrap_or_default().to_owned()).unwrap_or_default()
}

#[test]
fn a_nested_app_wrapper_fails_without_being_made() {
    let nested = wrapper_in("", &json!([]));
    let steps = steps(&wrapper_in("Resuming", &json!([{"template": nested}])), &[], &[]);
    assert!(!steps.iter().any(WrapperStep::is_order));
    assert_eq!(status(&steps)["phase"], "Failed");
    let message = "error creating components: an AppWrapper cannot contain the AppWrapper aw1";
    assert_eq!(unhealthy(&steps), message);
}

#[test]
fn a_component_of_another_namespace_fails_without_being_made() {
    let mut other = pod("p1");
    other["metadata"]["namespace"] = json!("other");
    let steps = steps(&wrapper_in("Resuming", &json!([{"template": other}])), &[], &[]);
    assert!(!steps.iter().any(WrapperStep::is_order));
    assert_eq!(status(&steps)["phase"], "Failed");
    let message = r#"error creating components: component namespace "other" is different from appwrapper namespace "default""#;
    assert_eq!(unhealthy(&steps), message);
}

#[test]
fn the_end_of_a_reset_has_a_message_of_its_own() {
    let mut wrapper = wrapper_in("Resetting", &json!([{"template": pod("p1")}]));
    let condition = &mut wrapper["status"]["conditions"][0];
    (condition["status"], condition["reason"]) = (json!("False"), json!("Resetting"));
    let status = status(&steps(&wrapper, &[], &[]));
    assert_eq!(status["phase"], "Resuming");
    let deployed = &status["conditions"][0];
    assert_eq!(deployed["reason"], "Resuming");
    assert_eq!(deployed["message"], "Reset complete; resuming");
}

#[test]
fn a_path_to_nothing_fails_without_another_attempt() {
    let component = json!({"template": pod("p1"), "podSets": [{"path": "template.spec.x[3]"}]});
    let steps = steps(&wrapper_in("Resuming", &json!([component])), &[], &[]);
    assert_eq!(status(&steps)["phase"], "Failed");
    let message = "error creating components: at path position 'template.spec.' missing field 'x'";
    assert_eq!(unhealthy(&steps), message);
}

#[test]
fn a_path_to_an_object_without_a_spec_makes_nothing() {
    let thing = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "t"}, "spec": {}});
    let declared = json!([{"template": thing, "podSets": [{"path": "template.metadata"}]}]);
    let steps = steps(&wrapper_in("Resuming", &declared), &[], &[]);
    assert!(!steps.iter().any(WrapperStep::is_order), "{steps:?}");
    assert_eq!(status(&steps)["phase"], "Failed");
    let message = "error creating components: content at template.metadata does not contain a spec";
    assert_eq!(unhealthy(&steps), message);
}

#[test]
fn an_unknown_kind_fails_without_another_attempt() {
    let wrapper = wrapper_in("Resuming", &json!([{"template": pod("p1")}]));
    let refused = |why| WrapperAnswer::Refused { why, message: "no such kind".to_owned() };
    let last = steps(&wrapper, &[], &[refused(WrapperRefusal::UnknownKind)]);
    assert_eq!(status(&last)["phase"], "Failed");
    let last = steps(&wrapper, &[], &[refused(WrapperRefusal::Other)]);
    assert_eq!(status(&last)["phase"], "Resuming", "other refusals may pass");
}

#[test]
fn an_object_of_another_controller_is_neither_adopted_nor_deleted() {
    let wrapper = wrapper_in("Resuming", &json!([{"template": pod("p1")}]));
    let last = steps(&wrapper, &[pod("p1")], &[]);
    let message =
        "error creating components: resource p1 exists, but is not controlled by appwrapper";
    assert_eq!(unhealthy(&last), message);
    let mut failed = wrapper;
    failed["status"]["phase"] = json!("Failed");
    let last = steps(&failed, &[pod("p1")], &[]);
    assert!(!last.iter().any(WrapperStep::is_order), "{last:?}");
}

#[test]
fn an_object_that_was_made_before_a_crash_is_not_made_again() {
    let mut made = pod("p1");
    made["metadata"]["ownerReferences"] = json!([{"uid": "u1", "controller": true}]);
    let last = steps(&wrapper_in("Resuming", &json!([{"template": pod("p1")}])), &[made], &[]);
    assert_eq!(status(&last)["phase"], "Running");
}

#[test]
fn a_clock_that_goes_back_ends_no_period() {
    let mut wrapper = wrapper_in("Running", &json!([{"template": pod("p1")}]));
    wrapper["status"]["conditions"][0]["lastTransitionTime"] = json!("2100-01-01T00:00:00Z");
    wrapper["status"]["componentStatus"] = json!([{
        "name": "p1", "kind": "Pod", "apiVersion": "v1", "podSets": [{"path": "template"}],
    }]);
    let mut made = pod("p1");
    made["metadata"]["ownerReferences"] = json!([{"uid": "u1", "controller": true}]);
    let last = steps(&wrapper, &[made], &[]);
    assert!(
        last.iter()
            .any(|step| matches!(step, WrapperStep::RequeueAfter(after) if after.as_secs() == 5))
    );
}

#[test]
fn a_period_is_a_duration_of_go_and_one_below_zero_is_over() {
    let phase_with = |pause: &str| {
        let mut wrapper = wrapper_in("Resetting", &json!([]));
        let name = "workload.codeflare.dev.appwrapper/retryPausePeriodDuration";
        wrapper["metadata"]["annotations"] = json!({ name: pause });
        let mut unhealthy = wrapper["status"]["conditions"][0].clone();
        unhealthy["type"] = json!("Unhealthy");
        if let Some(conditions) = wrapper["status"]["conditions"].as_array_mut() {
            conditions.push(unhealthy);
        }
        status(&steps(&wrapper, &[], &[]))["phase"].clone()
    };
    assert_eq!(phase_with("-5s"), "Resuming");
    // No duration of Go, so the default counts.
    for text in ["-+5s", "--5s", "soon"] {
        assert_ne!(phase_with(text), "Resuming", "{text}");
    }
}

#[test]
fn a_pod_whose_node_does_not_answer_is_not_pending() {
    let component = json!({"template": pod("p1"), "podSets": [{"path": "template"}]});
    let mut wrapper = wrapper_in("Running", &json!([component]));
    wrapper["status"]["componentStatus"] = json!([{
        "name": "p1", "kind": "Pod", "apiVersion": "v1", "podSets": [{"path": "template"}],
    }]);
    wrapper["status"]["conditions"][0]["lastTransitionTime"] = json!("1969-12-31T23:00:00Z");
    let mut made = pod("p1");
    made["metadata"]["ownerReferences"] = json!([{"uid": "u1", "controller": true}]);
    made["metadata"]["labels"] = json!({"workload.codeflare.dev/appwrapper": "aw1"});
    made["status"] = json!({"phase": "Unknown"});
    let message = "0 pods pending; 0 pods running; 0 pods succeeded";
    assert_eq!(unhealthy(&steps(&wrapper, &[made], &[])), message);
}

#[test]
fn an_evacuation_names_its_nodes_and_uses_no_retry() {
    let limits = json!({"limits": {"nvidia.com/gpu": 1}});
    let mut template = pod("p1");
    template["spec"]["containers"][0]["resources"] = limits;
    let mut wrapper = wrapper_in("Running", &json!([{"template": template}]));
    wrapper["status"]["componentStatus"] = json!([{
        "name": "p1", "kind": "Pod", "apiVersion": "v1", "podSets": [{"path": "template"}],
    }]);
    let mut made = template;
    made["metadata"]["ownerReferences"] = json!([{"uid": "u1", "controller": true}]);
    made["metadata"]["labels"] = json!({"workload.codeflare.dev/appwrapper": "aw1"});
    made["status"] = json!({"phase": "Running"});
    made["spec"]["nodeName"] = json!("n1");
    let resources = BTreeSet::from(["nvidia.com/gpu".to_owned()]);
    let evicted_nodes = BTreeMap::from([("n1".to_owned(), resources)]);
    let facts = WrapperFacts { now: Timestamp::UNIX_EPOCH, evicted_nodes };
    let steps = decide(&wrapper, &[&made], &[], &facts, &WrapperSettings::default());
    assert_eq!(status(&steps)["phase"], "Resetting");
    assert_eq!(status(&steps)["resettingCount"].as_i64().unwrap_or_default(), 0);
    let message = "Workload contains pods using NoExecute resources on Nodes: map[n1:{}]";
    assert_eq!(unhealthy(&steps), message);
    let events = steps.iter().filter_map(|step| match step {
        WrapperStep::Event { message, .. } => Some(message.as_str()),
        _ => None,
    });
    assert_eq!(events.collect::<Vec<_>>(), [message]);
}

#[test]
fn a_path_to_what_is_no_template_fails_without_another_attempt() {
    let component = json!({"template": pod("p1"), "podSets": [{"path": "template.kind"}]});
    let steps = steps(&wrapper_in("Resuming", &json!([component])), &[], &[]);
    assert_eq!(status(&steps)["phase"], "Failed");
    let message = "error creating components: at path position 'template.kind' non-map value";
    assert_eq!(unhealthy(&steps), message);
}

#[test]
fn a_component_that_the_user_may_not_create_is_named_by_its_resource() {
    let mut wrapper = wrapper_in("", &json!([{"template": pod("p1")}]));
    wrapper["metadata"]["namespace"] = json!("ns");
    let forbidden = BTreeMap::from([(0, "pods".to_owned())]);
    let bob = WrapperRequester { name: "bob".to_owned(), forbidden, ..WrapperRequester::default() };
    let denied = denial(&validate_create(&wrapper, &bob, &WrapperSettings::default()));
    let message =
        "spec.components[0].template: Forbidden: User bob is not authorized to create pods in ns";
    assert_eq!(denied.as_deref(), Some(message));
}

#[test]
fn refusals_of_a_component_come_in_their_order() {
    let mut nested = wrapper_in("", &json!([]));
    nested["metadata"]["namespace"] = json!("other");
    let component = json!({"template": nested, "podSets": [{"path": ""}]});
    let wrapper = wrapper_in("", &json!([component]));
    let forbidden = BTreeMap::from([(0, "appwrappers".to_owned())]);
    let bob = WrapperRequester { name: "bob".to_owned(), forbidden, ..WrapperRequester::default() };
    let errors = validate_create(&wrapper, &bob, &WrapperSettings::default());
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let expected = [
        "Nested AppWrappers are forbidden",
        "AppWrappers cannot create objects in other namespaces",
        "User bob is not authorized to create appwrappers",
        "podspec must specify path",
        "path does not refer to a v1.PodSpecTemplate",
    ];
    for (error, part) in errors.iter().zip(expected) {
        assert!(error.contains(part), "{part}: {errors:#?}");
    }
}

#[test]
fn a_group_may_be_declared_as_it_is_written() {
    let declared = |replicas: i32| {
        let mut cluster = autoscaled_cluster();
        let group = &mut cluster["spec"]["workerGroupSpecs"][0];
        (group["replicas"], group["minReplicas"]) = (json!(1), json!(2));
        let spec = "template.spec";
        let pod_sets = json!([
            {"path": format!("{spec}.headGroupSpec.template"), "replicas": 1},
            {"path": format!("{spec}.workerGroupSpecs[0].template"), "replicas": replicas},
        ]);
        let component = json!({"template": cluster, "podSets": pod_sets});
        let wrapper = wrapper_in("", &json!([component]));
        let requester = WrapperRequester::default();
        let errors = validate_create(&wrapper, &requester, &WrapperSettings::default());
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(declared(1), [""; 0], "as the official controller infers it");
    assert_eq!(declared(2), [""; 0], "as the operator runs it");
    let [error] = &declared(3)[..] else { panic!("one error") };
    assert!(error.contains("replica count 3 differs from inferred count 2"), "{error}");
}

/// A running AppWrapper with a RayJob of two pods, and that RayJob.
fn wrapped_ray_job(state: &str) -> (Value, Value) {
    let template = json!({"spec": {"containers": [{"name": "main"}]}});
    let spec = json!({
        "headGroupSpec": {"template": template},
        "workerGroupSpecs": [{"groupName": "w", "replicas": 1, "template": template}],
    });
    let job = json!({
        "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "j"},
        "spec": {"rayClusterSpec": spec},
    });
    let mut wrapper = wrapper_in("Running", &json!([{"template": job}]));
    wrapper["status"]["componentStatus"] = json!([{
        "name": "j", "kind": "RayJob", "apiVersion": "ray.io/v1",
        "podSets": [{"replicas": 1, "path": "p"}, {"replicas": 1, "path": "q"}],
    }]);
    let mut made = job;
    made["metadata"]["ownerReferences"] = json!([{"uid": "u1", "controller": true}]);
    made["status"] = json!({"jobDeploymentStatus": state});
    (wrapper, made)
}

/// Pods of the AppWrapper in these phases.
fn pods_in(phases: &[&str]) -> Vec<Value> {
    let pods = phases.iter().enumerate().map(|(index, phase)| {
        let mut pod = pod(&format!("p{index}"));
        pod["metadata"]["labels"] = json!({"workload.codeflare.dev/appwrapper": "aw1"});
        pod["status"] = json!({"phase": phase});
        pod
    });
    pods.collect()
}

fn phase_after(state: &str, pods: &[&str]) -> Value {
    let (wrapper, job) = wrapped_ray_job(state);
    let children: Vec<Value> = std::iter::once(job).chain(pods_in(pods)).collect();
    let status = status(&steps(&wrapper, &children, &[]));
    if status.is_null() { wrapper["status"]["phase"].clone() } else { status["phase"].clone() }
}

#[test]
fn a_complete_ray_job_is_not_run_again() {
    assert_eq!(phase_after("Complete", &[]), "Succeeded");
    assert_eq!(phase_after("Complete", &["Running"]), "Running", "its pods use quota");
    assert_eq!(phase_after("Running", &[]), "Running");
    assert_eq!(phase_after("Failed", &["Running"]), "Resetting");
    let (wrapper, mut foreign) = wrapped_ray_job("Complete");
    foreign["metadata"]["ownerReferences"] = Value::Null;
    assert_eq!(status(&steps(&wrapper, &[foreign], &[]))["phase"], "Failed", "not its RayJob");
}

/// Its cluster stays, and so do its pods.
#[test]
fn pods_of_a_complete_ray_job_count_once() {
    let counted = |phases: &[&str]| {
        let (wrapper, job) = wrapped_ray_job("Complete");
        let children: Vec<Value> = std::iter::once(job).chain(pods_in(phases)).collect();
        let status = status(&steps(&wrapper, &children, &[]));
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.into_iter().find(|it| it["type"] == "PodsReady");
        ready.map(|it| it["message"].clone()).unwrap_or_default()
    };
    assert_eq!(counted(&["Running", "Running"]), "2 pods running; 0 pods succeeded");
    assert_eq!(counted(&["Running"]), "1 pods running; 1 pods succeeded");
    assert_eq!(counted(&["Running"; 3]), "3 pods running; 0 pods succeeded");
}

/// A RayCluster with an autoscaler, which sizes its group of three workers from one to five.
fn autoscaled_cluster() -> Value {
    let template = json!({"spec": {"containers": [{"name": "main"}]}});
    let group = json!({
        "groupName": "w", "replicas": 3, "minReplicas": 1, "maxReplicas": 5, "template": template,
    });
    json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "c"},
        "spec": {
            "enableInTreeAutoscaling": true, "headGroupSpec": {"template": template},
            "workerGroupSpecs": [group],
        },
    })
}

/// The limits of a group, as its object is made.
fn limits(cluster: &Value, infos: &Value) -> Value {
    let component = json!({"template": cluster, "podSetInfos": infos});
    limits_of(&steps(&wrapper_in("Resuming", &json!([component])), &[], &[]))
}

fn limits_of(steps: &[WrapperStep]) -> Value {
    let made = steps.iter().find_map(|step| match step {
        WrapperStep::Create(made) => Some(made),
        _ => None,
    });
    let group = &made.expect("a component")["spec"]["workerGroupSpecs"][0];
    json!([group["minReplicas"], group["replicas"], group["maxReplicas"]])
}

#[test]
fn an_autoscaler_gets_no_more_workers_than_were_admitted() {
    let admitted = json!([{}, {}]);
    assert_eq!(limits(&autoscaled_cluster(), &admitted), json!([1, 3, 3]));
    assert_eq!(limits(&autoscaled_cluster(), &json!([])), json!([1, 3, 5]), "no queue admitted it");
    let changed = |field: &str, value: Value| {
        let mut cluster = autoscaled_cluster();
        cluster["spec"]["workerGroupSpecs"][0][field] = value;
        limits(&cluster, &admitted)
    };
    assert_eq!(changed("maxReplicas", json!(2)), json!([1, 3, 2]));
    assert_eq!(changed("maxReplicas", Value::Null), json!([1, 3, 3]));
    assert_eq!(changed("minReplicas", json!(4)), json!([4, 3, 4]), "four were admitted");
    assert_eq!(changed("replicas", json!(0)), json!([1, 0, 1]), "one was admitted");
    let mut fixed = autoscaled_cluster();
    fixed["spec"]["enableInTreeAutoscaling"] = json!(false);
    assert_eq!(limits(&fixed, &admitted), json!([1, 3, 5]), "its user alone sizes it");
}

/// An autoscaled group of `replicas` pods, at least two, of which one is declared.
fn declared_group(replicas: i64) -> Value {
    let mut cluster = autoscaled_cluster();
    let group = &mut cluster["spec"]["workerGroupSpecs"][0];
    (group["replicas"], group["minReplicas"]) = (json!(replicas), json!(2));
    let spec = "template.spec";
    let pod_sets = json!([
        {"path": format!("{spec}.headGroupSpec.template"), "replicas": 1},
        {"path": format!("{spec}.workerGroupSpecs[0].template"), "replicas": 1},
    ]);
    json!({"template": cluster, "podSets": pod_sets, "podSetInfos": [{}, {}]})
}

#[test]
fn an_autoscaler_gets_no_more_workers_than_are_declared() {
    for replicas in [1, 3] {
        let component = declared_group(replicas);
        let steps = steps(&wrapper_in("Resuming", &json!([component])), &[], &[]);
        assert_eq!(limits_of(&steps), json!([1, replicas, 1]), "{replicas}");
    }
}

#[test]
fn an_autoscaler_gets_no_more_workers_than_the_status_has_from_before() {
    let mut cluster = autoscaled_cluster();
    cluster["spec"]["workerGroupSpecs"][0]["minReplicas"] = json!(4);
    let component = json!({"template": cluster, "podSetInfos": [{}, {}]});
    let mut wrapper = wrapper_in("Resuming", &json!([component]));
    wrapper["status"]["componentStatus"] = json!([{
        "name": "", "kind": "", "apiVersion": "",
        "podSets": [{"replicas": 3, "path": "template.spec.workerGroupSpecs[0].template"}],
    }]);
    assert_eq!(limits_of(&steps(&wrapper, &[], &[])), json!([3, 3, 3]));
}

#[test]
fn workers_beyond_the_declared_number_are_not_missing() {
    let component = declared_group(3);
    let (mut wrapper, mut cluster) =
        (wrapper_in("Running", &json!([component])), component["template"].clone());
    let mut pod_sets = component["podSets"].clone();
    pod_sets[1]["replicas"] = json!(3);
    wrapper["status"]["componentStatus"] = json!([{
        "name": "c", "kind": "RayCluster", "apiVersion": "ray.io/v1", "podSets": pod_sets,
    }]);
    cluster["metadata"]["ownerReferences"] = json!([{"uid": "u1", "controller": true}]);
    let pods = ["head", "worker"].map(|name| {
        let mut pod = pod(name);
        pod["metadata"]["labels"] = json!({"workload.codeflare.dev/appwrapper": "aw1"});
        pod["status"] = json!({"phase": "Running"});
        pod
    });
    let children: Vec<Value> = std::iter::once(cluster).chain(pods).collect();
    let after = status(&steps(&wrapper, &children, &[]));
    let conditions = after["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition["type"] == "PodsReady");
    assert_eq!(ready.map(|it| &it["status"]), Some(&json!("True")), "{after}");
}

#[test]
fn a_group_of_ray_counts_within_its_bounds() {
    let workers = |size: Value| {
        let mut cluster = autoscaled_cluster();
        let group = &mut cluster["spec"]["workerGroupSpecs"][0];
        for field in ["replicas", "minReplicas", "maxReplicas"] {
            group[field] = size[field].clone();
        }
        inferred(&cluster).expect("a known kind")[1].replicas
    };
    for (size, count) in [
        (json!({"replicas": 1, "minReplicas": 2, "maxReplicas": 3}), 2),
        (json!({"replicas": 4, "minReplicas": 1, "maxReplicas": 2}), 2),
        (json!({"minReplicas": 2}), 2),
        (json!({"replicas": 3}), 3),
        (json!({}), 1),
    ] {
        assert_eq!(workers(size.clone()), Some(count), "{size}");
    }
}

/// The phase and whether pods are ready, an hour after the cluster was made, with a head and so many workers.
fn autoscaled(workers: usize, was_ready: bool, cluster_status: &Value, job: bool) -> [Value; 2] {
    let (mut object, mut path) = (autoscaled_cluster(), "template.spec");
    object["status"] = cluster_status.clone();
    if job {
        object["kind"] = json!("RayJob");
        object["status"] = json!({"rayClusterStatus": cluster_status});
        object["spec"] = json!({"rayClusterSpec": object["spec"]});
        path = "template.spec.rayClusterSpec";
    }
    let mut wrapper = wrapper_in("Running", &json!([{"template": object}]));
    let group = format!("{path}.workerGroupSpecs[0].template");
    wrapper["status"]["componentStatus"] = json!([{
        "name": "c", "kind": object["kind"], "apiVersion": "ray.io/v1",
        "podSets": [
            {"replicas": 1, "path": format!("{path}.headGroupSpec.template")},
            {"replicas": 3, "path": group},
        ],
    }]);
    let conditions = wrapper["status"]["conditions"].as_array_mut().expect("conditions");
    conditions[0]["lastTransitionTime"] = json!("1969-12-31T23:00:00Z");
    let mut ready = conditions[0].clone();
    ready["type"] = json!("PodsReady");
    ready["status"] = json!(if was_ready { "True" } else { "False" });
    conditions.push(ready);
    object["metadata"]["ownerReferences"] = json!([{"uid": "u1", "controller": true}]);
    let pods = (0..=workers).map(|index| {
        let mut pod = pod(&format!("p{index}"));
        pod["metadata"]["labels"] = json!({"workload.codeflare.dev/appwrapper": "aw1"});
        pod["status"] = json!({"phase": "Running"});
        pod
    });
    let children: Vec<Value> = std::iter::once(object).chain(pods).collect();
    let after = status(&steps(&wrapper, &children, &[]));
    let conditions = after["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition["type"] == "PodsReady");
    [after["phase"].clone(), ready.map(|it| it["status"].clone()).unwrap_or_default()]
}

#[test]
fn workers_that_the_autoscaler_gave_up_are_not_missing() {
    let unknown = json!({});
    let wants = |number: i64| json!({"state": "ready", "desiredWorkerReplicas": number});
    let (ready, reset) = (json!(["Running", "True"]), json!(["Resetting", "False"]));
    for (workers, was_ready, status, expected) in [
        (3, false, &unknown, &ready),
        (2, false, &unknown, &reset),
        (2, false, &wants(2), &ready),
        (0, false, &json!({"state": "ready"}), &ready),
        (2, false, &wants(9), &reset),
        // What the autoscaler wants may be more than what is there: it gets its time.
        (1, true, &wants(3), &ready),
        (0, true, &wants(3), &reset),
    ] {
        for job in [false, true] {
            let after = autoscaled(workers, was_ready, status, job);
            assert_eq!(json!(after), *expected, "{workers} {was_ready} {status} {job}");
        }
    }
}
