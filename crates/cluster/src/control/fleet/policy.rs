//! DispatchPolicies as the fleet reads them (docs/reference/dispatch.md §3).

use std::time::Duration;

use config::GoDuration;
use crds::{
    names::EXACTLY_ONCE,
    quantity::Quantity,
    v1alpha1::{Disconnection, DispatchPolicy, GangReservation, JobKind, Rebalance},
};
use dispatch::{
    ClusterPreference, Fencing, Fleet, GangReservationPolicy, JobGvk, LeasePolicy, ONE_COST,
    ONE_WEIGHT, PlacementPolicy, PlacementStrategy, RebalancePolicy,
};

use crate::control::time::{SECOND, engine_time, nanos};

/// The gang reservation of a configuration without a policy: for a gang that is blocked for 30 s, of all room.
const DEFAULT_RESERVATION: GangReservationPolicy =
    GangReservationPolicy { after: 30 * SECOND, max_share: 100 };

/// How queued work moves under a policy that says no more than that it does.
const DEFAULT_REBALANCE: RebalancePolicy =
    RebalancePolicy { min_gain: 0, cooldown: 30 * SECOND, max_moves: 1 };

/// The shortest `leaseDuration`: an agent beats six times in it.
const MIN_LEASE_SECONDS: i64 = 6;

/// The policy of a MultiKueueConfig that names none.
pub(super) fn default_policy() -> PlacementPolicy {
    PlacementPolicy { gang_reservation: Some(DEFAULT_RESERVATION), ..PlacementPolicy::default() }
}

/// Reads a DispatchPolicy. Clusters that it names are numbered in the fleet.
pub(super) fn read_policy(policy: &DispatchPolicy, fleet: &mut Fleet) -> PlacementPolicy {
    let spec = &policy.spec;
    let strategy = match spec.strategy.as_str() {
        "BinPack" => PlacementStrategy::BinPack,
        "Ordered" => PlacementStrategy::Ordered,
        // The default; the schema of the CRD admits no other text (docs/reference/dispatch.md §3).
        _ => PlacementStrategy::Spread,
    };
    let clusters = spec.clusters.iter().map(|one| ClusterPreference {
        weight: one.weight.unwrap_or(ONE_WEIGHT),
        draining: one.drain.is_some(),
        drain_deadline: one
            .drain
            .as_ref()
            .and_then(|drain| drain.deadline.parse().ok())
            .map(engine_time),
        cost: one.cost_per_unit.as_ref().map_or(ONE_COST, read_cost),
        ..ClusterPreference::of(fleet.intern_cluster(&one.name))
    });
    let lost_after = spec.disconnection.as_ref().and_then(|one| GoDuration::parse(&one.lost_after));
    let lost_after = lost_after.and_then(GoDuration::positive);
    let exactly_once = spec.disconnection.as_ref().and_then(|one| read_leases(one, lost_after));
    let kinds = spec.kinds.as_ref().map(|list| list.allow.iter().map(read_kind).collect());
    let namespaces = spec.namespaces.as_ref();
    PlacementPolicy {
        strategy,
        clusters: clusters.collect(),
        gang_reservation: Some(
            spec.reservation.as_ref().map_or(DEFAULT_RESERVATION, read_reservation),
        ),
        namespaces: namespaces
            .map(|list| list.allow.iter().map(|one| one.as_str().into()).collect()),
        kinds,
        rebalance: spec.rebalance.as_ref().and_then(read_rebalance),
        lost_after: lost_after.map(nanos),
        exactly_once,
    }
}

/// The leases that a policy asks for. Their duration is a number of whole seconds, as the Lease has it.
fn read_leases(spec: &Disconnection, lost_after: Option<Duration>) -> Option<LeasePolicy> {
    let fencing = match spec.fencing.as_str() {
        "Timed" => Fencing::Timed,
        _ => Fencing::Confirmed,
    };
    let duration = GoDuration::parse(&spec.lease_duration).and_then(GoDuration::positive);
    let seconds = duration.map_or(LeasePolicy::DEFAULT.duration / SECOND, |one| {
        i64::try_from(one.as_secs()).unwrap_or(i64::MAX)
    });
    let seconds = seconds.clamp(MIN_LEASE_SECONDS, i64::from(i32::MAX));
    (spec.execution == EXACTLY_ONCE).then(|| LeasePolicy {
        fencing,
        duration: seconds.saturating_mul(SECOND),
        lost_after: lost_after.map(nanos),
    })
}

/// A cost in thousandths.
fn read_cost(cost: &Quantity) -> i64 {
    index::allocatable_amount("cpu", cost).0
}

fn read_kind(kind: &JobKind) -> JobGvk {
    JobGvk {
        group: kind.group.as_str().into(),
        version: kind.version.as_str().into(),
        kind: kind.kind.as_str().into(),
    }
}

fn read_reservation(reservation: &GangReservation) -> GangReservationPolicy {
    let after = reservation.after_seconds.map(|seconds| i64::from(seconds.max(0)) * SECOND);
    let share = reservation.max_share.and_then(|percent| u8::try_from(percent).ok());
    GangReservationPolicy {
        after: after.unwrap_or(DEFAULT_RESERVATION.after),
        max_share: share.unwrap_or(DEFAULT_RESERVATION.max_share),
    }
}

/// When queued work moves; `None` if it does not.
fn read_rebalance(rebalance: &Rebalance) -> Option<RebalancePolicy> {
    let cooldown = GoDuration::parse(&rebalance.cooldown).and_then(GoDuration::positive);
    let gain = rebalance.min_gain.and_then(|percent| u8::try_from(percent).ok());
    let moves = rebalance.max_moves.and_then(|moves| usize::try_from(moves).ok());
    rebalance.enabled.then(|| RebalancePolicy {
        min_gain: gain.unwrap_or(DEFAULT_REBALANCE.min_gain),
        cooldown: cooldown.map_or(DEFAULT_REBALANCE.cooldown, nanos),
        max_moves: moves.unwrap_or(DEFAULT_REBALANCE.max_moves),
    })
}
