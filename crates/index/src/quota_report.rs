//! Quota of the ClusterQueues of a worker, as its capacity report shows it (docs/reference/dispatch.md §2).

use crds::v1alpha1::FlavorCapacity;
use engine::{Amount, Engine, QueueQuota};

use crate::amount::quantity;
use crate::index::Index;

/// The most entries of a report.
const MOST_ENTRIES: usize = 1024;

/// One entry for each flavor and resource of each active ClusterQueue, in the order of their names. Amounts are rounded down.
/// What does not fit a report is left out, as if there were no quota. Cohorts are as of the last cycle.
#[must_use]
pub fn quota_report(index: &Index, engine: &Engine) -> Vec<FlavorCapacity> {
    let names = engine.names();
    let is_active = |name: &str| index.active_condition(name).is_some_and(|one| one.active);
    let active = index.queues.names().filter(|name| is_active(name));
    let queues = active.filter_map(|name| Some((name, names.queues.get(name)?)));
    let entries = queues.flat_map(|(name, id)| {
        let in_api = |one: QueueQuota| {
            let resource = names.resources.name(one.resource);
            let amount = |amount: Amount| quantity(resource, amount);
            FlavorCapacity {
                cluster_queue: name.clone(),
                flavor: names.flavors.name(one.flavor).to_owned(),
                resource: resource.to_owned(),
                nominal: amount(one.nominal),
                used: amount(one.used),
                borrowable: amount(one.borrowable),
            }
        };
        engine.queue_quota(id).into_iter().map(in_api)
    });
    entries.take(MOST_ENTRIES).collect()
}

#[cfg(test)]
mod tests {
    use engine::{Engine, EngineSettings, Event};
    use serde_json::{Value, json};

    use super::*;
    use crate::IndexConfig;

    struct Cluster {
        index: Index,
        engine: Engine,
    }

    impl Cluster {
        fn new() -> Self {
            let index = Index::new(IndexConfig::default());
            let mut cluster = Self { index, engine: Engine::new(EngineSettings::default()) };
            let flavor = serde_json::from_value(json!({"metadata": {"name": "a100"}}));
            let flavor = flavor.expect("a flavor");
            cluster.apply(|index, names| index.resource_flavor(names, "a100", Some(&flavor)));
            cluster
        }

        fn apply(&mut self, read: impl FnOnce(&mut Index, &mut engine::Names) -> Vec<Event>) {
            let events = read(&mut self.index, self.engine.names_mut());
            events.into_iter().for_each(|event| self.engine.apply(event));
        }

        /// A ClusterQueue of cohort `team`.
        fn queue(&mut self, name: &str, quota: &Value) {
            let mut cpu = quota.clone();
            cpu["name"] = json!("cpu");
            let queue = json!({
                "metadata": {"name": name},
                "spec": {
                    "cohortName": "team",
                    "resourceGroups": [{
                        "coveredResources": ["cpu"],
                        "flavors": [{"name": "a100", "resources": [cpu]}],
                    }],
                },
            });
            let queue = serde_json::from_value(queue).expect("a ClusterQueue");
            self.apply(|index, names| index.cluster_queue(names, name, Some(&queue)));
        }

        /// A Workload that holds this much of a queue.
        fn running(&mut self, name: &str, queue: &str, cpu: &str) {
            let workload = json!({
                "metadata": {"name": name, "namespace": "ns", "uid": name},
                "spec": {"queueName": queue, "podSets": [{
                    "name": "main", "count": 1,
                    "template": {"spec": {"containers": [
                        {"name": "c", "resources": {"requests": {"cpu": cpu}}},
                    ]}},
                }]},
                "status": {
                    "admission": {"clusterQueue": queue, "podSetAssignments": [{
                        "name": "main", "count": 1, "flavors": {"cpu": "a100"},
                        "resourceUsage": {"cpu": cpu},
                    }]},
                    "conditions": [{
                        "type": "QuotaReserved", "status": "True", "reason": "QuotaReserved",
                        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }],
                },
            });
            let workload = serde_json::from_value(workload).expect("a Workload");
            self.apply(|index, names| index.workload(names, &workload, engine::Time::default()));
        }

        /// `queue nominal/used/borrowable` of every entry, after a cycle, which sums up quotas.
        fn report(&mut self) -> Vec<String> {
            self.engine.cycle(engine::Time::default(), &mut engine::AcceptAll);
            let text = |one: FlavorCapacity| {
                let FlavorCapacity { cluster_queue, nominal, used, borrowable, .. } = one;
                format!("{cluster_queue} {nominal}/{used}/{borrowable}")
            };
            quota_report(&self.index, &self.engine).into_iter().map(text).collect()
        }
    }

    #[test]
    fn a_queue_can_borrow_what_its_cohort_does_not_use() {
        let mut cluster = Cluster::new();
        cluster.queue("a", &json!({"nominalQuota": "4"}));
        cluster.queue("b", &json!({"nominalQuota": "6", "borrowingLimit": "1"}));
        assert_eq!(cluster.report(), ["a 4/0/6", "b 6/0/1"]);
        cluster.running("one", "b", "5");
        assert_eq!(cluster.report(), ["a 4/0/1", "b 6/5/1"]);
    }

    #[test]
    fn nominal_quota_that_others_have_borrowed_counts_as_used() {
        let mut cluster = Cluster::new();
        cluster.queue("a", &json!({"nominalQuota": "4"}));
        cluster.queue("b", &json!({"nominalQuota": "6"}));
        cluster.running("large", "b", "9");
        assert_eq!(cluster.report(), ["a 4/3/0", "b 6/9/1"]);
    }

    #[test]
    fn an_inactive_queue_reports_no_quota() {
        let mut cluster = Cluster::new();
        cluster.queue("a", &json!({"nominalQuota": "4"}));
        cluster.apply(|index, names| index.resource_flavor(names, "a100", None));
        assert!(cluster.report().is_empty());
    }
}
