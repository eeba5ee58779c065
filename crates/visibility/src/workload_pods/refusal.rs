//! Why a request about the pods of a Workload has no answer.

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::{VisibilityAnswer, status};

/// After how many seconds a client that was refused for want of room may try again.
const RETRY_AFTER: u32 = 5;

/// The longest text of a cluster that is passed on, in characters.
const LONGEST: usize = 512;

/// The reason for which a request about pods has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PodsRefusal {
    /// The query is invalid.
    #[error("{0}")]
    Query(String),
    /// The Workload does not exist.
    #[error("workloads.kueue.x-k8s.io {0:?} not found")]
    UnknownWorkload(String),
    /// No cluster runs it.
    #[error("Workload {workload:?} has no pods yet: {why}")]
    NotPlaced {
        /// The Workload.
        workload: String,
        /// What it waits for.
        why: String,
    },
    /// The worker has no copy of it.
    #[error("cluster {cluster:?} has no copy of Workload {workload:?}: {}", gone(*.finished))]
    NoCopy {
        /// The Workload.
        workload: String,
        /// The worker.
        cluster: String,
        /// The Workload has finished.
        finished: bool,
    },
    /// The worker has a Workload of the name that is not the present copy.
    #[error(
        "the Workload {workload:?} on cluster {cluster:?} is not the present copy: it belongs to another manager, to a former Workload of the name or to an earlier attempt"
    )]
    OtherCopy {
        /// The Workload.
        workload: String,
        /// The worker.
        cluster: String,
    },
    /// There are no pods.
    #[error("Workload {workload:?} has no pods on {}", cluster_text(.cluster))]
    NoPods {
        /// The Workload.
        workload: String,
        /// The worker; empty for the manager cluster.
        cluster: String,
    },
    /// There are several pods, and the query names none.
    #[error("Workload {workload:?} has {} pods, and pod= names none: {}", .pods.len(), first(.pods))]
    SeveralPods {
        /// The Workload.
        workload: String,
        /// The names of its pods.
        pods: Vec<String>,
    },
    /// The pod does not exist, or belongs to something else. The caller need not know which.
    #[error("Workload {workload:?} has no pod {pod:?} on {}", cluster_text(.cluster))]
    UnknownPod {
        /// The Workload.
        workload: String,
        /// The pod.
        pod: String,
        /// The worker; empty for the manager cluster.
        cluster: String,
    },
    /// The account of the manager may not read there.
    #[error(
        "the account of the manager may not {verb} {resource} on {}: see {}",
        cluster_text(.cluster),
        role(.cluster)
    )]
    MissingRight {
        /// The worker; empty for the manager cluster.
        cluster: String,
        /// The verb.
        verb: &'static str,
        /// The resource.
        resource: String,
    },
    /// The cluster refused the request for the log.
    #[error("{}: {message}", cluster_text(.cluster))]
    Refused {
        /// The worker; empty for the manager cluster.
        cluster: String,
        /// 400 or 404.
        code: StatusCode,
        /// What it says.
        message: String,
    },
    /// The worker is not active, or its kubeconfig cannot be used.
    #[error("cluster {cluster:?} is not connected: {cause}")]
    NotConnected {
        /// The worker.
        cluster: String,
        /// Why.
        cause: String,
    },
    /// The cluster was not reached, or its answer makes no sense.
    #[error("{} was not reached", cluster_text(.0))]
    NotReached(String),
    /// The cluster has not answered in time.
    #[error("{} has not answered in time", cluster_text(.0))]
    Late(String),
    /// Too many requests to the cluster are in flight.
    #[error("too many logs of {} are read at once, please try again later", cluster_text(.0))]
    TooMany(String),
    /// The Workload could not be read.
    #[error("Internal error occurred: cannot ask the API server")]
    HomeNotReached,
    /// The method is not GET.
    #[error("the server does not allow this method on the requested resource")]
    WrongMethod,
}

impl PodsRefusal {
    /// A refusal of a request for a log by its cluster. Texts of a cluster are not trusted: only the first characters of one line count.
    #[must_use]
    pub fn of_cluster(cluster: &str, code: StatusCode, message: &str) -> Self {
        let line = message.lines().next().unwrap_or_default();
        let message = line.chars().filter(|c| !c.is_control()).take(LONGEST).collect();
        Self::Refused { cluster: cluster.to_owned(), code, message }
    }

    /// The status code.
    #[must_use]
    pub fn code(&self) -> StatusCode {
        match self {
            Self::Query(_) | Self::SeveralPods { .. } => StatusCode::BAD_REQUEST,
            Self::UnknownWorkload(_)
            | Self::NoCopy { .. }
            | Self::NoPods { .. }
            | Self::UnknownPod { .. } => StatusCode::NOT_FOUND,
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotPlaced { .. } | Self::OtherCopy { .. } => StatusCode::CONFLICT,
            Self::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::HomeNotReached => StatusCode::INTERNAL_SERVER_ERROR,
            // The caller has the right; the manager lacks it.
            Self::MissingRight { .. } | Self::NotReached(_) => StatusCode::BAD_GATEWAY,
            Self::NotConnected { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::Late(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Refused { code, .. } => *code,
        }
    }

    /// The answer.
    #[must_use]
    pub fn answer(&self) -> VisibilityAnswer {
        let retry = matches!(self, Self::TooMany(_)).then_some(RETRY_AFTER);
        let seconds = retry.map(|seconds| ("retryAfterSeconds".to_owned(), json!(seconds)));
        let details: Map<String, Value> = seconds.into_iter().collect();
        let answer = status::refusal(self.code(), self.reason(), &self.to_string(), details);
        VisibilityAnswer { retry_after: retry, ..answer }
    }

    fn reason(&self) -> &'static str {
        match self.code() {
            StatusCode::BAD_REQUEST => "BadRequest",
            StatusCode::NOT_FOUND => "NotFound",
            StatusCode::METHOD_NOT_ALLOWED => "MethodNotAllowed",
            StatusCode::CONFLICT => "Conflict",
            StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
            StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
            StatusCode::GATEWAY_TIMEOUT => "Timeout",
            // Kubernetes has no reason of its own for a bad gateway.
            _ => "InternalError",
        }
    }
}

fn gone(finished: bool) -> &'static str {
    if finished {
        "it was removed after the Workload had finished"
    } else {
        "it is not there yet, or was withdrawn"
    }
}

fn cluster_text(cluster: &str) -> String {
    match cluster {
        "" => "the manager cluster".to_owned(),
        name => format!("cluster {name:?}"),
    }
}

fn role(cluster: &str) -> &'static str {
    match cluster {
        "" => "the ClusterRole sluice-logs of config/rbac",
        _ => "the ClusterRole sluice-hub-logs of config/worker/hub, which `sluicectl join` makes",
    }
}

/// The first names, which are enough to see what they look like.
fn first(pods: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<&str> = pods.iter().take(SHOWN).map(String::as_str).collect();
    let more = if pods.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str) -> String {
        name.to_owned()
    }

    #[test]
    fn a_refusal_is_a_status_with_a_sentence() {
        let pods = |count: usize| (0..count).map(|number| format!("p-{number}")).collect();
        for (refusal, code, reason, message) in [
            (
                PodsRefusal::UnknownWorkload(text("w")),
                404,
                "NotFound",
                "workloads.kueue.x-k8s.io \"w\" not found",
            ),
            (
                PodsRefusal::SeveralPods { workload: text("w"), pods: pods(11) },
                400,
                "BadRequest",
                "Workload \"w\" has 11 pods, and pod= names none: p-0, p-1, p-2, p-3, p-4, p-5, p-6, p-7, p-8, p-9, …",
            ),
            (
                PodsRefusal::UnknownPod { workload: text("w"), pod: text("p"), cluster: text("") },
                404,
                "NotFound",
                "Workload \"w\" has no pod \"p\" on the manager cluster",
            ),
            (
                PodsRefusal::MissingRight {
                    cluster: text("east"),
                    verb: "get",
                    resource: text("pods/log"),
                },
                502,
                "InternalError",
                "the account of the manager may not get pods/log on cluster \"east\": see the ClusterRole sluice-hub-logs of config/worker/hub, which `sluicectl join` makes",
            ),
            (
                PodsRefusal::NotConnected { cluster: text("east"), cause: text("c") },
                503,
                "ServiceUnavailable",
                "cluster \"east\" is not connected: c",
            ),
            (
                PodsRefusal::Late(text("east")),
                504,
                "Timeout",
                "cluster \"east\" has not answered in time",
            ),
        ] {
            let answer = refusal.answer();
            let status: Value = serde_json::from_slice(&answer.body).expect("JSON");
            assert_eq!(answer.status.as_u16(), code, "{refusal}");
            assert_eq!((&status["reason"], &status["message"]), (&json!(reason), &json!(message)));
        }
        let full = PodsRefusal::TooMany(text("east")).answer();
        assert_eq!((full.status.as_u16(), full.retry_after), (429, Some(RETRY_AFTER)));
    }

    #[test]
    fn texts_of_a_worker_are_cut() {
        let said = format!("no\u{1b}[2J container\nsecond line{}", "x".repeat(LONGEST));
        let refusal = PodsRefusal::of_cluster("east", StatusCode::BAD_REQUEST, &said);
        assert_eq!(refusal.to_string(), "cluster \"east\": no[2J container");
        let long = PodsRefusal::of_cluster("", StatusCode::NOT_FOUND, &"x".repeat(LONGEST * 2));
        assert_eq!(long.to_string().len(), "the manager cluster: ".len() + LONGEST);
    }
}
