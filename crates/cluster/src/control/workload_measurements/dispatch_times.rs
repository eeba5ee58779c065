//! How long dispatch takes: from the first nomination of a cluster, under one reservation of quota, to the admission on the manager.
//!
//! Nothing is nominated before every other check of a Workload is Ready, so no other check is part of the time; refusals by clusters and
//! further nominations are. Observed times count, since those of conditions are whole seconds. A nomination that was made before this
//! process observed the Workload has no time.

use crds::{
    meta::is_true,
    names::conditions::{ADMITTED, QUOTA_RESERVED},
    v1beta2::Workload,
};
use jiff::{SignedDuration, Timestamp};
use runtime::watch::Key;

use super::transitions::elapsed;
use crate::control::{
    key_map::KeyMap, measurement::Measurement, time::moved, workloads::WorkloadChange,
};

/// When a cluster was nominated for Workloads that are not admitted yet.
#[derive(Debug, Default)]
pub(super) struct DispatchTimes {
    nominated: KeyMap<Key, Timestamp>,
}

impl DispatchTimes {
    /// Observes a change. Returns the time of the dispatch that ends with it.
    pub(super) fn observe(
        &mut self,
        change: &WorkloadChange,
        now: Timestamp,
    ) -> Option<Measurement> {
        let key = &change.key;
        let waiting = change.after.as_deref().filter(|one| is(one, QUOTA_RESERVED));
        let Some(workload) = waiting else {
            self.nominated.remove(key);
            return None;
        };
        if is(workload, ADMITTED) {
            let since = self.nominated.remove(key)?;
            let cluster_queue = workload.status.admission.as_ref()?.cluster_queue.clone();
            let took = elapsed(Some(since), now);
            return Some(Measurement::DispatchTook { cluster_queue, took });
        }
        let before = change.before.as_deref();
        let is_first = before.is_some_and(|one| one.status.nominated_cluster_names.is_empty());
        let is_nominated = !workload.status.nominated_cluster_names.is_empty();
        if is_first && is_nominated && self.nominated.get(key).is_none() {
            self.nominated.insert(key.clone(), now);
        }
        None
    }

    /// The clock jumped.
    pub(super) fn clock_jumped(&mut self, by: SignedDuration) {
        self.nominated.for_each_mut(|_, at| *at = moved(*at, by));
    }
}

fn is(workload: &Workload, condition: &str) -> bool {
    is_true(&workload.status.conditions, condition)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    /// A Workload with these conditions, nominated for these clusters.
    fn workload(conditions: &[&str], nominated: &[&str]) -> Option<Arc<Workload>> {
        let condition =
            |name: &&str| json!({"type": name, "status": "True", "reason": "R", "message": ""});
        let conditions: Vec<Value> = conditions.iter().map(condition).collect();
        let status = json!({
            "conditions": conditions, "nominatedClusterNames": nominated,
            "admission": {"clusterQueue": "cq", "podSetAssignments": []},
        });
        let object = json!({"metadata": {"name": "w"}, "spec": {}, "status": status});
        Some(Arc::new(serde_json::from_value(object).expect("a Workload")))
    }

    /// What is measured of these observations, a second apart.
    fn measured(observations: &[Option<Arc<Workload>>]) -> Vec<u64> {
        measured_with_jumps(observations, SignedDuration::ZERO)
    }

    /// The same if the clock is set by so much before each observation.
    fn measured_with_jumps(
        observations: &[Option<Arc<Workload>>],
        jump: SignedDuration,
    ) -> Vec<u64> {
        let mut times = DispatchTimes::default();
        let mut now = Timestamp::UNIX_EPOCH;
        let key = Key { namespace: Some("ns".into()), name: "w".into() };
        let mut found = Vec::new();
        for (number, after) in observations.iter().enumerate() {
            let change = WorkloadChange {
                key: key.clone(),
                id: None,
                before: number.checked_sub(1).and_then(|last| observations[last].clone()),
                after: after.clone(),
                phase_before: None,
                phase: None,
                voids_reservation: false,
                shows_topology: false,
            };
            times.clock_jumped(jump);
            now += jump + SignedDuration::from_secs(1);
            if let Some(Measurement::DispatchTook { cluster_queue, took }) =
                times.observe(&change, now)
            {
                assert_eq!(cluster_queue, "cq");
                found.push(took.as_secs());
            }
        }
        assert_eq!(times.nominated.iter().count(), 0, "nothing is kept");
        found
    }

    #[test]
    fn the_time_does_not_change_with_the_clock() {
        let all = [
            workload(&["QuotaReserved"], &[]),
            workload(&["QuotaReserved"], &["east"]),
            workload(&["QuotaReserved"], &["west"]),
            workload(&["QuotaReserved", "Admitted"], &[]),
        ];
        for jump in [3, -3].map(SignedDuration::from_hours) {
            assert_eq!(measured_with_jumps(&all, jump), [2], "{jump}");
        }
    }

    #[test]
    fn the_time_is_that_from_the_first_nomination_to_the_admission() {
        let (new, reserved) = (workload(&[], &[]), workload(&["QuotaReserved"], &[]));
        let nominated = |name| workload(&["QuotaReserved"], &[name]);
        let admitted = workload(&["QuotaReserved", "Admitted"], &[]);
        let refused = [
            new.clone(),
            reserved.clone(),
            nominated("east"),
            reserved.clone(),
            nominated("west"),
            reserved.clone(),
            admitted.clone(),
            admitted.clone(),
        ];
        assert_eq!(measured(&refused), [4]);
        let evicted =
            [new.clone(), nominated("east"), new.clone(), nominated("east"), admitted.clone()];
        assert_eq!(measured(&evicted), [1], "quota that was lost ends a dispatch");
        let known = [nominated("east"), nominated("west"), admitted.clone()];
        assert_eq!(measured(&known), [0; 0], "the nomination was not observed");
        assert_eq!(measured(&[new.clone(), nominated("east"), None]), [0; 0]);
        assert_eq!(measured(&[new, reserved, admitted]), [0; 0], "without dispatch");
    }
}
