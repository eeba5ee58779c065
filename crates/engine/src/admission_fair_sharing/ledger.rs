//! The ledger of admission fair sharing: what every LocalQueue consumed, and its entry penalties.
//!
//! At every sample past consumption decays by the half-life and present usage is added for the elapsed time. A quota
//! reservation adds an entry penalty at once, of the size that one sampling interval would add; without it a LocalQueue
//! could reserve everything between two samples. The penalty becomes consumption when the Workload is admitted, and is dropped when the
//! quota is released before that. Source: docs/reference/kueue.md §3.8.
//!
//! Amounts are whole numbers in 2^-32 of a resource's base unit, so equal events give equal usage on every machine.

use std::collections::BTreeMap;

use crate::admission_fair_sharing::decay::{BITS, DecayFactor};
use crate::admission_fair_sharing::{AdmissionFairSharingSettings, FairSharingUsage};
use crate::amount::{Amount, NanoAmount};
use crate::ids::{LocalQueueId, ResourceId, WorkloadId};
use crate::spec::FairSharingWeight;
use crate::time::Time;

/// Amounts per resource, in 2^-32 of a base unit.
pub(crate) type Sums = BTreeMap<ResourceId, i128>;

/// What one LocalQueue consumed.
#[derive(Debug, Clone, Default)]
struct LocalQueueAccount {
    consumed: Sums,
    updated: Option<Time>,
    /// Sum of the entry penalties of Workloads that are not admitted yet.
    penalties: Sums,
}

/// The accounts of all LocalQueues.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConsumptionLedger {
    settings: Option<AdmissionFairSharingSettings>,
    accounts: BTreeMap<LocalQueueId, LocalQueueAccount>,
    penalties: BTreeMap<WorkloadId, (LocalQueueId, Sums)>,
}

impl ConsumptionLedger {
    /// Sets the configuration. `None` switches admission fair sharing off and clears all accounts.
    pub(crate) fn configure(&mut self, settings: Option<AdmissionFairSharingSettings>) {
        // Switched on again, admission fair sharing starts without a past.
        if settings.is_none() {
            *self = Self::default();
        }
        self.settings = settings;
    }

    /// Whether admission fair sharing is configured.
    pub(crate) fn is_on(&self) -> bool {
        self.settings.is_some()
    }

    /// Replaces the consumption of a LocalQueue by the recorded one.
    pub(crate) fn set_consumed(
        &mut self,
        id: LocalQueueId,
        consumed: &[(ResourceId, NanoAmount)],
        at: Time,
    ) {
        let account = self.accounts.entry(id).or_default();
        let sums = consumed.iter().map(|&(resource, amount)| (resource, from_nanos(amount)));
        (account.consumed, account.updated) = (sums.collect(), Some(at));
    }

    /// Consumption of a LocalQueue, rounded down, and the time of the last update.
    pub(crate) fn consumed(
        &self,
        id: LocalQueueId,
    ) -> (Vec<(ResourceId, NanoAmount)>, Option<Time>) {
        let Some(account) = self.accounts.get(&id) else {
            return (Vec::new(), None);
        };
        let sums = account.consumed.iter();
        let consumed = sums.map(|(resource, sum)| (*resource, NanoAmount(to_nanos(*sum))));
        (consumed.collect(), account.updated)
    }

    /// Whether the last sample of a LocalQueue is at least one sampling interval old. One of a later time was taken before the clock was
    /// set back, and would keep the LocalQueue from being sampled until then.
    pub(crate) fn needs_sample(&self, id: LocalQueueId, now: Time) -> bool {
        let Some(settings) = &self.settings else {
            return false;
        };
        let updated = self.accounts.get(&id).and_then(|account| account.updated);
        updated.is_none_or(|at| at > now || at.0.saturating_add(settings.interval) <= now.0)
    }

    /// Consumption and penalties of a LocalQueue, weighted per resource and divided by its weight.
    pub(crate) fn usage(&self, id: LocalQueueId, weight: FairSharingWeight) -> FairSharingUsage {
        let Some(settings) = &self.settings else {
            return FairSharingUsage::default();
        };
        // A weight of 0 makes the usage infinite (§3.8).
        if weight.0 == 0 {
            return FairSharingUsage::INFINITE;
        }
        let Some(account) = self.accounts.get(&id) else {
            return FairSharingUsage::default();
        };
        let sums = account.consumed.iter().chain(&account.penalties);
        let weighted = sums.map(|(resource, sum)| {
            let own = settings.weights.iter().find(|(one, _)| one == resource);
            let own = own.map_or(FairSharingWeight::default(), |(_, weight)| *weight);
            sum.saturating_mul(own.0.into())
        });
        let total = weighted.fold(0_i128, i128::saturating_add);
        FairSharingUsage(total / i128::from(weight.0))
    }

    /// The entry penalty for a usage: what one sampling interval would add.
    pub(crate) fn entry_penalty(&self, usage: &Sums) -> Sums {
        let Some(settings) = &self.settings else {
            return Sums::new();
        };
        let factor = DecayFactor::left(settings.interval, settings.usage_half_life).rest();
        // With a half-life of 0 nothing is remembered, so there is no penalty.
        let factor = if settings.usage_half_life > 0 { factor } else { factor.rest() };
        scaled(usage, factor)
    }

    /// Adds the entry penalty of a Workload that reserved quota, in place of an earlier one.
    pub(crate) fn add_penalty(
        &mut self,
        workload: WorkloadId,
        local_queue: LocalQueueId,
        penalty: Sums,
    ) {
        if !self.is_on() {
            return;
        }
        self.withdraw(workload);
        let account = self.accounts.entry(local_queue).or_default();
        add(&mut account.penalties, &penalty);
        self.penalties.insert(workload, (local_queue, penalty));
    }

    /// Drops the entry penalty of a Workload. Returns its LocalQueue if there was one.
    pub(crate) fn drop_penalty(&mut self, workload: WorkloadId) -> Option<LocalQueueId> {
        self.withdraw(workload).map(|(local_queue, _)| local_queue)
    }

    /// The LocalQueue that has an entry penalty for a Workload.
    pub(crate) fn penalized(&self, workload: WorkloadId) -> Option<LocalQueueId> {
        self.penalties.get(&workload).map(|(local_queue, _)| *local_queue)
    }

    /// Turns the entry penalty of an admitted Workload into consumption, after a sample of `usage`, the present usage of
    /// its LocalQueue. Returns the penalty.
    pub(crate) fn consume_penalty(
        &mut self,
        workload: WorkloadId,
        usage: &Sums,
        now: Time,
    ) -> Option<Sums> {
        let (local_queue, penalty) = self.withdraw(workload)?;
        // Without a record there is nothing to decay, and the next sample begins one.
        if self.accounts.get(&local_queue).is_some_and(|account| account.updated.is_some()) {
            self.sample(local_queue, usage, now);
        }
        let account = self.accounts.entry(local_queue).or_default();
        add(&mut account.consumed, &penalty);
        Some(penalty)
    }

    /// Decays the consumption of a LocalQueue up to `now`, and adds its present usage for the elapsed time. A LocalQueue without a
    /// record begins with its present usage: if admission fair sharing is new, a busy LocalQueue must not look like an idle one.
    pub(crate) fn sample(&mut self, id: LocalQueueId, usage: &Sums, now: Time) {
        let Some(half_life) = self.settings.as_ref().map(|settings| settings.usage_half_life)
        else {
            return;
        };
        let account = self.accounts.entry(id).or_default();
        let updated = account.updated.replace(now);
        // A half-life of 0 resets the consumption (§3.8).
        if half_life <= 0 {
            return account.consumed.clear();
        }
        let Some(updated) = updated else {
            return account.consumed.clone_from(usage);
        };
        let left = DecayFactor::left(now.0.saturating_sub(updated.0), half_life);
        account.consumed.values_mut().for_each(|sum| *sum = left.of(*sum));
        add(&mut account.consumed, &scaled(usage, left.rest()));
    }

    /// Removes a deleted LocalQueue with its consumption and penalties.
    pub(crate) fn remove(&mut self, id: LocalQueueId) {
        self.accounts.remove(&id);
        self.penalties.retain(|_, (local_queue, _)| *local_queue != id);
    }

    fn withdraw(&mut self, workload: WorkloadId) -> Option<(LocalQueueId, Sums)> {
        let (local_queue, penalty) = self.penalties.remove(&workload)?;
        if let Some(account) = self.accounts.get_mut(&local_queue) {
            for (resource, sum) in &penalty {
                *account.penalties.entry(*resource).or_default() -= sum;
            }
        }
        Some((local_queue, penalty))
    }
}

fn scaled(usage: &Sums, factor: DecayFactor) -> Sums {
    usage.iter().map(|(resource, amount)| (*resource, factor.of(*amount))).collect()
}

fn add(sums: &mut Sums, more: &Sums) {
    for (resource, sum) in more {
        *sums.entry(*resource).or_default() += sum;
    }
}

/// Whether no resource has more in `sums` than in `most`.
pub(crate) fn covers(most: &Sums, sums: &Sums) -> bool {
    sums.iter().all(|(resource, sum)| *sum <= most.get(resource).copied().unwrap_or(0))
}

/// An amount in 2^-32 of a base unit; zero if negative.
pub(crate) fn exact(amount: Amount) -> i128 {
    i128::from(amount.clip().0) << BITS
}

/// A recorded amount in 2^-32 of a base unit; zero if negative. Rounded up, so that [`to_nanos`] gives the recorded amount
/// again.
fn from_nanos(NanoAmount(nanos): NanoAmount) -> i128 {
    let scaled = nanos.clamp(0, i128::from(i64::MAX) * NanoAmount::PER_UNIT) << BITS;
    scaled / NanoAmount::PER_UNIT + i128::from(scaled % NanoAmount::PER_UNIT != 0)
}

/// A sum in billionths of a base unit, rounded down; saturates.
pub(super) fn to_nanos(sum: i128) -> i128 {
    sum.saturating_mul(NanoAmount::PER_UNIT) >> BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;
    const DAY: i64 = 24 * 3600 * SECOND;

    const QUEUE: LocalQueueId = LocalQueueId(0);
    const GPU: ResourceId = ResourceId(0);

    fn ledger(usage_half_life: i64, interval: i64) -> ConsumptionLedger {
        let mut ledger = ConsumptionLedger::default();
        let weights = Vec::new();
        ledger.configure(Some(AdmissionFairSharingSettings { usage_half_life, interval, weights }));
        ledger
    }

    fn gpus(count: i64) -> Sums {
        Sums::from([(GPU, exact(Amount(count)))])
    }

    fn usage(ledger: &ConsumptionLedger) -> i128 {
        ledger.usage(QUEUE, FairSharingWeight::default()).nanos()
    }

    #[test]
    fn a_recorded_amount_is_recorded_again() {
        let mut ledger = ledger(DAY, SECOND);
        for nanos in [0, 1, 343_750, 999_999_999, 1 << 62, i128::from(i64::MAX) << 20] {
            let recorded = vec![(GPU, NanoAmount(nanos))];
            ledger.set_consumed(QUEUE, &recorded, Time(0));
            assert_eq!(ledger.consumed(QUEUE).0, recorded);
        }
    }

    #[test]
    fn a_clock_that_is_set_back_delays_no_sample_and_changes_no_consumption() {
        let mut ledger = ledger(DAY, SECOND);
        ledger.set_consumed(QUEUE, &[(GPU, NanoAmount(1 << 40))], Time(DAY));
        let before = usage(&ledger);
        assert!(ledger.needs_sample(QUEUE, Time(9)));
        ledger.sample(QUEUE, &gpus(8), Time(9));
        assert_eq!(usage(&ledger), before, "no time has passed");
        assert!(!ledger.needs_sample(QUEUE, Time(9 + SECOND - 1)));
        assert!(ledger.needs_sample(QUEUE, Time(9 + SECOND)));
    }

    #[test]
    fn a_second_penalty_of_a_workload_replaces_the_first() {
        let mut ledger = ledger(10, 10);
        for count in [8, 4] {
            let penalty = ledger.entry_penalty(&gpus(count));
            ledger.add_penalty(WorkloadId(0), QUEUE, penalty);
        }
        assert_eq!(usage(&ledger), 2 * NanoAmount::PER_UNIT);
        ledger.drop_penalty(WorkloadId(0));
        assert_eq!(usage(&ledger), 0);
    }

    #[test]
    fn one_unit_counts_in_one_second_of_a_long_half_life() {
        let mut ledger = ledger(365 * DAY, SECOND);
        ledger.set_consumed(QUEUE, &[], Time(0));
        ledger.sample(QUEUE, &gpus(1), Time(SECOND));
        // ln 2 over the seconds of a year.
        assert_eq!(usage(&ledger), 21);
    }

    #[test]
    fn a_local_queue_without_a_record_begins_with_its_present_usage() {
        for (usage_half_life, expected) in [(DAY, 4 * NanoAmount::PER_UNIT), (0, 0)] {
            let mut ledger = ledger(usage_half_life, SECOND);
            ledger.sample(QUEUE, &gpus(4), Time(5));
            assert_eq!(usage(&ledger), expected, "{usage_half_life}");
        }
    }
}
