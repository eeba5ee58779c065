//! Objects that are operated, and what happens in their lives.

use ray::security::{ClusterPlatform, SecurityConfig, SecurityFacts, SecuritySettings};
use serde_json::{Value, json};

use super::{
    environment::{FAILS_ALWAYS, FAILS_ONCE, IS_STUCK},
    faults::FaultPoint,
    specs::{
        batch_job, cluster_spec, cluster_with, cron_job, deletion_rules, full_spec,
        incremental_upgrade, job_with, ray, service_with, wrapper_of,
    },
    world::SharedWorld,
};

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
    /// One with pods that are made again when its spec changes, which it does once; also with a head of an official operator.
    UpgradedCluster,
    /// One with certificates, NetworkPolicies and Ingresses.
    SecuredCluster,
    /// A RayJob that the agent submits.
    HttpJob,
    /// A RayJob that a Job submits.
    SubmittedJob,
    /// A RayJob that a container beside the head submits.
    SidecarJob,
    /// A RayJob with another attempt after its first job has failed.
    RetriedJob,
    /// A RayJob that its user submits.
    InteractiveJob,
    /// A RayJob with rules of what goes when.
    RuledJob,
    /// A RayCronJob.
    CronJob,
    /// A RayService.
    Service,
    /// One that gets another cluster when its spec changes, which it does once.
    UpgradedService,
    /// A RayService with another cluster after such a change, to which traffic moves step by step.
    IncrementalService,
    /// An AppWrapper with a Job and a RayCluster.
    Wrapper,
    /// One with pods that fail at their first attempt.
    ResetWrapper,
    /// One with pods that fail, which keeps its components for a while.
    FailedWrapper,
    /// One with pods that go only if they are forced to.
    StuckWrapper,
    /// One with a RayJob.
    WrappedJob,
    /// A RayJob that takes longer than it may.
    TimedJob,
}

/// A part of the life of an object, with what follows it until nothing moves any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LifePart {
    /// The object was created.
    Begin,
    /// Until the object is at work, and no longer.
    BeginWork,
    /// So many seconds, and no longer.
    Wait(u64),
    /// The spec changes.
    Upgrade,
    /// The pods are those of an official operator.
    TakeOver,
    /// The user submits the job, and names it.
    NameJob,
    Suspend,
    /// Passed over by an object that is not suspended.
    Resume,
    /// Resumes, until the object is at work.
    ResumeWork,
    KillHeads,
    Delete,
}

impl OperatedObject {
    pub(super) const ALL: [Self; 22] = [
        Self::Cluster,
        Self::FullCluster,
        Self::HostsCluster,
        Self::StoredCluster,
        Self::UpgradedCluster,
        Self::SecuredCluster,
        Self::HttpJob,
        Self::SubmittedJob,
        Self::SidecarJob,
        Self::RetriedJob,
        Self::InteractiveJob,
        Self::RuledJob,
        Self::TimedJob,
        Self::CronJob,
        Self::Service,
        Self::UpgradedService,
        Self::IncrementalService,
        Self::Wrapper,
        Self::ResetWrapper,
        Self::FailedWrapper,
        Self::StuckWrapper,
        Self::WrappedJob,
    ];

    pub(super) fn object(self) -> Value {
        match self {
            Self::Cluster | Self::SecuredCluster => cluster_with(2, &json!({})),
            Self::FullCluster => ray("RayCluster", "c", &full_spec()),
            Self::HostsCluster => {
                let mut spec = cluster_spec(1);
                spec["workerGroupSpecs"][0]["numOfHosts"] = json!(2);
                ray("RayCluster", "c", &spec)
            }
            Self::StoredCluster => {
                let redis = json!({"redisAddress": "redis:6379"});
                cluster_with(1, &json!({"gcsFaultToleranceOptions": redis}))
            }
            Self::UpgradedCluster => {
                cluster_with(2, &json!({"upgradeStrategy": {"type": "Recreate"}}))
            }
            Self::HttpJob => job_with("HTTPMode", &json!({})),
            Self::SubmittedJob => job_with("K8sJobMode", &json!({})),
            Self::SidecarJob => job_with("SidecarMode", &json!({})),
            Self::RetriedJob => job_with("K8sJobMode", &json!({"backoffLimit": 1})),
            Self::InteractiveJob => job_with("InteractiveMode", &json!({"entrypoint": null})),
            Self::RuledJob => job_with("HTTPMode", &deletion_rules()),
            Self::TimedJob => job_with("HTTPMode", &json!({"activeDeadlineSeconds": 4})),
            Self::CronJob => cron_job(),
            Self::Service | Self::UpgradedService => service_with(&json!({})),
            Self::IncrementalService => service_with(&incremental_upgrade()),
            Self::Wrapper => {
                let cluster = ray("RayCluster", "inner", &cluster_spec(1));
                wrapper_of(&[batch_job(None), cluster], &[])
            }
            Self::WrappedJob => wrapper_of(&[job_with("HTTPMode", &json!({}))], &[]),
            Self::ResetWrapper => {
                let periods =
                    [("failureGracePeriodDuration", "5s"), ("retryPausePeriodDuration", "8s")];
                wrapper_of(&[batch_job(Some(FAILS_ONCE))], &periods)
            }
            Self::FailedWrapper => {
                let periods = [
                    ("failureGracePeriodDuration", "5s"),
                    ("retryLimit", "0"),
                    ("deletionOnFailureGracePeriodDuration", "6s"),
                ];
                wrapper_of(&[batch_job(Some(FAILS_ALWAYS))], &periods)
            }
            Self::StuckWrapper => {
                let periods = [("forcefulDeletionGracePeriodDuration", "6s")];
                wrapper_of(&[batch_job(Some(IS_STUCK))], &periods)
            }
        }
    }

    /// A world that has the object, and nothing else yet.
    pub(super) fn world(self, plan: Option<FaultPoint>) -> SharedWorld {
        let world = SharedWorld::new(self.object(), plan);
        {
            let mut world = world.lock();
            world.heads.fails_first = self == Self::RetriedJob;
            if self == Self::SecuredCluster {
                world.settings.ray.security = Some(security());
            }
        }
        world
    }

    /// Lives of the object. Together they have every state of it, in which it is suspended and deleted.
    pub(super) fn lives(self) -> &'static [&'static [LifePart]] {
        use LifePart::{
            Begin, BeginWork, Delete, KillHeads, NameJob, Resume, ResumeWork, Suspend, TakeOver,
            Upgrade, Wait,
        };
        match self {
            Self::UpgradedCluster => &[
                &[Begin, Upgrade, Resume, Delete],
                &[Begin, TakeOver, Upgrade, Resume, Delete],
                &[Begin, KillHeads, Upgrade, Resume, Delete],
            ],
            Self::UpgradedService | Self::IncrementalService => &[
                &[Begin, Resume, Upgrade, Suspend, Resume, Delete],
                &[Begin, Resume, Upgrade, KillHeads, Resume, Delete],
            ],
            Self::Cluster
            | Self::FullCluster
            | Self::HostsCluster
            | Self::StoredCluster
            | Self::SecuredCluster
            | Self::Service
            | Self::Wrapper => {
                &[&[Begin, Suspend, Resume, Delete], &[Begin, KillHeads, Resume, Delete]]
            }
            Self::HttpJob | Self::SubmittedJob | Self::SidecarJob | Self::RetriedJob => &[
                &[BeginWork, Suspend, ResumeWork, KillHeads, Resume, Delete],
                &[BeginWork, Delete],
            ],
            Self::InteractiveJob => &[
                &[Begin, Suspend, Resume, NameJob, Resume, Delete],
                &[Begin, KillHeads, Resume, NameJob, Resume, Delete],
            ],
            Self::RuledJob => &[&[Begin, Resume, Delete], &[BeginWork, KillHeads, Resume, Delete]],
            Self::TimedJob => &[
                &[Begin, Resume, Delete],
                &[Wait(2), Suspend, Resume, Delete],
                &[Wait(2), KillHeads, Resume, Delete],
            ],
            Self::WrappedJob => &[
                &[Begin, Resume, Delete],
                &[Wait(4), Suspend, Resume, Delete],
                &[Wait(4), KillHeads, Resume, Delete],
            ],
            Self::CronJob => {
                &[&[Wait(75), Suspend, Delete], &[Wait(62), Delete], &[Wait(62), KillHeads, Delete]]
            }
            // Wrapped Jobs have no head.
            Self::ResetWrapper | Self::FailedWrapper | Self::StuckWrapper => {
                &[&[Begin, Suspend, Resume, Delete]]
            }
        }
    }
}

fn security() -> SecuritySettings {
    let config = SecurityConfig {
        oauth: false,
        mtls: true,
        ingress_domain: "example.com".to_owned(),
        cert_generator_image: "certs".to_owned(),
        oauth_proxy_image: String::new(),
    };
    let facts = SecurityFacts {
        platform: ClusterPlatform::Kubernetes,
        operator_namespaces: vec!["ray-system".to_owned()],
        agent_namespace: "sluice".to_owned(),
    };
    SecuritySettings { config, facts }
}
