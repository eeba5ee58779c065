//! Feature gates by their names, as a flag has them: `Name=true,Other=false`.
//!
//! Source: docs/reference/ray.md §1.

use std::str::FromStr;

use crate::settings::RayGates;

/// Why feature gates are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RayGateError {
    /// Not of the form `Name=true`.
    #[error("feature gate {0:?} is not of the form Name=true or Name=false")]
    Malformed(String),
    /// Unknown name.
    #[error("unknown feature gate {0:?}")]
    Unknown(String),
    /// The official operator has it.
    #[error("feature gate {0} cannot be enabled: it is not built yet")]
    NotBuilt(&'static str),
}

type GateField = fn(&mut RayGates) -> &mut bool;

/// Gates that may be set.
const BUILT: &[(&str, GateField)] = &[
    ("RayClusterStatusConditions", |gates| &mut gates.status_conditions),
    ("RayJobDeletionPolicy", |gates| &mut gates.deletion_policy),
    ("RayMultiHostIndexing", |gates| &mut gates.multi_host_indexing),
    ("RayServiceIncrementalUpgrade", |gates| &mut gates.incremental_upgrade),
    ("RayCronJob", |gates| &mut gates.cron_jobs),
    ("SidecarSubmitterRestart", |gates| &mut gates.sidecar_submitter_restart),
    ("RayClusterNetworkPolicy", |gates| &mut gates.network_policy),
    ("GCSFaultToleranceEmbeddedStorage", |gates| &mut gates.embedded_storage),
];

/// Gates that may be set to their default only.
const NOT_BUILT: &[&str] = &["RayClusterMTLS", "RayClusterHistoryServer", "KubernetesWAS"];

impl FromStr for RayGates {
    type Err = RayGateError;

    /// Reads a list of settings. The last of several of a gate counts, and gates that are not named have their defaults.
    fn from_str(text: &str) -> Result<Self, RayGateError> {
        let mut gates = Self::default();
        // An administrator may end the list with a comma.
        for setting in text.split(',').map(str::trim).filter(|setting| !setting.is_empty()) {
            gates.set(setting)?;
        }
        Ok(gates)
    }
}

impl RayGates {
    fn set(&mut self, setting: &str) -> Result<(), RayGateError> {
        let malformed = || RayGateError::Malformed(setting.to_owned());
        let (name, value) = setting.split_once('=').ok_or_else(malformed)?;
        let name = name.trim();
        let is_on = value.trim().parse::<bool>().map_err(|_| malformed())?;
        if let Some((_, field)) = BUILT.iter().find(|(known, _)| *known == name) {
            *field(self) = is_on;
            return Ok(());
        }
        match NOT_BUILT.iter().find(|known| **known == name) {
            Some(known) if is_on => Err(RayGateError::NotBuilt(known)),
            Some(_) => Ok(()),
            None => Err(RayGateError::Unknown(name.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_set_by_their_names() {
        let gates: RayGates =
            "RayClusterNetworkPolicy=true, RayCronJob=false,RayClusterMTLS=false,"
                .parse()
                .expect("gates");
        let expected = RayGates { network_policy: true, cron_jobs: false, ..RayGates::default() };
        assert_eq!(gates, expected);
        assert_eq!("".parse(), Ok(RayGates::default()));
        for (name, field) in BUILT {
            let default = *field(&mut RayGates::default());
            let changed: RayGates = format!("{name}={}", !default).parse().expect("a gate");
            assert_ne!(changed, RayGates::default(), "{name}");
        }
    }

    #[test]
    fn a_gate_that_would_have_no_effect_is_refused() {
        for (text, expected) in [
            (
                "RayCronJob",
                "feature gate \"RayCronJob\" is not of the form Name=true or Name=false",
            ),
            (
                "RayCronJob=1",
                "feature gate \"RayCronJob=1\" is not of the form Name=true or Name=false",
            ),
            ("RayCronJobs=true", "unknown feature gate \"RayCronJobs\""),
            (
                "RayClusterMTLS=true",
                "feature gate RayClusterMTLS cannot be enabled: it is not built yet",
            ),
            (
                "KubernetesWAS=true",
                "feature gate KubernetesWAS cannot be enabled: it is not built yet",
            ),
        ] {
            let error = text.parse::<RayGates>().expect_err("refused");
            assert_eq!(error.to_string(), expected);
        }
    }
}
