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
use crate::pack::Nodes;
use crate::policy::{Policy, Strategy};
use crate::refusal::{Refusal, Refused};
use crate::turn::{Rank, Turn};
use crate::waits::{Exclusion, Question, Wait};
use crate::{Config, Work};

/// A Workload that wants a cluster.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Which.
    pub workload: WorkloadId,
    /// The MultiKueueConfig of its check.
    pub config: &'a str,
    /// What it would run.
    pub work: &'a Arc<Work>,
    /// Its turn among those who wait.
    pub turn: Turn,
}

impl Fleet {
    /// The best cluster for a Workload. Nothing is counted there before [`Fleet::place`].
    ///
    /// # Errors
    /// When no cluster takes it: with a reason per cluster, and the key under which it waits from now on.
    pub fn choose(&mut self, ask: &Ask<'_>, now: Time) -> Result<ClusterId, Refused> {
        self.reserve(now);
        let question = self.question(ask, now);
        let rank = (ask.turn, ask.workload);
        match self.best(&question, rank, now) {
            Ok(cluster) => {
                self.waits.forget(ask.workload);
                Ok(cluster)
            }
            Err(why) => {
                let key = self.waits.join(rank, question, self.changes, now);
                Err(Refused { key, why })
            }
        }
    }

    /// The keys under which somebody waits who would now be let in, oldest first. Each is told once per change.
    pub fn woken(&mut self, now: Time) -> Vec<RequeueKey> {
        self.reserve(now);
        let stale: Vec<_> = self.waits.iter().filter_map(|one| self.stale(one, now)).collect();
        let mut woken = Vec::new();
        for Stale { key, question, first, again } in stale {
            let config = self.config(&question.config);
            let mut again = again.into_iter();
            if again.any(|id| self.judge(&question, first, &config.policy, id, now).is_ok()) {
                woken.push(RequeueKey(key));
            }
            self.waits.check(key, self.changes, now);
        }
        woken
    }

    /// The next moment at which [`Fleet::woken`] may have something to tell although nothing changed: an exclusion ends,
    /// or room is kept for another one than before.
    pub fn next_change(&self) -> Option<Time> {
        let ends = self.waits.iter().flat_map(|(_, wait)| wait.ends()).map(|(_, until)| until);
        ends.chain(self.reserved.next).min()
    }

    fn question(&mut self, ask: &Ask<'_>, now: Time) -> Question {
        let mut exclusions = Vec::new();
        if let Some(known) = self.exclusions.get_mut(&ask.workload) {
            known.retain(|one| one.until > now);
            exclusions.clone_from(known);
        }
        if exclusions.is_empty() {
            self.exclusions.remove(&ask.workload);
        }
        Question { config: ask.config.into(), work: Arc::clone(ask.work), exclusions }
    }

    pub(crate) fn config(&self, name: &str) -> Arc<Config> {
        self.configs.get(name).map(|one| Arc::clone(&one.config)).unwrap_or_default()
    }

    fn best(
        &mut self,
        question: &Question,
        rank: Rank,
        now: Time,
    ) -> Result<ClusterId, Vec<(ClusterId, Refusal)>> {
        let config = self.config(&question.config);
        let policy = &config.policy;
        let (mut best, mut why) = (None, Vec::new());
        for &cluster in &config.clusters {
            match self.judge(question, rank, policy, cluster, now) {
                Err(refusal) => why.push((cluster, refusal)),
                Ok(share) => {
                    let rank = Worth::new(policy, cluster, share);
                    if best.as_ref().is_none_or(|(old, _)| rank > *old) {
                        best = Some((rank, cluster));
                    }
                }
            }
        }
        best.map(|(_, cluster)| cluster).ok_or(why)
    }

    /// What stays free if the cluster takes the work.
    fn judge(
        &mut self,
        question: &Question,
        rank: Rank,
        policy: &Policy,
        id: ClusterId,
        now: Time,
    ) -> Result<Share, Refusal> {
        self.admits(question, policy, id, now)?;
        let cluster = &mut self.clusters[id.index()];
        let credited = cluster.credits(&question.work);
        let nodes = cluster.nodes().ok_or(Refusal::NoReport)?;
        if !credited {
            nodes.fits(&question.work).map_err(Refusal::NoRoom)?;
        }
        let share = Share::after(nodes, &question.work);
        self.leaves_room(&question.work, credited, rank, id, now)?;
        Ok(share)
    }

    /// Whether a cluster may be asked at all, whatever its room.
    pub(crate) fn admits(
        &self,
        question: &Question,
        policy: &Policy,
        id: ClusterId,
        now: Time,
    ) -> Result<(), Refusal> {
        let request = &question.work.request;
        let cluster = &self.clusters[id.index()];
        if !cluster.connected {
            return Err(Refusal::NotConnected);
        }
        let report = cluster.report().ok_or(Refusal::NoReport)?;
        if policy.draining(id) {
            return Err(Refusal::Draining);
        }
        if !report.kinds.contains(&request.kind) {
            return Err(Refusal::CannotRun(request.kind.clone()));
        }
        if !policy.allows_kind(&request.kind) {
            return Err(Refusal::KindNotAllowed(request.kind.clone()));
        }
        if !policy.allows_namespace(&request.namespace) {
            return Err(Refusal::NamespaceNotAllowed(request.namespace.clone()));
        }
        if !request.affinity.iter().all(|one| one.matches(&cluster.labels)) {
            return Err(Refusal::Affinity);
        }
        if let Some(one) = excluded(&question.exclusions, id, now) {
            return Err(Refusal::Excluded { until: one.until, why: one.why.clone() });
        }
        Ok(())
    }

    /// The clusters where the answer to a key may have become another one.
    fn stale(&self, (key, wait): (u64, &Wait), now: Time) -> Option<Stale> {
        let configured = self.configs.get(&wait.question.config)?;
        let all = configured.changed > wait.checked;
        let ended = |id| wait.ends().any(|(cluster, until)| cluster == id && until <= now);
        let changed = |id: ClusterId| self.clusters[id.index()].changed > wait.checked;
        let clusters = configured.config.clusters.iter().copied();
        let again: Vec<_> = clusters.filter(|&id| all || changed(id) || ended(id)).collect();
        let first = wait.first().filter(|_| !again.is_empty())?;
        Some(Stale { key, question: Arc::clone(&wait.question), first, again })
    }
}

/// An answer that may have become another one.
struct Stale {
    key: u64,
    question: Arc<Question>,
    /// Who would be let in before all others behind the key.
    first: Rank,
    /// Where to ask again.
    again: Vec<ClusterId>,
}

fn excluded(exclusions: &[Exclusion], id: ClusterId, now: Time) -> Option<&Exclusion> {
    exclusions.iter().find(|one| one.cluster == id && one.until > now)
}

/// A fraction between nothing and all.
#[derive(Debug, Clone, Copy)]
struct Share {
    left: i64,
    of: i64,
}

impl Share {
    /// What stays free of the asked resource that gets scarcest. Work that asks for nothing leaves everything.
    fn after(nodes: &Nodes, work: &Work) -> Self {
        let shares = work.asked().into_iter().map(|(resource, amount)| {
            let (now, reported) = nodes.free(resource);
            Self { left: now.saturating_sub(amount.0).max(0), of: reported.max(1) }
        });
        shares.min().unwrap_or(Self { left: 1, of: 1 })
    }
}

impl Ord for Share {
    fn cmp(&self, other: &Self) -> Ordering {
        let cross = |left: i64, of: i64| i128::from(left) * i128::from(of);
        cross(self.left, other.of).cmp(&cross(other.left, self.of))
    }
}

impl PartialOrd for Share {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Share {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Share {}

/// How good a candidate is. Equals keep the order of the configuration.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    Listed,
    Emptiest(Share, i32),
    Fullest(Reverse<Share>, i32),
}

impl Worth {
    fn new(policy: &Policy, cluster: ClusterId, share: Share) -> Self {
        let weight = policy.weight(cluster);
        match policy.strategy {
            Strategy::Ordered => Self::Listed,
            Strategy::Spread => Self::Emptiest(share, weight),
            Strategy::BinPack => Self::Fullest(Reverse(share), weight),
        }
    }
}
