//! Consistency of the manifests in `config`: the manager accepts the configuration file.

use config::Configuration;
use serde_json::Value;

const CONFIG_MAP: &str = include_str!("../../../config/manager/configuration.yaml");

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
