//! The kinds of jobs that a process handles, by its configuration.

use jobs::{
    Kinds,
    integrations::{INTEGRATIONS, ManagedKinds},
};

use crate::Configuration;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobKinds {
    /// Kinds with webhooks. Those with Workloads are also watched, suspended and started.
    pub handled: Kinds,
    /// Kinds with managed jobs: those and the external frameworks.
    pub managed: ManagedKinds,
    /// Enabled integrations that this version does not have. Their jobs run without quota.
    pub not_built: Vec<&'static str>,
}

impl JobKinds {
    /// The enabled integrations that are built in, and the kinds that the administrator declares.
    #[must_use]
    pub fn configured(file: &Configuration, declared: &Kinds) -> Self {
        let integrations = &file.integrations;
        let managed =
            ManagedKinds::new(&integrations.frameworks, &integrations.external_frameworks)
                .with(declared);
        let enabled =
            INTEGRATIONS.iter().map(|one| one.name).filter(|name| managed.is_enabled(name));
        let not_built = enabled.filter(|name| Kinds::built_in().of_framework(name).is_none());
        Self {
            not_built: not_built.collect(),
            // A declared kind needs no entry in `integrations`: its definition enables it.
            handled: Kinds::built_in().enabled(&managed).with(declared),
            managed,
        }
    }

    /// All of these kinds.
    #[must_use]
    pub fn all(kinds: &Kinds) -> Self {
        let managed = ManagedKinds::default().with(kinds);
        Self { handled: kinds.clone(), managed, not_built: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enabled_integrations_without_a_definition_are_named() {
        let mut file = Configuration::default();
        file.integrations.frameworks = vec!["deployment".to_owned()];
        let kinds = JobKinds::configured(&file, &Kinds::default());
        assert_eq!(kinds.not_built, [""; 0]);
        assert!(kinds.handled.of_framework("pod").is_some(), "a deployment enables pods");
        file.integrations.frameworks = INTEGRATIONS.iter().map(|one| one.name.to_owned()).collect();
        let all = JobKinds::configured(&file, &Kinds::default());
        let is_handled = |name: &str| all.handled.of_framework(name).is_some();
        assert!(
            INTEGRATIONS
                .iter()
                .all(|one| is_handled(one.name) != all.not_built.contains(&one.name))
        );
    }
}
