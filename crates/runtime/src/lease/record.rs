//! The content of a Lease, in the fields of `coordination.k8s.io/v1` as Kubernetes controllers use them.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::api::ObjectMeta;

/// The content of a Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The identity of the holder; empty if there is none.
    pub holder: String,
    /// The lease duration that the holder asks for; none if unset.
    pub duration: Option<Duration>,
    /// When the holder acquired the Lease, by the clock of the holder. Informational.
    pub acquired: Option<Timestamp>,
    /// When the holder renewed the Lease, by the clock of the holder. For other processes only the change of the value counts.
    pub renewed: Option<Timestamp>,
    /// How often the holder changed.
    pub transitions: i32,
}

impl LeaseRecord {
    /// The record that `me` writes over this one to acquire or renew the Lease.
    #[must_use]
    pub fn held_by(&self, me: &str, duration: Duration, now: Timestamp) -> Self {
        let mine = self.holder == me;
        Self {
            holder: me.to_owned(),
            duration: Some(duration),
            // As client-go does, only a change of the holder sets the time and counts a transition.
            acquired: if mine { self.acquired.or(Some(now)) } else { Some(now) },
            renewed: Some(now),
            transitions: if mine { self.transitions } else { self.transitions.saturating_add(1) },
        }
    }

    /// The record that the first holder of a new Lease writes.
    #[must_use]
    pub fn first(me: &str, duration: Duration, now: Timestamp) -> Self {
        // A new Lease had no holder before, so its first one is no transition.
        Self { transitions: 0, ..Self::default().held_by(me, duration, now) }
    }

    /// The record that releases the Lease, so that a follower can acquire it at once.
    #[must_use]
    pub fn released(&self, now: Timestamp) -> Self {
        Self {
            holder: String::new(),
            // The API server refuses a duration of zero; one second is the shortest.
            duration: Some(Duration::from_secs(1)),
            acquired: Some(now),
            renewed: Some(now),
            transitions: self.transitions,
        }
    }

    /// Reads a Lease. An invalid duration counts as unset.
    #[must_use]
    pub fn read(lease: &Lease) -> Self {
        let spec = lease.spec.clone().unwrap_or_default();
        let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        Self {
            holder: spec.holder_identity.unwrap_or_default(),
            duration: seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs),
            acquired: spec.acquire_time.map(|time| time.0),
            renewed: spec.renew_time.map(|time| time.0),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }

    /// The Lease with this record. `known` is the metadata to keep.
    #[must_use]
    pub fn write(&self, known: ObjectMeta) -> Lease {
        let seconds = self.duration.map(|duration| duration.as_secs());
        let spec = LeaseSpec {
            holder_identity: Some(self.holder.clone()),
            lease_duration_seconds: seconds.and_then(|seconds| i32::try_from(seconds).ok()),
            acquire_time: self.acquired.map(MicroTime),
            renew_time: self.renewed.map(MicroTime),
            lease_transitions: Some(self.transitions),
            ..LeaseSpec::default()
        };
        Lease { metadata: known, spec: Some(spec) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    fn time(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    #[test]
    fn a_lease_has_the_fields_of_kubernetes_controllers() {
        let now = time("2026-03-01T10:00:00.123456Z");
        let lease = LeaseRecord::first("pod_1", LEASE, now).write(ObjectMeta::default());
        let expected = json!({
            "holderIdentity": "pod_1",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-03-01T10:00:00.123456Z",
            "renewTime": "2026-03-01T10:00:00.123456Z",
            "leaseTransitions": 0,
        });
        assert_eq!(serde_json::to_value(&lease).expect("JSON")["spec"], expected);
        assert_eq!(LeaseRecord::read(&lease), LeaseRecord::first("pod_1", LEASE, now));
    }

    #[test]
    fn a_renewal_keeps_the_acquire_time_and_a_takeover_counts_a_transition() {
        let [then, now] = ["2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z"].map(time);
        let first = LeaseRecord::first("a", LEASE, then);
        let renewed = first.held_by("a", LEASE, now);
        assert_eq!(renewed, LeaseRecord { renewed: Some(now), ..first });
        let taken = renewed.held_by("b", LEASE, now);
        assert_eq!((taken.acquired, taken.transitions), (Some(now), 1));
    }

    #[test]
    fn a_released_lease_has_no_holder_and_a_short_duration() {
        let now = time("2026-03-01T10:00:00Z");
        let released = LeaseRecord::first("a", LEASE, now).held_by("b", LEASE, now).released(now);
        let lease = released.write(ObjectMeta::default());
        let spec = serde_json::to_value(&lease).expect("JSON")["spec"].clone();
        assert_eq!(spec["holderIdentity"], "");
        assert_eq!(spec["leaseDurationSeconds"], 1);
        assert_eq!(spec["leaseTransitions"], 1);
        assert_eq!(released.held_by("c", LEASE, now).transitions, 2);
    }

    #[test]
    fn an_empty_lease_has_no_holder() {
        assert_eq!(LeaseRecord::read(&Lease::default()), LeaseRecord::default());
        let negative = json!({"spec": {"leaseDurationSeconds": -5, "holderIdentity": "a"}});
        let negative: Lease = serde_json::from_value(negative).expect("a lease");
        assert_eq!(LeaseRecord::read(&negative).duration, None);
    }
}
