//! What is added to RayClusters, what is refused, and which objects are written (docs/reference/ray.md §13).

use jiff::Timestamp;
use proptest::{prelude::*, test_runner::Config};
use ray::{
    Moment, cluster,
    security::{
        ClusterPlatform, SecurityConfig, SecurityFacts, SecuritySettings, mutate, validate,
    },
    settings::OperatorSettings,
    step::{RayAnswer, RayRefusal, RayStep},
};
use serde_json::{Value, json};

fn config(oauth: bool, mtls: bool) -> SecurityConfig {
    SecurityConfig {
        oauth,
        mtls,
        ingress_domain: "example.com".to_owned(),
        cert_generator_image: "certs:1".to_owned(),
        oauth_proxy_image: "proxy:1".to_owned(),
    }
}

fn settings(oauth: bool, mtls: bool, platform: ClusterPlatform) -> OperatorSettings {
    let facts = SecurityFacts {
        platform,
        operator_namespaces: vec!["ray-system".to_owned()],
        agent_namespace: "kueue-system".to_owned(),
    };
    let security = SecuritySettings { config: config(oauth, mtls), facts };
    OperatorSettings { security: Some(security), ..OperatorSettings::default() }
}

fn template() -> Value {
    json!({"spec": {"containers": [{"name": "ray", "image": "ray:1"}]}})
}

/// A cluster that is new, with one group.
fn ray_cluster() -> Value {
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "7"},
        "spec": {
            "headGroupSpec": {"template": template()},
            "workerGroupSpecs": [{
                "groupName": "g", "replicas": 1, "minReplicas": 0, "maxReplicas": 2, "numOfHosts": 1,
                "template": template(),
            }],
        },
    })
}

fn mutated(oauth: bool, mtls: bool) -> Value {
    let mut cluster = ray_cluster();
    mutate(&mut cluster, None, &config(oauth, mtls));
    cluster
}

/// A cluster that ran before it was to be secured, with bare names of its objects.
fn old_cluster() -> Value {
    let mut cluster = ray_cluster();
    cluster["status"] = json!({"state": "ready"});
    cluster
}

fn decide(
    cluster: &Value,
    children: &[Value],
    answers: &[RayAnswer],
    settings: &OperatorSettings,
) -> Vec<RayStep> {
    let moment = Moment { now: Timestamp::UNIX_EPOCH, seed: [1; 32] };
    cluster::decide(cluster, children, answers, &moment, settings)
}

/// The objects that secure a cluster, as `Kind/name`.
fn applied(steps: &[RayStep]) -> Vec<String> {
    let secured = |object: &Value| object.pointer("/metadata/labels").is_some_and(is_secured);
    let ids = steps.iter().filter_map(|step| match step {
        RayStep::Apply(object) | RayStep::CreateAuthority(object) | RayStep::Create(object) => {
            secured(object).then(|| id(object))
        }
        _ => None,
    });
    ids.collect()
}

fn is_secured(labels: &Value) -> bool {
    labels["ray.openshift.ai/cluster-name"] == "c"
}

fn id(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

fn object(steps: &[RayStep], wanted: &str) -> Value {
    let found = steps.iter().find_map(|step| match step {
        RayStep::Apply(object) | RayStep::CreateAuthority(object) | RayStep::Create(object) => {
            (id(object) == wanted).then(|| object.clone())
        }
        _ => None,
    });
    found.expect(wanted)
}

#[test]
fn a_new_cluster_is_changed_before_anything_is_made() {
    let settings = settings(true, true, ClusterPlatform::OpenShift);
    let steps = decide(&ray_cluster(), &[], &[], &settings);
    let [RayStep::Patch { target, patch }] = steps.as_slice() else {
        unreachable!("one write: {steps:?}")
    };
    assert_eq!((target.kind.as_str(), target.uid.as_str()), ("RayCluster", "u"));
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    assert_eq!(patch["metadata"]["finalizers"], json!(["ray.openshift.ai/oauth-finalizer"]));
    assert_eq!(patch["metadata"]["annotations"]["ray.openshift.ai/version"], "v1.16.0");
    let refused = RayAnswer::Refused(RayRefusal { code: 409, message: "changed".to_owned() });
    let steps = decide(&ray_cluster(), &[], &[refused], &settings);
    assert!(matches!(steps.as_slice(), [RayStep::RequeueAfter(_)]), "no pods: {steps:?}");
}

#[test]
fn the_proxy_is_added_to_the_head_only() {
    let cluster = mutated(true, false);
    let head = &cluster["spec"]["headGroupSpec"]["template"]["spec"];
    assert_eq!(head["containers"][0]["name"], "ray");
    assert_eq!(head["containers"][1]["name"], "oauth-proxy");
    let account = head["serviceAccountName"].as_str().expect("an account");
    assert!(account.starts_with("c-oauth-proxy-"), "{account}");
    let args = head["containers"][1]["args"].as_array().expect("arguments");
    assert!(args.contains(&json!(format!("--openshift-service-account={account}"))));
    let urls =
        r#"--openshift-delegate-urls={"/":{"namespace":"ns","resource":"pods","verb":"get"}}"#;
    assert!(args.contains(&json!(urls)), "{args:?}");
    assert_eq!(head["volumes"][0]["name"], "proxy-tls-secret");
    assert_eq!(cluster["spec"]["workerGroupSpecs"][0]["template"], template());
}

#[test]
fn certificates_are_added_to_all_pods() {
    let cluster = mutated(false, true);
    let head = &cluster["spec"]["headGroupSpec"]["template"]["spec"];
    let worker = &cluster["spec"]["workerGroupSpecs"][0]["template"]["spec"];
    for pod in [head, worker] {
        let env = pod["containers"][0]["env"].as_array().expect("variables");
        let names: Vec<&Value> = env.iter().map(|one| &one["name"]).collect();
        let wanted = [
            "MY_POD_IP",
            "RAY_USE_TLS",
            "RAY_TLS_SERVER_CERT",
            "RAY_TLS_SERVER_KEY",
            "RAY_TLS_CA_CERT",
        ];
        assert_eq!(names, wanted);
        assert_eq!(env[4]["value"], "/home/ray/workspace/tls/ca.crt");
        assert_eq!(pod["initContainers"][0]["name"], "create-cert");
        assert_eq!(pod["initContainers"][0]["image"], "certs:1");
        assert_eq!(pod["containers"][0]["volumeMounts"][1]["name"], "server-cert");
        let secret = pod["volumes"][0]["secret"]["secretName"].as_str().expect("a Secret");
        assert!(secret.starts_with("c-ca-secret-"), "{secret}");
        assert!(pod["serviceAccountName"].is_null());
    }
    let names = &head["initContainers"][0]["env"][1]["value"];
    let names = names.as_str().expect("names");
    assert!(names.starts_with(",DNS:c-head-svc.ns.svc,"), "{names}");
    assert!(names.ends_with("-ns.example.com"), "{names}");
    assert_eq!(worker["initContainers"][0]["env"][1]["value"], "");
}

#[test]
fn an_item_of_the_user_with_the_same_name_is_replaced() {
    let mut cluster = ray_cluster();
    let ray = &mut cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0];
    ray["env"] = json!([
        {"name": "A", "value": "b"},
        {"name": "RAY_USE_TLS", "value": "0"},
        {"name": "RAY_USE_TLS", "value": "0"},
    ]);
    mutate(&mut cluster, None, &config(false, true));
    let ray = &cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0];
    let of_name = |name: &str| -> Vec<&Value> {
        let env = ray["env"].as_array().expect("variables").iter();
        env.filter(|one| one["name"] == name).map(|one| &one["value"]).collect()
    };
    assert_eq!(of_name("A"), ["b"]);
    assert_eq!(of_name("RAY_USE_TLS"), ["1"]);
}

#[test]
fn a_cluster_that_ran_before_is_left_alone() {
    let before = old_cluster();
    let mut cluster = before.clone();
    mutate(&mut cluster, Some(&before), &config(true, true));
    assert_eq!(cluster, before);
    assert!(validate(&cluster, Some(&before), &config(true, true)).is_empty());
}

#[test]
fn what_was_added_once_stays_whatever_the_settings_say_now() {
    let mut stored = mutated(true, true);
    stored["status"] = json!({"state": "ready"});
    let newer = SecurityConfig { cert_generator_image: "certs:2".to_owned(), ..config(true, true) };
    let mut same = stored.clone();
    mutate(&mut same, Some(&stored), &newer);
    assert_eq!(same, stored);
    assert!(validate(&same, Some(&stored), &newer).is_empty());

    // Settings that are switched on are about new clusters.
    let mut encrypted = mutated(false, true);
    encrypted["status"] = json!({"state": "ready"});
    let mut same = encrypted.clone();
    mutate(&mut same, Some(&encrypted), &newer);
    assert_eq!(same, encrypted);

    // A write that drops everything, and adds a group.
    let mut dropped = ray_cluster();
    let mut further = dropped["spec"]["workerGroupSpecs"][0].clone();
    further["groupName"] = json!("h");
    dropped["spec"]["workerGroupSpecs"] =
        json!([further, ray_cluster()["spec"]["workerGroupSpecs"][0]]);
    mutate(&mut dropped, Some(&stored), &newer);
    let group = |at: usize| &dropped["spec"]["workerGroupSpecs"][at];
    assert_eq!(*group(1), stored["spec"]["workerGroupSpecs"][0]);
    assert_eq!(group(0)["template"]["spec"]["initContainers"][0]["image"], "certs:2");
    assert_eq!(dropped["spec"]["headGroupSpec"], stored["spec"]["headGroupSpec"]);
    assert!(validate(&dropped, Some(&stored), &newer).is_empty());
}

#[test]
fn an_annotation_of_the_user_keeps_no_container_of_the_user() {
    let mut cluster = ray_cluster();
    cluster["metadata"]["annotations"] = json!({"ray.openshift.ai/version": "mine"});
    let containers = &mut cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"];
    *containers = json!([{"name": "ray"}, {"name": "oauth-proxy", "image": "mine"}]);
    mutate(&mut cluster, None, &config(true, false));
    let head = &cluster["spec"]["headGroupSpec"]["template"]["spec"];
    assert_eq!(head["containers"][1]["image"], "proxy:1");
    assert_eq!(cluster["metadata"]["annotations"]["ray.openshift.ai/version"], "mine");
}

#[test]
fn a_plain_cluster_without_oauth_gets_policies_a_ca_and_ingresses() {
    let settings = settings(false, true, ClusterPlatform::Kubernetes);
    let cluster = old_cluster();
    let steps = decide(&cluster, &[], &[], &settings);
    assert_eq!(
        applied(&steps),
        [
            "NetworkPolicy/c-head",
            "NetworkPolicy/c-workers",
            "Secret/ca-secret-c",
            "Ingress/ray-dashboard-c",
            "Ingress/rayclient-c",
        ]
    );
    let dashboard = object(&steps, "Ingress/ray-dashboard-c");
    let rule = &dashboard["spec"]["rules"][0];
    assert_eq!(rule["host"], "ray-dashboard-c-ns.example.com");
    let path = &rule["http"]["paths"][0];
    assert_eq!((&path["path"], &path["pathType"]), (&json!("/"), &json!("Prefix")));
    let backend = json!({"service": {"name": "c-head-svc", "port": {"name": "dashboard"}}});
    assert_eq!(path["backend"], backend);
    let client = object(&steps, "Ingress/rayclient-c");
    assert_eq!(client["spec"]["ingressClassName"], "nginx");
    let port = &client["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["port"];
    assert_eq!(*port, json!({"number": 10001}));
    let owner = &client["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["uid"]), (&json!("RayCluster"), &json!("u")));
}

#[test]
fn only_pods_of_the_cluster_reach_workers() {
    let settings = settings(false, false, ClusterPlatform::Kubernetes);
    let steps = decide(&old_cluster(), &[], &[], &settings);
    let workers = object(&steps, "NetworkPolicy/c-workers");
    let own = json!([{"podSelector": {"matchLabels": {"ray.io/cluster": "c"}}}]);
    assert_eq!(workers["spec"]["ingress"], json!([{"from": own}]));
    let labels = json!({"ray.io/cluster": "c", "ray.io/node-type": "worker"});
    assert_eq!(workers["spec"]["podSelector"]["matchLabels"], labels);
    let head = object(&steps, "NetworkPolicy/c-head");
    let rules = head["spec"]["ingress"].as_array().expect("rules");
    assert_eq!(rules[0], json!({"from": own}));
    let ports = |rule: &Value| -> Vec<u64> {
        let ports = rule["ports"].as_array().expect("ports").iter();
        ports.filter_map(|port| port["port"].as_u64()).collect()
    };
    assert_eq!(ports(&rules[1]), [10001, 8265]);
    assert_eq!(ports(&rules[2]), [8265, 10001]);
    assert_eq!(ports(&rules[3]), [8080]);
    assert_eq!(ports(&rules[4]), [8443]);
    assert!(rules[4]["from"].is_null(), "from anywhere");
    let steps = {
        let settings = self::settings(false, true, ClusterPlatform::Kubernetes);
        decide(&old_cluster(), &[], &[], &settings)
    };
    let encrypted = object(&steps, "NetworkPolicy/c-head");
    assert_eq!(ports(&encrypted["spec"]["ingress"][4]), [8443, 10001]);
}

/// The steps about a cluster on OpenShift that has its finalizer.
fn on_openshift(mut change: impl FnMut(&mut Value), children: &[Value]) -> Vec<RayStep> {
    let settings = settings(true, false, ClusterPlatform::OpenShift);
    let mut cluster = old_cluster();
    cluster["metadata"]["finalizers"] = json!(["ray.openshift.ai/oauth-finalizer"]);
    change(&mut cluster);
    decide(&cluster, children, &[], &settings)
}

#[test]
fn openshift_gets_routes_and_the_access_of_the_proxy() {
    let steps = on_openshift(|_| (), &[]);
    assert_eq!(
        applied(&steps),
        [
            "NetworkPolicy/c-head",
            "NetworkPolicy/c-workers",
            "ServiceAccount/c-oauth-proxy",
            "Secret/c-oauth-config",
            "Service/c-oauth",
            "ClusterRoleBinding/c-ns-auth",
            "Route/ray-dashboard-c",
            "Route/rayclient-c",
        ]
    );
    let route = object(&steps, "Route/ray-dashboard-c");
    assert_eq!(
        route["spec"],
        json!({
            "to": {"kind": "Service", "name": "c-oauth"},
            "port": {"targetPort": "oauth-proxy"},
            "tls": {"termination": "reencrypt", "insecureEdgeTerminationPolicy": "Redirect"},
        })
    );
    let client = object(&steps, "Route/rayclient-c");
    assert_eq!(client["spec"]["tls"], json!({"termination": "passthrough"}));
    assert_eq!(client["spec"]["to"]["name"], "c-head-svc");
    let service = object(&steps, "Service/c-oauth");
    let annotation = "service.beta.openshift.io/serving-cert-secret-name";
    assert_eq!(service["metadata"]["annotations"][annotation], "c-proxy-tls-secret");
    assert_eq!(service["spec"]["ports"][0]["port"], 443);
    let account = object(&steps, "ServiceAccount/c-oauth-proxy");
    let annotation = "serviceaccounts.openshift.io/oauth-redirectreference.first";
    let reference = account["metadata"]["annotations"][annotation].as_str().expect("a reference");
    let reference: Value = serde_json::from_str(reference).expect("JSON");
    assert_eq!(reference["reference"], json!({"kind": "Route", "name": "ray-dashboard-c"}));
    let binding = object(&steps, "ClusterRoleBinding/c-ns-auth");
    assert!(binding["metadata"]["namespace"].is_null());
    assert_eq!(binding["roleRef"]["name"], "system:auth-delegator");
    assert_eq!(binding["subjects"][0]["name"], "c-oauth-proxy");
    let cookie = &object(&steps, "Secret/c-oauth-config")["stringData"]["cookie_secret"];
    assert_eq!(cookie.as_str().map(str::len), Some(28), "base64 of a SHA-1");
}

#[test]
fn neither_ingress_nor_route_where_oauth_and_platform_do_not_fit() {
    for (oauth, platform) in
        [(true, ClusterPlatform::Kubernetes), (false, ClusterPlatform::OpenShift)]
    {
        let settings = settings(oauth, false, platform);
        let steps = decide(&old_cluster(), &[], &[], &settings);
        let policies = ["NetworkPolicy/c-head", "NetworkPolicy/c-workers"];
        assert_eq!(applied(&steps), policies, "{oauth} {platform:?}");
    }
}

#[test]
fn a_suspended_cluster_has_policies_only() {
    let steps = on_openshift(|cluster| cluster["status"]["state"] = json!("suspended"), &[]);
    assert_eq!(applied(&steps), ["NetworkPolicy/c-head", "NetworkPolicy/c-workers"]);
}

#[test]
fn a_cluster_at_rest_costs_no_write() {
    let stored = |mut object: Value| {
        object["metadata"]["uid"] = json!("x");
        // A default of the API server.
        if object["kind"] == "Service" {
            object["spec"]["ports"][0]["nodePort"] = json!(30_000);
        }
        object
    };
    let steps = on_openshift(|_| (), &[]);
    let mut children: Vec<Value> =
        applied(&steps).iter().map(|id| stored(object(&steps, id))).collect();
    assert!(applied(&on_openshift(|_| (), &children)).is_empty());
    children[0]["spec"]["ingress"] = json!([{}]);
    let steps = on_openshift(|_| (), &children);
    assert_eq!(applied(&steps), ["NetworkPolicy/c-head"], "a policy that was opened is closed");
}

#[test]
fn a_secret_of_another_program_gets_the_label_and_keeps_its_content() {
    let settings = settings(false, true, ClusterPlatform::Kubernetes);
    let cluster = old_cluster();
    let done = RayAnswer::Done(json!({}));
    let exists = RayAnswer::Refused(RayRefusal { code: 409, message: "exists".to_owned() });
    let steps = decide(&cluster, &[], &[done.clone(), done, exists], &settings);
    let secret = object(&steps, "Secret/ca-secret-c");
    assert_eq!(secret["metadata"]["labels"]["ray.io/cluster"], "c");
    assert!(secret.get("stringData").is_none() && secret.get("type").is_none());
}

#[test]
fn a_policy_that_is_refused_keeps_pods_back() {
    let settings = settings(false, false, ClusterPlatform::Kubernetes);
    let refused = RayAnswer::Refused(RayRefusal { code: 403, message: "no right".to_owned() });
    let done = RayAnswer::Done(json!({}));
    let answers = [refused, done.clone(), done.clone(), done];
    let steps = decide(&old_cluster(), &[], &answers, &settings);
    let made = |kind: &str| {
        steps.iter().any(|step| matches!(step, RayStep::Create(it) if it["kind"] == kind))
    };
    assert!(!made("Pod") && !made("Service"), "{steps:?}");
    let message = steps.iter().find_map(|step| match step {
        RayStep::Event(event) => Some(event.message.clone()),
        _ => None,
    });
    assert_eq!(message.as_deref(), Some("cannot write NetworkPolicy c-head: no right"));
}

#[test]
fn a_head_without_the_secrets_of_its_account_is_made_again() {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "c-oauth-proxy", "labels": {"ray.io/cluster": "c"}},
        "imagePullSecrets": [{"name": "pull"}],
    });
    let head = |secrets: Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "c-head-1", "uid": "p",
                "labels": {"ray.io/cluster": "c", "ray.io/node-type": "head"},
                "ownerReferences": [{"kind": "RayCluster", "uid": "u", "controller": true}],
            },
            "spec": {"serviceAccountName": "c-oauth-proxy", "imagePullSecrets": secrets},
        })
    };
    let deletes = |secrets: Value| {
        let steps = on_openshift(|_| (), &[account.clone(), head(secrets)]);
        steps.iter().any(|step| matches!(step, RayStep::Delete(it) if it.uid == "p"))
    };
    assert!(deletes(json!(null)) && !deletes(json!([{"name": "pull"}])));
}

#[test]
fn the_binding_goes_before_the_finalizer() {
    let binding = |namespace: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "c-ns-auth", "uid": namespace, "labels": {
                "ray.openshift.ai/cluster-name": "c",
                "ray.openshift.ai/cluster-namespace": namespace,
            }},
        })
    };
    let going =
        |cluster: &mut Value| cluster["metadata"]["deletionTimestamp"] = json!("2026-01-01");
    let steps = on_openshift(going, &[binding("ns"), binding("other")]);
    let [RayStep::Delete(target), RayStep::Patch { patch, .. }] = steps.as_slice() else {
        unreachable!("two writes: {steps:?}")
    };
    assert_eq!((target.kind.as_str(), target.uid.as_str()), ("ClusterRoleBinding", "ns"));
    assert_eq!(patch["metadata"]["finalizers"], json!([]));

    let mut cluster = old_cluster();
    cluster["metadata"]["finalizers"] = json!(["ray.openshift.ai/oauth-finalizer"]);
    going(&mut cluster);
    let refused = RayAnswer::Refused(RayRefusal { code: 403, message: "no right".to_owned() });
    let settings = settings(true, false, ClusterPlatform::OpenShift);
    let steps = decide(&cluster, &[binding("ns")], &[refused], &settings);
    let keeps = !steps.iter().any(RayStep::is_order);
    assert!(keeps, "the finalizer stays while the binding does: {steps:?}");
}

#[test]
fn refusals_have_the_words_of_codeflare() {
    let config = config(true, true);
    let mut good = mutated(true, true);
    good["status"] = json!({"state": "ready"});
    assert!(validate(&good, Some(&good), &config).is_empty());
    let head = "/spec/headGroupSpec/template/spec";
    let group = "/spec/workerGroupSpecs/0/template/spec";
    let table = [
        (
            "/spec/headGroupSpec/enableIngress".to_owned(),
            json!(true),
            "spec.headGroupSpec.enableIngress: Invalid value: true: RayCluster with enableIngress set to true is not allowed",
        ),
        (format!("{head}/containers/1/image"), json!("mine"), "OAuth Proxy container is immutable"),
        (
            format!("{head}/volumes/0/secret/secretName"),
            json!("mine"),
            "OAuth Proxy TLS Secret volume is immutable",
        ),
        (
            format!("{head}/serviceAccountName"),
            json!("mine"),
            "spec.headGroupSpec.template.spec.serviceAccountName: Invalid value: \"mine\": RayCluster head group service account is immutable",
        ),
        (
            format!("{head}/initContainers/0/image"),
            json!("mine"),
            "create-cert Init Container is immutable",
        ),
        (format!("{group}/initContainers"), json!([]), "create-cert Init Container is immutable"),
        (
            format!("{group}/containers/0/env/1/value"),
            json!("0"),
            "RAY_TLS related environment variables are immutable",
        ),
        (
            format!("{group}/volumes"),
            json!([]),
            "spec.workerGroupSpecs.0.template.spec.volumes: Invalid value: null: ca-vol and server-cert Secret volumes are immutable",
        ),
    ];
    for (pointer, value, words) in table {
        let mut changed = good.clone();
        match changed.pointer_mut(&pointer) {
            Some(field) => *field = value,
            None => changed["spec"]["headGroupSpec"]["enableIngress"] = value,
        }
        let errors = validate(&changed, Some(&good), &config);
        let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert!(text.iter().any(|error| error.contains(words)), "{words}: {text:?}");
        changed["metadata"]["deletionTimestamp"] = json!("2026-01-01");
        assert!(validate(&changed, Some(&good), &config).is_empty(), "{words}");
    }
}

#[test]
fn a_new_cluster_without_a_name_is_refused() {
    let mut cluster = ray_cluster();
    cluster["metadata"] = json!({"generateName": "c-", "namespace": "ns"});
    let before = cluster.clone();
    mutate(&mut cluster, None, &config(true, true));
    assert_eq!(cluster, before);
    let errors = validate(&cluster, None, &config(true, true));
    assert!(errors[0].to_string().starts_with("metadata.name: Required value"), "{errors:?}");
}

#[test]
fn a_secured_cluster_with_an_ingress_of_its_own_is_not_run() {
    let settings = settings(false, false, ClusterPlatform::Kubernetes);
    let mut cluster = old_cluster();
    cluster["spec"]["headGroupSpec"]["enableIngress"] = json!(true);
    let done = RayAnswer::Done(json!({}));
    let steps = decide(&cluster, &[], &vec![done; 4], &settings);
    let words = "RayCluster with enableIngress set to true is not allowed";
    let refused = steps.iter().any(|step| {
        matches!(step, RayStep::Event(event) if event.warning && event.message.contains(words))
    });
    assert!(refused && !steps.iter().any(RayStep::is_order), "{steps:?}");
}

#[test]
fn nothing_is_added_unless_an_administrator_asks_for_it() {
    let steps = decide(&ray_cluster(), &[], &[], &OperatorSettings::default());
    assert!(applied(&steps).is_empty());
    assert!(!steps.iter().any(|step| matches!(step, RayStep::Patch { .. })));
}

/// JSON of any shape, with names that the mutation meets.
fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("name"),
        Just("env"),
        Just("volumes"),
        Just("containers"),
        Just("initContainers"),
        Just("volumeMounts"),
        Just("serviceAccountName"),
        Just("x"),
    ];
    let text = prop_oneof![
        Just("create-cert"),
        Just("ca-vol"),
        Just("oauth-proxy"),
        Just("RAY_USE_TLS"),
        Just(""),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let fields = prop::collection::vec((key.clone(), inner.clone()), 0..4);
        let object = fields.prop_map(|fields| {
            fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Value>()
        });
        prop_oneof![prop::collection::vec(inner, 0..4).prop_map(Value::from), object]
    })
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_second_mutation_changes_nothing(
        head in any_json(),
        groups in any_json(),
        metadata in any_json(),
        (oauth, mtls) in any::<(bool, bool)>(),
    ) {
        let (config, mut cluster) = (config(oauth, mtls), ray_cluster());
        cluster["spec"]["headGroupSpec"]["template"]["spec"] = head;
        cluster["spec"]["workerGroupSpecs"] = match groups {
            Value::Array(all) => {
                all.into_iter().map(|spec| json!({"template": {"spec": spec}})).collect()
            }
            other => other,
        };
        cluster["metadata"]["annotations"] = metadata;
        mutate(&mut cluster, None, &config);
        let once = cluster.clone();
        mutate(&mut cluster, None, &config);
        prop_assert_eq!(&cluster, &once);
        mutate(&mut cluster, Some(&once), &config);
        prop_assert_eq!(&cluster, &once);
        let errors = validate(&once, Some(&once), &config);
        let unmade = |error: &&crds::validation::FieldError| !error.to_string().contains("RAY_TLS");
        // A pod without containers has no variables; the operator refuses it.
        prop_assert_eq!(errors.iter().filter(unmade).count(), 0);
    }

    #[test]
    fn no_object_makes_the_mutation_panic(mut object in any_json(), (oauth, mtls) in any::<(bool, bool)>()) {
        let config = config(oauth, mtls);
        mutate(&mut object, None, &config);
        let old = object.clone();
        mutate(&mut object, Some(&old), &config);
        let _ = validate(&object, None, &config);
        let _ = validate(&object, Some(&Value::Null), &config);
    }
}
