//! Rules for Ray's containers and Services that no recording shows.

use jiff::Timestamp;
use ray::{
    PassInputs, cluster,
    settings::OperatorSettings,
    step::{RayAnswer, RayStep},
};
use serde_json::{Value, json};

/// A RayCluster with one group of one worker.
fn cluster() -> Value {
    let template = json!({"spec": {"containers": [{"name": "ray", "image": "ray:1"}]}});
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "c1", "namespace": "default", "uid": "u1", "generation": 1},
        "spec": {
            "rayVersion": "2.52.0",
            "headGroupSpec": {"template": template},
            "workerGroupSpecs": [{
                "groupName": "w", "replicas": 1, "minReplicas": 0, "maxReplicas": 9,
                "numOfHosts": 1, "template": template,
            }],
        },
    })
}

fn steps(cluster: &Value, settings: &OperatorSettings) -> Vec<RayStep> {
    let inputs = PassInputs { now: Timestamp::UNIX_EPOCH, seed: [1; 32] };
    cluster::decide(cluster, &[], &[], &inputs, settings)
}

fn created(cluster: &Value, kind: &str) -> Vec<Value> {
    let steps = steps(cluster, &OperatorSettings::default());
    let created = steps.into_iter().filter_map(|step| match step {
        RayStep::Create(object) if object["kind"] == kind => Some(object),
        _ => None,
    });
    created.collect()
}

fn pod(cluster: &Value, node_type: &str) -> Value {
    let is_wanted = |it: &Value| it["metadata"]["labels"]["ray.io/node-type"] == node_type;
    created(cluster, "Pod").into_iter().find(is_wanted).expect("a pod")
}

/// The end of the head's command behind `ray start --head`.
fn head_command(limits: &Value, params: &Value, resources: &Value) -> String {
    let mut cluster = cluster();
    let head = &mut cluster["spec"]["headGroupSpec"];
    head["template"]["spec"]["containers"][0]["resources"]["limits"] = limits.clone();
    head["rayStartParams"] = params.clone();
    head["resources"] = resources.clone();
    let pod = pod(&cluster, "head");
    let args = pod["spec"]["containers"][0]["args"][0].as_str().expect("a command").to_owned();
    let words = args.split_whitespace();
    let counted = ["--num-cpus", "--memory", "--num-gpus", "--resources"];
    let is_counted = |word: &&str| counted.iter().any(|name| word.starts_with(name));
    words.filter(is_counted).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_ray_counts_follows_from_the_limits_of_its_container() {
    let command = |limits: Value| head_command(&limits, &json!({}), &json!({}));
    assert_eq!(command(json!({"cpu": "0", "memory": "0"})), "");
    assert_eq!(command(json!({"nvidia.com/mig-1g.5gb": "2"})), "--num-gpus=2");
    assert_eq!(command(json!({"nvidia.com/mig-1g": "2"})), "");
    assert_eq!(command(json!({"amd.com/gpu": "0", "nvidia.com/gpu": "1"})), "--num-gpus=1");
    let accelerators = json!({"aws.amazon.com/neuroncore": "2", "google.com/tpu": "4"});
    assert_eq!(command(accelerators), r#"--resources='{"neuron_cores":2}'"#);
}

#[test]
fn accelerators_join_the_custom_resources_of_the_spec() {
    let limits = json!({"google.com/tpu": "4", "nvidia.com/gpu": "1"});
    let command = |text: &str| head_command(&limits, &json!({"resources": text}), &json!({}));
    assert_eq!(command(r#"'{"a":1}'"#), r#"--num-gpus=1 --resources='{"TPU":4,"a":1}'"#);
    assert_eq!(command(r#"'{"TPU":8}'"#), r#"--num-gpus=1 --resources='{"TPU":8}'"#);
    // Nothing is added to a text that is no JSON, as with the official operator.
    assert_eq!(command(r#""{\"a\":1}""#), r#"--resources="{\"a\":1}""#);
    // The official operator decodes amounts as floating point.
    assert_eq!(
        command(r#"'{"a":1.0,"b":0.5}'"#),
        r#"--num-gpus=1 --resources='{"TPU":4,"a":1,"b":0.5}'"#
    );
    assert_eq!(command(r#"'{"a":"x"}'"#), r#"--resources='{"a":"x"}'"#);
}

#[test]
fn options_that_need_a_value_have_it_as_it_was_written() {
    let mut cluster = cluster();
    cluster["spec"]["headGroupSpec"]["rayStartParams"] = json!({
        "include-dashboard": "true", "include-log-monitor": "False", "log-color": "True",
        "verbose": "True", "disable-usage-stats": "false",
    });
    let pod = pod(&cluster, "head");
    let container = &pod["spec"]["containers"][0];
    let args = container["args"][0].as_str().expect("a command");
    let env = container["env"].as_array().expect("variables");
    let generated = env.iter().find(|it| it["name"] == "KUBERAY_GEN_RAY_START_CMD");
    let generated = generated.and_then(|it| it["value"].as_str()).expect("the command");
    for command in [args, generated] {
        for part in
            [" --include-dashboard=true ", " --include-log-monitor=False ", " --log-color=True "]
        {
            assert!(command.contains(part), "{part} in {command}");
        }
        assert!(command.contains(" --verbose ") && !command.contains("usage-stats"), "{command}");
    }
}

#[test]
fn an_annotation_without_text_names_the_storage() {
    let mut cluster = cluster();
    cluster["metadata"]["annotations"] = json!({
        "ray.io/ft-enabled": "true", "ray.io/external-storage-namespace": "",
    });
    // Pods follow the finalizer.
    cluster["metadata"]["finalizers"] = json!([ray::names::REDIS_FINALIZER]);
    let named = |cluster: &Value| {
        let pod = pod(cluster, "head");
        pod["metadata"]["annotations"]["ray.io/external-storage-namespace"].clone()
    };
    assert_eq!(named(&cluster), "");
    cluster["metadata"]["annotations"]["ray.io/external-storage-namespace"] = Value::Null;
    assert_eq!(named(&cluster), "u1");
}

#[test]
fn resources_of_a_group_lie_over_those_of_its_container() {
    let limits = json!({"cpu": "1", "memory": "2Gi"});
    let resources = json!({"CPU": "2", "custom": "0.5", "nvidia.com/gpu": "1"});
    assert_eq!(
        head_command(&limits, &json!({}), &resources),
        r#"--memory=2147483648 --num-cpus=2 --num-gpus=1 --resources='{"custom":0.5}'"#
    );
    assert_eq!(
        head_command(&json!({}), &json!({}), &json!({"custom": "2"})),
        r#"--resources='{"custom":2}'"#
    );
}

#[test]
fn a_template_can_keep_its_command_and_the_annotation_of_the_cluster_holds_for_all() {
    let mut spec = cluster();
    let group = &mut spec["spec"]["workerGroupSpecs"][0];
    group["template"]["metadata"]["annotations"] =
        json!({"ray.io/overwrite-container-cmd": "True"});
    let command = |pod: &Value| pod["spec"]["containers"][0]["args"].clone();
    assert!(command(&pod(&spec, "worker")).is_null());
    assert!(!command(&pod(&spec, "head")).is_null());

    spec["metadata"]["annotations"] = json!({"ray.io/overwrite-container-cmd": "TRUE"});
    for node_type in ["head", "worker"] {
        let pod = pod(&spec, node_type);
        assert_eq!(pod["metadata"]["annotations"]["ray.io/overwrite-container-cmd"], "true");
        assert!(command(&pod).is_null());
    }
    spec["metadata"]["annotations"] = json!({"ray.io/overwrite-container-cmd": "false"});
    assert!(!command(&pod(&spec, "head")).is_null());
}

#[test]
fn what_a_node_is_cannot_be_overwritten() {
    let mut spec = cluster();
    spec["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["env"] = json!([
        {"name": "RAY_CLUSTER_NAME", "value": "x"}, {"name": "RAY_PORT", "value": "1"},
    ]);
    let pod = pod(&spec, "head");
    let env = pod["spec"]["containers"][0]["env"].as_array().expect("variables").clone();
    let last = |name: &str| env.iter().rev().find(|it| it["name"] == name).cloned();
    let name = last("RAY_CLUSTER_NAME").expect("the name");
    assert_eq!(name["valueFrom"]["fieldRef"]["fieldPath"], "metadata.labels['ray.io/cluster']");
    assert_eq!(last("RAY_PORT").expect("the port")["value"], "1");
}

/// How many items of a list have this name.
fn count(list: &Value, name: &str) -> usize {
    let items = list.as_array().into_iter().flatten();
    items.filter(|item| item["name"] == name).count()
}

#[test]
fn what_a_template_has_of_a_token_is_not_added_again() {
    let mut cluster = cluster();
    let spec = &mut cluster["spec"];
    spec["rayVersion"] = json!("2.55.0");
    spec["authOptions"] = json!({"mode": "token", "enableK8sTokenAuth": true});
    let own = json!({
        "containers": [{
            "name": "ray", "image": "ray:1",
            "volumeMounts": [{"name": "ray-token", "mountPath": "/own"}],
        }],
        "initContainers": [{"name": "wait-gcs-ready", "image": "own"}, {"name": "other"}],
        "volumes": [{"name": "ray-token", "emptyDir": {}}],
    });
    spec["headGroupSpec"]["template"]["spec"] = own.clone();
    spec["workerGroupSpecs"][0]["template"]["spec"] = own;
    for node in ["head", "worker"] {
        let pod = &pod(&cluster, node)["spec"];
        assert_eq!(count(&pod["volumes"], "ray-token"), 1, "{node}");
        let mounts = &pod["containers"][0]["volumeMounts"];
        assert_eq!(count(mounts, "ray-token"), 1, "{node}");
        let waiting = &pod["initContainers"];
        assert_eq!(count(waiting, "wait-gcs-ready"), 1, "{node}");
        assert_eq!(waiting[0]["image"], "own", "{node}");
        assert_eq!(count(&waiting[0]["env"], "RAY_AUTH_MODE"), 1, "{node}");
        assert_eq!(count(&waiting[0]["volumeMounts"], "ray-token"), 1, "{node}");
        assert_eq!(count(&waiting[1]["env"], "RAY_AUTH_MODE"), 0, "{node}");
    }
}

#[test]
fn workers_that_serve_are_probed_at_their_own_port() {
    let mut spec = cluster();
    spec["metadata"]["labels"] = json!({
        "ray.io/originated-from-crd": "RayService", "ray.io/originated-from-cr-name": "s",
    });
    let script = |spec: &Value| {
        let pod = pod(spec, "worker");
        pod["spec"]["containers"][0]["readinessProbe"]["exec"]["command"][2].to_string()
    };
    assert!(script(&spec).contains("localhost:8000/-/healthz"));
    spec["spec"]["workerGroupSpecs"][0]["template"]["spec"]["containers"][0]["ports"] =
        json!([{"name": "serve", "containerPort": 9000}]);
    assert!(script(&spec).contains("localhost:9000/-/healthz"));
}

#[test]
fn annotations_for_the_service_of_the_head_are_on_that_of_the_cluster() {
    let mut spec = cluster();
    spec["spec"]["headServiceAnnotations"] = json!({"a": "b"});
    assert_eq!(created(&spec, "Service")[0]["metadata"]["annotations"]["a"], "b");
}

/// The warning about an invalid spec.
fn refusal(part: &Value, gates: impl Fn(&mut OperatorSettings)) -> Option<String> {
    let mut spec = cluster();
    for (name, value) in part.as_object().expect("fields") {
        spec["spec"][name] = value.clone();
    }
    let mut settings = OperatorSettings::default();
    gates(&mut settings);
    let inputs = PassInputs { now: Timestamp::UNIX_EPOCH, seed: [1; 32] };
    let mut answers = Vec::new();
    // NetworkPolicies are made before the spec is checked.
    for _ in 0..20 {
        let steps = cluster::decide(&spec, &[], &answers, &inputs, &settings);
        let orders = steps.iter().filter(|step| step.is_order());
        let done = |step: &RayStep| match step {
            RayStep::Create(object) => RayAnswer::Done(object.clone().into()),
            _ => RayAnswer::Done(Value::Null.into()),
        };
        let before = answers.len();
        answers.extend(orders.map(done));
        if answers.len() == before {
            return steps.into_iter().find_map(|step| match step {
                RayStep::Event(event) if event.warning => Some(event.message),
                _ => None,
            });
        }
    }
    None
}

#[test]
fn storage_that_would_be_ignored_is_refused() {
    let all = |settings: &mut OperatorSettings| settings.gates.embedded_storage = true;
    let options = |options: Value| json!({"gcsFaultToleranceOptions": options});
    let refused = |part: &Value, text: &str| {
        let why = refusal(part, all).unwrap_or_default();
        assert!(why.contains(text), "{part}: {why}");
    };
    let redis = json!({"redisAddress": "r:1", "storage": {"size": "1Gi"}});
    refused(&options(redis), "only applies to the 'rocksdb' backend");
    let claim = json!({"backend": "rocksdb", "storage": {"claimName": "c", "size": "1Gi"}});
    refused(&options(claim), "is mutually exclusive with size");
    let mut mounted = options(json!({"backend": "rocksdb"}));
    assert_eq!(refusal(&mounted, all), None);
    let container = json!({
        "name": "ray", "image": "ray:1",
        "volumeMounts": [{"name": "mine", "mountPath": "/data/gcs"}],
    });
    mounted["headGroupSpec"]["template"]["spec"]["containers"] = json!([container]);
    refused(&mounted, "mounted at /data/gcs in the head container");
}

#[test]
fn a_version_decides_what_a_cluster_may_use() {
    let priority = |version: &str| {
        let mut group = cluster()["spec"]["workerGroupSpecs"][0].clone();
        group["priority"] = json!(5);
        json!({
            "rayVersion": version, "enableInTreeAutoscaling": true,
            "autoscalerOptions": {"version": "v2"}, "workerGroupSpecs": [group],
        })
    };
    let token = |version: &str| json!({"rayVersion": version, "authOptions": {"mode": "token"}});
    let none = |_: &mut OperatorSettings| {};
    for version in ["2.56.0", "v2.57", "3.0.0.dev0", "2.56.0rc1"] {
        assert_eq!(refusal(&priority(version), none), None, "{version}");
        assert_eq!(refusal(&token(version), none), None, "{version}");
    }
    for version in ["", "nightly", "2"] {
        assert!(refusal(&priority(version), none).is_some(), "{version}");
        assert!(refusal(&token(version), none).is_some(), "{version}");
    }
}

#[test]
fn fields_behind_gates_are_refused_where_they_have_no_effect() {
    let none = |_: &mut OperatorSettings| {};
    assert!(refusal(&json!({"tlsOptions": {}}), none).is_some());
    let history = |settings: &mut OperatorSettings| settings.gates.history_server = true;
    assert!(refusal(&json!({"historyServerOptions": {}}), history).is_some());

    let policies = |settings: &mut OperatorSettings| settings.gates.network_policy = true;
    let refused = |policy: Value, text: &str| {
        let why = refusal(&json!({"networkPolicy": policy}), policies).unwrap_or_default();
        assert!(why.contains(text), "{policy}: {why}");
    };
    let rules = json!([{"ports": [{"port": 1}]}]);
    refused(json!({"mode": "DenyAllEgress", "head": {"ingressRules": rules}}), "head.ingressRules");
    refused(
        json!({"mode": "DenyAllIngress", "worker": {"egressRules": rules}}),
        "worker.egressRules",
    );
    let twice = json!({"workerGroups": [{"groupName": "w"}, {"groupName": "w"}]});
    refused(twice, "is not unique");
    let allowed = json!({"networkPolicy": {"mode": "DenyAll", "head": {"ingressRules": rules}}});
    assert_eq!(refusal(&allowed, policies), None);
}
