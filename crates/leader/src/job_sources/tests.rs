//! What is listed for a kind, by an API server that records it. The clock is paused: a second passes when nothing is left to do.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use cluster::control::ManagerInput;
use http::{Request, Response};
use kube::{Client, client::Body};
use runtime::{Stop, watch::WatchMetrics};
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::*;
use crate::{ObservedFeatures, inputs};

/// An API server without objects, but with these TrainJobs.
#[derive(Clone, Default)]
struct Server {
    train_jobs: Vec<Value>,
    /// How often each list was asked for.
    listed: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Server {
    async fn answer(self, request: Request<Body>) -> Result<Response<Body>, Infallible> {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        if query.contains("watch=true") {
            return std::future::pending().await;
        }
        // Pods are listed once for each label that selects them.
        let selector = query.split('&').find(|one| one.starts_with("labelSelector"));
        let list = format!("{path} {}", selector.unwrap_or_default());
        *self.listed.lock().expect("the lists").entry(list).or_default() += 1;
        let items = if path.ends_with("/trainjobs") { self.train_jobs } else { vec![] };
        let list = json!({
            "apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": items,
        });
        Ok(Response::new(Body::from(list.to_string().into_bytes())))
    }

    fn stores(&self) -> Stores {
        let server = self.clone();
        let service = tower::service_fn(move |request| server.clone().answer(request));
        let client = Client::new(service, "default");
        Stores::new(client, &WatchMetrics::default(), Stop::new())
    }

    fn listed(&self) -> BTreeSet<String> {
        self.counts().into_keys().collect()
    }

    /// How often each list was asked for.
    fn counts(&self) -> BTreeMap<String, usize> {
        self.listed.lock().expect("the lists").clone()
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// What a manager and an agent list for these kinds while there is no job.
async fn listed_for(kinds: Vec<Kind>) -> [BTreeSet<String>; 2] {
    let (kinds, hub, worker) = (Kinds::new(kinds), Server::default(), Server::default());
    let (mut of_hub, mut of_worker) = (hub.stores(), worker.stores());
    let features = ObservedFeatures { topologies: true, slices: true, failure_recovery: true };
    let _of_manager = Sources::manager(&mut of_hub, &kinds, Some("kueue-system"), features);
    let _of_agent = Sources::agent(&mut of_worker, &kinds, "origin", "kueue-system");
    let (hub_runs, worker_runs) = (timeout(SECOND, of_hub.run()), timeout(SECOND, of_worker.run()));
    assert!(tokio::join!(hub_runs, worker_runs).0.is_err(), "watches go on");
    [hub.listed(), worker.listed()]
}

/// The pods of a set that is gone are released, so they are watched without a set, too.
#[tokio::test(start_paused = true)]
async fn an_enabled_kind_without_jobs_costs_one_watch() {
    let without = listed_for(vec![]).await;
    for kind in &Kinds::built_in().with_workloads() {
        let with = listed_for(vec![kind.clone()]).await;
        let expected = 1 + usize::from(kind.members().is_some());
        for (with, without) in with.iter().zip(&without) {
            let more: Vec<_> = with.difference(without).collect();
            assert_eq!(more.len(), expected, "{kind}: {more:?}");
        }
    }
}

/// The inputs about TrainJobs and what they need, as the plural names of the latter and `job`, until `last` was seen. A list without a job
/// is none.
async fn inputs_until(server: &Server, last: &str) -> Vec<String> {
    let train_job = Kinds::built_in().find("trainer.kubeflow.org/v1alpha1", "TrainJob");
    let kinds = Kinds::new([train_job.expect("a built-in kind").clone()]);
    let mut stores = server.stores();
    let sources = Sources::manager(&mut stores, &kinds, None, ObservedFeatures::default());
    let (inputs, mut queues) = inputs();
    let mut tasks = JoinSet::new();
    sources.start(&inputs, &mut tasks);
    tasks.spawn(stores.run());
    let mut seen: Vec<String> = Vec::new();
    while !seen.iter().any(|one| one == last) {
        let batch = timeout(SECOND, queues.next_inputs()).await.expect("in time");
        seen.extend(batch.into_iter().filter_map(|input| match input {
            ManagerInput::Job(_, change) => has_some(&change, |_| true).then(|| "job".to_owned()),
            ManagerInput::LookedUp(kind, _) => Some(kind.plural),
            _ => None,
        }));
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn the_first_job_comes_after_the_lists_of_what_it_needs() {
    let job = json!({
        "metadata": {"name": "t", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
        "spec": {"runtimeRef": {"name": "r"}},
    });
    let server = Server { train_jobs: vec![job], ..Server::default() };
    let mut seen = inputs_until(&server, "job").await;
    assert_eq!(seen.pop().as_deref(), Some("job"));
    seen.sort();
    assert_eq!(seen, ["clustertrainingruntimes", "trainingruntimes"]);
}

/// Control decides nothing before it has every list.
#[tokio::test(start_paused = true)]
async fn without_a_job_nothing_of_what_jobs_need_is_known_at_once() {
    for needed in ["clustertrainingruntimes", "trainingruntimes"] {
        let server = Server::default();
        let seen = inputs_until(&server, needed).await;
        assert!(!seen.contains(&"job".to_owned()));
        assert!(!server.listed().iter().any(|list| list.contains(needed)), "{needed}");
    }
}

/// The stores of a follower are filled from the start of the process.
#[tokio::test(start_paused = true)]
async fn a_leader_begins_with_the_lists_of_the_follower() {
    let (server, kinds) = (Server::default(), Kinds::built_in());
    let mut stores = server.stores();
    let features = ObservedFeatures { topologies: true, slices: true, failure_recovery: true };
    let sources = Sources::manager(&mut stores, kinds, Some("kueue-system"), features);
    let mut tasks = JoinSet::new();
    tasks.spawn(stores.run());
    sleep(SECOND).await;
    let as_follower = server.counts();
    assert!(as_follower.values().all(|count| *count == 1), "{as_follower:?}");

    let (inputs, mut queues) = inputs();
    sources.start(&inputs, &mut tasks);
    let mut n_inputs = 0;
    while let Ok(batch) = timeout(SECOND, queues.next_inputs()).await {
        n_inputs += batch.len();
    }
    assert!(n_inputs >= as_follower.len(), "{n_inputs} inputs about {as_follower:?}");
    assert_eq!(server.counts(), as_follower);
}
