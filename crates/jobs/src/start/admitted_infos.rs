//! Pod set infos of an admitted Workload, for the start of its job (docs/reference/kueue.md §7.7).

use std::collections::BTreeMap;

use crds::{
    names::{
        annotations::{POD_SET_UNCONSTRAINED_TOPOLOGY, WORKLOAD, WORKLOAD_SLICE_NAME},
        gates,
        labels::{
            CLUSTER_QUEUE_NAME, LOCAL_QUEUE_NAME, MULTI_KUEUE_ORIGIN, MULTI_KUEUE_WORKER_POD,
            POD_SET,
        },
    },
    pod::PodTemplate,
    v1beta2::{
        Admission, PodSet, PodSetAssignment, PodSetUpdate, ResourceFlavorSpec, TopologyAssignment,
        Workload,
    },
    validation::labels::is_dns_label,
};

use crate::{
    JobGates,
    dispatch::clone_assignment,
    start::pod_set_info::{PodSetInfo, StartError},
    topology_request::asks_for_topology,
};

/// ResourceFlavor specs by name.
pub type FlavorsByName = BTreeMap<String, ResourceFlavorSpec>;

/// Where node labels and tolerations of assigned flavors come from.
#[derive(Clone, Copy, Debug)]
pub enum AssignedFlavors<'a> {
    /// The cluster's ResourceFlavors: its own queues assigned them, also to clones of other managers.
    Own(&'a FlavorsByName),
    /// The same, on the nodes that an agent assigned.
    OwnOnNodes(&'a FlavorsByName),
    /// The annotation of the clone, on the nodes that an agent assigned: an agent-mode worker has no flavors.
    Carried,
}

/// Why the pod set infos of a Workload cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmittedInfosError {
    /// The Workload is not admitted.
    #[error("start Workload {workload}: it is not admitted")]
    NotAdmitted {
        /// Name of the Workload.
        workload: String,
    },
    /// A flavor does not exist; it may still be created.
    #[error("start Workload {workload}: flavor {flavor} is not there")]
    NoFlavor {
        /// Name of the Workload.
        workload: String,
        /// Name of the flavor.
        flavor: String,
    },
    /// A clone carries no readable assignment.
    #[error(
        "start Workload {workload}: its annotation sluice.dev/assignment is missing or cannot be read"
    )]
    NoAssignment {
        /// Name of the Workload.
        workload: String,
    },
    /// Flavors or admission checks contradict each other.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// The pod set infos for a start; `None` while there are none yet.
///
/// # Errors
/// If flavors or admission checks contradict each other, which is permanent.
pub fn startable_infos(
    workload: &Workload,
    flavors: AssignedFlavors<'_>,
    gates: JobGates,
) -> Result<Option<Vec<PodSetInfo>>, StartError> {
    match infos_of_admission(workload, flavors, gates) {
        Ok(infos) => Ok(Some(infos)),
        Err(AdmittedInfosError::Start(error)) => Err(error),
        // Flavors may still be created; a clone is replaced when its manager dispatches it again.
        Err(
            AdmittedInfosError::NotAdmitted { .. }
            | AdmittedInfosError::NoFlavor { .. }
            | AdmittedInfosError::NoAssignment { .. },
        ) => Ok(None),
    }
}

/// Pod set infos in the order of the Workload.
pub fn infos_of_admission(
    workload: &Workload,
    flavors: AssignedFlavors<'_>,
    gates: JobGates,
) -> Result<Vec<PodSetInfo>, AdmittedInfosError> {
    let name = workload.metadata.name.clone().unwrap_or_default();
    let Some(admission) = &workload.status.admission else {
        return Err(AdmittedInfosError::NotAdmitted { workload: name });
    };
    let pod_sets = workload.spec.pod_sets.iter();
    // CEL: as many assignments as pod sets while quota is reserved (docs/reference/kueue.md §1.2).
    let pairs = pod_sets.zip(&admission.pod_set_assignments);
    let admitted = pairs.map(|(pod_set, assignment)| {
        AdmittedPodSet { workload, admission, pod_set, assignment }.info(flavors, gates)
    });
    admitted.collect()
}

/// A pod set of an admitted Workload.
#[derive(Clone, Copy)]
struct AdmittedPodSet<'a> {
    workload: &'a Workload,
    admission: &'a Admission,
    pod_set: &'a PodSet,
    assignment: &'a PodSetAssignment,
}

impl AdmittedPodSet<'_> {
    fn info(
        self,
        flavors: AssignedFlavors<'_>,
        gates: JobGates,
    ) -> Result<PodSetInfo, AdmittedInfosError> {
        let Self { workload, pod_set, assignment, .. } = self;
        // Partial admission assigns fewer pods than the pod set has.
        let count = assignment.count.or(pod_set.count).unwrap_or(1);
        let mut info = PodSetInfo { name: pod_set.name.clone(), count, ..PodSetInfo::default() };
        info.add(&additions(workload, assignment, flavors)?)?;
        // The agent's assignment names nodes, not domains that an ungater chooses among.
        let ungated = !matches!(flavors, AssignedFlavors::Own(_));
        // A delayed assignment gates the pods as well, until the second pass has found their domains. Without the gate
        // TopologyAwareScheduling no pod is ungated, whatever a status from before says.
        let has_domains = assignment.topology_assignment.is_some();
        let has_topology = has_domains || assignment.delayed_topology_request.is_some();
        if gates.topology && !ungated && has_topology {
            info.add(&topology(pod_set))?;
        }
        info.add(&self.identity(gates))?;
        // In the order of the status, after the flavors (docs/reference/kueue.md §7.7): a conflict names
        // the value of the check as the new one.
        for check in &workload.status.admission_checks {
            for update in check.pod_set_updates.iter().filter(|update| update.name == pod_set.name)
            {
                info.add(&of_check_update(update)).map_err(|conflict| StartError::OfCheck {
                    check: check.name.clone(),
                    conflict: Box::new(conflict),
                })?;
            }
        }
        Ok(info)
    }

    /// Labels and annotations that identify Workload, pod set and queues.
    fn identity(self, gates: JobGates) -> PodSetInfo {
        let Self { workload, admission, pod_set, .. } = self;
        let mut info = PodSetInfo::default();
        let labels = workload.metadata.labels.as_ref();
        // An agent recognises the pods of clones by this label.
        if labels.is_some_and(|labels| labels.contains_key(MULTI_KUEUE_ORIGIN)) {
            info.labels.insert(MULTI_KUEUE_WORKER_POD.to_owned(), "true".to_owned());
        }
        info.labels.insert(POD_SET.to_owned(), pod_set.name.clone());
        if gates.topology || gates.scheduler_library {
            let name = workload.metadata.name.clone().unwrap_or_default();
            info.annotations.insert(WORKLOAD.to_owned(), name);
        }
        let annotations = workload.metadata.annotations.as_ref();
        if let Some(slice) =
            annotations.and_then(|annotations| annotations.get(WORKLOAD_SLICE_NAME))
            && gates.elastic_jobs
        {
            info.annotations.insert(WORKLOAD_SLICE_NAME.to_owned(), slice.clone());
        }
        if gates.assign_queue_labels {
            info.labels.extend(queue_labels(workload, admission));
        }
        info
    }
}

/// Adds what the flavors of an assignment add to a template, and the nodes that an agent assigned.
///
/// # Errors
/// If a flavor or the annotation of the clone is missing, or flavors and template contradict each other.
pub fn add_flavors(
    template: &mut PodTemplate,
    workload: &Workload,
    assignment: &PodSetAssignment,
    flavors: AssignedFlavors<'_>,
) -> Result<(), AdmittedInfosError> {
    Ok(additions(workload, assignment, flavors)?.merge_into(template, false)?)
}

fn additions(
    workload: &Workload,
    assignment: &PodSetAssignment,
    flavors: AssignedFlavors<'_>,
) -> Result<PodSetInfo, AdmittedInfosError> {
    let name = || workload.metadata.name.clone().unwrap_or_default();
    let own = |flavors| {
        clone_assignment::of_flavors(assignment, flavors).map_err(|error| error.of(name()))
    };
    let mut info = match flavors {
        AssignedFlavors::Own(flavors) => return own(flavors),
        AssignedFlavors::OwnOnNodes(flavors) => own(flavors)?,
        // Pods without the additions might run on nodes of another flavor.
        AssignedFlavors::Carried => clone_assignment::read(workload, &assignment.name)
            .ok_or_else(|| AdmittedInfosError::NoAssignment { workload: name() })?,
    };
    info.add(&on_hosts(assignment))?;
    Ok(info)
}

/// The nodes that the agent has assigned.
fn on_hosts(assignment: &PodSetAssignment) -> PodSetInfo {
    let assigned = assignment.topology_assignment.as_ref();
    let hosts = assigned.into_iter().flat_map(TopologyAssignment::hosts).map(|(host, _)| host);
    PodSetInfo { hosts: hosts.collect(), ..PodSetInfo::default() }
}

fn of_check_update(update: &PodSetUpdate) -> PodSetInfo {
    PodSetInfo {
        labels: update.labels.clone(),
        annotations: update.annotations.clone(),
        node_selector: update.node_selector.clone(),
        tolerations: update.tolerations.clone(),
        ..PodSetInfo::default()
    }
}

/// Gate and annotation of pods with a topology assignment, including an implied one.
fn topology(pod_set: &PodSet) -> PodSetInfo {
    let implied = !pod_set.topology_request.as_deref().is_some_and(asks_for_topology);
    let annotation = (POD_SET_UNCONSTRAINED_TOPOLOGY.to_owned(), "true".to_owned());
    PodSetInfo {
        annotations: implied.then_some(annotation).into_iter().collect(),
        scheduling_gates: vec![gates::TOPOLOGY.to_owned()],
        ..PodSetInfo::default()
    }
}

/// Labels with the names of the queues. A name that is not a DNS label is left out.
fn queue_labels(
    workload: &Workload,
    admission: &Admission,
) -> impl Iterator<Item = (String, String)> {
    let queues = [
        (LOCAL_QUEUE_NAME, workload.spec.queue_name.clone()),
        (CLUSTER_QUEUE_NAME, admission.cluster_queue.clone()),
    ];
    let valid = queues.into_iter().filter(|(_, name)| is_dns_label(name));
    valid.map(|(key, name)| (key.to_owned(), name))
}

/// Removes what [`AdmittedPodSet::identity`] adds. Returns whether anything was removed.
pub(crate) fn remove_identity(template: &mut PodTemplate) -> bool {
    let Some(metadata) = &mut template.metadata else {
        return false;
    };
    let identity_labels = [MULTI_KUEUE_WORKER_POD, POD_SET, LOCAL_QUEUE_NAME, CLUSTER_QUEUE_NAME];
    let n_before = metadata.labels.len() + metadata.annotations.len();
    metadata.labels.retain(|key, _| !identity_labels.contains(&key));
    metadata.annotations.retain(|key, _| key != WORKLOAD && key != WORKLOAD_SLICE_NAME);
    n_before != metadata.labels.len() + metadata.annotations.len()
}

#[cfg(test)]
mod tests {
    use crds::names::labels::HOSTNAME;
    use serde_json::{Value, json};

    use super::*;

    fn workload(status: &Value) -> Workload {
        serde_json::from_value(json!({
            "metadata": { "name": "job-train" },
            "spec": { "queueName": "lq.a", "podSets": [{ "name": "main", "count": 3 }] },
            "status": status,
        }))
        .expect("a Workload decodes")
    }

    fn assignment() -> Value {
        json!({ "name": "main", "count": 2, "flavors": { "cpu": "x", "memory": "x", "gpu": "y" } })
    }

    fn flavors(x: &Value, y: &Value) -> FlavorsByName {
        let spec = |value: &Value| serde_json::from_value(value.clone()).expect("decodes");
        [("x".to_owned(), spec(x)), ("y".to_owned(), spec(y))].into()
    }

    fn of(
        assignment: &Value,
        updates: &Value,
        x: &Value,
    ) -> Result<PodSetInfo, AdmittedInfosError> {
        let status = json!({
            "admission": { "clusterQueue": "cq", "podSetAssignments": [assignment] },
            "admissionChecks": [{ "name": "c", "podSetUpdates": updates }],
        });
        let y = json!({ "nodeLabels": { "gpu": "h100" } });
        infos_of_admission(
            &workload(&status),
            AssignedFlavors::Own(&flavors(x, &y)),
            JobGates::default(),
        )
        .map(|mut all| all.remove(0))
    }

    #[test]
    fn infos_hold_flavors_check_updates_and_identity() {
        let x = json!({ "nodeLabels": { "zone": "a" }, "tolerations": [{ "key": "t" }] });
        let updates = json!([
            { "name": "main", "nodeSelector": { "pool": "p" }, "tolerations": [{ "key": "t" }] },
            { "name": "other", "nodeSelector": { "no": "no" } },
        ]);
        let info = of(&assignment(), &updates, &x).expect("pods can start");
        let map = |value: Value| -> BTreeMap<String, String> {
            serde_json::from_value(value).expect("a map")
        };
        assert_eq!(info.count, 2);
        assert_eq!(info.node_selector, map(json!({ "zone": "a", "gpu": "h100", "pool": "p" })));
        assert_eq!(info.tolerations.len(), 1, "equal tolerations are one");
        // The name of the LocalQueue is not a DNS label.
        let labels = json!({
            "kueue.x-k8s.io/podset": "main", "kueue.x-k8s.io/cluster-queue-name": "cq",
        });
        assert_eq!(info.labels, map(labels));
        assert_eq!(info.annotations, map(json!({ "kueue.x-k8s.io/workload": "job-train" })));
        assert_eq!(info.scheduling_gates, Vec::<String>::new());
    }

    #[test]
    fn pods_name_their_workload_for_topologies_and_for_the_scheduler_library() {
        let status =
            json!({ "admission": { "clusterQueue": "cq", "podSetAssignments": [assignment()] } });
        let own = flavors(&json!({}), &json!({}));
        for (topology, scheduler_library) in [(true, false), (false, true), (false, false)] {
            let gates = JobGates { topology, scheduler_library, ..JobGates::default() };
            let infos = infos_of_admission(&workload(&status), AssignedFlavors::Own(&own), gates);
            let info = infos.expect("pods can start").remove(0);
            let named = info.annotations.contains_key("kueue.x-k8s.io/workload");
            assert_eq!(named, topology || scheduler_library);
        }
    }

    #[test]
    fn pods_with_a_topology_assignment_are_gated() {
        let mut assignment = assignment();
        assignment["topologyAssignment"] = json!({ "levels": ["host"], "slices": [] });
        let info = of(&assignment, &json!([]), &json!({})).expect("pods can start");
        assert_eq!(info.scheduling_gates, ["kueue.x-k8s.io/topology"]);
        let implied = info.annotations.get("kueue.x-k8s.io/podset-unconstrained-topology");
        assert_eq!(implied.map(String::as_str), Some("true"));
    }

    #[test]
    fn without_topologies_no_stored_assignment_and_no_stored_delay_gates_pods() {
        let domains = json!({ "levels": ["host"], "slices": [] });
        let stored = [
            ("topologyAssignment", domains),
            ("delayedTopologyRequest", json!("Pending")),
            ("delayedTopologyRequest", json!("Ready")),
        ];
        let own = flavors(&json!({}), &json!({}));
        for ((field, value), topology) in stored.iter().flat_map(|one| [(one, true), (one, false)])
        {
            let mut assignment = assignment();
            assignment[*field] = value.clone();
            let admission = json!({ "clusterQueue": "cq", "podSetAssignments": [assignment] });
            let stored = workload(&json!({ "admission": admission }));
            let gates = JobGates { topology, ..JobGates::default() };
            let infos = infos_of_admission(&stored, AssignedFlavors::Own(&own), gates);
            let info = infos.expect("pods can start").remove(0);
            let implied = "kueue.x-k8s.io/podset-unconstrained-topology";
            assert_eq!(!info.scheduling_gates.is_empty(), topology, "{field}={value}");
            assert_eq!(info.annotations.contains_key(implied), topology, "{field}={value}");
        }
    }

    #[test]
    fn a_clone_gets_the_flavors_of_the_queues_that_assigned_them() {
        let mut clone = workload(&json!({
            "admission": { "clusterQueue": "cq", "podSetAssignments": [assignment()] },
        }));
        let carried = r#"{"main":{"nodeSelector":{"zone":"hub"}}}"#;
        let zone = |clone: &Workload, flavors: AssignedFlavors<'_>| {
            let mut infos = infos_of_admission(clone, flavors, JobGates::default())?;
            Ok(infos.remove(0).node_selector.remove("zone"))
        };
        let own = flavors(&json!({ "nodeLabels": { "zone": "a" } }), &json!({}));
        let missing = Err(AdmittedInfosError::NoAssignment { workload: "job-train".to_owned() });
        assert_eq!(zone(&clone, AssignedFlavors::Carried), missing);
        let annotation = ("sluice.dev/assignment".to_owned(), carried.to_owned());
        clone.metadata.annotations.get_or_insert_default().extend([annotation]);
        assert_eq!(zone(&clone, AssignedFlavors::Carried), Ok(Some("hub".to_owned())));
        assert_eq!(zone(&clone, AssignedFlavors::Own(&own)), Ok(Some("a".to_owned())));
    }

    #[test]
    fn a_clone_runs_on_the_nodes_that_its_agent_assigned() {
        let info = |roots: &[&str]| {
            let (levels, counts) = (["kubernetes.io/hostname"], json!({ "universal": 1 }));
            let values = json!([{ "individual": { "roots": roots } }]);
            let mut assignment = assignment();
            assignment["topologyAssignment"] = json!({ "levels": levels, "slices": [
                { "domainCount": roots.len(), "podCounts": counts, "valuesPerLevel": values },
            ] });
            let admission = json!({ "clusterQueue": "cq", "podSetAssignments": [assignment] });
            let mut clone = workload(&json!({ "admission": admission }));
            let carried = ("sluice.dev/assignment".to_owned(), r#"{"main":{}}"#.to_owned());
            clone.metadata.annotations.get_or_insert_default().extend([carried]);
            let infos = infos_of_admission(&clone, AssignedFlavors::Carried, JobGates::default());
            infos.expect("pods can start").remove(0)
        };
        let one = info(&["a"]);
        let mut template = PodTemplate::default();
        one.merge_into(&mut template, false).expect("no conflict");
        let spec = template.spec.expect("a spec");
        assert_eq!(spec.node_selector, [(HOSTNAME.to_owned(), "a".to_owned())].into());
        assert!(spec.rest.is_empty() && one.scheduling_gates.is_empty());
        let two = info(&["a", "b"]);
        assert_eq!(two.hosts, ["a", "b"]);
        assert!(two.node_selector.is_empty() && two.scheduling_gates.is_empty());
    }

    #[test]
    fn conflicts_and_missing_flavors_are_errors() {
        let other = json!({ "nodeLabels": { "gpu": "a100" } });
        let conflict = of(&assignment(), &json!([]), &other);
        assert!(matches!(conflict, Err(AdmittedInfosError::Start(StartError::Conflict { .. }))));
        let mut assignment = assignment();
        assignment["flavors"]["cpu"] = json!("z");
        let missing = of(&assignment, &json!([]), &json!({}));
        assert!(
            matches!(missing, Err(AdmittedInfosError::NoFlavor { flavor, .. }) if flavor == "z")
        );
        let pending = infos_of_admission(
            &workload(&json!({})),
            AssignedFlavors::Own(&FlavorsByName::new()),
            JobGates::default(),
        );
        assert!(matches!(pending, Err(AdmittedInfosError::NotAdmitted { .. })));
    }

    #[test]
    fn conflicts_are_named_as_upstream_names_them() {
        let updates = |map: &str, values: [&str; 2]| {
            let check = |name: &str, value: &str| json!({ "name": name, "podSetUpdates": [{ "name": "main", map: { "ac-key": value } }] });
            let status = json!({
                "admission": { "clusterQueue": "cq", "podSetAssignments": [
                    { "name": "main", "count": 2, "flavors": {} },
                ] },
                "admissionChecks": [check("check1", values[0]), check("check2", values[1])],
            });
            let own = FlavorsByName::new();
            let flavors = AssignedFlavors::Own(&own);
            infos_of_admission(&workload(&status), flavors, JobGates::default())
        };
        for map in ["labels", "annotations", "nodeSelector"] {
            let error = updates(map, ["a", "b"]).expect_err("a conflict").to_string();
            let conflict = format!(
                "invalid admission check PodSetUpdate: conflict for {map}: conflict for key=ac-key, value1=a, value2=b"
            );
            assert_eq!(error, format!("in admission check \"check2\": {conflict}"));
            let mut template: PodTemplate = serde_json::from_value(json!({
                "metadata": { "labels": { "ac-key": "a" }, "annotations": { "ac-key": "a" } },
                "spec": { "nodeSelector": { "ac-key": "a" } },
            }))
            .expect("a template decodes");
            let info = updates(map, ["b", "b"]).expect("they agree").remove(0);
            let error = info.merge_into(&mut template, false).expect_err("a conflict");
            assert_eq!(error.to_string(), conflict);
        }
    }

    #[test]
    fn a_toleration_without_an_operator_is_one_with_equal() {
        let toleration =
            |operator: &str| json!([{ "key": "t", "operator": operator, "value": "v" }]);
        for (operator, expected) in [("", 1), ("Equal", 1), ("Exists", 2)] {
            let x = json!({ "tolerations": toleration("") });
            let updates = json!([{ "name": "main", "tolerations": toleration(operator) }]);
            let info = of(&assignment(), &updates, &x).expect("pods can start");
            assert_eq!(info.tolerations.len(), expected, "{operator:?}");
        }
    }
}
