//! v1beta2 → v1beta1 → v1beta2 is the identity, except for the fields that v1beta1 has no place for.

use std::collections::BTreeMap;

use crds::{
    conversion::convert,
    pod::{Container, PodSpec, PodTemplate, ResourceRequirements},
    quantity::Quantity,
    v1beta2::{
        Admission, AdmissionCheckState, AdmissionCheckStrategyRule, AdmissionChecksStrategy,
        ClusterQueue, ClusterQueueSpec, ClusterSource, ConcurrentAdmissionPolicy, FairSharing,
        FlavorFungibility, FlavorQuotas, KubeConfig, LocalQueue, LocalQueueSpec, MultiKueueCluster,
        MultiKueueClusterSpec, PodSet, PodSetAssignment, PodSetSliceTopologyConstraint,
        PodSetTopologyRequest, PreemptionGate, PriorityClassRef, ReclaimablePod, ResourceGroup,
        ResourceQuota, TopologyAssignment, TopologyAssignmentSlice,
        TopologyAssignmentSliceLevelIndividualValues, TopologyAssignmentSliceLevelValues,
        TopologyAssignmentSlicePodCounts, Workload, WorkloadSpec, WorkloadStatus,
    },
};
use proptest::{collection::vec, option, prelude::*};
use serde::{Serialize, de::DeserializeOwned};

const V1BETA1: &str = "kueue.x-k8s.io/v1beta1";
const V1BETA2: &str = "kueue.x-k8s.io/v1beta2";

fn there_and_back<T: Serialize + DeserializeOwned>(object: &T) -> T {
    let object = serde_json::to_value(object).expect("serializable");
    let old = convert(object, V1BETA1).expect("to v1beta1");
    let back = convert(old, V1BETA2).expect("to v1beta2");
    serde_json::from_value(back).expect("deserializable")
}

fn name() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9-]{0,6}"
}

fn quantity() -> impl Strategy<Value = Quantity> {
    (any::<i32>(), prop::sample::select(vec!["", "m", "Mi", "k"]))
        .prop_map(|(number, suffix)| format!("{number}{suffix}").parse().expect("a quantity"))
}

prop_compose! {
    fn topology_request()(
        required in option::of(name()), preferred in option::of(name()), unconstrained in option::of(any::<bool>()),
        group in option::of(name()), size in option::of(1..9), layers in vec(1..5, 0..3),
    ) -> PodSetTopologyRequest {
        PodSetTopologyRequest {
            required, preferred, unconstrained,
            pod_set_group_name: group,
            pod_set_slice_size: size,
            podset_slice_required_topology_constraints: layers
                .into_iter()
                .map(|size| PodSetSliceTopologyConstraint { size, topology: "rack".into() })
                .collect(),
            ..PodSetTopologyRequest::default()
        }
    }
}

prop_compose! {
    fn pod_set()(
        name in name(), count in 0..100, min_count in option::of(1..9), topology_request in option::of(topology_request().prop_map(Box::new)),
        cpu in quantity(),
    ) -> PodSet {
        PodSet { name, count: Some(count), min_count, topology_request, template: template(cpu) }
    }
}

fn template(cpu: Quantity) -> PodTemplate {
    let requests = BTreeMap::from([("cpu".into(), cpu)]);
    let resources =
        Some(ResourceRequirements { requests, ..ResourceRequirements::default() }.into());
    let container = Container { name: "c".into(), resources, ..Container::default() };
    let spec = PodSpec { containers: vec![container], ..PodSpec::default() };
    PodTemplate { metadata: None, spec: Some(spec.into()) }
}

fn class() -> impl Strategy<Value = PriorityClassRef> {
    let kinds =
        [("kueue.x-k8s.io", "WorkloadPriorityClass"), ("scheduling.k8s.io", "PriorityClass")];
    (prop::sample::select(kinds.to_vec()), name()).prop_map(|((group, kind), name)| {
        PriorityClassRef { group: group.into(), kind: kind.into(), name }
    })
}

/// Domains of one level, encoded as we do: equal values once, different ones without their common ends.
fn topology_assignment() -> impl Strategy<Value = TopologyAssignment> {
    (2..9_i32, any::<bool>(), 1..5_i32).prop_map(|(domains, same, pods)| {
        let individual = TopologyAssignmentSliceLevelIndividualValues {
            prefix: Some("node-".into()),
            roots: (0..domains).map(|at| at.to_string()).collect(),
            suffix: None,
        };
        let level = if same {
            TopologyAssignmentSliceLevelValues { universal: Some("n".into()), individual: None }
        } else {
            TopologyAssignmentSliceLevelValues { universal: None, individual: Some(individual) }
        };
        TopologyAssignment {
            levels: vec!["kubernetes.io/hostname".into()],
            slices: vec![TopologyAssignmentSlice {
                domain_count: domains,
                pod_counts: TopologyAssignmentSlicePodCounts {
                    universal: Some(pods),
                    individual: vec![],
                },
                values_per_level: vec![level],
            }],
        }
    })
}

prop_compose! {
    fn status()(
        queue in name(), usage in quantity(), topology in option::of(topology_assignment()), count in 0..9,
        clusters in vec(name(), 0..3), cluster_name in option::of(name()), past in option::of(0..99), state in name(),
    ) -> WorkloadStatus {
        let assignment = PodSetAssignment {
            name: "main".into(),
            count: Some(count),
            flavors: BTreeMap::from([("cpu".into(), "f".into())]).into(),
            resource_usage: BTreeMap::from([("cpu".into(), usage)]).into(),
            topology_assignment: topology,
            ..PodSetAssignment::default()
        };
        WorkloadStatus {
            admission: Some(Admission { cluster_queue: queue, pod_set_assignments: vec![assignment] }),
            admission_checks: vec![AdmissionCheckState { name: "c".into(), state, ..AdmissionCheckState::default() }],
            nominated_cluster_names: clusters,
            cluster_name,
            accumulated_past_execution_time_seconds: past,
            reclaimable_pods: vec![ReclaimablePod { name: "main".into(), count }],
            ..WorkloadStatus::default()
        }
    }
}

prop_compose! {
    fn workload()(
        pod_sets in vec(pod_set(), 1..4), queue_name in name(), active in option::of(any::<bool>()),
        priority in any::<i32>(), class in option::of(class()), time in option::of(1..99),
        gates in vec(name(), 0..2), status in status(),
    ) -> Workload {
        let spec = WorkloadSpec {
            pod_sets, queue_name, active,
            priority: Some(priority),
            priority_class_ref: class.map(Box::new),
            maximum_execution_time_seconds: time,
            preemption_gates: gates.into_iter().map(|name| PreemptionGate { name }).collect(),
        };
        Workload { spec, status, ..Workload::default() }
    }
}

prop_compose! {
    fn cluster_queue()(
        cohort_name in "[a-z]{0,4}", nominal in quantity(), borrowing in option::of(quantity()),
        weight in option::of(quantity()), checks in vec(name(), 0..3), policy in any::<bool>(), stop in option::of(name()),
    ) -> ClusterQueue {
        let quota = ResourceQuota {
            name: "cpu".into(),
            nominal_quota: nominal,
            borrowing_limit: borrowing,
            lending_limit: None,
        };
        let rules = |name| AdmissionCheckStrategyRule { name, on_flavors: vec!["f".into()] };
        let spec = ClusterQueueSpec {
            cohort_name,
            resource_groups: vec![ResourceGroup {
                covered_resources: vec!["cpu".into()],
                flavors: vec![FlavorQuotas { name: "f".into(), resources: vec![quota] }],
            }],
            fair_sharing: weight.map(|weight| FairSharing { weight: Some(weight) }),
            admission_checks_strategy: (!checks.is_empty())
                .then(|| AdmissionChecksStrategy { admission_checks: checks.into_iter().map(rules).collect() }),
            flavor_fungibility: Some(FlavorFungibility {
                when_can_borrow: "TryNextFlavor".into(),
                when_can_preempt: "MayStopSearch".into(),
                preference: None,
            }),
            concurrent_admission_policy: policy.then(ConcurrentAdmissionPolicy::default),
            stop_policy: stop,
            ..ClusterQueueSpec::default()
        };
        ClusterQueue { spec, ..ClusterQueue::default() }
    }
}

proptest! {
    #[test]
    fn workloads(workload in workload()) {
        let mut kept = workload.clone();
        kept.spec.preemption_gates.clear();
        for request in kept.spec.pod_sets.iter_mut().filter_map(|pod_set| pod_set.topology_request.as_mut()) {
            request.podset_slice_required_topology_constraints.clear();
        }
        let mut back = there_and_back(&workload);
        // Converters write the metadata of a template even when there is none.
        for pod_set in &mut back.spec.pod_sets {
            pod_set.template.metadata = None;
        }
        prop_assert_eq!(back, kept);
    }

    #[test]
    fn cluster_queues(queue in cluster_queue()) {
        let mut kept = queue.clone();
        kept.spec.concurrent_admission_policy = None;
        prop_assert_eq!(there_and_back(&queue), kept);
    }

    #[test]
    fn local_queues(queue in name(), stop in option::of(name()), pending in any::<i32>()) {
        let mut object = LocalQueue {
            spec: LocalQueueSpec { cluster_queue: queue, stop_policy: stop, fair_sharing: None },
            ..LocalQueue::default()
        };
        object.status.pending_workloads = pending;
        prop_assert_eq!(there_and_back(&object), object);
    }

    #[test]
    fn multi_kueue_clusters(location in name(), kind in prop::sample::select(vec!["Secret", "Path"])) {
        let kube_config = Some(KubeConfig { location, location_type: kind.into() });
        let source = ClusterSource { cluster_profile_ref: None, kube_config };
        let object = MultiKueueCluster {
            spec: MultiKueueClusterSpec { cluster_source: source },
            ..MultiKueueCluster::default()
        };
        prop_assert_eq!(there_and_back(&object), object);
    }
}
