//! Info of a pod set, after Kueue's `PodSetInfo`: what a start adds to a pod template and a stop restores
//! (docs/reference/kueue.md §7.7).
//!
//! A key with a different value is a permanent conflict: the job cannot be started as admitted.

use std::collections::BTreeMap;

use crds::{
    meta::Toleration,
    names::{
        annotations::{WORKLOAD, WORKLOAD_SLICE_NAME},
        labels::{CLUSTER_QUEUE_NAME, HOSTNAME, LOCAL_QUEUE_NAME},
    },
    pod::{PodSpec, PodTemplate},
    v1beta2::PodSet,
};
use serde_json::{Value, json};

use crate::start::node_affinity;

/// Pod field with the scheduling gates.
pub(crate) const SCHEDULING_GATES: &str = "schedulingGates";

/// Annotations that a new workload slice may overwrite.
const OF_SLICES: [&str; 2] = [WORKLOAD_SLICE_NAME, WORKLOAD];

/// Labels that it may overwrite. The template of a later slice is that of the started job, which may have changed its queue
/// since.
const QUEUES: [&str; 2] = [LOCAL_QUEUE_NAME, CLUSTER_QUEUE_NAME];

/// Why a job cannot be started as admitted. The error is permanent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The number of pod sets differs.
    #[error("invalid podset infos: expecting {expected} podsets, got {admitted}")]
    WrongNumber {
        /// Pod sets of the job.
        expected: usize,
        /// Pod sets of the admission.
        admitted: usize,
    },
    /// The admission has a pod set that the job does not have.
    #[error("invalid podset infos: the job has no podset {name:?}")]
    UnknownPodSet {
        /// Name of the pod set.
        name: String,
    },
    /// The admission has two pod sets of one name.
    #[error("invalid podset infos: podset {name:?} appears more than once")]
    RepeatedPodSet {
        /// Name of the pod set.
        name: String,
    },
    /// A key has a different value. The text is upstream's, also where no check is concerned.
    #[error(
        "invalid admission check PodSetUpdate: conflict for {kind}: conflict for key={key}, value1={old}, value2={new}"
    )]
    Conflict {
        /// The map: labels, annotations or nodeSelector.
        kind: &'static str,
        /// The key.
        key: String,
        /// The present value.
        old: String,
        /// The value to add.
        new: String,
    },
    /// A check contradicts the flavors or an earlier check.
    #[error("in admission check {check:?}: {conflict}")]
    OfCheck {
        /// Name of the check.
        check: String,
        /// The conflict.
        conflict: Box<Self>,
    },
}

/// Additions of a start, or the values before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodSetInfo {
    /// Name of the pod set.
    pub name: String,
    /// Number of pods.
    pub count: i32,
    /// Labels of the pods.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the pods.
    pub annotations: BTreeMap<String, String>,
    /// Node selector of the pods.
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
    /// Names of scheduling gates.
    pub scheduling_gates: Vec<String>,
    /// The only hosts that the pods may run on, if the agent of a worker has assigned any. One becomes part of the node selector.
    pub hosts: Vec<String>,
    /// The affinity of the pods, for a restore.
    pub affinity: Option<Value>,
}

impl PodSetInfo {
    /// The info of a Workload's pod set, for a restore.
    #[must_use]
    pub fn of(pod_set: &PodSet) -> Self {
        let metadata = pod_set.template.metadata.clone().unwrap_or_default().into_owned();
        let spec = pod_set.template.spec.clone().unwrap_or_default();
        Self {
            name: pod_set.name.clone(),
            count: pod_set.count.unwrap_or(1),
            labels: metadata.labels.into(),
            annotations: metadata.annotations.into_owned(),
            scheduling_gates: gates_of(&spec),
            hosts: Vec::new(),
            affinity: node_affinity::affinity_of(&spec).cloned(),
            node_selector: spec.node_selector.clone(),
            tolerations: spec.tolerations.clone(),
        }
    }

    /// The info for pods that can be bound to so many hosts: with more of them, to none.
    pub(crate) fn on_at_most(&self, n_hosts: usize) -> Self {
        let hosts = if self.hosts.len() > n_hosts { Vec::new() } else { self.hosts.clone() };
        Self { hosts, ..self.clone() }
    }

    /// Merges another info, with the rule of a template.
    pub(crate) fn add(&mut self, other: &Self) -> Result<(), StartError> {
        merge_map("annotations", &mut self.annotations, &other.annotations, &[])?;
        merge_map("labels", &mut self.labels, &other.labels, &[])?;
        merge_map("nodeSelector", &mut self.node_selector, &other.node_selector, &[])?;
        merge_tolerations(&mut self.tolerations, &other.tolerations);
        merge_gates(&mut self.scheduling_gates, &other.scheduling_gates);
        if !other.hosts.is_empty() {
            self.hosts.clone_from(&other.hosts);
        }
        self.affinity = None;
        Ok(())
    }

    /// Merges the info into a template. For an elastic job, slice annotations are overwritten.
    pub fn merge_into(&self, template: &mut PodTemplate, elastic: bool) -> Result<(), StartError> {
        // Without additions no empty metadata is made: it would differ from the template of the
        // job.
        if !self.labels.is_empty() || !self.annotations.is_empty() {
            let metadata = template.metadata.get_or_insert_default();
            let (queues, overwritten): (&[&str], &[&str]) =
                if elastic { (&QUEUES, &OF_SLICES) } else { (&[], &[]) };
            // The annotations are shared until they are changed.
            if !self.annotations.is_empty() {
                let annotations = &mut metadata.annotations;
                merge_map("annotations", annotations, &self.annotations, overwritten)?;
            }
            if !self.labels.is_empty() {
                metadata.labels.edit(|labels| merge_map("labels", labels, &self.labels, queues))?;
            }
        }
        let spec: &mut PodSpec = template.spec.get_or_insert_default();
        merge_map("nodeSelector", &mut spec.node_selector, &self.node_selector, &[])?;
        merge_tolerations(&mut spec.tolerations, &self.tolerations);
        let mut gates = gates_of(spec);
        merge_gates(&mut gates, &self.scheduling_gates);
        set_gates(spec, &gates);
        match &*self.hosts {
            [] => {}
            // Every kind of job carries a node selector.
            [host] => {
                let selector = [(HOSTNAME.to_owned(), host.clone())].into();
                merge_map("nodeSelector", &mut spec.node_selector, &selector, &[])?;
            }
            hosts => node_affinity::require_hosts(spec, hosts),
        }
        Ok(())
    }

    /// Restores a template to the info, except labels for which `keeps` is true. Returns whether it changed.
    pub fn restore(&self, template: &mut PodTemplate, keep: impl Fn(&str) -> bool) -> bool {
        let before = template.clone();
        let metadata = template.metadata.get_or_insert_default();
        metadata.labels.edit(|labels| {
            labels.retain(|key, _| keep(key));
            for (key, value) in &self.labels {
                // A label that is kept has the Job controller's value, which that of the Workload must
                // not replace.
                labels.entry(key.clone()).or_insert_with(|| value.clone());
            }
        });
        if *metadata.annotations != self.annotations {
            metadata.annotations = self.annotations.clone().into();
        }
        let spec = template.spec.get_or_insert_default();
        spec.node_selector.clone_from(&self.node_selector);
        spec.tolerations.clone_from(&self.tolerations);
        set_gates(spec, &self.scheduling_gates);
        node_affinity::restore(spec, self.affinity.as_ref());
        // The template of a Workload without metadata has none either; an empty one would differ from it.
        if before.metadata.is_none() && template.metadata == Some(Default::default()) {
            template.metadata = None;
        }
        *template != before
    }
}

fn merge_map(
    kind: &'static str,
    into: &mut BTreeMap<String, String>,
    from: &BTreeMap<String, String>,
    overwritten: &[&str],
) -> Result<(), StartError> {
    for (key, new) in from {
        let old = into.get(key).filter(|old| *old != new);
        if let Some(old) = old.filter(|_| !overwritten.contains(&key.as_str())) {
            let (key, old, new) = (key.clone(), old.clone(), new.clone());
            return Err(StartError::Conflict { kind, key, old, new });
        }
        into.insert(key.clone(), new.clone());
    }
    Ok(())
}

fn merge_tolerations(into: &mut Vec<Toleration>, from: &[Toleration]) {
    for toleration in from {
        if !into.iter().any(|known| tolerate_the_same(known, toleration)) {
            into.push(toleration.clone());
        }
    }
}

fn merge_gates(into: &mut Vec<String>, from: &[String]) {
    for gate in from {
        if !into.contains(gate) {
            into.push(gate.clone());
        }
    }
}

/// Whether two tolerations are equal. Without an operator it is `Equal`.
fn tolerate_the_same(one: &Toleration, other: &Toleration) -> bool {
    let with_operator = |one: &Toleration| {
        let mut one = one.clone();
        if one.operator.is_empty() {
            one.operator = "Equal".to_owned();
        }
        one
    };
    one == other || with_operator(one) == with_operator(other)
}

fn gates_of(spec: &PodSpec) -> Vec<String> {
    let gates = spec.rest.get(SCHEDULING_GATES).and_then(Value::as_array);
    let names = gates.into_iter().flatten().filter_map(|gate| gate.get("name")?.as_str());
    names.map(str::to_owned).collect()
}

fn set_gates(spec: &mut PodSpec, gates: &[String]) {
    if gates.is_empty() {
        spec.rest.remove(SCHEDULING_GATES);
        return;
    }
    let gates = gates.iter().map(|name| json!({ "name": name })).collect();
    spec.rest.insert(SCHEDULING_GATES.to_owned(), Value::Array(gates));
}
