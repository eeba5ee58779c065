//! Values that cannot be served are refused, and the refusal says why.

use anyhow::{Result, ensure};

use crate::helm::Helm;

const GATE: &str =
    r#"controllerManager.featureGates=[{"name": "PartialAdmission", "enabled": true}]"#;

const REFUSED: &[(&[&str], &str)] = &[
    (&["enableKueueViz=true"], "enableKueueViz: this chart does not install KueueViz."),
    (
        &["enableMutatingAdmissionPolicy=true"],
        "enableMutatingAdmissionPolicy: the manager clears nominatedClusterNames itself",
    ),
    (&["enableAlphaAPIs=true"], "enableAlphaAPIs: the manager has no alpha kinds"),
    (
        &["controllerManager.manager.image.repository=registry.k8s.io/kueue/kueue"],
        "registry.k8s.io/kueue/kueue is the image of Kueue's manager",
    ),
    (
        &["controllerManager.manager.shutdownDelaySeconds=30"],
        "the kubelet kills the manager after 30 seconds, before it stops.",
    ),
    (
        &["networkPolicy.enabled=true", "controllerManager.hostNetwork=true"],
        "a NetworkPolicy does not hold for pods with controllerManager.hostNetwork",
    ),
    (
        &["managerConfig.config.namespace=jobs"],
        "the configuration has the namespace jobs, and the release kueue-system",
    ),
    (
        &["enableCertManager=true", "managerConfig.config.internalCertManagement.enable=true"],
        "the configuration lets the manager create certificates",
    ),
    (
        &["managerConfig.config.internalCertManagement.webhookSecretName=own"],
        "internalCertManagement.webhookSecretName is own, and the chart's object is called kueue-webhook-server-cert",
    ),
    (
        &["managerConfig.config.leaderElection.resourceNamespace=jobs"],
        "leaderElection.resourceNamespace is jobs, and the Role of the Lease is in kueue-system",
    ),
    (
        &[GATE, "managerConfig.config.featureGates.PartialAdmission=true"],
        "takes feature gates from controllerManager.featureGates or from the field featureGates",
    ),
    (
        &["managerConfig.controllerManagerConfigYaml=a: ["],
        "managerConfig.controllerManagerConfigYaml is no YAML object",
    ),
    (&["controllerManager.replica=2"], "additional properties 'replica' not allowed"),
    (
        &["controllerManager.replicas=two"],
        "'/controllerManager/replicas': got string, want integer",
    ),
    (&["mutatingWebhook.reinvocationPolicy=Always"], "must be one of 'Never', 'IfNeeded'"),
];

#[tokio::test]
async fn values_that_cannot_be_served_are_refused_with_a_reason() -> Result<()> {
    let helm = Helm::find()?;
    for (values, reason) in REFUSED {
        let refusal = helm.refusal(values).await?;
        ensure!(refusal.contains(reason), "{values:?}: {refusal}");
    }
    Ok(())
}
