//! Start, restore and stop of a declared job (docs/reference/kueue.md §7.7).
//!
//! A stop is one write: the switch and the templates change together, because the API of such kinds does not forbid a change
//! of templates while pods end. Where it does, the templates follow when no pod is active.

use std::collections::BTreeMap;

use crds::pod::PodTemplate;
use serde_json::{Value, json};

use super::{DeclaredJob, components, declared_pod_set::DeclaredPodSet, lookups};
use crate::{
    GenericJob,
    generic_job::StopWrite,
    start::admitted_infos::remove_identity,
    start::pod_set_info::{PodSetInfo, StartError},
};

impl DeclaredJob {
    /// Unsuspends the job with the infos of its pod sets, which may be those of a later slice. On an error the job is unchanged.
    pub(super) fn start(&mut self, infos: &[PodSetInfo], elastic: bool) -> Result<(), StartError> {
        let infos = self.bound_to_hosts(infos);
        let components = self.fields().and_then(|fields| fields.components.clone());
        let expected = components
            .as_ref()
            .map_or(self.resolved.pod_sets.len(), |at| components::n_wrapped(at, &self.object));
        if infos.len() != expected {
            return Err(StartError::WrongNumber { expected, admitted: infos.len() });
        }
        if let Some(spark) = self.spark().cloned() {
            spark.start(&mut self.object, &infos)?;
            self.read_again();
            self.set_suspended(false);
            return Ok(());
        }
        let sets = &self.resolved.pod_sets;
        let infos = if self.training().is_some() {
            by_name(sets, &infos)?
        } else {
            let named = permuted(sets, &infos).filter(|_| elastic || keeps_counts(sets, &infos));
            named.unwrap_or_else(|| infos.iter().collect())
        };
        // All pod sets are merged before any is written: a conflict of the last one leaves the job as it is.
        let mut templates = Vec::with_capacity(infos.len());
        let mut additions = Vec::new();
        for (set, info) in self.resolved.pod_sets.iter().zip(infos) {
            // An entry of an earlier start is replaced: it adds nothing to the next one.
            let before = set.base.as_ref().filter(|_| self.training().is_some());
            let mut template = before.unwrap_or(&set.template).clone();
            info.merge_into(&mut template, elastic)?;
            templates.push(template);
            if set.base.is_some() {
                let mut added = PodTemplate::default();
                info.merge_into(&mut added, false)?;
                additions.push((set.at.clone(), added));
            }
        }
        set_templates(&mut self.object, &mut self.resolved.pod_sets, templates);
        // The template itself stands in another object, which many jobs share.
        if let Some(training) = self.training().cloned() {
            let added: Vec<PodTemplate> = additions.into_iter().map(|(_, added)| added).collect();
            training.write(&mut self.object, &self.resolved.pod_sets, &added);
        } else if components.is_some() {
            components::write_infos(&mut self.object, &additions);
        } else {
            additions.iter().for_each(|(at, added)| at.set(&mut self.object, json!(added)));
        }
        self.set_suspended(false);
        Ok(())
    }

    /// Restores the templates. Returns whether anything changed. A template without an info loses only the identity labels: they
    /// would conflict with the next start.
    pub(super) fn restore(&mut self, infos: &[PodSetInfo]) -> bool {
        if let Some(spark) = self.spark().cloned() {
            let changed = spark.restore(&mut self.object, infos);
            self.read_again();
            return changed;
        }
        let mut changed = self.remove_additions();
        let mut restorable;
        let (sets, infos) = if self.resolved.unresolved.is_none() {
            let sets = &mut self.resolved.pod_sets;
            let named = permuted(sets, infos).map(|all| all.into_iter().map(Some).collect());
            let infos = named.unwrap_or_else(|| of_same_number(sets, infos));
            (sets, infos)
        } else {
            restorable = lookups::restorable(self.parts());
            let infos = of_same_names(&restorable, infos);
            (&mut restorable, infos)
        };
        let mut templates: Vec<PodTemplate> = sets.iter().map(|set| set.template.clone()).collect();
        for (template, info) in templates.iter_mut().zip(infos) {
            changed |= match info {
                Some(info) => info.restore(template, |_| false),
                None => remove_identity(template),
            };
        }
        set_templates(&mut self.object, sets, templates);
        changed
    }

    /// Removes what a start has added to templates of other objects, also while these are missing.
    fn remove_additions(&mut self) -> bool {
        let rules = self.fields().map(|fields| fields.pod_sets.as_slice()).unwrap_or_default();
        let fields: Vec<_> = rules.iter().flat_map(|rule| rule.additions(&self.object)).collect();
        let mut changed = false;
        if let Some(at) = self.fields().and_then(|fields| fields.components.clone()) {
            changed |= components::remove_infos(&at, &mut self.object);
        }
        for field in fields {
            changed |= field.remove(&mut self.object);
        }
        if let Some(training) = self.training().cloned() {
            changed |= training.remove_additions(&mut self.object);
        }
        self.resolved.remove_additions();
        changed
    }

    /// The next write of a stop; `None` if the job has stopped, or has to wait for its pods.
    pub(super) fn stop(&self, infos: &[PodSetInfo]) -> Option<StopWrite<Self>> {
        let mut stopped = self.clone();
        let waits = self.spec_suspended() && self.is_active();
        if self.training().is_some() && !self.spec_suspended() {
            // What was added to pods stays until they are gone: the operator refuses the change before.
            stopped.set_suspended(true);
        } else if !self.is_suspended() && !waits {
            stopped.set_suspended(true);
            stopped.restore(infos);
        } else {
            return None;
        }
        Some(StopWrite::Object(Box::new(stopped)))
    }

    /// Whether the job still has what a start added to its pods, although it is suspended.
    pub(super) fn is_stopping(&self) -> bool {
        self.training().is_some_and(|training| training.has_additions(&self.object))
    }

    /// Writes the switch. False is written, too: without a value an operator keeps what it did.
    pub(super) fn set_suspended(&mut self, suspended: bool) {
        if let Some(at) = self.kind.suspend() {
            at.set(&mut self.object, Value::Bool(suspended));
        }
    }
}

fn set_templates(object: &mut Value, sets: &mut [DeclaredPodSet], templates: Vec<PodTemplate>) {
    for (set, after) in sets.iter_mut().zip(templates) {
        if set.template == after {
            continue;
        }
        // It stands in another object. The job has only what a start adds to it.
        if set.base.is_some() {
            set.template = after;
            continue;
        }
        let mut stored = set.at.get(object).cloned().unwrap_or(Value::Null);
        // The stored form keeps what the type writes differently, an explicit null or an empty map.
        carry_over(&mut stored, &json!(set.template), &json!(after));
        set.at.set(object, stored);
        set.template = after;
    }
}

/// The info of each pod set of a job, in its order; none with infos of another number of pod sets.
fn of_same_number<'a>(
    sets: &[DeclaredPodSet],
    infos: &'a [PodSetInfo],
) -> Vec<Option<&'a PodSetInfo>> {
    let is_same = infos.len() == sets.len();
    (0..sets.len()).map(|at| infos.get(at).filter(|_| is_same)).collect()
}

/// The only info with the name of each pod set: an unresolved job may lack pod sets of its Workload.
fn of_same_names<'a>(
    sets: &[DeclaredPodSet],
    infos: &'a [PodSetInfo],
) -> Vec<Option<&'a PodSetInfo>> {
    let info_of = |set: &DeclaredPodSet| {
        let n_sets = sets.iter().filter(|one| one.name == set.name).count();
        let mut named = infos.iter().filter(|info| info.name == set.name);
        let only = named.next().filter(|_| n_sets == 1);
        only.filter(|_| named.next().is_none())
    };
    sets.iter().map(info_of).collect()
}

/// Infos in the order of the pod sets of the same names. A runtime that was changed since renders its Jobs in another order.
fn by_name<'a>(
    sets: &[DeclaredPodSet],
    infos: &'a [PodSetInfo],
) -> Result<Vec<&'a PodSetInfo>, StartError> {
    let mut of_name = BTreeMap::new();
    for info in infos {
        let name = || info.name.clone();
        if !sets.iter().any(|set| set.name == info.name) {
            return Err(StartError::UnknownPodSet { name: name() });
        }
        if of_name.insert(info.name.as_str(), info).is_some() {
            return Err(StartError::RepeatedPodSet { name: name() });
        }
    }
    Ok(sets.iter().filter_map(|set| of_name.get(set.name.as_str()).copied()).collect())
}

/// The infos of a job that has the same pod sets in another order, in that order. `None` if the names of some are others.
fn permuted<'a>(sets: &[DeclaredPodSet], infos: &'a [PodSetInfo]) -> Option<Vec<&'a PodSetInfo>> {
    by_name(sets, infos).ok().filter(|named| named.len() == sets.len())
}

/// Whether infos go by their names only to pod sets of as many pods as the one in their place, which equivalence has compared them
/// with. Their own counts lack pods that have ended.
fn keeps_counts(sets: &[DeclaredPodSet], infos: &[PodSetInfo]) -> bool {
    sets.iter().zip(infos).all(|(set, info)| {
        sets.iter().any(|named| named.name == info.name && named.count() == set.count())
    })
}

/// Changes `stored` by what differs between `before` and `after`.
fn carry_over(stored: &mut Value, before: &Value, after: &Value) {
    if before == after {
        return;
    }
    match (stored, before, after) {
        (Value::Object(stored), Value::Object(before), Value::Object(after)) => {
            for key in before.keys().filter(|key| !after.contains_key(*key)) {
                stored.remove(key);
            }
            for (key, after) in after {
                let before = before.get(key).unwrap_or(&Value::Null);
                carry_over(stored.entry(key.clone()).or_insert(Value::Null), before, after);
            }
        }
        (stored, _, after) => *stored = after.clone(),
    }
}
