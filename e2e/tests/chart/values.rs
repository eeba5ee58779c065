//! Each value lands where it should.

use anyhow::{Context, Result, ensure};
use e2e::installation::root;
use serde_json::Value;

use crate::helm::Helm;

/// A template, values, and what is then at which place of its first object.
type Landing = (&'static str, &'static [&'static str], &'static str, &'static str);

const DEPLOYMENT: &str = "manager/deployment.yaml";
const CONFIGURATION: &str = "manager/configuration.yaml";
const POD: &str = "/spec/template/spec";
const CONTAINER: &str = "/spec/template/spec/containers/0";

#[rustfmt::skip]
const OF_PODS: &[(&str, &str, &str)] = &[
    ("replicas=3", "/spec/replicas", "3"),
    (r#"strategy={"type": "Recreate"}"#, "/spec/strategy/type", r#""Recreate""#),
    ("hostNetwork=true", "POD/hostNetwork", "true"),
    ("dnsPolicy=ClusterFirstWithHostNet", "POD/dnsPolicy", r#""ClusterFirstWithHostNet""#),
    (r#"imagePullSecrets=[{"name": "registry"}]"#, "POD/imagePullSecrets/0/name", r#""registry""#),
    (r#"nodeSelector={"disk": "ssd"}"#, "POD/nodeSelector", r#"{"disk": "ssd"}"#),
    (r#"tolerations=[{"key": "a", "operator": "Exists"}]"#, "POD/tolerations/0/key", r#""a""#),
    (r#"topologySpreadConstraints=[{"maxSkew": 1}]"#, "POD/topologySpreadConstraints/0/maxSkew", "1"),
    (r#"affinity={"nodeAffinity": {}}"#, "POD/affinity", r#"{"nodeAffinity": {}}"#),
    ("manager.image.repository=registry.example.com/sluice-manager", "CONTAINER/image", r#""registry.example.com/sluice-manager:v0.1.0""#),
    ("manager.image.tag=v9", "CONTAINER/image", r#""sluice-manager:v9""#),
    ("manager.image.pullPolicy=Always", "CONTAINER/imagePullPolicy", r#""Always""#),
    ("manager.priorityClassName=system-cluster-critical", "POD/priorityClassName", r#""system-cluster-critical""#),
    (r#"manager.podAnnotations={"a/b": "c"}"#, "/spec/template/metadata/annotations/a~1b", r#""c""#),
    ("manager.terminationGracePeriodSeconds=10", "POD/terminationGracePeriodSeconds", "10"),
    (r#"manager.resources={"limits": {"cpu": "2"}}"#, "CONTAINER/resources/limits", r#"{"cpu": "2", "memory": "1Gi"}"#),
    ("manager.podSecurityContext.fsGroup=7", "POD/securityContext/fsGroup", "7"),
    ("manager.containerSecurityContext.privileged=false", "CONTAINER/securityContext/privileged", "false"),
    ("manager.shutdownDelaySeconds=7", "CONTAINER/args/1", r#""--shutdown-delay-duration=7s""#),
    ("manager.shutdownDelaySeconds=0", "CONTAINER/args/1", r#""--shutdown-delay-duration=0s""#),
    ("manager.shutdownDelaySeconds=null", "CONTAINER/args", r#"["--config=/etc/sluice/controller_manager_config.yaml"]"#),
    ("manager.logLevel=3", "CONTAINER/args/1", r#""--zap-log-level=3""#),
    ("readinessProbe.initialDelaySeconds=7", "CONTAINER/readinessProbe/initialDelaySeconds", "7"),
    ("livenessProbe.timeoutSeconds=8", "CONTAINER/livenessProbe/timeoutSeconds", "8"),
    (
        r#"featureGates=[{"name": "PartialAdmission", "enabled": false}, {"name": "PriorityBoost", "enabled": true}]"#,
        "CONTAINER/args/1", r#""--feature-gates=PartialAdmission=false,PriorityBoost=true""#,
    ),
];

/// The names of the certificate of webhooks, as in every version of the chart: cert-manager issues a changed one again.
const SERVING_NAMES: &str = r#"[
    "kueue-webhook-service.kueue-system.svc",
    "kueue-webhook-service.kueue-system.svc.cluster.local",
    "kueue-controller-manager-metrics-service.kueue-system.svc",
    "kueue-controller-manager-metrics-service.kueue-system.svc.cluster.local"
]"#;

#[rustfmt::skip]
const OF_OTHERS: &[Landing] = &[
    (DEPLOYMENT, &["nameOverride=batch"], "/spec/selector/matchLabels/app.kubernetes.io~1name", r#""batch""#),
    (DEPLOYMENT, &["fullnameOverride=batch"], "/spec/template/spec/containers/0/args/1", r#""--name-prefix=batch""#),
    (DEPLOYMENT, &["enableCertManager=true"], "/spec/template/spec/volumes/2/secret/secretName", r#""kueue-webhook-server-cert""#),
    (DEPLOYMENT, &["managerConfig.config.internalCertManagement.enable=false", "managerConfig.config.webhook.certDir=/certs"],
        "/spec/template/spec/containers/0/volumeMounts/2/mountPath", r#""/certs""#),
    (DEPLOYMENT, &["enableCertManager=true", "managerConfig.controllerManagerConfigYaml=\"webhook:\""],
        "/spec/template/spec/containers/0/volumeMounts/2/mountPath", r#""/tmp/k8s-webhook-server/serving-certs""#),
    (DEPLOYMENT, &["enableCertManager=true", r#"managerConfig.config.webhook.certDir="""#],
        "/spec/template/spec/containers/0/volumeMounts/2/mountPath", r#""/tmp/k8s-webhook-server/serving-certs""#),
    (DEPLOYMENT, &["enableCertManager=true"], "/spec/template/spec/containers/0/volumeMounts/4/mountPath", r#""/etc/kueue/metrics/certs""#),
    (DEPLOYMENT, &["enableCertManager=true"], "/spec/template/spec/volumes/4/secret", r#"{"secretName": "kueue-metrics-server-cert"}"#),
    (DEPLOYMENT, &["managerConfig.config.internalCertManagement.enable=false"], "/spec/template/spec/volumes/4/secret/optional", "true"),
    (CONFIGURATION, &["fullnameOverride=batch"], "/metadata/name", r#""batch-manager-config""#),
    ("rbac/leader-election.yaml", &["managerConfig.config.leaderElection.resourceName=own"], "/rules/1/resourceNames", r#"["own"]"#),
    ("webhook/mutating.yaml", &["fullnameOverride=batch"], "/webhooks/0/clientConfig/service/name", r#""batch-webhook-service""#),
    ("webhook/mutating.yaml", &["mutatingWebhook.reinvocationPolicy=IfNeeded"], "/webhooks/0/reinvocationPolicy", r#""IfNeeded""#),
    ("webhook/validating.yaml", &[r#"managerConfig.config.managedJobsNamespaceSelector={"matchLabels": {"jobs": "yes"}}"#],
        "/webhooks/0/namespaceSelector", r#"{"matchLabels": {"jobs": "yes"}}"#),
    ("webhook/mutating.yaml", &["enableCertManager=true"], "/metadata/annotations/cert-manager.io~1inject-ca-from", r#""kueue-system/kueue-serving-cert""#),
    ("crd/kueue.x-k8s.io_cohorts.yaml", &["enableCertManager=true"], "/metadata/annotations/cert-manager.io~1inject-ca-from", r#""kueue-system/kueue-serving-cert""#),
    ("crd/kueue.x-k8s.io_cohorts.yaml", &["fullnameOverride=batch"], "/spec/conversion/webhook/clientConfig/service/name", r#""batch-webhook-service""#),
    ("visibility/api-services.yaml", &["enableCertManager=true"], "/metadata/annotations/cert-manager.io~1inject-ca-from", r#""kueue-system/kueue-visibility-server-cert""#),
    ("certmanager/certificates.yaml", &["enableCertManager=true", "kubernetesClusterDomain=example.org"], "/spec/dnsNames/1", r#""kueue-webhook-service.kueue-system.svc.example.org""#),
    ("certmanager/certificates.yaml", &["enableCertManager=true"], "/spec/dnsNames", SERVING_NAMES),
    ("certmanager/certificates.yaml", &["enableCertManager=true", r#"certManager.issuerRef={"kind": "ClusterIssuer", "name": "ca"}"#],
        "/spec/issuerRef", r#"{"kind": "ClusterIssuer", "name": "ca"}"#),
    ("certmanager/issuer.yaml", &["enableCertManager=true"], "/metadata/name", r#""kueue-selfsigned-issuer""#),
    ("manager/disruption-budget.yaml", &["controllerManager.replicas=3", "controllerManager.podDisruptionBudget.minAvailable=2"], "/spec/minAvailable", "2"),
    ("manager/disruption-budget.yaml", &["controllerManager.replicas=3", r#"controllerManager.podDisruptionBudget.minAvailable="50%""#],
        "/spec/minAvailable", r#""50%""#),
    ("manager/metrics-service.yaml", &["metricsService.type=NodePort"], "/spec/type", r#""NodePort""#),
    ("manager/metrics-service.yaml", &["metricsService.labels.a=b"], "/metadata/labels/a", r#""b""#),
    ("manager/metrics-service.yaml", &["metricsService.annotations.a=b"], "/metadata/annotations", r#"{"a": "b"}"#),
    ("manager/metrics-service.yaml", &[r#"metricsService.ports=[{"name": "https", "port": 9000}]"#], "/spec/ports/0/port", "9000"),
    ("webhook/service.yaml", &["webhookService.type=NodePort"], "/spec/type", r#""NodePort""#),
    ("webhook/service.yaml", &[r#"webhookService.ports=[{"port": 444}]"#], "/spec/ports/0/port", "444"),
    ("webhook/service.yaml", &["webhookService.ipDualStack.enabled=true"], "/spec/ipFamilies", r#"["IPv6", "IPv4"]"#),
    ("networkpolicy/ingress.yaml", &["networkPolicy.enabled=true", r#"networkPolicy.extraIngress=[{"from": []}]"#], "/spec/ingress/1", r#"{"from": []}"#),
    ("networkpolicy/egress.yaml", &["networkPolicy.enabled=true", "networkPolicy.egress.enabled=true", r#"networkPolicy.egress.extraEgress=[{"to": []}]"#],
        "/spec/egress/2", r#"{"to": []}"#),
    ("prometheus/rights.yaml", &["enablePrometheus=true", "metrics.prometheusNamespace=watch"], "/subjects/0/namespace", r#""watch""#),
    ("prometheus/service-monitor.yaml", &["enablePrometheus=true", r#"metrics.serviceMonitor.tlsConfig={"serverName": "a"}"#],
        "/spec/endpoints/0/tlsConfig/serverName", r#""a""#),
    ("prometheus/service-monitor.yaml", &["enablePrometheus=true", r#"metrics.serviceMonitor.tlsConfig={"serverName": "a"}"#],
        "/spec/endpoints/0/tlsConfig/insecureSkipVerify", "true"),
    ("prometheus/service-monitor.yaml", &["enablePrometheus=true"], "/spec/endpoints/0/tlsConfig", r#"{"insecureSkipVerify": true}"#),
    ("prometheus/service-monitor.yaml", &["enablePrometheus=true", "enableCertManager=true"],
        "/spec/endpoints/0/tlsConfig/ca/secret/name", r#""kueue-metrics-server-cert""#),
    ("prometheus/service-monitor.yaml", &["enablePrometheus=true", "enableCertManager=true", "metrics.serviceMonitor.tlsConfig=null"],
        "/spec/endpoints/0/tlsConfig/ca/secret/name", r#""kueue-metrics-server-cert""#),
];

/// Values, and the templates that are rendered with them and not without, or the reverse.
const SWITCHES: &[(&[&str], &[&str], bool)] = &[
    (&["enablePrometheus=true"], &["prometheus/alerts.yaml", "prometheus/dashboard.yaml"], true),
    (&["enableVisibilityAPF=true"], &["visibility/flow-control.yaml"], true),
    (&["enableCertManager=true"], &["certmanager/certificates.yaml"], true),
    (&["networkPolicy.enabled=true"], &["networkpolicy/ingress.yaml"], true),
    (&["networkPolicy.egress.enabled=true"], &["networkpolicy/egress.yaml"], false),
    (
        &["controllerManager.podDisruptionBudget.enabled=false"],
        &["manager/disruption-budget.yaml"],
        false,
    ),
    (&["controllerManager.replicas=1"], &["manager/disruption-budget.yaml"], false),
    (
        &[
            "controllerManager.replicas=1",
            r#"controllerManager.podDisruptionBudget.minAvailable="1""#,
        ],
        &["manager/disruption-budget.yaml"],
        false,
    ),
    (
        &[
            "controllerManager.replicas=3",
            r#"controllerManager.podDisruptionBudget.minAvailable="67%""#,
        ],
        &["manager/disruption-budget.yaml"],
        false,
    ),
    (
        &[r#"controllerManager.featureGates=[{"name": "VisibilityOnDemand", "enabled": false}]"#],
        &["visibility/api-services.yaml", "visibility/service.yaml"],
        false,
    ),
    (
        &["managerConfig.config.featureGates.VisibilityOnDemand=false"],
        &["visibility/api-services.yaml"],
        false,
    ),
];

#[tokio::test]
async fn values_of_the_manager_land_in_its_deployment() -> Result<()> {
    let helm = Helm::find()?;
    for (value, place, expected) in OF_PODS {
        let place = place.replacen("POD", POD, 1).replacen("CONTAINER", CONTAINER, 1);
        let value = format!("controllerManager.{value}");
        lands(&helm, DEPLOYMENT, &[&value], &place, expected).await?;
    }
    Ok(())
}

#[tokio::test]
async fn other_values_land_in_their_objects() -> Result<()> {
    let helm = Helm::find()?;
    for (template, values, place, expected) in OF_OTHERS {
        lands(&helm, template, values, place, expected).await?;
    }
    Ok(())
}

async fn lands(
    helm: &Helm,
    template: &str,
    values: &[&str],
    place: &str,
    expected: &str,
) -> Result<()> {
    let expected: Value = serde_json::from_str(expected)?;
    let objects = helm.objects(template, values).await?;
    let found = objects.first().and_then(|object| object.pointer(place));
    ensure!(found == Some(&expected), "{values:?}: {template}{place} is {found:?}");
    Ok(())
}

#[tokio::test]
async fn switches_render_their_templates_or_leave_them_out() -> Result<()> {
    let helm = Helm::find()?;
    let default = helm.template(&[], &[]).await?;
    let renders = |text: &str, name: &str| text.contains(&format!("kueue/templates/{name}\n"));
    for (values, templates, rendered) in SWITCHES {
        let text = helm.template(values, &[]).await?;
        for name in *templates {
            ensure!(renders(&text, name) == *rendered, "{values:?}: {name}");
            let changes = renders(&default, name) != *rendered;
            ensure!(changes || name.starts_with("networkpolicy"), "{name} does not change");
        }
    }
    let values = ["enableVisibilityAuthReaderRoleBinding=false"];
    let without = helm.template(&values, &[]).await?;
    let binding = "name: sluice-visibility-auth-reader\n";
    ensure!(default.contains(binding) && !without.contains(binding), "{binding}");
    Ok(())
}

#[tokio::test]
async fn the_configuration_is_the_default_with_fields_or_a_whole_file() -> Result<()> {
    let helm = Helm::find()?;
    let fields = [
        "managerConfig.config.multiKueue.origin=null",
        "managerConfig.config.leaderElection.leaderElect=false",
        r#"managerConfig.config.integrations.frameworks=["pod"]"#,
    ];
    let file = configuration(&helm, &fields).await?;
    let multi_kueue = file["multiKueue"].as_object().context("no multiKueue")?;
    ensure!(!multi_kueue.contains_key("origin"), "null removes a field: {file}");
    ensure!(multi_kueue["workerLostTimeout"] == "15m", "other fields stay: {file}");
    ensure!(file["leaderElection"]["leaderElect"] == false, "false is a value: {file}");
    ensure!(file["integrations"]["frameworks"] == serde_json::json!(["pod"]), "{file}");

    let whole = "managerConfig.controllerManagerConfigYaml=kind: Configuration";
    let file = configuration(&helm, &[whole, fields[1]]).await?;
    ensure!(
        file == serde_json::json!({"kind": "Configuration", "namespace": "kueue-system"}),
        "a whole file replaces the default: {file}"
    );

    let file = configuration(&helm, &["fullnameOverride=batch", "enableCertManager=true"]).await?;
    let certificates = serde_json::json!({
        "enable": false,
        "webhookServiceName": "batch-webhook-service",
        "webhookSecretName": "batch-webhook-server-cert",
    });
    ensure!(file["internalCertManagement"] == certificates, "{file}");
    Ok(())
}

async fn configuration(helm: &Helm, values: &[&str]) -> Result<Value> {
    let objects = helm.objects(CONFIGURATION, values).await?;
    let map = objects.first().context("no ConfigMap")?;
    let file = map["data"]["controller_manager_config.yaml"].as_str().context("no file")?;
    Ok(serde_saphyr::from_str(file)?)
}

/// All values of Kueue's chart, with its defaults. Its image is that of another program.
#[tokio::test]
async fn a_file_with_all_values_of_kueue_is_accepted() -> Result<()> {
    let file = root().join("e2e/tests/chart/kueue-values.yaml").display().to_string();
    let image = "controllerManager.manager.image.repository=sluice-manager";
    let further = ["--values", &file, "--show-only", "templates/manager/deployment.yaml"];
    let text = Helm::find()?.template(&[image], &further).await?;
    for part in ["replicas: 1\n", "image: sluice-manager:main\n", "- --zap-log-level=2\n"] {
        ensure!(text.contains(part), "{part}: {text}");
    }
    Ok(())
}

#[tokio::test]
async fn the_chart_has_no_problems_that_helm_knows() -> Result<()> {
    let said = Helm::find()?.run(&["lint", "--strict", &Helm::chart()]).await?;
    ensure!(said.contains("0 chart(s) failed"), "{said}");
    Ok(())
}
