//! Limits of requests about pods in flight: of all, of one cluster, and of one namespace on one cluster. A log that is followed counts
//! until its end.
//!
//! A worker that never answers exhausts its own limit only, and so does a namespace of users that follow many logs.

use visibility::workload_pods::PodsRefusal;

use crate::in_flight_limits::{InFlightCounts, InFlightPermit};

/// Requests of all clusters. Connections of API servers carry more.
const ALL: usize = 160;

/// Requests to one cluster.
const PER_CLUSTER: usize = 32;

/// Requests of one namespace to one cluster.
const PER_NAMESPACE: usize = 16;

/// Requests about pods in flight, by cluster and namespace.
#[derive(Default)]
pub(super) struct PodsRequestLimits(InFlightCounts);

impl PodsRequestLimits {
    /// A permit for a request to a cluster.
    ///
    /// # Errors
    /// If a limit is reached.
    pub(super) fn try_acquire(
        &self,
        cluster: &str,
        namespace: &str,
    ) -> Result<InFlightPermit, PodsRefusal> {
        let permit = self.0.try_acquire(cluster, namespace, |in_flight| {
            in_flight.all < ALL
                && in_flight.with_outer < PER_CLUSTER
                && in_flight.with_both < PER_NAMESPACE
        });
        permit.ok_or_else(|| PodsRefusal::TooMany(cluster.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(
        limits: &PodsRequestLimits,
        cluster: &str,
        namespace: &str,
        count: usize,
    ) -> Vec<InFlightPermit> {
        (0..count).map(|_| limits.try_acquire(cluster, namespace).expect("a permit")).collect()
    }

    #[test]
    fn a_namespace_and_a_worker_exhaust_their_own_limits_only() {
        let limits = PodsRequestLimits::default();
        let first = fill(&limits, "hung", "a", PER_NAMESPACE);
        let refusal = limits.try_acquire("hung", "a").err().expect("a refusal");
        assert_eq!(refusal.code(), 429);
        let second = fill(&limits, "hung", "b", PER_CLUSTER - PER_NAMESPACE);
        assert!(limits.try_acquire("hung", "c").is_err(), "the worker is full");
        assert!(limits.try_acquire("other", "a").is_ok() && limits.try_acquire("", "a").is_ok());
        drop(first);
        assert!(limits.try_acquire("hung", "c").is_ok());
        drop(second);
        assert!(limits.0.is_empty());
    }

    #[test]
    fn all_clusters_together_have_a_limit() {
        let limits = PodsRequestLimits::default();
        let clusters: Vec<String> = (0..ALL / PER_NAMESPACE).map(|one| one.to_string()).collect();
        let full: Vec<Vec<InFlightPermit>> =
            clusters.iter().map(|cluster| fill(&limits, cluster, "a", PER_NAMESPACE)).collect();
        assert!(limits.try_acquire("one-more", "a").is_err());
        drop(full);
        assert!(limits.try_acquire("one-more", "a").is_ok());
    }
}
