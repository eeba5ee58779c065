//! A kind of job as a value: its name in the API, where its switch stands, and what makes up its jobs.
//!
//! Everything that handles jobs is written against this value: webhooks, watches, Workloads, copies on workers, roles and the
//! documentation. A kind is one file of data in `kinds/`; code stands beside it only where a kind differs in meaning.

use std::{cmp::Ordering, fmt, sync::Arc};

use crds::{decode::from_value, yaml::decode_yaml};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    JobObject,
    declared::{FieldsError, JobFields, MarkedPods},
    integrations::webhook_path,
    lookups::LookupRule,
    pointer::Pointer,
};

/// Group, version and kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct Gvk {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
}

/// A kind of job. Cheap to clone; two are equal if group, version and kind are.
#[derive(Clone)]
pub struct Kind(Arc<KindDefinition>);

/// How the pods of a set name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetMembers<'a> {
    /// In this label.
    Named(&'a str),
    /// As their controller. Each of them has this label.
    Controlled(&'a str),
}

/// The data of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KindDefinition {
    /// Name in the configuration (`integrations.frameworks`).
    pub framework: String,
    /// API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural resource name.
    pub plural: String,
    /// Whether jobs may name a prebuilt Workload.
    #[serde(default)]
    pub prebuilt: bool,
    /// Whether jobs may be elastic, by workload slices.
    #[serde(default)]
    pub elastic: bool,
    /// The switch: a job does not run while this field is true. Absent for pods, which a scheduling gate holds.
    #[serde(default)]
    pub suspend: Option<Pointer>,
    /// The field with the name of the controller that runs the job, if the kind has one.
    #[serde(default)]
    pub managed_by: Option<ManagedBy>,
    /// Label selector of the jobs that are watched; all if absent.
    #[serde(skip)]
    pub selector: Option<String>,
    /// Label of pods with the name of their set, if code makes sets of the jobs of the kind.
    #[serde(skip)]
    pub members: Option<&'static str>,
    /// Other objects that the pod sets need.
    #[serde(default)]
    pub lookups: Vec<LookupRule>,
    /// The pods, if webhooks mark them and the object has no switch.
    #[serde(default)]
    pub pods: Option<MarkedPods>,
    /// Everything else about its jobs; absent if code does it.
    #[serde(default)]
    pub fields: Option<JobFields>,
}

/// The field with the name of the controller that runs a job.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ManagedBy {
    /// The field.
    pub at: Pointer,
    /// The kind's own controller, which runs a job without a value.
    pub controller: String,
}

/// Why a definition is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KindError {
    /// The text is no definition.
    #[error("read the definition of a kind of job: {0}")]
    Unreadable(String),
    /// The switch must be one field.
    #[error("define {gvk}: suspend: {pointer} reaches more than one field, or none")]
    Switch {
        /// The kind.
        gvk: Gvk,
        /// The pointer.
        pointer: Pointer,
    },
    /// A declared kind has a switch.
    #[error("define {0}: suspend is missing")]
    NoSwitch(Gvk),
    /// Neither fields nor code say what its jobs are.
    #[error("define {0}: fields are missing")]
    NoFields(Gvk),
    /// The kind is defined already.
    #[error("define {0}: it is defined already")]
    Twice(Gvk),
    /// A kind with marked pods has nothing else to declare.
    #[error(
        "define {0}: pods: it excludes suspend, managedBy, lookups and fields, and each pointer reaches one field"
    )]
    Pods(Gvk),
    /// A name of a looked-up object stands in one field, and each rule has a name of its own.
    #[error(
        "define {gvk}: lookups: {rule}: its name is used twice, or `at` reaches more than one field"
    )]
    Lookup {
        /// The kind.
        gvk: Gvk,
        /// The name of the rule.
        rule: String,
    },
    /// The fields contradict each other.
    #[error("define {gvk}: {error}")]
    Fields {
        /// The kind.
        gvk: Gvk,
        /// The contradiction.
        error: FieldsError,
    },
}

impl Gvk {
    /// Group and version in the form of an object's `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> String {
        Self::api_version_of(&self.group, &self.version)
    }

    /// Group and version in the form of an object's `apiVersion`.
    #[must_use]
    pub fn api_version_of(group: &str, version: &str) -> String {
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
    }

    /// Parses `apiVersion` and `kind` of an object or of an owner reference.
    #[must_use]
    pub fn of(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }
}

/// As Go prints it: `batch/v1, Kind=Job`, and `/v1, Kind=Pod` of the core group.
impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

impl Kind {
    /// Reads a definition in YAML or JSON.
    ///
    /// # Errors
    /// If the text is no definition, or contradicts itself.
    pub fn parse(text: &str) -> Result<Self, KindError> {
        // YAML is decoded into a tree only: the decoder of the type is that of JSON.
        let tree: Value = decode_yaml(text).map_err(KindError::Unreadable)?;
        let definition = from_value::<KindDefinition>(&tree)
            .map_err(|error| KindError::Unreadable(error.to_string()))?;
        Self::new(definition)
    }

    /// Checks a definition.
    ///
    /// # Errors
    /// If it contradicts itself.
    pub fn new(definition: KindDefinition) -> Result<Self, KindError> {
        let gvk = definition.gvk();
        if let Some(pods) = &definition.pods {
            let alone = pods.is_valid() && definition.has_only_pods();
            return alone.then(|| Self(Arc::new(definition))).ok_or(KindError::Pods(gvk));
        }
        let Some(pointer) = &definition.suspend else {
            return Err(KindError::NoSwitch(gvk));
        };
        if !pointer.is_single() || pointer.parents().is_empty() {
            return Err(KindError::Switch { gvk, pointer: pointer.clone() });
        }
        let names: Vec<&str> = definition.lookups.iter().map(|rule| rule.name.as_str()).collect();
        for (index, rule) in definition.lookups.iter().enumerate() {
            if names[..index].contains(&&*rule.name) || !rule.at.is_single() {
                return Err(KindError::Lookup { gvk, rule: rule.name.clone() });
            }
        }
        match &definition.fields {
            Some(fields) => {
                fields.check(&names).map_err(|error| KindError::Fields { gvk, error })?;
            }
            None => return Err(KindError::NoFields(gvk)),
        }
        Ok(Self(Arc::new(definition)))
    }

    /// A kind of jobs that code makes up; the code knows the definition.
    pub(crate) fn of_code(definition: KindDefinition) -> Self {
        Self(Arc::new(definition))
    }

    /// Decodes a job of this kind.
    ///
    /// # Errors
    /// If the object does not decode.
    pub fn decode(&self, object: Value) -> Result<JobObject, String> {
        JobObject::decode(self, object)
    }

    /// Decodes the text of a job of this kind.
    ///
    /// # Errors
    /// If the text is no JSON, or as [`decode`](Self::decode).
    pub fn decode_text(&self, text: &str) -> Result<JobObject, String> {
        JobObject::decode_text(self, text)
    }

    /// Name in the configuration.
    #[must_use]
    pub fn framework(&self) -> &str {
        &self.0.framework
    }

    /// Group, version and kind.
    #[must_use]
    pub fn gvk(&self) -> Gvk {
        self.0.gvk()
    }

    /// API group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.0.group
    }

    /// API version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// Group and version in the form of an object's `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> String {
        self.gvk().api_version()
    }

    /// The name of the kind, `Job`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.kind
    }

    /// Kind and group in lower case, `widget.example.com`: names of objects about a kind.
    #[must_use]
    pub fn qualified_name(&self) -> String {
        let (kind, group) = (self.0.kind.to_ascii_lowercase(), &self.0.group);
        if group.is_empty() { kind } else { format!("{kind}.{group}") }
    }

    /// Plural resource name.
    #[must_use]
    pub fn plural(&self) -> &str {
        &self.0.plural
    }

    /// Whether jobs may name a prebuilt Workload.
    #[must_use]
    pub fn supports_prebuilt(&self) -> bool {
        self.0.prebuilt
    }

    /// Whether jobs may be elastic.
    #[must_use]
    pub fn supports_elastic(&self) -> bool {
        self.0.elastic
    }

    /// The switch; `None` if a scheduling gate holds its jobs or their pods.
    #[must_use]
    pub fn suspend(&self) -> Option<&Pointer> {
        self.0.suspend.as_ref()
    }

    /// Whether a start has a write before the one that unsuspends the job.
    #[must_use]
    pub fn prepares_starts(&self) -> bool {
        self.fields().is_some_and(|fields| fields.training.is_some())
    }

    /// Label selector of the jobs that are watched; `None` for all.
    #[must_use]
    pub fn selector(&self) -> Option<&str> {
        self.0.selector.as_deref()
    }

    /// How pods name their set; `None` if jobs of the kind are no sets.
    #[must_use]
    pub fn members(&self) -> Option<SetMembers<'_>> {
        let group = self.0.pods.as_ref().and_then(|pods| pods.group.as_ref());
        let controlled = group.map(|group| SetMembers::Controlled(&group.label));
        self.0.members.map(SetMembers::Named).or(controlled)
    }

    /// Whether its jobs are mirrored and nothing else (`crate::dispatch::mirrored`): nothing is known of how they start and end.
    #[must_use]
    pub fn is_mirrored(&self) -> bool {
        self.0.is_mirrored()
    }

    /// The field with the name of the controller.
    #[must_use]
    pub fn managed_by(&self) -> Option<&ManagedBy> {
        self.0.managed_by.as_ref()
    }

    /// Other objects that the pod sets of its jobs need.
    #[must_use]
    pub fn lookups(&self) -> &[LookupRule] {
        &self.0.lookups
    }

    /// The pods, if webhooks mark them.
    #[must_use]
    pub fn pods(&self) -> Option<&MarkedPods> {
        self.0.pods.as_ref()
    }

    /// Whether objects of the kind have Workloads: not if their pods are jobs, one by one.
    #[must_use]
    pub fn has_workloads(&self) -> bool {
        self.0.pods.as_ref().is_none_or(|pods| pods.group.is_some())
    }

    /// What the kind declares about its jobs; `None` if code does it.
    #[must_use]
    pub fn fields(&self) -> Option<&JobFields> {
        self.0.fields.as_ref()
    }

    /// Whether an owner reference or an object with this `apiVersion` and `kind` is of this kind. Versions of one group are one
    /// kind: the API server converts between them.
    #[must_use]
    pub fn is_kind_of(&self, api_version: &str, kind: &str) -> bool {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        kind == self.0.kind && group == self.0.group
    }

    /// Path of a webhook; `verb` is `mutate` or `validate`.
    #[must_use]
    pub fn webhook_path(&self, verb: &str) -> String {
        webhook_path(verb, &self.0.group, &self.0.version, &self.0.kind)
    }

    fn identity(&self) -> (&str, &str, &str) {
        (&self.0.group, &self.0.kind, &self.0.version)
    }
}

impl<'a> SetMembers<'a> {
    /// The label that pods of sets have.
    #[must_use]
    pub fn label(self) -> &'a str {
        let (Self::Named(label) | Self::Controlled(label)) = self;
        label
    }
}

impl KindDefinition {
    fn is_mirrored(&self) -> bool {
        self.managed_by.is_some() && self.suspend.is_none() && self.fields.is_none()
    }

    fn gvk(&self) -> Gvk {
        Gvk { group: self.group.clone(), version: self.version.clone(), kind: self.kind.clone() }
    }

    fn has_only_pods(&self) -> bool {
        self.suspend.is_none()
            && self.managed_by.is_none()
            && self.lookups.is_empty()
            && self.fields.is_none()
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Kind {}

impl PartialOrd for Kind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Kind {
    fn cmp(&self, other: &Self) -> Ordering {
        // Nearly all comparisons are of one kind with itself.
        if Arc::ptr_eq(&self.0, &other.0) {
            return Ordering::Equal;
        }
        self.identity().cmp(&other.identity())
    }
}

/// The name, which stands for the definition in logs.
impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// `Job.v1.batch`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KindDefinition { group, version, kind, .. } = &*self.0;
        write!(f, "{kind}.{version}.{group}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDGET: &str = "
framework: example.com/widget
group: example.com
version: v1
kind: Widget
plural: widgets
suspend: /spec/run/suspend
fields:
  podSets:
  - { name: { fixed: main }, template: /spec/template }
";

    #[test]
    fn a_definition_is_read_from_yaml() {
        let widget = Kind::parse(WIDGET).expect("a kind");
        assert_eq!(widget.to_string(), "Widget.v1.example.com");
        assert_eq!(widget.gvk().to_string(), "example.com/v1, Kind=Widget");
        assert_eq!(Gvk::of("v1", "Pod").to_string(), "/v1, Kind=Pod");
        assert_eq!(widget.webhook_path("mutate"), "/mutate-example-com-v1-widget");
        assert!(widget.is_kind_of("example.com/v2", "Widget"));
        assert!(!widget.is_kind_of("example.org/v1", "Widget"));
    }

    #[test]
    fn a_definition_that_contradicts_itself_is_refused() {
        for (from, to, part) in [
            ("/spec/run/suspend", "/suspend", "suspend: /suspend"),
            ("/spec/run/suspend", "/spec/*/suspend", "more than one field"),
            ("/spec/run/suspend", "spec", "does not begin with"),
            ("template: /spec/template", "template: /spec/*", "podSets.template"),
            (
                "  - {",
                "  - { name: { fixed: main }, template: /spec/other }\n  - {",
                "two pod sets",
            ),
            ("plural: widgets", "plurals: widgets", "unknown field"),
        ] {
            let text = WIDGET.replace(from, to);
            let error = Kind::parse(&text).expect_err(to).to_string();
            assert!(error.contains(part), "{to}: {error}");
        }
        let pods = "pods: { template: /spec/template, ready: /status/ready }\n";
        let both = Kind::parse(&format!("{WIDGET}{pods}"));
        assert!(matches!(both, Err(KindError::Pods(_))));
        let without = WIDGET.split("fields:").next().expect("a head");
        assert!(matches!(Kind::parse(without), Err(KindError::NoFields(_))));
        assert!(Kind::parse(&format!("{without}fields: {{ podSets: [] }}")).is_err());
    }
}
