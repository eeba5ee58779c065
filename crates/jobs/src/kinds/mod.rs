//! The kinds of jobs that a process handles: the built-in ones, and those of the configuration.

use std::sync::LazyLock;

use appwrapper::AllowedComponents;

use crate::{Kind, integrations::ManagedKinds, job, kind::KindError, leader_worker_set, pods};

/// Built-in kinds that are declared: each is a file of data.
const DECLARED: &[&str] = &[
    include_str!("jobset.yaml"),
    include_str!("pytorchjob.yaml"),
    include_str!("tfjob.yaml"),
    include_str!("xgboostjob.yaml"),
    include_str!("paddlejob.yaml"),
    include_str!("jaxjob.yaml"),
    include_str!("mpijob.yaml"),
    include_str!("raycluster.yaml"),
    include_str!("rayjob.yaml"),
    include_str!("rayservice.yaml"),
    include_str!("appwrapper.yaml"),
    include_str!("trainjob.yaml"),
    include_str!("sparkapplication.yaml"),
    include_str!("deployment.yaml"),
    include_str!("statefulset.yaml"),
];

static KINDS: LazyLock<Kinds> = LazyLock::new(|| {
    // A definition that does not parse is left out here; the test of this file refuses it.
    let declared = DECLARED.iter().filter_map(|text| Kind::parse(text).ok());
    Kinds(
        [job::kind(), pods::kind(), leader_worker_set::kind()]
            .map(Kind::clone)
            .into_iter()
            .chain(declared)
            .collect(),
    )
});

/// Kinds of jobs, in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds(Vec<Kind>);

impl Kinds {
    /// The built-in kinds.
    #[must_use]
    pub fn built_in() -> &'static Self {
        &KINDS
    }

    /// Kinds from definitions.
    #[must_use]
    pub fn new(kinds: impl IntoIterator<Item = Kind>) -> Self {
        Self(kinds.into_iter().collect())
    }

    /// Reads definitions of further kinds: YAML documents.
    ///
    /// # Errors
    /// If a document is no definition, contradicts itself, or defines a kind again.
    pub fn declared(text: &str) -> Result<Self, KindError> {
        let mut kinds: Vec<Kind> = Vec::new();
        let lines: Vec<&str> = text.lines().collect();
        for document in lines.split(|line| line.trim_end() == "---") {
            // A file may begin with comments, or end with a separator.
            if document.iter().all(|line| line.is_empty() || line.starts_with('#')) {
                continue;
            }
            let kind = Kind::parse(&document.join("\n"))?;
            if kinds.iter().chain(Self::built_in()).any(|known| *known == kind) {
                return Err(KindError::Twice(kind.gvk()));
            }
            kinds.push(kind);
        }
        Ok(Self(kinds))
    }

    /// Those with an enabled integration.
    #[must_use]
    pub fn enabled(&self, managed: &ManagedKinds) -> Self {
        let kinds = self.0.iter().filter(|kind| managed.is_enabled(kind.framework()));
        Self(kinds.cloned().collect())
    }

    /// Those with Workloads: not those with pods that are jobs themselves.
    #[must_use]
    pub fn with_workloads(&self) -> Self {
        Self(self.0.iter().filter(|kind| kind.has_workloads()).cloned().collect())
    }

    /// What an AppWrapper may contain where the agent runs these. A component without a Workload of its own is one of them: the
    /// AppWrapper has the Workload.
    #[must_use]
    pub fn as_components(&self) -> AllowedComponents {
        let names = |kind: &Kind| (kind.group().to_owned(), kind.gvk().kind);
        AllowedComponents::with_jobs(self.0.iter().map(names).collect())
    }

    /// With these as well.
    #[must_use]
    pub fn with(&self, others: &Self) -> Self {
        Self(self.0.iter().chain(&others.0).cloned().collect())
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Kind> {
        self.0.iter()
    }

    /// The kind of an object or of an owner reference.
    #[must_use]
    pub fn find(&self, api_version: &str, kind: &str) -> Option<&Kind> {
        self.0.iter().find(|one| one.is_kind_of(api_version, kind))
    }

    /// The kind with this name in the configuration.
    #[must_use]
    pub fn of_framework(&self, framework: &str) -> Option<&Kind> {
        self.0.iter().find(|one| one.framework() == framework)
    }
}

impl<'a> IntoIterator for &'a Kinds {
    type Item = &'a Kind;
    type IntoIter = std::slice::Iter<'a, Kind>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::integrations::INTEGRATIONS;

    #[test]
    fn further_kinds_are_read_from_documents() {
        let widget = |name: &str| {
            format!(
                "# {name}\nframework: {name}\ngroup: example.com\nversion: v1\nkind: {name}\nplural: {name}s\n\
                 suspend: /spec/suspend\n\
                 fields: {{ podSets: [{{ name: {{ fixed: main }}, template: /spec/template }}] }}\n"
            )
        };
        let text = format!("# none\n---\n{}---\n{}", widget("A"), widget("B"));
        let kinds = Kinds::declared(&text).expect("kinds");
        let names: Vec<&str> = kinds.iter().map(Kind::name).collect();
        assert_eq!(names, ["A", "B"]);
        assert_eq!(Kinds::declared(""), Ok(Kinds::default()));
        let twice = format!("{}---\n{}", widget("A"), widget("A"));
        assert!(matches!(Kinds::declared(&twice), Err(KindError::Twice(_))));
        let job = widget("A")
            .replace("kind: A", "kind: JobSet")
            .replace("example.com", "jobset.x-k8s.io");
        let job = job.replace("version: v1", "version: v1alpha2");
        assert!(matches!(Kinds::declared(&job), Err(KindError::Twice(_))), "it is built in");
    }

    #[test]
    fn every_built_in_kind_is_an_integration_of_kueue() {
        for text in DECLARED {
            Kind::parse(text).expect("a definition");
        }
        assert_eq!(Kinds::built_in().iter().count(), DECLARED.len() + 3);
        for kind in Kinds::built_in() {
            let integration = INTEGRATIONS.iter().find(|one| one.name == kind.framework());
            let integration = integration.expect("an integration of this name");
            let expected = (integration.group, integration.version, integration.kind);
            assert_eq!((kind.group(), kind.version(), kind.name()), expected);
            assert_eq!(kind.plural(), integration.plural);
            assert_eq!(kind.webhook_path("mutate"), integration.webhook_path("mutate"));
        }
    }
}
