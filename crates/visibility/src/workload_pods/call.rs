//! Requests by their path.

use crds::names::SLUICE_VISIBILITY_GROUP;

use crate::api::WORKLOAD_PODS_VERSION;

/// A request about the pods of a Workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkloadCall<'a> {
    /// The namespace of the Workload.
    pub namespace: &'a str,
    /// Its name.
    pub workload: &'a str,
    /// What is wanted.
    pub part: WorkloadPart,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkloadPart {
    /// The list of pods.
    Pods,
    /// The log of a pod.
    Log,
}

impl<'a> WorkloadCall<'a> {
    /// The meaning of a path; `None` if it is not one of this API. Names go into paths of requests to clusters, so each has to be one.
    #[must_use]
    pub fn of(path: &'a str) -> Option<Self> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let ["apis", group, version, "namespaces", namespace, "workloads", workload, part] =
            *parts.as_slice()
        else {
            return None;
        };
        let part = match part {
            "pods" => WorkloadPart::Pods,
            "log" => WorkloadPart::Log,
            _ => return None,
        };
        let is_served = group == SLUICE_VISIBILITY_GROUP && version == WORKLOAD_PODS_VERSION;
        let call = Self { namespace, workload, part };
        (is_served && is_name(namespace) && is_name(workload)).then_some(call)
    }
}

/// Whether a text has the characters of names, so that it is one segment of a path.
pub(super) fn is_name(text: &str) -> bool {
    let inner =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    let ends = text.starts_with(['-', '.']) || text.ends_with(['-', '.']);
    !text.is_empty() && text.len() <= 253 && text.bytes().all(inner) && !ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_and_log_of_a_workload_have_a_path() {
        let base = "/apis/visibility.sluice.dev/v1alpha1/namespaces";
        let call = |part| Some(WorkloadCall { namespace: "ml", workload: "job-train-1a", part });
        for (path, expected) in [
            (format!("{base}/ml/workloads/job-train-1a/pods"), call(WorkloadPart::Pods)),
            (format!("{base}/ml/workloads/job-train-1a/log/"), call(WorkloadPart::Log)),
            (format!("{base}/ml/workloads/job-train-1a"), None),
            (format!("{base}/ml/workloads/job-train-1a/log/x"), None),
            (format!("{base}/ml/workloads/job-train-1a/exec"), None),
            (format!("{base}/ml/workloads/../log"), None),
            (format!("{base}/ml/workloads/a%2Fb/log"), None),
            (format!("{base}/ML/workloads/a/log"), None),
            (format!("{base}/ml/pods/a/log"), None),
            ("/apis/visibility.sluice.dev/v1/namespaces/ml/workloads/a/log".to_owned(), None),
            (
                "/apis/visibility.kueue.x-k8s.io/v1alpha1/namespaces/ml/workloads/a/log".to_owned(),
                None,
            ),
        ] {
            assert_eq!(WorkloadCall::of(&path), expected, "{path}");
        }
    }
}
