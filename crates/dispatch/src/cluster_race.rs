//! The clusters that race for a Workload: all that are reached and may have it, whatever capacity they report
//! (docs/reference/multikueue.md §2.4).

use engine::{Time, ids::ClusterId};

use crate::{Fleet, WorkloadRequest};

/// The clusters that race, and when there may be more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterRace {
    /// In the order of their names.
    pub clusters: Vec<ClusterId>,
    /// A configured cluster is missing.
    pub incomplete: bool,
    /// When the next exclusion ends.
    pub until: Option<Time>,
}

impl Fleet {
    /// The clusters of a MultiKueueConfig that may be nominated now.
    pub fn race(&self, config: &str, request: &WorkloadRequest, now: Time) -> ClusterRace {
        let config = self.config(config);
        let takes = |&id: &ClusterId| self.check_open(request, &config.policy, id, now).is_ok();
        let mut clusters: Vec<ClusterId> = config
            .clusters
            .iter()
            .copied()
            .filter(takes)
            .filter(|id| self.serves(*id, request))
            .collect();
        clusters.sort_unstable_by_key(|id| self.name(*id));
        let ends = self.exclusions.ends(request, now);
        ClusterRace {
            incomplete: clusters.len() < config.clusters.len(),
            clusters,
            until: ends.map(|(_, until)| until).min(),
        }
    }

    /// Whether a cluster has the kind, as far as it is known: only clusters with an agent report their kinds.
    fn serves(&self, id: ClusterId, request: &WorkloadRequest) -> bool {
        let report = self.clusters[id.index()].report();
        report.is_none_or(|report| report.kinds.contains(&request.kind))
    }
}
