//! Validation of a Workload's requests, with the messages of the API machinery.
//!
//! Requests above limits are reported first; LimitRange bounds are checked only without such errors. Source:
//! docs/reference/kueue.md §2.7 (last paragraph), §4.2.

use crds::pod::{Container, PodSpec};

use super::pod_requests::{PodDefaults, container_resources, pod_level, pod_requests};
use super::{ExactAmounts, borrowed};
use crate::amount::from_nanos;

const AGAINST_LIMITS: &str = "resources validation failed";
const AGAINST_RANGE: &str = "resources didn't satisfy LimitRange constraints";
const ABOVE_LIMITS: &str = "requests must not exceed its limits";
const ABOVE_MAX: &str = "requests must not be above the limitRange max";
const BELOW_MIN: &str = "requests must not be below the limitRange min";

/// A pod template with its defaults.
pub(crate) type ValidatedPodSet<'a> = (&'a PodSpec, PodDefaults<'a>);

/// The message of the first kind of error.
pub(crate) fn problems(pod_sets: &[ValidatedPodSet<'_>]) -> Option<String> {
    in_words(AGAINST_LIMITS, &collect(pod_sets, above_limits))
        .or_else(|| in_words(AGAINST_RANGE, &collect(pod_sets, out_of_range)))
}

fn collect<'a>(
    pod_sets: &[ValidatedPodSet<'a>],
    judge: fn(&str, ValidatedPodSet<'a>) -> Vec<String>,
) -> Vec<String> {
    let all = pod_sets.iter().enumerate();
    all.flat_map(|(at, &one)| judge(&format!("spec.podSets[{at}].template.spec"), one)).collect()
}

fn in_words(kind: &str, all: &[String]) -> Option<String> {
    match all {
        [] => None,
        [one] => Some(format!("{kind}: {one}")),
        all => Some(format!("{kind}: [{}]", all.join(", "))),
    }
}

fn above_limits(path: &str, (pod, defaults): ValidatedPodSet<'_>) -> Vec<String> {
    let mut all = Vec::new();
    for (place, container) in containers(path, pod) {
        let (requests, limits) = container_resources(container, defaults);
        all.extend(invalid(&place, &greater(&requests, &limits), ABOVE_LIMITS));
    }
    // Without the sum over the containers: only what the pod level itself requests is compared.
    if let Some((requests, limits)) = pod_level(pod, &ExactAmounts::new(), defaults) {
        let place = format!("{path}.resources");
        all.extend(invalid(&place, &greater(&requests, &limits), ABOVE_LIMITS));
    }
    all
}

fn out_of_range(path: &str, (pod, defaults): ValidatedPodSet<'_>) -> Vec<String> {
    let (Some(container_range), Some(pod_range)) = (defaults.of_containers(), defaults.of_pods())
    else {
        return Vec::new();
    };
    let mut all = Vec::new();
    let mut judge = |place: &str,
                     low: &ExactAmounts<'_>,
                     high: &ExactAmounts<'_>,
                     max: &ExactAmounts<'_>,
                     min: &ExactAmounts<'_>| {
        all.extend(invalid(place, &greater(high, max), ABOVE_MAX));
        all.extend(invalid(place, &greater(min, low), BELOW_MIN));
    };
    let (max, min) =
        (borrowed(&container_range.max).collect(), borrowed(&container_range.min).collect());
    for (place, container) in containers(path, pod) {
        let (requests, limits) = container_resources(container, defaults);
        // Bounds hold for requests and limits: the smaller is compared with Min, the larger with
        // Max.
        let low = merged(&requests, &limits, i128::min);
        judge(&place, &low, &merged(&requests, &limits, i128::max), &max, &min);
    }
    let (max, min) = (borrowed(&pod_range.max).collect(), borrowed(&pod_range.min).collect());
    let total = pod_requests(pod, defaults);
    judge(path, &total, &total, &max, &min);
    all
}

/// Init containers, then containers, with field paths.
fn containers<'a>(path: &str, pod: &'a PodSpec) -> Vec<(String, &'a Container)> {
    let kinds = [("initContainers", &pod.init_containers), ("containers", &pod.containers)];
    let all = kinds.into_iter().flat_map(|(kind, list)| {
        list.iter().enumerate().map(move |(at, one)| (format!("{path}.{kind}[{at}]"), one))
    });
    all.collect()
}

fn merged<'a>(
    one: &ExactAmounts<'a>,
    other: &ExactAmounts<'a>,
    choose: fn(i128, i128) -> i128,
) -> ExactAmounts<'a> {
    let mut all = one.clone();
    for (&name, &amount) in other {
        let entry = all.entry(name).or_insert(amount);
        *entry = choose(*entry, amount);
    }
    all
}

/// Resources for which `left` exceeds `right`, where `right` has a value. Both are rounded first, as Kueue does: a
/// limit of `1m` gpu allows one.
fn greater<'a>(left: &ExactAmounts<'a>, right: &ExactAmounts<'_>) -> Vec<&'a str> {
    let more = |name: &str, amount: i128| {
        let bound = right.get(name);
        bound.is_some_and(|&bound| from_nanos(name, amount) > from_nanos(name, bound))
    };
    left.iter().filter(|&(&name, &amount)| more(name, amount)).map(|(&name, _)| name).collect()
}

fn invalid(place: &str, names: &[&str], what: &str) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    Some(format!("{place}: Invalid value: [{}]: {what}", names.join(",")))
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "values are made for the call")]
mod tests {
    use serde_json::{Value, json};

    use super::super::limit_ranges::{LimitBounds, NamespaceLimits};
    use super::*;

    fn judge(value: Value, limits: &NamespaceLimits) -> Option<String> {
        let pod: PodSpec = serde_json::from_value(value).expect("a pod spec");
        let defaults = PodDefaults { limits: Some(limits), overhead: None };
        problems(&[(&pod, defaults)])
    }

    fn pod(requests: Value, limits: Value) -> Value {
        json!({"containers": [{"name": "c", "resources": {"requests": requests, "limits": limits}}]})
    }

    #[test]
    fn requests_do_not_exceed_limits() {
        let none = NamespaceLimits::default();
        assert_eq!(judge(pod(json!({"cpu": "1"}), json!({"cpu": "1"})), &none), None);
        assert_eq!(judge(pod(json!({"x/gpu": "1"}), json!({"x/gpu": "1m"})), &none), None);
        assert_eq!(
            judge(
                pod(
                    json!({"cpu": "2", "memory": "2", "x/y": "1"}),
                    json!({"cpu": "1", "memory": "1"})
                ),
                &none
            )
            .as_deref(),
            Some(
                "resources validation failed: spec.podSets[0].template.spec.containers[0]: Invalid value: \
                 [\"cpu\",\"memory\"]: requests must not exceed its limits"
            )
        );
        let whole = json!({"containers": [], "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}});
        assert_eq!(
            judge(whole, &none).as_deref(),
            Some(
                "resources validation failed: spec.podSets[0].template.spec.resources: Invalid value: [\"cpu\"]: requests must not exceed its \
                 limits"
            )
        );
    }

    #[test]
    fn a_limit_below_the_default_request_is_the_request() {
        let range = LimitBounds {
            default_request: [("cpu".to_owned(), 2_000_000_000)].into(),
            min: [("cpu".to_owned(), 2_000_000_000)].into(),
            ..LimitBounds::default()
        };
        let limits = NamespaceLimits { container: range, ..NamespaceLimits::default() };
        let place = "spec.podSets[0].template.spec.containers[0]";
        let wanted = format!("{AGAINST_RANGE}: {place}: Invalid value: [\"cpu\"]: {BELOW_MIN}");
        assert_eq!(judge(pod(json!({}), json!({"cpu": "1"})), &limits), Some(wanted));
        assert_eq!(judge(pod(json!({}), json!({"cpu": "3"})), &limits), None);
    }

    #[test]
    fn requests_stay_within_limit_ranges() {
        let bounds = |max: i128, min: i128| LimitBounds {
            max: [("cpu".to_owned(), max * 1_000_000_000)].into(),
            min: [("cpu".to_owned(), min * 1_000_000_000)].into(),
            ..LimitBounds::default()
        };
        let limits = NamespaceLimits { container: bounds(3, 2), pod: bounds(100, 0) };
        assert_eq!(judge(pod(json!({"cpu": "2"}), json!({"cpu": "3"})), &limits), None);
        assert_eq!(
            judge(pod(json!({"cpu": "1"}), json!({"cpu": "4"})), &limits).as_deref(),
            Some(
                "resources didn't satisfy LimitRange constraints: [spec.podSets[0].template.spec.containers[0]: Invalid value: [\"cpu\"]: requests must not be above \
                 the limitRange max, spec.podSets[0].template.spec.containers[0]: Invalid value: [\"cpu\"]: requests \
                 must not be below the limitRange min]"
            )
        );
        let limits = NamespaceLimits { container: LimitBounds::default(), pod: bounds(1, 0) };
        assert_eq!(
            judge(pod(json!({"cpu": "2"}), json!({})), &limits).as_deref(),
            Some(
                "resources didn't satisfy LimitRange constraints: spec.podSets[0].template.spec: Invalid value: [\"cpu\"]: requests must not be above the limitRange \
                 max"
            )
        );
    }
}
