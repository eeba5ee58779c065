//! Defaults of new pods (docs/reference/kueue.md §5.4).

use crds::names::{
    DEFAULT_WORKLOAD_PRIORITY_CLASS, MANAGED,
    annotations::{POD_GROUP_POD_INDEX_LABEL, ROLE_HASH},
    gates::{ADMISSION, TOPOLOGY},
    labels::{POD_GROUP_POD_INDEX, PRIORITY_CLASS, QUEUE_NAME},
};
use serde_json::{Value, json};

use super::{Pod, role_hash::role_hash, start_and_stop};
use crate::{
    GenericJob, JobGates,
    defaulting::{DefaultingFacts, PatchAdd, may_get_class, queue_name},
    start::pod_set_info::SCHEDULING_GATES,
};

/// Defaults of a new pod: a managed one is gated, marked, and kept by a finalizer.
#[must_use]
pub fn default(pod: &Pod, facts: DefaultingFacts, gates: JobGates) -> Vec<PatchAdd> {
    // The parent counts the pods itself, so that no finalizer has to keep them.
    if pod.has_suspending_parent() {
        return Changes::of(pod).held(gates).into_steps();
    }
    // Also a pod that names a queue: namespace and ancestors count first (docs/reference/kueue.md §5.4).
    if !facts.namespace_managed || facts.ancestor_managed {
        return Vec::new();
    }
    let mut changes = Changes::of(pod);
    let queue_name = queue_name(pod, facts);
    if queue_name != pod.queue_name() {
        changes.label(QUEUE_NAME, queue_name);
    }
    if !queue_name.is_empty() || facts.manage_without_queue_name {
        // Unlike a job, a pod that is not managed is left as it is.
        if may_get_class(pod, facts, gates) {
            changes.label(PRIORITY_CLASS, DEFAULT_WORKLOAD_PRIORITY_CLASS);
        }
        changes.label(MANAGED, "true");
        changes.finalizer();
        changes = changes.held(gates);
    }
    changes.into_steps()
}

/// Whether the defaults depend on the owners of a pod, which cost requests. All other facts must be set.
#[must_use]
pub fn needs_ancestors(pod: &Pod, facts: DefaultingFacts) -> bool {
    let without_ancestor = DefaultingFacts { ancestor_managed: false, ..facts };
    let managed = !queue_name(pod, without_ancestor).is_empty() || facts.manage_without_queue_name;
    !pod.has_suspending_parent() && facts.namespace_managed && managed
}

/// Steps of a patch of one pod.
struct Changes<'a> {
    pod: &'a Pod,
    labels: Vec<(&'a str, String)>,
    annotations: Vec<(&'a str, String)>,
    others: Vec<PatchAdd>,
}

impl<'a> Changes<'a> {
    fn of(pod: &'a Pod) -> Self {
        Self { pod, labels: Vec::new(), annotations: Vec::new(), others: Vec::new() }
    }

    fn label(&mut self, key: &'a str, value: &str) {
        if self.pod.label(key) != Some(value) {
            self.labels.push((key, value.to_owned()));
        }
    }

    fn finalizer(&mut self) {
        if !self.pod.has_finalizer() {
            let mut all = self.pod.metadata.finalizers.clone().unwrap_or_default();
            all.push(MANAGED.to_owned());
            self.set("/metadata/finalizers", json!(all));
        }
    }

    /// Gates, role, and the rank in the group.
    fn held(mut self, gates: JobGates) -> Self {
        let mut names: Vec<&str> = start_and_stop::gates(&self.pod.spec).collect();
        let n_gates = names.len();
        let ours = [(ADMISSION, true), (TOPOLOGY, gates.topology)];
        for (gate, _) in ours.into_iter().filter(|(_, enabled)| *enabled) {
            // The API refuses two gates of one name.
            if !names.contains(&gate) {
                names.push(gate);
            }
        }
        if names.len() > n_gates {
            let listed: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
            self.set(&format!("/spec/{SCHEDULING_GATES}"), Value::Array(listed));
        }
        // A role that is set already stays: sets give their pods roles of their own (docs/reference/kueue.md §5.4).
        if self.pod.annotation(ROLE_HASH).is_none() {
            self.annotations.push((ROLE_HASH, role_hash(&self.pod.spec)));
        }
        if let Some(key) = self.pod.annotation(POD_GROUP_POD_INDEX_LABEL).filter(|_| gates.topology)
        {
            self.label(POD_GROUP_POD_INDEX, self.pod.label(key).unwrap_or_default());
        }
        self
    }

    fn set(&mut self, path: &str, value: Value) {
        self.others.push(PatchAdd { path: path.to_owned(), value });
    }

    fn into_steps(self) -> Vec<PatchAdd> {
        let metadata = &self.pod.metadata;
        let mut steps = map_entries("labels", metadata.labels.is_none(), &self.labels);
        let no_annotations = metadata.annotations.is_none();
        steps.extend(map_entries("annotations", no_annotations, &self.annotations));
        steps.extend(self.others);
        steps
    }
}

/// Entries of a map of the metadata, and the map itself if it is absent.
fn map_entries(map: &str, absent: bool, entries: &[(&str, String)]) -> Vec<PatchAdd> {
    let empty = PatchAdd { path: format!("/metadata/{map}"), value: json!({}) };
    let created = (absent && !entries.is_empty()).then_some(empty);
    let each = entries.iter().map(|(key, value)| {
        // The tilde first, or that of an escaped slash would be escaped again.
        let key = key.replace('~', "~0").replace('/', "~1");
        PatchAdd { path: format!("/metadata/{map}/{key}"), value: json!(value) }
    });
    created.into_iter().chain(each).collect()
}
