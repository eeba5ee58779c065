//! What the pods of a pod set of an admitted Workload tolerate (docs/reference/kueue.md §4.11).
//!
//! Tolerations of the template, the flavors and the checks add up and never contradict each other, unlike the rest of the
//! [pod set infos](crate::start::admitted_infos). So they can be read where these cannot, and as far as the flavors are there.

use crds::{
    meta::Toleration,
    v1beta2::{PodSetAssignment, Workload},
};

use crate::{
    dispatch::clone_assignment,
    start::admitted_infos::{AssignedFlavors, FlavorsByName},
};

/// The tolerations of the pods of one pod set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodTolerations {
    /// Those that can be read.
    pub known: Vec<Toleration>,
    /// There are no others.
    pub complete: bool,
}

impl PodTolerations {
    /// Those of the pods with this assignment.
    #[must_use]
    pub fn of(
        workload: &Workload,
        assignment: &PodSetAssignment,
        flavors: AssignedFlavors<'_>,
    ) -> Self {
        let pod_set = workload.spec.pod_sets.iter().find(|one| one.name == assignment.name);
        let template = pod_set.and_then(|one| one.template.spec.as_ref());
        let own = template.into_iter().flat_map(|pod| pod.tolerations.iter());
        let checks = workload.status.admission_checks.iter();
        let updates = checks.flat_map(|check| &check.pod_set_updates);
        let of_pod_set = updates.filter(|update| update.name == assignment.name);
        let of_checks = of_pod_set.flat_map(|update| &update.tolerations);
        let mut all = Self { known: own.chain(of_checks).cloned().collect(), complete: true };
        match flavors {
            AssignedFlavors::Own(flavors) | AssignedFlavors::OwnOnNodes(flavors) => {
                all.add_flavors(assignment, flavors);
            }
            AssignedFlavors::Carried => match clone_assignment::read(workload, &assignment.name) {
                Some(info) => all.known.extend(info.tolerations),
                None => all.complete = false,
            },
        }
        all
    }

    fn add_flavors(&mut self, assignment: &PodSetAssignment, flavors: &FlavorsByName) {
        for name in assignment.flavors.values() {
            match flavors.get(name) {
                Some(flavor) => self.known.extend(flavor.tolerations.iter().cloned()),
                None => self.complete = false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{JobGates, start::admitted_infos::infos_of_admission};

    /// A Workload with tolerations of its template and of a check, and the flavors `x` and `y`.
    fn workload() -> Workload {
        serde_json::from_value(json!({
            "metadata": {"name": "w"},
            "spec": {"podSets": [{"name": "main", "count": 1, "template": {"spec": {
                "containers": [], "tolerations": [{"key": "own"}],
            }}}]},
            "status": {
                "admission": {"clusterQueue": "cq", "podSetAssignments": [
                    {"name": "main", "count": 1, "flavors": {"cpu": "x", "gpu": "y"}},
                ]},
                "admissionChecks": [{"name": "c", "podSetUpdates": [
                    {"name": "main", "tolerations": [{"key": "check"}]},
                    {"name": "other", "tolerations": [{"key": "no"}]},
                ]}],
            },
        }))
        .expect("a Workload decodes")
    }

    fn flavors(all: &[(&str, Value)]) -> FlavorsByName {
        let spec = |value: &Value| serde_json::from_value(value.clone()).expect("decodes");
        all.iter().map(|(name, value)| ((*name).to_owned(), spec(value))).collect()
    }

    fn read(workload: &Workload, flavors: AssignedFlavors<'_>) -> (Vec<String>, bool) {
        let admission = workload.status.admission.as_ref().expect("admitted");
        let all = PodTolerations::of(workload, &admission.pod_set_assignments[0], flavors);
        (all.known.into_iter().map(|one| one.key).collect(), all.complete)
    }

    #[test]
    fn flavors_that_contradict_each_other_leave_tolerations_known() {
        let zone =
            |zone: &str| json!({"nodeLabels": {"zone": zone}, "tolerations": [{"key": zone}]});
        let all = flavors(&[("x", zone("a")), ("y", zone("b"))]);
        let own = AssignedFlavors::Own(&all);
        assert!(infos_of_admission(&workload(), own, JobGates::default()).is_err());
        let (mut keys, complete) = read(&workload(), own);
        keys.sort();
        assert_eq!((keys.concat(), complete), ("abcheckown".to_owned(), true));
    }

    #[test]
    fn a_missing_flavor_leaves_the_others_known() {
        let all = flavors(&[("x", json!({"tolerations": [{"key": "a"}]}))]);
        let (keys, complete) = read(&workload(), AssignedFlavors::Own(&all));
        assert_eq!((keys.concat(), complete), ("ownchecka".to_owned(), false));
    }

    #[test]
    fn a_clone_without_its_annotation_has_unknown_tolerations() {
        let (keys, complete) = read(&workload(), AssignedFlavors::Carried);
        assert_eq!((keys.concat(), complete), ("owncheck".to_owned(), false));
    }
}
