//! The clusters that race for a Workload: those that are reached and may have it, whatever capacity they report
//! (docs/reference/multikueue.md §2.4).

use engine::{Time, ids::ClusterId};

use crate::{Dispatcher, Fleet, IncrementalSteps, WorkloadRequest};

/// Time in which the clusters of a round may admit the Workload before more are nominated: five minutes, in nanoseconds.
pub const ROUND: i64 = 300 * 1_000_000_000;

/// The clusters that race, and when there may be more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterRace {
    /// In the order of the MultiKueueConfig. Where rounds add them, in the order in which they are nominated.
    pub clusters: Vec<ClusterId>,
    /// A configured cluster cannot be nominated now.
    pub incomplete: bool,
    /// When the next exclusion or the round ends.
    pub until: Option<Time>,
}

/// What was nominated so far.
#[derive(Clone, Copy, Debug)]
pub struct Nominated<'a> {
    /// The nominated clusters.
    pub clusters: &'a [ClusterId],
    /// When the last of them was nominated.
    pub at: Time,
}

impl Fleet {
    /// The clusters of a MultiKueueConfig that may be nominated now.
    pub fn race(
        &self,
        (config, request): (&str, &WorkloadRequest),
        dispatcher: Dispatcher,
        nominated: Nominated<'_>,
        now: Time,
    ) -> ClusterRace {
        // Another program knows better; what it nominates is in the Workload.
        if dispatcher == Dispatcher::External {
            return ClusterRace::default();
        }
        // Those without a report race. Another one joins only by a move (`rebalance`).
        let beside_reports = self.races_beside_reports(config, dispatcher);
        let config = self.config(config);
        let takes = |&id: &ClusterId| self.check_open(request, &config.policy, id, now).is_ok();
        let open = config.clusters.iter().copied().filter(takes);
        let mut clusters: Vec<ClusterId> = open.filter(|id| self.serves(*id, request)).collect();
        if beside_reports {
            clusters.retain(|id| self.is_unreported(*id) || nominated.clusters.contains(id));
        }
        let incomplete = !beside_reports && clusters.len() < config.clusters.len();
        let exclusions = self.exclusions.ends(request, now).map(|(_, until)| until).min();
        let mut round_ends = None;
        if let Dispatcher::Incremental(steps) = dispatcher {
            if steps.by_name {
                clusters.sort_unstable_by_key(|id| self.name(*id));
            }
            // The sort is stable: the others keep their order.
            clusters.sort_by_key(|id| !self.holds_checkpoint(request, *id));
            round_ends = keep_round(&mut clusters, steps, nominated, now);
        }
        let until = exclusions.into_iter().chain(round_ends).min();
        ClusterRace { clusters, incomplete, until }
    }

    /// Whether a cluster has the kind, as far as it is known: only clusters with an agent report their kinds.
    pub(crate) fn serves(&self, id: ClusterId, request: &WorkloadRequest) -> bool {
        let report = self.clusters[id.index()].report();
        report.is_none_or(|report| report.kinds.contains(&request.kind))
    }
}

/// Keeps the nominated clusters, and the next ones if a round begins. Returns when the next round begins, if clusters are
/// left for it.
fn keep_round(
    clusters: &mut Vec<ClusterId>,
    steps: IncrementalSteps,
    nominated: Nominated<'_>,
    now: Time,
) -> Option<Time> {
    let ends = Time(nominated.at.0.saturating_add(ROUND));
    // Upstream also counts clusters that are not reached: a round may pass in which no cluster has a clone.
    let begins = nominated.clusters.is_empty() || now >= ends;
    let mut left = if begins { steps.size } else { 0 };
    let n_open = clusters.len();
    clusters.retain(|id| {
        nominated.clusters.contains(id) || {
            let joins = left > 0;
            left -= usize::from(joins);
            joins
        }
    });
    (clusters.len() < n_open && !begins).then_some(ends)
}
