use jobs::{Kinds, integrations::INTEGRATIONS};

use super::*;
use crate::gates::Gate;

const HEADER: &str = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n";
const V1BETA1_HEADER: &str = "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\n";

fn load(body: &str) -> Result<Configuration, ConfigError> {
    Configuration::load(&format!("{HEADER}{body}"), None)
}

fn load_v1beta1(body: &str) -> Configuration {
    Configuration::load(&format!("{V1BETA1_HEADER}{body}"), None).expect(body)
}

#[test]
fn zero_values_stand_for_the_default() {
    let zero = "\
webhook: {certDir: ''}
leaderElection: {resourceName: '', resourceLock: '', leaseDuration: 0s, renewDeadline: 0s, retryPeriod: 0s}
metrics: {bindAddress: ''}
health: {healthProbeBindAddress: '', readinessEndpointName: '', livenessEndpointName: ''}
multiKueue: {origin: ''}
admissionFairSharing: {usageSamplingInterval: 0s}
resources: {transformations: [{input: a, strategy: ''}]}
";
    for (config, default) in
        [(load(zero).expect("defaults"), load("")), (load_v1beta1(zero), Ok(load_v1beta1("")))]
    {
        let default = default.expect("defaults");
        assert_eq!(config.webhook, default.webhook);
        assert_eq!(config.leader_election, default.leader_election);
        assert_eq!(config.metrics, default.metrics);
        assert_eq!(config.health, default.health);
        assert_eq!(config.multi_kueue.origin, "multikueue");
        let interval = config.admission_fair_sharing.map(|fair| fair.usage_sampling_interval);
        assert_eq!(interval, Some(GoDuration::from_secs(300)));
        let strategy = config.resources.transformations.first().map(|one| one.strategy);
        assert_eq!(strategy, Some(TransformationStrategy::Retain));
    }
    let disabled = load("metrics: {bindAddress: '0'}").expect("it disables the server");
    assert_eq!(disabled.metrics.bind_address, "0");
}

#[test]
fn an_empty_file_has_every_default_in_both_versions() {
    let secs = GoDuration::from_secs;
    for config in [load("").expect("defaults"), load_v1beta1("")] {
        assert_eq!(config.namespace(), "kueue-system");
        assert_eq!(config.webhook.host, "");
        assert_eq!(config.webhook.port, 9443);
        assert_eq!(config.webhook.cert_dir, "/tmp/k8s-webhook-server/serving-certs");
        let lease = &config.leader_election;
        assert!(lease.leader_elect);
        assert_eq!(lease.resource_name, "c1f6bfd2.kueue.x-k8s.io");
        assert_eq!(lease.resource_lock, "leases");
        assert_eq!(lease.lease_duration, secs(15));
        assert_eq!(lease.renew_deadline, secs(10));
        assert_eq!(lease.retry_period, secs(2));
        assert_eq!(config.metrics.bind_address, ":8443");
        assert!(!config.metrics.enable_cluster_queue_resources);
        assert!(config.metrics.local_queue_metrics.enable);
        assert_eq!(config.health.health_probe_bind_address, ":8081");
        assert_eq!(config.health.readiness_endpoint_name, "readyz");
        assert_eq!(config.health.liveness_endpoint_name, "healthz");
        assert_eq!(config.pprof_bind_address, "");
        assert_eq!(config.controller.cache_sync_timeout, secs(120));
        assert_eq!(config.tls, None);
        assert!(!config.manage_jobs_without_queue_name);
        let certs = &config.internal_cert_management;
        assert!(certs.enable);
        assert_eq!(certs.webhook_service_name, "kueue-webhook-service");
        assert_eq!(certs.webhook_secret_name, "kueue-webhook-server-cert");
        assert_eq!(config.client_connection, ClientConnection { qps: 300.0, burst: 500 });
        assert_eq!(config.integrations.frameworks, ["batch/job"]);
        assert_eq!(config.multi_kueue.gc_interval, secs(60));
        assert_eq!(config.multi_kueue.origin, "multikueue");
        assert_eq!(config.multi_kueue.worker_lost_timeout, secs(900));
        assert_eq!(config.multi_kueue.dispatcher_name, ALL_AT_ONCE);
        assert_eq!(config.multi_kueue.incremental_dispatcher_config, None);
        assert_eq!(config.fair_sharing, None);
        assert_eq!(config.admission_fair_sharing, None);
        assert_eq!(config.resources.quota_check_strategy, QuotaCheckStrategy::BlockUndeclared);
        assert_eq!(config.object_retention_policies, None);
        assert_eq!(config.visibility_server.bind_address, "");
        assert_eq!(config.visibility_server.bind_port, 8082);
        let selector = config.managed_jobs_namespace_selector.as_ref().expect("a default");
        assert_eq!(selector.match_expressions[0].operator, Operator::NotIn);
        assert_eq!(selector.match_expressions[0].values, ["kube-system", "kueue-system"]);
        assert!(config.settings_without_effect().is_empty());
    }
}

#[test]
fn wait_for_pods_ready_is_enabled_by_default_except_in_v1beta1() {
    let bare = Configuration::without_file(None).expect("defaults");
    for config in [load("").expect("defaults"), bare] {
        let wait = config.wait_for_pods_ready.expect("a block");
        assert_eq!(wait.timeout, GoDuration::from_secs(1800));
        assert_eq!(wait.recovery_timeout, Some(wait.timeout));
    }
    assert_eq!(load_v1beta1("").wait_for_pods_ready, None);
}

/// v1beta2 does not tell a timeout of zero from an absent one; v1beta1 does, and allows none.
#[test]
fn a_timeout_of_zero_is_the_default_or_refused() {
    let wait = |body: &str| load(body).expect(body).wait_for_pods_ready.expect("a block");
    assert_eq!(wait("waitForPodsReady: {timeout: 0s}\n"), wait(""));
    let disabled = wait("waitForPodsReady: {recoveryTimeout: 0s}\n").recovery_timeout;
    assert_eq!(disabled, Some(GoDuration::ZERO));
    let old = |body: &str| Configuration::load(&format!("{V1BETA1_HEADER}{body}"), None);
    let zero = old("waitForPodsReady: {enable: true, timeout: 0s}\n").expect("valid without gates");
    let error = zero.check_with(&Gates::default()).expect_err("zero");
    let text = "waitForPodsReady.timeout: Required value: must be specified";
    assert_eq!(error.to_string(), format!("invalid configuration: {text}"));
    assert!(old("waitForPodsReady: {timeout: 0s}\n").is_ok(), "a disabled block is no block");
}

/// The field is a `time.Duration` of Go without a decoder of its own: files of Kueue have nanoseconds.
#[test]
fn the_timeout_of_the_first_lists_is_a_number_of_nanoseconds_or_text() {
    for text in ["60000000000", "1m"] {
        let body = format!("controller: {{cacheSyncTimeout: {text}}}\n");
        for config in [load(&body).expect(text), load_v1beta1(&body)] {
            assert_eq!(config.controller.cache_sync_timeout, GoDuration::from_secs(60), "{text}");
        }
    }
    for wrong in ["1.5", "true", "[1]", "99999999999999999999"] {
        let error = load(&format!("controller:\n  cacheSyncTimeout: {wrong}\n")).expect_err(wrong);
        assert!(error.to_string().starts_with("line 4, column "), "{error}");
    }
}

#[test]
fn a_present_block_gets_defaults_for_absent_fields() {
    let config = load(
        "waitForPodsReady: {}
admissionFairSharing: {usageHalfLifeTime: 1h}
multiKueue: {dispatcherName: kueue.x-k8s.io/multikueue-dispatcher-incremental}
resources: {transformations: [{input: a/b}]}
metrics: {customLabels: [{name: team}]}
",
    )
    .expect("valid");
    let wait = config.wait_for_pods_ready.expect("a block");
    assert_eq!(wait.timeout, GoDuration::from_secs(1800));
    assert_eq!(wait.recovery_timeout, Some(wait.timeout));
    assert!(!wait.block_admission);
    let strategy = RequeuingStrategy {
        timestamp: RequeuingTimestamp::Eviction,
        backoff_limit_count: None,
        backoff_base_seconds: 60,
        backoff_max_seconds: 3600,
    };
    assert_eq!(wait.requeuing_strategy, strategy);
    let fair = config.admission_fair_sharing.expect("a block");
    assert_eq!(fair.usage_sampling_interval, GoDuration::from_secs(300));
    let incremental = config.multi_kueue.incremental_dispatcher_config.expect("a block");
    assert_eq!(incremental.step_size, 3);
    let strategy = config.resources.transformations[0].strategy;
    assert_eq!(strategy, TransformationStrategy::Retain);
    assert_eq!(config.metrics.custom_labels[0].source_kind, SourceKind::ClusterQueue);
}

#[test]
fn a_null_field_is_absent_in_both_versions() {
    let body = "namespace: ~
webhook:
health: {healthProbeBindAddress: null}
integrations:
  frameworks:
  externalFrameworks: []
waitForPodsReady:
  timeout:
  requeuingStrategy: {backoffBaseSeconds: , timestamp: ~}
multiKueue:
  gcInterval:
  origin: null
resources: {transformations: [{input: a/b, strategy: , outputs: }]}
featureGates:
";
    for config in [load(body).expect("valid"), load_v1beta1(body)] {
        assert_eq!(config.namespace(), "kueue-system");
        assert_eq!(config.webhook, Webhook::default());
        assert_eq!(config.health, Health::default());
        assert_eq!(config.integrations, Integrations::default());
        assert_eq!(config.multi_kueue, MultiKueue::default());
        assert_eq!(config.resources.transformations[0].strategy, TransformationStrategy::Retain);
        assert_eq!(config.feature_gates.len(), 0);
    }
    let wait = load(body).expect("valid").wait_for_pods_ready.expect("a block");
    assert_eq!(wait.requeuing_strategy, RequeuingStrategy::default());
    assert_eq!(wait.timeout, WaitForPodsReady::default().timeout);
    let empty = load("integrations: {frameworks: []}\n").expect("valid");
    assert!(empty.integrations.frameworks.is_empty());
}

#[test]
fn a_null_field_leaves_the_positions_of_other_errors() {
    let error = load("webhook:\n  host:\n  prot: 1\n").expect_err("an unknown field");
    assert!(error.to_string().starts_with("line 5, column 3: "), "{error}");
    let error = load("webhook:\n  prot:\n").expect_err("an unknown field, although it is null");
    assert!(error.to_string().starts_with("line 4, column 3: "), "{error}");
}

#[test]
fn a_field_of_a_later_version_is_refused_by_what_happens_without_it() {
    for (body, field, instead) in [
        (
            "waitForPodsReady: {timeout: 1m, unscheduledTimeout: 5m}\n",
            "waitForPodsReady.unscheduledTimeout",
            "after waitForPodsReady.timeout",
        ),
        (
            "scheduling: {quotaReleaseStrategy: OnTerminal}\n",
            "scheduling.quotaReleaseStrategy",
            "when the pods have ended",
        ),
        (
            "preemptionProtection: {reclaimWithinCohort: {minAdmitDuration: 10m}}\n",
            "preemptionProtection",
            "from its admission on",
        ),
        (
            "integrations: {quotaReleaseStrategy: OnTerminal}\n",
            "integrations.quotaReleaseStrategy",
            "when the pods have ended",
        ),
    ] {
        let error = load(body).expect_err("not built").to_string();
        let start =
            format!("invalid configuration: {field} is a field of a later version of Kueue");
        assert!(error.starts_with(&start) && error.contains(instead), "{error}");
    }
    // Without timeouts of Workloads there is nothing that their bound would change.
    let bound = load("waitForPodsReady: {maxTimeoutOnWorkload: 2h}\n").expect("accepted");
    let idle: Vec<String> =
        bound.settings_without_effect().into_iter().map(|one| one.name).collect();
    assert_eq!(idle, ["waitForPodsReady.maxTimeoutOnWorkload"]);
}

#[test]
fn the_namespace_is_that_of_the_file_or_of_the_process() {
    let own = |body: &str| {
        Configuration::load(&format!("{HEADER}{body}"), Some("own")).expect("valid").namespace
    };
    assert_eq!(own("").as_deref(), Some("own"));
    assert_eq!(own("namespace: there\n").as_deref(), Some("there"));
}

#[test]
fn v1beta1_is_converted_to_the_same_configuration() {
    let old =
        load_v1beta1("waitForPodsReady: {enable: true}\n").wait_for_pods_ready.expect("a block");
    assert_eq!(old.timeout, GoDuration::from_secs(300));
    assert!(old.block_admission);
    assert_eq!(load_v1beta1("waitForPodsReady: {timeout: 1m}\n").wait_for_pods_ready, None);
    let fair = load_v1beta1("fairSharing: {enable: true}\n").fair_sharing.expect("a block");
    assert_eq!(fair.preemption_strategies.len(), 2);
    assert_eq!(load_v1beta1("fairSharing: {enable: false}\n").fair_sharing, None);
    let config = load_v1beta1(
        "queueVisibility: {updateIntervalSeconds: 5}
integrations: {frameworks: [pod], podOptions: {podSelector: {matchLabels: {a: b}}}}
",
    );
    assert_eq!(config.integrations.frameworks, ["pod"]);
    let idle = ["integrations.podOptions", "queueVisibility"];
    assert_eq!(names_of(config.settings_without_effect()), idle);
}

#[test]
fn an_undecodable_file_is_refused_with_its_position() {
    let cases = [
        ("webhook:\n  prot: 1\n", 4, "prot"),
        ("nonsense: 1\n", 3, "nonsense"),
        ("queueVisibility: {}\n", 3, "queueVisibility"),
        ("health: {}\nwaitForPodsReady: {enable: true}\n", 4, "enable"),
        ("webhook:\n  port: many\n", 4, ""),
        ("webhook:\n  port: 70000\n", 4, ""),
        ("manageJobsWithoutQueueName: 7\n", 3, ""),
        ("controller:\n  cacheSyncTimeout: soon\n", 4, "soon"),
        ("featureGates:\n  MultiKueue: perhaps\n", 4, ""),
        ("webhook: {}\nwebhook: {}\n", 4, "webhook"),
        ("fairSharing:\n  preemptionStrategies: [Other]\n", 4, "Other"),
    ];
    for (body, expected, word) in cases {
        let error = load(body).expect_err(body);
        let text = error.to_string();
        let ConfigError::Syntax { line, column, .. } = error else { panic!("{body}: {text}") };
        assert_eq!(line, expected, "{body}: {text}");
        assert!(column > 0 && text.starts_with(&format!("line {expected}, column ")), "{text}");
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn another_kind_or_version_is_refused() {
    let cases = [
        (
            "apiVersion: config.kueue.x-k8s.io/v1\nkind: Configuration\n",
            "line 1, column 13: apiVersion is \"config.kueue.x-k8s.io/v1\", expected config.kueue.x-k8s.io/v1beta1 or config.kueue.x-k8s.io/v1beta2",
        ),
        (
            "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Other\n",
            "line 2, column 7: kind is \"Other\", expected Configuration",
        ),
        ("kind: Configuration\n", "apiVersion is missing"),
        ("apiVersion: config.kueue.x-k8s.io/v1beta2\n", "kind is missing"),
    ];
    for (text, expected) in cases {
        let error = Configuration::load(text, None).expect_err(text);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn every_validation_names_its_field() {
    let cases = [
        ("tls: {minVersion: VersionTLS11}", "tls"),
        ("tls: {minVersion: VersionTLS13, cipherSuites: [X]}", "tls.cipherSuites"),
        ("metrics: {customLabels: [{name: 1a}]}", "metrics.customLabels[0].name"),
        ("metrics: {customLabels: [{name: a}, {name: a}]}", "metrics.customLabels[1].name"),
        (
            "metrics: {customLabels: [{name: a, sourceLabelKey: x, sourceAnnotationKey: y}]}",
            "metrics.customLabels[0]",
        ),
        (
            "metrics: {customLabels: [{name: a, sourceKind: Workload}]}",
            "metrics.customLabels[0].trackedValues",
        ),
        (
            "metrics: {customLabels: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e}, {name: f}, {name: g}]}",
            "metrics.customLabels",
        ),
        (
            "metrics: {localQueueMetrics: {localQueueSelector: {matchExpressions: [{key: a, operator: In}]}}}",
            "metrics.localQueueMetrics.localQueueSelector.matchExpressions[0].values",
        ),
        (
            "managedJobsNamespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}",
            "managedJobsNamespaceSelector",
        ),
        (
            "managedJobsNamespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}",
            "managedJobsNamespaceSelector",
        ),
        (
            "localQueueDefaultingNamespaceSelector: {matchExpressions: [{key: a, operator: In}]}",
            "localQueueDefaultingNamespaceSelector.matchExpressions[0].values",
        ),
        (
            "localQueueDefaultingNamespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}",
            "localQueueDefaultingNamespaceSelector",
        ),
        ("waitForPodsReady: {timeout: -1s}", "waitForPodsReady.timeout"),
        (
            "waitForPodsReady: {requeuingStrategy: {backoffLimitCount: -1}}",
            "waitForPodsReady.requeuingStrategy.backoffLimitCount",
        ),
        ("integrations: {frameworks: [job]}", "integrations.frameworks[0]"),
        ("integrations: {frameworks: [pod, pod]}", "integrations.frameworks[1]"),
        ("integrations: {externalFrameworks: [Foo]}", "integrations.externalFrameworks[0]"),
        ("multiKueue: {gcInterval: -1s}", "multiKueue.gcInterval"),
        ("multiKueue: {origin: '-x'}", "multiKueue.origin"),
        ("multiKueue: {incrementalDispatcherConfig: {}}", "multiKueue.incrementalDispatcherConfig"),
        (
            "multiKueue: {dispatcherName: kueue.x-k8s.io/multikueue-dispatcher-incremental, incrementalDispatcherConfig: {stepSize: 0}}",
            "multiKueue.incrementalDispatcherConfig.stepSize",
        ),
        (
            "multiKueue: {externalFrameworks: [{name: Job.v1.batch}]}",
            "multiKueue.externalFrameworks[0].name",
        ),
        (
            "multiKueue: {externalFrameworks: [{name: A.v1.b}, {name: A.v1.b}]}",
            "multiKueue.externalFrameworks[1].name",
        ),
        (
            "multiKueue: {clusterProfile: {accessProviders: [{name: a, execConfig: {command: c}}]}}",
            "multiKueue.clusterProfile.accessProviders[0].execConfig.apiVersion",
        ),
        (
            "multiKueue: {clusterProfile: {accessProviders: [{name: a, execConfig: {command: c, apiVersion: v, env: [{value: x}]}}]}}",
            "multiKueue.clusterProfile.accessProviders[0].execConfig.env[0].name",
        ),
        (
            "multiKueue: {clusterProfile: {accessProviders: [{name: a, execConfig: {command: c, apiVersion: v}}], credentialsProviders: [{name: a, execConfig: {command: c, apiVersion: v}}]}}",
            "multiKueue.clusterProfile",
        ),
        ("leaderElection: {resourceLock: endpoints}", "leaderElection.resourceLock"),
        ("fairSharing: {}", "fairSharing.preemptionStrategies"),
        (
            "fairSharing: {preemptionStrategies: [LessThanInitialShare, LessThanOrEqualToFinalShare]}",
            "fairSharing.preemptionStrategies",
        ),
        (
            "admissionFairSharing: {usageHalfLifeTime: -1s}",
            "admissionFairSharing.usageHalfLifeTime",
        ),
        (
            "admissionFairSharing: {usageSamplingInterval: -1s}",
            "admissionFairSharing.usageSamplingInterval",
        ),
        (
            "admissionFairSharing: {resourceWeights: {cpu: -1}}",
            "admissionFairSharing.resourceWeights[cpu]",
        ),
        (
            "resources: {transformations: [{input: a}, {input: a}]}",
            "resources.transformations[1].input",
        ),
        (
            "resources: {transformations: [{input: a}, {input: b, outputs: {c: 2, d: 1.5Gi, e: 5 GB}}]}",
            "resources.transformations[1].outputs[e]",
        ),
        (
            "resources: {transformations: [{input: a, outputs: {b: true}}]}",
            "resources.transformations[0].outputs[b]",
        ),
        (
            "resources: {deviceClassMappings: [{name: a, deviceClassNames: ['1', '2', '3', '4', '5', '6', '7', '8', '9']}]}",
            "resources.deviceClassMappings[0].deviceClassNames",
        ),
        (
            "resources: {deviceClassMappings: [{name: a, deviceClassNames: [c], sources: [{}]}]}",
            "resources.deviceClassMappings[0].sources[0]",
        ),
        (
            "objectRetentionPolicies: {workloads: {afterFinished: -1s}}",
            "objectRetentionPolicies.workloads.afterFinished",
        ),
    ];
    for (body, path) in cases {
        let checked = load(&format!("{body}\n"));
        let checked = checked.and_then(|config| config.check_with(&Gates::default()));
        let error = checked.expect_err(body);
        let ConfigError::Invalid(problems) = error else { panic!("{body}: {error}") };
        let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, [path], "{body}");
    }
}

#[test]
fn feature_gates_come_from_the_file_or_the_flag() {
    let config = load("featureGates:\n  PartialAdmission: false\n").expect("valid");
    assert!(!config.gates("").expect("gates").enabled(Gate::PartialAdmission));
    assert_eq!(config.gates("MultiKueue=true"), Err(GateError::Both));
    let wrong = load("featureGates:\n  MultiKueue: true\n  Nope: true\n").expect("readable");
    let error = wrong.gates("").expect_err("unknown");
    assert_eq!(error.to_string(), "line 5: featureGates: unknown feature gate \"Nope\"");
}

#[test]
fn settings_without_effect_are_listed_once_each() {
    let text = "namespace: here
webhook: {port: 1}
metrics: {bindAddress: ':1', customLabels: [{name: a, sourceKind: Workload, trackedValues: [x]}]}
health: {readinessEndpointName: r}
internalCertManagement: {enable: false}
leaderElection: {leaderElect: false, resourceLock: leases}
featureGates: {MultiKueue: true}
manageJobsWithoutQueueName: true
waitForPodsReady: {timeout: 1m}
fairSharing: {preemptionStrategies: [LessThanInitialShare]}
resources: {excludeResourcePrefixes: [x], deviceClassMappings: []}
integrations: {frameworks: [ALL], externalFrameworks: [], labelKeysToCopy: []}
multiKueue: {origin: here, gcInterval: 1m, clusterProfile: {}}
";
    let all: Vec<&str> = INTEGRATIONS.iter().map(|one| one.name).collect();
    let config = load(&text.replace("ALL", &all.join(", "))).expect("valid");
    let built = |name: &str| Kinds::built_in().of_framework(name).is_some();
    let missing = all.into_iter().filter(|name| !built(name));
    let idle = ["resources.deviceClassMappings"];
    let missing = missing.map(|name| format!("integrations.frameworks[{name}]"));
    let idle: Vec<String> = idle.map(str::to_owned).into_iter().chain(missing).collect();
    assert_eq!(names_of(config.settings_without_effect()), idle);
}

/// Both versions of the file: later versions of Kueue refuse these keys, which are not copied here.
#[test]
fn label_keys_that_only_controllers_write_are_listed_as_without_effect() {
    let keys = "[team, kueue.x-k8s.io/multikueue-origin, kueue.x-k8s.io/job-uid, sluice.dev/mine]";
    for version in ["v1beta1", "v1beta2"] {
        let text = format!(
            "apiVersion: config.kueue.x-k8s.io/{version}\nkind: Configuration\n\
             integrations: {{frameworks: [batch/job], labelKeysToCopy: {keys}}}\n"
        );
        let config = Configuration::load(&text, None).expect("it starts");
        let idle = config.settings_without_effect();
        let reason = "is written by a Kueue controller and must not be copied onto a Workload";
        assert!(idle.iter().all(|one| one.reason == reason), "{idle:?}");
        let expected = [1, 2, 3].map(|i| format!("integrations.labelKeysToCopy[{i}]"));
        assert_eq!(names_of(idle), expected);
    }
}

#[test]
fn a_block_that_its_gate_disables_is_not_validated() {
    let file = load("waitForPodsReady: {timeout: -1s}\n").expect("valid without gates");
    let check = |flag: &str| file.check_with(&Gates::parse(flag).expect("gates"));
    assert!(check("").is_err());
    assert!(check("DisableWaitForPodsReady=true").is_ok());
}

#[test]
fn pods_are_no_resource_of_a_transformation() {
    const GATE: &str = "ReservedResourceNameValidation=true";
    let refused = |transformation: &str, flag: &str| {
        let text = format!("resources: {{transformations: [{{input: a}}, {transformation}]}}\n");
        let gates = Gates::parse(flag).expect("gates");
        let error = load(&text).expect("valid without gates").check_with(&gates).err();
        error.map(|error| error.to_string()).unwrap_or_default()
    };
    let text = |field: &str| {
        let path = format!("resources.transformations[1].{field}");
        format!(
            "invalid configuration: {path}: is reserved: the number of pods is counted, not requested"
        )
    };
    for (transformation, field) in [
        ("{input: pods}", "input"),
        ("{input: b, outputs: {c: 1, pods: 2}}", "outputs[pods]"),
        ("{input: b, multiplyBy: pods, outputs: {c: 1}}", "multiplyBy"),
    ] {
        assert_eq!(refused(transformation, GATE), text(field), "{transformation}");
        assert_eq!(refused(transformation, ""), "", "{transformation}");
    }
    assert_eq!(refused("{input: b, outputs: {c: 1, example.com/pods: 2}}", GATE), "");
}

#[test]
fn gates_that_are_set_to_what_they_do_not_do_are_listed() {
    let idle = |flag: &str| names_of(Gates::parse(flag).expect("gates").without_effect());
    assert_eq!(idle(""), [""; 0]);
    assert_eq!(idle("PartialAdmission=false,TASCacheTopologyTree=true"), [""; 0]);
    assert_eq!(idle("TASCacheTopologyTree=false"), ["featureGates.TASCacheTopologyTree"]);
    let unbuilt = "WorkloadRequestUseMergePatch";
    assert_eq!(idle(&format!("{unbuilt}=true")), [format!("featureGates.{unbuilt}")]);
    assert_eq!(idle(&format!("{unbuilt}=false")), [""; 0], "it is not there");
    assert!(
        idle("AllAlpha=true")
            .contains(&"featureGates.KueueDRAIntegrationConsumableCapacity".to_owned())
    );
    assert_eq!(idle("TopologyAwareScheduling=false"), [""; 0], "others only depend on it");
}

fn names_of(idle: Vec<IneffectiveSetting>) -> Vec<String> {
    assert!(idle.iter().all(|one| !one.reason.is_empty()));
    idle.into_iter().map(|one| one.name).collect()
}
