//! Pod sets of a Workload with their requests. Source: docs/reference/kueue.md §2.7.

use std::collections::{BTreeMap, BTreeSet};

use crds::names::check_states::READY;
use crds::pod::PodSpec;
use crds::v1beta2::{PodSet, PodSetRequest, PodSetTopologyRequest, Workload};
use engine::Names;
use engine::node_selection::NodeSelection;
use engine::spec::PodSetSpec;
use engine::topology::{NO_SLICE_SIZE, TopologyMode, TopologyRequest};

use super::template_hash;
use crate::amount::{from_nanos, quantity};
use crate::config::IndexConfig;
use crate::namespace::PodDefaultsTable;
use crate::requests::effective_requests::{EffectiveRequests, effective};
use crate::requests::pod_requests::{PodDefaults, pod_requests};
use crate::requests::{ExactAmounts, problems};
use crate::selectors::{pairs, preferred, selection, tolerations};

/// Kueue's message about pods that claim devices, while it does not charge these.
const CLAIMS_DEVICES: &str =
    "Workload uses DRA resources but the KueueDRAIntegration feature gate is not enabled";

/// All pod sets of a Workload.
pub(super) struct CountedPodSets<'a> {
    pub(super) all: Vec<CountedPodSet<'a>>,
}

/// A pod set with the requests of its pods.
pub(super) struct CountedPodSet<'a> {
    pub(super) pod_set: &'a PodSet,
    /// Pod spec of the template; a template without one has no requests.
    pub(super) pod: Option<&'a PodSpec>,
    /// Pods that are not reclaimable.
    pub(super) count: i64,
    /// Requests of one pod on a node.
    pub(super) node_requests: ExactAmounts<'a>,
    /// Requests of one pod that count as quota.
    quota_requests: EffectiveRequests<'a>,
    defaults: PodDefaults<'a>,
}

impl<'a> CountedPodSets<'a> {
    /// Reads the pod sets. With `covered`, other resources do not count.
    pub(super) fn read(
        (config, defaults): (&'a IndexConfig, &'a PodDefaultsTable),
        workload: &'a Workload,
        covered: Option<&BTreeSet<String>>,
    ) -> Self {
        let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
        let one = |pod_set: &'a PodSet| {
            let pod = pod_set.template.spec.as_deref();
            let defaults = defaults.of_pod(namespace, pod);
            let real = pod.map(|pod| pod_requests(pod, defaults)).unwrap_or_default();
            let mut counted = effective(real.clone(), config);
            // Only quota ignores other resources; nodes have to provide them (`node_requests`).
            if let Some(covered) = covered {
                counted.retain(|name, _| covered.contains(name.as_ref()));
            }
            let gone = i64::from(config.reclaimable(workload, &pod_set.name));
            // A count below the reclaimable pods, e.g. after a scale-down, leaves no pods.
            let count = (i64::from(pod_set.count.unwrap_or(1)) - gone).max(0);
            CountedPodSet {
                pod_set,
                pod,
                count,
                node_requests: real,
                quota_requests: counted,
                defaults,
            }
        };
        Self { all: workload.spec.pod_sets.iter().map(one).collect() }
    }

    /// Validation message of a Workload that is invalid whatever the capacity.
    pub(super) fn validation_problem(&self, config: &IndexConfig) -> Option<String> {
        if config.refuse_device_claims
            && self.all.iter().any(|one| one.pod.is_some_and(claims_devices))
        {
            return Some(CLAIMS_DEVICES.to_owned());
        }
        let none = PodSpec::default();
        // Pods that a LimitRange of a worker refuses make the clone leave it (docs/reference/dispatch.md §4). A clone that is invalid
        // would stay there.
        let defaults = |one: &CountedPodSet<'a>| match config.agent {
            Some(_) => PodDefaults::default(),
            None => one.defaults,
        };
        let all = self.all.iter().map(|one| (one.pod.unwrap_or(&none), defaults(one)));
        problems::problems(&all.collect::<Vec<_>>())
    }

    /// The pod sets in the engine's terms.
    pub(super) fn specs(
        &self,
        names: &mut Names,
        workload: &Workload,
        config: &IndexConfig,
    ) -> Vec<PodSetSpec> {
        let mut specs = Vec::new();
        for one in &self.all {
            let counted = one.quota_requests.iter();
            let requests: Vec<_> =
                counted.map(|(name, &each)| (names.resources.intern(name), each)).collect();
            let node_requests = one.node_requests.iter().map(|(&name, &nanos)| {
                (names.resources.intern(name), from_nanos(name, nanos).clip())
            });
            let node_requests: Vec<_> = node_requests.collect();
            // Without the gate every pod set needs its full count.
            let min_count = one.pod_set.min_count.filter(|_| config.partial_admission);
            let topology_request = one.pod_set.topology_request.as_deref();
            let topology_request = topology_request.filter(|_| config.topology_aware_scheduling);
            specs.push(PodSetSpec {
                name: one.pod_set.name.as_str().into(),
                count: one.count,
                reclaimed: i64::from(one.pod_set.count.unwrap_or(1)) - one.count,
                min_count: min_count.map(i64::from),
                on_node: (node_requests != requests).then(|| node_requests.into()),
                requests,
                selection: selection_of_pods(one, workload),
                preferred: one.pod.map(preferred).unwrap_or_default(),
                topology: topology_request.and_then(topology),
                template: template_hash::hash(one.pod, workload),
            });
        }
        specs
    }

    /// Totals per pod set for `status.resourceRequests`.
    pub(super) fn resource_requests(&self) -> Vec<PodSetRequest> {
        let whole = |one: &CountedPodSet<'_>| PodSetRequest {
            name: one.pod_set.name.clone(),
            resources: one
                .quota_requests
                .iter()
                .map(|(name, each)| (name.to_string(), quantity(name, each.times(one.count))))
                .collect::<BTreeMap<_, _>>()
                .into(),
        };
        self.all.iter().map(whole).collect()
    }
}

/// Which nodes the pods may run on: by their template, and by what Ready checks add to them. The second pass follows the checks, and the
/// nodes that they provide may have labels and taints of their own (docs/reference/kueue.md §3.7).
fn selection_of_pods(one: &CountedPodSet<'_>, workload: &Workload) -> NodeSelection {
    let mut selected = one.pod.map(selection).unwrap_or_default();
    // Without quota the updates are those of an earlier admission.
    if workload.status.admission.is_none() {
        return selected;
    }
    let ready = workload.status.admission_checks.iter().filter(|check| check.state == READY);
    let updates = ready.flat_map(|check| &check.pod_set_updates);
    for update in updates.filter(|update| update.name == one.pod_set.name) {
        selected.node_selector.extend(pairs(&update.node_selector));
        selected.tolerations.extend(tolerations(&update.tolerations));
    }
    selected
}

/// Whether a pod claims devices (DRA).
fn claims_devices(pod: &PodSpec) -> bool {
    let claims = pod.rest.get("resourceClaims").and_then(|claims| claims.as_array());
    claims.is_some_and(|claims| !claims.is_empty())
}

/// The topology request of a pod set: one slice level, or several layers.
fn topology(one: &PodSetTopologyRequest) -> Option<TopologyRequest> {
    let required = one.required.as_deref().map(|level| TopologyMode::Required(level.into()));
    let preferred = one.preferred.as_deref().map(|level| TopologyMode::Preferred(level.into()));
    let anywhere = (one.unconstrained == Some(true)).then_some(TopologyMode::Unconstrained);
    let size = one.pod_set_slice_size.map_or(NO_SLICE_SIZE, |size| i64::from(size).max(1));
    let slice = one.pod_set_slice_required_topology.as_deref().map(|level| (level.into(), size));
    let layers = one.podset_slice_required_topology_constraints.iter();
    let layers = layers.map(|layer| (layer.topology.as_str().into(), i64::from(layer.size).max(1)));
    let request = TopologyRequest {
        mode: required.or(preferred).or(anywhere),
        // The API allows either one slice level or a list of layers.
        slices: slice.map_or_else(|| layers.collect(), |slice| vec![slice]),
        group: one.pod_set_group_name.as_deref().map(Into::into),
    };
    (request.mode.is_some() || !request.slices.is_empty()).then_some(request)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn slices_have_the_size_that_was_given_or_none() {
        let sizes = |request: serde_json::Value| {
            let request: PodSetTopologyRequest = serde_json::from_value(request).expect("decodes");
            let slices = topology(&request).expect("a request").slices;
            slices.into_iter().map(|(_, size)| size).collect::<Vec<_>>()
        };
        let level = "podSetSliceRequiredTopology";
        assert_eq!(sizes(json!({level: "rack"})), [NO_SLICE_SIZE]);
        assert_eq!(sizes(json!({level: "rack", "podSetSliceSize": 2})), [2]);
        assert_eq!(sizes(json!({level: "rack", "podSetSliceSize": 0})), [1]);
    }
}
