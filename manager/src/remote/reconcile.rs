//! What the supervisor does for a MultiKueueCluster (docs/reference/multikueue.md §1.2). Pure.
//!
//! An existing MultiKueueCluster has a task, whether or not its worker can be reached: the task reports the status. A deleted
//! one keeps its connection until no object of this manager is left on the worker, for a limited time; then its task ends.
//! While a task is ending nothing is decided; the supervisor decides again after its end.

use std::time::{Duration, Instant};

use crds::v1beta2::{ClusterSource, MultiKueueCluster};

use super::{
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
    /// The MultiKueueCluster was deleted. The task runs with its last target until this time.
    Retiring(TargetConnection, Instant),
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
    /// Let the task run until this time.
    Retire(Instant),
    /// End the task.
    End,
}

/// When the task of a deleted MultiKueueCluster ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retirement {
    pub(super) now: Instant,
    /// The maximum time after the deletion.
    pub(super) keep_for: Duration,
    /// No object of this manager is left on the worker.
    pub(super) clean: bool,
}

/// The next step for one MultiKueueCluster. `secret` looks up a Secret by name.
pub(super) fn reconcile<'a>(
    state: &TaskState,
    cluster: Option<&MultiKueueCluster>,
    secret: impl Fn(&str) -> Option<&'a KubeconfigSecret>,
    retirement: Retirement,
) -> SupervisorStep {
    let Retirement { now, keep_for, clean } = retirement;
    let registered = cluster.filter(|one| one.metadata.deletion_timestamp.is_none());
    let target = registered.map(|one| target(one, secret));
    match (state, target) {
        (TaskState::Ending, _) | (TaskState::None, None) => SupervisorStep::Keep,
        (TaskState::Running(current), Some(target)) if *current == target => SupervisorStep::Keep,
        (_, Some(target)) => SupervisorStep::Update(target),
        (TaskState::Running(TargetConnection::Refuse(_)), None) => SupervisorStep::End,
        (TaskState::Running(_) | TaskState::Retiring(..), None) if clean => SupervisorStep::End,
        (TaskState::Running(TargetConnection::Connect { .. }), None) => {
            SupervisorStep::Retire(now + keep_for)
        }
        (TaskState::Retiring(_, until), None) if *until <= now => SupervisorStep::End,
        (TaskState::Retiring(..), None) => SupervisorStep::Keep,
    }
}

fn target<'a>(
    cluster: &MultiKueueCluster,
    secret: impl Fn(&str) -> Option<&'a KubeconfigSecret>,
) -> TargetConnection {
    match fingerprint(&cluster.spec.cluster_source, secret) {
        Ok((secret, fingerprint)) => {
            let registration = cluster.metadata.uid.as_deref().map(Into::into);
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

    const KEEP_FOR: Duration = Duration::from_secs(60);

    fn cluster(source: &Value) -> MultiKueueCluster {
        let object = json!({ "metadata": { "name": "east" }, "spec": { "clusterSource": source } });
        serde_json::from_value(object).expect("a cluster")
    }

    fn by_secret() -> MultiKueueCluster {
        cluster(&json!({ "kubeConfig": { "locationType": "Secret", "location": "s" } }))
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
        cluster: Option<&MultiKueueCluster>,
        secret: Option<&KubeconfigSecret>,
        now: Instant,
    ) -> SupervisorStep {
        let retirement = Retirement { now, keep_for: KEEP_FOR, clean: false };
        reconcile(state, cluster, |name| secret.filter(|_| name == "s"), retirement)
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
            let cluster = cluster(&source);
            let step = step(&TaskState::None, Some(&cluster), secret, Instant::now());
            assert_eq!(step, SupervisorStep::Update(target));
        }
    }

    #[test]
    fn a_task_gets_only_changed_targets() {
        let now = Instant::now();
        let (cluster, a, b) =
            (by_secret(), KubeconfigSecret::with(Some("a")), KubeconfigSecret::with(Some("b")));
        let runs = TaskState::Running(connect("a"));
        let retires = TaskState::Retiring(connect("a"), now);
        let refused = TaskState::Running(no_secret());
        for (state, secret, expected) in [
            (&runs, Some(&a), SupervisorStep::Keep),
            (&runs, Some(&b), SupervisorStep::Update(connect("b"))),
            (&runs, None, SupervisorStep::Update(no_secret())),
            (&refused, None, SupervisorStep::Keep),
            (&refused, Some(&a), SupervisorStep::Update(connect("a"))),
            (&retires, Some(&a), SupervisorStep::Update(connect("a"))),
            (&TaskState::Ending, Some(&a), SupervisorStep::Keep),
        ] {
            assert_eq!(step(state, Some(&cluster), secret, now), expected, "{state:?}");
        }
    }

    #[test]
    fn a_recreated_cluster_object_is_a_changed_target() {
        let (mut cluster, secret) = (by_secret(), KubeconfigSecret::with(Some("a")));
        cluster.metadata.uid = Some("again".to_owned());
        let step =
            step(&TaskState::Running(connect("a")), Some(&cluster), Some(&secret), Instant::now());
        let SupervisorStep::Update(TargetConnection::Connect { registration, .. }) = step else {
            panic!("{step:?}")
        };
        assert_eq!(registration.as_deref(), Some("again"));
    }

    #[test]
    fn a_connection_outlives_its_cluster_object_for_a_limited_time() {
        let now = Instant::now();
        let until = now + KEEP_FOR;
        let retires = TaskState::Retiring(connect("a"), until);
        for (state, at, expected) in [
            (&TaskState::None, now, SupervisorStep::Keep),
            (&TaskState::Running(connect("a")), now, SupervisorStep::Retire(until)),
            (&retires, until - Duration::from_millis(1), SupervisorStep::Keep),
            (&retires, until, SupervisorStep::End),
            (&TaskState::Ending, until, SupervisorStep::Keep),
            // Without a connection there is nothing to keep.
            (&TaskState::Running(no_secret()), now, SupervisorStep::End),
        ] {
            assert_eq!(step(state, None, None, at), expected, "{state:?}");
        }
    }

    #[test]
    fn a_connection_to_a_clean_worker_ends_with_its_cluster_object() {
        let now = Instant::now();
        let (cluster, secret) = (by_secret(), KubeconfigSecret::with(Some("a")));
        let retirement = Retirement { now, keep_for: KEEP_FOR, clean: true };
        let step =
            |state: &TaskState, cluster| reconcile(state, cluster, |_| Some(&secret), retirement);
        let (runs, retires) =
            (TaskState::Running(connect("a")), TaskState::Retiring(connect("a"), now + KEEP_FOR));
        assert_eq!(step(&runs, None), SupervisorStep::End);
        assert_eq!(step(&retires, None), SupervisorStep::End);
        assert_eq!(step(&runs, Some(&cluster)), SupervisorStep::Keep, "the object exists");
        assert_eq!(
            step(&retires, Some(&cluster)),
            SupervisorStep::Update(connect("a")),
            "the object exists again"
        );
    }

    #[test]
    fn a_cluster_object_that_is_being_deleted_counts_as_deleted() {
        let now = Instant::now();
        let mut cluster = by_secret();
        let deleted = serde_json::from_value(json!("2026-01-01T00:00:00Z")).expect("a time");
        cluster.metadata.deletion_timestamp = Some(deleted);
        let state = TaskState::Running(connect("a"));
        let secret = KubeconfigSecret::with(Some("b"));
        let expected = SupervisorStep::Retire(now + KEEP_FOR);
        assert_eq!(step(&state, Some(&cluster), Some(&secret), now), expected);
    }
}
