//! Whether this agent operates a cluster, decided from facts.
//!
//! Two operators on one object are worse than none: each would replace what the other makes. So `auto` operates only kinds whose
//! definition says so, and only while no official operator renews its lease.

use jiff::{SignedDuration, Timestamp};

/// The label of a CustomResourceDefinition whose objects agents operate.
pub(super) const OPERATED_BY: &str = "sluice.dev/operated-by";
/// Its value.
pub(super) const AGENT: &str = "sluice-agent";

/// The lease of the official operator of Ray.
pub(super) const FOREIGN_LEASE: &str = "ray-operator-leader";

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
    /// Kinds whose definition bears our label.
    pub(super) labelled: Vec<&'static str>,
    /// The renewals of leases of official operators, and how long each holds in seconds.
    pub(super) foreign_leases: Vec<(Timestamp, Option<i32>)>,
}

/// Why nothing is operated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotOperated {
    /// No kind is there for agents.
    #[error("no CustomResourceDefinition bears the label sluice.dev/operated-by=sluice-agent")]
    NoLabel,
    /// An official operator runs.
    #[error("an official operator holds the lease ray-operator-leader")]
    ForeignOperator,
}

/// The kinds that are operated: all of them, or those with the label.
pub(super) fn operated(
    mode: OperatorMode,
    facts: &ClusterFacts,
    now: Timestamp,
) -> Result<Option<Vec<&'static str>>, NotOperated> {
    match mode {
        OperatorMode::On | OperatorMode::Off => Ok(None),
        OperatorMode::Auto if facts.labelled.is_empty() => Err(NotOperated::NoLabel),
        OperatorMode::Auto if facts.foreign_leases.iter().any(|lease| is_held(*lease, now)) => {
            Err(NotOperated::ForeignOperator)
        }
        OperatorMode::Auto => Ok(Some(facts.labelled.clone())),
    }
}

fn is_held((renewed, seconds): (Timestamp, Option<i32>), now: Timestamp) -> bool {
    let seconds = seconds.map_or(DEFAULT_LEASE_SECONDS, i64::from);
    // Clocks differ: twice the duration, so that a late renewal is not taken for an end.
    now.duration_since(renewed) < SignedDuration::from_secs(2 * seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_waits_for_labelled_definitions_and_the_end_of_an_official_operator() {
        let now = Timestamp::from_second(1_000).expect("a time");
        let renewed = |second| (Timestamp::from_second(second).expect("a time"), Some(15));
        let facts = |labelled: &[&'static str], leases: &[i64]| ClusterFacts {
            labelled: labelled.to_vec(),
            foreign_leases: leases.iter().copied().map(renewed).collect(),
        };
        let decide = |facts| operated(OperatorMode::Auto, &facts, now);
        assert_eq!(decide(facts(&[], &[])), Err(NotOperated::NoLabel));
        let labelled = &["RayCluster"];
        assert_eq!(decide(facts(labelled, &[900, 980])), Err(NotOperated::ForeignOperator));
        assert_eq!(decide(facts(labelled, &[900])), Ok(Some(vec!["RayCluster"])));
        assert_eq!(operated(OperatorMode::On, &facts(&[], &[980]), now), Ok(None));
    }
}
