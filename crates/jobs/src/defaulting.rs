//! Defaults of new jobs (docs/reference/kueue.md §5.3).

use crds::names::{
    DEFAULT_LOCAL_QUEUE, DEFAULT_WORKLOAD_PRIORITY_CLASS, MULTI_KUEUE_CONTROLLER,
    labels::{PRIORITY_CLASS, QUEUE_NAME},
};
use serde_json::{Value, json};

use crate::{GenericJob, JobGates, pointer::Pointer};

/// Facts about namespace, owners and queue of a new job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each fact is independent of the others")]
pub struct DefaultingFacts {
    /// The namespace has a default LocalQueue.
    pub default_local_queue: bool,
    /// A default WorkloadPriorityClass exists.
    pub default_priority_class: bool,
    /// The kind of the job's controller is managed.
    pub owner_managed: bool,
    /// An ancestor of the job is managed.
    pub ancestor_managed: bool,
    /// The namespace matches `managedJobsNamespaceSelector`.
    pub namespace_managed: bool,
    /// The namespace does not match `localQueueDefaultingNamespaceSelector`: its jobs name a queue or have none.
    pub without_queue_defaulting: bool,
    /// Value of `manageJobsWithoutQueueName`.
    pub manage_without_queue_name: bool,
    /// The LocalQueue leads to a ClusterQueue with a MultiKueue check.
    pub queue_uses_multi_kueue: bool,
}

/// An `add` operation of a JSON patch.
#[derive(Clone, Debug, PartialEq)]
pub struct PatchAdd {
    /// JSON pointer.
    pub path: String,
    /// The value.
    pub value: Value,
}

impl PatchAdd {
    /// The operation as JSON; `add` also replaces.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "op": "add", "path": self.path, "value": self.value })
    }
}

/// Defaults of a new job.
pub fn default<J: GenericJob>(job: &J, facts: DefaultingFacts, gates: JobGates) -> Vec<PatchAdd> {
    let queue_name = queue_name(job, facts);
    // In the order of Kueue (docs/reference/kueue.md §5.3): the queue name, also a default one,
    // decides whether the job is suspended.
    let mut labels = Vec::new();
    if queue_name != job.queue_name() {
        labels.push((QUEUE_NAME, queue_name));
    }
    if facts.namespace_managed && may_get_class(job, facts, gates) {
        labels.push((PRIORITY_CLASS, DEFAULT_WORKLOAD_PRIORITY_CLASS));
    }
    let mut steps = set_labels(job, &labels);
    if let Some(switch) = job.kind().suspend()
        && !job.spec_suspended()
        && must_suspend(queue_name, facts)
    {
        add_field(job, switch, json!(true), &mut steps);
    }
    // managedBy is immutable: a job without it at creation can never be dispatched.
    if let Some(managed_by) = job.kind().managed_by()
        && facts.queue_uses_multi_kueue
        && queue_to_route_by(job, facts).is_some()
    {
        add_field(job, &managed_by.at, json!(MULTI_KUEUE_CONTROLLER), &mut steps);
    }
    steps.extend(job.defaults(gates));
    steps
}

/// Whether the job gets the default WorkloadPriorityClass, provided that its namespace is managed.
pub(crate) fn may_get_class<J: GenericJob>(
    job: &J,
    facts: DefaultingFacts,
    gates: JobGates,
) -> bool {
    let names_class = job.label(PRIORITY_CLASS).is_some_and(|class| !class.is_empty());
    let has_default = gates.default_priority_class && facts.default_priority_class;
    has_default && !facts.owner_managed && !names_class
}

/// Whether the defaults depend on the labels of the namespace, which may cost a request.
pub fn needs_namespace<J: GenericJob>(job: &J, facts: DefaultingFacts, gates: JobGates) -> bool {
    let by_queue = facts.default_local_queue || facts.manage_without_queue_name;
    (job.queue_name().is_empty() && by_queue) || may_get_class(job, facts, gates)
}

/// Whether the defaults depend on `ancestor_managed`, which costs requests. All other facts must be set.
pub fn needs_ancestors<J: GenericJob>(job: &J, facts: DefaultingFacts) -> bool {
    !job.spec_suspended() && may_suspend(job, facts)
}

/// Whether the job is held unless an ancestor is managed.
pub(crate) fn may_suspend<J: GenericJob>(job: &J, facts: DefaultingFacts) -> bool {
    let without_ancestor = DefaultingFacts { ancestor_managed: false, ..facts };
    must_suspend(queue_name(job, without_ancestor), without_ancestor)
}

/// The LocalQueue whose route decides the defaults, if any. All other facts must be set.
pub fn queue_to_route_by<J: GenericJob>(job: &J, facts: DefaultingFacts) -> Option<&str> {
    let can_route = job.kind().managed_by().is_some() && !job.is_managed_elsewhere();
    Some(queue_name(job, facts)).filter(|name| can_route && !name.is_empty())
}

/// Queue name after defaulting; empty for none.
pub(crate) fn queue_name<J: GenericJob>(job: &J, facts: DefaultingFacts) -> &str {
    let own = job.queue_name();
    // A child of a managed owner has no queue of its own: it runs with the Workload of the owner
    // (docs/reference/kueue.md §5.3, §7.3 row 0g).
    let in_namespace = facts.namespace_managed && !facts.without_queue_defaulting;
    let gets_default = facts.default_local_queue && in_namespace && !facts.owner_managed;
    if own.is_empty() && gets_default { DEFAULT_LOCAL_QUEUE } else { own }
}

/// Adds a field, and the objects around it that are absent and that no earlier step added.
pub(crate) fn add_field<J: GenericJob>(
    job: &J,
    at: &Pointer,
    value: Value,
    steps: &mut Vec<PatchAdd>,
) {
    for parent in at.parents() {
        let path = parent.to_string();
        if !job.has_field(&parent) && steps.iter().all(|step| step.path != path) {
            steps.push(PatchAdd { path, value: json!({}) });
        }
    }
    steps.push(PatchAdd { path: at.to_string(), value });
}

/// The job with the labels that these steps set.
pub(crate) fn with_labels<J: GenericJob + Clone>(job: &J, steps: &[PatchAdd]) -> J {
    let mut labelled = job.clone();
    for key in [QUEUE_NAME, PRIORITY_CLASS] {
        let path = format!("/metadata/labels/{}", key.replace('/', "~1"));
        let step = steps.iter().find(|step| step.path == path);
        if let Some(value) = step.and_then(|step| step.value.as_str()) {
            let labels = labelled.metadata_mut().labels.get_or_insert_default();
            labels.insert(key.to_owned(), value.to_owned());
        }
    }
    labelled
}

/// A job with a managed ancestor starts together with it.
pub(crate) fn must_suspend(queue_name: &str, facts: DefaultingFacts) -> bool {
    let managed =
        !queue_name.is_empty() || (facts.manage_without_queue_name && facts.namespace_managed);
    managed && !facts.ancestor_managed
}

fn set_labels<J: GenericJob>(job: &J, labels: &[(&str, &str)]) -> Vec<PatchAdd> {
    let no_labels = job.metadata().labels.is_none() && !labels.is_empty();
    let map = no_labels.then(|| PatchAdd { path: "/metadata/labels".to_owned(), value: json!({}) });
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

    fn labels(job: &Job, facts: DefaultingFacts) -> usize {
        let steps = default(job, facts, JobGates::default());
        steps.iter().filter(|step| step.path.starts_with("/metadata/labels/")).count()
    }

    #[test]
    fn a_job_with_a_managed_owner_gets_no_labels() {
        let facts = DefaultingFacts {
            default_local_queue: true,
            default_priority_class: true,
            namespace_managed: true,
            ..DefaultingFacts::default()
        };
        assert_eq!(labels(&job("", false), facts), 2);
        let owned = DefaultingFacts { owner_managed: true, ..facts };
        assert_eq!(labels(&job("", false), owned), 0);
        let below = DefaultingFacts { ancestor_managed: true, ..facts };
        assert_eq!(labels(&job("", false), below), 2, "only the nearest owner counts");
    }

    #[test]
    fn a_namespace_outside_the_selector_gets_no_default_class() {
        let class = DefaultingFacts { default_priority_class: true, ..DefaultingFacts::default() };
        let managed = DefaultingFacts { namespace_managed: true, ..class };
        for queue in ["", "q"] {
            let job = job(queue, false);
            assert_eq!((labels(&job, managed), labels(&job, class)), (1, 0), "{queue}");
        }
    }

    /// The queue that a Job and a pod get, and whether they are held.
    fn queued(facts: DefaultingFacts) -> [(bool, bool); 2] {
        let pod = json!({"metadata": {}, "spec": {"containers": []}});
        let pod: crate::Pod = serde_json::from_value(pod).expect("a pod decodes");
        let gates = JobGates::default();
        let steps = [
            default(&job("", false), facts, gates),
            crate::pods::defaulting::default(&pod, facts, gates),
        ];
        steps.map(|steps| {
            let has = |part: &str| steps.iter().any(|step| step.path.contains(part));
            (has("queue-name"), has("/spec/"))
        })
    }

    #[test]
    fn a_namespace_outside_the_selector_gets_no_default_queue() {
        let facts = DefaultingFacts {
            default_local_queue: true,
            namespace_managed: true,
            ..DefaultingFacts::default()
        };
        assert_eq!(queued(facts), [(true, true); 2]);
        let outside = DefaultingFacts { without_queue_defaulting: true, ..facts };
        assert_eq!(queued(outside), [(false, false); 2]);
        let held = DefaultingFacts { manage_without_queue_name: true, ..outside };
        assert_eq!(queued(held), [(false, true); 2], "held without a queue");
        let unmanaged = DefaultingFacts { namespace_managed: false, ..facts };
        assert_eq!(queued(unmanaged), [(false, false); 2]);
    }

    #[test]
    fn only_facts_that_change_the_defaults_are_needed() {
        let none = DefaultingFacts { namespace_managed: true, ..DefaultingFacts::default() };
        let queue = DefaultingFacts { default_local_queue: true, ..none };
        let class = DefaultingFacts { default_priority_class: true, ..none };
        let owned = DefaultingFacts { owner_managed: true, ..class };
        let gates = JobGates::default();
        let all = DefaultingFacts { manage_without_queue_name: true, ..none };
        let other = DefaultingFacts { namespace_managed: false, ..all };
        for (job, facts, namespace, ancestors) in [
            (job("", false), none, false, false),
            (job("q", false), none, false, true),
            (job("q", false), class, true, true),
            (job("q", false), owned, false, true),
            (job("q", false), all, false, true),
            (job("q", true), all, false, false),
            (job("", false), queue, true, true),
            (job("", false), all, true, true),
            (job("", true), all, true, false),
            (job("", false), other, true, false),
        ] {
            let asked = (needs_namespace(&job, facts, gates), needs_ancestors(&job, facts));
            assert_eq!(asked, (namespace, ancestors), "{job:?} {facts:?}");
        }
        let off = JobGates { default_priority_class: false, ..gates };
        assert!(!needs_namespace(&job("q", false), class, off));
    }
}
