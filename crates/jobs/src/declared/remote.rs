//! A declared job and its copy on a worker (docs/reference/multikueue.md §2.7).

use crds::v1beta2::PodSet;
use serde_json::{Map, Value, json};

use super::{
    DeclaredJob, Outcome, Probe, declared_pod_set::DeclaredPodSet, training::TrainingSpec,
};
use crate::{
    GenericJob, dispatch::remote_objects::metadata_for_creation, pod_counts::count,
    pointer::Pointer, start::pod_set_info::PodSetInfo,
};

impl DeclaredJob {
    /// The copy for a worker: suspended, without fields of this cluster; of an elastic job with the counts of its Workload.
    pub(super) fn for_worker(&self, pod_sets: &[PodSet], elastic: bool) -> Self {
        let mut copy = self.clone();
        let infos: Vec<PodSetInfo> = pod_sets.iter().map(PodSetInfo::of).collect();
        // The hub's job may be started already; the worker merges the flavors itself. A start changes the pods of a set only.
        if self.kind.pods().is_none() {
            copy.restore(&infos);
        }
        if elastic {
            copy.set_group_sizes(pod_sets);
        }
        copy.write_counted_replicas(pod_sets);
        copy.metadata = metadata_for_creation(&self.metadata);
        copy.set_status(None);
        copy.set_suspended(true);
        if let Some(managed_by) = self.kind.managed_by() {
            // On the worker the kind's own controller runs the copy.
            managed_by.at.remove(&mut copy.object);
        }
        if let Some(fields) = self.kind.fields() {
            for field in &fields.remote.strip {
                field.remove(&mut copy.object);
            }
            if let Some(training) = &fields.training {
                training.remove_entry(&mut copy.object);
            }
            let annotations = copy.metadata.annotations.iter_mut();
            annotations.for_each(|all| {
                all.retain(|key, _| !fields.remote.strip_annotations.contains(key));
            });
        }
        copy
    }

    /// Gives the groups the counts of these pod sets: the job may have another size by now than its Workload.
    fn set_group_sizes(&mut self, pod_sets: &[PodSet]) {
        let Some(sizes) = self.group_sizes() else { return };
        let granted = |name: &str| pod_sets.iter().find(|set| set.name == name)?.count;
        let list = sizes.granted(granted);
        sizes.rule.each.set(&mut self.object, list);
        self.read_again();
    }

    /// Writes the replicas that count, where the Workload has their number of pods: the operator runs no other number, and a worker
    /// with another version of Kueue compares the number that is written with the clone.
    fn write_counted_replicas(&mut self, pod_sets: &[PodSet]) {
        let is_counted = |set: &&DeclaredPodSet| {
            pod_sets.iter().any(|one| one.name == set.name && count(one) == set.count())
        };
        let counted = self.resolved.pod_sets.iter().filter(is_counted);
        let fields = counted.flat_map(|set| {
            let written = set.written.iter().flat_map(|written| &written.at);
            written.map(|at| (at.clone(), set.replicas))
        });
        let fields: Vec<(Pointer, i32)> = fields.collect();
        for (at, replicas) in &fields {
            at.set(&mut self.object, json!(replicas));
        }
        if !fields.is_empty() {
            self.read_again();
        }
    }

    /// The fields of its copy's spec that no longer are as in this job; `None` if all are.
    pub(super) fn forwarded(&self, copy: &Self) -> Option<Value> {
        let fields = self.kind.fields()?;
        let differs = |at: &&Pointer| at.get(&self.object) != at.get(&copy.object);
        let mut changed = json!({});
        for at in fields.remote.forward.iter().filter(differs) {
            // A merge patch removes what is null.
            at.set(&mut changed, at.get(&self.object).cloned().unwrap_or_default());
        }
        changed.get_mut("spec").map(Value::take)
    }

    /// The job with the status of its copy.
    pub(super) fn with_status_of(&self, copy: &Self) -> Self {
        let mut job = self.clone();
        // The status of a set is that of its own cluster.
        if self.set_size().is_none() && !self.keeps_status_beside(copy) {
            job.set_status(copy.object.get("status").cloned());
        }
        job
    }

    /// The job with a status without active pods; `None` if it is that already. The status was that of a copy which is gone, so nothing
    /// of it stays: conditions would show a job that waits as running. A result stays, and the status of a set is that of its own
    /// cluster.
    pub(super) fn idle(&self) -> Option<Self> {
        self.kind.fields()?;
        if self.finished().is_some() || self.set_size().is_some() {
            return self.idle_counts();
        }
        self.shown_status()?;
        let mut idle = self.clone();
        idle.set_status(None);
        Some(idle)
    }

    /// The job with no active pods in its status, where all other fields stay; `None` if it has none already.
    pub(crate) fn idle_counts(&self) -> Option<Self> {
        let fields = self.kind.fields()?;
        let mut idle = self.clone();
        // All: a readiness that stays would show the pods of the next admission as ready for a moment.
        let counts = self.training().map(TrainingSpec::ready_counts);
        let probes = std::iter::once(&fields.active).chain(&fields.ready).chain(&counts);
        probes.for_each(|probe| probe.clear(&mut idle.object));
        (idle.object != self.object).then_some(idle)
    }

    /// The types of conditions that its kind reads.
    pub(crate) fn read_conditions(&self) -> Vec<&str> {
        let Some(fields) = self.kind.fields() else { return vec![] };
        let outcomes = fields.outcomes.iter().flat_map(|outcome| match outcome {
            Outcome::Condition { r#type, .. } => vec![r#type.as_str()],
            Outcome::FirstCondition { succeeded, failed } => {
                succeeded.iter().chain(failed).map(String::as_str).collect()
            }
            Outcome::Values { when, .. } => {
                when.iter().filter_map(|question| question.read_condition()).collect()
            }
        });
        let probes = std::iter::once(&fields.active).chain(&fields.ready);
        outcomes.chain(probes.filter_map(Probe::read_condition)).collect()
    }

    pub(crate) fn set_status(&mut self, status: Option<Value>) {
        let Value::Object(fields) = &mut self.object else { return };
        match status {
            Some(status) => fields.insert("status".to_owned(), status),
            None => fields.remove("status"),
        };
    }

    /// Whether the status is that of a copy. None is an empty one.
    pub(crate) fn has_status_of(&self, copy: &Self) -> bool {
        self.keeps_status_beside(copy) || self.shown_status() == copy.shown_status()
    }

    /// The status, if it has any field.
    fn shown_status(&self) -> Option<&Value> {
        let status = self.object.get("status")?;
        let is_empty = status.is_null() || status.as_object().is_some_and(Map::is_empty);
        (!is_empty).then_some(status)
    }

    /// Whether the status stays although the copy has another one: a mirrored copy without a status says nothing, as upstream's.
    fn keeps_status_beside(&self, copy: &Self) -> bool {
        self.kind.is_mirrored() && !copy.object.get("status").is_some_and(Value::is_object)
    }

    /// Everything but the metadata.
    pub(crate) fn stored(&self) -> &Value {
        &self.object
    }
}
