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

use super::{DeclaredJob, MarkedPods};
use crate::{
    GenericJob, JobGates,
    defaulting::{self, DefaultingFacts, PatchAdd},
    template_metadata,
};

impl DeclaredJob {
    /// Labels of the object that are decided as for every job, and the marks of its pod template. The same for a changed object:
    /// its template follows queue and class.
    pub(crate) fn defaults_of_pods(
        &self,
        pods: &MarkedPods,
        facts: DefaultingFacts,
        gates: JobGates,
    ) -> Vec<PatchAdd> {
        // No gate could hold the pods that run already. Those of another parent start with it.
        let runs = pods.are_ready(&self.object) && !self.is_marked(pods);
        if runs || self.has_other_parent(pods) {
            return Vec::new();
        }
        let mut steps = defaulting::default(self, facts, gates);
        let labelled = defaulting::with_labels(self, &steps);
        // The marks hold the pods, which nothing would ever start if the object is not managed.
        if defaulting::must_suspend(labelled.queue_name(), facts) {
            steps.extend(labelled.marks(pods));
        }
        steps
    }

    /// The parent that holds each pod, and the labels of a queued pod. Members of a group get these when they join it.
    fn marks(&self, pods: &MarkedPods) -> Option<PatchAdd> {
        let before = template_metadata::stored(Some(pods.template_of(&self.object)?));
        let mut metadata = before.clone();
        let labels = [QUEUE_NAME, PRIORITY_CLASS].into_iter();
        let labels = labels.filter_map(|key| Some((key, self.label(key)?)));
        let labels = labels.filter(|(_, value)| !value.is_empty()).chain([(MANAGED, "true")]);
        let labels = labels.filter(|_| pods.group.is_none());
        template_metadata::insert(&mut metadata, "labels", labels);
        let parent = [(POD_SUSPENDING_PARENT, self.kind.framework())];
        template_metadata::insert(&mut metadata, "annotations", parent.into_iter());
        let path = format!("{}/metadata", pods.template);
        (metadata != before).then_some(PatchAdd { path, value: metadata })
    }

    /// Whether the webhook has marked the template.
    pub(super) fn is_marked(&self, pods: &MarkedPods) -> bool {
        self.template_annotation(pods) == Some(self.kind.framework())
    }

    /// Whether the template names a parent of another framework, as the StatefulSets of a LeaderWorkerSet do.
    pub(super) fn has_other_parent(&self, pods: &MarkedPods) -> bool {
        let parent = self.template_annotation(pods).unwrap_or_default();
        !parent.is_empty() && parent != self.kind.framework()
    }

    /// The error about another parent for the pods of a marked object: their Workloads hold them.
    pub(super) fn check_parent_change(&self, old: &Self) -> Option<FieldError> {
        let pods = self.kind.pods()?;
        if !old.is_marked(pods) || !self.has_other_parent(pods) {
            return None;
        }
        let template = pods.template.field_path();
        let field = format!("{template}.metadata.annotations[{POD_SUSPENDING_PARENT}]");
        Some(immutable(field, self.template_annotation(pods).unwrap_or_default()))
    }

    fn template_annotation(&self, pods: &MarkedPods) -> Option<&str> {
        let annotations = pods.template_of(&self.object)?.pointer("/metadata/annotations")?;
        annotations.get(POD_SUSPENDING_PARENT)?.as_str()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{JobObject, Kind, validate};

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
