//! The quota of a manager's ClusterQueue as the sum of its workers' (docs/reference/multikueue.md §2.14).

use std::collections::{BTreeMap, BTreeSet};

use crds::{
    quantity::Quantity,
    v1alpha1::NodeClass,
    v1beta2::{ClusterQueueSpec, FlavorQuotas, ResourceGroup},
};

/// Amounts by resource.
pub type ResourceTotals = BTreeMap<String, Quantity>;

/// What one worker adds to the quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerQuota {
    /// The nominal quota of its ClusterQueues, over all flavors.
    Queues(ResourceTotals),
    /// The size of its nodes, without pods of its own.
    Nodes(ResourceTotals),
}

impl WorkerQuota {
    fn totals(&self) -> &ResourceTotals {
        match self {
            Self::Queues(totals) | Self::Nodes(totals) => totals,
        }
    }
}

/// Why the quota of a ClusterQueue cannot follow its workers. The texts are those of the condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedQuota {
    /// There is more than one group or flavor, or none.
    #[error(
        "Quota automation requires that the manager-side ClusterQueue has exactly one ResourceFlavor"
    )]
    Shape,
    /// Workers have quota of resources that the ClusterQueue does not cover, in the order of their names.
    #[error("manager-side coveredResources is missing resources configured on workers: [{}]", _0.join(" "))]
    NotCovered(Vec<String>),
}

/// The nominal quota of a ClusterQueue's resources over all groups and flavors.
#[must_use]
pub fn nominal_totals(spec: &ClusterQueueSpec) -> ResourceTotals {
    let mut totals = ResourceTotals::new();
    let flavors = spec.resource_groups.iter().flat_map(|group| &group.flavors);
    for quota in flavors.flat_map(|flavor| &flavor.resources) {
        add_amount(&mut totals, &quota.name, &quota.nominal_quota, 1);
    }
    totals
}

/// The size of the nodes that have these labels.
pub fn node_totals(classes: &[NodeClass], labels: &BTreeMap<String, String>) -> ResourceTotals {
    let mut totals = ResourceTotals::new();
    let has =
        |class: &NodeClass| labels.iter().all(|(key, value)| class.labels.get(key) == Some(value));
    for class in classes.iter().filter(|class| has(class)) {
        for (resource, amount) in &class.size {
            add_amount(&mut totals, resource, amount, i128::from(class.count));
        }
    }
    totals
}

/// The resource groups of a ClusterQueue with the sum of what its workers add. Borrowing limits stay; a lending limit above the
/// sum is cut to it, because the webhook refuses such a limit.
///
/// # Errors
/// If the quota cannot be a sum.
pub fn manager_quota(
    spec: &ClusterQueueSpec,
    workers: &[WorkerQuota],
) -> Result<Vec<ResourceGroup>, UnsupportedQuota> {
    let (group, flavor) = single_flavor(spec).ok_or(UnsupportedQuota::Shape)?;
    check_covered(workers, &group.covered_resources)?;
    let sum = sum_totals(workers.iter().map(WorkerQuota::totals));
    let mut flavor = flavor.clone();
    for quota in &mut flavor.resources {
        let nanos = sum.get(&quota.name).map_or(0, Quantity::nanos);
        if quota.nominal_quota.nanos() != nanos {
            quota.nominal_quota = Quantity::from_nanos(nanos, quota.nominal_quota.format());
        }
        if let Some(limit) = quota.lending_limit.as_mut().filter(|limit| limit.nanos() > nanos) {
            *limit = Quantity::from_nanos(nanos, limit.format());
        }
    }
    let covered_resources = group.covered_resources.clone();
    Ok(vec![ResourceGroup { covered_resources, flavors: vec![flavor] }])
}

/// The name of the only flavor of a ClusterQueue.
#[must_use]
pub fn only_flavor(spec: &ClusterQueueSpec) -> Option<&str> {
    single_flavor(spec).map(|(_, flavor)| flavor.name.as_str())
}

fn single_flavor(spec: &ClusterQueueSpec) -> Option<(&ResourceGroup, &FlavorQuotas)> {
    let [group] = spec.resource_groups.as_slice() else {
        return None;
    };
    let [flavor] = group.flavors.as_slice() else {
        return None;
    };
    Some((group, flavor))
}

/// Nodes have resources that no quota concerns, so only queues are compared.
fn check_covered(workers: &[WorkerQuota], covered: &[String]) -> Result<(), UnsupportedQuota> {
    let queues = workers.iter().filter(|worker| matches!(worker, WorkerQuota::Queues(_)));
    let named: BTreeSet<&String> = queues.flat_map(|queues| queues.totals().keys()).collect();
    let missing = named.into_iter().filter(|name| !covered.contains(name));
    let missing: Vec<String> = missing.cloned().collect();
    if missing.is_empty() { Ok(()) } else { Err(UnsupportedQuota::NotCovered(missing)) }
}

/// The sum of amounts.
#[must_use]
pub fn sum_totals<'t>(all: impl IntoIterator<Item = &'t ResourceTotals>) -> ResourceTotals {
    let mut sum = ResourceTotals::new();
    for (resource, amount) in all.into_iter().flatten() {
        add_amount(&mut sum, resource, amount, 1);
    }
    sum
}

fn add_amount(totals: &mut ResourceTotals, resource: &str, amount: &Quantity, times: i128) {
    let before = totals.get(resource);
    let nanos = before.map_or(0, Quantity::nanos) + amount.nanos() * times;
    let format = before.map_or_else(|| amount.format(), Quantity::format);
    totals.insert(resource.to_owned(), Quantity::from_nanos(nanos, format));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(groups: &Value) -> ClusterQueueSpec {
        serde_json::from_value(json!({ "resourceGroups": groups })).expect("a spec")
    }

    fn one(resources: &Value) -> ClusterQueueSpec {
        spec(&json!([{ "coveredResources": ["cpu", "memory"],
            "flavors": [{ "name": "any", "resources": resources }] }]))
    }

    fn queues(amounts: &[(&str, &str)]) -> WorkerQuota {
        let amount = |(name, amount): &(&str, &str)| {
            ((*name).to_owned(), amount.parse().expect("a quantity"))
        };
        WorkerQuota::Queues(amounts.iter().map(amount).collect())
    }

    fn written(groups: &[ResourceGroup]) -> Value {
        json!(groups[0].flavors[0].resources)
    }

    #[test]
    fn the_quota_is_the_sum_and_limits_stay_as_far_as_they_can() {
        let spec = one(&json!([
            { "name": "cpu", "nominalQuota": "9", "borrowingLimit": "3", "lendingLimit": "8" },
            { "name": "memory", "nominalQuota": "1Gi" },
        ]));
        let workers = [
            queues(&[("cpu", "2500m"), ("memory", "1Gi")]),
            queues(&[("cpu", "3"), ("memory", "512Mi")]),
        ];
        let groups = manager_quota(&spec, &workers).expect("a sum");
        assert_eq!(
            written(&groups),
            json!([
                { "name": "cpu", "nominalQuota": "5500m", "borrowingLimit": "3", "lendingLimit": "5500m" },
                { "name": "memory", "nominalQuota": "1536Mi" },
            ])
        );
        let none = manager_quota(&spec, &[]).expect("a sum");
        assert_eq!(written(&none)[1], json!({ "name": "memory", "nominalQuota": "0" }));
    }

    #[test]
    fn an_equal_sum_changes_nothing() {
        let spec = one(&json!([
            { "name": "cpu", "nominalQuota": "2000m" }, { "name": "memory", "nominalQuota": "1024Mi" },
        ]));
        let workers = [queues(&[("cpu", "2"), ("memory", "1Gi")])];
        assert_eq!(manager_quota(&spec, &workers), Ok(spec.resource_groups.clone()));
    }

    #[test]
    fn other_shapes_and_uncovered_resources_are_named() {
        let flavor = |name: &str| json!({ "name": name, "resources": [{ "name": "cpu", "nominalQuota": "1" }] });
        let group = |flavors: Value| json!({ "coveredResources": ["cpu"], "flavors": flavors });
        let shapes = [
            json!([]),
            json!([group(json!([flavor("a"), flavor("b")]))]),
            json!([group(json!([flavor("a")])), group(json!([flavor("b")]))]),
        ];
        for shape in shapes {
            assert_eq!(manager_quota(&spec(&shape), &[]), Err(UnsupportedQuota::Shape), "{shape}");
        }
        let narrow = spec(&json!([group(json!([flavor("a")]))]));
        let workers = [queues(&[("cpu", "1"), ("pods", "5")]), queues(&[("nvidia.com/gpu", "8")])];
        let refused = manager_quota(&narrow, &workers).expect_err("not covered").to_string();
        assert_eq!(
            refused,
            "manager-side coveredResources is missing resources configured on workers: [nvidia.com/gpu pods]"
        );
        let nodes: ResourceTotals = [
            ("cpu".to_owned(), Quantity::from_units(4)),
            ("pods".to_owned(), Quantity::from_units(110)),
        ]
        .into();
        let groups = manager_quota(&narrow, &[WorkerQuota::Nodes(nodes)]).expect("a sum");
        assert_eq!(written(&groups), json!([{ "name": "cpu", "nominalQuota": "4" }]));
    }

    #[test]
    fn totals_count_every_flavor_and_every_node_with_the_labels() {
        let two = spec(&json!([
            { "coveredResources": ["cpu"], "flavors": [
                { "name": "a", "resources": [{ "name": "cpu", "nominalQuota": "1" }] },
                { "name": "b", "resources": [{ "name": "cpu", "nominalQuota": "500m" }] },
            ] },
        ]));
        assert_eq!(json!(nominal_totals(&two)), json!({ "cpu": "1500m" }));
        let classes: Vec<NodeClass> = serde_json::from_value(json!([
            { "count": 3, "labels": { "zone": "z" }, "size": { "cpu": "2" }, "free": { "cpu": "1" } },
            { "count": 5, "size": { "cpu": "2" } },
        ]))
        .expect("classes");
        let zone = [("zone".to_owned(), "z".to_owned())].into();
        assert_eq!(json!(node_totals(&classes, &zone)), json!({ "cpu": "6" }));
        assert_eq!(json!(node_totals(&classes, &BTreeMap::new())), json!({ "cpu": "16" }));
    }
}
