//! The settings with which a case was recorded.

use std::time::Duration;

use appwrapper::settings::{FaultTolerance, WrapperSettings};

/// The settings of a profile.
pub(crate) fn settings(profile: &str) -> WrapperSettings {
    if profile == "appwrapper" {
        return WrapperSettings::default();
    }
    assert_eq!(profile, "appwrapper-config", "unknown profile {profile}");
    WrapperSettings {
        scheduler_name: Some("my-scheduler".to_owned()),
        default_queue_name: Some("default-queue".to_owned()),
        user_rbac_check: false,
        fault_tolerance: FaultTolerance {
            admission_grace: Duration::from_secs(20),
            warmup_grace: Duration::from_secs(30),
            failure_grace: Duration::from_secs(3),
            reset_pause: Duration::from_secs(4),
            retry_limit: 1,
            success_ttl: Duration::from_secs(9),
            ..FaultTolerance::default()
        },
        injects_anti_affinities: false,
        monitors_nodes: false,
        ..WrapperSettings::default()
    }
}
