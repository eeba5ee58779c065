//! A Job that only the larger worker has room for runs there.

use std::io::Write;

use anyhow::{Context, Result, ensure};
use crds::quantity::Quantity;
use harness::Cluster;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::json;

use super::CasePlace;
use super::place::{self, CaseNodes};
use crate::objects;

/// What the larger worker must have more for each pod, in thousandths of a cpu: other pods come and go meanwhile.
const CLEARLY: i64 = 200;

/// So many pods of so many thousandths of a cpu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fitting {
    /// The number of the worker that has room, from 0.
    worker: usize,
    pods: usize,
    milli: i64,
}

pub(super) async fn only_the_larger_one_has(place: &CasePlace<'_>) -> Result<()> {
    place.add_nodes([1, 2]).await?;
    let mut free = Vec::new();
    for worker in place.workers {
        free.push(free_milli(place, worker).await?);
    }
    let Some(fitting) = only_one_fits(&free) else {
        let why = format!("no worker has clearly more room than the other: {free:?} are free");
        // Clusters of others may be equal.
        ensure!(place.nodes == CaseNodes::OfClusters, why);
        // What a test that succeeds prints by other means is not shown.
        return Ok(writeln!(std::io::stderr(), "{}: SKIPPED, {why}", place.namespace)?);
    };
    let larger = place.workers.get(fitting.worker).context("the larger worker")?;
    let cpu = format!("{}m", fitting.milli);
    let total = usize::try_from(fitting.milli)? * fitting.pods;
    place.queue_of(&format!("{total}m")).await?;
    let mut job = place::job("wide", fitting.pods, 1);
    let container = &mut job["spec"]["template"]["spec"]["containers"][0];
    container["resources"]["requests"]["cpu"] = json!(cpu);
    place.submit(&job).await?;
    place.until_ended("wide", "Complete").await?;
    let judgement = place.ensure_once("wide", fitting.pods).await?;
    let ran_on = judgement.runs.iter().map(|run| run.cluster.as_str()).collect::<Vec<_>>();
    ensure!(ran_on == [larger.name()], "{fitting:?} of {free:?}: {judgement}");
    place.until_nothing_is_left().await
}

/// What is free on each node of a worker that takes the pods of the case.
async fn free_milli(place: &CasePlace<'_>, worker: &Cluster) -> Result<Vec<i64>> {
    let nodes: Api<Node> = worker.cluster_api();
    let pods: Api<Pod> = Api::all(worker.client());
    let own = match place.nodes {
        CaseNodes::OfClusters | CaseNodes::Unequal => String::new(),
        CaseNodes::Played => format!("{}={}", objects::OWN, place.namespace),
    };
    let nodes = nodes.list(&ListParams::default().labels(&own)).await?;
    let pods = pods.list(&ListParams::default()).await?;
    let takes = |node: &&Node| {
        let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        place.nodes == CaseNodes::Played
            || taints.into_iter().all(|one| one.effect == "PreferNoSchedule")
    };
    let free = nodes.iter().filter(takes).map(|node| {
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
        let cpu = allocatable.and_then(|all| all.get("cpu")).map_or("0", |cpu| cpu.0.as_str());
        let name = node.name_any();
        let on_it = |pod: &&Pod| {
            pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(&name)
        };
        let requested: Result<i64> = pods.iter().filter(on_it).map(requested_milli).sum();
        Ok(cpu.parse::<Quantity>()?.milli() - requested?)
    });
    free.collect()
}

/// What a pod requests, unless it has ended.
fn requested_milli(pod: &Pod) -> Result<i64> {
    if matches!(objects::phase(pod), "Succeeded" | "Failed") {
        return Ok(0);
    }
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let requests =
        containers.filter_map(|one| one.resources.as_ref()?.requests.as_ref()?.get("cpu"));
    requests.map(|cpu| Ok(cpu.0.parse::<Quantity>()?.milli())).sum()
}

/// The pods that clearly fit on one worker and clearly not on the other: one of them, or as many as it needs a second node for.
fn only_one_fits(free: &[Vec<i64>]) -> Option<Fitting> {
    let [first, second] = free else { return None };
    let fitting = |pods: usize| {
        let most = [largest_request(first, pods), largest_request(second, pods)];
        let worker = usize::from(most[1] > most[0]);
        let (more, less) = (most[worker], most[1 - worker]);
        (more - less >= CLEARLY).then_some(Fitting { worker, pods, milli: (more + less) / 2 })
    };
    [1, 2].into_iter().find_map(fitting)
}

/// The most that each of so many pods may request to fit on these nodes.
fn largest_request(free: &[i64], pods: usize) -> i64 {
    let fit = |request: i64| {
        let places = free.iter().map(|free| usize::try_from(free / request).unwrap_or(0));
        places.sum::<usize>() >= pods
    };
    let shares = (1..=i64::try_from(pods).unwrap_or(1))
        .flat_map(|share| free.iter().map(move |free| free / share));
    shares.filter(|request| *request > 0 && fit(*request)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pods_fit_clearly_on_one_worker_only() {
        for (free, expected) in [
            // A node of the same size more, on either worker.
            ([vec![1000], vec![1000, 1000]], Some((1, 2, 750))),
            ([vec![1600, 1600], vec![1600]], Some((0, 2, 1200))),
            // A node that is larger, or has more to spare.
            ([vec![650], vec![1600]], Some((1, 1, 1125))),
            ([vec![650, 650], vec![100, 1600]], Some((1, 1, 1125))),
            // Equal ones, and nearly equal ones.
            ([vec![1000], vec![1000]], None),
            ([vec![1000, 1000], vec![1100, 1000]], None),
            ([vec![], vec![]], None),
            // A full node counts nothing.
            ([vec![-20], vec![500]], Some((1, 1, 250))),
        ] {
            let found = only_one_fits(&free).map(|one| (one.worker, one.pods, one.milli));
            assert_eq!(found, expected, "{free:?}");
        }
    }

    #[test]
    fn the_largest_request_of_two_pods_takes_one_node_or_two() {
        assert_eq!(largest_request(&[1000], 2), 500);
        assert_eq!(largest_request(&[1000, 700], 2), 700);
        assert_eq!(largest_request(&[1000, 300], 2), 500);
        assert_eq!(largest_request(&[0, -5], 1), 0);
    }
}
