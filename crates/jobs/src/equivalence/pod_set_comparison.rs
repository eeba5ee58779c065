//! Comparison of the pod sets of a job with those of its Workload (docs/reference/kueue.md §7.4).

use std::borrow::Cow;

use crds::{
    pod::{Container, PodSpec, PodTemplate, SharedResources},
    template_defaults::same_container_fields,
    v1beta2::{PodSet, Workload},
};
use serde_json::Value;

use crate::{GenericJob, JobGates, pod_counts::count, start::pod_set_info::PodSetInfo};

/// How counts are compared.
#[derive(Clone, Copy)]
pub(super) enum ComparedCounts {
    Ignored,
    /// Those of pod sets in the same place, as upstream does.
    InOrder,
    /// Those of pod sets of the same name. An elastic job is resized and started by names.
    ByName,
}

impl ComparedCounts {
    /// Whether the count of a Workload's pod set is that of a job with these pod sets, of which `set` is in the same place.
    fn same(self, wanted: &PodSet, set: &PodSet, sets: &[PodSet]) -> bool {
        let set = match self {
            Self::Ignored => return true,
            Self::InOrder => set,
            Self::ByName => sets.iter().find(|one| one.name == wanted.name).unwrap_or(set),
        };
        count(set) == count(wanted)
    }
}

/// The pod sets of a job, and those that another version has for it, if these are accepted as well. That version may differ in some of
/// the pod sets alone, so each of them may have either form.
#[derive(Clone, Copy)]
struct EitherPodSets<'a> {
    sets: &'a [PodSet],
    written: &'a [PodSet],
}

/// What is compared of pod sets.
#[derive(Clone, Copy)]
pub(super) struct PodSetComparison {
    counts: ComparedCounts,
    /// The pod sets may be those of another version as well.
    as_written: bool,
    tolerations: bool,
    gates: JobGates,
}

impl PodSetComparison {
    /// Tolerations are not compared once the Workload is admitted (docs/reference/kueue.md §7.4).
    pub(super) fn of(workload: &Workload, counts: ComparedCounts, gates: JobGates) -> Self {
        Self { counts, as_written: false, tolerations: !workload.is_admitted(), gates }
    }

    /// The comparison in which the pod sets may be those of another version as well.
    pub(super) fn as_written(self) -> Self {
        Self { as_written: true, ..self }
    }

    /// Whether the pod sets of a job are those of its Workload.
    ///
    /// A Workload with quota and a clone may have the pod sets that another version has for the job: an upgrade stops no job that
    /// runs, and managers and workers need not have one version.
    pub(super) fn same_pods<J: GenericJob>(
        self,
        job: &J,
        workload: &Workload,
        infos: Option<&[PodSetInfo]>,
    ) -> bool {
        let sets = job.pod_sets(self.gates);
        let wanted = &workload.spec.pod_sets;
        let forms = match infos {
            Some(infos) => self.forms_with_quota(job, wanted, infos),
            None => vec![Cow::Borrowed(&**wanted)],
        };
        let same = |written: &[PodSet]| {
            let theirs = EitherPodSets { sets: &sets, written };
            forms.iter().any(|form| self.same_sets(form, theirs))
        };
        let as_written = self.as_written || infos.is_some();
        let other_form = || job.pod_sets_as_written(self.gates).filter(|_| as_written);
        same(&[]) || other_form().is_some_and(|written| same(&written))
    }

    /// With quota reserved, the job equals its admitted form; while it is suspended it may also equal its original form.
    fn forms_with_quota<'a, J: GenericJob>(
        self,
        job: &J,
        wanted: &'a [PodSet],
        infos: &[PodSetInfo],
    ) -> Vec<Cow<'a, [PodSet]>> {
        let started = self.merged(wanted, infos, job.is_elastic(self.gates)).map(Cow::Owned);
        let is_original = job.is_suspended() || job.may_restart();
        started.into_iter().chain(is_original.then_some(Cow::Borrowed(wanted))).collect()
    }

    /// Pod sets merged with their infos; `None` on a conflict. Only a partial admission changes the count of a job: after some of its
    /// pods have ended, quota is reserved for the others alone.
    fn merged(self, wanted: &[PodSet], infos: &[PodSetInfo], elastic: bool) -> Option<Vec<PodSet>> {
        if wanted.len() != infos.len() {
            return None;
        }
        let pairs = wanted.iter().zip(infos);
        pairs
            .map(|(set, info)| {
                let mut set = set.clone();
                if self.gates.partial_admission && set.min_count.is_some() {
                    set.count = Some(info.count);
                }
                info.merge_into(&mut set.template, elastic).ok()?;
                Some(set)
            })
            .collect()
    }

    fn same_sets(self, wanted: &[PodSet], theirs: EitherPodSets<'_>) -> bool {
        let mut wanted_sets = wanted.iter().enumerate();
        wanted.len() == theirs.sets.len()
            && wanted_sets.all(|(index, wanted)| self.may_be(index, wanted, theirs))
    }

    fn may_be(self, index: usize, wanted: &PodSet, theirs: EitherPodSets<'_>) -> bool {
        [theirs.sets, theirs.written].into_iter().any(|sets| {
            sets.get(index).is_some_and(|set| {
                self.counts.same(wanted, set, sets) && self.same_but_count(wanted, set)
            })
        })
    }

    fn same_but_count(self, left: &PodSet, right: &PodSet) -> bool {
        // minCount is cleared while PartialAdmission is off (docs/reference/kueue.md §7.4).
        (!self.gates.partial_admission || left.min_count == right.min_count)
            && self.same_specs(&left.template, &right.template)
    }

    fn same_specs(self, left: &PodTemplate, right: &PodTemplate) -> bool {
        // Mostly they are one spec in memory.
        if left.spec == right.spec {
            return true;
        }
        let none = PodSpec::default();
        let left = left.spec.as_deref().unwrap_or(&none);
        let right = right.spec.as_deref().unwrap_or(&none);
        (!self.tolerations || left.tolerations == right.tolerations)
            && same_resources(left.resources.as_ref(), right.resources.as_ref())
            && resource_claims(left) == resource_claims(right)
            && left.runtime_class_name == right.runtime_class_name
            && same_containers(&left.init_containers, &right.init_containers)
            && same_containers(&left.containers, &right.containers)
    }
}

/// The ResourceClaims that the pods share among their containers.
fn resource_claims(spec: &PodSpec) -> &[Value] {
    spec.rest.get("resourceClaims").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Absent resources equal empty resources.
fn same_resources(left: Option<&SharedResources>, right: Option<&SharedResources>) -> bool {
    let none = SharedResources::default();
    left.unwrap_or(&none) == right.unwrap_or(&none)
}

fn same_containers(left: &[Container], right: &[Container]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).all(|(left, right)| same_container(left, right))
}

fn same_container(left: &Container, right: &Container) -> bool {
    let Container { name, resources, restart_policy, volume_mounts, rest } = left;
    *name == right.name
        && *restart_policy == right.restart_policy
        && *volume_mounts == right.volume_mounts
        && same_container_fields(rest, &right.rest)
        && same_resources(resources.as_ref(), right.resources.as_ref())
}
