//! Keeps the ledger of one namespace in all clusters with watches of its own.
//!
//! It lists before the test can submit anything, and then resumes its watches, so a pod that existed only while a connection
//! was down is in the ledger. It connects to the API servers directly, not through a proxy, and reads pods only.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, ObjectReference, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use lab::state::MANAGER;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::backlog;
use crate::cluster::Cluster;
use crate::follow::{Follow, FollowedChange};
use crate::ledger::{Judgement, Ledger, RunVerdict};
use crate::machine;
use crate::wait::{Circumstances, GaveUp, LastSeen};

/// Pause between two attempts to reach a server.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Pods and their runs, and the clusters that have been listed.
#[derive(Debug, Default, Clone)]
struct ObserverState {
    ledger: Ledger,
    listed_clusters: Vec<String>,
}

/// Watches the pods of a namespace in some clusters. Dropping it ends that.
#[derive(Debug)]
pub struct Observer {
    namespace: String,
    clusters: Vec<Cluster>,
    state: watch::Receiver<ObserverState>,
    marks: AtomicUsize,
    _watches: JoinSet<()>,
}

impl Observer {
    /// Returns when every cluster has been listed.
    pub async fn start(
        clusters: &[Cluster],
        namespace: &str,
        within: Duration,
    ) -> Result<Self, GaveUp> {
        let follows = clusters.iter().map(|cluster| (cluster.clone(), cluster.api(namespace)));
        Self::start_with(follows.collect(), namespace, within).await
    }

    /// Starts to observe through other connections than the clusters' own: for tests of the observer itself.
    pub async fn start_with(
        connections: Vec<(Cluster, Api<Pod>)>,
        namespace: &str,
        within: Duration,
    ) -> Result<Self, GaveUp> {
        let (write, state) = watch::channel(ObserverState::default());
        let mut watches = JoinSet::new();
        let clusters: Vec<Cluster> = connections.iter().map(|(one, _)| one.clone()).collect();
        for (cluster, api) in connections {
            watches.spawn(keep(cluster.name().to_owned(), api, write.clone()));
        }
        let marks = AtomicUsize::new(0);
        let namespace = namespace.to_owned();
        let observer = Self { namespace, clusters, state, marks, _watches: watches };
        for cluster in &observer.clusters {
            let listed = |state: &ObserverState| {
                state.listed_clusters.iter().any(|name| name == cluster.name())
            };
            observer.wait(cluster, "the observer's first list", within, listed).await?;
        }
        Ok(observer)
    }

    /// The ledger as it is now. It may be a moment behind; [`Self::judge`] is not.
    pub fn ledger(&self) -> Ledger {
        self.state.borrow().ledger.clone()
    }

    /// The verdict about a job that needs `work` succeeded pods, after the ledger has all changes until now.
    pub async fn judge(
        &self,
        job: &str,
        work: usize,
        within: Duration,
    ) -> Result<Judgement, GaveUp> {
        self.catch_up(within).await?;
        Ok(self.ledger().judge(job, work))
    }

    /// The verdict about a pod without an owner. The manager's copy of a pod shows the status of the worker's, and is no run.
    pub async fn judge_pod(
        &self,
        pod: &str,
        work: usize,
        within: Duration,
    ) -> Result<Judgement, GaveUp> {
        self.catch_up(within).await?;
        Ok(self.ledger().without(MANAGER).judge(pod, work))
    }

    /// Waits for a verdict. Later changes of the verdict are reported by [`Self::judge`].
    pub async fn until(
        &self,
        job: &str,
        work: usize,
        verdict: RunVerdict,
        within: Duration,
    ) -> Result<Judgement, GaveUp> {
        let mut state = self.state.clone();
        let judged = |state: &ObserverState| state.ledger.judge(job, work).verdict == verdict;
        let deadline = Instant::now() + within;
        let waited = timeout_at(deadline, state.wait_for(judged)).await;
        let judgement = self.ledger().judge(job, work);
        match waited {
            Ok(Ok(_)) => Ok(judgement),
            _ => Err(self.gave_up(&format!("{job} judged {verdict:?}"), within, &judgement)),
        }
    }

    /// Returns when everything that happened before this call is in the ledger.
    ///
    /// Creates a pod that can never run in every cluster, and waits for its event: a watch delivers in order.
    pub async fn catch_up(&self, within: Duration) -> Result<(), GaveUp> {
        let number = self.marks.fetch_add(1, Ordering::Relaxed);
        let mark = format!("observer-mark-{number}");
        let deadline = Instant::now() + within;
        for cluster in &self.clusters {
            let pods: Api<Pod> = cluster.api(&self.namespace);
            let created = timeout_at(deadline, create_mark(&pods, &mark)).await;
            if let Some(trouble) = match created {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("no answer".to_owned()),
            } {
                let what = "let the observer catch up";
                return Err(cluster.gave_up(what, within, LastSeen::text(""), Some(trouble)));
            }
            let seen = |state: &ObserverState| state.ledger.pod(cluster.name(), &mark).is_some();
            self.wait(cluster, "let the observer catch up", within, seen).await?;
            // Remains after a failure: it runs nowhere and is deleted with the namespace.
            let _ = timeout_at(deadline, pods.delete(&mark, &DeleteParams::default())).await;
        }
        Ok(())
    }

    async fn wait(
        &self,
        cluster: &Cluster,
        what: &str,
        within: Duration,
        condition: impl Fn(&ObserverState) -> bool,
    ) -> Result<(), GaveUp> {
        let mut state = self.state.clone();
        let deadline = Instant::now() + within;
        match timeout_at(deadline, state.wait_for(condition)).await {
            Ok(Ok(_)) => Ok(()),
            _ => {
                let seen = LastSeen::text("the watch brought nothing");
                Err(cluster.gave_up(what, within, seen, None))
            }
        }
    }

    fn gave_up(&self, what: &str, within: Duration, judgement: &Judgement) -> GaveUp {
        let ailing = self.clusters.iter().map(|cluster| backlog::ailing(cluster.state()));
        // All are of one lab.
        let tails = self.clusters.first().map(|cluster| backlog::tails(cluster.state(), None));
        GaveUp(Box::new(Circumstances {
            what: what.to_owned(),
            place: "all clusters".to_owned(),
            within,
            seen: judgement.to_string(),
            trouble: None,
            machine: machine::describe(),
            processes: ailing.chain(tails).collect(),
        }))
    }
}

/// Records the changes of one cluster while the ledger is in use.
async fn keep(cluster: String, pods: Api<Pod>, state: watch::Sender<ObserverState>) {
    let mut follow = Follow::new(pods.clone());
    loop {
        let change = follow.next().await;
        let now = Timestamp::now();
        let first = !state.borrow().listed_clusters.contains(&cluster);
        let again = matches!(change, FollowedChange::Listed(_)) && !first;
        let scheduled = if again { scheduled(&pods).await } else { Vec::new() };
        state.send_modify(|state| {
            if first {
                state.listed_clusters.push(cluster.clone());
            }
            state.ledger.note(&cluster, change, now);
            for pod in &scheduled {
                let (uid, name) = (pod.uid.as_deref(), pod.name.as_deref());
                state.ledger.note_scheduled(&cluster, uid.unwrap_or(""), name.unwrap_or(""));
            }
        });
    }
}

/// The pods that the scheduler bound within the last hour, from events, which outlive their pods.
async fn scheduled(pods: &Api<Pod>) -> Vec<ObjectReference> {
    let params = ListParams::default().fields("reason=Scheduled");
    loop {
        let client = pods.clone().into_client();
        let events: Api<Event> = match pods.namespace() {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        };
        if let Ok(events) = events.list(&params).await {
            return events.items.into_iter().map(|event| event.involved_object).collect();
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn create_mark(pods: &Api<Pod>, name: &str) -> kube::Result<()> {
    let pod = json!({
        "metadata": {"name": name},
        "spec": {
            "schedulingGates": [{"name": "lab.sluice.dev/observer"}],
            "containers": [{"name": "none", "image": "none"}],
        },
    });
    let pod: Pod = serde_json::from_value(pod).map_err(kube::Error::SerdeError)?;
    pods.create(&PostParams::default(), &pod).await.map(drop)
}
