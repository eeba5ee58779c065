//! What the webhook of a job kind fills in when a job is made (docs/reference/kueue.md §5.3).

use crds::names::{
    DEFAULT_LOCAL_QUEUE, DEFAULT_WORKLOAD_PRIORITY_CLASS, JOB_CONTROLLER, MULTI_KUEUE_CONTROLLER,
    labels::{PRIORITY_CLASS, QUEUE_NAME},
};
use serde_json::{Value, json};

use crate::{GenericJob, JobGates};

/// What is known about the place that a job is made in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each fact is independent of the others")]
pub struct DefaultingFacts {
    /// The namespace has a LocalQueue for jobs that name none.
    pub default_local_queue: bool,
    /// There is a WorkloadPriorityClass for jobs that name none.
    pub default_priority_class: bool,
    /// The controller that owns the job is of a kind that is managed.
    pub owner_managed: bool,
    /// An owner of the job, near or far, is managed.
    pub ancestor_managed: bool,
    /// The namespace is one of those whose jobs are managed.
    pub namespace_managed: bool,
    /// Jobs that name no queue are managed too.
    pub manage_without_queue_name: bool,
    /// The LocalQueue of the job hands its jobs to workers.
    pub queue_uses_multi_kueue: bool,
}

/// One step of a JSON patch that sets a value.
#[derive(Clone, Debug, PartialEq)]
pub struct PatchAdd {
    /// JSON pointer.
    pub path: String,
    /// The value.
    pub value: Value,
}

impl PatchAdd {
    /// The step as it stands in a JSON patch; `add` also replaces.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "op": "add", "path": self.path, "value": self.value })
    }
}

/// What is to be set on a new job.
pub fn default<J: GenericJob>(job: &J, around: DefaultingFacts, gates: JobGates) -> Vec<PatchAdd> {
    let queue_name = queue_name(job, around);
    let mut labels = Vec::new();
    if queue_name != job.queue_name() {
        labels.push((QUEUE_NAME, queue_name));
    }
    let names_class = job.label(PRIORITY_CLASS).is_some_and(|class| !class.is_empty());
    let given = around.default_priority_class && !around.owner_managed;
    if gates.default_priority_class && given && !names_class {
        labels.push((PRIORITY_CLASS, DEFAULT_WORKLOAD_PRIORITY_CLASS));
    }
    let mut steps = set_labels(job, &labels);
    if !job.spec_suspended() && must_suspend(queue_name, around) {
        steps.push(PatchAdd { path: J::SUSPEND_PATH.to_owned(), value: json!(true) });
    }
    if let Some(path) = J::MANAGED_BY_PATH
        && around.queue_uses_multi_kueue
        && queue_to_route_by(job, around).is_some()
    {
        steps.push(PatchAdd { path: path.to_owned(), value: json!(MULTI_KUEUE_CONTROLLER) });
    }
    steps.extend(job.defaults(gates));
    steps
}

/// Whether it matters if the namespace's jobs are managed: to know it may cost a request.
pub fn needs_namespace<J: GenericJob>(job: &J, around: DefaultingFacts) -> bool {
    job.queue_name().is_empty() && (around.default_local_queue || around.manage_without_queue_name)
}

/// Whether it matters if an ancestor is managed: to know it costs requests. Of `around`, all but that must be known.
pub fn needs_ancestors<J: GenericJob>(job: &J, around: DefaultingFacts) -> bool {
    let without = DefaultingFacts { ancestor_managed: false, ..around };
    !job.spec_suspended() && must_suspend(queue_name(job, without), without)
}

/// The LocalQueue of which it matters whether it hands its jobs to workers. Of `around`, all but that must be known.
pub fn queue_to_route_by<J: GenericJob>(job: &J, around: DefaultingFacts) -> Option<&str> {
    let unclaimed = job.managed_by().is_none_or(|manager| manager == JOB_CONTROLLER);
    let asks = J::MANAGED_BY_PATH.is_some() && unclaimed;
    Some(queue_name(job, around)).filter(|name| asks && !name.is_empty())
}

/// The queue that the job ends up with; empty for none.
fn queue_name<J: GenericJob>(job: &J, around: DefaultingFacts) -> &str {
    let own = job.queue_name();
    let given = around.default_local_queue && around.namespace_managed && !around.owner_managed;
    if own.is_empty() && given { DEFAULT_LOCAL_QUEUE } else { own }
}

/// A job with a managed ancestor starts with that.
fn must_suspend(queue_name: &str, around: DefaultingFacts) -> bool {
    let managed =
        !queue_name.is_empty() || (around.manage_without_queue_name && around.namespace_managed);
    managed && !around.ancestor_managed
}

fn set_labels<J: GenericJob>(job: &J, labels: &[(&str, &str)]) -> Vec<PatchAdd> {
    let missing = job.metadata().labels.is_none() && !labels.is_empty();
    let map = missing.then(|| PatchAdd { path: "/metadata/labels".to_owned(), value: json!({}) });
    let each = labels.iter().map(|(key, value)| {
        let key = key.replace('~', "~0").replace('/', "~1");
        PatchAdd { path: format!("/metadata/labels/{key}"), value: json!(value) }
    });
    map.into_iter().chain(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Job;

    fn job(queue: &str, suspend: bool) -> Job {
        let labels = if queue.is_empty() { json!({}) } else { json!({ QUEUE_NAME: queue }) };
        let job = json!({ "metadata": { "labels": labels }, "spec": { "suspend": suspend } });
        serde_json::from_value(job).expect("a Job decodes")
    }

    fn labels(job: &Job, around: DefaultingFacts) -> usize {
        let steps = default(job, around, JobGates::default());
        steps.iter().filter(|step| step.path.starts_with("/metadata/labels/")).count()
    }

    #[test]
    fn a_job_whose_owner_is_of_a_managed_kind_gets_no_labels() {
        let around = DefaultingFacts {
            default_local_queue: true,
            default_priority_class: true,
            namespace_managed: true,
            ..DefaultingFacts::default()
        };
        assert_eq!(labels(&job("", false), around), 2);
        let owned = DefaultingFacts { owner_managed: true, ..around };
        assert_eq!(labels(&job("", false), owned), 0);
        let below = DefaultingFacts { ancestor_managed: true, ..around };
        assert_eq!(labels(&job("", false), below), 2, "only the nearest owner counts");
    }

    #[test]
    fn only_what_changes_something_is_asked_for() {
        let none = DefaultingFacts { namespace_managed: true, ..DefaultingFacts::default() };
        let queue = DefaultingFacts { default_local_queue: true, ..none };
        let all = DefaultingFacts { manage_without_queue_name: true, ..none };
        let other = DefaultingFacts { namespace_managed: false, ..all };
        for (job, around, namespace, ancestors) in [
            (job("", false), none, false, false),
            (job("q", false), none, false, true),
            (job("q", false), all, false, true),
            (job("q", true), all, false, false),
            (job("", false), queue, true, true),
            (job("", false), all, true, true),
            (job("", true), all, true, false),
            (job("", false), other, true, false),
        ] {
            let asked = (needs_namespace(&job, around), needs_ancestors(&job, around));
            assert_eq!(asked, (namespace, ancestors), "{job:?} {around:?}");
        }
    }
}
