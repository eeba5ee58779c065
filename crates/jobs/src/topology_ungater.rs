//! The topology ungater: which domain of its topology assignment a gated pod gets (docs/reference/kueue.md §4.11).
//!
//! Domains are given by rank if the pods have valid ranks that agree with the pods that run already: ranks are counted over the
//! domains in the order of the assignment, so that neighbours in rank are neighbours in the topology. Otherwise gated pods
//! fill the domains in order. Either way no domain gets more pods than it is assigned.

use std::collections::{BTreeMap, BTreeSet};

use crds::{
    names::{annotations::POD_INDEX_OFFSET, labels::HOSTNAME},
    v1beta2::{PodSetAssignment, PodSetTopologyRequest, Workload},
};

use crate::go_parse;

/// Why no pod of a Workload gets a domain: the offset of the ranks of a pod is no number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to parse offset annotation: {problem}")]
pub struct OffsetError {
    /// The index of the pod.
    pub pod: usize,
    /// The error of Go's parser.
    problem: String,
}

/// Node labels by key.
pub type NodeLabels = BTreeMap<String, String>;

/// A pod of a pod set, as the ungater reads it. One that has ended does not count.
#[derive(Clone, Copy, Debug)]
pub struct UngaterPod<'a> {
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: &'a BTreeMap<String, String>,
    /// Its node selector, which has the labels of its domain once it is not gated any more.
    pub node_selector: &'a NodeLabels,
    /// It has the gate of the topology.
    pub gated: bool,
    /// It is being deleted.
    pub deleting: bool,
}

impl UngaterPod<'_> {
    /// The offset of its rank, that of Go's `Atoi`.
    fn offset(&self) -> Result<i64, String> {
        self.annotations.get(POD_INDEX_OFFSET).map_or(Ok(0), |offset| go_parse::integer(offset))
    }
}

/// Checks the offsets of the pods of a pod set. With a wrong one no pod of the Workload may get a domain: pods in the order of their
/// names would be far from their neighbours in rank. That of a pod that is being deleted does not matter.
///
/// # Errors
/// If the pod set has a topology assignment, and a pod an offset that is no number, whether or not a rank is read with it.
pub fn check_offsets(
    workload: &Workload,
    pod_set: &str,
    pods: &[UngaterPod<'_>],
) -> Result<(), OffsetError> {
    let assigned =
        assignment(workload, pod_set).is_some_and(|one| one.topology_assignment.is_some());
    let checked = pods.iter().enumerate().filter(|(_, one)| assigned && !one.deleting);
    for (pod, one) in checked {
        one.offset().map_err(|problem| OffsetError { pod, problem })?;
    }
    Ok(())
}

/// The domains of gated pods: the index of the pod, and the node labels of its domain. Pods that must wait are left out.
/// Nodes that the status names as failed get no pods, and neither do those that are `failing`.
#[must_use]
pub fn domains_of_gated_pods(
    workload: &Workload,
    pod_set: &str,
    failing: &BTreeSet<String>,
    pods: &[UngaterPod<'_>],
) -> Vec<(usize, NodeLabels)> {
    let Some(domains) = Domains::of(workload, pod_set, failing) else {
        return Vec::new();
    };
    let ranks = Ranks::of(workload, pod_set).and_then(|ranks| ranks.of_pods(pods, &domains));
    match ranks {
        Some(ranks) => domains.by_rank(pods, &ranks),
        None => domains.in_order(pods),
    }
}

/// The domains that a pod set is assigned. To decode them takes as long as there are many, so one value serves all its pods.
pub struct AssignedDomains<'a>(Option<Domains<'a>>);

impl<'a> AssignedDomains<'a> {
    /// Those of a pod set.
    #[must_use]
    pub fn of(workload: &'a Workload, pod_set: &str) -> Self {
        Self(Domains::of(workload, pod_set, &BTreeSet::new()))
    }

    /// Whether these are the labels of one of them.
    #[must_use]
    pub fn have(&self, labels: &NodeLabels) -> bool {
        self.0.as_ref().is_some_and(|domains| domains.find(labels).is_some())
    }
}

/// The domains of a pod set, in the order of the assignment.
struct Domains<'a> {
    levels: &'a [String],
    domains: Vec<PodDomain>,
    /// Indices by values.
    by_values: BTreeMap<Vec<String>, usize>,
}

struct PodDomain {
    values: Vec<String>,
    count: usize,
    /// Its node has failed, and gets no further pods.
    failed: bool,
}

impl<'a> Domains<'a> {
    /// `None` for a pod set without a topology assignment.
    fn of(workload: &'a Workload, pod_set: &str, failing: &BTreeSet<String>) -> Option<Self> {
        let assigned = assignment(workload, pod_set)?.topology_assignment.as_ref()?;
        let on_nodes = assigned.levels.last().is_some_and(|level| level == HOSTNAME);
        let unhealthy = &workload.status.unhealthy_nodes;
        let fails =
            |host: &String| failing.contains(host) || unhealthy.iter().any(|one| one.name == *host);
        let domain = |(values, count): (Vec<String>, i32)| PodDomain {
            failed: on_nodes && values.last().is_some_and(fails),
            count: usize::try_from(count).unwrap_or_default(),
            values,
        };
        let domains: Vec<PodDomain> = assigned.domains().map(domain).collect();
        let by_values = domains.iter().enumerate().map(|(at, one)| (one.values.clone(), at));
        Some(Self { levels: &assigned.levels, by_values: by_values.collect(), domains })
    }

    /// The index of the domain that a node selector names.
    fn find(&self, selector: &NodeLabels) -> Option<usize> {
        let values = self.levels.iter().map(|level| selector.get(level).cloned());
        self.by_values.get(&values.collect::<Option<Vec<String>>>()?).copied()
    }

    fn labels(&self, domain: usize) -> NodeLabels {
        self.levels.iter().cloned().zip(self.domains[domain].values.iter().cloned()).collect()
    }

    /// The domain of each rank.
    fn slots(&self) -> Vec<usize> {
        let domains = self.domains.iter().enumerate();
        domains.flat_map(|(index, domain)| std::iter::repeat_n(index, domain.count)).collect()
    }

    fn by_rank(&self, pods: &[UngaterPod<'_>], ranks: &PodRanks) -> Vec<(usize, NodeLabels)> {
        let slots = self.slots();
        let ungated = ranks.iter().filter(|(index, _)| !pods[**index].gated);
        let taken: BTreeSet<usize> = ungated.map(|(_, rank)| *rank).collect();
        // A pod without a rank has a place of its domain until it is gone.
        let unranked = pods.iter().enumerate().filter(|(index, _)| !ranks.contains_key(index));
        let mut free = self.free(unranked.map(|(_, pod)| pod));
        for &rank in &taken {
            free[slots[rank]] = free[slots[rank]].saturating_sub(1);
        }
        let mut assigned = Vec::new();
        for (&index, &rank) in ranks {
            let (pod, domain) = (&pods[index], slots[rank]);
            // A predecessor of the same rank that is being deleted still has the place.
            let waits = pod.deleting || taken.contains(&rank) || self.domains[domain].failed;
            if pod.gated && !waits && free[domain] > 0 {
                free[domain] -= 1;
                assigned.push((index, self.labels(domain)));
            }
        }
        assigned
    }

    /// The pods that each domain takes beside those of these that are not gated.
    fn free<'p>(&self, pods: impl Iterator<Item = &'p UngaterPod<'p>>) -> Vec<usize> {
        let mut free: Vec<usize> = self.domains.iter().map(|domain| domain.count).collect();
        for domain in pods.filter(|pod| !pod.gated).filter_map(|pod| self.find(pod.node_selector)) {
            free[domain] = free[domain].saturating_sub(1);
        }
        free
    }

    fn in_order(&self, pods: &[UngaterPod<'_>]) -> Vec<(usize, NodeLabels)> {
        let free = self.free(pods.iter());
        let open =
            self.domains.iter().zip(free).enumerate().filter(|(_, (domain, _))| !domain.failed);
        let places = open.flat_map(|(index, (_, free))| std::iter::repeat_n(index, free));
        let gated = pods.iter().enumerate().filter(|(_, pod)| pod.gated && !pod.deleting);
        gated.zip(places).map(|((pod, _), domain)| (pod, self.labels(domain))).collect()
    }
}

/// Ranks by the index of the pod.
type PodRanks = BTreeMap<usize, usize>;

/// How ranks are read from the labels of pods.
struct Ranks<'a> {
    request: &'a PodSetTopologyRequest,
    index_label: &'a str,
    /// Pods of the pod set.
    count: usize,
    /// The rank in its pod set group of the first pod; 0 without a group.
    group_offset: i64,
}

impl<'a> Ranks<'a> {
    /// `None` if the pods of the pod set have no ranks.
    fn of(workload: &'a Workload, pod_set: &str) -> Option<Self> {
        let request = request(workload, pod_set)?;
        let index_label = request.pod_index_label.as_deref()?;
        let count = count(assignment(workload, pod_set)?);
        let group_offset = group_offset(workload, pod_set).unwrap_or(0);
        let group_offset = i64::try_from(group_offset).ok()?;
        Some(Self { request, index_label, count, group_offset })
    }

    /// The rank of every pod, except for those with a wrong offset that are being deleted. `None` if another pod has none, if two pods
    /// claim one, or if a pod runs in a domain that is not that of its rank.
    fn of_pods(&self, pods: &[UngaterPod<'_>], domains: &Domains<'_>) -> Option<PodRanks> {
        let wrong = |pod: &UngaterPod<'_>| pod.deleting && pod.offset().is_err();
        let ranked = pods.iter().enumerate().filter(|(_, pod)| !wrong(pod));
        let ranks: PodRanks =
            ranked.map(|(index, pod)| Some((index, self.of_pod(pod)?))).collect::<Option<_>>()?;
        let slots = domains.slots();
        let mut seen = BTreeSet::new();
        for (&index, &rank) in &ranks {
            let pod = &pods[index];
            let slot = *slots.get(rank)?;
            // A pod that is being deleted may have a successor already.
            if !pod.deleting && !seen.insert(rank) {
                return None;
            }
            if !pod.gated && domains.find(pod.node_selector) != Some(slot) {
                return None;
            }
        }
        Some(ranks)
    }

    fn of_pod(&self, pod: &UngaterPod<'_>) -> Option<usize> {
        let number =
            |label: &str| usize::try_from(go_parse::unsigned(pod.labels.get(label)?)?).ok();
        let index = number(self.index_label)?;
        let offset = self.group_offset.checked_add(pod.offset().ok()?)?;
        let rank = match (&self.request.sub_group_index_label, self.request.sub_group_count) {
            (Some(label), Some(groups)) => {
                let groups = usize::try_from(groups).ok().filter(|groups| *groups > 0)?;
                let (size, group) = (self.count / groups, number(label)?);
                (index < size && group < groups).then(|| index + group * size)?
            }
            _ => index,
        };
        let rank = i64::try_from(rank).ok()?.checked_sub(offset)?;
        usize::try_from(rank).ok().filter(|rank| *rank < self.count)
    }
}

/// In a pod set group the ranks of the larger pod set follow that of its leader.
fn group_offset(workload: &Workload, pod_set: &str) -> Option<usize> {
    let group = request(workload, pod_set)?.pod_set_group_name.as_deref()?;
    let admission = workload.status.admission.as_ref()?;
    let in_group = |one: &&PodSetAssignment| {
        let other = request(workload, &one.name).and_then(|one| one.pod_set_group_name.as_deref());
        other == Some(group) && one.name != pod_set
    };
    let own = assignment(workload, pod_set)?;
    let other = admission.pod_set_assignments.iter().find(in_group)?;
    let place = |one: &PodSetAssignment| {
        let all = &admission.pod_set_assignments;
        (count(one), all.iter().position(|other| other.name == one.name))
    };
    Some(if place(own) > place(other) { count(other) } else { 0 })
}

fn count(assignment: &PodSetAssignment) -> usize {
    assignment.count.and_then(|count| usize::try_from(count).ok()).unwrap_or_default()
}

fn assignment<'a>(workload: &'a Workload, pod_set: &str) -> Option<&'a PodSetAssignment> {
    let admission = workload.status.admission.as_ref()?;
    admission.pod_set_assignments.iter().find(|one| one.name == pod_set)
}

fn request<'a>(workload: &'a Workload, pod_set: &str) -> Option<&'a PodSetTopologyRequest> {
    workload.spec.pod_sets.iter().find(|one| one.name == pod_set)?.topology_request.as_deref()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Domains as the API stores them: nodes with their pods.
    fn assigned(nodes: &[(&str, i32)]) -> Value {
        let roots: Vec<&str> = nodes.iter().map(|(name, _)| *name).collect();
        let counts: Vec<i32> = nodes.iter().map(|(_, count)| *count).collect();
        json!({"levels": [HOSTNAME], "slices": [{
            "domainCount": nodes.len(),
            "valuesPerLevel": [{"individual": {"roots": roots}}],
            "podCounts": {"individual": counts},
        }]})
    }

    fn workload(nodes: &[(&str, i32)], request: &Value) -> Workload {
        let count: i32 = nodes.iter().map(|(_, count)| count).sum();
        serde_json::from_value(json!({
            "spec": {"podSets": [{"name": "main", "count": count, "topologyRequest": request}]},
            "status": {"admission": {"clusterQueue": "cq", "podSetAssignments": [
                {"name": "main", "count": count, "topologyAssignment": assigned(nodes)},
            ]}},
        }))
        .expect("a Workload decodes")
    }

    /// A pod: its labels, its node if it is ungated, and whether it is being deleted.
    #[derive(Clone, Debug, Default)]
    struct TestPod {
        labels: BTreeMap<String, String>,
        annotations: BTreeMap<String, String>,
        selector: NodeLabels,
        gated: bool,
        deleting: bool,
    }

    fn pod(labels: &[(&str, usize)]) -> TestPod {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), value.to_string()));
        TestPod { labels: labels.collect(), gated: true, ..TestPod::default() }
    }

    fn on(node: &str, mut pod: TestPod) -> TestPod {
        pod.selector = [(HOSTNAME.to_owned(), node.to_owned())].into();
        pod.gated = false;
        pod
    }

    fn for_ungater(pod: &TestPod) -> UngaterPod<'_> {
        UngaterPod {
            labels: &pod.labels,
            annotations: &pod.annotations,
            node_selector: &pod.selector,
            gated: pod.gated,
            deleting: pod.deleting,
        }
    }

    fn domains(workload: &Workload, pod_set: &str, pods: &[TestPod]) -> Vec<(usize, String)> {
        let view: Vec<UngaterPod<'_>> = pods.iter().map(for_ungater).collect();
        let failing = ["c".to_owned()].into();
        let found = domains_of_gated_pods(workload, pod_set, &failing, &view).into_iter();
        found.map(|(index, labels)| (index, labels[HOSTNAME].clone())).collect()
    }

    fn places(found: &[(usize, &str)]) -> Vec<(usize, String)> {
        found.iter().map(|(index, node)| (*index, (*node).to_owned())).collect()
    }

    fn by_index() -> Value {
        json!({"podIndexLabel": "index"})
    }

    #[test]
    fn pods_without_ranks_fill_the_domains_in_order() {
        let workload = workload(&[("a", 2), ("b", 1)], &json!({}));
        let pods = [pod(&[]), on("a", pod(&[])), pod(&[]), pod(&[])];
        assert_eq!(domains(&workload, "main", &pods), places(&[(0, "a"), (2, "b")]));
    }

    #[test]
    fn pods_with_ranks_get_the_domain_of_their_rank() {
        let workload = workload(&[("a", 2), ("b", 2)], &by_index());
        let pods = [pod(&[("index", 3)]), pod(&[("index", 0)])];
        assert_eq!(domains(&workload, "main", &pods), places(&[(0, "b"), (1, "a")]));
    }

    #[test]
    fn ranks_of_subgroups_follow_each_other() {
        let request =
            json!({"podIndexLabel": "index", "subGroupIndexLabel": "job", "subGroupCount": 2});
        let workload = workload(&[("a", 2), ("b", 2)], &request);
        let pods = [pod(&[("index", 0), ("job", 1)]), pod(&[("index", 1), ("job", 0)])];
        assert_eq!(domains(&workload, "main", &pods), places(&[(0, "b"), (1, "a")]));
        // An index beyond the size of a subgroup is no rank.
        let pods = [pod(&[("index", 2), ("job", 0)])];
        assert_eq!(domains(&workload, "main", &pods), places(&[(0, "a")]));
    }

    #[test]
    fn ranks_that_contradict_running_pods_do_not_count() {
        let workload = workload(&[("a", 1), ("b", 1)], &by_index());
        // Rank 1 runs in the domain of rank 0, which is therefore taken.
        let pods = [on("a", pod(&[("index", 1)])), pod(&[("index", 0)])];
        assert_eq!(domains(&workload, "main", &pods), places(&[(1, "b")]));
        let twice = [pod(&[("index", 1)]), pod(&[("index", 1)])];
        assert_eq!(domains(&workload, "main", &twice), places(&[(0, "a"), (1, "b")]));
        let unlabelled = [pod(&[("index", 1)]), pod(&[])];
        assert_eq!(domains(&workload, "main", &unlabelled), places(&[(0, "a"), (1, "b")]));
        let mut signed = unlabelled;
        signed[1].labels.insert("index".to_owned(), "+0".to_owned());
        assert_eq!(domains(&workload, "main", &signed), places(&[(0, "a"), (1, "b")]));
    }

    #[test]
    fn a_successor_waits_until_its_predecessor_is_gone() {
        let workload = workload(&[("a", 1), ("b", 1)], &by_index());
        let mut old = on("a", pod(&[("index", 0)]));
        old.deleting = true;
        let pods = [old, pod(&[("index", 0)]), pod(&[("index", 1)])];
        assert_eq!(domains(&workload, "main", &pods), places(&[(2, "b")]));
    }

    #[test]
    fn a_failed_node_gets_no_pods() {
        let mut workload = workload(&[("a", 1), ("b", 1)], &json!({}));
        let failed = crds::v1beta2::UnhealthyNode { name: "a".to_owned() };
        workload.status.unhealthy_nodes.push(failed);
        assert_eq!(domains(&workload, "main", &[pod(&[]), pod(&[])]), places(&[(0, "b")]));
        // `c` is failing, and no status says so.
        let failing = self::workload(&[("b", 1), ("c", 1)], &json!({}));
        assert_eq!(domains(&failing, "main", &[pod(&[]), pod(&[])]), places(&[(0, "b")]));
    }

    #[test]
    fn workers_of_a_group_are_ranked_after_their_leader() {
        let request = json!({"podIndexLabel": "index", "podSetGroupName": "g"});
        let workload: Workload = serde_json::from_value(json!({
            "spec": {"podSets": [
                {"name": "leader", "count": 1, "topologyRequest": request},
                {"name": "workers", "count": 2, "topologyRequest": request},
            ]},
            "status": {"admission": {"clusterQueue": "cq", "podSetAssignments": [
                {"name": "leader", "count": 1, "topologyAssignment": assigned(&[("a", 1)])},
                {"name": "workers", "count": 2, "topologyAssignment": assigned(&[("a", 1), ("b", 1)])},
            ]}},
        }))
        .expect("decodes");
        let pods = [pod(&[("index", 2)]), pod(&[("index", 1)])];
        assert_eq!(domains(&workload, "workers", &pods), places(&[(0, "b"), (1, "a")]));
        assert_eq!(domains(&workload, "leader", &[pod(&[("index", 0)])]), places(&[(0, "a")]));
    }

    #[test]
    fn an_offset_of_the_pods_is_subtracted() {
        let workload = workload(&[("a", 1), ("b", 1)], &by_index());
        let mut last = pod(&[("index", 2)]);
        last.annotations.insert(POD_INDEX_OFFSET.to_owned(), "1".to_owned());
        assert_eq!(domains(&workload, "main", &[last]), places(&[(0, "b")]));
    }

    fn check_main(workload: &Workload, pods: &[TestPod]) -> Result<(), OffsetError> {
        let view: Vec<UngaterPod<'_>> = pods.iter().map(for_ungater).collect();
        check_offsets(workload, "main", &view)
    }

    fn with_offset(offset: &str, mut pod: TestPod) -> TestPod {
        pod.annotations.insert(POD_INDEX_OFFSET.to_owned(), offset.to_owned());
        pod
    }

    #[test]
    fn an_offset_that_is_no_number_is_an_error() {
        let with = |offset: &str| with_offset(offset, pod(&[("index", 1)]));
        let assigned = workload(&[("a", 1), ("b", 1)], &by_index());
        let check = |workload: &Workload, offset: &str| {
            let pods = [pod(&[("index", 0)]), with(offset)];
            check_main(workload, &pods).map_err(|error| (error.pod, error.to_string()))
        };
        for (offset, problem) in [
            ("x", "invalid syntax"),
            ("", "invalid syntax"),
            ("9223372036854775808", "value out of range"),
        ] {
            let text = format!(
                "failed to parse offset annotation: strconv.Atoi: parsing {offset:?}: {problem}"
            );
            assert_eq!(check(&assigned, offset), Err((1, text)));
        }
        for offset in ["0", "+1", "-1"] {
            assert_eq!(check(&assigned, offset), Ok(()), "{offset}");
        }
        let mut without = assigned;
        without.status.admission = None;
        assert_eq!(check(&without, "x"), Ok(()), "nothing is assigned");
        // One below zero moves pods to later ranks, as upstream's does.
        let pods = [with("-1"), with("0")];
        let three = workload(&[("a", 2), ("b", 1)], &by_index());
        assert_eq!(domains(&three, "main", &pods), places(&[(0, "b"), (1, "a")]));
    }

    #[test]
    fn an_offset_of_a_pod_that_is_being_deleted_keeps_no_pod_gated() {
        let workload = workload(&[("b", 1), ("a", 1)], &by_index());
        let leaving = |pod: TestPod| TestPod { deleting: true, ..with_offset("x", pod) };
        let next = [pod(&[("index", 1)]), pod(&[("index", 0)])];
        let gated = [[leaving(pod(&[("index", 0)]))].as_slice(), &next].concat();
        assert_eq!(check_main(&workload, &gated), Ok(()));
        assert_eq!(domains(&workload, "main", &gated), places(&[(1, "a"), (2, "b")]));
        // It has its place until it is gone.
        let bound = [[leaving(on("b", pod(&[("index", 0)])))].as_slice(), &next].concat();
        assert_eq!(check_main(&workload, &bound), Ok(()));
        assert_eq!(domains(&workload, "main", &bound), places(&[(1, "a")]));
    }

    #[test]
    fn an_offset_that_no_rank_is_read_with_is_checked_too() {
        let check =
            |workload: &Workload| check_main(workload, &[with_offset("x", pod(&[("index", 0)]))]);
        assert!(check(&workload(&[("a", 1)], &by_index())).is_err());
        assert!(check(&workload(&[("a", 1)], &json!({}))).is_err(), "pods have no ranks");
        assert!(check(&with_leader(&[("a", 1)])).is_err());
    }

    /// Workers behind a leader of their group.
    fn with_leader(nodes: &[(&str, i32)]) -> Workload {
        let request = json!({"podIndexLabel": "index", "podSetGroupName": "g"});
        let mut grouped = workload(nodes, &request);
        let mut leader = grouped.spec.pod_sets[0].clone();
        leader.name = "leader".to_owned();
        grouped.spec.pod_sets.push(leader);
        let assigned =
            &mut grouped.status.admission.as_mut().expect("admitted").pod_set_assignments;
        let mut leader = assigned[0].clone();
        (leader.name, leader.count) = ("leader".to_owned(), Some(1));
        assigned.push(leader);
        grouped
    }

    #[test]
    fn an_offset_adds_to_that_of_the_group() {
        let workers = with_leader(&[("a", 1), ("b", 1)]);
        let ranked = |offset: &str| {
            let pods = [3, 2].map(|index| with_offset(offset, pod(&[("index", index)])));
            domains(&workers, "main", &pods)
        };
        assert_eq!(ranked("1"), places(&[(0, "b"), (1, "a")]));
        assert_eq!(ranked("0"), places(&[(0, "a"), (1, "b")]), "one is beyond the pod set");
    }

    proptest::proptest! {
        #[test]
        fn no_domain_gets_more_pods_than_it_is_assigned(
            counts in proptest::collection::vec(0..4_i32, 1..5),
            states in proptest::collection::vec((0..12_usize, 0..5_usize, 0..4_u8), 0..14),
            ranked in proptest::bool::ANY,
        ) {
            let names = ["a", "b", "c", "d", "e"];
            let nodes: Vec<(&str, i32)> = names.into_iter().zip(counts).collect();
            let workload = workload(&nodes, &if ranked { by_index() } else { json!({}) });
            let mut left: BTreeMap<&str, i32> = nodes.iter().copied().collect();
            let pods = states.into_iter().map(|(rank, node, state)| {
                let mut one = pod(&[("index", rank)]);
                let name = names[node];
                // Pods that run already are within the assignment.
                if state == 0 && left.get(name).is_some_and(|left| *left > 0) {
                    *left.get_mut(name).expect("known") -= 1;
                    one = on(name, one);
                }
                one.deleting = state == 1;
                one
            });
            let pods: Vec<TestPod> = pods.collect();
            for (index, node) in domains(&workload, "main", &pods) {
                proptest::prop_assert!(pods[index].gated && !pods[index].deleting);
                let left = left.get_mut(node.as_str()).expect("an assigned domain");
                *left -= 1;
                proptest::prop_assert!(*left >= 0, "{node} has too many pods");
            }
        }
    }
}
