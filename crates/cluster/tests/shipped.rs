//! Consistency of the manifests in `config`: the manager accepts the configuration file, and the account that webhooks exclude
//! is the manager's.

use cluster::config::Configuration;
use serde_json::Value;

const CONFIG_MAP: &str = include_str!("../../../config/manager/configuration.yaml");
const ACCOUNT: &str = include_str!("../../../config/rbac/service-account.yaml");
const WEBHOOKS: [&str; 2] = [
    include_str!("../../../config/webhook/mutating.yaml"),
    include_str!("../../../config/webhook/validating.yaml"),
];

#[test]
fn the_shipped_configuration_is_valid_and_dispatches_by_capacity() {
    let map: Value = serde_saphyr::from_str(CONFIG_MAP).expect("YAML");
    let text = map["data"]["controller_manager_config.yaml"].as_str().expect("the file");
    let loaded = Configuration::load(text, None).expect("a valid configuration");
    assert_eq!(loaded.multi_kueue.dispatcher_name, "sluice.dev/capacity");
    assert_eq!(loaded.leader_election.resource_name, crds::names::LEADER_LEASE);
    assert_eq!(loaded.settings_without_effect(), [""; 0], "every setting has an effect");
    assert_eq!(map["metadata"]["namespace"].as_str(), Some(loaded.namespace()));
}

#[test]
fn webhooks_exclude_the_managers_own_account() {
    let account: Value = serde_saphyr::from_str(ACCOUNT).expect("YAML");
    let part = |name: &str| account["metadata"][name].as_str().expect("a name").to_owned();
    let user = format!("system:serviceaccount:{}:{}", part("namespace"), part("name"));
    let mut spared = Vec::new();
    for file in WEBHOOKS {
        let configuration: Value = serde_saphyr::from_str(file).expect("YAML");
        for webhook in configuration["webhooks"].as_array().expect("webhooks") {
            let name = webhook["name"].as_str().expect("a name").to_owned();
            for condition in webhook["matchConditions"].as_array().into_iter().flatten() {
                let expected = format!("request.userInfo.username != '{user}'");
                assert_eq!(condition["expression"], expected.as_str(), "{name}");
                spared.push(name.clone());
            }
        }
    }
    assert_eq!(spared, ["mworkload.kb.io", "vjob.kb.io", "vworkload.kb.io"]);
}
