//! Jobs that wrap objects of other kinds and have the pod sets of all of them: AppWrapper
//! (docs/reference/kueue.md §7.8, docs/reference/appwrapper.md §3).
//!
//! A wrapped object stays as it is. What a start adds to its pods stands beside it, and the operator merges both.

mod wrapped_template;

use std::collections::BTreeMap;

use appwrapper::{
    names::ANNOTATION_PREFIX,
    pod_sets::{pod_sets, pod_sets_as_written},
    template_path,
    v1beta2::{AppWrapperComponent, AppWrapperPodSet},
};
use crds::{decode::from_value, pod::PodTemplate, v1beta2::PodSet};
use serde_json::{Map, Value, json};

use self::wrapped_template::wrapped_template;
use crate::{
    declared::declared_pod_set::{DeclaredPodSet, IndexLabels, WrittenReplicas, decode_template},
    pod_set_info::{PodSetInfo, SCHEDULING_GATES},
    pointer::Pointer,
};

/// Field of a component with what a start adds, an entry per pod set.
const POD_SET_INFOS: &str = "podSetInfos";

/// The pod sets of all components, named after the job and numbered. A path that leads to no pod template makes none, and a
/// start refuses the job then.
///
/// # Errors
/// If a component or a pod template does not decode, or contradicts what was added to it.
pub(super) fn wrapped_pod_sets(
    components: &Pointer,
    object: &Value,
    job: &str,
) -> Result<Vec<DeclaredPodSet>, String> {
    let mut sets = Vec::new();
    for (at, component) in decode(components, object)? {
        let written = pod_sets_as_written(&component);
        for (index, (pod_set, written)) in pod_sets(&component).iter().zip(&written).enumerate() {
            let name = format!("{job}-{}", sets.len());
            let infos = at.join(&Pointer::of(&[POD_SET_INFOS])).element(index);
            let wrapped = wrapped_pod_set(&component, pod_set, (name, infos), object)?;
            let written = written_replicas(&at, pod_set, written);
            sets.extend(wrapped.map(|set| DeclaredPodSet { written, ..set }));
        }
    }
    Ok(sets)
}

/// The replicas that a group of a wrapped RayCluster writes, if these are others than those that count.
fn written_replicas(
    component: &Pointer,
    pod_set: &AppWrapperPodSet,
    written: &AppWrapperPodSet,
) -> Option<WrittenReplicas> {
    let group = pod_set.path.strip_suffix(".template")?.replace(['.', '['], "/").replace(']', "");
    let field = Pointer::try_from(format!("/{group}/replicas")).ok()?;
    let is_other = written.replicas != pod_set.replicas;
    let replicas = written.replicas.unwrap_or(1);
    is_other.then(|| WrittenReplicas { replicas, at: component.join(&field) })
}

/// The number of pod sets of the components, with those that have no pod template.
pub(super) fn n_wrapped(components: &Pointer, object: &Value) -> usize {
    // Components that do not decode were refused together with the job.
    let components = decode(components, object).unwrap_or_default();
    components.iter().map(|(_, component)| pod_sets(component).len()).sum()
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

fn decode(
    components: &Pointer,
    object: &Value,
) -> Result<Vec<(Pointer, AppWrapperComponent)>, String> {
    let list = components.get(object).and_then(Value::as_array);
    let places = list.into_iter().flatten().enumerate();
    let decoded = places.map(|(index, component)| {
        let at = components.element(index);
        let decoded = from_value(component);
        decoded
            .map(|component| (at.clone(), component))
            .map_err(|e| format!("{}: {e}", at.field_path()))
    });
    decoded.collect()
}

fn wrapped_pod_set(
    component: &AppWrapperComponent,
    pod_set: &AppWrapperPodSet,
    (name, infos): (String, Pointer),
    object: &Value,
) -> Result<Option<DeclaredPodSet>, String> {
    let mut wrapped = component.template.clone();
    let found = template_path::value_at(&mut wrapped, &pod_set.path).ok();
    let Some(found) = found.filter(|found| found["spec"].is_object()) else { return Ok(None) };
    let path = format!("{}.{}", infos.field_path(), pod_set.path);
    let base = decode_template(Some(&wrapped_template(found)), &Pointer::of(&[&pod_set.path]))?;
    let mut template = base.clone();
    // The pod sets of a started job are those that run, with what its start has added.
    if let Some(added) = infos.get(object) {
        let added = decode_template(Some(&as_template(added)), &infos)?;
        let added = PodSet { name: name.clone(), template: added, ..PodSet::default() };
        let merged = PodSetInfo::of(&added).merge_into(&mut template, false);
        merged.map_err(|error| format!("{}: {error}", infos.field_path()))?;
    }
    let annotation = |name: &str| pod_set.annotations.get(&format!("{ANNOTATION_PREFIX}{name}"));
    Ok(Some(DeclaredPodSet {
        name,
        at: infos,
        path,
        template,
        base: Some(base),
        replicas: pod_set.replicas.unwrap_or(1),
        pods_per_replica: 1,
        written: None,
        n_groups: annotation("tas-sub-group-count").and_then(|count| count.parse().ok()),
        index_labels: IndexLabels {
            pod: annotation("tas-pod-index-label").cloned(),
            replica: annotation("tas-sub-group-index-label").cloned(),
        },
    }))
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
