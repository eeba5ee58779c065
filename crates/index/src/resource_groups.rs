//! Resource groups and quotas of ClusterQueues and Cohorts in the engine's terms: nominal quota, borrowing limit,
//! lending limit. Source: docs/reference/kueue.md §1.3, §2.7.

use crds::v1beta2::{Cohort, FairSharing, ResourceGroup, ResourceQuota};
use engine::spec::{self, CohortInfo, FairSharingWeight};
use engine::{Event, Names};

use crate::amount::amount;

pub(crate) fn groups(names: &mut Names, groups: &[ResourceGroup]) -> Vec<spec::ResourceGroupSpec> {
    groups.iter().map(|one| group(names, one)).collect()
}

fn group(names: &mut Names, group: &ResourceGroup) -> spec::ResourceGroupSpec {
    let covered = group.covered_resources.iter();
    let resources = covered.map(|name| names.resources.intern(name)).collect();
    let mut flavors = Vec::new();
    for one in &group.flavors {
        let quotas = one.resources.iter().map(|quota| resource_quota(names, quota)).collect();
        let flavor = names.flavors.intern(&one.name);
        flavors.push(spec::FlavorQuotaSpec { flavor, resources: quotas });
    }
    spec::ResourceGroupSpec { resources, flavors }
}

fn resource_quota(names: &mut Names, quota: &ResourceQuota) -> spec::QuotaSpec {
    let read = |quantity| amount(&quota.name, quantity).as_quota_of(&quota.name);
    spec::QuotaSpec {
        resource: names.resources.intern(&quota.name),
        nominal: read(&quota.nominal_quota),
        borrowing_limit: quota.borrowing_limit.as_ref().map(read),
        lending_limit: quota.lending_limit.as_ref().map(read),
    }
}

/// Fair sharing weight in billionths; 1 by default.
pub(crate) fn weight(fair_sharing: Option<&FairSharing>) -> FairSharingWeight {
    let Some(weight) = fair_sharing.and_then(|one| one.weight.as_ref()) else {
        return FairSharingWeight::default();
    };
    // Webhooks refuse a negative weight; one that is stored nevertheless counts as 0.
    FairSharingWeight(u64::try_from(weight.nanos().max(0)).unwrap_or(u64::MAX))
}

pub(crate) fn cohort_name(name: &str) -> Option<&str> {
    // The API has an empty name where there is no cohort.
    (!name.is_empty()).then_some(name)
}

/// Enters a Cohort.
pub(crate) fn cohort_event(names: &mut Names, name: &str, cohort: Option<&Cohort>) -> Event {
    let spec = cohort.map(|cohort| CohortInfo {
        parent: cohort_name(&cohort.spec.parent_name).map(|name| names.cohorts.intern(name)),
        groups: groups(names, &cohort.spec.resource_groups),
        weight: weight(cohort.spec.fair_sharing.as_ref()),
    });
    Event::Cohort(names.cohorts.intern(name), spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_above_the_range_of_milli_cpu_is_unlimited() {
        let quota = serde_json::from_value(serde_json::json!({
            "name": "cpu", "nominalQuota": "9223372036854775", "borrowingLimit": "1",
        }));
        let read = resource_quota(&mut Names::default(), &quota.expect("a quota"));
        assert_eq!(read.nominal, engine::Amount::UNLIMITED);
        assert_eq!(read.borrowing_limit, Some(engine::Amount(1000)));
    }

    #[test]
    fn weights_are_exact() {
        let of = |text: &str| FairSharing { weight: Some(text.parse().expect("a quantity")) };
        for (text, nanos) in
            [("1", 1_000_000_000), ("500m", 500_000_000), ("2n", 2), ("0", 0), ("-1", 0)]
        {
            assert_eq!(weight(Some(&of(text))), FairSharingWeight(nanos), "{text}");
        }
        assert_eq!(weight(None), FairSharingWeight(1_000_000_000));
        assert_eq!(weight(Some(&FairSharing::default())), FairSharingWeight(1_000_000_000));
    }
}
