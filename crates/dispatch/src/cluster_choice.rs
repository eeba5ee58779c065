//! Choosing a cluster, and telling who may ask again.
//!
//! A cluster is a candidate if it can be reached, reports, may run the kind and the namespace, is wanted, did not refuse
//! lately and has room, or that of equal work that is over. Among candidates the policy's strategy decides, then weight, then the order of the
//! configuration. A share is what stays free of what the report lists as free, of the asked resource that gets scarcest;
//! shares are compared exactly. Source: docs/reference/dispatch.md §1-3, §5.
//!
//! Waking is precise: a key is told only if somebody who waits under it would be let in at this moment, and it is never
//! missed. Whatever changes at a cluster, its keys are looked at again, and only there.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use engine::{
    RequeueKey, Time,
    ids::{ClusterId, WorkloadId},
};

use crate::fleet::Fleet;
use crate::node_packing::PackedNodes;
use crate::pending_placements::{ClusterExclusion, PendingClass, PlacementClass};
use crate::policy::{PlacementPolicy, PlacementStrategy};
use crate::queue_order::{QueueOrder, QueuePosition};
use crate::refusal::{ClusterRefusal, PlacementRefusal};
use crate::{AssignedWorkload, DispatchConfig};

/// A Workload that wants a cluster.
#[derive(Debug, Clone, Copy)]
pub struct PlacementRequest<'a> {
    /// Which.
    pub workload: WorkloadId,
    /// The MultiKueueConfig of its check.
    pub config: &'a str,
    /// What it would run.
    pub work: &'a Arc<AssignedWorkload>,
    /// Its turn among those who wait.
    pub order: QueueOrder,
}

impl Fleet {
    /// The best cluster for a Workload. Nothing is counted there before [`Fleet::place`].
    ///
    /// # Errors
    /// When no cluster takes it: with a reason per cluster, and the key under which it waits from now on.
    pub fn choose_cluster(
        &mut self,
        ask: &PlacementRequest<'_>,
        now: Time,
    ) -> Result<ClusterId, PlacementRefusal> {
        self.update_reservations(now);
        let question = self.placement_class(ask, now);
        let rank = (ask.order, ask.workload);
        match self.best_cluster(&question, rank, now) {
            Ok(cluster) => {
                self.pending.remove(ask.workload);
                Ok(cluster)
            }
            Err(why) => {
                let key = self.pending.add(rank, question, self.changes, now);
                Err(PlacementRefusal { key, reasons: why })
            }
        }
    }

    /// The keys under which somebody waits who would now be let in, oldest first. Each is told once per change.
    pub fn woken_keys(&mut self, now: Time) -> Vec<RequeueKey> {
        self.update_reservations(now);
        let stale: Vec<_> =
            self.pending.iter().filter_map(|one| self.outdated_verdict(one, now)).collect();
        let mut woken = Vec::new();
        for OutdatedVerdict { key, question, first, again } in stale {
            let config = self.config(&question.config);
            let mut again = again.into_iter();
            if again.any(|id| self.evaluate(&question, first, &config.policy, id, now).is_ok()) {
                woken.push(RequeueKey(key));
            }
            self.pending.verdict_checked(key, self.changes, now);
        }
        woken
    }

    /// The next moment at which [`Fleet::woken`] may have something to tell although nothing changed: an exclusion ends,
    /// or room is kept for another one than before.
    pub fn next_wake_at(&self) -> Option<Time> {
        let ends =
            self.pending.iter().flat_map(|(_, wait)| wait.exclusion_ends()).map(|(_, until)| until);
        ends.chain(self.reservation_inputs.next_update_at).min()
    }

    fn placement_class(&mut self, ask: &PlacementRequest<'_>, now: Time) -> PlacementClass {
        let mut exclusions = Vec::new();
        if let Some(known) = self.exclusions.get_mut(&ask.workload) {
            known.retain(|one| one.until > now);
            exclusions.clone_from(known);
        }
        if exclusions.is_empty() {
            self.exclusions.remove(&ask.workload);
        }
        PlacementClass { config: ask.config.into(), work: Arc::clone(ask.work), exclusions }
    }

    pub(crate) fn config(&self, name: &str) -> Arc<DispatchConfig> {
        self.configs.get(name).map(|one| Arc::clone(&one.config)).unwrap_or_default()
    }

    fn best_cluster(
        &mut self,
        question: &PlacementClass,
        rank: QueuePosition,
        now: Time,
    ) -> Result<ClusterId, Vec<(ClusterId, ClusterRefusal)>> {
        let config = self.config(&question.config);
        let policy = &config.policy;
        let (mut best, mut why) = (None, Vec::new());
        for &cluster in &config.clusters {
            match self.evaluate(question, rank, policy, cluster, now) {
                Err(refusal) => why.push((cluster, refusal)),
                Ok(share) => {
                    let rank = ClusterScore::new(policy, cluster, share);
                    if best.as_ref().is_none_or(|(old, _)| rank > *old) {
                        best = Some((rank, cluster));
                    }
                }
            }
        }
        best.map(|(_, cluster)| cluster).ok_or(why)
    }

    /// What stays free if the cluster takes the work.
    fn evaluate(
        &mut self,
        question: &PlacementClass,
        rank: QueuePosition,
        policy: &PlacementPolicy,
        id: ClusterId,
        now: Time,
    ) -> Result<FreeShare, ClusterRefusal> {
        self.check_eligible(question, policy, id, now)?;
        let cluster = &mut self.clusters[id.index()];
        let credited = cluster.covers_from_released(&question.work);
        let nodes = cluster.nodes().ok_or(ClusterRefusal::NoReport)?;
        if !credited {
            nodes.check_fit(&question.work).map_err(ClusterRefusal::InsufficientCapacity)?;
        }
        let share = FreeShare::after(nodes, &question.work);
        self.check_reservations(&question.work, credited, rank, id, now)?;
        Ok(share)
    }

    /// Whether a cluster may be asked at all, whatever its room.
    pub(crate) fn check_eligible(
        &self,
        question: &PlacementClass,
        policy: &PlacementPolicy,
        id: ClusterId,
        now: Time,
    ) -> Result<(), ClusterRefusal> {
        let request = &question.work.request;
        let cluster = &self.clusters[id.index()];
        if !cluster.connected {
            return Err(ClusterRefusal::NotConnected);
        }
        let report = cluster.report().ok_or(ClusterRefusal::NoReport)?;
        if policy.draining(id) {
            return Err(ClusterRefusal::Draining);
        }
        if !report.kinds.contains(&request.kind) {
            return Err(ClusterRefusal::KindNotSupported(request.kind.clone()));
        }
        if !policy.allows_kind(&request.kind) {
            return Err(ClusterRefusal::KindNotAllowed(request.kind.clone()));
        }
        if !policy.allows_namespace(&request.namespace) {
            return Err(ClusterRefusal::NamespaceNotAllowed(request.namespace.clone()));
        }
        if !request.affinity.iter().all(|one| one.matches(&cluster.labels)) {
            return Err(ClusterRefusal::AffinityMismatch);
        }
        if let Some(one) = excluded(&question.exclusions, id, now) {
            return Err(ClusterRefusal::Excluded { until: one.until, why: one.why.clone() });
        }
        Ok(())
    }

    /// The clusters where the answer to a key may have become another one.
    fn outdated_verdict(
        &self,
        (key, wait): (u64, &PendingClass),
        now: Time,
    ) -> Option<OutdatedVerdict> {
        let configured = self.configs.get(&wait.class.config)?;
        let all = configured.changed > wait.checked;
        let ended =
            |id| wait.exclusion_ends().any(|(cluster, until)| cluster == id && until <= now);
        let changed = |id: ClusterId| self.clusters[id.index()].changed > wait.checked;
        let clusters = configured.config.clusters.iter().copied();
        let again: Vec<_> = clusters.filter(|&id| all || changed(id) || ended(id)).collect();
        let first = wait.first_position().filter(|_| !again.is_empty())?;
        Some(OutdatedVerdict { key, question: Arc::clone(&wait.class), first, again })
    }
}

/// An answer that may have become another one.
struct OutdatedVerdict {
    key: u64,
    question: Arc<PlacementClass>,
    /// Who would be let in before all others behind the key.
    first: QueuePosition,
    /// Where to ask again.
    again: Vec<ClusterId>,
}

fn excluded(
    exclusions: &[ClusterExclusion],
    id: ClusterId,
    now: Time,
) -> Option<&ClusterExclusion> {
    exclusions.iter().find(|one| one.cluster == id && one.until > now)
}

/// A fraction between nothing and all.
#[derive(Debug, Clone, Copy)]
struct FreeShare {
    left: i64,
    of: i64,
}

impl FreeShare {
    /// What stays free of the asked resource that gets scarcest. Work that asks for nothing leaves everything.
    fn after(nodes: &PackedNodes, work: &AssignedWorkload) -> Self {
        let shares = work.total_requests().into_iter().map(|(resource, amount)| {
            let (now, reported) = nodes.free(resource);
            Self { left: now.saturating_sub(amount.0).max(0), of: reported.max(1) }
        });
        shares.min().unwrap_or(Self { left: 1, of: 1 })
    }
}

impl Ord for FreeShare {
    fn cmp(&self, other: &Self) -> Ordering {
        let cross = |left: i64, of: i64| i128::from(left) * i128::from(of);
        cross(self.left, other.of).cmp(&cross(other.left, self.of))
    }
}

impl PartialOrd for FreeShare {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for FreeShare {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for FreeShare {}

/// How good a candidate is. Equals keep the order of the configuration.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ClusterScore {
    Ordered,
    Spread(FreeShare, i32),
    BinPack(Reverse<FreeShare>, i32),
}

impl ClusterScore {
    fn new(policy: &PlacementPolicy, cluster: ClusterId, share: FreeShare) -> Self {
        let weight = policy.weight(cluster);
        match policy.strategy {
            PlacementStrategy::Ordered => Self::Ordered,
            PlacementStrategy::Spread => Self::Spread(share, weight),
            PlacementStrategy::BinPack => Self::BinPack(Reverse(share), weight),
        }
    }
}
