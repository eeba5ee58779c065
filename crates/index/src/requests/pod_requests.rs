//! Requests of one pod: the formula of Kubernetes.
//!
//! Containers run together: their requests add up. Init containers run one after the other: the largest request
//! counts. A restartable init container is a sidecar: its request is added to everything after it. Pod-level
//! resources replace the sum. The overhead of the RuntimeClass is added. Source: docs/reference/kueue.md §2.7 steps 1
//! to 4.

use crds::pod::{Container, PodSpec};

use super::limit_ranges::{LimitBounds, NamespaceLimits};
use super::{ExactAmounts, OwnedExactAmounts, borrowed, complete, read};

/// `restartPolicy` of a sidecar.
const ALWAYS: &str = "Always";

/// Defaults from outside the template.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PodDefaults<'a> {
    /// Combined LimitRanges of the namespace.
    pub(crate) limits: Option<&'a NamespaceLimits>,
    /// Overhead of the RuntimeClass.
    pub(crate) overhead: Option<&'a OwnedExactAmounts>,
}

impl<'a> PodDefaults<'a> {
    pub(crate) fn of_containers(self) -> Option<&'a LimitBounds> {
        self.limits.map(|limits| &limits.container)
    }

    pub(crate) fn of_pods(self) -> Option<&'a LimitBounds> {
        self.limits.map(|limits| &limits.pod)
    }
}

/// Computes the requests of one pod.
pub(crate) fn pod_requests<'a>(pod: &'a PodSpec, defaults: PodDefaults<'a>) -> ExactAmounts<'a> {
    let mut total = aggregate(pod, defaults);
    if let Some((requests, _)) = pod_level(pod, &total, defaults) {
        total.extend(requests);
    }
    let mut overhead = read(&pod.overhead);
    // The RuntimeClass counts only if the pod has no overhead of its own (docs/reference/kueue.md
    // §2.7 step 1).
    if overhead.is_empty()
        && let Some(class) = defaults.overhead
    {
        overhead.extend(borrowed(class));
    }
    add(&mut total, &overhead);
    total
}

fn aggregate<'a>(pod: &'a PodSpec, defaults: PodDefaults<'a>) -> ExactAmounts<'a> {
    let mut total = ExactAmounts::new();
    for container in &pod.containers {
        add(&mut total, &container_resources(container, defaults).0);
    }
    let (mut sidecars, mut peak) = (ExactAmounts::new(), ExactAmounts::new());
    for container in &pod.init_containers {
        // An init container runs beside the sidecars that were started before it.
        let mut now = sidecars.clone();
        add(&mut now, &container_resources(container, defaults).0);
        raise(&mut peak, &now);
        if container.restart_policy.as_deref() == Some(ALWAYS) {
            sidecars = now;
        }
    }
    add(&mut total, &sidecars);
    raise(&mut total, &peak);
    total
}

/// Requests and limits of a container with defaults.
pub(crate) fn container_resources<'a>(
    container: &'a Container,
    defaults: PodDefaults<'a>,
) -> (ExactAmounts<'a>, ExactAmounts<'a>) {
    let own = container.resources.as_ref();
    let mut limits = own.map(|own| read(&own.limits)).unwrap_or_default();
    let mut requests = own.map(|own| read(&own.requests)).unwrap_or_default();
    complete_resources(&mut requests, &mut limits, defaults.of_containers());
    (requests, limits)
}

/// Completes missing requests and limits.
///
/// Own limits come before the defaults of LimitRanges: the API server completes a request from the limit when it reads
/// the pod, before LimitRanger sees it. Otherwise a container with only a limit would be charged `defaultRequest`, but
/// its pod asks for the limit (docs/reference/kueue.md §2.7 step 2).
fn complete_resources<'a>(
    requests: &mut ExactAmounts<'a>,
    limits: &mut ExactAmounts<'a>,
    range: Option<&'a LimitBounds>,
) {
    complete(requests, limits.iter().map(|(&name, &amount)| (name, amount)));
    if let Some(range) = range {
        complete(limits, borrowed(&range.default));
        complete(requests, borrowed(&range.default_request));
        // The default limit is the default request of a LimitRange without `defaultRequest`.
        complete(requests, limits.iter().map(|(&name, &amount)| (name, amount)));
    }
}

/// Pod-level requests and limits, if present; only for resources that the pod level supports.
///
/// A missing request defaults to the limit; then to the sum over the containers, except for huge pages.
pub(crate) fn pod_level<'a>(
    pod: &'a PodSpec,
    aggregate: &ExactAmounts<'a>,
    defaults: PodDefaults<'a>,
) -> Option<(ExactAmounts<'a>, ExactAmounts<'a>)> {
    let own = pod.resources.as_ref()?;
    let (mut requests, mut limits) = (read(&own.requests), read(&own.limits));
    // Pod-level defaults apply only to pods that use pod-level resources (docs/reference/kueue.md
    // §2.7 step 3).
    if requests.is_empty() && limits.is_empty() {
        return None;
    }
    // The limit comes first: a pod-level limit alone is a pod-level request (docs/reference/kueue.md §2.7 step 2).
    complete_resources(&mut requests, &mut limits, defaults.of_pods());
    let summed = aggregate.iter().filter(|(name, _)| !is_huge_pages(name));
    complete(&mut requests, summed.map(|(&name, &amount)| (name, amount)));
    requests.retain(|name, _| is_pod_level(name));
    limits.retain(|name, _| is_pod_level(name));
    Some((requests, limits))
}

fn is_huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_pages(name)
}

fn add<'a>(total: &mut ExactAmounts<'a>, more: &ExactAmounts<'a>) {
    for (&name, &amount) in more {
        let entry = total.entry(name).or_default();
        *entry = entry.saturating_add(amount);
    }
}

fn raise<'a>(total: &mut ExactAmounts<'a>, other: &ExactAmounts<'a>) {
    for (&name, &amount) in other {
        let entry = total.entry(name).or_default();
        *entry = (*entry).max(amount);
    }
}

#[cfg(test)]
mod tests;
