//! AppWrappers with components of which the official controller makes something else.

use appwrapper::{
    names::WRAPPER_LABEL,
    pod_sets::inferred,
    template_path::{TemplatePathError, check_pod_template},
};
use serde_json::Value;

use super::ray_steps::items;
use crate::verdict::Moment;

/// Kinds that an API server has in every cluster, and of which no component is made here.
const NOT_MADE: [&str; 8] = [
    "ConfigMap",
    "Secret",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "Ingress",
    "NetworkPolicy",
    "CronJob",
];

/// The components of an AppWrapper; none of another object.
fn components(wrapper: &Value) -> impl Iterator<Item = &Value> {
    let components = (wrapper["kind"] == "AppWrapper").then(|| &wrapper["spec"]["components"]);
    components.into_iter().flat_map(items)
}

/// Whether an AppWrapper has a component of one of these kinds.
pub(super) fn has_component_of(wrapper: &Value, kinds: &[&str]) -> bool {
    let mut present = components(wrapper).filter_map(|it| it["template"]["kind"].as_str());
    present.any(|kind| kinds.contains(&kind))
}

/// Whether an AppWrapper has an AppWrapper as a component.
pub(super) fn is_nested(wrapper: &Value) -> bool {
    has_component_of(wrapper, &["AppWrapper"])
}

/// Whether an AppWrapper has a component of a kind that exists and is not made here.
pub(super) fn has_kind_that_is_not_made(wrapper: &Value) -> bool {
    has_component_of(wrapper, &NOT_MADE)
}

/// Whether a component declares fewer pods for a place than its object has there.
pub(super) fn declares_too_few_pods(wrapper: &Value) -> bool {
    components(wrapper).any(|component| {
        let known = inferred(&component["template"]).unwrap_or_default();
        items(&component["podSets"]).any(|declared| {
            let pods = declared["replicas"].as_i64().unwrap_or(1);
            known.iter().any(|it| {
                declared["path"] == it.path.as_str() && i64::from(it.replicas.unwrap_or(1)) > pods
            })
        })
    })
}

/// Whether a component has an inferred pod set where no template of pods is, or declares one for an object without the spec of a pod.
///
/// The official controller fails an AppWrapper with a declared path that leads nowhere.
pub(super) fn has_pod_set_without_a_template(wrapper: &Value) -> bool {
    components(wrapper).any(|component| {
        let template = &component["template"];
        let known = inferred(template).unwrap_or_default();
        let is_without_spec = |declared: &Value| {
            let path = declared["path"].as_str().unwrap_or_default();
            matches!(check_pod_template(template, path), Err(TemplatePathError::NoPod(_)))
        };
        known.iter().any(|it| check_pod_template(template, &it.path).is_err())
            || items(&component["podSets"]).any(is_without_spec)
    })
}

/// Whether the official controller failed an AppWrapper for a template that has the label of another one.
pub(super) fn fails_for_its_own_label(wrapper: &Value) -> bool {
    let conflict = format!("conflict for key={WRAPPER_LABEL},");
    wrapper["kind"] == "AppWrapper"
        && items(&wrapper["status"]["conditions"])
            .filter_map(|it| it["message"].as_str())
            .any(|message| message.contains(&conflict))
}

/// Whether a wrapped cluster of Ray has a group of which the replicas are outside their bounds.
pub(super) fn has_group_outside_its_bounds(wrapper: &Value) -> bool {
    let specs = components(wrapper).flat_map(|it| {
        let spec = &it["template"]["spec"];
        [spec, &spec["rayClusterSpec"]]
    });
    let mut groups = specs.flat_map(|spec| items(&spec["workerGroupSpecs"]));
    groups.any(super::rules::has_replicas_outside_bounds)
}

/// Whether an AppWrapper that has been reset failed for good, and keeps its components for a while.
pub(super) fn is_kept_after_a_reset(moment: &Moment<'_>) -> bool {
    let key = "workload.codeflare.dev.appwrapper/deletionOnFailureGracePeriodDuration";
    moment.objects("AppWrapper").any(|wrapper| {
        let resets = wrapper["status"]["resettingCount"].as_i64().unwrap_or_default();
        wrapper["status"]["phase"] == "Failed"
            && resets > 0
            && wrapper["metadata"]["annotations"][key].is_string()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wanted::rules_tests::at;

    fn wrapper(component: &Value) -> Value {
        json!({"kind": "AppWrapper", "spec": {"components": [component]}})
    }

    fn of_kind(kind: &str) -> Value {
        wrapper(&json!({"template": {"kind": kind}}))
    }

    fn job(parallelism: u32, template: &Value, declared: &Value) -> Value {
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "spec": {"parallelism": parallelism, "template": template},
        });
        wrapper(&json!({"template": job, "podSets": declared}))
    }

    fn pods() -> Value {
        json!({"spec": {"containers": [{"name": "a"}]}})
    }

    #[test]
    fn a_component_is_recognised_by_its_kind() {
        assert!(is_nested(&of_kind("AppWrapper")) && !is_nested(&of_kind("Pod")));
        assert!(has_kind_that_is_not_made(&of_kind("ConfigMap")));
        for kind in ["Pod", "Service", "PersistentVolumeClaim", "Deployment", "Unknown"] {
            assert!(!has_kind_that_is_not_made(&of_kind(kind)), "{kind}");
        }
        assert!(!has_kind_that_is_not_made(&json!({"kind": "ConfigMap"})), "no component");
    }

    #[test]
    fn only_fewer_pods_than_the_object_has_are_too_few() {
        let declared =
            |replicas: u32| json!([{"path": "template.spec.template", "replicas": replicas}]);
        assert!(declares_too_few_pods(&job(2, &pods(), &declared(1))));
        for replicas in [2, 3] {
            assert!(!declares_too_few_pods(&job(2, &pods(), &declared(replicas))), "{replicas}");
        }
        assert!(!declares_too_few_pods(&job(2, &pods(), &json!([]))), "inferred");
    }

    #[test]
    fn a_pod_set_without_a_template_is_recognised() {
        assert!(has_pod_set_without_a_template(&job(1, &json!({"spec": "x"}), &json!([]))));
        assert!(!has_pod_set_without_a_template(&job(1, &pods(), &json!([]))));
        let declared = |path: &str| {
            let thing = json!({"kind": "Thing", "metadata": {"name": "a"}, "spec": pods()});
            wrapper(&json!({"template": thing, "podSets": [{"path": path}]}))
        };
        assert!(has_pod_set_without_a_template(&declared("template.metadata")));
        for path in ["template.spec", "template.nowhere", "spec"] {
            assert!(!has_pod_set_without_a_template(&declared(path)), "{path}");
        }
    }

    #[test]
    fn a_conflict_is_about_the_label_of_an_app_wrapper() {
        let failed = |key: &str| {
            let message = format!(
                "error creating components: conflict updating labels: conflict for key={key}, value1=a, value2=b"
            );
            json!({"kind": "AppWrapper", "status": {"conditions": [{"message": message}]}})
        };
        assert!(fails_for_its_own_label(&failed("workload.codeflare.dev/appwrapper")));
        assert!(!fails_for_its_own_label(&failed("a")));
    }

    #[test]
    fn a_wrapped_group_is_outside_its_bounds() {
        let with = |replicas: i32| {
            let groups = json!([{"replicas": replicas, "minReplicas": 0, "maxReplicas": 2}]);
            let spec = json!({"rayClusterSpec": {"workerGroupSpecs": groups}});
            wrapper(&json!({"template": {"kind": "RayJob", "spec": spec}}))
        };
        assert!(has_group_outside_its_bounds(&with(3)));
        assert!(!has_group_outside_its_bounds(&with(2)));
        assert!(!has_group_outside_its_bounds(&with(3)["spec"]["components"][0]["template"]));
    }

    #[test]
    fn a_second_failure_is_one_after_a_reset() {
        let key = "workload.codeflare.dev.appwrapper/deletionOnFailureGracePeriodDuration";
        let found = |resets: u32, annotations: Value| {
            let wrapper = json!({
                "kind": "AppWrapper", "metadata": {"name": "w", "annotations": annotations},
                "status": {"phase": "Failed", "resettingCount": resets},
            });
            at(&[], &[wrapper], is_kept_after_a_reset)
        };
        assert!(found(1, json!({key: "5s"})));
        assert!(!found(0, json!({key: "5s"})) && !found(1, json!({})));
    }
}
