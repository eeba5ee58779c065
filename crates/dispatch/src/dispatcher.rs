//! The dispatcher: how worker clusters are nominated for a Workload (docs/reference/multikueue.md §2.4).

/// Kueue: `dispatcherName`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dispatcher {
    /// One cluster with enough free capacity, chosen together with the quota.
    #[default]
    Capacity,
    /// Every cluster that is reached. Their quota decides: the first that admits the Workload runs it.
    AllAtOnce,
}
