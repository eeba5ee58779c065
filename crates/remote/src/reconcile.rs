//! What the supervisor does for a worker (docs/reference/multikueue.md §1.2). Pure.
//!
//! A worker that is to be connected has a task, whether or not it can be reached: the task reports the status. A task
//! for a connection that is only kept goes on with its last target, and ends if it has none. While a task is ending nothing
//! is decided; the supervisor decides again after its end.

use std::fmt;

use cluster::control::ConnectionPlan;
use crds::v1beta2::ClusterSource;

use crate::{
    file_watch::FileState,
    kubeconfig_refused::KubeconfigRefused,
    kubeconfig_secret::{Fingerprint, KubeconfigSecret},
};

/// The connection that a MultiKueueCluster asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TargetConnection {
    /// A connection with this kubeconfig.
    Connect {
        /// The kubeconfig.
        kubeconfig: KubeconfigVersion,
        /// The uid of the MultiKueueCluster. The claim of a recreated MultiKueueCluster has to be written again.
        registration: Option<Box<str>>,
    },
    /// No connection, for this reason.
    Refuse(KubeconfigRefused),
}

/// A kubeconfig as it was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KubeconfigVersion {
    /// Where it is.
    pub(super) location: KubeconfigLocation,
    /// Its hash.
    pub(super) fingerprint: Fingerprint,
}

/// Where a kubeconfig is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KubeconfigLocation {
    /// In the Secret of this name.
    Secret(Box<str>),
    /// In the file of this path.
    File(Box<str>),
    /// Made from the ClusterProfile of this name and a credential of its provider.
    Profile(Box<str>),
}

impl fmt::Display for KubeconfigLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret(name) => write!(f, "secret \"{name}\""),
            Self::File(path) => write!(f, "file {path:?}"),
            Self::Profile(name) => write!(f, "ClusterProfile \"{name}\""),
        }
    }
}

/// The kubeconfigs that exist.
///
/// Contract: `secret` is the Secret of a name, none if it does not exist; `file` is what the file of a path was read as, and
/// `profile` what the ClusterProfile of a name gives access to, both none as long as that is not known.
///
/// ```ignore
/// let found = FoundKubeconfigs { secret: &|name| secrets.get(name), file: &|path| files.get(path), profile: &|_| None };
/// ```
pub(super) struct FoundKubeconfigs<'a> {
    pub(super) secret: &'a dyn Fn(&str) -> Option<&'a KubeconfigSecret>,
    pub(super) file: &'a dyn Fn(&str) -> Option<FileState>,
    pub(super) profile: &'a dyn Fn(&str) -> Option<FileState>,
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

/// The next step for one worker.
pub(super) fn reconcile(
    state: &TaskState,
    plan: Option<&ConnectionPlan>,
    found: &FoundKubeconfigs<'_>,
) -> SupervisorStep {
    let Ok(target) = wanted_target(plan, found) else {
        return SupervisorStep::Keep;
    };
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

/// The file of a kubeconfig was not read yet, or the ClusterProfiles were not listed.
struct NotReadYet;

/// The target that a plan asks for, if any.
fn wanted_target(
    plan: Option<&ConnectionPlan>,
    found: &FoundKubeconfigs<'_>,
) -> Result<Option<TargetConnection>, NotReadYet> {
    let Some(registration) = plan.and_then(|plan| plan.target.as_ref()) else {
        return Ok(None);
    };
    let kubeconfig = match location(&registration.source) {
        Ok(location) => fingerprint(&location, found)?
            .map(|fingerprint| KubeconfigVersion { location, fingerprint }),
        Err(refused) => Err(refused),
    };
    Ok(Some(match kubeconfig {
        Ok(kubeconfig) => {
            let registration = registration.uid.clone();
            TargetConnection::Connect { kubeconfig, registration }
        }
        Err(refused) => TargetConnection::Refuse(refused),
    }))
}

/// Where the kubeconfig of a source is.
pub(super) fn location(source: &ClusterSource) -> Result<KubeconfigLocation, KubeconfigRefused> {
    if let Some(profile) = &source.cluster_profile_ref {
        return Ok(KubeconfigLocation::Profile(profile.name.as_str().into()));
    }
    let config = source.kube_config.as_ref().ok_or(KubeconfigRefused::NoReference)?;
    let location = config.location.as_str().into();
    Ok(match config.location_type.as_str() {
        "Path" => KubeconfigLocation::File(location),
        _ => KubeconfigLocation::Secret(location),
    })
}

fn fingerprint(
    location: &KubeconfigLocation,
    found: &FoundKubeconfigs<'_>,
) -> Result<FileState, NotReadYet> {
    match location {
        KubeconfigLocation::File(path) => (found.file)(path).ok_or(NotReadYet),
        KubeconfigLocation::Profile(name) => (found.profile)(name).ok_or(NotReadYet),
        KubeconfigLocation::Secret(name) => Ok(match (found.secret)(name) {
            None => Err(KubeconfigRefused::NoSecret(name.clone())),
            Some(secret) => secret.kubeconfig.ok_or(KubeconfigRefused::NoKey(name.clone())),
        }),
    }
}

#[cfg(test)]
mod tests {
    use cluster::control::WorkerRegistration;
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
        let location = KubeconfigLocation::Secret("s".into());
        let kubeconfig = KubeconfigVersion { location, fingerprint };
        TargetConnection::Connect { kubeconfig, registration: None }
    }

    fn no_secret() -> TargetConnection {
        TargetConnection::Refuse(KubeconfigRefused::NoSecret("s".into()))
    }

    fn step(
        state: &TaskState,
        plan: Option<&ConnectionPlan>,
        secret: Option<&KubeconfigSecret>,
    ) -> SupervisorStep {
        let secret = |name: &str| secret.filter(|_| name == "s");
        reconcile(
            state,
            plan,
            &FoundKubeconfigs {
                secret: &secret,
                file: &|_| None,
                profile: &|_| Some(Err(KubeconfigRefused::ClusterProfile)),
            },
        )
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
    fn a_file_is_a_target_once_it_was_read() {
        let source = json!({ "kubeConfig": { "locationType": "Path", "location": "/k/east" } });
        let plan = plan(&source);
        let step = |state: &TaskState, read: Option<FileState>| {
            let file = |path: &str| read.clone().filter(|_| path == "/k/east");
            reconcile(
                state,
                Some(&plan),
                &FoundKubeconfigs { secret: &|_| None, file: &file, profile: &|_| None },
            )
        };
        let (location, fingerprint) =
            (KubeconfigLocation::File("/k/east".into()), Fingerprint::of(b"a"));
        let kubeconfig = KubeconfigVersion { location, fingerprint };
        let target = TargetConnection::Connect { kubeconfig, registration: None };
        let absent = KubeconfigRefused::NoFile("/k/east".into());
        let refused = TargetConnection::Refuse(absent.clone());
        let runs = TaskState::Running(target.clone());
        assert_eq!(step(&TaskState::None, None), SupervisorStep::Keep);
        // A leader that has just begun has read nothing yet.
        assert_eq!(step(&runs, None), SupervisorStep::Keep);
        assert_eq!(step(&TaskState::None, Some(Ok(fingerprint))), SupervisorStep::Update(target));
        assert_eq!(step(&runs, Some(Ok(fingerprint))), SupervisorStep::Keep);
        assert_eq!(step(&runs, Some(Err(absent))), SupervisorStep::Update(refused));
    }

    #[test]
    fn a_profile_is_a_target_once_the_profiles_were_listed() {
        let plan = plan(&json!({ "clusterProfileRef": { "name": "east" } }));
        let step = |found: Option<FileState>| {
            let profile = |name: &str| found.clone().filter(|_| name == "east");
            let found = FoundKubeconfigs { secret: &|_| None, file: &|_| None, profile: &profile };
            reconcile(&TaskState::None, Some(&plan), &found)
        };
        assert_eq!(step(None), SupervisorStep::Keep);
        let fingerprint = Fingerprint::of(b"a");
        let location = KubeconfigLocation::Profile("east".into());
        let kubeconfig = KubeconfigVersion { location, fingerprint };
        let target = TargetConnection::Connect { kubeconfig, registration: None };
        assert_eq!(step(Some(Ok(fingerprint))), SupervisorStep::Update(target));
        let absent = KubeconfigRefused::NoProfile("east".into());
        let refused = SupervisorStep::Update(TargetConnection::Refuse(absent.clone()));
        assert_eq!(step(Some(Err(absent))), refused);
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
