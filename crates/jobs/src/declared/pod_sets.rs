//! Pod sets of a declared kind: where templates and counts stand.

use crds::{pod::PodTemplate, v1beta2::PodSet};
use serde::Deserialize;
use serde_json::Value;

use super::{
    count::Count,
    declared_pod_set::{DeclaredPodSet, IndexLabels, WrittenReplicas, decode_template},
    fields::FieldsError,
};
use crate::{
    expected_type::{ExpectedType, WrongType},
    pointer::Pointer,
    start::pod_set_info::{PodSetInfo, StartError},
};

/// One pod set, or one for each element of a list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodSetRule {
    /// A list with a pod set per element. The other pointers start at the element.
    #[serde(default)]
    pub each: Option<Pointer>,
    /// An object that is there if the pod set is. The other pointers start at it.
    #[serde(default)]
    pub within: Option<Pointer>,
    /// A key of the map `within`. The pod set is there if the map has it, and the other pointers start at its value.
    #[serde(default)]
    pub entry: Option<String>,
    /// The map has no keys but entries of pod sets: one rule of the map says it for all. A job with another key has no Workload.
    #[serde(default)]
    pub no_other_keys: bool,
    /// Name of the pod set.
    pub name: PodSetName,
    /// The pod template. With `from` it stands in the other object.
    pub template: Pointer,
    /// The object with the pod template, if that is not the job.
    #[serde(default)]
    pub from: Option<TemplateSource>,
    /// Number of replicas; 1 by default.
    #[serde(default)]
    pub replicas: Count,
    /// The field with the number of replicas that other versions of Kueue count, if `replicas` bounds it.
    #[serde(default)]
    pub written: Option<Pointer>,
    /// Pods of one replica; 1 by default.
    #[serde(default)]
    pub pods_per_replica: Count,
    /// Labels of pods that hold their index.
    #[serde(default)]
    pub index_labels: IndexLabels,
}

/// Where a pod template stands that is not part of the job.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateSource {
    /// Name of the lookup rule of the object.
    pub lookup: String,
    /// The field of the job with a pod template that the operator adds to that of the object: labels, annotations, node
    /// selector, tolerations. A start writes it, a stop removes it.
    pub additions: Pointer,
}

/// The name of a pod set.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PodSetName {
    /// This name.
    Fixed(String),
    /// The text at a field.
    At(Pointer),
    /// The text at a field in lower case. A name of a pod set is a label of DNS, which may have no capital letters.
    Lowered(Pointer),
}

/// Why the pod sets of a rule cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PodSetsError {
    /// A template does not decode, or contradicts its additions.
    #[error("{0}")]
    Template(String),
    /// A list, an object or a number is something else.
    #[error("{0}: how many pods the job has is not known")]
    Type(#[from] WrongType),
    /// A map has keys that are no entries. An operator may run their pods nevertheless: that of Kubeflow does not heed capitals.
    #[error("{field} has unknown keys: {}; known are {}", .unknown.join(", "), .known.join(", "))]
    UnknownKeys {
        /// The map.
        field: String,
        /// Keys that are no entries.
        unknown: Vec<String>,
        /// Keys that are.
        known: Vec<String>,
    },
}

/// Checks maps that have no keys but entries of pod sets.
///
/// # Errors
/// If one has another key.
pub(super) fn check_keys(rules: &[PodSetRule], job: &Value) -> Result<(), PodSetsError> {
    for rule in rules.iter().filter(|rule| rule.no_other_keys) {
        let is_same = |one: &&PodSetRule| (&one.each, &one.within) == (&rule.each, &rule.within);
        let of_map = rules.iter().filter(is_same);
        let known: Vec<String> = of_map.filter_map(|one| one.entry.clone()).collect();
        for map in rule.maps(job) {
            let entries = map.get(job).and_then(Value::as_object).into_iter().flatten();
            let others = entries.filter(|(key, value)| !value.is_null() && !known.contains(key));
            let unknown: Vec<String> = others.map(|(key, _)| key.clone()).collect();
            if !unknown.is_empty() {
                return Err(PodSetsError::UnknownKeys { field: map.field_path(), unknown, known });
            }
        }
    }
    Ok(())
}

/// A part of a job with a pod set: an element of a list, or the job itself.
struct PodSetElement<'a> {
    value: &'a Value,
    /// Where it is in the job.
    at: Pointer,
}

/// The template of a pod set.
struct ReadTemplate {
    /// Where the template, or what is added to it, is in the job.
    at: Pointer,
    /// The template with the additions.
    whole: PodTemplate,
    /// The template without the additions, if it is that of another object.
    base: Option<PodTemplate>,
}

impl PodSetRule {
    pub(super) fn check(&self, lookups: &[&str]) -> Result<(), FieldsError> {
        let from = self.from.as_ref();
        if let Some(from) = from.filter(|from| !lookups.contains(&&*from.lookup)) {
            return Err(FieldsError::NoLookup(from.lookup.clone()));
        }
        if self.no_other_keys && (self.within.is_none() || self.entry.is_none()) {
            return Err(FieldsError::NoMap);
        }
        let at = match &self.name {
            PodSetName::Fixed(_) => None,
            PodSetName::At(at) | PodSetName::Lowered(at) => Some(at),
        };
        let fields = [
            ("podSets.each", self.each.as_ref()),
            ("podSets.within", self.within.as_ref()),
            ("podSets.name.at", at),
            ("podSets.template", Some(&self.template)),
            ("podSets.written", self.written.as_ref()),
            ("podSets.from.additions", from.map(|from| &from.additions)),
        ];
        let several = fields.into_iter().find_map(|(field, pointer)| {
            pointer.filter(|pointer| !pointer.is_single()).map(|pointer| (field, pointer.clone()))
        });
        match several {
            Some((field, pointer)) => Err(FieldsError::Several { field, pointer }),
            None => Ok(()),
        }
    }

    /// The name, unless every element of a list has its own.
    pub(super) fn fixed_name(&self) -> Option<&str> {
        match &self.name {
            PodSetName::Fixed(name) => Some(name),
            PodSetName::At(_) | PodSetName::Lowered(_) => None,
        }
    }

    /// The first list, or object around a template, that is something else.
    fn wrong_place(&self, job: &Value) -> Option<WrongType> {
        let list = self.each.as_ref();
        let list = list.and_then(|list| ExpectedType::List.contradicted(list, job));
        let template = self.from.as_ref().map_or(&self.template, |from| &from.additions);
        list.or_else(|| {
            let mut templates = self.places(job).into_iter().map(|at| at.join(template));
            templates.find_map(|at| ExpectedType::Fields.contradicted(&at, job))
        })
    }

    /// Places in the job where a pod set may be.
    fn places(&self, job: &Value) -> Vec<Pointer> {
        let entry = self.entry.as_ref().map(|key| Pointer::of(&[key])).unwrap_or_default();
        self.maps(job).into_iter().map(|map| map.join(&entry)).collect()
    }

    /// Places in the job where what is around a pod set may be.
    fn maps(&self, job: &Value) -> Vec<Pointer> {
        let elements = match &self.each {
            None => vec![Pointer::default()],
            Some(list) => {
                let n_elements = list.get(job).and_then(Value::as_array).map_or(0, Vec::len);
                (0..n_elements).map(|index| list.element(index)).collect()
            }
        };
        let within = self.within.clone().unwrap_or_default();
        elements.into_iter().map(|element| element.join(&within)).collect()
    }

    /// Elements of the job with a pod set.
    fn elements<'a>(&self, job: &'a Value) -> Vec<PodSetElement<'a>> {
        let element = |at: Pointer| Some(PodSetElement { value: at.get(job)?, at });
        // Only `within` can be absent: elements exist, and so does the job itself.
        self.places(job).into_iter().filter_map(element).collect()
    }

    /// Number of pods of an element.
    ///
    /// # Errors
    /// If a number is something else.
    pub(super) fn count(&self, element: &Value) -> Result<i32, WrongType> {
        Ok(self.replicas.pods(element)?.saturating_mul(self.pods_per_replica.pods(element)?))
    }

    /// The replicas that an element writes, if these are others than those that count.
    fn written(&self, element: &PodSetElement<'_>) -> Result<Option<WrittenReplicas>, WrongType> {
        let Some(field) = &self.written else { return Ok(None) };
        let replicas = Count::At(field.clone()).pods(element.value)?;
        let is_other = replicas != self.replicas.pods(element.value)?;
        Ok(is_other.then(|| WrittenReplicas { replicas, at: vec![element.at.join(field)] }))
    }

    /// Fields of a job that hold additions to templates of another object.
    pub(super) fn additions(&self, job: &Value) -> Vec<Pointer> {
        let Some(from) = &self.from else {
            return Vec::new();
        };
        let elements = self.elements(job).into_iter();
        elements.map(|element| element.at.join(&from.additions)).collect()
    }

    /// The pod sets of a job. `source` is the object with the templates, if the rule names one.
    ///
    /// # Errors
    /// If a template does not decode, or contradicts its additions, or if a field has another type.
    pub(super) fn pod_sets(
        &self,
        job: &Value,
        source: Option<&Value>,
    ) -> Result<Vec<DeclaredPodSet>, PodSetsError> {
        if let Some(wrong) = self.wrong_place(job) {
            return Err(wrong.into());
        }
        let elements = self.elements(job).into_iter();
        elements.map(|element| self.pod_set(&element, source)).collect()
    }

    /// The pod sets with templates in the job that can be read, whatever their counts are.
    pub(super) fn restorable(&self, job: &Value) -> Vec<DeclaredPodSet> {
        // What is added to the template of another object is removed as a whole.
        let elements = self.elements(job).into_iter().filter(|_| self.from.is_none());
        let is_there = |set: &DeclaredPodSet| set.at.get(job).is_some_and(Value::is_object);
        let sets = elements.filter_map(|element| self.uncounted(&element, None).ok());
        sets.filter(is_there).collect()
    }

    /// The field path of a template. The API writes keys of maps in brackets.
    fn field_path(&self, at: &Pointer) -> String {
        let path = at.field_path();
        let (Some(within), Some(key)) = (&self.within, &self.entry) else { return path };
        let map = within.field_path();
        path.replacen(&format!("{map}.{key}."), &format!("{map}[{key}]."), 1)
    }

    fn pod_set(
        &self,
        element: &PodSetElement<'_>,
        source: Option<&Value>,
    ) -> Result<DeclaredPodSet, PodSetsError> {
        let in_job = |wrong: WrongType| wrong.below(&element.at);
        let uncounted = self.uncounted(element, source).map_err(PodSetsError::Template)?;
        Ok(DeclaredPodSet {
            replicas: self.replicas.pods(element.value).map_err(in_job)?,
            pods_per_replica: self.pods_per_replica.pods(element.value).map_err(in_job)?,
            written: self.written(element).map_err(in_job)?,
            ..uncounted
        })
    }

    /// The pod set of an element, with one pod.
    fn uncounted(
        &self,
        element: &PodSetElement<'_>,
        source: Option<&Value>,
    ) -> Result<DeclaredPodSet, String> {
        let called = match &self.name {
            PodSetName::Fixed(name) => name.clone(),
            PodSetName::At(at) | PodSetName::Lowered(at) => {
                at.text(element.value).unwrap_or_default().to_owned()
            }
        };
        let name = match &self.name {
            PodSetName::Lowered(_) => called.to_lowercase(),
            PodSetName::Fixed(_) | PodSetName::At(_) => called.clone(),
        };
        let ReadTemplate { at, whole, base } = self.template_of(element, source, &name)?;
        Ok(DeclaredPodSet {
            name,
            called: Some(called),
            path: self.field_path(&at),
            at,
            template: whole,
            base,
            replicas: 1,
            pods_per_replica: 1,
            written: None,
            n_groups: None,
            index_labels: self.index_labels.clone(),
        })
    }

    fn template_of(
        &self,
        element: &PodSetElement<'_>,
        source: Option<&Value>,
        name: &str,
    ) -> Result<ReadTemplate, String> {
        let Some(from) = &self.from else {
            let at = element.at.join(&self.template);
            let whole = decode_template(self.template.get(element.value), &at)?;
            return Ok(ReadTemplate { at, whole, base: None });
        };
        let base = source.and_then(|source| self.template.get(source));
        let base = decode_template(base, &self.template)?;
        let at = element.at.join(&from.additions);
        let additions = decode_template(from.additions.get(element.value), &at)?;
        let whole = with_additions(&base, &additions, name)
            .map_err(|error| format!("{}: {error}", at.field_path()))?;
        Ok(ReadTemplate { at, whole, base: Some(base) })
    }
}

/// A template with what the operator adds to it.
fn with_additions(
    base: &PodTemplate,
    additions: &PodTemplate,
    name: &str,
) -> Result<PodTemplate, StartError> {
    let mut added = base.clone();
    let (name, template) = (name.to_owned(), additions.clone());
    let additions = PodSet { name, template, ..PodSet::default() };
    PodSetInfo::of(&additions).merge_into(&mut added, false)?;
    Ok(added)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{GenericJob, JobGates, Kind};

    /// A kind with these pod sets.
    fn kind(pod_sets: &Value) -> Result<Kind, String> {
        let definition = json!({
            "framework": "example.com/show", "group": "example.com", "version": "v1",
            "kind": "Show", "plural": "shows", "suspend": "/spec/suspend",
            "fields": { "podSets": pod_sets, "active": { "anyAbove": ["/status/active"] } },
        });
        Kind::parse(&definition.to_string()).map_err(|error| error.to_string())
    }

    /// The names of the pod sets of a job with this spec, or why it has none.
    fn names(pod_sets: &Value, spec: &Value) -> Result<Vec<String>, String> {
        let object = json!({ "metadata": { "name": "s", "namespace": "ns" }, "spec": spec });
        let job = kind(pod_sets)?.decode(object)?;
        match job.unresolved() {
            Some(why) => Err(why.to_owned()),
            None => Ok(job.pod_sets(JobGates::default()).into_iter().map(|set| set.name).collect()),
        }
    }

    #[test]
    fn an_object_with_an_entry_may_have_other_fields() {
        let driver = json!([
            { "name": { "fixed": "driver" }, "within": "/spec", "entry": "driver", "template": "/template" },
        ]);
        let spec = json!({ "suspend": true, "driver": { "template": {} }, "image": "i" });
        assert_eq!(names(&driver, &spec), Ok(vec!["driver".to_owned()]));
    }

    #[test]
    fn a_map_that_has_no_other_keys_is_checked_in_each_element() {
        let role = |entry: &str, closed: bool| {
            json!({
                "name": { "at": "/name" }, "each": "/spec/groups", "within": "/roles",
                "entry": entry, "template": "/template", "noOtherKeys": closed,
            })
        };
        let rules = json!([role("Head", true), role("Tail", false)]);
        let head = json!({ "name": "h", "template": {} });
        let group = |key: &str| json!({ "roles": { "Head": head, key: head } });
        let spec = |key: &str| json!({ "groups": [group("Head"), group(key)] });
        assert_eq!(names(&rules, &spec("Tail")).map(|names| names.len()), Ok(3));
        let unknown = "spec.groups[1].roles has unknown keys: tail; known are Head, Tail";
        assert_eq!(names(&rules, &spec("tail")), Err(unknown.to_owned()));
    }

    #[test]
    fn only_a_map_has_no_other_keys() {
        let rule = json!([
            { "name": { "fixed": "a" }, "within": "/spec", "template": "/a", "noOtherKeys": true },
        ]);
        let refused =
            "define example.com/v1, Kind=Show: podSets.noOtherKeys: within and entry are missing";
        assert_eq!(kind(&rule).map(|_| ()), Err(refused.to_owned()));
    }
}
