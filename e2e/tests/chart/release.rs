//! A release in a cluster, by Helm itself: install, upgrade and uninstall. Nothing serves its webhooks.

use anyhow::{Context, Result, ensure};
use harness::{Cluster, LabPlan, TestLab};
use serde_json::{Value, json};

use crate::helm::{Helm, NAMESPACE};

/// Objects into which the manager injects its CA, and the place of it.
const CALLED: [(&str, &str); 2] = [
    (
        "mutatingwebhookconfiguration/kueue-mutating-webhook-configuration",
        "/webhooks/0/clientConfig/caBundle",
    ),
    ("crd/cohorts.kueue.x-k8s.io", "/spec/conversion/webhook/clientConfig/caBundle"),
];

/// A cluster with a release of the chart.
struct Release {
    cluster: Cluster,
    helm: Helm,
}

#[tokio::test]
async fn helm_installs_upgrades_and_uninstalls_the_chart() -> Result<()> {
    let lab = TestLab::start(LabPlan { workers: 0, audit: false }).await?;
    let release = Release { cluster: lab.cluster("manager").await?, helm: Helm::find()? };
    let chart = Helm::chart();
    release.run(&["install", "kueue", &chart, "--create-namespace"]).await?;
    let installed = release.deployment().await?;
    ensure!(installed["spec"]["replicas"] == 2, "{installed}");

    release.set_ca().await?;
    let values = "controllerManager.replicas=3,managerConfig.config.multiKueue.origin=other";
    release.run(&["upgrade", "kueue", &chart, "--set", values]).await?;
    let upgraded = release.deployment().await?;
    ensure!(upgraded["spec"]["replicas"] == 3, "{upgraded}");
    ensure!(
        checksum(&installed)? != checksum(&upgraded)?,
        "a changed configuration replaces the pods: {upgraded}"
    );
    release.ensure_ca().await?;

    release.run(&["uninstall", "kueue", "--wait"]).await?;
    release.ensure_gone().await
}

impl Release {
    async fn run(&self, command: &[&str]) -> Result<()> {
        let kubeconfig = self.cluster.state().kubeconfig().display().to_string();
        let at = ["--namespace", NAMESPACE, "--kubeconfig", &kubeconfig];
        self.helm.run(&[command, &at].concat()).await.map(drop)
    }

    async fn deployment(&self) -> Result<Value> {
        let get = ["get", "deployment/sluice-manager", "-n", NAMESPACE, "-o", "json"];
        Ok(serde_json::from_str(&self.cluster.kubectl(&get).await?)?)
    }

    /// Injects a CA, as the manager does.
    async fn set_ca(&self) -> Result<()> {
        let path = "jsonpath={.clusters[0].cluster.certificate-authority-data}";
        let ca = self.cluster.kubectl(&["config", "view", "--raw", "-o", path]).await?;
        for (object, path) in CALLED {
            let patch = json!([{"op": "add", "path": path, "value": ca}]).to_string();
            let how = ["--type=json", "--field-manager=sluice-manager", "-p", &patch];
            self.cluster.kubectl(&[&["patch", object][..], &how].concat()).await?;
        }
        Ok(())
    }

    async fn ensure_ca(&self) -> Result<()> {
        for (object, path) in CALLED {
            let path = format!("jsonpath={{{}}}", path.replace("/0", "[0]").replace('/', "."));
            let ca = self.cluster.kubectl(&["get", object, "-o", &path]).await?;
            ensure!(!ca.is_empty(), "{object} keeps the CA over an upgrade");
        }
        Ok(())
    }

    async fn ensure_gone(&self) -> Result<()> {
        let kinds = "deployments,services,configmaps,roles,crds,clusterroles";
        let get = ["get", kinds, "-A", "-l", "helm.sh/chart", "-o", "name"];
        let left = self.cluster.kubectl(&get).await?;
        ensure!(left.trim().is_empty(), "{left}");
        Ok(())
    }
}

fn checksum(deployment: &Value) -> Result<&str> {
    let annotations = &deployment["spec"]["template"]["metadata"]["annotations"];
    annotations["charts.kueue.x-k8s.io/config-checksum"].as_str().context("no checksum")
}
