//! Status of ClusterQueues and Cohorts, and finalizers of what queues name.

use std::collections::BTreeSet;

use crds::v1beta2::Cohort;

use super::{cluster::Cluster, measurement::Measurement, *};
use crate::control::{scheduling::Scheduler, timers::Agenda};

pub(super) fn cohort() -> ManagerInput {
    let cohort = json!({
        "metadata": {"name": "team", "resourceVersion": "9"},
        "spec": {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
            {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "2"}]},
        ]}]},
    });
    ManagerInput::Cohort(Change::Apply(shared(cohort)))
}

/// Bodies of the orders about an object, as purpose and JSON.
pub(super) fn bodies(step: &Decisions, subject: &Subject) -> Vec<(&'static str, Value)> {
    let orders = step.orders.iter().filter(|order| order.ticket.target.subject == *subject);
    let body = |order: &Order| serde_json::from_slice(order.write.request().body()).expect("JSON");
    orders.map(|order| (order.ticket.purpose.name(), body(order))).collect()
}

#[test]
fn fair_sharing_shows_the_shares_of_cluster_queues_and_cohorts() {
    let shares = |fair: bool| {
        let mut settings = settings();
        settings.core.scheduler.engine.fair_sharing = fair.then(Vec::new);
        let mut cluster = Cluster::with(settings);
        cluster.observe(cohort()).queue(&json!({"cohortName": "team"}));
        cluster.workload("a", 9, &json!({}));
        let step = cluster.control.decide(NOW);
        let share = |subject: Subject| {
            let all = bodies(&step, &subject);
            all.first().map(|(_, body)| body["status"]["fairSharing"]["weightedShare"].clone())
        };
        (share(Subject::ClusterQueue), share(Subject::Cohort))
    };
    // One of ten cpus is borrowed; a root has share 0.
    assert_eq!(shares(true), (Some(json!(100)), Some(json!(0))));
    assert_eq!(shares(false), (Some(Value::Null), None));
}

#[test]
fn a_cohort_below_another_shows_what_it_borrows_of_it() {
    let mut settings = settings();
    settings.core.scheduler.engine.fair_sharing = Some(vec![]);
    let mut cluster = Cluster::with(settings);
    let mut root = json!({
        "metadata": {"name": "root", "resourceVersion": "9"},
        "spec": {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
            {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "2"}]},
        ]}]},
    });
    cluster.observe(ManagerInput::Cohort(Change::Apply(shared(root.clone()))));
    root["metadata"]["name"] = json!("team");
    root["spec"] = json!({"parentName": "root"});
    cluster.observe(ManagerInput::Cohort(Change::Apply(shared(root))));
    cluster.queue(&json!({"cohortName": "team"})).workload("a", 9, &json!({}));
    let step = cluster.control.decide(NOW);
    let of_status = |order: &&Order| {
        order.ticket.target.subject == Subject::Cohort
            && order.ticket.purpose == Purpose::ClusterQueueStatus
    };
    let share = |order: &Order| {
        let body: Value = serde_json::from_slice(order.write.request().body()).expect("JSON");
        (
            order.ticket.target.key.name.to_string(),
            body["status"]["fairSharing"]["weightedShare"].clone(),
        )
    };
    let mut shares: Vec<_> = step.orders.iter().filter(of_status).map(share).collect();
    shares.sort_by(|one, other| one.0.cmp(&other.0));
    // One of ten cpus is the root's.
    assert_eq!(shares, [("root".to_owned(), json!(0)), ("team".to_owned(), json!(100))]);
}

/// The seconds at which the status of the ClusterQueue is written, with a Workload that comes every second.
fn seconds_of_writes(settings: ManagerSettings) -> Vec<i64> {
    let mut cluster = Cluster::with(settings);
    let mut seconds = vec![];
    for second in 0..12 {
        let written = statuses_written(&mut cluster).into_iter();
        seconds.extend(written.filter(|one| *one == Subject::ClusterQueue).map(|_| second));
        cluster.workload(&format!("w{second}"), 1, &json!({})).wait(1);
    }
    seconds
}

/// Decides until nothing is ordered, and accepts every write.
fn statuses_written(cluster: &mut Cluster) -> Vec<Subject> {
    let mut written = vec![];
    loop {
        let mut step = cluster.control.decide(cluster.now);
        if step.orders.is_empty() {
            return written;
        }
        let of_status = |order: &Order| order.ticket.purpose == Purpose::ClusterQueueStatus;
        for order in step.orders.extract_if(.., |order| of_status(order)) {
            let mut body: Value =
                serde_json::from_slice(order.write.request().body()).expect("JSON");
            body["metadata"]["resourceVersion"] =
                json!((1000 + cluster.now.as_second()).to_string());
            cluster.control.answered(&order.ticket, WriteOutcome::done(body), cluster.now);
            written.push(order.ticket.target.subject.clone());
        }
        cluster.take(step);
    }
}

#[test]
fn the_first_change_of_a_status_is_written_at_once_and_later_ones_once_per_period() {
    assert_eq!(
        seconds_of_writes(settings()),
        [0, 5, 10],
        "five seconds unless something else is asked for"
    );
    let every_second = || (0..12).collect();
    let periods = [(3, vec![0, 3, 6, 9]), (1, every_second()), (0, every_second()), (60, vec![0])];
    for (seconds, expected) in periods {
        let period = std::time::Duration::from_secs(seconds);
        let mut written = seconds_of_writes(settings().writing_queue_status_every(period));
        // Without a period each change is written, also several within a second.
        written.dedup();
        assert_eq!(written, expected, "{seconds}");
    }
}

#[test]
fn the_condition_of_a_queue_has_the_generation_of_its_spec() {
    let version = |generation: i64, status: &Value| {
        let known = status["conditions"][0]["observedGeneration"].as_i64().unwrap_or_default();
        (100 + generation + known).to_string()
    };
    let queue = |generation: i64, status: &Value| {
        ManagerInput::ClusterQueue(Change::Apply(shared(json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
            "metadata": {"name": "cq", "resourceVersion": version(generation, status), "generation": generation},
            "spec": {"namespaceSelector": {}}, "status": status,
        }))))
    };
    let local_queue = |generation: i64, status: &Value| {
        ManagerInput::LocalQueue(Change::Apply(shared(json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
            "metadata": {
                "name": "lq", "namespace": "ns", "resourceVersion": version(generation, status), "generation": generation,
            },
            "spec": {"clusterQueue": "cq"}, "status": status,
        }))))
    };
    let subjects = [Subject::ClusterQueue, Subject::LocalQueue];
    let statuses = |cluster: &mut Cluster| {
        let step = cluster.control.decide(cluster.now);
        for order in step.orders.iter().filter(|one| subjects.contains(&one.ticket.target.subject))
        {
            cluster.control.answered(&order.ticket, WriteOutcome::Stale, cluster.now);
        }
        subjects.clone().map(|subject| {
            bodies(&step, &subject).into_iter().find_map(|(_, body)| body.get("status").cloned())
        })
    };
    let mut cluster = Cluster::new();
    cluster.observe(queue(1, &json!({}))).observe(local_queue(1, &json!({})));
    let [Some(first), Some(local)] = statuses(&mut cluster) else {
        panic!("both statuses are written");
    };
    // Nothing but the generation differs.
    cluster.wait(60).observe(queue(2, &first)).observe(local_queue(2, &local));
    for (written, before) in statuses(&mut cluster).into_iter().zip([&first, &local]) {
        let mut expected = before.clone();
        expected["conditions"][0]["observedGeneration"] = json!(2);
        assert_eq!(written, Some(expected));
    }
    let shown = |mut status: Value| {
        status["conditions"][0]["observedGeneration"] = json!(2);
        status
    };
    let (first, local) = (shown(first), shown(local));
    cluster.wait(60).observe(queue(2, &first)).observe(local_queue(2, &local));
    assert_eq!(statuses(&mut cluster), [None, None], "one write per change of the spec");
}

#[test]
fn the_conditions_of_checks_and_worker_clusters_have_the_generation_of_their_spec() {
    let mut control = dispatched::dispatching(&dispatched::hub_job("20", true, &json!({})), &[]);
    dispatched::connect(&mut control, vec![], vec![]);
    let parameters =
        json!({"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all"});
    let show = |control: &mut ManagerControl, generation: i64, [check, cluster]: [&Value; 2]| {
        let metadata = |name: &str| {
            let version = (100 + generation).to_string();
            json!({"name": name, "resourceVersion": version, "generation": generation})
        };
        let check = json!({
            "metadata": metadata("workers"), "status": check,
            "spec": {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters},
        });
        let cluster = json!({"metadata": metadata("east"), "spec": {}, "status": cluster});
        control.observe(ManagerInput::AdmissionCheck(Change::Apply(shared(check))), NOW);
        control.observe(ManagerInput::MultiKueueCluster(Change::Apply(shared(cluster))), NOW);
    };
    let statuses = |control: &mut ManagerControl| {
        let step = control.decide(NOW);
        [Subject::AdmissionCheck, Subject::MultiKueueCluster].map(|subject| {
            let of_subject = |one: &&Order| one.ticket.target.subject == subject;
            for order in step.orders.iter().filter(of_subject) {
                control.answered(&order.ticket, WriteOutcome::Stale, NOW);
            }
            bodies(&step, &subject).into_iter().find_map(|(_, body)| body.get("status").cloned())
        })
    };
    let active = |generation: i64| {
        json!({"conditions": [{
            "type": "Active", "status": "True", "reason": "Active", "observedGeneration": generation,
            "message": "The admission check is active", "lastTransitionTime": "1970-01-01T00:00:00Z",
        }]})
    };
    let connected = |generation: i64| {
        let mut status = active(generation);
        status["conditions"][0]["message"] = json!("");
        status
    };
    show(&mut control, 1, [&active(1), &connected(1)]);
    assert_eq!(statuses(&mut control), [None, None]);
    show(&mut control, 2, [&active(1), &connected(1)]);
    assert_eq!(statuses(&mut control), [Some(active(2)), Some(connected(2))]);
    show(&mut control, 3, [&active(3), &connected(3)]);
    assert_eq!(statuses(&mut control), [None, None]);
}

#[test]
fn a_clock_that_is_set_back_keeps_no_status_back() {
    let mut cluster = Cluster::new();
    let writes = |cluster: &mut Cluster| {
        cluster.workload(&format!("w{}", cluster.now), 1, &json!({}));
        statuses_written(cluster).contains(&Subject::ClusterQueue)
    };
    assert!(writes(&mut cluster));
    assert!(!writes(cluster.wait(1)), "its period has begun");
    let back = jiff::SignedDuration::from_hours(-1);
    cluster.control.clock_jumped(back);
    cluster.now += back;
    assert!(writes(cluster.wait(1)), "the period ended before the clock was set back");
}

/// Cohorts that were measured since the last call, with whether they are declared; `None` if they are gone.
fn measured_cohorts(cluster: &mut Cluster) -> BTreeSet<(String, Option<bool>)> {
    cluster.settle();
    let cohort = |one| match one {
        Measurement::Cohort(gauges) => Some((gauges.name, Some(gauges.declared))),
        Measurement::CohortGone(name) => Some((name, None)),
        _ => None,
    };
    std::mem::take(&mut cluster.measurements).into_iter().filter_map(cohort).collect()
}

#[test]
fn a_cohort_counts_as_declared_while_a_declared_one_names_it_as_its_parent() {
    let team = |version: &str, parent: &str| {
        let cohort = json!({
            "metadata": {"name": "team", "resourceVersion": version}, "spec": {"parentName": parent},
        });
        ManagerInput::Cohort(Change::Apply(shared(cohort)))
    };
    let named = |name: &str, declared| (name.to_owned(), declared);
    let mut cluster = Cluster::new();
    cluster.queue(&json!({"cohortName": "team"}));
    assert_eq!(measured_cohorts(&mut cluster), [named("team", Some(false))].into());
    cluster.observe(team("9", "root"));
    let both = [named("root", Some(true)), named("team", Some(true))];
    assert_eq!(measured_cohorts(&mut cluster), both.into());
    cluster.observe(team("10", ""));
    let moved = [named("root", None), named("team", Some(true))];
    assert_eq!(measured_cohorts(&mut cluster), moved.into());
    let key = Key { namespace: None, name: "team".into() };
    cluster.observe(ManagerInput::Cohort(Change::Delete(key)));
    assert_eq!(measured_cohorts(&mut cluster), [named("team", None)].into());
}

#[test]
fn a_new_status_of_a_cohort_counts_no_queues() {
    let mut scheduler = Scheduler::new(&settings().core.scheduler);
    let mut counts_queues = |weight: &str, share: i64| {
        let cohort = shared::<Cohort>(json!({
            "metadata": {"name": "team"}, "spec": {"fairSharing": {"weight": weight}},
            "status": {"fairSharing": {"weightedShare": share}},
        }));
        let mut agenda = Agenda::default();
        scheduler.update(&mut agenda, |index, names| index.cohort(names, "team", Some(&cohort)));
        agenda.take_queues().is_some_and(|marked| marked.all)
    };
    assert!(counts_queues("1", 0));
    assert!(!counts_queues("1", 5), "a new status alone");
    assert!(counts_queues("2", 5));
}

#[test]
fn without_their_metrics_cohorts_are_not_measured() {
    let mut settings = settings();
    settings.core.scheduler.measures_cohorts = false;
    let mut cluster = Cluster::with(settings);
    cluster.observe(cohort()).queue(&json!({"cohortName": "team"}));
    assert_eq!(measured_cohorts(&mut cluster), BTreeSet::new());
}

fn metadata(name: &str, version: &str, finalizers: &[&str], deleted: bool) -> Value {
    let mut metadata =
        json!({"name": name, "uid": name, "resourceVersion": version, "finalizers": finalizers});
    if deleted {
        metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    metadata
}

#[test]
fn checks_and_topologies_are_kept_while_something_names_them() {
    let finalizer = "kueue.x-k8s.io/resource-in-use";
    let check = |version: &str, finalizers: &[&str], deleted: bool| {
        let check = json!({
            "metadata": metadata("one", version, finalizers, deleted),
            "spec": {"controllerName": "example.com/nodes"},
        });
        ManagerInput::AdmissionCheck(Change::Apply(shared(check)))
    };
    let topology = |version: &str, finalizers: &[&str], deleted: bool| {
        let levels = json!([{"nodeLabel": "rack"}]);
        let topology = json!({
            "metadata": metadata("racks", version, finalizers, deleted), "spec": {"levels": levels},
        });
        ManagerInput::Topology(Change::Apply(shared(topology)))
    };
    let flavor = |version: &str, topology: Value| {
        let flavor = json!({
            "metadata": metadata("default", version, &[finalizer], false),
            "spec": {"topologyName": topology, "nodeLabels": {"a": "b"}},
        });
        ManagerInput::ResourceFlavor(Change::Apply(shared(flavor)))
    };
    let mut cluster = Cluster::new();
    let checks = json!({"admissionChecksStrategy": {"admissionChecks": [{"name": "one"}]}});
    cluster.queue(&checks).observe(flavor("40", json!("racks")));
    cluster.control.decide(NOW);
    for (subject, new, deleted) in [
        (Subject::AdmissionCheck, check("41", &["a/b"], false), check("42", &[finalizer], true)),
        (Subject::Topology, topology("41", &["a/b"], false), topology("42", &[finalizer], true)),
    ] {
        cluster.observe(new);
        let step = cluster.control.decide(NOW);
        let [(purpose, body)] = &bodies(&step, &subject)[..] else {
            panic!("{:?}", step.orders);
        };
        assert_eq!(*purpose, "release-unused");
        assert_eq!(body["metadata"]["finalizers"], json!(["a/b", finalizer]));
        let order = step.orders.iter().find(|order| order.ticket.target.subject == subject);
        let ticket = order.expect("the order").ticket.clone();
        cluster.control.answered(&ticket, WriteOutcome::Stale, NOW);
        cluster.observe(deleted);
        assert_eq!(bodies(&cluster.control.decide(NOW), &subject), [], "it is in use");
    }
    cluster.queue(&json!({})).observe(flavor("50", Value::Null));
    let step = cluster.control.decide(NOW);
    for subject in [Subject::AdmissionCheck, Subject::Topology] {
        let [(_, body)] = &bodies(&step, &subject)[..] else { panic!("{:?}", step.orders) };
        assert_eq!(body["metadata"]["finalizers"], json!([]));
    }
}

#[test]
fn a_queue_that_was_made_again_with_the_same_generation_evaluates_its_workloads() {
    let queue = |uid: &str, stop: &str| {
        let queue = json!({
            "metadata": {
                "name": "lq", "namespace": "ns", "uid": uid, "generation": 1,
                "resourceVersion": if uid == "first" { "40" } else { "60" },
            },
            "spec": {"clusterQueue": "cq", "stopPolicy": stop},
        });
        ManagerInput::LocalQueue(Change::Apply(shared(queue)))
    };
    let mut cluster = Cluster::new();
    cluster.queue(&json!({})).observe(queue("first", "None"));
    cluster.workload("a", 4, &json!({})).settle();
    assert!(cluster.condition("a", "Admitted").starts_with("True"));
    // The deletion and the creation came between two lists, which show one object that changed.
    cluster.observe(queue("second", "HoldAndDrain")).settle();
    assert!(cluster.condition("a", "Evicted").starts_with("True"), "{:?}", cluster.writes);
}
