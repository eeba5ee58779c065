//! Configuration files as they are shipped: the manager accepts its own, what the pages of `docs/tasks` show, and what Kueue's
//! installation and a values file of Kueue's chart set.

use std::{fs, path::Path};

use config::{Configuration, gates::Gate};
use serde_json::Value;

const CONFIG_MAP: &str = include_str!("../../../config/manager/configuration.yaml");

/// A values file of Kueue's chart, with every value.
const CHART_VALUES: &str = include_str!("../../../e2e/tests/chart/kueue-values.yaml");

/// The fields that the file in Kueue's manifests sets, but for the version.
const OF_KUEUE: &str = "
kind: Configuration
health: {healthProbeBindAddress: ':8081'}
metrics: {bindAddress: ':8443'}
webhook: {port: 9443}
leaderElection: {leaderElect: true, resourceName: c1f6bfd2.kueue.x-k8s.io}
controller:
  groupKindConcurrency:
    Job.batch: 5
    Pod: 5
    Workload.kueue.x-k8s.io: 5
    LocalQueue.kueue.x-k8s.io: 1
    Cohort.kueue.x-k8s.io: 1
    ClusterQueue.kueue.x-k8s.io: 1
    ResourceFlavor.kueue.x-k8s.io: 1
clientConnection: {qps: 50, burst: 100}
integrations:
  frameworks: [batch/job, kubeflow.org/mpijob, ray.io/rayjob, ray.io/raycluster, ray.io/rayservice,
    jobset.x-k8s.io/jobset, trainer.kubeflow.org/trainjob, kubeflow.org/paddlejob, kubeflow.org/pytorchjob,
    kubeflow.org/tfjob, kubeflow.org/xgboostjob, kubeflow.org/jaxjob, workload.codeflare.dev/appwrapper,
    pod, deployment, statefulset, leaderworkerset.x-k8s.io/leaderworkerset]
";

/// What else its comments propose.
const PROPOSED_BY_KUEUE: &str = "
pprofBindAddress: ':8083'
waitForPodsReady:
  timeout: 5m
  blockAdmission: false
  requeuingStrategy: {timestamp: Eviction, backoffLimitCount: null, backoffBaseSeconds: 60, backoffMaxSeconds: 3600}
manageJobsWithoutQueueName: true
managedJobsNamespaceSelector:
  matchExpressions:
  - {key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, kueue-system]}
internalCertManagement: {enable: false, webhookServiceName: '', webhookSecretName: ''}
fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}
resources:
  excludeResourcePrefixes: []
  transformations:
  - {input: nvidia.com/mig-4g.5gb, strategy: Replace, outputs: {example.com/accelerator-memory: 5Gi, example.com/accelerator-gpc: 4}}
";

/// The names of the settings of a file that have no effect.
fn idle(file: &Configuration) -> Vec<String> {
    file.settings_without_effect().into_iter().map(|one| one.name).collect()
}

#[test]
fn the_shipped_configuration_is_valid_and_dispatches_by_capacity() {
    let map: Value = serde_saphyr::from_str(CONFIG_MAP).expect("YAML");
    let text = map["data"]["controller_manager_config.yaml"].as_str().expect("the file");
    let loaded = Configuration::load(text, None).expect("a valid configuration");
    assert_eq!(loaded.multi_kueue.dispatcher_name, "sluice.dev/capacity");
    assert_eq!(loaded.leader_election.resource_name, crds::names::LEADER_LEASE);
    assert_eq!(loaded.settings_without_effect(), [], "every setting has an effect");
    assert_eq!(map["metadata"]["namespace"].as_str(), Some(loaded.namespace()));
}

/// Jobs of a kind that Kueue's file enables and this one does not would run without quota after the manager was replaced.
#[test]
fn the_shipped_file_enables_the_integrations_of_kueues() {
    let frameworks = |text: &str| {
        let file: Value = serde_saphyr::from_str(text).expect("YAML");
        let names = file["integrations"]["frameworks"].as_array().expect("a list").clone();
        let names = names.iter().filter_map(Value::as_str).map(str::to_owned);
        names.collect::<std::collections::BTreeSet<String>>()
    };
    let map: Value = serde_saphyr::from_str(CONFIG_MAP).expect("YAML");
    let text = map["data"]["controller_manager_config.yaml"].as_str().expect("the file");
    assert_eq!(frameworks(text), frameworks(OF_KUEUE));
}

#[test]
fn the_file_of_kueues_manifests_starts_the_manager() {
    for version in ["v1beta1", "v1beta2"] {
        let text = format!("apiVersion: config.kueue.x-k8s.io/{version}{OF_KUEUE}");
        let file = Configuration::load(&text, None).expect(version);
        let gates = file.gates("").expect("gates");
        file.check_with(&gates).expect(version);
        assert!(gates.enabled(Gate::MultiKueue), "the defaults");
        assert_eq!(file.leader_election.resource_name, crds::names::LEADER_LEASE);
        assert_eq!(file.integrations.frameworks.len(), 17);
        assert_eq!(idle(&file), ["controller", "clientConnection"], "{version}");
    }
}

#[test]
fn what_the_file_of_kueues_manifests_proposes_starts_the_manager() {
    let text = format!("apiVersion: config.kueue.x-k8s.io/v1beta2{OF_KUEUE}{PROPOSED_BY_KUEUE}");
    let file = Configuration::load(&text, None).expect("a valid file");
    file.check_with(&file.gates("").expect("gates")).expect("a valid file");
    assert_eq!(idle(&file), ["controller", "clientConnection"]);
}

#[test]
fn the_file_of_a_values_file_of_kueues_chart_starts_the_manager() {
    let values: Value = serde_saphyr::from_str(CHART_VALUES).expect("YAML");
    let text = values["managerConfig"]["controllerManagerConfigYaml"].as_str().expect("the file");
    let file = Configuration::load(text, Some("kueue-system")).expect("a valid file");
    file.check_with(&file.gates("").expect("gates")).expect("a valid file");
    assert_eq!(idle(&file), ["controller", "clientConnection"]);
}

/// The blocks of the pages of tasks that show fields of the file, each with the name of its page.
fn shown_by_tasks() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tasks");
    let pages = fs::read_dir(folder).expect("the pages").flatten().map(|page| page.path());
    let blocks = pages.flat_map(|page| {
        let text = fs::read_to_string(&page).expect("a page");
        let blocks = text.split("```yaml\n# controller_manager_config.yaml\n").skip(1);
        let blocks = blocks.filter_map(|rest| rest.split("```").next()).map(str::to_owned);
        blocks.map(|block| (page.display().to_string(), block)).collect::<Vec<_>>()
    });
    blocks.collect()
}

#[test]
fn fields_that_the_tasks_show_are_valid_and_have_an_effect() {
    let shown = shown_by_tasks();
    assert!(shown.len() >= 7, "{} blocks", shown.len());
    let header = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n";
    for (page, block) in shown {
        let loaded = Configuration::load(&format!("{header}{block}"), None);
        let loaded = loaded.unwrap_or_else(|error| panic!("{page}: {error}"));
        loaded.check_with(&loaded.gates("").expect("gates")).expect("a valid file");
        assert_eq!(idle(&loaded), [""; 0], "{page}");
    }
}
