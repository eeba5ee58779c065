//! The pods of a Workload on the cluster that runs it, and their logs (docs/reference/dispatch.md §12).
//!
//! Every replica answers: Workloads are read when they are asked about, and workers are reached by clients for requests of users
//! (`remote::WorkerClients`). Nothing is watched or kept. The module `workload_pods` of the crate `visibility` decides what is what.
//!
//! | file | concept |
//! |---|---|
//! | `request_limits` | limits of requests in flight, per cluster and namespace |
//! | `reads` | reads from a cluster that is not trusted |
//! | `search` | the pods that belong to a Workload |
//! | `log_stream` | a log that is passed on |
//! | `metrics` | requests by cluster and status code |

mod log_stream;
mod metrics;
mod reads;
mod request_limits;
mod search;

use std::time::Duration;

use axum::response::Response;
use crds::v1beta2::Workload;
use futures::FutureExt;
use http::{
    HeaderValue, StatusCode,
    header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
};
use kube::Client;
use remote::WorkerClients;
use runtime::{Stop, error_chain};
use tokio::time::timeout;
use visibility::{
    VisibilityAnswer,
    workload_pods::{
        LogQuery, PodsRefusal, WorkloadCall, WorkloadLocation, WorkloadOwners, WorkloadPart,
        WorkloadPodList, check_copy, location_of,
    },
};

pub(crate) use self::metrics::PodsMetrics;
use self::{
    log_stream::{LogPod, LogSource, LogStream},
    reads::{ClusterReads, JSON, WantedObject},
    request_limits::PodsRequestLimits,
    search::{FoundPods, PodSearch},
};
use super::server::respond;
use crate::{
    answer_body::{AnswerLimits, passed_on},
    in_flight_limits::InFlightPermit,
};

/// The time from a request to a list, or to the pod of a log.
const SEARCH_WITHIN: Duration = Duration::from_secs(30);

/// The time until a log begins. One that is followed may begin later.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);

/// A log is passed on without an end; a caller may pause, as a pager does.
const OF_LOG: AnswerLimits =
    AnswerLimits { most: usize::MAX, within: None, stalled: Duration::from_secs(600) };

/// Answers requests that were authorized.
pub(super) struct WorkloadPodsApi {
    home: Client,
    workers: WorkerClients,
    origin: String,
    limits: PodsRequestLimits,
    metrics: PodsMetrics,
    stop: Stop,
}

/// A Workload, the cluster that runs it with its owners there, and a permit for a request.
struct RunningWorkload {
    reads: ClusterReads,
    workload: Workload,
    owners: WorkloadOwners,
    permit: InFlightPermit,
}

impl WorkloadPodsApi {
    pub(super) fn new(
        home: &Client,
        workers: WorkerClients,
        origin: &str,
        metrics: PodsMetrics,
        stop: Stop,
    ) -> Self {
        let (home, origin) = (home.clone(), origin.to_owned());
        Self { home, workers, origin, limits: PodsRequestLimits::default(), metrics, stop }
    }

    /// Answers a request.
    pub(super) async fn serve(&self, call: &WorkloadCall<'_>, query: &LogQuery) -> Response {
        let mut cluster = None;
        let answered = Box::pin(self.answer(call, query, &mut cluster)).await;
        let response = answered.unwrap_or_else(|refusal| respond(refusal.answer()));
        self.metrics.count(cluster.as_deref(), call.part, response.status());
        response
    }

    async fn answer(
        &self,
        call: &WorkloadCall<'_>,
        query: &LogQuery,
        cluster: &mut Option<String>,
    ) -> Result<Response, PodsRefusal> {
        let found = timeout(SEARCH_WITHIN, self.running(call, cluster)).await;
        let found = found.map_err(|_| PodsRefusal::Late(cluster.clone().unwrap_or_default()))?;
        let RunningWorkload { reads, workload, owners, permit } = found?;
        let late = || reads.late();
        let mut search = PodSearch::new(&reads, call.namespace, owners);
        match call.part {
            WorkloadPart::Pods => {
                let found = timeout(SEARCH_WITHIN, search.all()).await.map_err(|_| late())??;
                let list = WorkloadPodList::of(&workload, &reads.cluster, found.pods);
                Ok(respond(VisibilityAnswer::json(&list.incomplete(found.incomplete))))
            }
            WorkloadPart::Log => {
                let pod = Self::pod_of_log(&mut search, call, query, &workload, &reads.cluster);
                let found = timeout(SEARCH_WITHIN, pod).await.map_err(|_| late())??;
                let (name, uid) = found;
                let namespace = call.namespace.to_owned();
                let pod = LogPod { reads: reads.clone(), namespace, name, uid };
                self.log(pod, call, query, permit).await
            }
        }
    }

    /// The Workload, and the cluster that runs it.
    async fn running(
        &self,
        call: &WorkloadCall<'_>,
        cluster: &mut Option<String>,
    ) -> Result<RunningWorkload, PodsRefusal> {
        let home = ClusterReads { client: self.home.clone(), cluster: String::new() };
        let workload = read_workload(&home, call).await.map_err(|refusal| {
            tracing::warn!(%refusal, "cannot read a Workload for its pods");
            PodsRefusal::HomeNotReached
        })?;
        let workload =
            workload.ok_or_else(|| PodsRefusal::UnknownWorkload(call.workload.to_owned()))?;
        let worker = match location_of(&workload)? {
            WorkloadLocation::Home => String::new(),
            WorkloadLocation::Worker(name) => name,
        };
        let name = &*cluster.insert(worker);
        let permit = self.limits.try_acquire(name, call.namespace)?;
        if name.is_empty() {
            let owners = WorkloadOwners::at_home(&workload);
            return Ok(RunningWorkload { reads: home, workload, owners, permit });
        }
        let client = self.workers.client(name).await.map_err(|error| {
            let cause = error_chain::describe(&error);
            PodsRefusal::NotConnected { cluster: name.clone(), cause }
        })?;
        let reads = ClusterReads { client, cluster: name.clone() };
        let copy = read_workload(&reads, call).await?;
        check_copy(&workload, copy.as_ref(), name, &self.origin)?;
        let owners = WorkloadOwners::on_worker(&workload, &self.origin);
        Ok(RunningWorkload { reads, workload, owners, permit })
    }

    /// Name and uid of the pod of a log: the one that the query names, or the only one.
    async fn pod_of_log(
        search: &mut PodSearch<'_>,
        call: &WorkloadCall<'_>,
        query: &LogQuery,
        workload: &Workload,
        cluster: &str,
    ) -> Result<(String, Option<String>), PodsRefusal> {
        let (name, cluster) = (call.workload.to_owned(), cluster.to_owned());
        if let Some(pod) = &query.pod {
            let found = search.one(pod).await?;
            let unknown = PodsRefusal::UnknownPod { workload: name, pod: pod.clone(), cluster };
            return Ok((pod.clone(), found.ok_or(unknown)?.metadata.uid));
        }
        let FoundPods { mut pods, .. } = search.all().await?;
        match pods.len() {
            0 => Err(PodsRefusal::NoPods { workload: name, cluster }),
            1 => {
                let metadata = pods.remove(0).metadata;
                Ok((metadata.name.unwrap_or_default(), metadata.uid))
            }
            _ => {
                let list = WorkloadPodList::of(workload, &cluster, pods);
                let pods = list.items.into_iter().map(|pod| pod.name).collect();
                Err(PodsRefusal::SeveralPods { workload: name, pods })
            }
        }
    }

    /// The answer with a log. The cluster reads it by the name of the pod, which is checked again: the name may have been given to another
    /// pod since.
    async fn log(
        &self,
        pod: LogPod,
        call: &WorkloadCall<'_>,
        query: &LogQuery,
        permit: InFlightPermit,
    ) -> Result<Response, PodsRefusal> {
        let target = query.target(&pod.namespace, &pod.name);
        let reads = pod.reads.clone();
        let begin = async move { reads.log(&target).await };
        let mut begin = begin.boxed();
        let begun = match timeout(BEGINS_WITHIN, &mut begin).await {
            Ok(begun) => Some(begun?),
            Err(_) if query.follow => None,
            Err(_) => return Err(pod.reads.late()),
        };
        if !pod.is_there().await? {
            let (workload, cluster) = (call.workload.to_owned(), pod.reads.cluster);
            return Err(PodsRefusal::UnknownPod { workload, pod: pod.name, cluster });
        }
        let source = match begun {
            Some(body) => LogSource::Begun(body),
            None => LogSource::Awaited(pod.clone().checked(begin).boxed()),
        };
        let stream = LogStream { source, pod, follow: query.follow, stop: self.stop.clone() };
        let mut response = Response::new(passed_on(stream.body(), OF_LOG, permit));
        *response.status_mut() = StatusCode::OK;
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, text);
        let nosniff = HeaderValue::from_static("nosniff");
        response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, nosniff);
        Ok(response)
    }
}

async fn read_workload(
    reads: &ClusterReads,
    call: &WorkloadCall<'_>,
) -> Result<Option<Workload>, PodsRefusal> {
    let WorkloadCall { namespace, workload, .. } = call;
    let path = format!("/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/workloads/{workload}");
    reads.read(WantedObject { path: &path, accept: JSON, right: ("get", "workloads") }).await
}

#[cfg(test)]
mod tests;
