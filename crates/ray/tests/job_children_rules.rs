//! Rules of the objects of a RayJob without a recording.

use proptest::prelude::*;
use ray::{job::JobAttempt, settings::OperatorSettings};
use serde_json::{Value, json};

fn job(spec: &Value) -> Value {
    let container = json!({"name": "ray", "image": "ray:1"});
    let mut job = json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "rj", "namespace": "ns", "uid": "u"},
        "spec": {
            "submissionMode": "K8sJobMode",
            "entrypoint": "python main.py",
            "rayClusterSpec": {"headGroupSpec": {"template": {"spec": {"containers": [container]}}}},
        },
    });
    json_patch::merge(&mut job["spec"], spec);
    job
}

/// The cluster, the submitter and the Service of a RayJob. None if a spec does not decode.
fn children(job: &Value) -> Option<[Value; 3]> {
    let spec = serde_json::from_value(job["spec"].clone()).ok()?;
    let settings = &OperatorSettings::default();
    let attempt = JobAttempt {
        job,
        spec: &spec,
        cluster_name: "rj-a",
        job_id: "rj-b",
        dashboard_url: "",
        settings,
    };
    let cluster = attempt.ray_cluster();
    let submitter = attempt.submitter_job(&cluster).ok()?;
    let service = attempt.head_service(&cluster).ok()?;
    Some([cluster, submitter, service])
}

fn script(spec: &Value) -> String {
    let [_, submitter, _] = children(&job(spec)).expect("a spec decodes");
    let script = &submitter["spec"]["template"]["spec"]["containers"][0]["args"][0];
    script.as_str().expect("a script").to_owned()
}

#[test]
fn options_are_not_expanded_by_the_shell() {
    let script = script(&json!({
        "runtimeEnvYAML": "env_vars:\n  A: \"$HOME `id` \\\"x\\\"\"\n",
        "metadata": {"k": "$(id)"},
    }));
    let env = r#"--runtime-env-json "{\"env_vars\":{\"A\":\"\$HOME \`id\` \\\"x\\\"\"}}""#;
    assert!(script.contains(env), "{script}");
    assert!(script.contains(r#"--metadata-json "{\"k\":\"\$(id)\"}""#), "{script}");
}

#[test]
fn a_submitter_reaches_the_dashboard_at_the_port_of_the_heads_service() {
    let port = json!({"name": "dashboard", "port": 80, "targetPort": 8265});
    let service = json!({"spec": {"ports": [port]}});
    let spec = json!({"rayClusterSpec": {"headGroupSpec": {"headService": service}}});
    let address = "--address http://rj-a-head-svc.ns.svc.cluster.local:80 ";
    assert!(script(&spec).contains(address), "{}", script(&spec));
    // A container beside the head does not go through the Service.
    let mut sidecar = spec;
    sidecar["submissionMode"] = json!("SidecarMode");
    let [cluster, _, _] = children(&job(&sidecar)).expect("a spec decodes");
    assert!(cluster["spec"].to_string().contains("http://127.0.0.1:8265"), "{cluster}");
}

#[test]
fn the_service_of_the_present_head_has_no_foreign_key_in_its_selector() {
    let service = json!({"spec": {"selector": {"app": "mine"}}});
    let spec = json!({"rayClusterSpec": {"headGroupSpec": {"headService": service}}});
    let [_, _, service] = children(&job(&spec)).expect("a spec decodes");
    assert_eq!(service["spec"]["selector"]["ray.io/cluster"], "rj-a");
    assert_eq!(service["spec"]["selector"]["app"], Value::Null);
}

#[test]
fn an_entrypoint_that_ends_with_a_line_break_is_one_command() {
    let script = script(&json!({"entrypoint": "\n python main.py\n"}));
    assert!(script.contains(" -- python main.py ; fi ;"), "{script}");
}

#[test]
fn options_are_written_as_the_official_operator_writes_json() {
    let of = |spec: Value| script(&spec);
    let yaml = of(json!({"runtimeEnvYAML": "pip: [\"ray>=2.0\"]\n"}));
    assert!(yaml.contains(r#"--runtime-env-json "{\"pip\":[\"ray\\u003e=2.0\"]}""#), "{yaml}");
    assert!(of(json!({"runtimeEnvYAML": "{}"})).contains(r#"--runtime-env-json "{}""#));
    let none = of(json!({"metadata": {}}));
    assert!(!none.contains("json"), "{none}");
}

#[test]
fn a_submitter_is_not_restarted_in_its_pod_by_default() {
    let template = json!({"spec": {"containers": [{"name": "s", "image": "i"}]}});
    let [_, submitter, _] =
        children(&job(&json!({"submitterPodTemplate": template}))).expect("a spec decodes");
    assert_eq!(submitter["spec"]["template"]["spec"]["restartPolicy"], "Never");
}

#[test]
fn a_default_submitter_pulls_its_image_as_the_head_does() {
    let container = json!({"name": "ray", "image": "ray:1", "imagePullPolicy": "Never"});
    let pod = json!({"containers": [container], "imagePullSecrets": [{"name": "registry"}]});
    let spec = json!({"rayClusterSpec": {"headGroupSpec": {"template": {"spec": pod}}}});
    let submitter_of = |spec: &Value| -> Value {
        let [_, submitter, _] = children(&job(spec)).expect("a spec decodes");
        submitter["spec"]["template"]["spec"].clone()
    };
    let submitter = submitter_of(&spec);
    assert_eq!(submitter["imagePullSecrets"], json!([{"name": "registry"}]));
    assert_eq!(submitter["containers"][0]["imagePullPolicy"], "Never");
    let mut sidecar = spec.clone();
    sidecar["submissionMode"] = json!("SidecarMode");
    let [cluster, _, _] = children(&job(&sidecar)).expect("a spec decodes");
    let containers = &cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"];
    assert_eq!(containers[1]["imagePullPolicy"], "Never", "the container beside the head");
    // A template of the user is left as it is.
    let mut given = spec;
    given["submitterPodTemplate"] = json!({"spec": {"containers": [{"name": "s", "image": "i"}]}});
    // Nothing is set that the head does not set.
    for spec in [given, json!({})] {
        let submitter = submitter_of(&spec);
        assert_eq!(submitter.get("imagePullSecrets"), None);
        assert_eq!(submitter["containers"][0].get("imagePullPolicy"), None);
    }
}

#[test]
fn a_submitter_has_the_token_of_kubernetes() {
    let options = json!({"mode": "token", "enableK8sTokenAuth": true});
    let [_, submitter, _] =
        children(&job(&json!({"rayClusterSpec": {"authOptions": options}}))).expect("decodes");
    let pod = &submitter["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"][0]["name"], "ray-token");
    assert_eq!(pod["containers"][0]["volumeMounts"][0]["name"], "ray-token");
}

fn odd_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!(-1)),
        Just(json!("ä: $(")),
        Just(json!([])),
        Just(json!([null, {}, 3])),
        Just(json!({})),
        Just(json!({"name": 3, "spec": {"containers": null}})),
        Just(json!({"spec": {"containers": [{"command": 3, "env": {}}]}})),
    ]
}

proptest! {
    #[test]
    fn odd_specs_never_panic(
        field in prop_oneof![
            Just("/submitterPodTemplate"),
            Just("/runtimeEnvYAML"),
            Just("/metadata"),
            Just("/rayClusterSpec"),
            Just("/rayClusterSpec/headGroupSpec"),
            Just("/rayClusterSpec/headGroupSpec/headService"),
            Just("/rayClusterSpec/headGroupSpec/template"),
            Just("/rayClusterSpec/headGroupSpec/template/spec/containers"),
            Just("/rayClusterSpec/headGroupSpec/template/spec/containers/0"),
        ],
        sidecar: bool,
        value in odd_value(),
    ) {
        let mode = if sidecar { "SidecarMode" } else { "K8sJobMode" };
        let mut job = job(&json!({
            "submissionMode": mode,
            "submitterPodTemplate": {},
            "runtimeEnvYAML": "",
            "metadata": {},
            "rayClusterSpec": {"headGroupSpec": {"headService": {}}},
        }));
        *job.pointer_mut(&format!("/spec{field}")).expect("a place") = value;
        let _ = children(&job);
    }
}
