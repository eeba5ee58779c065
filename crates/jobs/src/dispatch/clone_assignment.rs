//! Additions of flavors, carried by a clone to a worker without flavors (docs/reference/dispatch.md §4).

use std::collections::BTreeMap;

use crds::{
    meta::Toleration,
    names::annotations::ASSIGNMENT,
    v1beta2::{PodSetAssignment, Workload},
};
use serde::{Deserialize, Serialize};

use crate::{
    start::admitted_infos::{AdmittedInfosError, FlavorsByName},
    start::pod_set_info::{PodSetInfo, StartError},
};

/// Additions to the pods of one pod set.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct CarriedAssignment {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    node_selector: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tolerations: Vec<Toleration>,
}

/// Value of the annotation: additions of the admitted flavors by pod set.
///
/// # Errors
/// If the Workload is not admitted, a flavor is missing, or flavors contradict each other.
pub fn annotation(
    workload: &Workload,
    flavors: &FlavorsByName,
) -> Result<String, AdmittedInfosError> {
    let name = || workload.metadata.name.clone().unwrap_or_default();
    let Some(admission) = &workload.status.admission else {
        return Err(AdmittedInfosError::NotAdmitted { workload: name() });
    };
    let mut all = BTreeMap::new();
    for assignment in &admission.pod_set_assignments {
        let info = of_flavors(assignment, flavors).map_err(|error| error.of(name()))?;
        let carried =
            CarriedAssignment { node_selector: info.node_selector, tolerations: info.tolerations };
        all.insert(assignment.name.clone(), carried);
    }
    // A map of strings always encodes.
    Ok(serde_json::to_string(&all).unwrap_or_default())
}

/// Reads the additions of one pod set; `None` without the annotation.
#[must_use]
pub fn read(workload: &Workload, pod_set: &str) -> Option<PodSetInfo> {
    let text = workload.metadata.annotations.as_ref()?.get(ASSIGNMENT)?;
    let mut all: BTreeMap<String, CarriedAssignment> = serde_json::from_str(text).ok()?;
    let CarriedAssignment { node_selector, tolerations } = all.remove(pod_set).unwrap_or_default();
    Some(PodSetInfo { node_selector, tolerations, ..PodSetInfo::default() })
}

/// Why the additions of flavors cannot be computed.
pub(crate) enum FlavorInfoError {
    /// The flavor does not exist.
    Missing(String),
    /// Flavors contradict each other.
    Conflict(StartError),
}

impl FlavorInfoError {
    pub(crate) fn of(self, workload: String) -> AdmittedInfosError {
        match self {
            Self::Missing(flavor) => AdmittedInfosError::NoFlavor { workload, flavor },
            Self::Conflict(error) => AdmittedInfosError::Start(error),
        }
    }
}

/// Additions of one pod set's flavors.
pub(crate) fn of_flavors(
    assignment: &PodSetAssignment,
    flavors: &FlavorsByName,
) -> Result<PodSetInfo, FlavorInfoError> {
    let mut info = PodSetInfo { name: assignment.name.clone(), ..PodSetInfo::default() };
    let mut names: Vec<&String> = assignment.flavors.values().collect();
    // Resources may share a flavor; each flavor is added once (docs/reference/kueue.md §7.7), in an
    // order that does not depend on resources.
    names.sort();
    names.dedup();
    for name in names {
        let spec = flavors.get(name).ok_or_else(|| FlavorInfoError::Missing(name.clone()))?;
        let additions = PodSetInfo {
            node_selector: spec.node_labels.clone(),
            tolerations: spec.tolerations.clone(),
            ..PodSetInfo::default()
        };
        info.add(&additions).map_err(FlavorInfoError::Conflict)?;
    }
    Ok(info)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_written_assignment_is_read_back() {
        let mut workload: Workload = serde_json::from_value(json!({
            "metadata": { "name": "w" },
            "status": { "admission": { "clusterQueue": "cq", "podSetAssignments": [
                { "name": "main", "flavors": { "cpu": "x", "memory": "x" } },
                { "name": "side", "flavors": { "cpu": "y" } },
            ] } },
        }))
        .expect("a Workload decodes");
        let flavor = |value: serde_json::Value| serde_json::from_value(value).expect("decodes");
        let flavors: FlavorsByName = [
            (
                "x".to_owned(),
                flavor(json!({ "nodeLabels": { "zone": "a" }, "tolerations": [{ "key": "t" }] })),
            ),
            ("y".to_owned(), flavor(json!({}))),
        ]
        .into();
        assert!(read(&workload, "main").is_none(), "a Workload that is no clone says nothing");
        let text = annotation(&workload, &flavors).expect("both flavors are there");
        assert_eq!(
            text,
            r#"{"main":{"nodeSelector":{"zone":"a"},"tolerations":[{"key":"t"}]},"side":{}}"#
        );
        workload.metadata.annotations = Some([(ASSIGNMENT.to_owned(), text)].into());
        let main = read(&workload, "main").expect("carried");
        assert_eq!(main.node_selector.get("zone").map(String::as_str), Some("a"));
        assert_eq!(main.tolerations.len(), 1);
        assert_eq!(read(&workload, "side"), Some(PodSetInfo::default()));
        assert!(
            annotation(&workload, &FlavorsByName::new()).is_err(),
            "a missing flavor is an error"
        );
    }
}
