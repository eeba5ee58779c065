use crds::v1beta2::{self, Workload};
use engine::spec::{CheckState, QueueEligibility, WorkloadInfo};
use engine::{AcceptAll, Amount, CycleOutcome, Engine, Event, Time};
use serde_json::{Value, json};

use crate::{AdmissionMode, AffectedWorkloads, Index, IndexConfig};

const NOON: i64 = 1_767_268_800_000_000_000;
const SECOND: i64 = 1_000_000_000;

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object")
}

/// A pending Workload of one pod set with these requests per pod.
fn asking(requests: Value) -> Value {
    let pod = json!({"containers": [{"name": "c", "resources": {"requests": requests}}]});
    json!({
        "metadata": {"namespace": "ns", "name": "w", "uid": "u", "creationTimestamp": "2026-01-01T12:00:00Z"},
        "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 3, "template": {"spec": pod}}]},
    })
}

fn with(mut workload: Value, patch: Value) -> Workload {
    json_merge(&mut workload, patch);
    from(workload)
}

fn json_merge(into: &mut Value, patch: Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                json_merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, patch) => *into = patch,
    }
}

/// Index and engine with one queue `q` of 10 cpu, entered through `ns/lq`.
struct IndexFixture {
    index: Index,
    engine: Engine,
}

impl IndexFixture {
    fn new(config: IndexConfig) -> Self {
        let mut fixture =
            Self { index: Index::new(config), engine: Engine::new(Default::default()) };
        let (index, names) = (&mut fixture.index, fixture.engine.names_mut());
        let queue: v1beta2::ClusterQueue = from(json!({"spec": {
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
                {"name": "f", "resources": [{"name": "cpu", "nominalQuota": "10"}]},
            ]}],
        }}));
        let local: v1beta2::LocalQueue = from(json!({"spec": {"clusterQueue": "q"}}));
        let flavor: v1beta2::ResourceFlavor = from(json!({"spec": {"nodeLabels": {"pool": "f"},
            "tolerations": [{"key": "k", "operator": "Exists"}]}}));
        let mut events = index.namespace(names, "ns", Some(&Default::default()));
        events.extend(index.resource_flavor(names, "f", Some(&flavor)));
        events.extend(index.cluster_queue(names, "q", Some(&queue)));
        events.extend(index.local_queue(names, "ns", "lq", Some(&local)));
        fixture.apply(events);
        fixture
    }

    fn apply(&mut self, events: Vec<Event>) {
        for event in events {
            self.engine.apply(event);
        }
    }

    fn enter(&mut self, workload: &Workload) -> Vec<Event> {
        let events = self.index.workload(self.engine.names_mut(), workload, Time(NOON));
        self.apply(events.clone());
        events
    }

    fn cycle(&mut self) -> Vec<CycleOutcome> {
        self.engine.cycle(Time(NOON), &mut AcceptAll).iter().map(|entry| entry.outcome).collect()
    }

    fn used(&self) -> i64 {
        let queue = self.engine.names().queues.get("q").expect("the queue");
        self.engine.queue_usage(queue).iter().map(|(_, _, amount)| amount.0).sum()
    }
}

fn spec(events: &[Event]) -> &WorkloadInfo {
    match events.first() {
        Some(Event::Workload(_, spec)) => spec,
        other => panic!("{other:?}"),
    }
}

fn kinds(events: &[Event]) -> Vec<&'static str> {
    let kind = |event: &Event| match event {
        Event::Workload(..) => "workload",
        Event::WorkloadGone(_) => "gone",
        Event::Evicting(_) => "evicting",
        Event::Released { .. } => "released",
        other => panic!("{other:?}"),
    };
    events.iter().map(kind).collect()
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "lastTransitionTime": "2026-01-01T12:00:09Z"})
}

fn admission() -> Value {
    json!({"clusterQueue": "q", "podSetAssignments": [
        {"name": "main", "count": 3, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "6"}},
    ]})
}

#[test]
fn a_pending_workload_gets_its_quota() {
    let mut fixture = IndexFixture::new(IndexConfig::default());
    let events = fixture.enter(&from(asking(json!({"cpu": "2"}))));
    let spec = spec(&events);
    assert_eq!(
        (spec.eligibility, spec.queued_at, &*spec.uid),
        (QueueEligibility::Eligible, Time(NOON), "u")
    );
    assert_eq!(fixture.cycle(), [CycleOutcome::Reserved { cluster: None }]);
    assert_eq!(fixture.used(), 6000);
}

#[test]
fn a_closed_preemption_gate_is_reported_until_it_opens() {
    let mut fixture = IndexFixture::new(IndexConfig::default());
    let gate = json!({"spec": {"preemptionGates": [{"name": "g"}]}});
    let closed = with(asking(json!({"cpu": "2"})), gate.clone());
    assert!(spec(&fixture.enter(&closed)).preemption_gated);
    let open = json!({"status": {"preemptionGates": [{"name": "g", "position": "Open"}]}});
    let mut object = asking(json!({"cpu": "2"}));
    json_merge(&mut object, gate);
    assert!(!spec(&fixture.enter(&with(object, open))).preemption_gated);
}

#[test]
fn a_parent_is_neither_queued_nor_charged_beside_its_variants() {
    let label =
        json!({"metadata": {"labels": {"kueue.x-k8s.io/concurrent-admission-parent": "true"}}});
    let reserved = json!({"status": {"admission": admission(),
        "conditions": [condition("QuotaReserved", "True", "QuotaReserved")]}});
    let mut pending = asking(json!({"cpu": "2"}));
    json_merge(&mut pending, label);
    let concurrent = IndexConfig { concurrent_admission: true, ..IndexConfig::default() };
    for (config, counts) in [(concurrent, false), (IndexConfig::default(), true)] {
        let mut fixture = IndexFixture::new(config);
        let events = fixture.enter(&from(pending.clone()));
        assert_eq!(spec(&events).eligibility == QueueEligibility::Eligible, counts);
        fixture.enter(&with(pending.clone(), reserved.clone()));
        assert_eq!(fixture.used(), if counts { 6000 } else { 0 });
    }
}

#[test]
fn a_workload_leaves_its_queue_before_its_variants_exist() {
    let policy = |check: Option<&str>| {
        let strategy =
            check.map(|check| json!({"admissionChecks": [{"name": check, "onFlavors": []}]}));
        from::<v1beta2::ClusterQueue>(json!({"spec": {
            "namespaceSelector": {}, "admissionChecksStrategy": strategy,
            "concurrentAdmissionPolicy": {"migration": {"mode": "RetainFirstAdmission"}},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "f"}, {"name": "g"}]}],
        }}))
    };
    let pending = asking(json!({"cpu": "2"}));
    let concurrent = IndexConfig { concurrent_admission: true, ..IndexConfig::default() };
    let mut fixture = IndexFixture::new(concurrent);
    fixture.index.take_workloads_to_reenter();
    let queued = |events: &[Event]| spec(events).eligibility == QueueEligibility::Eligible;
    assert!(queued(&fixture.enter(&from(pending.clone()))), "the ClusterQueue has no policy");
    let enter_queue = |fixture: &mut IndexFixture, queue: &v1beta2::ClusterQueue| {
        fixture.index.cluster_queue(fixture.engine.names_mut(), "q", Some(queue));
        fixture.index.take_workloads_to_reenter()
    };
    let again = enter_queue(&mut fixture, &policy(None));
    assert_eq!(again, AffectedWorkloads::InLocalQueues(["ns/lq".to_owned()].into()));
    assert_eq!(enter_queue(&mut fixture, &policy(None)), AffectedWorkloads::None);
    assert!(!queued(&fixture.enter(&from(pending.clone()))));
    let rules = fixture.index.variant_rules(&from(pending.clone())).expect("rules");
    assert_eq!(rules.flavors, ["f", "g"]);
    let label =
        json!({"metadata": {"labels": {"kueue.x-k8s.io/concurrent-admission-parent": "true"}}});
    let variant = json!({"metadata": {"ownerReferences": [
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "name": "p", "uid": "p"},
    ]}});
    let elastic = json!({"metadata": {"annotations": {"kueue.x-k8s.io/elastic-job": "true"}}});
    let reserved =
        json!({"status": {"conditions": [condition("QuotaReserved", "True", "QuotaReserved")]}});
    for (patch, becomes) in
        [(json!({}), true), (label, false), (variant, false), (elastic, false), (reserved, false)]
    {
        let becoming = fixture.index.becomes_parent(&with(pending.clone(), patch.clone()));
        assert_eq!(becoming, becomes, "{patch}");
    }
    // What is dispatched to workers has no variants.
    let check = json!({"spec": {"controllerName": "kueue.x-k8s.io/multikueue"}});
    enter_queue(&mut fixture, &policy(Some("m")));
    assert!(fixture.index.becomes_parent(&from(pending.clone())), "the check is unknown");
    fixture.index.admission_check(fixture.engine.names_mut(), "m", Some(&from(check)));
    let again = fixture.index.take_workloads_to_reenter();
    assert_eq!(again, AffectedWorkloads::InLocalQueues(["ns/lq".to_owned()].into()));
    assert!(queued(&fixture.enter(&from(pending))));
}

#[test]
fn a_replacing_slice_is_charged_once_in_any_order_of_events() {
    let old = with(
        asking(json!({"cpu": "2"})),
        json!({"status": {"admission": admission(),
        "conditions": [condition("QuotaReserved", "True", "QuotaReserved")]}}),
    );
    let mut new = asking(json!({"cpu": "2"}));
    json_merge(
        &mut new,
        json!({"metadata": {"name": "new", "uid": "v", "annotations":
        {"kueue.x-k8s.io/workload-slice-replacement-for": "ns/w"}}}),
    );
    new["spec"]["podSets"][0]["count"] = json!(5);
    let mut fixture = IndexFixture::new(IndexConfig::default());
    fixture.enter(&old);
    fixture.enter(&from(new.clone()));
    assert_eq!(
        (fixture.used(), fixture.cycle()),
        (6000, vec![CycleOutcome::Reserved { cluster: None }])
    );
    assert_eq!(fixture.used(), 10_000);
    let mut admission = admission();
    json_merge(
        &mut admission["podSetAssignments"][0],
        json!({"count": 5, "resourceUsage": {"cpu": "10"}}),
    );
    json_merge(
        &mut new,
        json!({"status": {"admission": admission,
        "conditions": [condition("QuotaReserved", "True", "QuotaReserved")]}}),
    );
    for first in [true, false] {
        let mut fixture = IndexFixture::new(IndexConfig::default());
        let new: Workload = from(new.clone());
        let order = if first { [&new, &old] } else { [&old, &new] };
        order.into_iter().for_each(|one| drop(fixture.enter(one)));
        assert_eq!(fixture.used(), 10_000);
        let events = fixture.index.workload_gone(
            fixture.engine.names(),
            "ns",
            if first { "w" } else { "new" },
        );
        fixture.apply(events);
        assert_eq!(fixture.used(), if first { 10_000 } else { 6000 });
    }
}

#[test]
fn an_object_without_quota_does_not_contradict_an_assumed_reservation() {
    let mut fixture = IndexFixture::new(IndexConfig::default());
    let pending: Workload = from(asking(json!({"cpu": "2"})));
    fixture.enter(&pending);
    fixture.cycle();
    assert_eq!(kinds(&fixture.enter(&pending)), ["workload"]);
    assert_eq!(fixture.used(), 6000);
}

#[test]
fn quota_is_held_until_an_object_shows_the_release() {
    let mut fixture = IndexFixture::new(IndexConfig::default());
    let asking = || asking(json!({"cpu": "2"}));
    let reserved = condition("QuotaReserved", "True", "QuotaReserved");
    let reserved = |more: Vec<Value>| {
        let conditions: Vec<Value> = [reserved.clone()].into_iter().chain(more).collect();
        with(asking(), json!({"status": {"admission": admission(), "conditions": conditions}}))
    };
    let evicted = condition("Evicted", "True", "Preempted");
    assert_eq!(kinds(&fixture.enter(&reserved(vec![]))), ["workload"]);
    assert_eq!(fixture.used(), 6000);
    assert_eq!(kinds(&fixture.enter(&reserved(vec![evicted.clone()]))), ["workload", "evicting"]);
    assert_eq!(kinds(&fixture.enter(&reserved(vec![evicted.clone()]))), ["workload"]);
    assert_eq!(fixture.used(), 6000);
    let released = with(
        asking(),
        json!({"status": {"conditions": [
            condition("QuotaReserved", "False", "PendingEvaluation"), evicted,
            condition("Requeued", "False", "ClusterQueueStopped"),
        ]}}),
    );
    let events = fixture.enter(&released);
    assert_eq!(kinds(&events), ["workload", "released"]);
    assert_eq!(fixture.used(), 0);
    assert_eq!(spec(&events).eligibility, QueueEligibility::AwaitsRequeue);
    assert_eq!(fixture.cycle(), [], "it waits for its queue to be restarted");
}

#[test]
fn reclaimable_pods_release_their_quota() {
    let mut fixture = IndexFixture::new(IndexConfig::default());
    let off = IndexConfig { reclaimable_pods: false, ..IndexConfig::default() };
    let mut without_gate = IndexFixture::new(off);
    let reserved = |gone: i32| {
        with(
            asking(json!({"cpu": "2"})),
            json!({"status": {
                "admission": admission(),
                "conditions": [condition("QuotaReserved", "True", "QuotaReserved")],
                "reclaimablePods": [{"name": "main", "count": gone}],
            }}),
        )
    };
    for (gone, used) in [(0, 6000), (2, 2000), (3, 0)] {
        fixture.enter(&reserved(gone));
        assert_eq!(fixture.used(), used);
        without_gate.enter(&reserved(gone));
        assert_eq!(without_gate.used(), 6000);
    }
    let mut pending = reserved(2);
    (pending.status.admission, pending.status.conditions) = (None, vec![]);
    let count = |events: &[Event]| spec(events).pod_sets.first().expect("a pod set").count;
    let counts = [count(&fixture.enter(&pending)), count(&without_gate.enter(&pending))];
    assert_eq!(counts, [1, 3]);
}

#[test]
fn a_partially_admitted_pod_set_releases_nothing_for_the_difference() {
    let mut fixture = IndexFixture::new(IndexConfig::default());
    let reserved = |gone: i32| {
        let granted = json!({"clusterQueue": "q", "podSetAssignments": [
            {"name": "main", "count": 2, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "4"}},
        ]});
        with(
            asking(json!({"cpu": "2"})),
            json!({"status": {
                "admission": granted,
                "conditions": [condition("QuotaReserved", "True", "QuotaReserved")],
                "reclaimablePods": [{"name": "main", "count": gone}],
            }}),
        )
    };
    for (gone, used) in [(0, 4000), (1, 4000), (2, 2000), (3, 0)] {
        fixture.enter(&reserved(gone));
        assert_eq!(fixture.used(), used);
    }
}

#[test]
fn a_finished_workload_is_removed() {
    let mut fixture = IndexFixture::new(IndexConfig::default());
    let asking = asking(json!({"cpu": "2"}));
    fixture.enter(&from(asking.clone()));
    let done = with(
        asking,
        json!({"status": {"conditions": [condition("Finished", "True", "Succeeded")]}}),
    );
    assert_eq!(kinds(&fixture.enter(&done)), ["gone"]);
    assert_eq!(kinds(&fixture.enter(&done)), Vec::<&str>::new());
    assert_eq!(fixture.engine.names().workloads.get("ns/w"), None);
}

#[test]
fn a_requeue_backoff_ends() {
    let mut fixture = IndexFixture::new(IndexConfig::default());
    let state = json!({"status": {"requeueState": {"requeueAt": "2026-01-01T12:00:07Z"}}});
    fixture.enter(&with(asking(json!({"cpu": "2"})), state));
    assert_eq!(
        fixture.index.requeue_at(fixture.engine.names(), "ns", "w"),
        Some(Time(NOON + 7 * SECOND))
    );
    fixture.enter(&from(asking(json!({"cpu": "2"}))));
    assert_eq!(fixture.index.requeue_at(fixture.engine.names(), "ns", "w"), None);
}

#[test]
fn uncovered_resources_block_or_are_ignored() {
    let asking = asking(json!({"cpu": "1", "memory": "1Gi"}));
    let mut fixture = IndexFixture::new(IndexConfig::default());
    fixture.enter(&from(asking.clone()));
    assert_eq!(fixture.cycle(), [CycleOutcome::NoFit]);

    let mut fixture = IndexFixture::new(IndexConfig {
        ignore_uncovered_resources: true,
        ..IndexConfig::default()
    });
    let again = fixture.index.take_workloads_to_reenter();
    assert_eq!(again, AffectedWorkloads::InLocalQueues(["ns/lq".to_owned()].into()));
    assert_eq!(fixture.index.take_workloads_to_reenter(), AffectedWorkloads::None);
    fixture.enter(&from(asking));
    assert_eq!(fixture.cycle(), [CycleOutcome::Reserved { cluster: None }]);
    let id = fixture.engine.names().workloads.get("ns/w").expect("an id");
    let real = fixture.index.request(id).expect("a request");
    assert_eq!(
        real.pod_sets.first().map(|one| one.requests.len()),
        Some(3),
        "pods are what they are"
    );
}

#[test]
fn pods_that_claim_devices_are_refused_since_devices_are_not_charged() {
    let mut claiming = asking(json!({"cpu": "1"}));
    claiming["spec"]["podSets"][0]["template"]["spec"]["resourceClaims"] =
        json!([{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]);
    let mut fixture = IndexFixture::new(IndexConfig::default());
    let events = fixture.enter(&from(claiming.clone()));
    let problem = spec(&events).invalid.clone().expect("a problem");
    let expected =
        "Workload uses DRA resources but the KueueDRAIntegration feature gate is not enabled";
    assert_eq!(problem.as_ref(), expected);
    assert_eq!(fixture.cycle(), [CycleOutcome::Invalid]);

    let config = IndexConfig { refuse_device_claims: false, ..IndexConfig::default() };
    let mut fixture = IndexFixture::new(config);
    fixture.enter(&from(claiming));
    assert_eq!(fixture.cycle(), [CycleOutcome::Reserved { cluster: None }]);
}

#[test]
fn an_invalid_workload_has_a_message() {
    let mut fixture = IndexFixture::new(IndexConfig::default());
    let mut workload: Workload = from(asking(json!({"cpu": "2"})));
    let range = from(json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}));
    assert_eq!(
        fixture.index.limit_range("ns", "r", Some(&range)),
        AffectedWorkloads::InNamespace("ns".into())
    );
    let events = fixture.enter(&workload);
    assert_eq!(
        spec(&events).invalid.as_deref(),
        Some(
            "resources didn't satisfy LimitRange constraints: spec.podSets[0].template.spec.containers[0]: Invalid \
             value: [\"cpu\"]: requests must not be above the limitRange max"
        )
    );
    assert_eq!(fixture.cycle(), [CycleOutcome::Invalid]);
    fixture.index.limit_range("ns", "r", None);
    for key in ["sluice.dev/affinity", "sluice.dev/preferred-affinity"] {
        workload.metadata.annotations = Some([(key.to_owned(), "a=(".to_owned())].into());
        let events = fixture.enter(&workload);
        let wrong = format!("annotation {key}: \"a=(\" has an invalid key or value");
        assert_eq!(spec(&events).invalid.as_deref(), Some(&*wrong));
    }
    workload.metadata.annotations =
        Some([("sluice.dev/execution".to_owned(), "Once".to_owned())].into());
    let events = fixture.enter(&workload);
    let wrong = "annotation sluice.dev/execution: \"Once\" is neither ExactlyOnce nor KeepRunning";
    assert_eq!(spec(&events).invalid.as_deref(), Some(wrong));
    workload.metadata.annotations =
        Some([("sluice.dev/checkpoint".to_owned(), "here".to_owned())].into());
    let events = fixture.enter(&workload);
    let wrong =
        "annotation sluice.dev/checkpoint: \"here\" is none of anywhere, preferred and required";
    assert_eq!(spec(&events).invalid.as_deref(), Some(wrong));
}

#[test]
fn a_workload_stays_with_the_cluster_that_it_was_last_withdrawn_from_if_its_job_says_so() {
    let mut fixture = IndexFixture::new(IndexConfig::default());
    let mut asks = |value: Option<&str>, last: Option<&str>| {
        let mut workload: Workload = from(asking(json!({"cpu": "1"})));
        let all = [("sluice.dev/checkpoint", value), ("sluice.dev/last-cluster", last)];
        let all =
            all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())));
        workload.metadata.annotations = Some(all.collect());
        fixture.enter(&workload);
        let id = fixture.engine.names().workloads.get("ns/w").expect("an id");
        let request = fixture.index.request(id).expect("a request");
        request.checkpoint.clone().map(|one| (one.name.into_string(), one.required))
    };
    let east = Some("east");
    for value in [None, Some("anywhere")] {
        assert_eq!(asks(value, east), None, "{value:?}");
    }
    assert_eq!(asks(Some("required"), None), None, "it was placed nowhere yet");
    assert_eq!(asks(Some("preferred"), east), Some(("east".into(), false)));
    assert_eq!(asks(Some("required"), east), Some(("east".into(), true)));
}

#[test]
fn what_ready_checks_add_to_the_pods_selects_their_nodes_while_quota_is_held() {
    let mut fixture = IndexFixture::new(IndexConfig::default());
    let update = json!([{
        "name": "main", "nodeSelector": {"zone": "a"}, "tolerations": [{"key": "new", "operator": "Exists"}],
    }]);
    let check = |state: &str| json!([{"name": "nodes", "state": state, "podSetUpdates": update}, {"name": "other", "state": "Ready"}]);
    let admission = json!({"clusterQueue": "q", "podSetAssignments": [
        {"name": "main", "count": 3, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "3"}},
    ]});
    for (state, admission, expected) in [
        ("Ready", &admission, (1, 1)),
        ("Pending", &admission, (0, 0)),
        ("Ready", &Value::Null, (0, 0)),
    ] {
        let status = json!({"admission": admission, "admissionChecks": check(state)});
        let workload = with(asking(json!({"cpu": "1"})), json!({"status": status}));
        let events = fixture.enter(&workload);
        let selection = &spec(&events).pod_sets[0].selection;
        let found = (selection.node_selector.len(), selection.tolerations.len());
        assert_eq!(found, expected, "{state} {admission}");
    }
}

#[test]
fn decided_checks_reach_the_engine() {
    let mut fixture = IndexFixture::new(IndexConfig::default());
    let state = |name: &str, state: &str| json!({"name": name, "state": state});
    let mut workload: Workload = from(asking(json!({"cpu": "1"})));
    let all = [state("a", "Ready"), state("b", "Pending"), state("c", "Rejected")];
    workload.status.admission_checks = all.into_iter().map(from).collect();
    let events = fixture.enter(&workload);
    let names = fixture.engine.names();
    let check_states: Vec<_> = spec(&events)
        .checks
        .iter()
        .map(|&(check, state)| (names.checks.name(check), state))
        .collect();
    assert_eq!(check_states, [("a", CheckState::Ready), ("c", CheckState::Rejected)]);
}

#[test]
fn dispatch_and_topologies_use_requests_on_nodes() {
    let transformation = crate::ResourceTransformation {
        input: "cpu".into(),
        strategy: crate::InputRetention::Replace,
        outputs: vec![("credits".into(), "10".parse().expect("a factor"))],
        ..Default::default()
    };
    let mut fixture = IndexFixture::new(IndexConfig {
        exclude_prefixes: vec!["example.com/".into()],
        transformations: vec![transformation],
        ..IndexConfig::default()
    });
    let annotations = json!({
        "sluice.dev/affinity": "region in (eu,us)", "sluice.dev/preferred-affinity": "tier=gold,!spot",
    });
    let workload = with(
        asking(json!({"cpu": "2", "example.com/gpu": "1"})),
        json!({"metadata": {"annotations": annotations}, "status": {"reclaimablePods": [{"name": "main", "count": 1}]}}),
    );
    let events = fixture.enter(&workload);
    let names = fixture.engine.names();
    let counted = |list: &[(engine::ids::ResourceId, Amount)]| -> Vec<(String, i64)> {
        list.iter().map(|&(id, amount)| (names.resources.name(id).to_owned(), amount.0)).collect()
    };
    let pod_set = spec(&events).pod_sets.first().expect("a pod set");
    assert_eq!((pod_set.count, counted(&pod_set.requests)), (2, vec![("credits".into(), 20)]));
    let machine = pod_set.on_node.as_deref().map(counted);
    assert_eq!(machine, Some(vec![("cpu".into(), 2000), ("example.com/gpu".into(), 1)]));
    let request =
        fixture.index.request(names.workloads.get("ns/w").expect("an id")).expect("a request");
    let pods = request.pod_sets.first().expect("pods");
    let mut real = counted(&pods.requests);
    real.sort();
    let expected = vec![("cpu".into(), 2000), ("example.com/gpu".into(), 1), ("pods".into(), 1)];
    assert_eq!((pods.count, real), (2, expected));
    let selectors = (request.affinity.len(), request.preferred.len());
    assert_eq!((selectors, &*request.namespace), ((1, 2), "ns"));
    let requests = fixture.index.resource_requests(&workload);
    assert_eq!(
        serde_json::json!(requests),
        json!([{"name": "main", "resources": {"credits": "40"}}])
    );
}

#[test]
fn an_assignment_adds_labels_and_tolerations() {
    let mut fixture = IndexFixture::new(IndexConfig::default());
    fixture.enter(&from(asking(json!({"cpu": "2"}))));
    let entry = fixture.engine.cycle(Time(NOON), &mut AcceptAll).first().expect("an entry").clone();
    let assigned = fixture.index.assigned_pod_sets(&entry.assignment.pod_sets);
    let [one] = &assigned[..] else { panic!("{assigned:?}") };
    assert_eq!((one.count, &one.labels[..]), (3, &[("pool".into(), "f".into())][..]));
    assert_eq!(one.tolerations.len(), 1);
    let recorded = from(admission());
    assert_eq!(fixture.index.admitted_pod_sets(&recorded, &[]), assigned);
    let shrunk = |count: i32| {
        let sets = [from(json!({"name": "main", "count": count}))];
        fixture.index.admitted_pod_sets(&recorded, &sets)[0].count
    };
    assert_eq!((shrunk(2), shrunk(5)), (2, 3));
    let added = fixture.index.flavors.flavor_info(&recorded);
    let added = added.first().expect("a pod set");
    assert_eq!((&*added.name, added.labels.get("pool").map(|pool| &**pool)), ("main", Some("f")));
}

#[test]
fn an_agent_mode_worker_has_one_queue() {
    let mut fixture = IndexFixture::new(IndexConfig {
        agent: Some(AdmissionMode::Thin),
        ignore_uncovered_resources: true,
        ..IndexConfig::default()
    });
    let quota = [("cpu", Amount(8000)), ("memory", Amount(1 << 30))];
    let events = fixture.index.agent_mode_quota(fixture.engine.names_mut(), &quota);
    fixture.apply(events);
    let ask = |name: &str, requests: Value| {
        with(asking(requests), json!({"metadata": {"name": name}, "spec": {"queueName": "any"}}))
    };
    fixture.enter(&ask("one", json!({"cpu": "2", "memory": "1Mi"})));
    assert_eq!(fixture.cycle(), [CycleOutcome::Reserved { cluster: None }]);
    fixture.enter(&ask("two", json!({"cpu": "1", "example.com/gpu": "1"})));
    assert_eq!(fixture.cycle(), [CycleOutcome::NoFit], "the cluster has no such resource");
    let queue = fixture.engine.names().queues.get("sluice-thin").expect("the queue");
    assert_eq!(fixture.engine.reserving_workloads(queue).len(), 1);
}

#[test]
fn a_workload_record_is_small() {
    let mut fixture = IndexFixture::new(IndexConfig::default());
    fixture.enter(&from(asking(json!({"cpu": "2", "memory": "1Gi"}))));
    let id = fixture.engine.names().workloads.get("ns/w").expect("an id");
    let request = fixture.index.request(id).expect("a request");
    let pods = request.pod_sets.first().expect("pods");
    let size = size_of::<super::indexed_workload::IndexedWorkload>()
        + size_of::<dispatch::WorkloadRequest>()
        + size_of::<dispatch::RequestedPodSet>()
        + pods.requests.capacity() * 16
        + pods.name.len()
        + request.namespace.len();
    assert!(size < 1024, "{size} bytes");
}

#[test]
fn a_placer_reads_the_dispatch_request_during_a_cycle() {
    let mut fixture = IndexFixture::new(IndexConfig::default());
    fixture.enter(&from(asking(json!({"cpu": "2"}))));
    let names = fixture.engine.names_mut();
    let check = from(json!({
        "spec": {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": {"name": "config"}},
        "status": {"conditions": [{"type": "Active", "status": "True"}]},
    }));
    let queue = from(json!({"spec": {
        "namespaceSelector": {},
        "admissionChecksStrategy": {"admissionChecks": [{"name": "mk"}]},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
            {"name": "f", "resources": [{"name": "cpu", "nominalQuota": "10"}]},
        ]}],
    }}));
    let mut events = fixture.index.admission_check(names, "mk", Some(&check));
    events.extend(fixture.index.cluster_queue(names, "q", Some(&queue)));
    fixture.apply(events);
    struct Asks<'a>(&'a Index, Option<(String, i64)>);
    impl engine::Placer for Asks<'_> {
        fn place(
            &mut self,
            entry: &engine::CycleEntry,
        ) -> Result<Option<engine::ids::ClusterId>, engine::RequeueKey> {
            let (config, request, assigned) =
                self.0.dispatch_request(entry).expect("a dispatching queue");
            assert_eq!(request.pod_sets.len(), assigned.len());
            self.1 = assigned.first().map(|one| (config.to_owned(), one.count));
            Ok(None)
        }
    }
    let mut placer = Asks(&fixture.index, None);
    fixture.engine.cycle(Time(NOON), &mut placer);
    assert_eq!(placer.1, Some(("config".to_owned(), 3)));
}

#[test]
fn a_workload_is_in_the_order_of_its_queue_while_it_is_pending_and_not_excluded() {
    let waits = |patch: Value| {
        let workload = with(asking(json!({"cpu": "1"})), patch);
        crate::pending_order(&IndexConfig::default(), &workload).map(|order| order.priority)
    };
    let condition = |kind: &str, status: &str| json!({"status": {"conditions": [{"type": kind, "status": status}]}});
    for (patch, expected) in [
        (json!({"spec": {"priority": 3}}), Some(3)),
        (condition("QuotaReserved", "False"), Some(0)),
        // A backoff makes a Workload inadmissible, and it stays in its queue.
        (condition("Requeued", "False"), Some(0)),
        (condition("QuotaReserved", "True"), None),
        (condition("Finished", "True"), None),
        (json!({"spec": {"active": false}}), None),
    ] {
        assert_eq!(waits(patch.clone()), expected, "{patch}");
    }
}
