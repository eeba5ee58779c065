//! What every LocalQueue consumed.
//!
//! At every sample the past decays and the present enters, each by how much time went by. A reservation counts at once
//! as a penalty, as much of it as one sampling interval would enter, or a LocalQueue could take everything between two
//! samples. The penalty becomes consumption when the Workload is admitted, and is dropped when its quota is given back
//! before that. Source: docs/reference/kueue.md §3.8.
//!
//! Cost: per sample a look at all holders; per reservation one entry. Nothing while no sharing is configured.

use std::collections::BTreeMap;

use crate::admission_fair_sharing::decay::{BITS, DecayFactor};
use crate::admission_fair_sharing::{AdmissionFairSharing, FairSharingUsage};
use crate::amount::Amount;
use crate::engine::Engine;
use crate::ids::{LocalQueueId, QueueId, ResourceId, WorkloadId};
use crate::spec::FairSharingWeight;
use crate::state::State;
use crate::time::Time;

/// Amounts in 2^-20 of a unit.
type Sums = BTreeMap<ResourceId, i128>;

/// One LocalQueue.
#[derive(Debug, Clone, Default)]
struct LocalQueueAccount {
    consumed: Sums,
    updated: Option<Time>,
    /// Penalties of those who are not admitted yet.
    pending: Sums,
}

/// Everybody's accounts.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConsumptionLedger {
    sharing: Option<AdmissionFairSharing>,
    accounts: BTreeMap<LocalQueueId, LocalQueueAccount>,
    penalties: BTreeMap<WorkloadId, (LocalQueueId, Sums)>,
}

impl ConsumptionLedger {
    fn share(&self, id: LocalQueueId, weight: FairSharingWeight) -> FairSharingUsage {
        let Some(sharing) = &self.sharing else {
            return FairSharingUsage::default();
        };
        if weight.0 == 0 {
            return FairSharingUsage::INFINITE;
        }
        let Some(account) = self.accounts.get(&id) else {
            return FairSharingUsage::default();
        };
        let sums = account.consumed.iter().chain(&account.pending);
        let weighed = sums.map(|(resource, sum)| {
            let own = sharing.weights.iter().find(|(one, _)| one == resource);
            let own = own.map_or(FairSharingWeight::default(), |(_, weight)| *weight);
            sum.saturating_mul(own.0.into())
        });
        let total = weighed.fold(0_i128, i128::saturating_add);
        FairSharingUsage(total / i128::from(weight.0))
    }
}

/// Sharing is configured, or switched off.
pub(crate) fn configure(state: &mut State, sharing: Option<AdmissionFairSharing>) {
    if sharing.is_none() {
        state.ledger = ConsumptionLedger::default();
    }
    state.ledger.sharing = sharing;
    for index in 0..state.queues.len() {
        queue_changed(state, QueueId::from(index));
    }
}

/// What a LocalQueue had consumed at some time, as it was recorded.
pub(crate) fn consumed(
    state: &mut State,
    id: LocalQueueId,
    consumed: &[(ResourceId, Amount)],
    at: Time,
) {
    let account = state.ledger.accounts.entry(id).or_default();
    let sums = consumed.iter().map(|&(resource, amount)| (resource, exact(amount)));
    (account.consumed, account.updated) = (sums.collect(), Some(at));
    update_usage(state, id);
}

/// Enters what is used now, for every LocalQueue whose last sample is an interval old.
pub(crate) fn sample(state: &mut State, now: Time) {
    let Some(interval) = state.ledger.sharing.as_ref().map(|sharing| sharing.interval) else {
        return;
    };
    for index in 0..state.local_queues.len() {
        let id = LocalQueueId::from(index);
        let updated = state.ledger.accounts.get(&id).and_then(|account| account.updated);
        let due = updated.is_none_or(|at| at.0.saturating_add(interval) <= now.0);
        if due && shared_queue(state, id).is_some() {
            bring_up_to_date(state, id, now);
            update_usage(state, id);
        }
    }
}

/// A Workload got quota: it counts before the next sample.
pub(crate) fn sent(state: &mut State, id: WorkloadId) {
    let workload = state.workloads.at(id);
    let Some(local_queue) = workload.local_queue else {
        return;
    };
    if shared_queue(state, local_queue).is_none() {
        return;
    }
    let Some(sharing) = &state.ledger.sharing else {
        return;
    };
    let part = DecayFactor::left(sharing.interval, sharing.usage_half_life).rest();
    let part = if sharing.usage_half_life > 0 { part } else { part.rest() };
    let mut penalty = Sums::new();
    add_usage(state, id, &mut penalty);
    penalty.values_mut().for_each(|sum| *sum = part.of(*sum));
    let account = state.ledger.accounts.entry(local_queue).or_default();
    add(&mut account.pending, &penalty);
    state.ledger.penalties.insert(id, (local_queue, penalty));
    update_usage(state, local_queue);
}

/// A Workload is admitted: its penalty is consumed.
pub(crate) fn admitted(state: &mut State, id: WorkloadId, now: Time) {
    let Some((local_queue, penalty)) = withdraw(state, id) else {
        return;
    };
    bring_up_to_date(state, local_queue, now);
    let account = state.ledger.accounts.entry(local_queue).or_default();
    add(&mut account.consumed, &penalty);
    update_usage(state, local_queue);
}

/// A Workload gives its quota back.
pub(crate) fn unsent(state: &mut State, id: WorkloadId) {
    if let Some((local_queue, _)) = withdraw(state, id) {
        update_usage(state, local_queue);
    }
}

/// A LocalQueue is gone, and with it what it consumed.
pub(crate) fn forget(state: &mut State, id: LocalQueueId) {
    state.ledger.accounts.remove(&id);
    state.ledger.penalties.retain(|_, (local_queue, _)| *local_queue != id);
}

fn withdraw(state: &mut State, id: WorkloadId) -> Option<(LocalQueueId, Sums)> {
    let (local_queue, penalty) = state.ledger.penalties.remove(&id)?;
    if let Some(account) = state.ledger.accounts.get_mut(&local_queue) {
        for (resource, sum) in &penalty {
            *account.pending.entry(*resource).or_default() -= sum;
        }
    }
    Some((local_queue, penalty))
}

/// The past decays, and what is used now enters.
fn bring_up_to_date(state: &mut State, id: LocalQueueId, now: Time) {
    let Some(usage_half_life) =
        state.ledger.sharing.as_ref().map(|sharing| sharing.usage_half_life)
    else {
        return;
    };
    let mut used = Sums::new();
    for workload in holders(state, id) {
        add_usage(state, workload, &mut used);
    }
    let account = state.ledger.accounts.entry(id).or_default();
    let elapsed = account.updated.map_or(0, |at| now.0.saturating_sub(at.0));
    account.updated = Some(now);
    if usage_half_life <= 0 {
        return account.consumed.clear();
    }
    let left = DecayFactor::left(elapsed, usage_half_life);
    account.consumed.values_mut().for_each(|sum| *sum = left.of(*sum));
    used.values_mut().for_each(|sum| *sum = left.rest().of(*sum));
    add(&mut account.consumed, &used);
}

/// Workloads of a LocalQueue that are admitted.
fn holders(state: &State, id: LocalQueueId) -> Vec<WorkloadId> {
    let Some(queue) = shared_queue(state, id) else {
        return Vec::new();
    };
    let own = |&one: &WorkloadId| state.workloads.at(one).local_queue == Some(id);
    let all = state.queue(queue).reserving.iter().copied();
    all.filter(|one| own(one) && crate::checks::is_admitted(state, *one)).collect()
}

fn add_usage(state: &State, id: WorkloadId, sums: &mut Sums) {
    let admission = state.workloads.at(id).admission.as_deref();
    for &(slot, amount) in admission.iter().flat_map(|one| &one.usage) {
        let (_, resource) = state.tree.pair(slot);
        *sums.entry(resource).or_default() += exact(amount);
    }
}

fn add(sums: &mut Sums, more: &Sums) {
    for (resource, sum) in more {
        *sums.entry(*resource).or_default() += sum;
    }
}

fn exact(amount: Amount) -> i128 {
    i128::from(amount.clip().0) << BITS
}

/// The queue that a LocalQueue points to, if it shares by usage.
fn shared_queue(state: &State, id: LocalQueueId) -> Option<QueueId> {
    let queue = state.local_queues.get(id.index())?.as_ref()?.queue;
    let spec = state.queue(queue).spec.as_ref()?;
    (spec.admission_fair_sharing && state.ledger.sharing.is_some()).then_some(queue)
}

/// A LocalQueue's share changed: the line it stands in hears of it.
pub(crate) fn update_usage(state: &mut State, id: LocalQueueId) {
    let Some(queue) = shared_queue(state, id) else {
        return;
    };
    let spec = state.local_queues.get(id.index()).and_then(Option::as_ref);
    let weight = spec.map_or(FairSharingWeight::default(), |spec| spec.weight);
    let share = state.ledger.share(id, weight);
    state.queue_mut(queue).pending.set_usage(id, share);
}

/// A queue begins or ceases to share by usage.
pub(crate) fn queue_changed(state: &mut State, id: QueueId) {
    let Some(queue) = &state.queues[id.index()] else {
        return;
    };
    let shares = queue.spec.as_ref().is_some_and(|spec| spec.admission_fair_sharing)
        && state.ledger.sharing.is_some();
    if shares != queue.pending.has_fair_sharing() {
        state.queue_mut(id).pending.use_fair_sharing(shares);
    }
    if shares {
        (0..state.local_queues.len()).for_each(|one| update_usage(state, LocalQueueId::from(one)));
    }
}

impl Engine {
    /// What a LocalQueue has consumed, rounded down, and up to when that is known.
    pub fn consumed_resources(
        &self,
        id: LocalQueueId,
    ) -> (Vec<(ResourceId, Amount)>, Option<Time>) {
        let Some(account) = self.state.ledger.accounts.get(&id) else {
            return (Vec::new(), None);
        };
        let whole = |sum: i128| Amount(i64::try_from(sum >> BITS).unwrap_or(i64::MAX));
        let consumed = account.consumed.iter().map(|(resource, sum)| (*resource, whole(*sum)));
        (consumed.collect(), account.updated)
    }

    /// How much a LocalQueue has consumed for its weight, penalties included.
    pub fn fair_sharing_usage(&self, id: LocalQueueId) -> FairSharingUsage {
        let spec = self.state.local_queues.get(id.index()).and_then(Option::as_ref);
        self.state.ledger.share(id, spec.map_or(FairSharingWeight::default(), |spec| spec.weight))
    }
}
