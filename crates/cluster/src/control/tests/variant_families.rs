//! Variants over the life of their parent: made, admitted, migrated, ended.

use super::{
    cluster::Cluster,
    measurement::Measurement,
    workloads::{EvictionRequest, TrackedWorkload},
    workloads_of_jobs::class,
    *,
};

const LABEL: &str = "kueue.x-k8s.io/concurrent-admission-parent";

/// A queue with the flavors `best` and `default`, and quota for so many cpus each.
fn quota(best: usize, default: usize, policy: &Value) -> Value {
    let flavor = |name: &str, cpus: usize| json!({"name": name, "resources": [{"name": "cpu", "nominalQuota": cpus.to_string()}]});
    json!({
        "concurrentAdmissionPolicy": {"migration": policy},
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{
            "coveredResources": ["cpu"], "flavors": [flavor("best", best), flavor("default", default)],
        }],
    })
}

fn preferred() -> Value {
    json!({"mode": "TryPreferredFlavors"})
}

fn cluster_with(queue: &Value) -> Cluster {
    let gates = Gates::parse("ConcurrentAdmission=true").expect("a gate");
    let mut cluster =
        Cluster::with(ManagerSettings::new(&Configuration::default(), &gates, &kinds(), false));
    let flavor = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor",
        "metadata": {"name": "best", "resourceVersion": "3"},
    });
    cluster.observe(ManagerInput::ResourceFlavor(Change::Apply(shared(flavor)))).queue(queue);
    cluster
}

/// The name of the variant of `job-train-1` for a flavor.
fn variant(cluster: &Cluster, flavor: &str) -> String {
    let of = |one: &&String| one.starts_with(&format!("job-train-variant-{flavor}-"));
    cluster.workloads.keys().find(of).expect("a variant").clone()
}

/// Status and reason of a condition.
fn condition(cluster: &Cluster, name: &str, kind: &str) -> Option<(String, String)> {
    let all = cluster.workloads[name]["status"]["conditions"].as_array()?;
    let found = all.iter().find(|one| one["type"] == kind)?;
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason")))
}

fn flavor_of(cluster: &Cluster, name: &str) -> Value {
    let status = &cluster.workloads[name]["status"];
    status["admission"]["podSetAssignments"][0]["flavors"]["cpu"].clone()
}

/// The job has stopped: its Workload has no quota any more.
fn stopped(cluster: &mut Cluster) {
    let status = json!({"admission": null, "conditions": [
        {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": ""},
        {"type": "Evicted", "status": "True", "reason": "VariantEvicted", "message": ""},
    ]});
    cluster.workload("job-train-1", 5, &json!({ "status": status }));
}

#[test]
fn a_workload_is_admitted_by_its_variants() {
    let mut cluster = cluster_with(&quota(0, 8, &preferred()));
    cluster.workload("job-train-1", 5, &json!({})).settle();
    let (best, default) = (variant(&cluster, "best"), variant(&cluster, "default"));
    let seen = cluster.take_writes();
    let at = |write: &str| seen.iter().position(|one| one == write).unwrap_or(usize::MAX);
    assert_eq!(at("mark-parent job-train-1"), 0, "{seen:?}");
    let order = [
        at(&format!("variant-create {default}")),
        at(&format!("reserve {default}")),
        at("admit-parent job-train-1"),
    ];
    assert!(order.is_sorted() && order[2] < seen.len(), "{seen:?}");
    assert_eq!(cluster.workloads["job-train-1"]["metadata"]["labels"][LABEL], "true");
    assert_eq!(flavor_of(&cluster, "job-train-1"), "default");
    let made = &cluster.workloads[&best];
    assert_eq!(made["metadata"]["labels"].get(LABEL), None);
    assert_eq!(made["spec"]["podSets"], cluster.workloads["job-train-1"]["spec"]["podSets"]);
    let gate = json!([{"name": "kueue.x-k8s.io/concurrent-admission"}]);
    assert_eq!(made["spec"]["preemptionGates"], gate);
    let created: Vec<&str> = cluster
        .events
        .iter()
        .filter(|one| one.reason == "CreatedVariant")
        .map(|one| one.note.as_str())
        .collect();
    assert_eq!(
        created,
        [
            format!("Variant Workload \"ns/{best}\" created"),
            format!("Variant Workload \"ns/{default}\" created"),
        ]
    );
    // Only the variant is counted.
    let counts = cluster.control.core.scheduler.counts("cq");
    assert_eq!((counts.total.reserving, counts.total.admitted), (1, 1));
}

#[test]
fn a_job_moves_to_the_better_flavor_after_it_has_stopped() {
    let mut cluster = cluster_with(&quota(0, 8, &preferred()));
    cluster.workload("job-train-1", 5, &json!({})).settle();
    let (best, default) = (variant(&cluster, "best"), variant(&cluster, "default"));
    cluster.take_writes();
    cluster.queue(&quota(8, 8, &preferred())).settle();
    assert_eq!(cluster.take_writes(), [format!("evict {default}"), "evict job-train-1".to_owned()]);
    let evicted = Some(("True".to_owned(), "FlavorMigration".to_owned()));
    assert_eq!(condition(&cluster, &default, "Evicted"), evicted);
    let evicted = Some(("True".to_owned(), "VariantEvicted".to_owned()));
    assert_eq!(condition(&cluster, "job-train-1", "Evicted"), evicted);
    stopped(&mut cluster);
    cluster.settle();
    let seen = cluster.take_writes();
    for write in [
        format!("release {default}"),
        format!("reserve {best}"),
        "admit-parent job-train-1".to_owned(),
        format!("deactivate {default}"),
    ] {
        assert!(seen.contains(&write), "{write}: {seen:?}");
    }
    assert_eq!(flavor_of(&cluster, "job-train-1"), "best");
    assert_eq!(condition(&cluster, "job-train-1", "Evicted").expect("known").0, "False");
    let why = format!(
        "Variant Workload deactivated due to being lower priority than admitted Variant \"ns/{best}\""
    );
    assert!(cluster.events.iter().any(|one| one.note == why), "{:?}", cluster.events);
}

#[test]
fn the_first_admission_is_kept_under_that_policy_and_variants_end_with_their_parent() {
    let policy = json!({"mode": "RetainFirstAdmission"});
    let mut cluster = cluster_with(&quota(0, 8, &policy));
    cluster.workload("job-train-1", 5, &json!({})).settle();
    let (best, default) = (variant(&cluster, "best"), variant(&cluster, "default"));
    assert_eq!(cluster.workloads[&best]["spec"]["active"], false);
    cluster.queue(&quota(8, 8, &policy)).settle();
    assert_eq!(flavor_of(&cluster, "job-train-1"), "default");
    let finished =
        json!([{"type": "Finished", "status": "True", "reason": "Succeeded", "message": "done"}]);
    cluster.workload("job-train-1", 5, &json!({"status": {"conditions": finished}})).settle();
    for one in [&best, &default] {
        let over = Some(("True".to_owned(), "Succeeded".to_owned()));
        assert_eq!(condition(&cluster, one, "Finished"), over);
    }
    let counts = cluster.control.core.scheduler.counts("cq");
    assert_eq!(counts.total.reserving, 0);
}

#[test]
fn a_preemption_gate_opens_for_one_variant_at_a_time() {
    let mut cluster = cluster_with(&quota(0, 0, &preferred()));
    // Both flavors are in use by others, which have a lower priority.
    cluster.queue(&quota(5, 5, &preferred()));
    for (name, flavor) in [("low-1", "best"), ("low-2", "default")] {
        let mut held = workload()["status"].clone();
        held["admission"]["podSetAssignments"][0] = json!({
            "name": "main", "count": 5, "flavors": {"cpu": flavor}, "resourceUsage": {"cpu": "5"},
        });
        cluster.workload(name, 5, &json!({"spec": {"priority": -1}, "status": held}));
    }
    cluster.workload("job-train-1", 5, &json!({})).settle();
    let (best, default) = (variant(&cluster, "best"), variant(&cluster, "default"));
    cluster.wait(6).settle().wait(6).settle();
    let seen = cluster.take_writes();
    assert!(seen.contains(&format!("open-gate {best}")), "{seen:?}");
    assert!(seen.contains(&"evict low-1".to_owned()), "{seen:?}");
    assert!(!seen.contains(&format!("open-gate {default}")), "{seen:?}");
    let note = format!("Opened preemption gate for variant workload \"ns/{best}\"");
    assert!(cluster.events.iter().any(|one| one.note == note), "{:?}", cluster.events);
    cluster.wait(299).settle();
    let seen = cluster.take_writes();
    // The first one still waits for what it preempts, and is the head of the queue.
    assert_eq!(seen, [format!("open-gate {default}")]);
}

#[test]
fn a_manager_that_starts_again_goes_on_with_a_family() {
    let mut cluster = cluster_with(&quota(0, 8, &preferred()));
    cluster.workload("job-train-1", 5, &json!({})).settle();
    let default = variant(&cluster, "default");
    cluster.queue(&quota(8, 8, &preferred())).settle();
    let known = cluster.workloads.clone();
    let mut again = cluster_with(&quota(8, 8, &preferred()));
    for (name, one) in &known {
        again.workload(name, 5, one);
    }
    again.settle();
    assert_eq!(again.take_writes(), [""; 0]);
    stopped(&mut again);
    again.settle();
    assert!(again.take_writes().contains(&format!("release {default}")));
    assert_eq!(flavor_of(&again, "job-train-1"), "best");
}

#[test]
fn variants_without_their_parent_are_deleted() {
    let mut cluster = cluster_with(&quota(0, 8, &preferred()));
    cluster.workload("job-train-1", 5, &json!({})).settle();
    cluster.take_writes();
    let (best, default) = (variant(&cluster, "best"), variant(&cluster, "default"));
    cluster.workloads.remove("job-train-1").expect("the parent");
    let gone = Key { namespace: Some("ns".into()), name: "job-train-1".into() };
    cluster.observe(ManagerInput::Workload(Change::Delete(gone))).settle();
    let mut seen = cluster.take_writes();
    seen.sort();
    assert_eq!(seen, [format!("workload-delete {best}"), format!("workload-delete {default}")]);
}

/// The class would set its own value, and the parent the edited one, in turn.
#[test]
fn a_new_variant_keeps_the_edited_priority_of_its_parent() {
    let mut cluster = cluster_with(&quota(0, 8, &preferred()));
    let reference =
        json!({"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"});
    let spec = json!({"spec": {"priority": 5, "priorityClassRef": reference}});
    cluster.observe(class("high", 5)).workload("job-train-1", 5, &spec).settle();
    cluster.workload("job-train-1", 5, &json!({"spec": {"priority": 100}})).settle();
    let best = variant(&cluster, "best");
    cluster.delete(&best).settle();
    let priorities = |cluster: &Cluster| {
        let all = cluster.workloads.values();
        all.map(|one| one["spec"]["priority"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(priorities(&cluster), [100, 100, 100], "the parent and its variants");
    cluster.observe(class("high", 6)).settle();
    assert_eq!(priorities(&cluster), [6, 6, 6], "by way of the parent");
}

/// The variant runs again otherwise, and fails again.
#[test]
fn a_variant_that_a_check_rejects_during_its_eviction_does_not_return() {
    let mut queue = quota(0, 8, &preferred());
    queue["admissionChecksStrategy"] = json!({"admissionChecks": [{"name": "one"}]});
    let mut cluster = cluster_with(&queue);
    cluster.check("one").workload("job-train-1", 5, &json!({})).settle();
    let default = variant(&cluster, "default");
    let check = |state: &str| {
        let one = json!({"name": "one", "state": state, "message": "no", "lastTransitionTime": "1970-01-01T00:00:00Z"});
        json!({"status": {"admissionChecks": [one]}})
    };
    cluster.workload(&default, 5, &check("Ready")).settle();
    assert_eq!(condition(&cluster, "job-train-1", "Admitted").expect("known").0, "True");
    let core = &mut cluster.control.core;
    let key = Key { namespace: Some("ns".into()), name: default.as_str().into() };
    let id = core.workloads.get(&key).and_then(TrackedWorkload::id).expect("its number");
    core.workloads.evict(id, EvictionRequest::new("Preempted", "preempted"), &mut core.ctx);
    cluster.settle();
    cluster.take_writes();
    cluster.workload(&default, 5, &check("Rejected")).settle();
    stopped(&mut cluster);
    cluster.settle().wait(60).settle();
    let seen = cluster.take_writes();
    assert!(seen.contains(&format!("release {default}")), "{seen:?}");
    assert!(!seen.contains(&format!("activate {default}")), "{seen:?}");
    assert_eq!(cluster.workloads[&default]["spec"]["active"], false);
}

/// Labels of unadmitted Workloads, with the last number of each that is above zero.
fn unadmitted(cluster: &Cluster) -> Vec<(String, usize)> {
    let mut last = BTreeMap::new();
    for one in &cluster.measurements {
        if let Measurement::UnadmittedWorkloads(labels, count) = one {
            last.insert(format!("{} {}", labels.reason, labels.underlying_cause), *count);
        }
    }
    last.into_iter().filter(|(_, count)| *count > 0).collect()
}

#[test]
fn a_family_counts_once_until_one_of_its_variants_is_admitted() {
    let policy = json!({"mode": "RetainFirstAdmission"});
    let mut cluster = cluster_with(&quota(0, 0, &policy));
    cluster.workload("job-train-1", 5, &json!({})).settle().wait(60).settle();
    let counts: Vec<usize> = unadmitted(&cluster).into_iter().map(|(_, count)| count).collect();
    assert_eq!(counts, [1], "{:?}", unadmitted(&cluster));
    cluster.queue(&quota(0, 8, &policy)).settle();
    assert_eq!(flavor_of(&cluster, "job-train-1"), "default");
    assert_eq!(unadmitted(&cluster), []);
}
