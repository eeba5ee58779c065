use crds::quantity::Quantity;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn pod(value: Value) -> PodSpec {
    serde_json::from_value(value).expect("a pod spec")
}

fn asks(cpu: &str) -> Value {
    json!({"name": "c", "resources": {"requests": {"cpu": cpu}}})
}

fn sidecar(cpu: &str) -> Value {
    json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}})
}

/// Requested milli cpu of one pod.
fn cpu(value: Value, defaults: PodDefaults<'_>) -> Option<i128> {
    pod_requests(&pod(value), defaults).get("cpu").map(|nanos| nanos / 1_000_000)
}

#[test]
fn pod_requests_follow_the_formula_of_kubernetes() {
    let cases = [
        ("containers add up", json!({"containers": [asks("1"), asks("500m")]}), 1500),
        (
            "the largest init container counts",
            json!({"containers": [asks("1")], "initContainers": [asks("3"), asks("2")]}),
            3000,
        ),
        (
            "a sidecar stays beside the containers",
            json!({"containers": [asks("1")], "initContainers": [sidecar("2")]}),
            3000,
        ),
        (
            "a sidecar runs beside later init containers only",
            json!({"containers": [asks("1")], "initContainers": [asks("4"), sidecar("2"), asks("3")]}),
            5000,
        ),
        (
            "overhead comes on top",
            json!({"containers": [asks("1")], "overhead": {"cpu": "250m"}}),
            1250,
        ),
        (
            "a limit is the missing request",
            json!({"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}),
            2000,
        ),
        (
            "the pod as a whole replaces the sum",
            json!({"containers": [asks("1")], "resources": {"requests": {"cpu": "3"}}}),
            3000,
        ),
        (
            "the pod's limit is the missing request before the containers are",
            json!({"containers": [asks("1")], "resources": {"limits": {"cpu": "3"}}}),
            3000,
        ),
        (
            "the pod's limit is the default request",
            json!({"containers": [{"name": "c"}], "resources": {"limits": {"cpu": "3"}}}),
            3000,
        ),
        (
            "small amounts are added before they are rounded",
            json!({"containers": [asks("500u"), asks("500u")]}),
            1,
        ),
    ];
    for (rule, template, wanted) in cases {
        assert_eq!(cpu(template, PodDefaults::default()), Some(wanted), "{rule}");
    }
}

#[test]
fn pod_level_huge_pages_default_to_the_limit() {
    let pod = pod(json!({
        "containers": [{"name": "c", "resources": {"limits": {"hugepages-2Mi": "4Mi"}}}],
        "resources": {"limits": {"hugepages-2Mi": "8Mi", "example.com/gpu": "1"}},
    }));
    let requests = pod_requests(&pod, PodDefaults::default());
    assert_eq!(requests.get("hugepages-2Mi").map(|nanos| nanos >> 20), Some(8_000_000_000));
    assert_eq!(requests.get("example.com/gpu"), None, "not a resource of whole pods");
}

#[test]
fn limit_ranges_fill_missing_requests() {
    let range = |default: &[(&str, i128)], request: &[(&str, i128)]| LimitBounds {
        default: default.iter().map(|&(name, milli)| (name.into(), milli * 1_000_000)).collect(),
        default_request: request.iter().map(|&(n, milli)| (n.into(), milli * 1_000_000)).collect(),
        ..LimitBounds::default()
    };
    let without_resources =
        || json!({"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]});
    for (default, request, wanted) in
        [(&[("cpu", 2000)][..], &[][..], 2000), (&[("cpu", 2000)][..], &[("cpu", 500)][..], 500)]
    {
        let limits =
            NamespaceLimits { container: range(default, request), ..NamespaceLimits::default() };
        let defaults = PodDefaults { limits: Some(&limits), overhead: None };
        assert_eq!(cpu(without_resources(), defaults), Some(wanted));
    }
    let limits = NamespaceLimits { pod: range(&[], &[("cpu", 700)]), ..NamespaceLimits::default() };
    let defaults = PodDefaults { limits: Some(&limits), overhead: None };
    assert_eq!(
        cpu(without_resources(), defaults),
        None,
        "only where the pod as a whole asks for something"
    );
    let whole = json!({"containers": [{"name": "c"}], "resources": {"limits": {"memory": "1"}}});
    assert_eq!(cpu(whole, defaults), Some(700));
}

#[test]
fn own_limits_come_before_defaults_of_limit_ranges() {
    let range = || LimitBounds {
        default: [("cpu".to_owned(), 4_000_000_000)].into(),
        default_request: [("cpu".to_owned(), 2_000_000_000)].into(),
        ..LimitBounds::default()
    };
    let limits = NamespaceLimits { container: range(), pod: range() };
    let defaults = PodDefaults { limits: Some(&limits), overhead: None };
    let limited = json!({"name": "c", "resources": {"limits": {"cpu": "3"}}});
    assert_eq!(cpu(json!({"containers": [limited]}), defaults), Some(3000));
    let init = json!({"containers": [asks("1")], "initContainers": [limited]});
    assert_eq!(cpu(init, defaults), Some(3000));
    let whole = json!({"containers": [{"name": "c"}], "resources": {"limits": {"cpu": "3"}}});
    assert_eq!(cpu(whole, defaults), Some(3000));
}

#[test]
fn the_overhead_of_the_runtime_class_is_a_default() {
    let class = OwnedExactAmounts::from([("cpu".to_owned(), 100_000_000)]);
    let defaults = PodDefaults { limits: None, overhead: Some(&class) };
    assert_eq!(cpu(json!({"containers": [asks("1")]}), defaults), Some(1100));
    let own = json!({"containers": [asks("1")], "overhead": {"cpu": "200m"}});
    assert_eq!(cpu(own, defaults), Some(1200));
}

fn container() -> impl Strategy<Value = Container> {
    (0..4_000_i64, any::<bool>(), any::<bool>()).prop_map(|(milli, limit, always)| {
        let amounts = [("cpu".to_owned(), Quantity::from_milli(milli))].into();
        let mut resources = crds::pod::ResourceRequirements::default();
        if limit {
            resources.limits = amounts;
        } else {
            resources.requests = amounts;
        }
        let restart_policy = always.then(|| ALWAYS.to_owned());
        let resources = Some(resources.into());
        Container { resources, restart_policy, ..Container::default() }
    })
}

proptest! {
    #[test]
    fn another_container_never_lowers_the_requests(
        containers in prop::collection::vec(container(), 0..4),
        init_containers in prop::collection::vec(container(), 0..4),
        more in container(),
        at in any::<prop::sample::Index>(),
        init in any::<bool>(),
    ) {
        let small = PodSpec { containers, init_containers, ..PodSpec::default() };
        let mut large = small.clone();
        let list = if init { &mut large.init_containers } else { &mut large.containers };
        list.insert(at.index(list.len() + 1), more);
        let defaults = PodDefaults::default();
        let cpu = |pod: &PodSpec| pod_requests(pod, defaults).get("cpu").copied().unwrap_or_default();
        prop_assert!(cpu(&small) >= 0);
        prop_assert!(cpu(&large) >= cpu(&small));
    }
}
