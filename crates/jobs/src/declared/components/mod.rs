//! Jobs that wrap objects of other kinds and have the pod sets of all of them: AppWrapper
//! (docs/reference/kueue.md §7.8, docs/reference/appwrapper.md §3).
//!
//! A wrapped object stays as it is. What a start adds to its pods stands beside it, and the operator merges both.

mod faults;
#[cfg(test)]
mod tests;
mod wrapped_template;

use std::collections::BTreeMap;

use appwrapper::{
    declared_pod_sets::undeclared_pods,
    names::ANNOTATION_PREFIX,
    pod_sets::{inferred, inferred_as_written, pod_sets, pod_sets_as_written},
    pod_spec_type_fault, template_path,
    v1beta2::{AppWrapperComponent, AppWrapperPodSet},
};
use crds::{decode::from_value, pod::PodTemplate, v1beta2::PodSet, validation::FieldError};
use serde_json::{Map, Value, json};

pub(super) use self::faults::faults;

use self::wrapped_template::wrapped_template;
use crate::{
    declared::declared_pod_set::{DeclaredPodSet, IndexLabels, WrittenReplicas},
    nulls::without_nulls,
    pointer::Pointer,
    start::pod_set_info::{PodSetInfo, SCHEDULING_GATES},
};

/// Field of a component with what a start adds, an entry per pod set.
const POD_SET_INFOS: &str = "podSetInfos";

/// Field of a component with its declared pod sets.
const POD_SETS: &str = "podSets";

/// The pod sets of all components, named after the job and numbered. A path that leads to no pod template makes none, and a
/// start refuses the job then.
///
/// # Errors
/// If a component or a pod template does not decode or contradicts what was added to it, or if an object has pods that are in no pod set.
pub(super) fn wrapped_pod_sets(
    components: &Pointer,
    object: &Value,
    job: &str,
) -> Result<Vec<DeclaredPodSet>, FieldError> {
    let mut sets = Vec::new();
    for placed in &decode(components, object)? {
        let PlacedComponent { at, component } = placed;
        let n_before = sets.len();
        let written = pod_sets_as_written(component);
        for (index, (pod_set, written)) in pod_sets(component).iter().zip(&written).enumerate() {
            let name = format!("{job}-{}", sets.len());
            let pod_set = ComponentPodSet { of: placed, index, pod_set };
            let wrapped = pod_set.wrapped(name, object)?;
            let written = pod_set.written_replicas(written);
            sets.extend(wrapped.map(|set| DeclaredPodSet { written, ..set }));
        }
        // The start refuses a job with a path to nothing: it runs no pods.
        let may_start = sets.len() - n_before == written.len();
        if let Some(pods) = undeclared_pods(component).filter(|_| may_start) {
            return Err(FieldError::invalid_together(field_path(at, POD_SETS), pods));
        }
    }
    Ok(sets)
}

/// Field of a pod set, and of a group of Ray, with the number of its replicas.
const REPLICAS: &str = "replicas";

/// The field of a component with the replicas of a group of Ray, if the group writes another number than its operator runs.
fn sized_group(component: &AppWrapperComponent, pod_set: &AppWrapperPodSet) -> Option<Pointer> {
    let number = |sets: Vec<AppWrapperPodSet>| {
        sets.into_iter().find(|it| it.path == pod_set.path).map(|it| it.replicas)
    };
    let template = &component.template;
    if number(inferred(template)?)? == number(inferred_as_written(template)?)? {
        return None;
    }
    let group = pod_set.path.strip_suffix(".template")?.replace(['.', '['], "/").replace(']', "");
    Pointer::try_from(format!("/{group}/{REPLICAS}")).ok()
}

/// The path of a field of a component in error messages.
fn field_path(component: &Pointer, field: &str) -> String {
    format!("{}.{field}", component.field_path())
}

/// The number of pod sets of the components, with those that have no pod template.
pub(super) fn n_wrapped(components: &Pointer, object: &Value) -> usize {
    // A job with components that do not decode is not started.
    let components = decode(components, object).unwrap_or_default();
    components.iter().map(|placed| pod_sets(&placed.component).len()).sum()
}

/// Writes what a start adds to the pod sets, in their order.
pub(super) fn write_infos(object: &mut Value, added: &[(Pointer, PodTemplate)]) {
    // The infos of a component are one list, so all of its pod sets are written together.
    let mut lists: BTreeMap<String, (Pointer, Vec<Value>)> = BTreeMap::new();
    for (at, template) in added {
        let Some(list) = at.parents().pop() else { continue };
        let (_, infos) = lists.entry(list.to_string()).or_insert((list, Vec::new()));
        infos.push(info(template));
    }
    lists.into_values().for_each(|(list, infos)| list.set(object, Value::Array(infos)));
}

/// Removes what a start has added. Returns whether there was anything.
pub(super) fn remove_infos(components: &Pointer, object: &mut Value) -> bool {
    components.join(&Pointer::of(&["*", POD_SET_INFOS])).remove(object)
}

fn decode(components: &Pointer, object: &Value) -> Result<Vec<PlacedComponent>, FieldError> {
    let list = components.get(object).and_then(Value::as_array);
    let places = list.into_iter().flatten().enumerate();
    let decoded = places.map(|(index, component)| {
        let at = components.element(index);
        match from_value(component) {
            Ok(component) => Ok(PlacedComponent { at, component }),
            Err(error) => Err(FieldError::invalid_together(at.field_path(), error.to_string())),
        }
    });
    decoded.collect()
}

/// A component of a job.
struct PlacedComponent {
    /// Where it is in the job.
    at: Pointer,
    component: AppWrapperComponent,
}

/// A pod set of a component.
#[derive(Clone, Copy)]
struct ComponentPodSet<'a> {
    of: &'a PlacedComponent,
    /// Its place among the pod sets of the component.
    index: usize,
    pod_set: &'a AppWrapperPodSet,
}

impl ComponentPodSet<'_> {
    /// The replicas that are written, if these are others than those that count: in a declared pod set, in a group of a wrapped RayCluster,
    /// or in both.
    fn written_replicas(self, written: &AppWrapperPodSet) -> Option<WrittenReplicas> {
        let Self { of: PlacedComponent { at, component }, index, pod_set } = self;
        let replicas = written.replicas.unwrap_or(1);
        if replicas == pod_set.replicas.unwrap_or(1) {
            return None;
        }
        let mut fields = Vec::new();
        if !component.pod_sets.is_empty() {
            let declared = at.join(&Pointer::of(&[POD_SETS])).element(index);
            fields.push(declared.join(&Pointer::of(&[REPLICAS])));
        }
        fields.extend(sized_group(component, pod_set).map(|group| at.join(&group)));
        Some(WrittenReplicas { replicas, at: fields })
    }

    /// The pod set of the job; `None` if the path leads to no pod template.
    fn wrapped(self, name: String, object: &Value) -> Result<Option<DeclaredPodSet>, FieldError> {
        let Self { of: PlacedComponent { at, component }, index, pod_set } = self;
        let Some(found) = pod_template_at(component, &pod_set.path) else { return Ok(None) };
        let infos = at.join(&Pointer::of(&[POD_SET_INFOS])).element(index);
        let path = format!("{}.{}", infos.field_path(), pod_set.path);
        let base = pod_spec_type_fault(&found["spec"])
            .map_or_else(|| read_template(&wrapped_template(&found)), Err)
            .map_err(|error| FieldError::invalid_together(field_path(at, &pod_set.path), error))?;
        let mut template = base.clone();
        // The pod sets of a started job are those that run, with what its start has added.
        if let Some(added) = infos.get(object) {
            let wrong = |error: String| FieldError::invalid_together(infos.field_path(), error);
            let added = read_template(&as_template(added)).map_err(wrong)?;
            let added = PodSet { name: name.clone(), template: added, ..PodSet::default() };
            let merged = PodSetInfo::of(&added).merge_into(&mut template, false);
            merged.map_err(|error| wrong(error.to_string()))?;
        }
        let annotation =
            |name: &str| pod_set.annotations.get(&format!("{ANNOTATION_PREFIX}{name}"));
        Ok(Some(DeclaredPodSet {
            name,
            at: infos,
            path,
            template,
            base: Some(base),
            replicas: pod_set.replicas.unwrap_or(1),
            pods_per_replica: 1,
            written: None,
            called: None,
            n_groups: annotation("tas-sub-group-count").and_then(|count| count.parse().ok()),
            index_labels: IndexLabels {
                pod: annotation("tas-pod-index-label").cloned(),
                replica: annotation("tas-sub-group-index-label").cloned(),
            },
        }))
    }
}

/// The pod template at a path of a component; none if there is nothing with the spec of a pod.
fn pod_template_at(component: &AppWrapperComponent, path: &str) -> Option<Value> {
    let mut wrapped = component.template.clone();
    let found = template_path::value_at(&mut wrapped, path).ok()?;
    found["spec"].is_object().then(|| found.take())
}

fn read_template(template: &Value) -> Result<PodTemplate, String> {
    from_value(&without_nulls(template)).map_err(|error| error.to_string())
}

/// The info of a template with additions only.
fn info(added: &PodTemplate) -> Value {
    let added = json!(added);
    let mut info = Map::new();
    for (part, fields) in PARTS {
        for field in *fields {
            let value = added[part][field].clone();
            if !value.is_null() {
                info.insert((*field).to_owned(), value);
            }
        }
    }
    Value::Object(info)
}

/// A template with the additions of an info only.
fn as_template(info: &Value) -> Value {
    let mut template = json!({});
    for (part, fields) in PARTS {
        for field in fields.iter().filter(|field| !info[**field].is_null()) {
            template[part][field] = info[field].clone();
        }
    }
    template
}

/// The fields of an info, by where they stand in a template.
const PARTS: &[(&str, &[&str])] = &[
    ("metadata", &["annotations", "labels"]),
    ("spec", &["nodeSelector", "tolerations", SCHEDULING_GATES]),
];
