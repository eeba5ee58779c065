//! Kinds with pods that are jobs themselves, or one group: webhooks mark the pod template. Of a kind with pods that are jobs,
//! nothing else is done with the object (docs/reference/kueue.md §5.3, §7.8).

use crds::{
    names::{
        MANAGED,
        annotations::POD_SUSPENDING_PARENT,
        labels::{PRIORITY_CLASS, QUEUE_NAME},
    },
    validation::{FieldError, immutable},
};
use serde_json::Value;

use super::fields::MarkedPods;
use crate::{Kind, defaulting::PatchAdd, template_metadata};

/// The parent that holds each pod, and the labels of a queued pod. Members of a group get these when they join it.
pub(super) fn marks<'l>(
    kind: &Kind,
    object: &Value,
    pods: &MarkedPods,
    label: impl Fn(&str) -> Option<&'l str>,
) -> Option<PatchAdd> {
    let before = template_metadata::stored(Some(pods.template_of(object)?));
    let mut metadata = before.clone();
    let labels = [QUEUE_NAME, PRIORITY_CLASS].into_iter();
    let labels = labels.filter_map(|key| Some((key, label(key)?)));
    let labels = labels.filter(|(_, value)| !value.is_empty()).chain([(MANAGED, "true")]);
    let labels = labels.filter(|_| pods.group.is_none());
    template_metadata::insert(&mut metadata, "labels", labels);
    let parent = [(POD_SUSPENDING_PARENT, kind.framework())];
    template_metadata::insert(&mut metadata, "annotations", parent.into_iter());
    let path = format!("{}/metadata", pods.template);
    (metadata != before).then_some(PatchAdd { path, value: metadata })
}

/// Whether the webhook has marked the template.
pub(super) fn is_marked(kind: &Kind, pods: &MarkedPods, object: &Value) -> bool {
    parent_of(pods, object) == Some(kind.framework())
}

/// Whether the template names a parent of another framework, as the StatefulSets of a LeaderWorkerSet do.
pub(super) fn has_other_parent(kind: &Kind, pods: &MarkedPods, object: &Value) -> bool {
    let parent = parent_of(pods, object).unwrap_or_default();
    !parent.is_empty() && parent != kind.framework()
}

/// The error about another parent for the pods of a marked object: their Workloads hold them.
pub(super) fn check_parent_change(kind: &Kind, new: &Value, old: &Value) -> Option<FieldError> {
    let pods = kind.pods()?;
    if !is_marked(kind, pods, old) || !has_other_parent(kind, pods, new) {
        return None;
    }
    let template = pods.template.field_path();
    let field = format!("{template}.metadata.annotations[{POD_SUSPENDING_PARENT}]");
    Some(immutable(field, parent_of(pods, new).unwrap_or_default()))
}

/// The parent that the template names.
fn parent_of<'a>(pods: &MarkedPods, object: &'a Value) -> Option<&'a str> {
    let annotations = pods.template_of(object)?.pointer("/metadata/annotations")?;
    annotations.get(POD_SUSPENDING_PARENT)?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{GenericJob, JobGates, JobObject, defaulting::DefaultingFacts, validate};

    const ROLLOUT: &str = "
framework: example.com/rollout
group: example.com
version: v1
kind: Rollout
plural: rollouts
pods: { template: /spec/run/template, ready: /status/ready }
";

    fn rollout(queue: &str, ready: u32, template: &Value) -> JobObject {
        let labels = if queue.is_empty() { json!({}) } else { json!({ QUEUE_NAME: queue }) };
        let kind = Kind::parse(ROLLOUT).expect("a kind");
        let object = json!({
            "metadata": { "labels": labels }, "spec": { "run": { "template": template } },
            "status": { "ready": ready },
        });
        kind.decode(object).expect("it decodes")
    }

    fn steps(job: &JobObject, facts: DefaultingFacts) -> Vec<Value> {
        let steps = job.defaults_by(facts, JobGates::default());
        steps.iter().map(PatchAdd::to_json).collect()
    }

    #[test]
    fn the_template_of_a_queued_object_is_marked() {
        let template = json!({ "metadata": { "labels": { "app": "a" } }, "spec": {} });
        let marked = json!({
            "labels": { "app": "a", MANAGED: "true", QUEUE_NAME: "q" },
            "annotations": { POD_SUSPENDING_PARENT: "example.com/rollout" },
        });
        let facts = DefaultingFacts::default();
        let step = json!({ "op": "add", "path": "/spec/run/template/metadata", "value": marked });
        assert_eq!(steps(&rollout("q", 0, &template), facts), [step]);
        assert_eq!(
            steps(&rollout("q", 0, &json!({ "metadata": marked })), facts),
            [json!(null); 0]
        );
        assert_eq!(steps(&rollout("", 0, &template), facts), [json!(null); 0]);
        assert_eq!(steps(&rollout("q", 1, &template), facts), [json!(null); 0], "its pods run");
        let child = DefaultingFacts { ancestor_managed: true, ..facts };
        assert_eq!(steps(&rollout("q", 0, &template), child), [json!(null); 0]);
    }

    #[test]
    fn a_queue_is_changed_until_a_pod_is_ready_and_never_removed() {
        let texts = |queue: &str, ready: u32| {
            let (old, new) = (rollout("q", ready, &json!({})), rollout(queue, ready, &json!({})));
            let errors = validate::update(&new, &old, false, JobGates::default());
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let immutable = |queue: &str| {
            format!("metadata.labels[{QUEUE_NAME}]: Invalid value: {queue:?}: field is immutable")
        };
        assert_eq!(texts("r", 0), [""; 0]);
        assert_eq!(texts("r", 1), [immutable("r")]);
        assert_eq!(texts("", 0), [immutable("")]);
        assert_eq!(texts("", 1), [immutable("")]);
    }

    #[test]
    fn an_object_with_pods_of_another_parent_is_left_alone() {
        let held = |queue: &str, ready: u32, parent: &str| {
            let annotations = json!({ POD_SUSPENDING_PARENT: parent });
            rollout(queue, ready, &json!({ "metadata": { "annotations": annotations } }))
        };
        let of_other = |queue: &str| held(queue, 1, "statefulset");
        assert_eq!(steps(&of_other("q"), DefaultingFacts::default()), [json!(null); 0]);
        assert_eq!(validate::create(&of_other("Q"), JobGates::default()), []);
        let errors = validate::update(&of_other("r"), &of_other("Q"), false, JobGates::default());
        assert_eq!(errors, []);
        assert!(of_other("q").is_skipped());
        for parent in ["example.com/rollout", ""] {
            assert!(!held("q", 1, parent).is_skipped(), "{parent:?}");
            assert_eq!(validate::create(&held("Q", 1, parent), JobGates::default()).len(), 1);
        }
    }

    #[test]
    fn a_marked_object_is_not_given_to_another_parent() {
        let marked = |queue: &str, parent: &str| {
            let annotations = json!({ POD_SUSPENDING_PARENT: parent });
            rollout(queue, 1, &json!({ "metadata": { "annotations": annotations } }))
        };
        let texts = |new: &JobObject, old: &JobObject| {
            let errors = validate::update(new, old, false, JobGates::default());
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let own = marked("q", "example.com/rollout");
        let parent = format!("spec.run.template.metadata.annotations[{POD_SUSPENDING_PARENT}]");
        let kept = format!("{parent}: Invalid value: \"x\": field is immutable");
        let queue =
            format!("metadata.labels[{QUEUE_NAME}]: Invalid value: \"r\": field is immutable");
        assert_eq!(texts(&marked("q", "x"), &own), [kept.as_str()]);
        assert_eq!(texts(&marked("r", "x"), &own), [queue.as_str(), kept.as_str()]);
        let free = rollout("q", 1, &json!({}));
        assert_eq!(texts(&marked("q", "x"), &free), [""; 0], "its parent marks it");
        assert_eq!(texts(&marked("r", "x"), &free), [queue.as_str()]);
        assert_eq!(texts(&marked("r", "x"), &marked("q", "y")), [""; 0], "another parent's");
    }

    #[test]
    fn what_only_jobs_have_is_not_validated() {
        let mut with_limit = rollout("q", 0, &json!({}));
        let labels = with_limit.metadata_mut().labels.get_or_insert_default();
        labels.insert("kueue.x-k8s.io/max-exec-time-seconds".to_owned(), "none".to_owned());
        labels.insert("kueue.x-k8s.io/prebuilt-workload-name".to_owned(), "w".to_owned());
        assert_eq!(validate::create(&with_limit, JobGates::default()), []);
        let old = rollout("q", 1, &json!({}));
        assert_eq!(validate::update(&with_limit, &old, false, JobGates::default()), []);
    }
}
