//! Secured RayClusters over their whole life: they come to rest, no object is left, and no spec makes the decision panic.

use proptest::prelude::*;
use ray::{
    security::{ClusterPlatform, SecurityConfig, SecurityFacts, SecuritySettings},
    settings::OperatorSettings,
};
use serde_json::{Value, json};

use super::{tests::sample, world::RayWorld};
use crate::odd_values::{odd_value, places};

fn secured(platform: ClusterPlatform) -> OperatorSettings {
    let config = SecurityConfig {
        oauth: platform == ClusterPlatform::OpenShift,
        mtls: true,
        ingress_domain: "example.com".to_owned(),
        cert_generator_image: "certs".to_owned(),
        oauth_proxy_image: "proxy".to_owned(),
    };
    let facts = SecurityFacts { platform, ..SecurityFacts::default() };
    let security = Some(SecuritySettings { config, facts });
    OperatorSettings { security, ..OperatorSettings::default() }
}

/// A cluster that makes no Ingress of its own.
fn cluster() -> Value {
    let mut cluster = sample();
    cluster["spec"]["headGroupSpec"]["enableIngress"] = json!(false);
    cluster["spec"]["headGroupSpec"]["headService"] = Value::Null;
    cluster
}

fn count(world: &RayWorld, kind: &str) -> usize {
    world.ids(&format!("{kind}/")).len()
}

#[test]
fn a_secured_cluster_comes_to_rest_and_leaves_nothing() {
    for (platform, kinds) in [
        (ClusterPlatform::Kubernetes, &[("Ingress", 2), ("NetworkPolicy", 2)][..]),
        (ClusterPlatform::OpenShift, &[("Route", 2), ("ClusterRoleBinding", 1)]),
    ] {
        let mut world = RayWorld::new(secured(platform));
        let _ = world.create(cluster());
        assert!(world.settle(), "{platform:?}: it moves for ever");
        for (kind, n_objects) in kinds {
            assert_eq!(count(&world, kind), *n_objects, "{platform:?} {kind}");
        }
        let events: Vec<&String> = world.events.iter().map(|(_, event)| &event.message).collect();
        let pods = world.ids("Pod/");
        assert_eq!(pods.len(), 5, "{platform:?}: a head and four workers: {pods:?} {events:?}");
        for pod in &pods {
            let first = &world.objects[pod]["spec"]["initContainers"][0]["name"];
            assert_eq!(first, "create-cert", "{pod}");
        }
        world.begin();
        world.delete("RayCluster/c1");
        assert!(world.settle(), "{platform:?}: it does not go");
        assert!(world.objects.is_empty(), "{:?}", world.objects.keys());
    }
}

#[test]
fn suspension_keeps_what_a_cluster_has() {
    let mut world = RayWorld::new(secured(ClusterPlatform::OpenShift));
    let _ = world.create(cluster());
    world.settle();
    let spec = |world: &RayWorld| world.objects["RayCluster/c1"]["spec"]["headGroupSpec"].clone();
    let before = spec(&world);
    for suspend in [true, false] {
        world.begin();
        world.objects.get_mut("RayCluster/c1").expect("a cluster")["spec"]["suspend"] =
            json!(suspend);
        assert!(world.settle());
        assert_eq!(count(&world, "Pod") == 0, suspend);
        assert_eq!((spec(&world), count(&world, "Route")), (before.clone(), 2));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn no_spec_of_a_secured_cluster_makes_the_operator_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), odd_value()), 1..4),
        on_openshift in any::<bool>(),
    ) {
        let mut cluster = cluster();
        for (index, value) in changes {
            let mut found = Vec::new();
            places(&cluster["spec"], "/spec", &mut found);
            let place = cluster.pointer_mut(index.get(&found[..]).as_str()).expect("a place");
            *place = value;
        }
        let platform =
            if on_openshift { ClusterPlatform::OpenShift } else { ClusterPlatform::Kubernetes };
        let mut world = RayWorld::new(secured(platform));
        let _ = world.create(cluster);
        world.rounds(4);
        world.delete("RayCluster/c1");
        world.rounds(4);
    }
}
