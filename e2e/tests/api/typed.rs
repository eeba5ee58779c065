//! The types as clients use them: created objects are read back, invalid ones are refused by the schema.

use std::path::Path;

use anyhow::{Context, Result};
use crds::{
    v1alpha1::{ClusterCapacity, DispatchPolicy, NodeClass},
    v1beta2::{ResourceFlavor, Topology},
};
use e2e::local_webhooks;
use harness::{Cluster, TestLab};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

/// A cluster with our CRDs and no webhooks: kinds that do not convert need none.
async fn cluster() -> Result<Cluster> {
    let lab = TestLab::shared(0).await?;
    let cluster = lab.cluster("manager").await?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crds/manifests");
    // No server listens there: conversions fail, which these tests do not need.
    cluster.apply(&local_webhooks::manifests(&folder, 9)?, "default").await?;
    Ok(cluster)
}

fn policy(name: &str, spec: &Value) -> Result<DispatchPolicy> {
    Ok(serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec}))?)
}

#[tokio::test]
async fn a_capacity_report_is_read_back_unchanged() -> Result<()> {
    let api: Api<ClusterCapacity> = cluster().await?.cluster_api();
    let mut report: ClusterCapacity = serde_json::from_value(json!({
        "metadata": {"name": "typed-report"},
        "spec": {
            "labelKeys": ["example.com/pool"],
            "managers": [{"origin": "multikueue", "cluster": "uid", "labelKeys": ["zone"]}],
        },
    }))?;
    report = api.create(&PostParams::default(), &report).await?;
    report.status.protocol = 1;
    report.status.mode = "Thin".into();
    report.status.as_of = "42".into();
    report.status.node_classes = vec![NodeClass {
        count: 4,
        free: [("nvidia.com/gpu".to_owned(), "2".parse()?)].into(),
        ..NodeClass::default()
    }];
    let written = json!({"status": report.status});
    api.patch_status("typed-report", &PatchParams::default(), &Patch::Merge(&written)).await?;
    let stored = api.get("typed-report").await?;
    assert_eq!(stored.status, report.status);
    assert_eq!(stored.spec, report.spec);
    Ok(())
}

#[tokio::test]
async fn a_policy_has_defaults_and_contradictions_are_refused() -> Result<()> {
    let api: Api<DispatchPolicy> = cluster().await?.cluster_api();
    let accepted = policy("typed-defaults", &json!({"disconnection": {"lostAfter": "5m"}}))?;
    let stored = api.create(&PostParams::default(), &accepted).await?;
    assert_eq!(stored.spec.strategy, "Spread");
    let disconnection = stored.spec.disconnection.context("what was written")?;
    assert_eq!(disconnection.execution, "KeepRunning");
    let leases = json!({"execution": "ExactlyOnce", "fencing": "Timed", "leaseDuration": "60s"});
    let leased = policy("typed-leases", &json!({"disconnection": leases}))?;
    let stored = api.create(&PostParams::default(), &leased).await?;
    assert_eq!(stored.spec.disconnection.context("what was written")?.fencing, "Timed");
    let rebalance = json!({"enabled": true, "minGain": 20, "cooldown": "1m30s", "maxMoves": 2});
    let moving = policy("typed-moving", &json!({"rebalance": rebalance}))?;
    let stored = api.create(&PostParams::default(), &moving).await?;
    let stored = stored.spec.rebalance.context("what was written")?;
    assert!(stored.enabled && stored.max_moves == Some(2), "{stored:?}");
    for (name, spec, part) in [
        ("typed-strategy", json!({"strategy": "Random"}), "spec.strategy: Unsupported value"),
        (
            "typed-fencing",
            json!({"disconnection": {"fencing": "Timed"}}),
            "fencing is for execution ExactlyOnce",
        ),
        (
            "typed-lease-duration",
            json!({"disconnection": {"leaseDuration": "60s"}}),
            "leaseDuration is for execution ExactlyOnce",
        ),
        (
            "typed-gain",
            json!({"rebalance": {"enabled": true, "minGain": 101}}),
            "spec.rebalance.minGain: Invalid value: 101",
        ),
        (
            "typed-cooldown",
            json!({"rebalance": {"enabled": true, "cooldown": "-5s"}}),
            "spec.rebalance.cooldown",
        ),
        (
            "typed-cooldown-unit",
            json!({"rebalance": {"enabled": true, "cooldown": "2 days"}}),
            "spec.rebalance.cooldown",
        ),
        (
            "typed-moves",
            json!({"rebalance": {"enabled": true, "maxMoves": 0}}),
            "spec.rebalance.maxMoves: Invalid value: 0",
        ),
        (
            "typed-weight",
            json!({"clusters": [{"name": "a", "weight": -1}]}),
            "spec.clusters[0].weight",
        ),
    ] {
        let refused = api.create(&PostParams::default(), &policy(name, &spec)?).await;
        let message = refused.err().context(name)?.to_string();
        assert!(message.contains(part), "{name}: {message}");
    }
    Ok(())
}

#[tokio::test]
async fn an_object_of_another_version_does_not_decode() -> Result<()> {
    let cluster = cluster().await?;
    let topologies: Api<Topology> = cluster.cluster_api();
    let levels = json!({"levels": [{"nodeLabel": "rack"}]});
    let topology = serde_json::from_value(json!({"metadata": {"name": "typed"}, "spec": levels}))?;
    topologies.create(&PostParams::default(), &topology).await?;
    let old: Api<crds::v1beta1::Topology> = cluster.cluster_api();
    assert_eq!(old.get("typed").await?.name_any(), "typed");
    let text = json!({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Topology", "metadata": {"name": "typed"}});
    let error = serde_json::from_value::<Topology>(text).err().context("another version")?;
    assert!(error.to_string().contains("expected kueue.x-k8s.io/v1beta2"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_list_may_contain_objects_without_a_spec() -> Result<()> {
    let cluster = cluster().await?;
    let bare = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "typed-bare"},
    });
    cluster.apply(&bare.to_string(), "default").await?;
    let api: Api<ResourceFlavor> = cluster.cluster_api();
    let listed = api.list(&ListParams::default()).await?;
    assert!(listed.iter().any(|flavor| flavor.name_any() == "typed-bare"));
    Ok(())
}
