//! Keeps the facts as the cluster is: one watch per kind.

use crds::v1beta2::{AdmissionCheck, ClusterQueue, LocalQueue, WorkloadPriorityClass};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use runtime::{
    Stop,
    watch::{Config, Watch, WatchMetrics},
};
use tokio::sync::mpsc;

use super::{Fact, Known};

/// Changes on their way; the facts take them at once.
const ON_THEIR_WAY: usize = 16;

/// Watches all kinds until `stop`.
pub async fn follow(client: Client, known: Known, metrics: WatchMetrics, stop: Stop) {
    tokio::join!(
        one::<LocalQueue>(&client, &known, &metrics, &stop),
        one::<ClusterQueue>(&client, &known, &metrics, &stop),
        one::<AdmissionCheck>(&client, &known, &metrics, &stop),
        one::<Namespace>(&client, &known, &metrics, &stop),
        one::<WorkloadPriorityClass>(&client, &known, &metrics, &stop),
    );
}

async fn one<K: Fact>(client: &Client, known: &Known, metrics: &WatchMetrics, stop: &Stop) {
    let (sender, mut changes) = mpsc::channel(ON_THEIR_WAY);
    let watch = Watch::<K>::new(K::WATCH.0, Api::all(client.clone()), Config::default(), metrics);
    let learn = async {
        while let Some(change) = changes.recv().await {
            known.learn(change);
        }
    };
    tokio::join!(watch.run(sender, stop.clone()), learn);
}
