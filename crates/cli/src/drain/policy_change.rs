//! Which DispatchPolicies change so that a worker is drained, or takes work again. Pure.
//!
//! Entries are changed as JSON, so that fields without a type here stay.

use crds::{
    names::annotations::POLICY,
    v1alpha1::DispatchPolicy,
    v1beta2::{MultiKueueCluster, MultiKueueConfig},
};
use serde_json::{Map, Value, json};

use super::{DrainFailure, DrainOrder};
use crate::{clusters::serves, made_by::is_made_by_sluicectl};

/// A policy with the JSON of its spec.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyObject {
    /// As type.
    pub policy: DispatchPolicy,
    /// The spec as the server holds it.
    pub spec: Map<String, Value>,
}

/// A change of policies.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyChange {
    /// The policy gets these clusters.
    Update {
        /// Name of the policy.
        policy: String,
        /// The resourceVersion that the change follows from.
        version: String,
        /// `spec.clusters`.
        clusters: Vec<Value>,
    },
    /// A policy that only drains is made. Everything else in it is the default, as without a policy.
    Create {
        /// Name of the policy.
        policy: String,
        /// `spec.clusters`.
        clusters: Vec<Value>,
    },
    /// A configuration names a policy.
    Name {
        /// The configuration.
        config: String,
        /// The policy; none if it names one no more.
        policy: Option<String>,
    },
    /// A policy that was made for a drain goes with it.
    Delete {
        /// Name of the policy.
        policy: String,
        /// The uid of the policy.
        uid: Option<String>,
    },
}

impl PolicyObject {
    /// Reads an object of the API.
    ///
    /// # Errors
    /// If it is no DispatchPolicy.
    pub fn read(object: &Value) -> Result<Self, serde_json::Error> {
        let spec = object.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
        Ok(Self { policy: serde_json::from_value(object.clone())?, spec })
    }

    fn name(&self) -> &str {
        self.policy.metadata.name.as_deref().unwrap_or_default()
    }

    fn clusters(&self) -> &[Value] {
        self.spec.get("clusters").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether the policy says what a configuration without a policy gets, apart from clusters.
    fn is_default(&self) -> bool {
        self.spec.iter().all(|(field, value)| match field.as_str() {
            "clusters" => true,
            "strategy" => value == "Spread",
            _ => false,
        })
    }

    /// The change to these clusters, if they differ.
    fn update(&self, clusters: Vec<Value>) -> Option<PolicyChange> {
        let version = self.policy.metadata.resource_version.clone().unwrap_or_default();
        let policy = self.name().to_owned();
        (clusters != self.clusters()).then_some(PolicyChange::Update { policy, version, clusters })
    }
}

/// The changes that an order needs, in their order; none if it holds already.
///
/// # Errors
/// If nothing dispatches to the worker, or a policy would have to be made under a name that is in use.
pub fn plan(
    cluster: &MultiKueueCluster,
    configs: &[MultiKueueConfig],
    policies: &[PolicyObject],
    order: DrainOrder,
) -> Result<Vec<PolicyChange>, DrainFailure> {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    if order == DrainOrder::End {
        // Also in policies that no configuration names any more: the drain would come back with them.
        return Ok(policies.iter().flat_map(|policy| ending(policy, configs, name)).collect());
    }
    let mut changes = Vec::new();
    let mut served = false;
    for config in configs {
        let named = config.metadata.annotations.as_ref().and_then(|all| all.get(POLICY));
        let policy = named.and_then(|named| policies.iter().find(|one| one.name() == named));
        if !serves(config, policy.map(|one| &one.policy), cluster) {
            continue;
        }
        served = true;
        let needed = match policy {
            Some(policy) => {
                policy.update(with_drain(policy.clusters(), name, order)).into_iter().collect()
            }
            None => creation(config, named, policies, (name, order))?,
        };
        // Configurations may share a policy.
        let new: Vec<_> = needed.into_iter().filter(|change| !changes.contains(change)).collect();
        changes.extend(new);
    }
    if served { Ok(changes) } else { Err(DrainFailure::NotDispatchedTo(name.to_owned())) }
}

/// A policy for a configuration that names none, or one that does not exist.
fn creation(
    config: &MultiKueueConfig,
    named: Option<&String>,
    policies: &[PolicyObject],
    (cluster, order): (&str, DrainOrder),
) -> Result<Vec<PolicyChange>, DrainFailure> {
    let config = config.metadata.name.clone().unwrap_or_default();
    let policy = named.unwrap_or(&config).clone();
    let existing = policies.iter().find(|one| one.name() == policy);
    let made = match existing {
        // A command that ended early has made it and not named it.
        Some(existing) if is_made_by_sluicectl(&existing.policy.metadata) => {
            existing.update(with_drain(existing.clusters(), cluster, order))
        }
        Some(_) => return Err(DrainFailure::PolicyNameTaken { config, policy }),
        None => {
            let clusters = with_drain(&[], cluster, order);
            Some(PolicyChange::Create { policy: policy.clone(), clusters })
        }
    };
    let name = named.is_none().then_some(PolicyChange::Name { config, policy: Some(policy) });
    Ok(made.into_iter().chain(name).collect())
}

/// The end of a drain in one policy. A policy that was made for drains goes with the last one, and leaves no trace.
fn ending(policy: &PolicyObject, configs: &[MultiKueueConfig], cluster: &str) -> Vec<PolicyChange> {
    let left = without_drain(policy.clusters(), cluster);
    let Some(update) = policy.update(left.clone()) else {
        return Vec::new();
    };
    if !(is_made_by_sluicectl(&policy.policy.metadata) && policy.is_default() && left.is_empty()) {
        return vec![update];
    }
    let naming = configs.iter().filter(|config| {
        let named = config.metadata.annotations.as_ref().and_then(|all| all.get(POLICY));
        named.is_some_and(|named| named == policy.name())
    });
    let unname = naming.map(|config| PolicyChange::Name {
        config: config.metadata.name.clone().unwrap_or_default(),
        policy: None,
    });
    let uid = policy.policy.metadata.uid.clone();
    let delete = PolicyChange::Delete { policy: policy.name().to_owned(), uid };
    unname.chain([delete]).collect()
}

fn with_drain(clusters: &[Value], name: &str, order: DrainOrder) -> Vec<Value> {
    let mut drain = Map::new();
    if let DrainOrder::Drain { deadline: Some(deadline) } = order {
        drain.insert("deadline".to_owned(), json!(deadline.to_string()));
    }
    let mut clusters = clusters.to_vec();
    match clusters.iter_mut().find(|one| one["name"] == name) {
        Some(entry) if order == DrainOrder::Cordon && entry.get("drain").is_some() => {}
        Some(entry) => entry["drain"] = Value::Object(drain),
        None => clusters.push(json!({"name": name, "drain": drain})),
    }
    clusters
}

/// An entry that says nothing else goes with its drain.
fn without_drain(clusters: &[Value], name: &str) -> Vec<Value> {
    let mut kept = Vec::new();
    for entry in clusters {
        let mut entry = entry.clone();
        let removed = entry["name"] == name
            && entry.as_object_mut().is_some_and(|fields| fields.remove("drain").is_some());
        let is_empty = entry.as_object().is_none_or(|fields| fields.len() <= 1);
        if !(removed && is_empty) {
            kept.push(entry);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use crds::names::{SLUICECTL, labels::MANAGED_BY};

    use super::*;

    fn read<K: serde::de::DeserializeOwned>(object: Value) -> K {
        serde_json::from_value(object).expect("an object")
    }

    fn cluster() -> MultiKueueCluster {
        read(json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueCluster",
            "metadata": {"name": "east", "labels": {"zone": "a"}}}))
    }

    fn config(name: &str, policy: Option<&str>, clusters: &[&str]) -> MultiKueueConfig {
        let annotations = policy.map(|policy| json!({"sluice.dev/policy": policy}));
        read(json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "MultiKueueConfig",
            "metadata": {"name": name, "annotations": annotations}, "spec": {"clusters": clusters}}))
    }

    fn policy(name: &str, spec: &Value) -> PolicyObject {
        let object = json!({"apiVersion": "sluice.dev/v1alpha1", "kind": "DispatchPolicy",
            "metadata": {"name": name, "resourceVersion": "7"}, "spec": spec});
        PolicyObject::read(&object).expect("a policy")
    }

    fn update(policy: &str, clusters: &Value) -> PolicyChange {
        let clusters = clusters.as_array().cloned().expect("a list");
        PolicyChange::Update { policy: policy.to_owned(), version: "7".to_owned(), clusters }
    }

    const CORDON: DrainOrder = DrainOrder::Cordon;

    #[test]
    fn a_drain_keeps_what_else_a_policy_says() {
        let clusters = json!([{"name": "west"}, {"name": "east", "weight": 3, "later": true}]);
        let policies = [policy("p", &json!({"clusters": clusters}))];
        let configs = [config("c", Some("p"), &["east"])];
        let deadline = Some("2026-11-24T12:00:00Z".parse().expect("a time"));
        let order = DrainOrder::Drain { deadline };
        let changes = plan(&cluster(), &configs, &policies, order).expect("changes");
        let drained = json!([{"name": "west"},
            {"name": "east", "weight": 3, "later": true, "drain": {"deadline": "2026-11-24T12:00:00Z"}}]);
        assert_eq!(changes, [update("p", &drained)]);
    }

    #[test]
    fn every_policy_that_serves_the_worker_is_changed_once() {
        let selects = json!({"clusterSelector": {"matchLabels": {"zone": "a"}}});
        let policies =
            [policy("p", &json!({})), policy("s", &selects), policy("other", &json!({}))];
        let configs = [
            config("one", Some("p"), &["east"]),
            config("two", Some("p"), &["west", "east"]),
            config("three", Some("s"), &["west"]),
            config("four", Some("other"), &["west"]),
        ];
        let changes = plan(&cluster(), &configs, &policies, CORDON).expect("changes");
        let drained = json!([{"name": "east", "drain": {}}]);
        assert_eq!(changes, [update("p", &drained), update("s", &drained)]);
    }

    fn made(mut policy: PolicyObject) -> PolicyObject {
        let labels = [(MANAGED_BY.to_owned(), SLUICECTL.to_owned())];
        policy.policy.metadata.labels = Some(labels.into());
        policy
    }

    #[test]
    fn a_configuration_without_a_policy_gets_one() {
        let create = |policy: &str| PolicyChange::Create {
            policy: policy.to_owned(),
            clusters: vec![json!({"name": "east", "drain": {}})],
        };
        let name = PolicyChange::Name { config: "c".to_owned(), policy: Some("c".to_owned()) };
        let plan =
            |config, policies: &[PolicyObject]| plan(&cluster(), &[config], policies, CORDON);
        let unnamed = || config("c", None, &["east"]);
        assert_eq!(plan(unnamed(), &[]).expect("changes"), [create("c"), name.clone()]);
        assert_eq!(plan(config("c", Some("q"), &["east"]), &[]).expect("changes"), [create("q")]);
        let taken = plan(unnamed(), &[policy("c", &json!({}))]);
        assert!(matches!(taken, Err(DrainFailure::PolicyNameTaken { .. })), "{taken:?}");
        let drained = json!({"clusters": [{"name": "east", "drain": {}}]});
        let interrupted = made(policy("c", &drained));
        assert_eq!(plan(unnamed(), &[interrupted]).expect("changes"), [name]);
    }

    #[test]
    fn a_policy_that_was_made_for_a_drain_goes_with_the_last_drain() {
        let configs = [config("c", Some("c"), &["east"])];
        let ended = |spec: &Value| {
            let policies = [made(policy("c", spec))];
            plan(&cluster(), &configs, &policies, DrainOrder::End).expect("changes")
        };
        let unname = PolicyChange::Name { config: "c".to_owned(), policy: None };
        let delete = PolicyChange::Delete { policy: "c".to_owned(), uid: None };
        let drained = json!({"strategy": "Spread", "clusters": [{"name": "east", "drain": {}}]});
        assert_eq!(ended(&drained), [unname, delete]);
        let other =
            json!({"clusters": [{"name": "east", "drain": {}}, {"name": "west", "drain": {}}]});
        assert_eq!(ended(&other), [update("c", &json!([{"name": "west", "drain": {}}]))]);
        let changed = json!({"strategy": "BinPack", "clusters": [{"name": "east", "drain": {}}]});
        assert_eq!(ended(&changed), [update("c", &json!([]))]);
    }

    #[test]
    fn a_cordon_keeps_the_deadline_of_a_drain() {
        let drain = json!({"deadline": "2026-11-24T12:00:00Z"});
        let policies = [policy("p", &json!({"clusters": [{"name": "east", "drain": drain}]}))];
        let configs = [config("c", Some("p"), &["east"])];
        let plan = |order| plan(&cluster(), &configs, &policies, order).expect("changes");
        assert_eq!(plan(CORDON), []);
        let without_deadline = DrainOrder::Drain { deadline: None };
        assert_eq!(plan(without_deadline), [update("p", &json!([{"name": "east", "drain": {}}]))]);
    }

    #[test]
    fn an_order_that_holds_changes_nothing() {
        let drained = json!({"clusters": [{"name": "east", "drain": {}}]});
        let configs = [config("c", Some("p"), &["east"])];
        let plan = |spec: &Value, order| plan(&cluster(), &configs, &[policy("p", spec)], order);
        assert_eq!(plan(&drained, CORDON).expect("changes"), []);
        assert_eq!(plan(&json!({}), DrainOrder::End).expect("changes"), []);
        assert_eq!(plan(&drained, DrainOrder::End).expect("changes"), [update("p", &json!([]))]);
        let weighted = json!({"clusters": [{"name": "east", "weight": 1, "drain": {}}, {"name": "west", "drain": {}}]});
        let left = json!([{"name": "east", "weight": 1}, {"name": "west", "drain": {}}]);
        assert_eq!(plan(&weighted, DrainOrder::End).expect("changes"), [update("p", &left)]);
    }

    #[test]
    fn a_worker_that_nothing_dispatches_to_cannot_be_drained() {
        let refused = plan(&cluster(), &[config("c", None, &["west"])], &[], CORDON);
        assert!(matches!(refused, Err(DrainFailure::NotDispatchedTo(_))), "{refused:?}");
    }
}
