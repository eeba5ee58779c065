//! Objects that are operated, and what must be true of them in the end.

use serde_json::{Value, json};

use super::{api::SimulatedApi, faults::Disturbance, world::OperatorWorld};

/// The image of Ray after an upgrade.
const NEXT_IMAGE: &str = "ray:next";

/// An object that is operated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperatedObject {
    /// A RayCluster with two workers.
    Cluster,
    /// One with a token, an Ingress, an autoscaler, and replicas of two hosts.
    FullCluster,
    /// One with a replica of two hosts.
    HostsCluster,
    /// One with its state in Redis.
    StoredCluster,
    /// One with pods that are made again when its spec changes, which it does once.
    UpgradedCluster,
    /// A RayJob that the agent submits.
    HttpJob,
    /// A RayJob that a Job submits.
    SubmittedJob,
    /// A RayJob that a container beside the head submits.
    SidecarJob,
    /// A RayService.
    Service,
    /// An AppWrapper with a Job and a RayCluster.
    Wrapper,
}

impl OperatedObject {
    pub(super) const ALL: [Self; 10] = [
        Self::Cluster,
        Self::FullCluster,
        Self::HostsCluster,
        Self::StoredCluster,
        Self::UpgradedCluster,
        Self::HttpJob,
        Self::SubmittedJob,
        Self::SidecarJob,
        Self::Service,
        Self::Wrapper,
    ];

    pub(super) fn object(self) -> Value {
        match self {
            Self::Cluster => ray("RayCluster", "c", &cluster_spec(2)),
            Self::FullCluster => ray("RayCluster", "c", &full_spec()),
            Self::HostsCluster => {
                let mut spec = cluster_spec(1);
                spec["workerGroupSpecs"][0]["numOfHosts"] = json!(2);
                ray("RayCluster", "c", &spec)
            }
            Self::StoredCluster => {
                let mut spec = cluster_spec(1);
                spec["gcsFaultToleranceOptions"] = json!({"redisAddress": "redis:6379"});
                ray("RayCluster", "c", &spec)
            }
            Self::UpgradedCluster => {
                let mut spec = cluster_spec(2);
                spec["upgradeStrategy"] = json!({"type": "Recreate"});
                ray("RayCluster", "c", &spec)
            }
            Self::HttpJob => ray("RayJob", "j", &job_spec("HTTPMode")),
            Self::SubmittedJob => ray("RayJob", "j", &job_spec("K8sJobMode")),
            Self::SidecarJob => ray("RayJob", "j", &job_spec("SidecarMode")),
            Self::Service => ray(
                "RayService",
                "s",
                &json!({
                    "rayClusterConfig": cluster_spec(1),
                    "serveConfigV2": "applications:\n- name: one\n",
                    "rayClusterDeletionDelaySeconds": 5,
                }),
            ),
            Self::Wrapper => json!({
                "apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper",
                "metadata": {"name": "w", "namespace": "ns"},
                "spec": {"components": [{"template": batch_job()}, {"template": ray("RayCluster", "inner", &cluster_spec(1))}]},
            }),
        }
    }

    /// What is wrong at rest: `disturbance` says whether the object is suspended or gone.
    pub(super) fn faults_at_rest(self, world: &OperatorWorld, last: Disturbance) -> Vec<String> {
        let mut found: Vec<String> = world.api.violations.iter().cloned().collect();
        found.extend(submitted_twice(world));
        let pods = world.api.of_kind("Pod").count();
        let state = self.state(world.parent());
        match last {
            Disturbance::Delete => {
                let left =
                    world.api.objects.keys().map(|id| format!("{} {} is left", id.kind, id.key));
                found.extend(left);
            }
            Disturbance::Suspend => {
                if state != self.suspended() && state != self.settled() {
                    found.push(format!("suspended, it is {state:?}"));
                }
                // A RayJob that ended before keeps nothing; a cluster that is suspended has no pods.
                if pods > 0 {
                    found.push(format!("{pods} pods of a suspended object"));
                }
            }
            Disturbance::Nothing | Disturbance::HeadDies => {
                // A submitter that ended leaves nothing to tell the end of the job from, once the head is gone. One beside the
                // head ends with it.
                let may_fail = matches!(self, Self::SubmittedJob | Self::SidecarJob)
                    && last == Disturbance::HeadDies;
                if state != self.settled() && !(may_fail && state == "Failed") {
                    found.push(format!("at rest it is {state:?}"));
                }
                if pods != self.pods() {
                    found.push(format!("{pods} pods at rest"));
                }
                found.extend(self.outdated_pods(world));
            }
        }
        found
    }

    /// Changes the spec of the object, if that is part of its life. Whether it is so is the answer.
    pub(super) fn upgrade(self, world: &mut OperatorWorld) -> bool {
        if self != Self::UpgradedCluster {
            return false;
        }
        let parent = world.parent.clone();
        world.api.change(&parent, |object| {
            for group in ["/spec/headGroupSpec", "/spec/workerGroupSpecs/0"] {
                let image = format!("{group}/template/spec/containers/0/image");
                if let Some(image) = object.pointer_mut(&image) {
                    *image = json!(NEXT_IMAGE);
                }
            }
        });
        true
    }

    fn outdated_pods(self, world: &OperatorWorld) -> Vec<String> {
        let image = &world.parent()["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0];
        let image = &image["image"];
        let pods = world.api.of_kind("Pod").filter(|_| self == Self::UpgradedCluster);
        let outdated = pods.filter(|pod| pod["spec"]["containers"][0]["image"] != *image);
        outdated.map(|pod| format!("{} is of an earlier spec", pod["metadata"]["name"])).collect()
    }

    fn state(self, object: &Value) -> String {
        let status = &object["status"];
        let field = match self {
            Self::Cluster
            | Self::FullCluster
            | Self::HostsCluster
            | Self::StoredCluster
            | Self::UpgradedCluster => &status["state"],
            Self::HttpJob | Self::SubmittedJob | Self::SidecarJob => &status["jobDeploymentStatus"],
            Self::Wrapper => &status["phase"],
            Self::Service => return service_state(status),
        };
        field.as_str().unwrap_or_default().to_owned()
    }

    fn settled(self) -> &'static str {
        match self {
            Self::Cluster
            | Self::FullCluster
            | Self::HostsCluster
            | Self::StoredCluster
            | Self::UpgradedCluster => "ready",
            Self::HttpJob | Self::SubmittedJob | Self::SidecarJob => "Complete",
            Self::Service | Self::Wrapper => "Running",
        }
    }

    fn suspended(self) -> &'static str {
        match self {
            Self::Cluster
            | Self::FullCluster
            | Self::HostsCluster
            | Self::StoredCluster
            | Self::UpgradedCluster => "suspended",
            Self::HttpJob
            | Self::SubmittedJob
            | Self::SidecarJob
            | Self::Service
            | Self::Wrapper => "Suspended",
        }
    }

    /// The pods that run at rest.
    fn pods(self) -> usize {
        match self {
            Self::Cluster | Self::HostsCluster | Self::UpgradedCluster => 3,
            Self::FullCluster => 5,
            Self::StoredCluster | Self::Service => 2,
            // A RayJob takes its cluster away.
            Self::HttpJob | Self::SubmittedJob | Self::SidecarJob => 0,
            Self::Wrapper => 4,
        }
    }
}

fn service_state(status: &Value) -> String {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut suspended = conditions.filter(|it| it["type"] == "Suspended" && it["status"] == "True");
    match suspended.next() {
        Some(_) => "Suspended".to_owned(),
        None => status["serviceStatus"].as_str().unwrap_or_default().to_owned(),
    }
}

/// Jobs that were submitted again although a head of their first submission lived.
fn submitted_twice(world: &OperatorWorld) -> Vec<String> {
    let ledger = &world.heads.ledger;
    let lives = |api: &SimulatedApi, uid: &str| {
        api.log
            .iter()
            .rfind(|(_, object)| {
                object.as_ref().is_some_and(|object| object["metadata"]["uid"] == uid)
            })
            .is_some_and(|(_, object)| {
                object.as_ref().is_some_and(|it| it["status"]["phase"] == "Running")
            })
    };
    let mut found = Vec::new();
    for (index, entry) in ledger.iter().enumerate() {
        let earlier = ledger.iter().take(index).find(|it| it.id == entry.id);
        if let Some(earlier) = earlier
            && lives(&world.api, &earlier.head)
        {
            found.push(format!(
                "{} was submitted to {} and to {}",
                entry.id, earlier.head, entry.head
            ));
        }
    }
    found
}

/// An object of Ray's API.
pub(super) fn ray(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "ray.io/v1", "kind": kind,
        "metadata": {"name": name, "namespace": "ns"}, "spec": spec,
    })
}

fn template(name: &str) -> Value {
    json!({"spec": {"containers": [{"name": name, "image": "ray"}]}})
}

/// The spec of a RayCluster with so many workers.
pub(super) fn cluster_spec(workers: u32) -> Value {
    json!({
        "rayVersion": "2.53.0",
        "headGroupSpec": {"rayStartParams": {}, "template": template("head")},
        "workerGroupSpecs": [{
            "groupName": "workers", "replicas": workers, "minReplicas": 0, "maxReplicas": 5,
            "rayStartParams": {}, "template": template("worker"),
        }],
    })
}

fn full_spec() -> Value {
    let mut spec = cluster_spec(2);
    spec["enableInTreeAutoscaling"] = json!(true);
    spec["authOptions"] = json!({"mode": "token"});
    spec["headGroupSpec"]["enableIngress"] = json!(true);
    spec["workerGroupSpecs"][0]["numOfHosts"] = json!(2);
    spec
}

fn job_spec(mode: &str) -> Value {
    json!({
        "submissionMode": mode, "entrypoint": "python main.py",
        "shutdownAfterJobFinishes": true, "rayClusterSpec": cluster_spec(1),
    })
}

fn batch_job() -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "batch"},
        "spec": {"parallelism": 2, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "main"}],
        }}},
    })
}
