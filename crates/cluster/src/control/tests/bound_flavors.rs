//! Flavors that are bound to clusters, while clusters race because none reports.

use super::{
    dispatched::{done, orders},
    race::{body, connect, manager_of, reserved},
    *,
};

/// The flavor of the Workload, bound to these clusters.
fn bind(control: &mut ManagerControl, version: &str, clusters: &str) {
    let flavor = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor",
        "metadata": {
            "name": "default", "resourceVersion": version, "generation": 1,
            "annotations": {"sluice.dev/clusters": clusters},
        },
        "spec": {},
    });
    control.observe(ManagerInput::ResourceFlavor(Change::Apply(shared(flavor))), NOW);
}

/// A manager of the workers `east` and `west`, which report nothing, and a Workload with quota of the flavor. Only `east` is reached.
fn racing(clusters: &str) -> ManagerControl {
    let mut control = manager_of(capacity_settings());
    bind(&mut control, "80", clusters);
    connect(&mut control, "east");
    control
}

fn nominated(step: &Decisions) -> Value {
    body(step, "hub")["status"]["nominatedClusterNames"].clone()
}

#[test]
fn a_race_without_reports_or_a_cluster_that_its_flavor_is_bound_to_gives_the_quota_back() {
    for (clusters, ordered) in
        [("east", "hub reserve"), ("west", "hub unplace"), ("", "hub unplace")]
    {
        let step = racing(clusters).decide(NOW);
        assert_eq!(orders(&step), [ordered], "{clusters}");
    }
}

#[test]
fn an_edit_of_the_clusters_of_a_flavor_extends_a_race_at_once() {
    let mut control = racing("east");
    connect(&mut control, "west");
    let step = control.decide(NOW);
    assert_eq!(nominated(&step), json!(["east"]));
    done(&mut control, &step, "reserve", reserved("51", &["east"]), NOW);
    assert_eq!(orders(&control.decide(NOW)), ["east clone-create"]);
    bind(&mut control, "81", "east,west");
    assert_eq!(nominated(&control.decide(NOW)), json!(["east", "west"]));
}
