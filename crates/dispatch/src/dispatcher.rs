//! The dispatcher: how worker clusters are nominated for a Workload (docs/reference/multikueue.md §2.4).

/// Kueue: `dispatcherName`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dispatcher {
    /// One cluster with enough free capacity, chosen together with the quota.
    #[default]
    Capacity,
    /// Every cluster that is reached. Their quota decides: the first that admits the Workload runs it.
    AllAtOnce,
    /// A few clusters, and some more after each round in which none admitted the Workload.
    Incremental(IncrementalSteps),
    /// Those that another program writes into `nominatedClusterNames`.
    External,
}

/// How a round adds clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncrementalSteps {
    /// Number of clusters that a round adds, at least 1.
    pub size: usize,
    /// In the order of their names instead of that of the MultiKueueConfig.
    pub by_name: bool,
}

impl Dispatcher {
    /// Whether several clusters race for a Workload, with clones.
    #[must_use]
    pub fn races(self) -> bool {
        self != Self::Capacity
    }

    /// Whether rounds add clusters, so that the nominated ones stand in the order of their rounds.
    #[must_use]
    pub fn adds_in_rounds(self) -> bool {
        matches!(self, Self::Incremental(_))
    }
}
