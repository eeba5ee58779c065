//! Whether the pod sets that a component declares are those of its object.
//!
//! A known kind has its pod sets at fixed places, so a declaration can only repeat them. Sizes of other kinds are those of the declaration.
//! Messages are those of the official webhook. Source: docs/reference/appwrapper.md §5.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    json::text,
    pod_sets::{inferred, inferred_as_written, replicas},
    template_path::{check_pod_template, pointer},
    v1beta2::{AppWrapperComponent, AppWrapperPodSet},
};

/// Kinds with the number of a pod set in the field `replicas` beside its template. In other kinds a number that is none counts as unset.
const COUNTED_BY_REPLICAS: &[&str] =
    &["Deployment", "StatefulSet", "PyTorchJob", "RayCluster", "RayJob"];

/// How the declared pod sets of a component differ from those of its object.
#[must_use]
pub fn contradiction(component: &AppWrapperComponent) -> Option<String> {
    contradiction_to(&inferred(&component.template).unwrap_or_default(), component)
}

/// How the declared pod sets of a component differ from inferred ones.
pub(crate) fn contradiction_to(
    known: &[AppWrapperPodSet],
    component: &AppWrapperComponent,
) -> Option<String> {
    let declared = &component.pod_sets;
    let mut seen = BTreeSet::new();
    if let Some(twice) = declared.iter().find(|pod_set| !seen.insert(&pod_set.path)) {
        return Some(format!("multiple DeclaredPodSets with path '{}'", twice.path));
    }
    if known.is_empty() || declared.is_empty() {
        return None;
    }
    if declared.len() != known.len() {
        let (ours, theirs) = (declared.len(), known.len());
        return Some(format!("DeclaredPodSet count {ours} differs from inferred count {theirs}"));
    }
    let written = inferred_as_written(&component.template).unwrap_or_default();
    known.iter().zip(&written).find_map(|known| difference(declared, known))
}

/// How the declaration of a pod set differs from what is inferred. `written` is what the official controller infers, so a manifest
/// that was made for it may declare that.
fn difference(
    declared: &[AppWrapperPodSet],
    (known, written): (&AppWrapperPodSet, &AppWrapperPodSet),
) -> Option<String> {
    let path = &known.path;
    let Some(found) = declared.iter().find(|pod_set| pod_set.path == *path) else {
        return Some(missing(path));
    };
    let (ours, theirs) = (replicas(found), replicas(known));
    (ours != theirs && ours != replicas(written)).then(|| {
        format!(
            "replica count {ours} differs from inferred count {theirs} for PodSet at path position '{path}'"
        )
    })
}

/// Which pods of the object no declared pod set has: they would run without quota.
#[must_use]
pub fn undeclared_pods(component: &AppWrapperComponent) -> Option<String> {
    let declared = &component.pod_sets;
    let known = inferred(&component.template).filter(|_| !declared.is_empty())?;
    let is_declared = |known: &&AppWrapperPodSet| declared.iter().any(|it| it.path == known.path);
    known.iter().find(|known| !is_declared(known)).map(|known| missing(&known.path))
}

fn missing(path: &str) -> String {
    format!("PodSet with path '{path}' is missing")
}

/// Why the pod sets of an object of a known kind cannot be inferred.
pub(crate) fn inference_fault(template: &Value) -> Option<String> {
    let known = inferred_as_written(template).unwrap_or_default();
    replicas_fault(template).or_else(|| {
        known.iter().find_map(|known| {
            let error = check_pod_template(template, &known.path).err()?;
            Some(format!("{} does not refer to a v1.PodSpecTemplate: {error}", known.path))
        })
    })
}

/// Which number of replicas is none.
#[must_use]
pub fn replicas_fault(template: &Value) -> Option<String> {
    let known = inferred_as_written(template)?;
    let is_counted = COUNTED_BY_REPLICAS.contains(&text(&template["kind"]));
    known.iter().filter(|_| is_counted).find_map(|known| {
        // A Ray cluster has one head, whatever stands beside its template.
        let part = known.path.strip_suffix(".template")?;
        let path = format!("{part}.replicas");
        let value = template.pointer(&pointer(&path).ok()?)?;
        let is_number = value.is_null() || value.is_i64() || part.ends_with(".headGroupSpec");
        (!is_number).then(|| format!("at path position '{path}' non-int value {}", shown(value)))
    })
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::webhook::{WrapperRequester, validate_create};

    fn template() -> Value {
        json!({"spec": {"containers": [{"name": "a"}]}})
    }

    fn object(api_version: &str, kind: &str, spec: &Value) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "o"}, "spec": spec})
    }

    fn ray(groups: &Value) -> Value {
        let spec = json!({"headGroupSpec": {"template": template()}, "workerGroupSpecs": groups});
        object("ray.io/v1", "RayCluster", &spec)
    }

    fn kubeflow(roles: &Value) -> Value {
        object("kubeflow.org/v1", "PyTorchJob", &json!({"pytorchReplicaSpecs": roles}))
    }

    fn errors(components: &Value) -> Vec<String> {
        let wrapper = json!({"metadata": {"name": "w"}, "spec": {"components": components}});
        let errors = validate_create(&wrapper, &WrapperRequester::default(), &Default::default());
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_part_without_a_template_has_no_pod_set() {
        let jobs = json!([{"replicas": 2}, {"template": {"spec": {"template": template()}}}]);
        let groups = json!([{"replicas": 2}, {"replicas": 3, "template": template()}]);
        let roles = json!({"Master": {"replicas": 1}, "Worker": {"template": template()}});
        let spec = "template.spec";
        for (object, paths) in [
            (object("apps/v1", "Deployment", &json!({"replicas": 2})), vec![]),
            (
                object("jobset.x-k8s.io/v1alpha2", "JobSet", &json!({"replicatedJobs": jobs})),
                vec![format!("{spec}.replicatedJobs[1].template.spec.template")],
            ),
            (
                ray(&groups),
                vec![
                    format!("{spec}.headGroupSpec.template"),
                    format!("{spec}.workerGroupSpecs[1].template"),
                ],
            ),
            (kubeflow(&roles), vec![format!("{spec}.pytorchReplicaSpecs.Worker.template")]),
        ] {
            let sets = inferred(&object).expect("a known kind");
            let found: Vec<String> = sets.into_iter().map(|set| set.path).collect();
            assert_eq!(found, paths, "{object}");
        }
    }

    /// A worker with the official controller has the same Workload for a copy.
    #[test]
    fn a_replica_of_several_hosts_counts_one_pod() {
        let group = json!([{"replicas": 2, "numOfHosts": 4, "template": template()}]);
        let sets = inferred(&ray(&group)).expect("a known kind");
        assert_eq!(sets.iter().map(|set| set.replicas).collect::<Vec<_>>(), [Some(1), Some(2)]);
        let declared = json!([
            {"path": "template.spec.headGroupSpec.template", "replicas": 1},
            {"path": "template.spec.workerGroupSpecs[0].template", "replicas": 8},
        ]);
        let found = errors(&json!([{"template": ray(&group), "podSets": declared}]));
        assert!(found[0].contains("differs from inferred count 2"), "{found:?}");
    }

    #[test]
    fn replicas_that_are_no_number_are_refused() {
        let deployment = |replicas: Value| {
            object("apps/v1", "Deployment", &json!({"replicas": replicas, "template": template()}))
        };
        let role = json!({"Worker": {"replicas": 1.5, "template": template()}});
        let group = json!([{"replicas": true, "template": template()}]);
        let part = "at path position 'template.spec";
        for (template, fault) in [
            (deployment(json!("three")), format!("{part}.replicas' non-int value three")),
            (
                kubeflow(&role),
                format!("{part}.pytorchReplicaSpecs.Worker.replicas' non-int value 1.5"),
            ),
            (ray(&group), format!("{part}.workerGroupSpecs[0].replicas' non-int value true")),
        ] {
            let path = "spec.components[0].template";
            let found =
                errors(&json!([{"template": template}, {"template": deployment(json!(1))}]));
            let fault = format!("{path}: Invalid value: error inferring PodSets: {fault}");
            assert_eq!(found, [fault]);
        }
        for replicas in [json!(3), json!(0), json!(null)] {
            assert_eq!(replicas_fault(&deployment(replicas)), None);
        }
        let text = json!({"parallelism": "two", "template": template()});
        assert_eq!(replicas_fault(&object("batch/v1", "Job", &text)), None, "it counts as unset");
        let mut cluster = ray(&json!([]));
        cluster["spec"]["headGroupSpec"]["replicas"] = json!("x");
        assert_eq!(replicas_fault(&cluster), None, "a cluster has one head");
    }

    #[test]
    fn an_inferred_path_leads_to_a_pod_template() {
        let found = errors(&json!([{"template": object("batch/v1", "Job", &json!({}))}]));
        let detail = "error inferring PodSets: template.spec.template does not refer to a v1.PodSpecTemplate: at path position 'template.spec.' missing field 'template'";
        assert_eq!(found[0], format!("spec.components[0].template: Invalid value: {detail}"));
    }

    #[test]
    fn two_pod_sets_of_any_kind_have_no_common_path() {
        let pod_set = json!({"path": "template.spec.a"});
        let unknown = object("example.com/v1", "Thing", &json!({"a": template()}));
        let found = errors(&json!([{"template": unknown, "podSets": [pod_set, pod_set]}]));
        let detail = "multiple DeclaredPodSets with path 'template.spec.a'";
        assert_eq!(found, [format!("spec.components[0].podSets: Invalid value: {detail}")]);
    }
}
