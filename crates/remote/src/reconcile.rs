//! What the supervisor does for a worker (docs/reference/multikueue.md §1.2). Pure.
//!
//! A worker that is to be connected has a task, whether or not it can be reached: the task reports the status. A task
//! for a connection that is only kept goes on with its last target, and ends if it has none. While a task is ending nothing
//! is decided; the supervisor decides again after its end.

use cluster::control::{ConnectionPlan, WorkerRegistration};
use crds::v1beta2::ClusterSource;

use crate::{
    kubeconfig_refused::KubeconfigRefused,
    kubeconfig_secret::{Fingerprint, KubeconfigSecret},
};

/// The connection that a MultiKueueCluster asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TargetConnection {
    /// A connection with this kubeconfig.
    Connect {
        /// The Secret with the kubeconfig.
        secret: Box<str>,
        /// The hash of the kubeconfig.
        fingerprint: Fingerprint,
        /// The uid of the MultiKueueCluster. The claim of a recreated MultiKueueCluster has to be written again.
        registration: Option<Box<str>>,
    },
    /// No connection, for this reason.
    Refuse(KubeconfigRefused),
}

/// The state of a worker's task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum TaskState {
    /// There is no task.
    #[default]
    None,
    /// The task runs with this target.
    Running(TargetConnection),
    /// The task was asked to end.
    Ending,
}

/// A step of the supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SupervisorStep {
    /// Nothing changes.
    Keep,
    /// Send the target to the task; start a task if there is none.
    Update(TargetConnection),
    /// End the task.
    End,
}

/// The next step for one worker. `secret` looks up a Secret by name.
pub(super) fn reconcile<'a>(
    state: &TaskState,
    plan: Option<&ConnectionPlan>,
    secret: impl Fn(&str) -> Option<&'a KubeconfigSecret>,
) -> SupervisorStep {
    let wanted = plan.and_then(|plan| plan.target.as_ref());
    let target = wanted.map(|registration| target(registration, secret));
    match (state, target) {
        (TaskState::Ending, _) | (TaskState::None, None) => SupervisorStep::Keep,
        (TaskState::Running(current), Some(target)) if *current == target => SupervisorStep::Keep,
        (_, Some(target)) => SupervisorStep::Update(target),
        // The plan asks for no new target: copies may remain there, and their status is still
        // reported.
        (TaskState::Running(TargetConnection::Connect { .. }), None) if plan.is_some() => {
            SupervisorStep::Keep
        }
        // Without a connection there is nothing to keep.
        (TaskState::Running(_), None) => SupervisorStep::End,
    }
}

fn target<'a>(
    registration: &WorkerRegistration,
    secret: impl Fn(&str) -> Option<&'a KubeconfigSecret>,
) -> TargetConnection {
    match fingerprint(&registration.source, secret) {
        Ok((secret, fingerprint)) => {
            let registration = registration.uid.clone();
            TargetConnection::Connect { secret, fingerprint, registration }
        }
        Err(refused) => TargetConnection::Refuse(refused),
    }
}

fn fingerprint<'a>(
    source: &ClusterSource,
    secret: impl Fn(&str) -> Option<&'a KubeconfigSecret>,
) -> Result<(Box<str>, Fingerprint), KubeconfigRefused> {
    if source.cluster_profile_ref.is_some() {
        return Err(KubeconfigRefused::ClusterProfile);
    }
    let Some(config) = &source.kube_config else {
        return Err(KubeconfigRefused::NoReference);
    };
    // Paths are not built yet (docs/reference/multikueue.md §2.9).
    if config.location_type == "Path" {
        return Err(KubeconfigRefused::Path);
    }
    let name: Box<str> = config.location.as_str().into();
    let Some(seen) = secret(&name) else {
        return Err(KubeconfigRefused::NoSecret(name));
    };
    match seen.kubeconfig {
        Some(fingerprint) => Ok((name, fingerprint)),
        None => Err(KubeconfigRefused::NoKey(name)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn plan(source: &Value) -> ConnectionPlan {
        let source = serde_json::from_value(source.clone()).expect("a source");
        ConnectionPlan { target: Some(WorkerRegistration { source, uid: None }), claim: None }
    }

    fn by_secret() -> ConnectionPlan {
        plan(&json!({ "kubeConfig": { "locationType": "Secret", "location": "s" } }))
    }

    fn connect(text: &str) -> TargetConnection {
        let fingerprint = Fingerprint::of(text.as_bytes());
        TargetConnection::Connect { secret: "s".into(), fingerprint, registration: None }
    }

    fn no_secret() -> TargetConnection {
        TargetConnection::Refuse(KubeconfigRefused::NoSecret("s".into()))
    }

    fn step(
        state: &TaskState,
        plan: Option<&ConnectionPlan>,
        secret: Option<&KubeconfigSecret>,
    ) -> SupervisorStep {
        reconcile(state, plan, |name| secret.filter(|_| name == "s"))
    }

    #[test]
    fn a_source_is_a_target_or_refused_with_a_reason() {
        let (full, empty) = (KubeconfigSecret::with(Some("a")), KubeconfigSecret::with(None));
        let kube_config =
            |kind: &str| json!({ "kubeConfig": { "locationType": kind, "location": "s" } });
        let refuse = TargetConnection::Refuse;
        let cases = [
            (kube_config("Secret"), Some(&full), connect("a")),
            (kube_config(""), Some(&full), connect("a")),
            (kube_config("Secret"), Some(&empty), refuse(KubeconfigRefused::NoKey("s".into()))),
            (kube_config("Secret"), None, no_secret()),
            (kube_config("Path"), Some(&full), refuse(KubeconfigRefused::Path)),
            (
                json!({ "clusterProfileRef": { "name": "p" } }),
                None,
                refuse(KubeconfigRefused::ClusterProfile),
            ),
            (json!({}), None, refuse(KubeconfigRefused::NoReference)),
        ];
        for (source, secret, target) in cases {
            let step = step(&TaskState::None, Some(&plan(&source)), secret);
            assert_eq!(step, SupervisorStep::Update(target));
        }
    }

    #[test]
    fn a_task_gets_only_changed_targets() {
        let (plan, a, b) =
            (by_secret(), KubeconfigSecret::with(Some("a")), KubeconfigSecret::with(Some("b")));
        let runs = TaskState::Running(connect("a"));
        let refused = TaskState::Running(no_secret());
        for (state, secret, expected) in [
            (&runs, Some(&a), SupervisorStep::Keep),
            (&runs, Some(&b), SupervisorStep::Update(connect("b"))),
            (&runs, None, SupervisorStep::Update(no_secret())),
            (&refused, None, SupervisorStep::Keep),
            (&refused, Some(&a), SupervisorStep::Update(connect("a"))),
            (&TaskState::Ending, Some(&a), SupervisorStep::Keep),
        ] {
            assert_eq!(step(state, Some(&plan), secret), expected, "{state:?}");
        }
    }

    #[test]
    fn a_recreated_cluster_object_is_a_changed_target() {
        let (mut plan, secret) = (by_secret(), KubeconfigSecret::with(Some("a")));
        plan.target.as_mut().expect("a target").uid = Some("again".into());
        let step = step(&TaskState::Running(connect("a")), Some(&plan), Some(&secret));
        let SupervisorStep::Update(TargetConnection::Connect { registration, .. }) = step else {
            panic!("{step:?}")
        };
        assert_eq!(registration.as_deref(), Some("again"));
    }

    #[test]
    fn a_connection_is_kept_as_it_is_until_its_plan_ends() {
        let secret = KubeconfigSecret::with(Some("b"));
        let keep = ConnectionPlan::default();
        for (state, plan, expected) in [
            (TaskState::None, Some(&keep), SupervisorStep::Keep),
            (TaskState::None, None, SupervisorStep::Keep),
            (TaskState::Running(connect("a")), Some(&keep), SupervisorStep::Keep),
            (TaskState::Running(connect("a")), None, SupervisorStep::End),
            (TaskState::Ending, None, SupervisorStep::Keep),
            // Without a connection there is nothing to keep.
            (TaskState::Running(no_secret()), Some(&keep), SupervisorStep::End),
            (TaskState::Running(no_secret()), None, SupervisorStep::End),
        ] {
            assert_eq!(step(&state, plan, Some(&secret)), expected, "{state:?} {plan:?}");
        }
    }
}
