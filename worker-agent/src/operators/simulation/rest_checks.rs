//! What must be true of an object once nothing moves any more.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{faults::Disturbance, scenario::OperatedObject, world::OperatorWorld};

impl OperatedObject {
    /// What is wrong at rest, in view of what the object is asked to be.
    pub(super) fn faults_at_rest(self, world: &OperatorWorld) -> Vec<String> {
        let mut found: Vec<String> = world.api.violations.iter().cloned().collect();
        found.extend(world.heads.violations.iter().cloned());
        let parent = world.parent();
        let is_deleted = world.happened.contains(&Disturbance::Delete)
            || self == Self::RuledJob && parent.is_null();
        if is_deleted {
            let left = world.api.objects.keys().map(|id| format!("{} {} is left", id.kind, id.key));
            found.extend(left);
        } else if parent["spec"]["suspend"] == true {
            found.extend(self.faults_if_suspended(world));
        } else {
            found.extend(self.faults_if_settled(world));
        }
        if !world.happened.contains(&Disturbance::Delete) {
            found.extend(repeated_schedule(world));
        }
        found
    }

    fn faults_if_suspended(self, world: &OperatorWorld) -> Vec<String> {
        let mut found = Vec::new();
        let state = self.state(world.parent());
        // RayJobs with deletion rules cannot be suspended, as with the official operator.
        if self == Self::RuledJob {
            return found;
        }
        // An object that has ended stays so.
        if state != self.suspended() && !self.is_settled(world, &state) {
            found.push(format!("suspended, it is {state:?}"));
        }
        let pods = world.api.of_kind("Pod").count();
        if pods > 0 {
            found.push(format!("{pods} pods of a suspended object"));
        }
        found
    }

    fn faults_if_settled(self, world: &OperatorWorld) -> Vec<String> {
        let mut found = Vec::new();
        let state = self.state(world.parent());
        if self == Self::RuledJob && state == "ValidationFailed" {
            return found;
        }
        if !self.is_settled(world, &state) {
            found.push(format!("at rest it is {state:?}"));
        }
        let pods = world.api.of_kind("Pod").count();
        let wanted = if state == "Waiting" { 2 } else { self.pods() };
        if pods != wanted {
            found.push(format!("{pods} pods at rest"));
        }
        found.extend(self.outdated_pods(world));
        found
    }

    fn is_settled(self, world: &OperatorWorld, state: &str) -> bool {
        // A submitter that ended leaves nothing to tell the end of the job from, once the head is gone. One beside the head ends
        // with it.
        let loses_submitter = matches!(
            self,
            Self::SubmittedJob | Self::SidecarJob | Self::RetriedJob | Self::InteractiveJob
        );
        let may_fail = loses_submitter && world.happened.contains(&Disturbance::HeadDies);
        let waits = self == Self::InteractiveJob && !world.is_job_named();
        match state {
            "Failed" if may_fail => true,
            "Waiting" if waits => true,
            state => state == self.settled() && !waits,
        }
    }

    fn outdated_pods(self, world: &OperatorWorld) -> Vec<String> {
        let spec = &world.parent()["spec"];
        let head = match self {
            Self::UpgradedCluster => &spec["headGroupSpec"],
            Self::UpgradedService | Self::IncrementalService => {
                &spec["rayClusterConfig"]["headGroupSpec"]
            }
            _ => return Vec::new(),
        };
        let image = &head["template"]["spec"]["containers"][0]["image"];
        let pods = world.api.of_kind("Pod");
        let outdated = pods.filter(|pod| pod["spec"]["containers"][0]["image"] != *image);
        outdated.map(|pod| format!("{} is of an earlier spec", pod["metadata"]["name"])).collect()
    }

    pub(super) fn state(self, object: &Value) -> String {
        let status = &object["status"];
        let field = match object["kind"].as_str().unwrap_or_default() {
            "RayCluster" => &status["state"],
            "RayJob" => &status["jobDeploymentStatus"],
            "AppWrapper" => &status["phase"],
            "RayService" => return service_state(status),
            // A RayCronJob has no state.
            "RayCronJob" => return self.settled().to_owned(),
            _ => &Value::Null,
        };
        field.as_str().unwrap_or_default().to_owned()
    }

    fn settled(self) -> &'static str {
        match self {
            Self::Cluster
            | Self::FullCluster
            | Self::HostsCluster
            | Self::StoredCluster
            | Self::UpgradedCluster
            | Self::SecuredCluster => "ready",
            Self::HttpJob
            | Self::SubmittedJob
            | Self::SidecarJob
            | Self::RetriedJob
            | Self::InteractiveJob
            | Self::RuledJob => "Complete",
            Self::TimedJob | Self::FailedWrapper => "Failed",
            Self::WrappedJob => "Succeeded",
            _ => "Running",
        }
    }

    fn suspended(self) -> &'static str {
        if self.settled() == "ready" { "suspended" } else { "Suspended" }
    }

    /// The pods that run at rest.
    fn pods(self) -> usize {
        match self {
            Self::Cluster | Self::HostsCluster | Self::UpgradedCluster | Self::SecuredCluster => 3,
            Self::FullCluster => 5,
            Self::StoredCluster
            | Self::Service
            | Self::UpgradedService
            | Self::IncrementalService
            | Self::ResetWrapper
            | Self::StuckWrapper => 2,
            // These take their objects away.
            Self::HttpJob
            | Self::SubmittedJob
            | Self::SidecarJob
            | Self::RetriedJob
            | Self::InteractiveJob
            | Self::RuledJob
            | Self::TimedJob
            | Self::CronJob
            | Self::FailedWrapper
            | Self::WrappedJob => 0,
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

/// Times of a schedule with more than one RayJob. An agent may make one after its RayCronJob is gone; the garbage collector removes it.
fn repeated_schedule(world: &OperatorWorld) -> Vec<String> {
    let made = world.api.log.iter().filter_map(|(_, object)| object.as_ref());
    let made = made.filter_map(|object| {
        let time = object["metadata"]["annotations"]["ray.io/cronjob-scheduled-timestamp"].as_str();
        (object["kind"] == "RayJob").then_some((time?, object["metadata"]["uid"].as_str()?))
    });
    let made: BTreeSet<(&str, &str)> = made.collect();
    let times: BTreeSet<&str> = made.iter().map(|(time, _)| *time).collect();
    let repeated = made.len() - times.len();
    (repeated > 0)
        .then(|| format!("{repeated} RayJobs too many of a schedule"))
        .into_iter()
        .collect()
}
