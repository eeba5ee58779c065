//! The kinds of objects that components may have.
//!
//! A component is of a kind of jobs that its operator was set up for, or one of the few that jobs need and that grant nothing.
//! The rights of the operator go further than those of the submitter; `config/appwrapper-rights` compares these. The official
//! operator makes objects of every kind that it has rights for.

/// Kinds without pods that components may have.
const PLAIN_COMPONENTS: &[(&str, &str)] = &[("", "PersistentVolumeClaim"), ("", "Service")];

/// The kinds that components of an AppWrapper may have.
#[derive(Clone, Debug, Default)]
pub struct AllowedComponents {
    /// Groups and kinds of jobs.
    jobs: Vec<(String, String)>,
}

impl AllowedComponents {
    /// Those of an operator that makes jobs of these groups and kinds.
    #[must_use]
    pub fn with_jobs(jobs: Vec<(String, String)>) -> Self {
        Self { jobs }
    }

    /// Why a component of this kind is not made; `None` if it is.
    #[must_use]
    pub fn refusal(&self, api_version: &str, kind: &str) -> Option<String> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let is_allowed = PLAIN_COMPONENTS.contains(&(group, kind)) || self.is_job(group, kind);
        (!is_allowed).then(|| format!("this agent makes no objects of {api_version} {kind}"))
    }

    /// Whether the objects of a kind are jobs.
    fn is_job(&self, group: &str, kind: &str) -> bool {
        self.jobs.iter().any(|(one, other)| one == group && other == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_jobs_of_the_agent_or_grant_nothing() {
        let allowed = |group: &str, kind: &str| (group.to_owned(), kind.to_owned());
        let jobs = vec![allowed("batch", "Job"), allowed("ray.io", "RayJob")];
        let components = AllowedComponents::with_jobs(jobs);
        for (api_version, kind) in [
            ("batch/v1", "Job"),
            ("ray.io/v1", "RayJob"),
            ("v1", "Service"),
            ("v1", "PersistentVolumeClaim"),
        ] {
            assert_eq!(components.refusal(api_version, kind), None, "{kind}");
        }
        let rbac = "rbac.authorization.k8s.io/v1";
        for (api_version, kind) in [
            ("v1", "Pod"),
            ("v1", "Secret"),
            ("v1", "ServiceAccount"),
            ("v1", "Namespace"),
            ("ray.io/v1", "RayCluster"),
            ("networking.k8s.io/v1", "NetworkPolicy"),
            ("networking.k8s.io/v1", "Ingress"),
            (rbac, "Role"),
            (rbac, "RoleBinding"),
            (rbac, "ClusterRole"),
            ("example.com/v1", "Job"),
        ] {
            let refusal = components.refusal(api_version, kind).unwrap_or_default();
            assert!(refusal.ends_with(&format!("{api_version} {kind}")), "{kind}");
        }
    }
}
