//! Requests of one pod: the Kubernetes formula over containers, and the validation of requests against limits.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use engine::Amount;

use super::case::{Container, Map, PodSpec, WorkloadSpec};
use super::quantity::{amount, from_nanos, nanos};

/// In billionths: sums are rounded, not what is summed.
pub(crate) type Amounts = BTreeMap<String, i128>;

/// Effective requests of one pod.
pub(crate) fn requests(spec: &PodSpec) -> Result<BTreeMap<String, Amount>> {
    let mut total = Amounts::new();
    for container in &spec.containers {
        add(&mut total, &of_container(container)?);
    }
    let (mut sidecars, mut peak) = (Amounts::new(), Amounts::new());
    for container in &spec.init_containers {
        let own = of_container(container)?;
        let mut now = sidecars.clone();
        add(&mut now, &own);
        raise(&mut peak, &now);
        if container.restart_policy == "Always" {
            sidecars = now;
        }
    }
    add(&mut total, &sidecars);
    raise(&mut total, &peak);
    add(&mut total, &parse(&spec.overhead)?);
    Ok(total.into_iter().map(|(name, sum)| (name.clone(), from_nanos(&name, sum))).collect())
}

/// Requests of one container; its limits by default.
pub(crate) fn of_container(container: &Container) -> Result<Amounts> {
    let mut own = parse(&container.resources.limits)?;
    own.extend(parse(&container.resources.requests)?);
    Ok(own)
}

fn parse(map: &Map) -> Result<Amounts> {
    map.iter().map(|(name, text)| Ok((name.clone(), nanos(text)?))).collect()
}

fn add(total: &mut Amounts, more: &Amounts) {
    for (name, &amount) in more {
        *total.entry(name.clone()).or_default() += amount;
    }
}

fn raise(total: &mut Amounts, other: &Amounts) {
    for (name, &amount) in other {
        let entry = total.entry(name.clone()).or_default();
        *entry = (*entry).max(amount);
    }
}

/// The validator's message about requests above limits.
pub(crate) fn problems(workload: &WorkloadSpec) -> Result<Option<String>> {
    let mut all = Vec::new();
    for (index, pod_set) in workload.pod_sets.iter().enumerate() {
        let spec = &pod_set.template.spec;
        let kinds = [("initContainers", &spec.init_containers), ("containers", &spec.containers)];
        for (kind, containers) in kinds {
            for (number, container) in containers.iter().enumerate() {
                let names = above_limits(container)?;
                if !names.is_empty() {
                    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
                    all.push(format!(
                        "spec.podSets[{index}].template.spec.{kind}[{number}]: Invalid value: [{}]: requests \
                         must not exceed its limits",
                        names.join(",")
                    ));
                }
            }
        }
    }
    Ok(match all.len() {
        0 => None,
        1 => all.pop(),
        _ => Some(format!("[{}]", all.join(", "))),
    })
}

fn above_limits(container: &Container) -> Result<BTreeSet<String>> {
    let mut above = BTreeSet::new();
    for (name, text) in &container.resources.requests {
        let limit = container.resources.limits.get(name).map(|limit| amount(name, limit));
        if limit.transpose()?.is_some_and(|limit| amount(name, text).is_ok_and(|one| one > limit)) {
            above.insert(name.clone());
        }
    }
    Ok(above)
}
