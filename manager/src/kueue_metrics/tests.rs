use std::collections::{BTreeMap, BTreeSet};

use cluster::control::measurement::{
    ClusterQueueGauges, CohortGauges, EvictionLabels, FlavorResourceGauge, LabelledNumbers,
    LabelsAndAnnotations, LocalQueueGauges, QueueNumbers, UnadmittedLabels, WorkerLabels,
    WorkerMeasurement, WorkloadLabels,
};
use config::Configuration;
use config::gates::Gates;
use crds::names::UNTRACKED_METRIC_VALUE;
use prometheus_client::{encoding::text, registry::Registry};

use super::*;

/// Kueue's families in a recorded scrape: name, type, labels, upper bounds of buckets.
const RECORDED: &str = include_str!("tests/recorded.tsv");

/// The names of all families in the same scrape.
const RECORDED_NAMES: &str = include_str!("tests/recorded_names.txt");

/// Families that other parts of the manager serve.
const SERVED_ELSEWHERE: &[&str] = &["kueue_build_info"];

/// The beginnings of names of families that are not served. Why: docs/reference/kueue.md §6.2.
const NOT_SERVED: &[&str] =
    &["certwatcher_", "controller_runtime_", "go_", "process_", "workqueue_"];

fn metrics(text: &str) -> KueueMetrics {
    let file = Configuration::load(text, None).expect("a configuration");
    KueueMetrics::new(MetricsSettings::new(&file, &Gates::default()))
}

fn everything() -> KueueMetrics {
    metrics(
        "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n\
         metrics: {enableClusterQueueResources: true}\nleaderElection: {leaderElect: false}\n",
    )
}

fn labels() -> WorkloadLabels {
    WorkloadLabels {
        cluster_queue: "a".into(),
        local_queue: ("ns".into(), "lq".into()),
        priority_class: "high".into(),
        custom: Vec::new(),
    }
}

/// An object of this team, and of the budget 7.
fn metadata(team: &str) -> LabelsAndAnnotations {
    LabelsAndAnnotations {
        labels: BTreeMap::from([("team".to_owned(), team.to_owned())]),
        annotations: BTreeMap::from([("budget".to_owned(), "7".to_owned())]),
    }
}

fn queue(admitted: usize) -> Measurement {
    let resource = FlavorResourceGauge {
        flavor: "plain".into(),
        resource: "cpu".into(),
        nominal: 10.0,
        borrowing_limit: f64::INFINITY,
        lending_limit: f64::INFINITY,
        ..FlavorResourceGauge::default()
    };
    let by_labels = Vec::new();
    let workloads = QueueNumbers { active: 1, inadmissible: 2, reserving: 3, admitted, by_labels };
    let gauges = ClusterQueueGauges {
        name: "a".into(),
        metadata: metadata("red"),
        status: "active",
        cohorts: vec!["team".into(), "root".into()],
        workloads: workloads.clone(),
        classes: (1, 1),
        resources: vec![resource.clone()],
        requested: vec![("cpu".into(), 4.5)],
        weighted_share: Some(222.25),
    };
    let local = LocalQueueGauges {
        namespace: "ns".into(),
        name: "lq".into(),
        metadata: metadata("blue"),
        active: true,
        stopped: false,
        workloads,
        resources: vec![resource],
        fair_sharing_usage: Some(2.5),
    };
    Measurement::ClusterQueue(Box::new(gauges), vec![local])
}

fn cohort(name: &str, above: &[&str]) -> Measurement {
    let amount = || vec![("plain".to_owned(), "cpu".to_owned(), 10.0)];
    Measurement::Cohort(Box::new(CohortGauges {
        name: name.into(),
        declared: name == "root",
        metadata: metadata("green"),
        cohorts: above.iter().map(|&one| one.to_owned()).collect(),
        quota: amount(),
        reserved: amount(),
        weighted_share: Some(if above.is_empty() { 2.5 } else { f64::INFINITY }),
        cyclic: name == "ring",
    }))
}

fn unadmitted(count: usize) -> Measurement {
    let labels = UnadmittedLabels {
        cluster_queue: "a".into(),
        local_queue: ("ns".into(), "lq".into()),
        reason: "NoReservation".into(),
        underlying_cause: "WaitingForQuota".into(),
    };
    Measurement::UnadmittedWorkloads(labels, count)
}

fn finished(count: usize) -> Measurement {
    let local_queue = ("ns".into(), "lq".into());
    Measurement::FinishedWorkloads { cluster_queue: "a".into(), local_queue, count }
}

/// One measurement of each kind.
fn all_measurements() -> Vec<Measurement> {
    let second = Duration::from_secs(1);
    vec![
        queue(4),
        cohort("team", &["root"]),
        cohort("root", &[]),
        cohort("ring", &[]),
        Measurement::Attempt { admitted: true },
        Measurement::PreemptionSkips { cluster_queue: "a".into(), count: 2 },
        Measurement::TargetsRecomputed { cluster_queue: "a".into(), result: "skipped" },
        Measurement::QuotaReserved(labels(), second),
        Measurement::Admitted { labels: labels(), waited: second * 3, checks: Some(second) },
        Measurement::Ready { labels: labels(), waited: second, since_admission: second },
        Measurement::Evicted {
            labels: labels(),
            eviction: EvictionLabels {
                reason: "Preempted".into(),
                underlying_cause: String::new(),
            },
            first: true,
            ready_for: Some(second),
        },
        Measurement::QuotaReleased { labels: labels(), reason: "Preempted".into(), took: second },
        Measurement::Preempted {
            preempting_cluster_queue: "a".into(),
            reason: "InClusterQueue".into(),
        },
        Measurement::Finished { labels: labels(), executed: Some(second) },
        Measurement::GateRemoved {
            gate: "kueue.x-k8s.io/topology",
            cluster_queue: "a".into(),
            is_group: false,
            took: second,
        },
        Measurement::WorkloadCreated { job_kind: "Job".into(), took: second },
        finished(2),
        unadmitted(5),
    ]
}

fn scrape(metrics: &KueueMetrics) -> String {
    let mut registry = Registry::default();
    let kueue = registry.sub_registry_with_prefix("kueue");
    kueue.register_collector(Box::new(metrics.clone()));
    registry.register_collector(Box::new(metrics.multi_kueue()));
    let sluice = registry.sub_registry_with_prefix("sluice");
    sluice.register_collector(Box::new(metrics.workers()));
    sluice.register_collector(Box::new(metrics.integrations()));
    let mut body = String::new();
    text::encode(&mut body, &registry).expect("it encodes");
    body
}

/// Families of a scrape as they are recorded.
fn families(body: &str) -> BTreeMap<String, (String, BTreeSet<String>, Vec<String>)> {
    let mut families = BTreeMap::new();
    let mut current = (String::new(), String::new());
    for line in body.lines() {
        if let Some(text) = line.strip_prefix("# TYPE ") {
            let (name, kind) = text.split_once(' ').expect("a name and a type");
            current = (name.to_owned(), kind.to_owned());
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let (name, kind) = &current;
        let name = if kind == "counter" { format!("{name}_total") } else { name.clone() };
        let family: &mut (String, BTreeSet<String>, Vec<String>) =
            families.entry(name).or_default();
        family.0.clone_from(kind);
        let inside = line.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}'));
        for label in inside.expect("labels").0.split(',') {
            let (name, value) = label.split_once('=').expect("a label");
            match name {
                "le" => family.2.push(value.trim_matches('"').to_owned()),
                _ => drop(family.1.insert(name.to_owned())),
            }
        }
    }
    families
}

#[test]
fn families_are_those_of_a_recorded_scrape() {
    let metrics = everything();
    metrics.measure(all_measurements(), Duration::from_millis(20));
    let ours = families(&scrape(&metrics));
    let number = |text: &String| match text.as_str() {
        "+Inf" => f64::INFINITY,
        text => text.parse().expect("a number"),
    };
    for line in RECORDED.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, kind, labels, bounds] = columns[..] else { panic!("{line}") };
        let (our_kind, our_labels, our_bounds) =
            ours.get(name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(our_kind, kind, "{name}");
        let recorded: BTreeSet<String> = labels.split(',').map(str::to_owned).collect();
        assert_eq!(*our_labels, recorded, "{name}");
        let recorded: Vec<f64> = bounds
            .split(',')
            .filter(|one| !one.is_empty())
            .map(|one| number(&one.to_owned()))
            .collect();
        let mut ours: Vec<f64> = our_bounds.iter().map(number).collect();
        ours.dedup();
        assert_eq!(ours, recorded, "{name}");
    }
}

#[test]
fn every_family_of_a_recorded_scrape_is_served_or_listed_as_not_served() {
    let metrics = everything();
    metrics.measure(all_measurements(), Duration::from_millis(20));
    let of_worker = || WorkerLabels { cluster_queue: "a".to_owned(), cluster: "east".to_owned() };
    let of_workers = vec![
        Measurement::Worker(WorkerMeasurement::Dispatched(of_worker())),
        Measurement::Worker(WorkerMeasurement::Admitted(of_worker())),
    ];
    metrics.measure(of_workers, Duration::ZERO);
    let served = families(&scrape(&metrics));
    let names: Vec<&str> = RECORDED_NAMES.lines().collect();
    assert_eq!(names.len(), 227);
    let is_served = |name: &str| served.contains_key(name) || SERVED_ELSEWHERE.contains(&name);
    let is_listed = |name: &str| NOT_SERVED.iter().any(|start| name.starts_with(start));
    let unknown: Vec<&&str> =
        names.iter().filter(|name| is_served(name) == is_listed(name)).collect();
    assert_eq!(unknown, [""; 0].iter().collect::<Vec<_>>(), "neither, or both");
    let document = include_str!("../../../docs/reference/kueue.md");
    for start in NOT_SERVED {
        assert!(names.iter().any(|name| name.starts_with(start)), "{start}");
        assert!(document.contains(&format!("| {start}* | ")), "{start} has no reason");
    }
}

#[test]
fn values_follow_measurements() {
    let metrics = everything();
    metrics.measure(all_measurements(), Duration::from_millis(20));
    metrics.measure(vec![finished(1), unadmitted(0), queue(6)], Duration::ZERO);
    let body = scrape(&metrics);
    for line in [
        r#"kueue_pending_workloads{cluster_queue="a",status="inadmissible",replica_role="standalone"} 2.0"#,
        r#"kueue_cluster_queue_status{cluster_queue="a",status="active",replica_role="standalone"} 1.0"#,
        r#"kueue_cluster_queue_status{cluster_queue="a",status="pending",replica_role="standalone"} 0.0"#,
        r#"kueue_local_queue_admission_fair_sharing_usage{namespace="ns",name="lq",cluster_queue="a",replica_role="standalone"} 2.5"#,
        r#"kueue_finished_workloads{cluster_queue="a",replica_role="standalone"} 1.0"#,
        r#"kueue_cluster_queue_weighted_share{cluster_queue="a",cohort="team",replica_role="standalone"} 222.25"#,
        r#"kueue_cohort_weighted_share{cohort="root",replica_role="standalone"} 2.5"#,
        r#"kueue_cohort_weighted_share{cohort="team",replica_role="standalone"} NaN"#,
        r#"kueue_cohort_subtree_admitted_active_workloads{cohort="root",replica_role="standalone"} 6.0"#,
        r#"kueue_cluster_queue_borrowing_limit{cluster_queue="a",cohort="team",flavor="plain",resource="cpu",replica_role="standalone"} inf"#,
        r#"kueue_admission_wait_time_seconds_bucket{le="2.5",cluster_queue="a",priority_class="high",replica_role="standalone"} 0"#,
        r#"kueue_admission_wait_time_seconds_bucket{le="5.0",cluster_queue="a",priority_class="high",replica_role="standalone"} 1"#,
        r#"kueue_admitted_workloads_total{cluster_queue="a",priority_class="high",replica_role="standalone"} 1.0"#,
        r#"kueue_admission_cycle_preemption_skips{cluster_queue="a",replica_role="standalone"} 2.0"#,
        r#"kueue_preemption_target_recomputations_total{cluster_queue="a",result="skipped",replica_role="standalone"} 1.0"#,
    ] {
        assert!(body.lines().any(|one| one == line), "{line}\n{body}");
    }
    assert!(!body.contains("kueue_unadmitted_workloads{"), "no Workload has a reason\n{body}");
    assert!(!body.contains("kueue_cohort_info{cohort=\"ring\""), "a cycle has no root\n{body}");
    assert!(!body.contains("kueue_local_queue_unadmitted_workloads{"), "{body}");
}

/// A start counts the Workloads before their queue, and so does a queue that comes back.
#[test]
fn numbers_of_workloads_are_shown_with_the_first_measurement_of_their_queue() {
    let metrics = everything();
    let lines = [
        r#"kueue_finished_workloads{cluster_queue="a",replica_role="standalone"} 1.0"#,
        r#"kueue_local_queue_finished_workloads{namespace="ns",name="lq",replica_role="standalone"} 1.0"#,
        r#"kueue_unadmitted_workloads{cluster_queue="a",reason="NoReservation",underlying_cause="WaitingForQuota",replica_role="standalone"} 2.0"#,
        r#"kueue_local_queue_unadmitted_workloads{namespace="ns",name="lq",cluster_queue="a",reason="NoReservation",underlying_cause="WaitingForQuota",replica_role="standalone"} 2.0"#,
    ];
    let shows = |body: &str, line: &str| body.lines().any(|one| one == line);
    metrics.measure(vec![finished(1), unadmitted(2)], Duration::ZERO);
    assert!(!scrape(&metrics).contains("cluster_queue=\"a\""), "the queue is not measured yet");
    metrics.measure(vec![queue(0)], Duration::ZERO);
    lines.iter().for_each(|line| assert!(shows(&scrape(&metrics), line), "{line}"));
    metrics.measure(vec![Measurement::ClusterQueueGone("a".into(), vec![])], Duration::ZERO);
    assert!(!scrape(&metrics).contains("cluster_queue=\"a\""));
    metrics.measure(vec![queue(0)], Duration::ZERO);
    lines.iter().for_each(|line| assert!(shows(&scrape(&metrics), line), "{line}"));
}

#[test]
fn a_queue_without_finished_workloads_shows_none() {
    let metrics = everything();
    metrics.measure(vec![queue(0)], Duration::ZERO);
    let line = r#"kueue_finished_workloads{cluster_queue="a",replica_role="standalone"} 0.0"#;
    assert!(scrape(&metrics).lines().any(|one| one == line));
}

#[test]
fn series_end_with_their_queue() {
    let metrics = everything();
    metrics.measure(all_measurements(), Duration::ZERO);
    metrics.measure(vec![Measurement::ClusterQueueGone("a".into(), vec![])], Duration::ZERO);
    let body = scrape(&metrics);
    assert!(!body.contains("cluster_queue=\"a\""), "{body}");
    assert!(!body.contains("name=\"lq\""), "{body}");
    assert!(!body.contains("cohort=\"team\""), "{body}");
    let info = r#"kueue_cohort_info{cohort="root""#;
    assert!(body.contains(info), "the Cohort exists as an object\n{body}");
    metrics.measure(vec![Measurement::CohortGone("root".into())], Duration::ZERO);
    assert!(!scrape(&metrics).contains(info));
}

#[test]
fn a_local_queue_keeps_its_series_without_its_cluster_queue() {
    let metrics = everything();
    metrics.measure(all_measurements(), Duration::ZERO);
    let local = LocalQueueGauges {
        namespace: "ns".into(),
        name: "lq".into(),
        active: false,
        ..LocalQueueGauges::default()
    };
    let gone = |local| vec![Measurement::ClusterQueueGone("a".into(), local)];
    metrics.measure(gone(vec![local]), Duration::ZERO);
    let body = scrape(&metrics);
    assert!(!body.contains("{cluster_queue=\"a\""), "{body}");
    for line in [
        r#"kueue_local_queue_status{namespace="ns",name="lq",active="False",replica_role="standalone"} 1.0"#,
        r#"kueue_local_queue_pending_workloads{namespace="ns",name="lq",status="active",replica_role="standalone"} 0.0"#,
        r#"kueue_local_queue_pending_workloads{namespace="ns",name="lq",status="inadmissible",replica_role="standalone"} 0.0"#,
    ] {
        assert!(body.lines().any(|one| one == line), "{line}\n{body}");
    }
    for family in ["reserving_active_workloads", "admitted_active_workloads"] {
        assert!(!body.contains(&format!("kueue_local_queue_{family}{{")), "{family}\n{body}");
    }
    let counter = r#"kueue_local_queue_admitted_workloads_total{namespace="ns",name="lq""#;
    assert!(body.contains(counter), "the counter goes on\n{body}");
    metrics.measure(gone(vec![]), Duration::ZERO);
    assert!(!scrape(&metrics).contains("name=\"lq\""), "the LocalQueue is gone as well");
}

#[test]
fn local_queues_have_series_with_their_gate_alone() {
    for on in [false, true] {
        let gates = Gates::parse(&format!("LocalQueueMetrics={on}")).expect("a gate");
        let metrics = KueueMetrics::new(MetricsSettings::new(&Configuration::default(), &gates));
        metrics.measure(all_measurements(), Duration::ZERO);
        let body = scrape(&metrics);
        assert!(body.contains("kueue_pending_workloads{"), "{body}");
        assert_eq!(body.contains("kueue_local_queue_pending_workloads{"), on, "{body}");
    }
}

#[test]
fn a_stopped_local_queue_has_no_series_of_pending_workloads() {
    let metrics = everything();
    metrics.measure(all_measurements(), Duration::ZERO);
    let pending = r#"kueue_local_queue_pending_workloads{namespace="ns",name="lq""#;
    assert!(scrape(&metrics).contains(pending), "it is not stopped yet");
    let measure = |stopped| {
        let name = ("ns".to_owned(), "lq".to_owned());
        let local = LocalQueueGauges {
            namespace: name.0,
            name: name.1,
            stopped,
            ..LocalQueueGauges::default()
        };
        let gauges = ClusterQueueGauges { name: "a".into(), ..ClusterQueueGauges::default() };
        let one = Measurement::ClusterQueue(Box::new(gauges), vec![local]);
        metrics.measure(vec![one], Duration::ZERO);
        scrape(&metrics)
    };
    let stopped = measure(true);
    assert!(!stopped.contains(pending), "{stopped}");
    let others = r#"kueue_local_queue_reserving_active_workloads{namespace="ns",name="lq""#;
    assert!(stopped.contains(others), "what has quota is still shown\n{stopped}");
    assert!(measure(false).contains(pending), "it goes on");
}

#[test]
fn a_cohort_with_queues_outlives_its_object_but_for_its_place() {
    let (info, quota) =
        (r#"kueue_cohort_info{cohort="root""#, r#"kueue_cohort_subtree_quota{cohort="root""#);
    let metrics = everything();
    metrics.measure(all_measurements(), Duration::ZERO);
    assert!(scrape(&metrics).contains(info));
    metrics.measure(vec![Measurement::CohortGone("root".into())], Duration::ZERO);
    let body = scrape(&metrics);
    assert!(body.contains(quota) && !body.contains(info), "{body}");
    metrics.measure(vec![Measurement::ClusterQueueGone("a".into(), vec![])], Duration::ZERO);
    assert!(!scrape(&metrics).contains("cohort=\"root\""));
}

#[test]
fn a_cohort_that_only_queues_name_shows_no_place() {
    let metrics = everything();
    metrics.measure(all_measurements(), Duration::ZERO);
    let body = scrape(&metrics);
    assert!(!body.contains(r#"kueue_cohort_info{cohort="team""#), "{body}");
    assert!(body.contains(r#"kueue_cohort_subtree_quota{cohort="team""#), "{body}");
}

#[test]
fn settings_select_families() {
    let text = |selector: &str| {
        format!(
            "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n\
             metrics: {{localQueueMetrics: {{enable: true, localQueueSelector: {selector}}}}}\n"
        )
    };
    for (selector, measured) in [("{}", true), ("{matchLabels: {team: a}}", false)] {
        let metrics = metrics(&text(selector));
        metrics.measure(all_measurements(), Duration::ZERO);
        let body = scrape(&metrics);
        assert_eq!(body.contains("kueue_local_queue_"), measured, "{selector}");
        assert!(!body.contains("nominal_quota"), "{body}");
        assert!(!body.contains("cluster_queue_resource_pending"), "{body}");
        assert!(body.contains("replica_role=\"leader\""), "the process competes for a lease");
    }
}

#[test]
fn gates_select_families() {
    let body = |gates: &str| {
        let gates = Gates::parse(gates).expect("gates");
        let metrics = KueueMetrics::new(MetricsSettings::new(&Configuration::default(), &gates));
        metrics.measure(all_measurements(), Duration::ZERO);
        scrape(&metrics)
    };
    for (gate, family) in [
        ("MetricsForCohorts", "kueue_cohort_"),
        ("MetricForWorkloadCreationLatency", "kueue_workload_creation_latency_seconds"),
        ("UnadmittedWorkloadsObservability", "kueue_unadmitted_workloads"),
        ("SchedulingEquivalenceHashing", "kueue_pending_scheduling_hashes"),
    ] {
        assert!(body("").contains(family), "{gate}");
        let without = body(&format!("{gate}=false"));
        assert!(!without.contains(family) && without.contains("kueue_pending_workloads"), "{gate}");
    }
}

const CUSTOM_LABELS: &str = "apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
leaderElection: {leaderElect: false}
metrics:
  customLabels:
  - {name: team}
  - {name: cost, sourceAnnotationKey: budget}
  - {name: owner, sourceLabelKey: team, sourceKind: LocalQueue}
  - {name: tree, sourceLabelKey: team, sourceKind: Cohort}
  - {name: absent, sourceKind: Cohort}
";

#[test]
fn series_have_the_configured_labels_of_their_object() {
    let file = Configuration::load(CUSTOM_LABELS, None).expect("a configuration");
    let metrics = |gates: &str| {
        let gates = Gates::parse(gates).expect("gates");
        let metrics = KueueMetrics::new(MetricsSettings::new(&file, &gates));
        metrics.measure(all_measurements(), Duration::ZERO);
        metrics
    };
    assert!(!scrape(&metrics("")).contains("custom_"), "the gate is off");
    let metrics = metrics("CustomMetricLabels=true");
    let dispatched = WorkerLabels { cluster_queue: "a".into(), cluster: "east".into() };
    metrics.measure(
        vec![Measurement::Worker(WorkerMeasurement::Dispatched(dispatched))],
        Duration::ZERO,
    );
    let body = scrape(&metrics);
    let role = r#"replica_role="standalone""#;
    for start in [
        r#"kueue_pending_workloads{cluster_queue="a",status="active",custom_team="red",custom_cost="7","#,
        r#"kueue_preempted_workloads_total{preempting_cluster_queue="a",reason="InClusterQueue",custom_team="red",custom_cost="7","#,
        r#"kueue_pod_scheduling_gate_removal_seconds_sum{name="kueue.x-k8s.io/topology",cluster_queue="a",is_group="false",custom_team="red",custom_cost="7","#,
        r#"kueue_cluster_queue_weighted_share{cluster_queue="a",cohort="team",custom_team="red",custom_cost="7","#,
        r#"kueue_local_queue_status{namespace="ns",name="lq",active="True",custom_owner="blue","#,
        r#"kueue_cohort_info{cohort="root",parent_cohort="",root_cohort="root",custom_tree="green",custom_absent="","#,
        r#"multikueue_workloads_dispatched_total{cluster_queue="a",cluster="east",custom_team="red",custom_cost="7","#,
        r#"kueue_admission_attempts_total{result="success","#,
    ] {
        let start = format!("{start}{role}}}");
        assert!(body.lines().any(|one| one.starts_with(&start)), "{start}\n{body}");
    }
}

#[test]
fn values_that_are_not_tracked_are_one_value_for_every_kind_of_object() {
    let labels = "customLabels: [{name: team, trackedValues: [red]}, {name: cost, sourceAnnotationKey: budget, trackedValues: ['8', '']}, \
         {name: owner, sourceLabelKey: team, sourceKind: LocalQueue, trackedValues: [red]}, \
         {name: tree, sourceLabelKey: team, sourceKind: Cohort, trackedValues: [green]}, \
         {name: absent, sourceKind: Cohort, trackedValues: [x]}]";
    let (head, _) = CUSTOM_LABELS.split_once("customLabels").expect("a block of labels");
    let file = Configuration::load(&format!("{head}{labels}\n"), None).expect("a configuration");
    let gates = Gates::parse("CustomMetricLabels=true").expect("gates");
    let metrics = KueueMetrics::new(MetricsSettings::new(&file, &gates));
    metrics.measure(all_measurements(), Duration::ZERO);
    let body = scrape(&metrics);
    for start in [
        r#"kueue_pending_workloads{cluster_queue="a",status="active",custom_team="red",custom_cost="OTHER","#,
        r#"kueue_local_queue_status{namespace="ns",name="lq",active="True",custom_owner="OTHER","#,
        r#"kueue_cohort_info{cohort="root",parent_cohort="",root_cohort="root",custom_tree="green",custom_absent="OTHER","#,
    ] {
        let start = start.replace("OTHER", UNTRACKED_METRIC_VALUE);
        assert!(body.lines().any(|one| one.starts_with(&start)), "{start}\n{body}");
    }
}

#[test]
fn a_changed_value_leaves_no_old_series() {
    let file = Configuration::load(CUSTOM_LABELS, None).expect("a configuration");
    let gates = Gates::parse("CustomMetricLabels=true").expect("gates");
    let metrics = KueueMetrics::new(MetricsSettings::new(&file, &gates));
    metrics.measure(all_measurements(), Duration::ZERO);
    let Measurement::ClusterQueue(mut changed, local) = queue(4) else { panic!("a ClusterQueue") };
    changed.metadata = metadata("black");
    metrics.measure(vec![Measurement::ClusterQueue(changed, local)], Duration::ZERO);
    let body = scrape(&metrics);
    assert!(!body.contains("custom_team=\"red\""), "{body}");
    let admitted = r#"kueue_admitted_workloads_total{cluster_queue="a",priority_class="high",custom_team="black","#;
    assert!(body.contains(admitted), "the counter goes on\n{body}");
    metrics.measure(vec![Measurement::ClusterQueueGone("a".into(), vec![])], Duration::ZERO);
    assert!(!scrape(&metrics).contains("custom_team"), "{body}");
}

const WORKLOAD_LABELS: &str = "apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
leaderElection: {leaderElect: false}
metrics:
  customLabels:
  - {name: type, sourceKind: Workload, trackedValues: [train, serve]}
  - {name: team}
";

/// The numbers of the queue with its Workloads by the label `type`: pending and admitted ones.
fn by_type(types: &[(&str, usize, usize)]) -> Measurement {
    let Measurement::ClusterQueue(mut queue, mut local) = queue(4) else {
        panic!("a ClusterQueue")
    };
    let numbers = types.iter().map(|&(value, active, admitted)| LabelledNumbers {
        labels: vec![value.to_owned()],
        active,
        inadmissible: 0,
        admitted,
    });
    queue.workloads.by_labels = numbers.collect();
    local[0].workloads.by_labels.clone_from(&queue.workloads.by_labels);
    Measurement::ClusterQueue(queue, local)
}

#[test]
fn series_that_count_workloads_have_the_labels_of_these() {
    let metrics = |gates: &str| {
        let file = Configuration::load(WORKLOAD_LABELS, None).expect("a configuration");
        let gates = Gates::parse(gates).expect("gates");
        KueueMetrics::new(MetricsSettings::new(&file, &gates))
    };
    let admitted = |value: &str| Measurement::Admitted {
        labels: WorkloadLabels { custom: vec![value.to_owned()], ..labels() },
        waited: Duration::ZERO,
        checks: None,
    };
    let on = metrics("CustomMetricLabels=true");
    let untracked = UNTRACKED_METRIC_VALUE;
    let all = vec![
        by_type(&[("train", 1, 2), (untracked, 3, 0)]),
        admitted("train"),
        admitted("train"),
        admitted(untracked),
    ];
    on.measure(all, Duration::ZERO);
    let body = scrape(&on);
    let role = r#"replica_role="standalone"}"#;
    let untracked = format!("custom_type=\"{untracked}\"");
    for line in [
        format!(
            r#"kueue_pending_workloads{{cluster_queue="a",status="active",custom_team="red",custom_type="train",{role} 1.0"#
        ),
        format!(
            r#"kueue_pending_workloads{{cluster_queue="a",status="active",custom_team="red",{untracked},{role} 3.0"#
        ),
        format!(
            r#"kueue_admitted_active_workloads{{cluster_queue="a",custom_team="red",custom_type="train",{role} 2.0"#
        ),
        format!(
            r#"kueue_local_queue_pending_workloads{{namespace="ns",name="lq",status="active",{untracked},{role} 3.0"#
        ),
        format!(
            r#"kueue_local_queue_admitted_active_workloads{{namespace="ns",name="lq",custom_type="train",{role} 2.0"#
        ),
        format!(
            r#"kueue_local_queue_admitted_workloads_total{{namespace="ns",name="lq",priority_class="high",custom_type="train",{role} 2.0"#
        ),
        format!(
            r#"kueue_local_queue_admitted_workloads_total{{namespace="ns",name="lq",priority_class="high",{untracked},{role} 1.0"#
        ),
        format!(
            r#"kueue_local_queue_admission_wait_time_seconds_count{{namespace="ns",name="lq",priority_class="high",custom_type="train",{role} 2"#
        ),
        format!(
            r#"kueue_reserving_active_workloads{{cluster_queue="a",custom_team="red",{role} 3.0"#
        ),
        format!(
            r#"kueue_admitted_workloads_total{{cluster_queue="a",priority_class="high",custom_team="red",{role} 3.0"#
        ),
    ] {
        assert!(body.lines().any(|one| one == line), "{line}\n{body}");
    }
    // The last Workload with the value is gone, and then the queue.
    on.measure(vec![by_type(&[("train", 1, 2)])], Duration::ZERO);
    let body = scrape(&on);
    let of_admissions = ["_total", "_admission_wait_time_seconds"];
    let gauges = body.lines().filter(|one| !of_admissions.iter().any(|part| one.contains(part)));
    assert!(!gauges.collect::<String>().contains(&untracked), "{body}");
    let pending = |body: &str| -> Vec<String> {
        let of_type = |one: &&str| one.contains("pending") && one.contains("custom_type");
        body.lines().filter(of_type).map(str::to_owned).collect()
    };
    assert_eq!(pending(&body).len(), 2, "a status without Workloads is no series: {body}");
    on.measure(vec![by_type(&[("train", 0, 2)])], Duration::ZERO);
    assert_eq!(pending(&scrape(&on)), [""; 0], "no Workload with the value waits any more");
    on.measure(vec![Measurement::ClusterQueueGone("a".into(), vec![])], Duration::ZERO);
    assert!(!scrape(&on).contains("custom_type"), "{body}");

    let off = metrics("");
    off.measure(vec![queue(4)], Duration::ZERO);
    assert!(!scrape(&off).contains("custom_"), "the gate is off");
}

#[test]
fn dispatch_is_counted_by_queue_and_cluster_without_the_prefix() {
    let metrics = everything();
    let labels =
        |cluster: &str| WorkerLabels { cluster_queue: "a".into(), cluster: cluster.to_owned() };
    let all = vec![
        queue(1),
        Measurement::Worker(WorkerMeasurement::Dispatched(labels("east"))),
        Measurement::Worker(WorkerMeasurement::Dispatched(labels("west"))),
        Measurement::Worker(WorkerMeasurement::Dispatched(labels("west"))),
        Measurement::Worker(WorkerMeasurement::Admitted(labels("west"))),
        Measurement::Worker(WorkerMeasurement::Evicted(labels("west"), "Preempted".to_owned())),
    ];
    metrics.measure(all, Duration::ZERO);
    let body = scrape(&metrics);
    for line in [
        "multikueue_workloads_dispatched_total{cluster_queue=\"a\",cluster=\"west\",replica_role=\"standalone\"} 2",
        "multikueue_workloads_dispatched_total{cluster_queue=\"a\",cluster=\"east\",replica_role=\"standalone\"} 1",
        "multikueue_workloads_admitted_total{cluster_queue=\"a\",cluster=\"west\",replica_role=\"standalone\"} 1",
        "multikueue_workloads_evicted_total{cluster_queue=\"a\",cluster=\"west\",reason=\"Preempted\",replica_role=\"standalone\"} 1",
    ] {
        assert!(body.lines().any(|one| one.starts_with(line)), "{line} in {body}");
    }
    assert!(!body.contains("kueue_multikueue"), "{body}");
    metrics.measure(vec![Measurement::ClusterQueueGone("a".into(), vec![])], Duration::ZERO);
    assert!(!scrape(&metrics).contains("multikueue_workloads"), "they end with the queue");
}

#[test]
fn a_worker_has_one_status_per_queue_until_the_queue_or_the_worker_is_gone() {
    let metrics = everything();
    let status = |queue: &str, cluster: &str, active| {
        Measurement::Worker(WorkerMeasurement::Status {
            labels: WorkerLabels { cluster_queue: queue.into(), cluster: cluster.into() },
            active,
        })
    };
    let series = || -> Vec<String> {
        let body = scrape(&metrics);
        let lines = body.lines().filter_map(|line| line.strip_prefix("multikueue_cluster_status"));
        lines.filter(|line| line.ends_with(" 1.0")).map(str::to_owned).collect()
    };
    let shown = |queue: &str, cluster: &str, active: &str| {
        format!(
            r#"{{cluster_queue="{queue}",cluster="{cluster}",active="{active}",replica_role="standalone"}} 1.0"#
        )
    };
    let all = [
        queue(1),
        status("a", "east", Some("Unknown")),
        status("a", "west", Some("False")),
        status("b", "east", Some("True")),
    ];
    metrics.measure(all.into(), Duration::ZERO);
    let expected =
        [shown("a", "east", "Unknown"), shown("a", "west", "False"), shown("b", "east", "True")];
    assert_eq!(series(), expected);
    let zeros = scrape(&metrics);
    let zeros = zeros.lines().filter(|one| one.starts_with("multikueue_cluster_status"));
    assert_eq!(zeros.filter(|one| one.ends_with(" 0.0")).count(), 6);
    metrics.measure(vec![status("a", "east", Some("True"))], Duration::ZERO);
    assert_eq!(series()[0], shown("a", "east", "True"));
    metrics.measure(vec![status("a", "east", None)], Duration::ZERO);
    assert_eq!(series(), [shown("a", "west", "False"), shown("b", "east", "True")]);
    metrics.measure(vec![Measurement::ClusterQueueGone("a".into(), vec![])], Duration::ZERO);
    assert_eq!(series(), [shown("b", "east", "True")]);
}

#[test]
fn an_integration_has_a_series_while_it_is_unavailable() {
    let metrics = everything();
    let series = |reason, unavailable| {
        let framework = "example.com/training".to_owned();
        let one = Measurement::IntegrationUnavailable { framework, reason, unavailable };
        metrics.measure(vec![one], Duration::ZERO);
        let body = scrape(&metrics);
        let line = format!(
            r#"sluice_integration_unavailable{{framework="example.com/training",reason="{reason}",replica_role="standalone"}} 1.0"#
        );
        body.lines().any(|one| one == line)
    };
    assert!(series("NotServed", true));
    assert!(!series("NotServed", false));
    assert!(series("Forbidden", true));
}

#[test]
fn a_worker_has_series_until_it_is_gone() {
    let metrics = everything();
    let cluster = || "east".to_owned();
    let at = "2026-01-01T00:00:00.5Z".parse().expect("a time");
    let all = vec![
        queue(1),
        Measurement::Worker(WorkerMeasurement::Active { cluster: cluster(), active: true }),
        Measurement::Worker(WorkerMeasurement::Reported { cluster: cluster(), at }),
        Measurement::Worker(WorkerMeasurement::Disputes { cluster: cluster(), workloads: 3 }),
        Measurement::Worker(WorkerMeasurement::Dispatched(WorkerLabels {
            cluster_queue: "a".into(),
            cluster: cluster(),
        })),
        Measurement::Worker(WorkerMeasurement::Rebalanced(WorkerLabels {
            cluster_queue: "a".into(),
            cluster: cluster(),
        })),
        Measurement::DispatchTook { cluster_queue: "a".into(), took: Duration::from_millis(30) },
    ];
    metrics.measure(all, Duration::ZERO);
    let body = scrape(&metrics);
    for line in [
        r#"sluice_dispatch_duration_seconds_bucket{le="0.02",cluster_queue="a",replica_role="standalone"} 0"#,
        r#"sluice_dispatch_duration_seconds_bucket{le="0.04",cluster_queue="a",replica_role="standalone"} 1"#,
        r#"sluice_rebalanced_workloads_total{cluster_queue="a",cluster="east",replica_role="standalone"} 1.0"#,
        r#"sluice_worker_active{cluster="east",replica_role="standalone"} 1.0"#,
        r#"sluice_worker_disputed_workloads{cluster="east",replica_role="standalone"} 3.0"#,
        r#"sluice_worker_report_timestamp_seconds{cluster="east",replica_role="standalone"} 1767225600.5"#,
    ] {
        assert!(body.lines().any(|one| one == line), "{line} in {body}");
    }
    metrics.measure(vec![Measurement::Worker(WorkerMeasurement::Gone(cluster()))], Duration::ZERO);
    let body = scrape(&metrics);
    assert!(!body.contains("sluice_worker_") && !body.contains("sluice_rebalanced_"), "{body}");
    assert!(body.contains("multikueue_workloads_dispatched_total"), "{body}");
    assert!(body.contains("sluice_dispatch_duration_seconds_count"), "{body}");
}
