//! Whether a check is usable: the condition `Active` of its AdmissionCheck. A ClusterQueue with an inactive check admits nothing.

use crds::{
    names::{KUEUE_GROUP, reasons},
    v1beta2::AdmissionCheckParametersReference,
};

/// The kind of the parameters.
const CONFIG_KIND: &str = "ProvisioningRequestConfig";

/// Why ProvisioningRequests cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// The cluster does not serve this resource.
    NotServed(&'static str),
    /// The manager may not read this resource.
    Forbidden(&'static str),
}

/// Status, reason and message of the condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckActivity {
    /// Whether the check is usable.
    pub active: bool,
    /// The reason.
    pub reason: &'static str,
    /// The message.
    pub message: String,
}

/// The name of the config that the parameters of a check name.
///
/// # Errors
/// With the message of the condition, if they name none.
pub fn config_name(parameters: Option<&AdmissionCheckParametersReference>) -> Result<&str, String> {
    parameters_name(parameters, CONFIG_KIND)
}

/// The name of the object of Kueue's group and of this kind that the parameters of a check name.
///
/// # Errors
/// With the reason, as upstream words it, if they name none.
pub fn parameters_name<'a>(
    parameters: Option<&'a AdmissionCheckParametersReference>,
    kind: &str,
) -> Result<&'a str, String> {
    let Some(reference) = parameters else {
        return Err("missing parameters reference".to_owned());
    };
    let expected = [
        ("group", reference.api_group.as_str(), KUEUE_GROUP),
        ("kind", reference.kind.as_str(), kind),
    ];
    match expected.into_iter().find(|(_, known, expected)| known != expected) {
        Some((what, known, expected)) => {
            Err(format!("wrong {what} {known:?}, expecting {expected:?}: bad parameters reference"))
        }
        None => Ok(&reference.name),
    }
}

/// The condition of a check with these parameters.
#[must_use]
pub fn activity(
    parameters: Option<&AdmissionCheckParametersReference>,
    is_config: impl Fn(&str) -> bool,
    obstacle: Option<Obstacle>,
) -> CheckActivity {
    let found = config_name(parameters).and_then(|name| {
        if is_config(name) {
            Ok(())
        } else {
            Err(format!("ProvisioningRequestConfig.kueue.x-k8s.io {name:?} not found"))
        }
    });
    let (reason, message) = match (found, obstacle) {
        (Err(message), _) => (reasons::BAD_PARAMETERS_REF, message),
        (Ok(()), Some(Obstacle::NotServed(resource))) => {
            let message = format!("the cluster does not serve {resource}");
            (reasons::PROVISIONING_REQUESTS_UNAVAILABLE, message)
        }
        (Ok(()), Some(Obstacle::Forbidden(resource))) => {
            let message = format!("the manager has no right to list and watch {resource}");
            (reasons::PROVISIONING_REQUESTS_UNAVAILABLE, message)
        }
        (Ok(()), None) => {
            let message = "The admission check is active".to_owned();
            return CheckActivity { active: true, reason: reasons::ACTIVE, message };
        }
    };
    CheckActivity { active: false, reason, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: &str, name: &str, obstacle: Option<Obstacle>) -> (bool, &'static str, String) {
        let parameters = AdmissionCheckParametersReference {
            api_group: "kueue.x-k8s.io".to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
        };
        let CheckActivity { active, reason, message } =
            activity(Some(&parameters), |name| name == "known", obstacle);
        (active, reason, message)
    }

    #[test]
    fn a_check_is_active_with_its_config_and_a_cluster_that_serves_requests() {
        let kind = "ProvisioningRequestConfig";
        assert!(of(kind, "known", None).0);
        let (active, reason, message) = of(kind, "unknown", None);
        assert!(!active && reason == "BadParametersRef", "{message}");
        assert_eq!(message, "ProvisioningRequestConfig.kueue.x-k8s.io \"unknown\" not found");
        assert_eq!(
            of("MultiKueueConfig", "known", None).2,
            "wrong kind \"MultiKueueConfig\", expecting \"ProvisioningRequestConfig\": bad parameters reference"
        );
        assert_eq!(activity(None, |_| true, None).message, "missing parameters reference");
        let of_group = AdmissionCheckParametersReference {
            api_group: "bad.group".to_owned(),
            kind: kind.to_owned(),
            name: "known".to_owned(),
        };
        assert_eq!(
            activity(Some(&of_group), |_| true, None).message,
            "wrong group \"bad.group\", expecting \"kueue.x-k8s.io\": bad parameters reference"
        );
        for obstacle in [Obstacle::NotServed("requests"), Obstacle::Forbidden("requests")] {
            let (active, reason, _) = of(kind, "known", Some(obstacle));
            assert!(!active && reason == "ProvisioningRequestsUnavailable");
        }
    }
}
