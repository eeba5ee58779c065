//! Where a case runs, and what it waits for there.

use anyhow::Result;
use harness::{Cluster, Judgement, Observer, RunVerdict, annotation};
use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use kube::Api;
use lab::real_nodes::configuration::BUSYBOX_IMAGE;
use serde_json::{Value, json};

use super::ClusterCase;
use crate::installation::TIMEOUT;
use crate::{objects, waits};

/// What a pod of a case requests: a small node that runs a control plane, too, has a fraction of a cpu left.
const CPU: &str = "20m";

/// The workers, as every installation of tests names them.
pub(super) const WORKERS: [&str; 2] = ["worker-1", "worker-2"];

/// Where the pods of a case run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseNodes {
    /// On the nodes that the workers have.
    OfClusters,
    /// On the nodes that the workers have, of which one has clearly more.
    Unequal,
    /// On played nodes, which the case gets.
    Played,
}

impl CaseNodes {
    /// Why a case cannot run there, if it cannot.
    #[must_use]
    pub fn lack(self, case: ClusterCase) -> Option<&'static str> {
        match (self, case) {
            (Self::Played, ClusterCase::MemoryLimit) => Some("played containers use no memory"),
            (Self::Played, ClusterCase::NoImage) => Some("played nodes pull no images"),
            (Self::Played, ClusterCase::NoConfiguration) => {
                Some("played containers read no configuration")
            }
            _ => None,
        }
    }
}

/// A namespace in a manager cluster and its two workers.
pub struct CasePlace<'a> {
    /// The manager cluster.
    pub hub: &'a Cluster,
    /// Its workers.
    pub workers: &'a [Cluster],
    /// The namespace, which all clusters have.
    pub namespace: &'a str,
    /// The ledger of the namespace.
    pub observer: &'a Observer,
    /// Where pods run.
    pub nodes: CaseNodes,
}

impl CasePlace<'_> {
    /// Quota for so many pods at once on both workers.
    pub(super) async fn queue(&self, pods: usize) -> Result<()> {
        self.add_nodes([1, 1]).await?;
        self.queue_of(&format!("{}m", 20 * pods)).await
    }

    /// Quota for one pod with a limit of memory: its container requests as much.
    pub(super) async fn queue_with_memory(&self) -> Result<()> {
        self.queue(1).await?;
        let quotas = &[("cpu", "100m"), ("memory", "1Gi")];
        objects::set_quota(self.hub, self.namespace, quotas).await
    }

    /// Where nodes are played: so many nodes of one cpu for the case on each worker.
    pub(super) async fn add_nodes(&self, counts: [usize; 2]) -> Result<()> {
        if self.nodes == CaseNodes::Played {
            for (worker, count) in self.workers.iter().zip(counts) {
                worker.add_nodes(&objects::own_nodes(self.namespace, count, "1")).await?;
            }
        }
        Ok(())
    }

    /// Quota of this much cpu.
    pub(super) async fn queue_of(&self, cpu: &str) -> Result<()> {
        match self.nodes {
            CaseNodes::OfClusters | CaseNodes::Unequal => {
                objects::queue(self.hub, self.namespace, cpu, &WORKERS).await
            }
            CaseNodes::Played => objects::own_queue(self.hub, self.namespace, cpu, &WORKERS).await,
        }
    }

    /// Submits an object to the manager.
    pub(super) async fn submit(&self, object: &Value) -> Result<()> {
        Ok(self.hub.apply(&object.to_string(), self.namespace).await?)
    }

    /// The worker where so many pods of a Job run, once they do.
    pub(super) async fn until_running(&self, job: &str, pods: usize) -> Result<&Cluster> {
        let (labels, what) = (of_job(job), format!("{pods} run"));
        let place = (self.namespace, &*labels, &*what);
        waits::until_pods_on_any(self.workers, place, 2 * TIMEOUT, so_many_run(pods)).await
    }

    /// Waits until so many pods of a Job run on a worker.
    pub(super) async fn until_running_on(
        &self,
        worker: &Cluster,
        job: &str,
        pods: usize,
    ) -> Result<()> {
        let (all, what): (Api<Pod>, _) = (worker.api(self.namespace), format!("{pods} run"));
        worker.until_all(&all, &of_job(job), &what, 2 * TIMEOUT, so_many_run(pods)).await?;
        Ok(())
    }

    /// Waits until a container of a Job has ended on some worker for this reason.
    pub(super) async fn until_terminated(&self, job: &str, reason: &str) -> Result<()> {
        let (labels, what) = (of_job(job), format!("a container ended: {reason}"));
        let has_ended = |all: &[Pod]| {
            let mut reasons = all.iter().filter_map(|pod| ended(pod)?.reason.as_deref());
            reasons.any(|one| one == reason)
        };
        let place = (self.namespace, &*labels, &*what);
        waits::until_pods_on_any(self.workers, place, 2 * TIMEOUT, has_ended).await.map(drop)
    }

    /// A Job of the manager, once it has this condition, and the condition.
    pub(super) async fn until_ended(&self, job: &str, end: &str) -> Result<(Job, JobCondition)> {
        waits::until_job_ended((self.hub, self.namespace), (job, end), 2 * TIMEOUT).await
    }

    /// Waits until no worker has a pod, a Job or a clone in the namespace.
    pub(super) async fn until_nothing_is_left(&self) -> Result<()> {
        for worker in self.workers {
            self.until_no_pod_is_left(worker).await?;
            waits::until_no_job_is_left(worker, self.namespace, TIMEOUT).await?;
        }
        Ok(())
    }

    /// Waits until a worker has no pod in the namespace.
    pub(super) async fn until_no_pod_is_left(&self, worker: &Cluster) -> Result<()> {
        waits::until_no_pod_is_left(worker, self.namespace, TIMEOUT).await
    }

    /// The observer saw the Job run once, with so many pods.
    pub(super) async fn ensure_once(&self, job: &str, pods: usize) -> Result<Judgement> {
        self.ensure_verdict(job, pods, RunVerdict::Once).await
    }

    /// What the observer saw of a Job with so many pods.
    pub(super) async fn ensure_verdict(
        &self,
        job: &str,
        pods: usize,
        verdict: RunVerdict,
    ) -> Result<Judgement> {
        waits::ensure_verdict(self.observer, (job, pods), &[verdict]).await
    }

    /// The observer saw a pod without an owner run once, on one worker; `work` is 0 if it failed.
    pub(super) async fn ensure_pod_once(&self, pod: &str, work: usize) -> Result<Judgement> {
        waits::ensure_pod_once(self.observer, pod, work).await
    }
}

/// The labels of the pods of a Job.
fn of_job(job: &str) -> String {
    format!("batch.kubernetes.io/job-name={job}")
}

fn so_many_run(pods: usize) -> impl Fn(&[Pod]) -> bool {
    move |all| all.iter().filter(|pod| is_running(pod)).count() == pods
}

/// Whether a pod runs and is to go on: one that is being deleted keeps its phase until it has ended.
fn is_running(pod: &Pod) -> bool {
    objects::phase(pod) == "Running" && pod.metadata.deletion_timestamp.is_none()
}

/// A Job of pods that succeed after so many seconds.
pub(super) fn job(name: &str, pods: usize, seconds: u32) -> Value {
    let mut job = objects::job(name, pods, CPU, seconds);
    // The webhook may not know the new queue yet.
    job["spec"]["managedBy"] = json!("kueue.x-k8s.io/multikueue");
    job["spec"]["backoffLimit"] = json!(0);
    let spec = &mut job["spec"]["template"]["spec"];
    become_container(spec, &format!("exec sleep {seconds}"));
    job
}

/// The Job's pods end with this exit code, and so does the Job.
pub(super) fn failing_with(mut job: Value, code: u32) -> Value {
    let template = job["spec"]["template"].take();
    job["spec"]["template"] = ending_with(template, code);
    job["spec"]["podFailurePolicy"] = objects::fail_job_on(code);
    job
}

/// The pod, or the pods of the template, end with this exit code.
pub(super) fn ending_with(mut pod: Value, code: u32) -> Value {
    pod["metadata"]["annotations"][annotation::EXIT_CODE] = json!(code.to_string());
    become_container(&mut pod["spec"], &format!("sleep 1; exit {code}"));
    pod
}

/// How the first container of a pod has ended.
pub(super) fn ended(pod: &Pod) -> Option<&ContainerStateTerminated> {
    let containers = pod.status.as_ref()?.container_statuses.as_ref()?;
    containers.first()?.state.as_ref()?.terminated.as_ref()
}

/// A pod that succeeds after so many seconds.
pub(super) fn pod(name: &str, seconds: u32) -> Value {
    let mut pod = objects::pod(name, "queue", seconds);
    become_container(&mut pod["spec"], &format!("exec sleep {seconds}"));
    pod
}

/// Gives a pod a container that real nodes run; played ones look at its annotations. A shell without a handler does not see SIGTERM.
fn become_container(spec: &mut Value, script: &str) {
    spec["terminationGracePeriodSeconds"] = json!(1);
    spec["containers"][0]["image"] = json!(BUSYBOX_IMAGE);
    spec["containers"][0]["command"] = json!(["sh", "-c", script]);
    spec["containers"][0]["resources"]["requests"] = json!({"cpu": CPU});
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodStatus;

    use super::*;

    #[test]
    fn a_pod_that_is_being_deleted_does_not_count_as_running() {
        let status = PodStatus { phase: Some("Running".to_owned()), ..PodStatus::default() };
        let mut pod = Pod { status: Some(status), ..Pod::default() };
        assert!(is_running(&pod));
        let now = k8s_openapi::jiff::Timestamp::now();
        pod.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now));
        assert!(!is_running(&pod));
    }
}
