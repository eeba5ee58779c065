//! Zero values of the file that stand for the default.
//!
//! Kueue's decoder does not tell an empty text or a zero duration from an absent field, and sets the default for both. Fields that are
//! optional there, as `waitForPodsReady.recoveryTimeout`, keep their zero.

use super::{AdmissionFairSharing, Configuration, Health, LeaderElection, WaitForPodsReady};

impl Configuration {
    /// Sets the defaults of such fields.
    pub(super) fn replace_zero_values(&mut self) {
        let Self { webhook, metrics, multi_kueue, .. } = Self::default();
        or(&mut self.webhook.cert_dir, webhook.cert_dir);
        or(&mut self.metrics.bind_address, metrics.bind_address);
        or(&mut self.multi_kueue.origin, multi_kueue.origin);
        replace_in_health(&mut self.health);
        replace_in_leader_election(&mut self.leader_election);
        if let Some(fair) = &mut self.admission_fair_sharing {
            let default = AdmissionFairSharing::default();
            or(&mut fair.usage_sampling_interval, default.usage_sampling_interval);
        }
    }
}

impl WaitForPodsReady {
    /// The default in place of zero, for a block of v1beta2. In v1beta1 the field is optional, so that its zero is one.
    pub(super) fn with_default_for_zero(mut self) -> Self {
        or(&mut self.timeout, Self::default().timeout);
        self
    }
}

fn replace_in_health(health: &mut Health) {
    let default = Health::default();
    or(&mut health.health_probe_bind_address, default.health_probe_bind_address);
    or(&mut health.readiness_endpoint_name, default.readiness_endpoint_name);
    or(&mut health.liveness_endpoint_name, default.liveness_endpoint_name);
}

fn replace_in_leader_election(election: &mut LeaderElection) {
    let default = LeaderElection::default();
    or(&mut election.resource_name, default.resource_name);
    or(&mut election.resource_lock, default.resource_lock);
    or(&mut election.lease_duration, default.lease_duration);
    or(&mut election.renew_deadline, default.renew_deadline);
    or(&mut election.retry_period, default.retry_period);
}

fn or<T: Default + PartialEq>(value: &mut T, default: T) {
    if *value == T::default() {
        *value = default;
    }
}
