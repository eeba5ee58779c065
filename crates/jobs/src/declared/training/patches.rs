//! The entry of Kueue in the patches of a job: what a start adds to the pods.

use crds::{pod::PodTemplate, v1beta2::PodSet};
use serde_json::{Value, json};

use super::{
    super::declared_pod_set::{DeclaredPodSet, decode_template},
    TrainingSpec,
};
use crate::{pointer::Pointer, start::pod_set_info::PodSetInfo};

/// The list of patches in the spec of a job.
const PATCHES: &str = "runtimePatches";

/// What upstream says about a CRD without the field, from which the API server drops it.
pub(super) const OUTDATED_CRD: &str = "TrainJob CRD does not support the 'runtimePatches' field. This field is required by Kueue and was added \
                            in Kubeflow Trainer v2.2.0. Currently installed TrainJob CRD appears to be v2.1 or earlier. Please \
                            upgrade Kubeflow Trainer to v2.2.0 or later. See: \
                            https://github.com/kubeflow/trainer/releases/tag/v2.2.0";

impl TrainingSpec {
    /// Where the patches of a job stand.
    pub(in crate::declared) fn patches(&self) -> Pointer {
        self.job.join(&Pointer::of(&[PATCHES]))
    }

    fn entries<'a>(&self, object: &'a Value) -> &'a [Value] {
        let patches = self.patches().get(object).and_then(Value::as_array);
        patches.map(Vec::as_slice).unwrap_or_default()
    }

    /// All patches but that of Kueue.
    pub(super) fn patches_of_others<'a>(
        &self,
        object: &'a Value,
    ) -> impl Iterator<Item = &'a Value> {
        self.entries(object).iter().filter(|entry| entry["manager"] != self.manager)
    }

    pub(super) fn own<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.entries(object).iter().find(|entry| entry["manager"] == self.manager)
    }

    /// What a start has added to the pods of a replicated Job.
    pub(super) fn added_to<'a>(&self, object: &'a Value, job: &str) -> Option<&'a Value> {
        let mut jobs = added(self.own(object)?).iter();
        jobs.find(|one| one["name"] == job).map(|one| &one["template"]["spec"]["template"])
    }

    /// Whether the pods still have what a start added to them.
    pub(in crate::declared) fn has_additions(&self, object: &Value) -> bool {
        self.own(object).is_some_and(|entry| !added(entry).is_empty())
    }

    /// Whether two objects have the same additions of a start. The API may have set further fields in stored ones.
    pub(in crate::declared) fn same_additions(
        &self,
        one: &Value,
        other: &Value,
        sets: &[DeclaredPodSet],
    ) -> bool {
        let infos = |object| {
            let infos = sets.iter().map(|set| self.info_of(object, set.operator_name()));
            infos.collect::<Option<Vec<PodSetInfo>>>()
        };
        let n_added = |object| self.own(object).map_or(0, |entry| added(entry).len());
        n_added(one) == n_added(other) && infos(one).is_some_and(|one| infos(other) == Some(one))
    }

    /// What a start has added to a pod set; `None` if there is none, or it does not decode.
    fn info_of(&self, object: &Value, name: &str) -> Option<PodSetInfo> {
        let added = self.added_to(object, name)?;
        let template = decode_template(Some(added), &Pointer::of(&[name])).ok()?;
        Some(PodSetInfo::of(&PodSet { template, ..PodSet::default() }))
    }

    /// The patches of a new job: with an entry for Kueue, which a start fills. `None` if it is there.
    pub(in crate::declared) fn with_entry(&self, object: &Value) -> Option<Value> {
        if self.own(object).is_some() {
            return None;
        }
        let entries = self.entries(object).iter().cloned();
        Some(entries.chain([self.entry(&[])]).collect())
    }

    /// Writes what a start adds to the pods of each pod set.
    pub(in crate::declared) fn write(
        &self,
        object: &mut Value,
        sets: &[DeclaredPodSet],
        added: &[PodTemplate],
    ) {
        let jobs: Vec<Value> = sets
            .iter()
            .zip(added)
            .map(|(set, added)| {
                let mut added = added.clone();
                // The operator replaces the whole list.
                if added.spec.as_ref().is_some_and(|spec| !spec.tolerations.is_empty())
                    && let (Some(added), Some(all)) = (&mut added.spec, &set.template.spec)
                {
                    added.tolerations.clone_from(&all.tolerations);
                }
                json!({ "name": set.operator_name(), "template": { "spec": { "template": added } } })
            })
            .collect();
        self.set_entry(object, self.entry(&jobs));
    }

    /// Empties the entry. Returns whether it had anything.
    pub(in crate::declared) fn remove_additions(&self, object: &mut Value) -> bool {
        let had_any = self.has_additions(object);
        if had_any {
            self.set_entry(object, self.entry(&[]));
        }
        had_any
    }

    /// Removes the entry: a copy on a worker gets its own.
    pub(in crate::declared) fn remove_entry(&self, object: &mut Value) {
        let others: Vec<Value> = self.patches_of_others(object).cloned().collect();
        if others.is_empty() {
            self.patches().remove(object);
        } else {
            self.patches().set(object, Value::Array(others));
        }
    }

    fn set_entry(&self, object: &mut Value, entry: Value) {
        let mut entries = self.entries(object).to_vec();
        match entries.iter_mut().find(|one| one["manager"] == self.manager) {
            Some(own) => *own = entry,
            // A job that no webhook has seen.
            None => entries.push(entry),
        }
        self.patches().set(object, Value::Array(entries));
    }

    fn entry(&self, jobs: &[Value]) -> Value {
        let spec = if jobs.is_empty() { json!({}) } else { json!({ "replicatedJobs": jobs }) };
        json!({ "manager": self.manager, "trainingRuntimeSpec": { "template": { "spec": spec } } })
    }
}

/// The replicated Jobs of an entry.
fn added(entry: &Value) -> &[Value] {
    let jobs = entry["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"].as_array();
    jobs.map(Vec::as_slice).unwrap_or_default()
}
