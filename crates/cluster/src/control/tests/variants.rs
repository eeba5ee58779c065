//! Variants of a Workload: migration to a better flavor, and the reason of a closed preemption gate.

use super::*;

/// One variant of a family: of 5 cpus, for one flavor, with quota there or without.
fn variant(name: &str, flavor: &str, holds: bool) -> Value {
    let mut one = workload();
    one["metadata"] = json!({
        "name": name, "namespace": "ns", "uid": name, "resourceVersion": "21",
        "annotations": {"kueue.x-k8s.io/workload-allowed-resource-flavors": flavor},
        "ownerReferences": [{
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "name": "parent", "uid": "parent-1",
        }],
    });
    one["spec"]["podSets"][0]["count"] = json!(5);
    let held = &mut one["status"]["admission"]["podSetAssignments"][0];
    (held["count"], held["resourceUsage"]) = (json!(5), json!({"cpu": "5"}));
    held["flavors"] = json!({"cpu": flavor});
    if !holds {
        one["status"] = json!({});
    }
    one
}

/// The parent of the variants, which runs as the one of flavor `default`.
fn parent() -> Value {
    let mut one = variant("parent", "default", true);
    one["metadata"] = json!({
        "name": "parent", "namespace": "ns", "uid": "parent-1", "resourceVersion": "21",
        "labels": {"kueue.x-k8s.io/concurrent-admission-parent": "true"},
    });
    one
}

/// A manager under the gate, whose queue has a flavor before the usual one.
fn control(workloads: &[Value]) -> ManagerControl {
    let gates = Gates::parse("ConcurrentAdmission=true").expect("a gate");
    let mut control = ManagerControl::new(ManagerSettings::new(
        &Configuration::default(),
        &gates,
        &kinds(),
        false,
    ));
    let flavor = |name: &str| {
        json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor",
            "metadata": {"name": name, "resourceVersion": "3"},
        })
    };
    for mut input in lists() {
        match &mut input {
            ManagerInput::Workload(change) => *change = list(workloads.to_vec()),
            ManagerInput::Job(_, change) => *change = jobs(vec![]),
            ManagerInput::ResourceFlavor(change) => {
                *change = list(vec![flavor("best"), flavor("default")]);
            }
            ManagerInput::ClusterQueue(Change::Reset { objects, .. }) => {
                let quota =
                    json!({"name": "best", "resources": [{"name": "cpu", "nominalQuota": "8"}]});
                Arc::make_mut(&mut objects[0]).spec.resource_groups[0]
                    .flavors
                    .insert(0, object(quota));
                Arc::make_mut(&mut objects[0]).spec.preemption =
                    Some(object(json!({"withinClusterQueue": "LowerPriority"})));
            }
            _ => {}
        }
        control.observe(input, NOW);
    }
    control
}

/// What is written about a Workload, by its purpose.
fn written(step: &Decisions, name: &str) -> Vec<(Purpose, String)> {
    let own = step.orders.iter().filter(|order| *order.ticket.target.key.name == *name);
    own.map(|order| {
        let body = order.write.request().body();
        (order.ticket.purpose, std::str::from_utf8(body).expect("text").to_owned())
    })
    .collect()
}

#[test]
fn a_variant_with_a_worse_flavor_is_evicted_once_a_better_one_fits() {
    let mut control =
        control(&[parent(), variant("good", "default", true), variant("better", "best", false)]);
    let step = control.decide(NOW);
    assert_eq!(written(&step, "better"), []);
    let [(Purpose::Evict, body)] = &written(&step, "good")[..] else {
        panic!("{:?}", step.orders);
    };
    let message = "Evicted to accommodate a workload (UID: better) due to migration to more favorable resource flavor";
    assert!(body.contains(message) && body.contains("FlavorMigration"), "{body}");
    assert!(!control.core.scheduler.is_pending(), "no further cycle runs before the next event");
}

#[test]
fn a_closed_preemption_gate_is_the_pending_reason() {
    let mut busy = variant("busy", "best", true);
    busy["metadata"]["ownerReferences"] = json!([]);
    let mut gated = variant("gated", "best", false);
    gated["metadata"]["ownerReferences"] = json!([]);
    gated["spec"]["priority"] = json!(1);
    gated["spec"]["preemptionGates"] = json!([{"name": "kueue.x-k8s.io/concurrent-admission"}]);
    let mut control = control(&[busy, gated]);
    control.decide(NOW);
    let step = control.decide(NOW + jiff::SignedDuration::from_secs(5));
    assert_eq!(written(&step, "busy"), []);
    let [(Purpose::Pending, body)] = &written(&step, "gated")[..] else {
        panic!("{:?}", step.orders);
    };
    for word in ["BlockedOnPreemptionGates", "PreemptionGated", "AdmissionGated", "it's gated"] {
        assert!(body.contains(word), "{word} in {body}");
    }
}
