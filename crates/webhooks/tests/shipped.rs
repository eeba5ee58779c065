//! Consistency of the manifests in `config`: the account that webhooks exclude is the manager's.

use jobs::Kinds;
use serde_json::Value;

const ACCOUNT: &str = include_str!("../../../config/rbac/service-account.yaml");
const WEBHOOKS: [&str; 2] = [
    include_str!("../../../config/webhook/mutating.yaml"),
    include_str!("../../../config/webhook/validating.yaml"),
];

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
    let validated =
        Kinds::built_in().into_iter().map(|kind| format!("v{}.kb.io", kind.name().to_lowercase()));
    let mut expected: Vec<String> = validated.collect();
    expected.extend(["mworkload.kb.io", "vworkload.kb.io"].map(str::to_owned));
    expected.sort();
    assert_eq!(spared, expected);
}
