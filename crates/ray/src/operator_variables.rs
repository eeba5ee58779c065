//! The environment variables of the official operator.
//!
//! Source: docs/reference/ray.md §1. The official operator takes a value that it cannot read for the default; here it stops the start.

use std::time::Duration;

use crds::validation::labels::subdomain_problems;

use crate::settings::OperatorSettings;

/// Why a variable is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RayVariableError {
    /// A switch of another form.
    #[error("{name}={value}: neither true nor false")]
    NoSwitch {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// A period of another form.
    #[error("{name}={value}: no number of seconds")]
    NoSeconds {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// A domain that cannot be one.
    #[error("{CLUSTER_DOMAIN}={value}: {why}")]
    NoDomain {
        /// The value.
        value: String,
        /// What is wrong.
        why: String,
    },
    /// The official operator has it.
    #[error("{name}={value} has no effect here: {why}")]
    NotBuilt {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What happens instead.
        why: &'static str,
    },
}

type BoolField = fn(&mut OperatorSettings) -> &mut bool;
type DurationField = fn(&mut OperatorSettings) -> &mut Duration;

/// The domain of Services.
const CLUSTER_DOMAIN: &str = "CLUSTER_DOMAIN";

const SWITCHES: &[(&str, BoolField)] = &[
    ("ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE", |it| &mut it.head_cluster_ip_service),
    ("ENABLE_DETERMINISTIC_HEAD_POD_NAME", |it| &mut it.deterministic_head_name),
    ("ENABLE_LOGIN_SHELL", |it| &mut it.login_shell),
    ("ENABLE_RANDOM_POD_DELETE", |it| &mut it.random_pod_delete),
    ("ENABLE_PROBES_INJECTION", |it| &mut it.inject_probes),
    ("ENABLE_INIT_CONTAINER_INJECTION", |it| &mut it.inject_init_container),
    ("ENABLE_GCS_FT_REDIS_CLEANUP", |it| &mut it.redis_cleanup),
    ("DELETE_RAYJOB_CR_AFTER_JOB_FINISHES", |it| &mut it.delete_finished_jobs),
    ("ENABLE_ZERO_DOWNTIME", |it| &mut it.zero_downtime),
];

const PERIODS: &[(&str, DurationField)] = &[
    ("RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS", |it| &mut it.job_end_grace),
    ("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", |it| &mut it.job_check_timeout),
];

impl OperatorSettings {
    /// These settings with the variables that are set. `value_of` has the value of a name; an empty one counts as unset.
    ///
    /// # Errors
    /// If a value is of another form, or would have no effect.
    pub fn with_variables(
        mut self,
        value_of: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, RayVariableError> {
        let set = |name: &str| value_of(name).filter(|value| !value.is_empty());
        for (name, field) in SWITCHES {
            if let Some(value) = set(name) {
                *field(&mut self) = switch(name, &value)?;
            }
        }
        for (name, field) in PERIODS {
            if let Some(value) = set(name) {
                *field(&mut self) = seconds(name, &value)?;
            }
        }
        if let Some(domain) = set(CLUSTER_DOMAIN) {
            self.cluster_domain = checked_domain(domain)?;
        }
        let ingress = "USE_INGRESS_ON_OPENSHIFT";
        if let Some(value) = set(ingress)
            && !switch(ingress, &value)?
        {
            let why = "an Ingress is made on OpenShift, too";
            return Err(RayVariableError::NotBuilt { name: ingress, value, why });
        }
        Ok(self)
    }
}

fn switch(name: &'static str, value: &str) -> Result<bool, RayVariableError> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(RayVariableError::NoSwitch { name, value: value.to_owned() }),
    }
}

fn seconds(name: &'static str, value: &str) -> Result<Duration, RayVariableError> {
    match value.parse::<u32>() {
        Ok(seconds) => Ok(Duration::from_secs(seconds.into())),
        Err(_) => Err(RayVariableError::NoSeconds { name, value: value.to_owned() }),
    }
}

fn checked_domain(value: String) -> Result<String, RayVariableError> {
    match subdomain_problems(&value).into_iter().next() {
        None => Ok(value),
        Some(why) => Err(RayVariableError::NoDomain { value, why }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Result<OperatorSettings, RayVariableError> {
        let value_of = |asked: &str| (asked == name).then(|| value.to_owned());
        OperatorSettings::default().with_variables(value_of)
    }

    #[test]
    fn each_variable_has_an_effect() {
        for (name, field) in SWITCHES {
            for on in [true, false] {
                let text = if on { "True" } else { "false" };
                let mut settings = read(name, text).expect("a switch");
                assert_eq!(*field(&mut settings), on, "{name}");
            }
        }
        for (name, field) in PERIODS {
            let mut settings = read(name, "12").expect("seconds");
            assert_eq!(*field(&mut settings), Duration::from_secs(12), "{name}");
        }
        let settings = read(CLUSTER_DOMAIN, "corp.example").expect("a domain");
        assert_eq!(settings.cluster_domain, "corp.example");
        assert!(read("USE_INGRESS_ON_OPENSHIFT", "true").is_ok());
    }

    #[test]
    fn an_empty_variable_is_unset() {
        for name in ["ENABLE_LOGIN_SHELL", PERIODS[0].0, CLUSTER_DOMAIN] {
            let settings = read(name, "").expect("defaults");
            assert_eq!(format!("{settings:?}"), format!("{:?}", OperatorSettings::default()));
        }
    }

    #[test]
    fn a_value_that_cannot_be_read_is_refused_by_the_name_of_its_variable() {
        for (name, value, expected) in [
            ("ENABLE_LOGIN_SHELL", "1", "ENABLE_LOGIN_SHELL=1: neither true nor false"),
            (
                "RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS",
                "5m",
                "RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS=5m: no number of seconds",
            ),
            (
                "USE_INGRESS_ON_OPENSHIFT",
                "false",
                "USE_INGRESS_ON_OPENSHIFT=false has no effect here: an Ingress is made on OpenShift, too",
            ),
        ] {
            let error = read(name, value).expect_err("refused").to_string();
            assert_eq!(error, expected);
        }
        let error = read(CLUSTER_DOMAIN, "Corp_1").expect_err("refused").to_string();
        assert!(error.starts_with("CLUSTER_DOMAIN=Corp_1: "), "{error}");
    }
}
