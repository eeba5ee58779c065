//! How capacity and traffic move from one cluster to the other, in an incremental upgrade and when one is taken back.
//!
//! Both move in turns. The new cluster gets more capacity, then as much traffic, step by step; then the old one gives up capacity. When an
//! upgrade is taken back the clusters change their roles.
//!
//! Source: docs/reference/ray.md §9.

use jiff::{SignedDuration, Timestamp};

use super::{
    conditions::ROLLBACK_IN_PROGRESS,
    context::ServiceContext,
    gateway::are_ready,
    state::{ClusterSlot, ServiceState},
};
use crate::v1::ClusterUpgradeOptions;

/// Another capacity of one of the two clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CapacityMove {
    pub(super) cluster: String,
    pub(super) capacity: i32,
}

/// The parts of the traffic, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrafficSplit {
    pub(super) active: i32,
    pub(super) pending: i32,
}

impl ServiceState {
    pub(super) fn is_rolling_back(&self) -> bool {
        self.is_true(ROLLBACK_IN_PROGRESS)
    }

    /// The cluster that gives up traffic, and the one that takes it.
    fn roles(&self) -> (&ClusterSlot, &ClusterSlot) {
        if self.is_rolling_back() {
            (&self.pending, &self.active)
        } else {
            (&self.active, &self.pending)
        }
    }

    /// The capacity of a cluster, if the status has one.
    pub(super) fn capacity_of(&self, cluster: &str) -> Option<i32> {
        let slots = [&self.active, &self.pending];
        slots.into_iter().find(|slot| slot.cluster == cluster)?.target_capacity
    }

    pub(super) fn set_capacity(&mut self, step: &CapacityMove) {
        for slot in [&mut self.active, &mut self.pending] {
            if slot.cluster == step.cluster {
                slot.target_capacity = Some(step.capacity);
            }
        }
    }

    /// Whether capacity moves away from a cluster, now or when the other one has taken its traffic.
    pub(super) fn gives_up_capacity(&self, cluster: &str) -> bool {
        let (old, new) = self.roles();
        old.cluster == cluster && !new.cluster.is_empty()
    }

    /// Whether the old cluster has nothing left, and the new one all.
    pub(super) fn is_migrated(&self) -> bool {
        let (old, new) = self.roles();
        old.target_capacity == Some(0) && new.traffic == Some(100)
    }
}

/// The capacity that `cluster` gets now: that of its next step, else the one of the status that its head has missed.
///
/// `reported` is what the head reports; `None` if it does not, or needs nothing but the next step.
pub(super) fn due_capacity(
    context: &ServiceContext<'_>,
    state: &ServiceState,
    cluster: &str,
    reported: Option<f64>,
) -> Option<CapacityMove> {
    let next = next_capacity(context, state, cluster);
    next.or_else(|| missed_capacity(state, cluster, reported?))
}

/// The next capacity of `cluster`, if it is its turn. Nothing moves without a way for the traffic.
pub(super) fn next_capacity(
    context: &ServiceContext<'_>,
    state: &ServiceState,
    cluster: &str,
) -> Option<CapacityMove> {
    let both = state.clusters().iter().all(|name| !name.is_empty());
    if !both || !are_ready(context) {
        return None;
    }
    let options = options(context)?;
    capacity_step(state, options.max_surge_percent.unwrap_or(100), cluster)
}

/// The capacity of the status that the head of `cluster` has missed: a step of a cluster that gives up capacity is noted without its head.
///
/// What the head reports decides, since a step may have arrived although its answer was lost.
fn missed_capacity(state: &ServiceState, cluster: &str, reported: f64) -> Option<CapacityMove> {
    let capacity = state.capacity_of(cluster)?;
    let is_missed = state.gives_up_capacity(cluster) && reported != f64::from(capacity);
    is_missed.then(|| CapacityMove { cluster: cluster.to_owned(), capacity })
}

fn capacity_step(state: &ServiceState, surge: i32, cluster: &str) -> Option<CapacityMove> {
    let (old, new) = state.roles();
    let full = |slot: &ClusterSlot| if slot.cluster == state.active.cluster { 100 } else { 0 };
    let capacity = |slot: &ClusterSlot| slot.target_capacity.unwrap_or_else(|| full(slot));
    let (old_capacity, new_capacity) = (capacity(old), capacity(new));
    // Traffic follows capacity before more capacity moves.
    if new_capacity != new.traffic.unwrap_or_else(|| full(new)) {
        return None;
    }
    let has_surplus = old_capacity.saturating_add(new_capacity) > 100;
    let (slot, wanted) = if has_surplus {
        (old, old_capacity.saturating_sub(surge).max(0))
    } else {
        (new, new_capacity.saturating_add(surge).min(100))
    };
    let is_step = slot.cluster == cluster && wanted != capacity(slot);
    is_step.then(|| CapacityMove { cluster: cluster.to_owned(), capacity: wanted })
}

/// The parts of the traffic from now on.
pub(super) fn next_traffic(
    context: &ServiceContext<'_>,
    state: &ServiceState,
    takes_traffic: bool,
) -> TrafficSplit {
    let present = TrafficSplit {
        active: state.active.traffic.unwrap_or(100),
        pending: state.pending.traffic.unwrap_or(0),
    };
    match options(context) {
        Some(options) if takes_traffic => traffic_step(state, present, options, context.now()),
        _ => present,
    }
}

fn traffic_step(
    state: &ServiceState,
    present: TrafficSplit,
    options: &ClusterUpgradeOptions,
    now: Timestamp,
) -> TrafficSplit {
    let (_, new) = state.roles();
    let back = state.is_rolling_back();
    let weight = if back { present.active } else { present.pending };
    let capacity = new.target_capacity.unwrap_or(if back { 100 } else { 0 });
    let interval = SignedDuration::from_secs(options.interval_seconds.unwrap_or(0).into());
    let moved = new.traffic_moved.as_deref().and_then(|it| it.parse::<Timestamp>().ok());
    let is_early = moved.is_some_and(|moved| now.duration_since(moved) < interval);
    if weight == capacity || is_early {
        return present;
    }
    let step = options.step_size_percent.unwrap_or(0);
    let weight = weight.saturating_add(step).min(capacity).clamp(0, 100);
    if back {
        TrafficSplit { active: weight, pending: 100 - weight }
    } else {
        TrafficSplit { active: 100 - weight, pending: weight }
    }
}

pub(super) fn options<'a>(context: &ServiceContext<'a>) -> Option<&'a ClusterUpgradeOptions> {
    context.spec.upgrade_strategy.as_ref()?.cluster_upgrade_options.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::conditions::ServiceCondition;

    fn state(active: (i32, i32), pending: (i32, i32)) -> ServiceState {
        let slot = |cluster: &str, (capacity, traffic)| ClusterSlot {
            target_capacity: Some(capacity),
            traffic: Some(traffic),
            ..ClusterSlot::of(cluster.to_owned())
        };
        let mut state = ServiceState::read(&serde_json::Value::Null);
        state.active = slot("a", active);
        state.pending = slot("p", pending);
        state
    }

    fn options(step: i32) -> ClusterUpgradeOptions {
        ClusterUpgradeOptions {
            interval_seconds: Some(1),
            step_size_percent: Some(step),
            ..ClusterUpgradeOptions::default()
        }
    }

    /// Capacity and traffic of both clusters until nothing moves.
    fn course(mut state: ServiceState, surge: i32, step: i32) -> Vec<[i32; 4]> {
        let row = |it: &ServiceState| {
            [&it.active, &it.pending]
                .map(|slot| [slot.target_capacity.unwrap_or(-1), slot.traffic.unwrap_or(-1)])
        };
        let mut rows = vec![row(&state).concat().try_into().expect("four numbers")];
        for _ in 0..1_000 {
            let before = state.clone();
            for cluster in ["p", "a"] {
                if let Some(next) = capacity_step(&state, surge, cluster) {
                    state.set_capacity(&next);
                }
            }
            let present = TrafficSplit {
                active: state.active.traffic.expect("traffic"),
                pending: state.pending.traffic.expect("traffic"),
            };
            let split = traffic_step(&state, present, &options(step), Timestamp::UNIX_EPOCH);
            state.active.traffic = Some(split.active);
            state.pending.traffic = Some(split.pending);
            if state == before {
                return rows;
            }
            rows.push(row(&state).concat().try_into().expect("four numbers"));
        }
        unreachable!("it does not end")
    }

    #[test]
    fn an_upgrade_moves_capacity_and_traffic_in_turns() {
        let rows = course(state((100, 100), (0, 0)), 50, 25);
        let last = rows.last().expect("a row");
        assert_eq!(last, &[0, 0, 100, 100]);
        assert_eq!(rows[1], [100, 75, 50, 25]);
        for [active, _, pending, traffic] in rows {
            assert!(active + pending <= 150, "no more than the surge");
            assert!(traffic <= pending, "no traffic without capacity");
        }
    }

    #[test]
    fn an_upgrade_ends_with_every_surge_and_step() {
        for surge in 1..=100 {
            for step in [1, 7, 50, 100] {
                let rows = course(state((100, 100), (0, 0)), surge, step.min(surge));
                assert_eq!(rows.last(), Some(&[0, 0, 100, 100]), "{surge} {step}");
            }
        }
    }

    #[test]
    fn an_upgrade_that_is_taken_back_ends_where_it_began() {
        for begin in [
            ((100, 100), (50, 0)),
            ((100, 75), (50, 25)),
            ((50, 50), (50, 50)),
            ((0, 0), (100, 100)),
        ] {
            let mut state = state(begin.0, begin.1);
            let wanted = ServiceCondition {
                kind: ROLLBACK_IN_PROGRESS,
                status: "True",
                reason: "DesiredClusterSpecChanged",
                message: "",
            };
            state.set(&wanted, Timestamp::UNIX_EPOCH);
            assert_eq!(course(state, 50, 25).last(), Some(&[100, 100, 0, 0]), "{begin:?}");
        }
    }
}
