//! Replays recorded lives of jobs: requests, and the objects that a manager with its controllers has made of them.
//!
//! | file | concept |
//! |---|---|
//! | `case` | a recorded case, as in its file |
//! | `clusters`, `setup` | the clusters of a replay, and what a case finds there |
//! | `essence` | what of an object is compared |
//! | `details` | what of an object is counted beside that |
//! | `placeholders` | names and times that differ from run to run |
//! | `comparison`, `events` | differences between recorded objects and Events and those of the cluster |
//! | `answers` | differences between recorded answers and those of the cluster |
//! | `wanted_differences` | cases that differ on purpose |
//! | `cut_cases` | cases of which the rest is not compared |
//! | `verdict` | what is found of a case: when a step has settled, and what a report counts |
//! | `run` | sends the steps of a case and waits for what was recorded |

mod answers;
mod case;
mod clusters;
mod comparison;
mod cut_cases;
mod details;
mod essence;
mod events;
mod placeholders;
mod run;
mod setup;
mod verdict;
mod wanted_differences;

pub(crate) use details::{DetailCounts, MESSAGES};

pub use case::{TraceCase, TraceSettings};
pub use clusters::ReplayClusters;
pub use cut_cases::listed_cuts;
pub use run::run_traces;

/// Kinds whose cases can be replayed.
pub(crate) const TRACED_KINDS: [&str; 19] = [
    "AppWrapper",
    "Deployment",
    "JAXJob",
    "Job",
    "JobSet",
    "LeaderWorkerSet",
    "MPIJob",
    "PaddleJob",
    "Pod",
    "PodGroup",
    "PyTorchJob",
    "RayCluster",
    "RayJob",
    "RayService",
    "SparkApplication",
    "StatefulSet",
    "TFJob",
    "TrainJob",
    "XGBoostJob",
];

/// Kinds of objects that are compared, with the path of their collection below the API.
pub(crate) const SHOWN_KINDS: [(&str, &str, &str); 19] = [
    ("SparkApplication", "/apis/sparkoperator.k8s.io/v1beta2", "sparkapplications"),
    ("TrainJob", "/apis/trainer.kubeflow.org/v1alpha1", "trainjobs"),
    ("Pod", "/api/v1", "pods"),
    ("Job", "/apis/batch/v1", "jobs"),
    ("Deployment", "/apis/apps/v1", "deployments"),
    ("StatefulSet", "/apis/apps/v1", "statefulsets"),
    ("JobSet", "/apis/jobset.x-k8s.io/v1alpha2", "jobsets"),
    ("PyTorchJob", "/apis/kubeflow.org/v1", "pytorchjobs"),
    ("TFJob", "/apis/kubeflow.org/v1", "tfjobs"),
    ("XGBoostJob", "/apis/kubeflow.org/v1", "xgboostjobs"),
    ("PaddleJob", "/apis/kubeflow.org/v1", "paddlejobs"),
    ("JAXJob", "/apis/kubeflow.org/v1", "jaxjobs"),
    ("MPIJob", "/apis/kubeflow.org/v2beta1", "mpijobs"),
    ("RayCluster", "/apis/ray.io/v1", "rayclusters"),
    ("RayJob", "/apis/ray.io/v1", "rayjobs"),
    ("RayService", "/apis/ray.io/v1", "rayservices"),
    ("AppWrapper", "/apis/workload.codeflare.dev/v1beta2", "appwrappers"),
    ("LeaderWorkerSet", "/apis/leaderworkerset.x-k8s.io/v1", "leaderworkersets"),
    ("Workload", "/apis/kueue.x-k8s.io/v1beta2", "workloads"),
];

/// The path of a collection in a namespace.
pub(crate) fn collection(kind: &str, namespace: &str) -> Option<String> {
    let (_, api, plural) = SHOWN_KINDS.iter().find(|one| one.0 == kind)?;
    Some(format!("{api}/namespaces/{namespace}/{plural}"))
}
