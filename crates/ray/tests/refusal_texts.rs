//! The texts with which the official operator refuses a spec, where no recording shows them.

use jiff::Timestamp;
use ray::{
    PassInputs, cluster, job, service,
    settings::OperatorSettings,
    step::{RayAnswer, RayStep},
};
use serde_json::{Value, json};

/// A cluster with one group, `w`, and these fields. Parts are merged, lists are replaced.
fn cluster_with(part: &Value) -> Value {
    let template = json!({"spec": {"containers": [{"name": "ray", "image": "ray:1"}]}});
    let group = json!({
        "groupName": "w", "replicas": 1, "minReplicas": 0, "maxReplicas": 1, "numOfHosts": 1,
        "template": template,
    });
    let mut spec = json!({"headGroupSpec": {"template": template}, "workerGroupSpecs": [group]});
    json_patch::merge(&mut spec, part);
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "c1", "namespace": "ns", "uid": "u", "generation": 1},
        "spec": spec,
    })
}

/// The part of a spec with a group that has these fields, beside other parts.
fn group_with(fields: &Value, more: &Value) -> Value {
    let mut group = cluster_with(&json!({}))["spec"]["workerGroupSpecs"][0].clone();
    json_patch::merge(&mut group, fields);
    let mut part = json!({"workerGroupSpecs": [group]});
    json_patch::merge(&mut part, more);
    part
}

/// The part of a spec with a head that has these fields in its container and pod.
fn head_with(container: &Value, pod: &Value, more: &Value) -> Value {
    let mut ray = json!({"name": "ray", "image": "ray:1"});
    json_patch::merge(&mut ray, container);
    let mut template = json!({"spec": {"containers": [ray]}});
    json_patch::merge(&mut template["spec"], pod);
    let mut part = json!({"headGroupSpec": {"template": template}});
    json_patch::merge(&mut part, more);
    part
}

fn all_gates(mut settings: OperatorSettings) -> OperatorSettings {
    settings.gates.network_policy = true;
    settings.gates.embedded_storage = true;
    settings.gates.history_server = true;
    settings
}

/// The warning about a spec, without its beginning.
fn refusal(part: &Value, settings: &OperatorSettings) -> String {
    let spec = cluster_with(part);
    let inputs = PassInputs { now: Timestamp::UNIX_EPOCH, seed: [1; 32] };
    let mut answers = Vec::new();
    loop {
        let steps = cluster::decide(&spec, &[], &answers, &inputs, settings);
        if !steps.iter().any(RayStep::is_order) {
            let warning = steps.into_iter().find_map(|step| match step {
                RayStep::Event(event) if event.warning => Some(event.message),
                _ => None,
            });
            let warning = warning.unwrap_or_default();
            let begin = "The RayCluster spec is invalid ns/c1: ";
            return warning.strip_prefix(begin).unwrap_or(&warning).to_owned();
        }
        answers.extend(steps.iter().filter(|step| step.is_order()).map(|step| match step {
            RayStep::Create(object) => RayAnswer::Done(object.clone().into()),
            _ => RayAnswer::Done(Value::Null.into()),
        }));
    }
}

fn check(settings: &OperatorSettings, table: &[(Value, &str)]) {
    for (part, expected) in table {
        assert_eq!(refusal(part, settings), *expected, "{part}");
    }
}

#[test]
fn versions_that_a_field_needs_are_named() {
    let token = |version: &str| json!({"rayVersion": version, "authOptions": {"mode": "token"}});
    let v2 = |version: &str| {
        json!({
            "rayVersion": version, "enableInTreeAutoscaling": true,
            "autoscalerOptions": {"version": "v2"},
        })
    };
    let priority = |more: &Value| group_with(&json!({"priority": 5}), more);
    check(
        &OperatorSettings::default(),
        &[
            (
                token(""),
                "authOptions.mode is 'token' but RayVersion was not specified. Ray version 2.52.0 or later is required",
            ),
            (
                token("2"),
                "authOptions.mode is 'token' but RayVersion format is invalid: 2, illegal version string \"2\"",
            ),
            (
                priority(&v2("")),
                "worker group w: priority is set, but RayVersion was not specified. Ray version 2.56.0 or later is required",
            ),
            (
                priority(&v2("nightly")),
                "worker group w: priority is set, but RayVersion format is invalid: nightly, could not parse \"nightly\" as version",
            ),
            (
                priority(&json!({"rayVersion": "2.56.0", "enableInTreeAutoscaling": true})),
                "worker group w: priority is set to 5, but autoscaler v2 is not enabled. Priority is only supported with autoscaler v2 enabled",
            ),
        ],
    );
}

/// A cluster keeps its pods when autoscaling is switched off, and one that chooses by the variable of its head keeps its policies.
#[test]
fn fields_of_the_second_autoscaler_do_not_depend_on_autoscaling() {
    let fields = json!({"idleTimeoutSeconds": 60, "priority": 5});
    let options = json!({"rayVersion": "2.56.0", "autoscalerOptions": {"version": "v2"}});
    let variable = json!({"env": [{"name": "RAY_enable_autoscaler_v2", "value": "true"}]});
    let always = json!({"restartPolicy": "Always"});
    let scaled = json!({"rayVersion": "2.56.0", "enableInTreeAutoscaling": true});
    let by_variable = head_with(&variable, &always, &group_with(&fields, &scaled));
    check(&OperatorSettings::default(), &[(group_with(&fields, &options), ""), (by_variable, "")]);
}

#[test]
fn fields_of_the_autoscaler_are_refused_in_its_words() {
    let variable = json!({"env": [{"name": "RAY_enable_autoscaler_v2", "value": "1"}]});
    let managed = json!([{"name": "KUBERAY_GEN_AUTOSCALER_START_CMD", "value": "x"}]);
    check(
        &OperatorSettings::default(),
        &[
            (
                head_with(&variable, &json!({}), &json!({})),
                "environment variable RAY_enable_autoscaler_v2 cannot be set to '1' when enableInTreeAutoscaling is false. Please set enableInTreeAutoscaling: true to use autoscaler v2",
            ),
            (
                json!({"autoscalerOptions": {"env": managed}}),
                "autoscalerOptions.env must not contain KUBERAY_GEN_AUTOSCALER_START_CMD: it is managed by KubeRay and injected automatically into the autoscaler container",
            ),
            (
                group_with(&json!({"minReplicas": null}), &json!({})),
                "worker group w must set both minReplicas and maxReplicas when autoscaling is disabled",
            ),
        ],
    );
}

#[test]
fn fields_behind_gates_name_their_gate() {
    let mut settings = OperatorSettings::default();
    settings.gates.deletion_policy = false;
    check(
        &settings,
        &[
            (
                group_with(&json!({"suspend": true}), &json!({})),
                "worker group w can be suspended only when the RayJobDeletionPolicy feature gate is enabled",
            ),
            (
                json!({"networkPolicy": {}}),
                "spec.networkPolicy requires the RayClusterNetworkPolicy feature gate to be enabled",
            ),
            (
                json!({"gcsFaultToleranceOptions": {"backend": "rocksdb"}}),
                "the embedded RocksDB GCS fault tolerance backend (GcsFaultToleranceOptions.Backend: 'rocksdb') requires the GCSFaultToleranceEmbeddedStorage feature gate to be enabled",
            ),
        ],
    );
    check(
        &all_gates(settings),
        &[
            (
                json!({"historyServerOptions": {}}),
                "historyServerOptions.collectorOptions must be set",
            ),
            (
                json!({"historyServerOptions": {"collectorOptions": {}}}),
                "historyServerOptions.collectorOptions.image must be set",
            ),
        ],
    );
}

#[test]
fn a_collector_without_a_place_for_its_files_is_refused() {
    let collector = |env: Value| {
        let options = json!({"image": "c:1", "env": env});
        json!({"historyServerOptions": {"collectorOptions": options}})
    };
    let variable = |name: &str, value: &str| json!({"name": name, "value": value});
    let s3 = json!([variable("STORAGE_BACKEND", "s3"), variable("S3_REGION", "x")]);
    let azure = |mode: &str| {
        json!([variable("STORAGE_BACKEND", "azureblob"), variable("AZURE_STORAGE_AUTH_MODE", mode)])
    };
    let twice = json!([
        variable("STORAGE_BACKEND", "s3"),
        variable("S3_REGION", "x"),
        variable("GCS_BUCKET", "x"),
        variable("STORAGE_BACKEND", "gcs"),
        variable("GCS_BUCKET", ""),
    ]);
    let container = json!({"containers": [{"name": "ray"}, {"name": "ray-history-collector"}]});
    check(
        &all_gates(OperatorSettings::default()),
        &[
            (
                collector(json!([variable("RAY_ROLE", "x")])),
                "historyServerOptions.collectorOptions.env must not contain RAY_ROLE: it is managed by KubeRay and injected automatically into the collector container",
            ),
            (
                collector(json!([variable("STORAGE_BACKEND", "gcs")])),
                "GCS_BUCKET environment variable must be set when STORAGE_BACKEND is GCS",
            ),
            (
                collector(json!([variable("STORAGE_BACKEND", "aliyunoss")])),
                "OSS_REGION environment variable must be set when STORAGE_BACKEND is ALIYUNOSS",
            ),
            (
                collector(azure("")),
                "either AZURE_STORAGE_CONNECTION_STRING or AZURE_STORAGE_ACCOUNT_URL environment variable must be set when STORAGE_BACKEND is AZUREBLOB",
            ),
            (
                collector(azure("connection_string")),
                "AZURE_STORAGE_CONNECTION_STRING environment variable must be set when STORAGE_BACKEND is AZUREBLOB and AZURE_STORAGE_AUTH_MODE is connection_string",
            ),
            (
                collector(azure("workload_identity")),
                "AZURE_STORAGE_ACCOUNT_URL environment variable must be set when STORAGE_BACKEND is AZUREBLOB and AZURE_STORAGE_AUTH_MODE is workload_identity",
            ),
            (
                collector(azure(" Default ")),
                "AZURE_STORAGE_ACCOUNT_URL environment variable must be set when STORAGE_BACKEND is AZUREBLOB and AZURE_STORAGE_AUTH_MODE is default",
            ),
            (
                collector(twice),
                "GCS_BUCKET environment variable must be set when STORAGE_BACKEND is GCS",
            ),
            (
                head_with(&json!({}), &container, &collector(s3)),
                "head pod template must not define a container with name 'ray-history-collector' when history server collector options are enabled",
            ),
        ],
    );
}

#[test]
fn rules_that_a_network_policy_would_ignore_are_refused_before_its_groups() {
    let rules = json!([{"ports": [{"port": 1}]}]);
    let policy = |policy: Value| json!({"networkPolicy": policy});
    let unknown = json!([{"groupName": "g", "egressRules": rules}]);
    let egress = "cannot be set when mode is \"DenyAllIngress\" (egress is not restricted)";
    let ingress = "cannot be set when mode is \"DenyAllEgress\" (ingress is not restricted)";
    let odd = json!({
        "networkPolicy": {"mode": "DenyAllEgress", "head": {"ingressRules": rules}},
    });
    let table = [
        (
            policy(json!({"mode": "DenyAllEgress", "head": {"ingressRules": rules}})),
            format!("networkPolicy.head.ingressRules {ingress}"),
        ),
        (
            policy(json!({"mode": "DenyAllIngress", "worker": {"egressRules": rules}})),
            format!("networkPolicy.worker.egressRules {egress}"),
        ),
        (
            policy(json!({"mode": "DenyAllIngress", "workerGroups": unknown})),
            format!("networkPolicy.workerGroups[\"g\"].egressRules {egress}"),
        ),
        (
            group_with(&json!({"groupName": "A"}), &odd),
            format!("networkPolicy.head.ingressRules {ingress}"),
        ),
        (
            group_with(&json!({"groupName": "A"}), &policy(json!({}))),
            "worker group name \"A\" must be a valid DNS1123 label when networkPolicy is enabled (it is embedded in the NetworkPolicy name): [a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')]".to_owned(),
        ),
        (
            group_with(&json!({"groupName": "a.b"}), &policy(json!({}))),
            "worker group name \"a.b\" must be a valid DNS1123 label when networkPolicy is enabled (it is embedded in the NetworkPolicy name): [must not contain dots]".to_owned(),
        ),
    ];
    let settings = all_gates(OperatorSettings::default());
    for (part, expected) in table {
        assert_eq!(refusal(&part, &settings), expected, "{part}");
    }
}

#[test]
fn storage_is_refused_in_the_words_of_the_official_operator() {
    let storage = |options: &Value| json!({"gcsFaultToleranceOptions": options});
    let claim = json!({"backend": "rocksdb", "storage": {"claimName": "c", "size": "1Gi"}});
    let mounts = json!({"volumeMounts": [{"name": "mine", "mountPath": "/data/gcs"}]});
    check(
        &all_gates(OperatorSettings::default()),
        &[
            (
                storage(&claim),
                "GcsFaultToleranceOptions.Storage.ClaimName is mutually exclusive with size, storageClassName, and accessModes",
            ),
            (
                head_with(&mounts, &json!({}), &storage(&json!({"backend": "rocksdb"}))),
                "cannot set a volume mount named \"gcs-storage\" or mounted at /data/gcs in the head container when the embedded GCS FT backend is used - it is managed by KubeRay",
            ),
            (
                storage(&json!({"redisAddress": "r:1", "storage": {"size": "1Gi"}})),
                "cannot set GcsFaultToleranceOptions.Storage when backend is 'redis' - it only applies to the 'rocksdb' backend",
            ),
        ],
    );
}

#[test]
fn the_first_of_several_faults_is_that_of_the_official_operator() {
    let labels = json!({"labels": {"a b": "c d", "e": "f g"}});
    let text = refusal(&group_with(&labels, &json!({})), &OperatorSettings::default());
    assert!(text.starts_with("invalid label key for w group: 'a b', error: name part "), "{text}");
    assert!(text.contains("; invalid label value for key 'a b' in w group: 'c d', error: "));
    assert!(text.contains("; invalid label value for key 'e' in w group: 'f g', error: "));

    let empty = json!({"rayStartParams": {"num-cpus": ""}, "resources": {"CPU": "1"}});
    assert_eq!(refusal(&group_with(&empty, &json!({})), &OperatorSettings::default()), "");

    // A group is checked as a whole before the storage of the head.
    let old = json!({"rayVersion": "2.52.0", "enableInTreeAutoscaling": true, "gcsFaultToleranceOptions": {"redisAddress": "r:1"}});
    let both = head_with(
        &json!({"env": [{"name": "REDIS_PASSWORD", "value": "x"}]}),
        &json!({}),
        &group_with(&json!({"priority": 1}), &old),
    );
    assert_eq!(
        refusal(&both, &OperatorSettings::default()),
        "worker group w: priority is set, but minimum Ray version is 2.56.0, got 2.52.0"
    );
    // A suspended group of an autoscaled cluster is refused after the storage.
    let fault = json!({"env": [{"name": "REDIS_USERNAME", "value": "x"}]});
    let suspended =
        group_with(&json!({"suspend": true}), &json!({"enableInTreeAutoscaling": true}));
    assert_eq!(
        refusal(&head_with(&fault, &json!({}), &suspended), &OperatorSettings::default()),
        "cannot set redis username in rayStartParams or environment variables - use GcsFaultToleranceOptions.RedisUsername instead"
    );
}

fn job_refusal(spec: &Value) -> String {
    let mut whole = json!({
        "entrypoint": "x", "submissionMode": "K8sJobMode",
        "rayClusterSpec": cluster_with(&json!({}))["spec"],
    });
    json_patch::merge(&mut whole, spec);
    let job = json!({"kind": "RayJob", "metadata": {"name": "rj"}, "spec": whole});
    let spec = serde_json::from_value(whole).expect("a spec decodes");
    let found = job::check_job(&job, &spec, &OperatorSettings::default());
    found.err().map(|error| error.message).unwrap_or_default()
}

#[test]
fn ray_jobs_are_refused_in_the_words_of_the_official_operator() {
    let selector = json!({"ray.io/cluster": "c"});
    let policies = |success: &str, failure: &str| json!({"onSuccess": {"policy": success}, "onFailure": {"policy": failure}});
    let scaled = json!({"enableInTreeAutoscaling": true});
    let no_policy = "The RayJob spec is invalid: DeletionStrategy requires either BOTH onSuccess and onFailure, OR the deletionRules field (cannot be empty)";
    let auth = json!({"mode": "token", "enableK8sTokenAuth": true});
    let table = [
        (
            json!({"clusterSelector": selector, "backoffLimit": 1}),
            "The RayJob spec is invalid: BackoffLimit is incompatible with ClusterSelector mode",
        ),
        (
            json!({"clusterSelector": {"a": "b"}, "backoffLimit": 1}),
            "cluster name in ClusterSelector should not be empty",
        ),
        (
            json!({"clusterSelector": selector, "deletionStrategy": policies("DeleteNone", "DeleteCluster")}),
            "the ClusterSelector mode doesn't support DeletionStrategy=DeleteCluster on failure",
        ),
        (
            json!({"clusterSelector": selector, "deletionStrategy": policies("DeleteWorkers", "DeleteCluster")}),
            "the ClusterSelector mode doesn't support DeletionStrategy=DeleteWorkers on success",
        ),
        (
            json!({"rayClusterSpec": scaled, "deletionStrategy": policies("DeleteCluster", "DeleteWorkers")}),
            "DeletionStrategy=DeleteWorkers currently does not support RayCluster with autoscaling enabled",
        ),
        (
            json!({"deletionStrategy": {"onSuccess": {"policy": "DeleteSelf"}, "onFailure": {}}}),
            "the DeletionPolicyType field of DeletionStrategy.OnFailure cannot be unset when DeletionStrategy is enabled",
        ),
        (
            json!({"deletionStrategy": {"onSuccess": {"policy": "DeleteSelf"}}}),
            "both DeletionStrategy.OnSuccess and DeletionStrategy.OnFailure must be set when using the legacy deletion policy fields of DeletionStrategy",
        ),
        (
            json!({"deletionStrategy": {"onFailure": {}, "deletionRules": []}}),
            "both DeletionStrategy.OnSuccess and DeletionStrategy.OnFailure must be set when using the legacy deletion policy fields of DeletionStrategy",
        ),
        (json!({"deletionStrategy": {}}), no_policy),
        (
            json!({"shutdownAfterJobFinishes": true, "deletionStrategy": {"deletionRules": []}}),
            no_policy,
        ),
        (
            json!({"rayClusterSpec": {"rayVersion": "2.55.0", "authOptions": auth}}),
            "The RayJob spec is invalid: K8s token auth mode is currently not supported for RayJob",
        ),
    ];
    for (spec, expected) in table {
        assert_eq!(job_refusal(&spec), expected, "{spec}");
    }
}

#[test]
fn all_faults_of_deletion_rules_are_named() {
    let rule = |policy: &str, seconds: i32| {
        let condition = json!({"jobStatus": "SUCCEEDED", "ttlSeconds": seconds});
        json!({"policy": policy, "condition": condition})
    };
    let failed = json!({"policy": "DeleteCluster", "condition": {"jobDeploymentStatus": "Failed", "ttlSeconds": 0}});
    let rules = json!([
        rule("DeleteWorkers", 30),
        rule("DeleteCluster", 20),
        rule("DeleteSelf", 10),
        rule("DeleteSelf", 5),
        failed,
        failed,
        {"policy": "DeleteSelf", "condition": {"jobStatus": "FAILED", "ttlSeconds": -1}},
    ]);
    let expected = [
        "deletionRules[3]: duplicate rule for DeletionPolicyType 'DeleteSelf' and JobStatus 'SUCCEEDED'",
        "deletionRules[5]: duplicate rule for DeletionPolicyType 'DeleteCluster' and JobDeploymentStatus 'Failed'",
        "deletionRules[6]: TTLSeconds must be non-negative",
        "for JobStatus 'SUCCEEDED': DeleteCluster TTL (20) must be >= DeleteWorkers TTL (30)",
        "for JobStatus 'SUCCEEDED': DeleteSelf TTL (10) must be >= DeleteCluster TTL (20)",
    ];
    let found = job_refusal(&json!({"deletionStrategy": {"deletionRules": rules}}));
    assert_eq!(found, expected.join("\n"));

    let rules = json!([rule("DeleteWorkers", 0), rule("DeleteCluster", 0)]);
    let selector = json!({"ray.io/cluster": "c"});
    let found = job_refusal(
        &json!({"clusterSelector": selector, "deletionStrategy": {"deletionRules": rules}}),
    );
    let expected = [
        "deletionRules[0]: DeletionPolicyType 'DeleteWorkers' not supported when ClusterSelector is set",
        "deletionRules[1]: DeletionPolicyType 'DeleteCluster' not supported when ClusterSelector is set",
    ];
    assert_eq!(found, expected.join("\n"));
}

#[test]
fn a_job_that_waits_stays_in_its_mode() {
    let job = json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "rj", "namespace": "ns", "uid": "u", "finalizers": ["ray.io/rayjob-finalizer"]},
        "spec": {
            "submissionMode": "HTTPMode", "entrypoint": "x",
            "rayClusterSpec": cluster_with(&json!({}))["spec"],
        },
        "status": {"jobDeploymentStatus": "Waiting", "rayClusterName": "rj-a"},
    });
    let inputs = PassInputs { now: Timestamp::UNIX_EPOCH, seed: [1; 32] };
    let steps = job::decide(&job, &[], &[], &inputs, &OperatorSettings::default());
    let message = steps.iter().find_map(|step| match step {
        RayStep::ReplaceStatus(status) => status["message"].as_str(),
        _ => None,
    });
    let expected = "The RayJob status is invalid: JobDeploymentStatus cannot be `Waiting` when SubmissionMode is not InteractiveMode";
    assert_eq!(message, Some(expected));
}

fn service_refusal(part: &Value, timeout: &str) -> String {
    let mut spec = json!({"rayClusterConfig": cluster_with(&json!({}))["spec"]});
    json_patch::merge(&mut spec, part);
    let annotations = json!({"ray.io/initializing-timeout": timeout});
    let metadata = json!({"name": "rs", "annotations": annotations});
    let service = json!({"kind": "RayService", "metadata": metadata, "spec": spec});
    let spec = serde_json::from_value(spec).expect("a spec decodes");
    let found = service::check_service(&service, &spec, &OperatorSettings::default());
    let message = found.err().map(|error| error.message).unwrap_or_default();
    let begins = [
        "The RayService spec is invalid: ",
        "The RayService metadata is invalid: RayService annotations is invalid: annotation ray.io/initializing-timeout ",
    ];
    let cut = begins.iter().find_map(|begin| message.strip_prefix(begin));
    cut.unwrap_or(&message).to_owned()
}

#[test]
fn ray_services_are_refused_in_the_words_of_the_official_operator() {
    let auth = json!({"mode": "token", "enableK8sTokenAuth": true});
    let steps = |options: Value| {
        json!({
            "rayClusterConfig": {"enableInTreeAutoscaling": true},
            "upgradeStrategy": {
                "type": "NewClusterWithIncrementalUpgrade", "clusterUpgradeOptions": options,
            },
        })
    };
    let with = |surge: i32, step: Value, interval: Value, class: &str| {
        steps(json!({
            "maxSurgePercent": surge, "stepSizePercent": step, "intervalSeconds": interval,
            "gatewayClassName": class,
        }))
    };
    let table = [
        (
            json!({"rayClusterConfig": {"rayVersion": "2.55.0", "authOptions": auth}}),
            "K8s token auth mode is currently not supported for RayService",
        ),
        (
            json!({"upgradeStrategy": {"type": "Bad"}, "rayClusterDeletionDelaySeconds": -1}),
            "Spec.UpgradeStrategy.Type value Bad is invalid, valid options are NewClusterWithIncrementalUpgrade, NewCluster, or None",
        ),
        (
            json!({"rayClusterDeletionDelaySeconds": -1}),
            "Spec.RayClusterDeletionDelaySeconds should be a non-negative integer, got -1",
        ),
        (
            steps(Value::Null),
            "ClusterUpgradeOptions are required for NewClusterWithIncrementalUpgrade",
        ),
        (with(101, json!(1), json!(1), "c"), "maxSurgePercent must be between 0 and 100"),
        (with(50, json!(101), json!(1), "c"), "stepSizePercent must be between 0 and 100"),
        (with(50, Value::Null, json!(1), "c"), "stepSizePercent must be between 0 and 100"),
        (
            with(50, json!(51), json!(1), "c"),
            "stepSizePercent must be less than or equal to maxSurgePercent",
        ),
        (with(50, json!(50), json!(0), "c"), "intervalSeconds must be greater than 0"),
        (with(50, json!(50), Value::Null, "c"), "intervalSeconds must be greater than 0"),
        (
            with(50, json!(50), json!(1), ""),
            "gatewayClassName is required for NewClusterWithIncrementalUpgrade",
        ),
        (with(50, json!(50), json!(1), "c"), ""),
        // Only here: with the official operator such an upgrade never moves any traffic.
        (with(50, json!(0), json!(1), "c"), "stepSizePercent must be greater than 0"),
    ];
    for (part, expected) in table {
        assert_eq!(service_refusal(&part, ""), expected, "{part}");
    }
}

#[test]
fn a_timeout_must_be_positive() {
    for (timeout, expected) in [
        ("0", "must be a positive duration, got: 0"),
        ("0s", "must be a positive duration, got: 0s"),
        ("-5m", "must be a positive duration, got: -5m"),
        ("-5", "must be a positive integer (seconds), got: -5"),
        (
            "soon",
            "has invalid format: soon. Expected Go duration format (e.g., '5m', '1h') or positive integer seconds",
        ),
        ("5m", ""),
        ("300", ""),
    ] {
        assert_eq!(service_refusal(&json!({}), timeout), expected, "{timeout}");
    }
}
