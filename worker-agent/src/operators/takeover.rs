//! Whether this agent operates a cluster, decided from facts.
//!
//! Two operators on one object are worse than none: each would replace what the other makes. So `auto` operates only kinds with a
//! definition that says so, and only while the official operator of a kind does not renew its lease.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

/// The label of the CustomResourceDefinition of objects that agents operate.
pub(super) const OPERATED_BY: &str = "sluice.dev/operated-by";
/// Its value.
pub(super) const AGENT: &str = "sluice-agent";

/// An official operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForeignOperator {
    /// The name of its lease, in any namespace.
    pub(super) lease: &'static str,
    /// Whether it operates a kind.
    operates: fn(&str) -> bool,
}

/// The official operators.
pub(super) const FOREIGN_OPERATORS: [ForeignOperator; 2] = [
    ForeignOperator { lease: "ray-operator-leader", operates: |kind| kind != "AppWrapper" },
    ForeignOperator { lease: "f134c674.codeflare.dev", operates: |kind| kind == "AppWrapper" },
];

/// How long a lease counts as held after its last renewal, if it names no duration.
const DEFAULT_LEASE_SECONDS: i64 = 15;

/// Whether operators run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OperatorMode {
    /// Where the definitions bear our label and no official operator runs.
    Auto,
    /// Always.
    On,
    /// Never: no watch is opened.
    Off,
}

/// What is known of a cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct ClusterFacts {
    /// Kinds with our label on their definition.
    pub(super) labelled: Vec<&'static str>,
    /// The leases of official operators.
    pub(super) foreign_leases: Vec<ForeignLease>,
}

/// A lease that has a holder.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForeignLease {
    pub(super) operator: ForeignOperator,
    /// The last renewal, or the acquisition of a lease that was never renewed. Not later than this version of the lease was first seen.
    pub(super) renewed: Timestamp,
    /// How long it holds.
    pub(super) seconds: Option<i32>,
}

/// When the present version of each lease was first seen.
#[derive(Debug, Default)]
pub(crate) struct LeaseSightings {
    /// Version and time, by namespace and name.
    seen: BTreeMap<(String, String), (String, Timestamp)>,
}

impl LeaseSightings {
    /// When a lease was renewed, given what it says. A lease without a time, or with one of a clock that runs ahead, would hold for ever:
    /// its version was there when it was first seen, so it was not renewed later.
    pub(super) fn renewed(
        &mut self,
        lease: (String, String),
        version: String,
        said: Option<Timestamp>,
        now: Timestamp,
    ) -> Timestamp {
        let (known, since) = self.seen.entry(lease).or_insert_with(|| (version.clone(), now));
        if *known != version {
            (*known, *since) = (version, now);
        }
        said.map_or(*since, |said| said.min(*since))
    }
}

/// Why nothing is operated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotOperated {
    /// No kind is there for agents.
    #[error("no CustomResourceDefinition bears the label sluice.dev/operated-by=sluice-agent")]
    NoLabel,
    /// An official operator runs for each of the kinds.
    #[error("an official operator holds the lease {0}")]
    ForeignOperator(&'static str),
}

/// The kinds that are operated: all of them, or those with the label.
pub(super) fn operated(
    mode: OperatorMode,
    facts: &ClusterFacts,
    now: Timestamp,
) -> Result<Option<Vec<&'static str>>, NotOperated> {
    match mode {
        OperatorMode::On | OperatorMode::Off => Ok(None),
        OperatorMode::Auto => without_foreign(facts, now).map(Some),
    }
}

/// The labelled kinds that no official operator operates.
fn without_foreign(facts: &ClusterFacts, now: Timestamp) -> Result<Vec<&'static str>, NotOperated> {
    if facts.labelled.is_empty() {
        return Err(NotOperated::NoLabel);
    }
    let held = facts.foreign_leases.iter().filter(|lease| is_held(lease, now));
    let held: Vec<ForeignOperator> = held.map(|lease| lease.operator).collect();
    let is_foreign = |kind: &str| held.iter().any(|operator| (operator.operates)(kind));
    let kinds: Vec<_> = facts.labelled.iter().copied().filter(|kind| !is_foreign(kind)).collect();
    match held.first() {
        Some(operator) if kinds.is_empty() => Err(NotOperated::ForeignOperator(operator.lease)),
        _ => Ok(kinds),
    }
}

fn is_held(lease: &ForeignLease, now: Timestamp) -> bool {
    let seconds = lease.seconds.map_or(DEFAULT_LEASE_SECONDS, i64::from);
    // Clocks differ: twice the duration, so that a late renewal is not taken for an end.
    now.duration_since(lease.renewed) < SignedDuration::from_secs(2 * seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_waits_for_labelled_definitions_and_the_end_of_an_official_operator() {
        let now = Timestamp::from_second(1_000).expect("a time");
        let [ray, wrapper] = FOREIGN_OPERATORS;
        let held = |operator, second| {
            let renewed = Timestamp::from_second(second).expect("a time");
            ForeignLease { operator, renewed, seconds: Some(15) }
        };
        let facts = |labelled: &[&'static str], leases: &[ForeignLease]| ClusterFacts {
            labelled: labelled.to_vec(),
            foreign_leases: leases.to_vec(),
        };
        let decide = |facts| operated(OperatorMode::Auto, &facts, now);
        assert_eq!(decide(facts(&[], &[])), Err(NotOperated::NoLabel));
        let labelled = &["RayCluster"];
        let foreign = Err(NotOperated::ForeignOperator("ray-operator-leader"));
        assert_eq!(decide(facts(labelled, &[held(ray, 900), held(ray, 980)])), foreign);
        assert_eq!(decide(facts(labelled, &[held(ray, 900)])), Ok(Some(vec!["RayCluster"])));
        let without_duration = ForeignLease { seconds: None, ..held(ray, 980) };
        assert_eq!(decide(facts(labelled, &[without_duration])), foreign);
        assert_eq!(operated(OperatorMode::On, &facts(&[], &[held(ray, 980)]), now), Ok(None));
        // Each operator takes its own kinds only.
        let both = &["RayJob", "AppWrapper"];
        assert_eq!(decide(facts(both, &[held(ray, 980)])), Ok(Some(vec!["AppWrapper"])));
        assert_eq!(decide(facts(both, &[held(wrapper, 980)])), Ok(Some(vec!["RayJob"])));
        let all = decide(facts(both, &[held(ray, 980), held(wrapper, 980)]));
        assert!(matches!(all, Err(NotOperated::ForeignOperator(_))));
    }
    #[test]
    fn a_lease_holds_no_longer_than_its_version_is_known() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let mut sightings = LeaseSightings::default();
        let mut is_held_at = |version: &str, said: Option<i64>, now| {
            let lease = ("ns".to_owned(), "ray-operator-leader".to_owned());
            let renewed = sightings.renewed(lease, version.to_owned(), said.map(at), at(now));
            let operator = FOREIGN_OPERATORS[0];
            is_held(&ForeignLease { operator, renewed, seconds: Some(15) }, at(now))
        };
        // Without a time: it may have been renewed just now.
        assert!(is_held_at("1", None, 1_000) && is_held_at("1", None, 1_029));
        assert!(!is_held_at("1", None, 1_030));
        // Renewed by a clock that is an hour ahead.
        assert!(is_held_at("2", Some(5_000), 1_040) && is_held_at("3", Some(5_010), 1_069));
        assert!(is_held_at("3", Some(5_010), 1_098) && !is_held_at("3", Some(5_010), 1_099));
        // A time of the past counts at once.
        assert!(!is_held_at("4", Some(1_000), 1_100));
    }
}
