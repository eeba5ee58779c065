//! The kinds of jobs that a process handles, by its configuration.

use jobs::{
    Kind, Kinds,
    integrations::{INTEGRATIONS, ManagedKinds, OwnerKind},
    mirrored,
};

use crate::{
    Configuration,
    gates::{Gate, Gates},
};

/// Integrations with a feature gate.
const GATED: &[(&str, Gate)] =
    &[("sparkoperator.k8s.io/sparkapplication", Gate::SparkApplicationIntegration)];

/// The kinds of jobs that a process handles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobKinds {
    /// Kinds with webhooks. Those with Workloads are also watched, suspended and started.
    pub handled: Kinds,
    /// Kinds of jobs that are copied to workers and started by another program: `multiKueue.externalFrameworks`.
    pub mirrored: Kinds,
    /// Kinds with managed jobs: those and the external frameworks.
    pub managed: ManagedKinds,
    /// Enabled integrations whose feature gate is off. Their jobs run without quota.
    pub gated: Vec<&'static str>,
}

impl JobKinds {
    /// The enabled integrations whose feature gate is on, and the kinds that the administrator declares.
    #[must_use]
    pub fn configured(file: &Configuration, gates: &Gates, declared: &Kinds) -> Self {
        let integrations = &file.integrations;
        let off =
            |name: &str| GATED.iter().any(|(one, gate)| *one == name && !gates.enabled(*gate));
        let (gated, frameworks): (Vec<&String>, Vec<&String>) =
            integrations.frameworks.iter().partition(|name| off(name));
        let frameworks: Vec<String> = frameworks.into_iter().cloned().collect();
        let managed =
            ManagedKinds::new(&frameworks, &integrations.external_frameworks).with(declared);
        let names = INTEGRATIONS.iter().map(|one| one.name);
        // With the gate off upstream registers no adapter for them.
        let mirrors = gates.enabled(Gate::MultiKueueAdaptersForCustomJobs);
        let external = file.multi_kueue.external_frameworks.iter().filter(|_| mirrors);
        let mirrored = external.filter_map(|one| mirrored::kind(&one.name));
        // What is declared is known better.
        let mirrored =
            mirrored.filter(|kind| declared.find(&kind.api_version(), kind.name()).is_none());
        Self {
            gated: names.filter(|name| gated.iter().any(|one| *one == name)).collect(),
            mirrored: Kinds::new(mirrored),
            // A declared kind needs no entry in `integrations`: its definition enables it.
            handled: Kinds::built_in().enabled(&managed).with(declared),
            managed,
        }
    }

    /// All of these kinds.
    #[must_use]
    pub fn all(kinds: &Kinds) -> Self {
        let managed = ManagedKinds::default().with(kinds);
        Self { handled: kinds.clone(), mirrored: Kinds::default(), managed, gated: Vec::new() }
    }

    /// These kinds with the names of resources that `plural` knows. The configuration of external frameworks does not say them.
    #[must_use]
    pub fn with_resources(&self, plural: impl Fn(&Kind) -> Option<String>) -> Self {
        let named = |kind: &Kind| {
            let known = plural(kind).and_then(|plural| mirrored::with_plural(kind, &plural));
            known.unwrap_or_else(|| kind.clone())
        };
        let managed = self.managed.clone().with_plurals(|one| plural(&external_kind(one)?));
        Self { mirrored: Kinds::new(self.mirrored.iter().map(named)), managed, ..self.clone() }
    }

    /// The kinds with guessed names of resources: external frameworks.
    #[must_use]
    pub fn undiscovered(&self) -> Vec<Kind> {
        let managed = self.managed.undiscovered().filter_map(external_kind);
        let new = managed.filter(|kind| self.mirrored.iter().all(|one| one != kind));
        self.mirrored.iter().cloned().chain(new).collect()
    }

    /// Kinds of the jobs that are watched.
    #[must_use]
    pub fn observed(&self) -> Kinds {
        self.handled.with_workloads().with(&self.mirrored)
    }
}

fn external_kind(kind: &OwnerKind) -> Option<Kind> {
    mirrored::kind(&kind.framework())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn external_frameworks_are_observed_unless_they_are_declared() {
        let mut file = Configuration::without_file(None).expect("defaults");
        let name = "Recipe.v1.kitchen.example.com";
        let external = crate::multikueue::ExternalFramework { name: name.to_owned() };
        file.multi_kueue.external_frameworks = vec![external];
        let kinds = JobKinds::configured(&file, &Gates::default(), &Kinds::default());
        assert!(kinds.observed().of_framework(name).is_some());
        assert!(kinds.handled.of_framework(name).is_none(), "no webhook knows it");
        let off = Gates::parse("MultiKueueAdaptersForCustomJobs=false").expect("gates");
        let kinds = JobKinds::configured(&file, &off, &Kinds::default());
        assert_eq!(kinds.mirrored, Kinds::default(), "their gate is off");
        let declared = Kinds::new(mirrored::kind(name));
        let kinds = JobKinds::configured(&file, &Gates::default(), &declared);
        assert_eq!(kinds.mirrored, Kinds::default());
    }

    /// The integration marks the pods of Deployments; the copies are those of the external framework.
    #[test]
    fn a_deployment_that_is_mirrored_is_one_observed_kind() {
        let mut file = Configuration::without_file(None).expect("defaults");
        file.integrations.frameworks = vec!["deployment".to_owned()];
        let name = "Deployment.v1.apps".to_owned();
        file.multi_kueue.external_frameworks = vec![crate::multikueue::ExternalFramework { name }];
        let kinds = JobKinds::configured(&file, &Gates::default(), &Kinds::default());
        let names = |kinds: &Kinds| -> Vec<String> {
            let found = kinds.iter().filter(|kind| kind.name() == "Deployment");
            found.map(|kind| kind.framework().to_owned()).collect()
        };
        assert_eq!(names(&kinds.handled), ["deployment"]);
        assert_eq!(names(&kinds.observed()), ["Deployment.v1.apps"]);
    }

    #[test]
    fn a_resource_has_the_name_that_is_known_or_the_guessed_one() {
        let kinds =
            ["Dish", "Recipe"].map(|kind| mirrored::kind(&format!("{kind}.v1.example.com")));
        let mirrored = Kinds::new(kinds.into_iter().flatten());
        let kinds = JobKinds { mirrored, ..JobKinds::all(&Kinds::default()) };
        let known = |kind: &Kind| (kind.name() == "Dish").then(|| "dishes".to_owned());
        let kinds = kinds.with_resources(known);
        let plurals: Vec<&str> = kinds.mirrored.iter().map(Kind::plural).collect();
        assert_eq!(plurals, ["dishes", "recipes"]);
        assert!(kinds.observed().of_framework("Dish.v1.example.com").is_some());
    }

    #[test]
    fn the_resource_of_an_owner_has_the_name_that_is_known() {
        let mut file = Configuration::default();
        file.integrations.external_frameworks = vec!["Dish.v1.example.com".to_owned()];
        let kinds = JobKinds::configured(&file, &Gates::default(), &Kinds::default());
        let undiscovered = kinds.undiscovered();
        assert_eq!(undiscovered.iter().map(Kind::name).collect::<Vec<_>>(), ["Dish"]);
        let kinds = kinds.with_resources(|_| Some("servings".to_owned()));
        assert_eq!(kinds.undiscovered(), []);
    }

    #[test]
    fn enabled_integrations_whose_gate_is_off_are_named() {
        let mut file = Configuration::default();
        file.integrations.frameworks = vec!["deployment".to_owned()];
        let off = Gates::default();
        let kinds = JobKinds::configured(&file, &off, &Kinds::default());
        assert_eq!(kinds.gated, [""; 0]);
        assert!(kinds.handled.of_framework("pod").is_some(), "a deployment enables pods");
        file.integrations.frameworks = INTEGRATIONS.iter().map(|one| one.name.to_owned()).collect();
        let kinds = JobKinds::configured(&file, &off, &Kinds::default());
        assert_eq!(kinds.gated, ["sparkoperator.k8s.io/sparkapplication"]);
        assert_eq!(kinds.handled.iter().count(), INTEGRATIONS.len() - 1);
        let on = file.gates("SparkApplicationIntegration=true").expect("gates");
        let kinds = JobKinds::configured(&file, &on, &Kinds::default());
        assert_eq!((kinds.gated.len(), kinds.handled.iter().count()), (0, INTEGRATIONS.len()));
    }
}
