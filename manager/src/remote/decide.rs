//! What is to be done for a MultiKueueCluster (docs/reference/multikueue.md §1.2). Pure.
//!
//! A cluster that is registered has a task, whether or not it can be reached: the task tells why not. One that is not
//! registered any more keeps its connection until nothing of ours is left there, for a while at most; then its task ends.
//! While a task ends nothing is done: whoever hears of its end decides again.

use std::time::{Duration, Instant};

use crds::v1beta2::{ClusterSource, MultiKueueCluster};

use super::{
    refused::Refused,
    secret::{Fingerprint, Seen},
};

/// What a worker's task is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A connection by this kubeconfig.
    Connect {
        /// The Secret that holds it.
        secret: Box<str>,
        /// Of the text.
        fingerprint: Fingerprint,
        /// The uid of the MultiKueueCluster: what is written on one is not on another of the same name.
        registration: Option<Box<str>>,
    },
    /// No connection.
    Refuse(Refused),
}

/// What is known of a worker's task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Known {
    /// There is none.
    #[default]
    None,
    /// It was told this last.
    Runs(Wanted),
    /// It goes on until then, as it was told last.
    Retires(Wanted, Instant),
    /// It was told to end.
    Ends,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    Keep,
    /// Tell its task, a new one if there is none.
    Tell(Wanted),
    /// Let the task go on until then.
    Retire(Instant),
    /// Tell it to end.
    End,
}

/// What decides how long a task goes on without its cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retirement {
    pub(super) now: Instant,
    /// No longer than this.
    pub(super) keep_for: Duration,
    /// Nothing is left to be done there.
    pub(super) clean: bool,
}

/// See the module. `secret` finds a Secret by its name.
pub(super) fn decide<'a>(
    known: &Known,
    cluster: Option<&MultiKueueCluster>,
    secret: impl Fn(&str) -> Option<&'a Seen>,
    retirement: Retirement,
) -> Step {
    let Retirement { now, keep_for, clean } = retirement;
    let registered = cluster.filter(|one| one.metadata.deletion_timestamp.is_none());
    let wanted = registered.map(|one| wanted(one, secret));
    match (known, wanted) {
        (Known::Ends, _) | (Known::None, None) => Step::Keep,
        (Known::Runs(told), Some(wanted)) if *told == wanted => Step::Keep,
        (_, Some(wanted)) => Step::Tell(wanted),
        (Known::Runs(Wanted::Refuse(_)), None) => Step::End,
        (Known::Runs(_) | Known::Retires(..), None) if clean => Step::End,
        (Known::Runs(Wanted::Connect { .. }), None) => Step::Retire(now + keep_for),
        (Known::Retires(_, until), None) if *until <= now => Step::End,
        (Known::Retires(..), None) => Step::Keep,
    }
}

fn wanted<'a>(cluster: &MultiKueueCluster, secret: impl Fn(&str) -> Option<&'a Seen>) -> Wanted {
    match fingerprint(&cluster.spec.cluster_source, secret) {
        Ok((secret, fingerprint)) => {
            let registration = cluster.metadata.uid.as_deref().map(Into::into);
            Wanted::Connect { secret, fingerprint, registration }
        }
        Err(refused) => Wanted::Refuse(refused),
    }
}

fn fingerprint<'a>(
    source: &ClusterSource,
    secret: impl Fn(&str) -> Option<&'a Seen>,
) -> Result<(Box<str>, Fingerprint), Refused> {
    if source.cluster_profile_ref.is_some() {
        return Err(Refused::ClusterProfile);
    }
    let Some(config) = &source.kube_config else {
        return Err(Refused::NoReference);
    };
    if config.location_type == "Path" {
        return Err(Refused::Path);
    }
    let name: Box<str> = config.location.as_str().into();
    let Some(seen) = secret(&name) else {
        return Err(Refused::NoSecret(name));
    };
    match seen.kubeconfig {
        Some(fingerprint) => Ok((name, fingerprint)),
        None => Err(Refused::NoKey(name)),
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

    fn connect(text: &str) -> Wanted {
        let fingerprint = Fingerprint::of(text.as_bytes());
        Wanted::Connect { secret: "s".into(), fingerprint, registration: None }
    }

    fn no_secret() -> Wanted {
        Wanted::Refuse(Refused::NoSecret("s".into()))
    }

    fn step(
        known: &Known,
        cluster: Option<&MultiKueueCluster>,
        secret: Option<&Seen>,
        now: Instant,
    ) -> Step {
        let retirement = Retirement { now, keep_for: KEEP_FOR, clean: false };
        decide(known, cluster, |name| secret.filter(|_| name == "s"), retirement)
    }

    #[test]
    fn a_source_is_connected_by_or_says_why_not() {
        let (full, empty) = (Seen::with(Some("a")), Seen::with(None));
        let kube_config =
            |kind: &str| json!({ "kubeConfig": { "locationType": kind, "location": "s" } });
        let refuse = Wanted::Refuse;
        let cases = [
            (kube_config("Secret"), Some(&full), connect("a")),
            (kube_config(""), Some(&full), connect("a")),
            (kube_config("Secret"), Some(&empty), refuse(Refused::NoKey("s".into()))),
            (kube_config("Secret"), None, no_secret()),
            (kube_config("Path"), Some(&full), refuse(Refused::Path)),
            (
                json!({ "clusterProfileRef": { "name": "p" } }),
                None,
                refuse(Refused::ClusterProfile),
            ),
            (json!({}), None, refuse(Refused::NoReference)),
        ];
        for (source, secret, wanted) in cases {
            let cluster = cluster(&source);
            let step = step(&Known::None, Some(&cluster), secret, Instant::now());
            assert_eq!(step, Step::Tell(wanted));
        }
    }

    #[test]
    fn a_task_is_told_what_is_new_to_it_and_nothing_else() {
        let now = Instant::now();
        let (cluster, a, b) = (by_secret(), Seen::with(Some("a")), Seen::with(Some("b")));
        let runs = Known::Runs(connect("a"));
        let retires = Known::Retires(connect("a"), now);
        let refused = Known::Runs(no_secret());
        for (known, secret, expected) in [
            (&runs, Some(&a), Step::Keep),
            (&runs, Some(&b), Step::Tell(connect("b"))),
            (&runs, None, Step::Tell(no_secret())),
            (&refused, None, Step::Keep),
            (&refused, Some(&a), Step::Tell(connect("a"))),
            (&retires, Some(&a), Step::Tell(connect("a"))),
            (&Known::Ends, Some(&a), Step::Keep),
        ] {
            assert_eq!(step(known, Some(&cluster), secret, now), expected, "{known:?}");
        }
    }

    #[test]
    fn a_task_is_told_of_a_registration_that_was_made_again() {
        let (mut cluster, secret) = (by_secret(), Seen::with(Some("a")));
        cluster.metadata.uid = Some("again".to_owned());
        let step = step(&Known::Runs(connect("a")), Some(&cluster), Some(&secret), Instant::now());
        let Step::Tell(Wanted::Connect { registration, .. }) = step else { panic!("{step:?}") };
        assert_eq!(registration.as_deref(), Some("again"));
    }

    #[test]
    fn a_connection_outlives_its_cluster_and_then_ends() {
        let now = Instant::now();
        let until = now + KEEP_FOR;
        let retires = Known::Retires(connect("a"), until);
        for (known, at, expected) in [
            (&Known::None, now, Step::Keep),
            (&Known::Runs(connect("a")), now, Step::Retire(until)),
            (&retires, until - Duration::from_millis(1), Step::Keep),
            (&retires, until, Step::End),
            (&Known::Ends, until, Step::Keep),
            // There is nothing to keep.
            (&Known::Runs(no_secret()), now, Step::End),
        ] {
            assert_eq!(step(known, None, None, at), expected, "{known:?}");
        }
    }

    #[test]
    fn a_connection_to_a_clean_cluster_ends_with_its_registration() {
        let now = Instant::now();
        let (cluster, secret) = (by_secret(), Seen::with(Some("a")));
        let retirement = Retirement { now, keep_for: KEEP_FOR, clean: true };
        let step = |known: &Known, cluster| decide(known, cluster, |_| Some(&secret), retirement);
        let (runs, retires) =
            (Known::Runs(connect("a")), Known::Retires(connect("a"), now + KEEP_FOR));
        assert_eq!(step(&runs, None), Step::End);
        assert_eq!(step(&retires, None), Step::End);
        assert_eq!(step(&runs, Some(&cluster)), Step::Keep, "it is registered");
        assert_eq!(step(&retires, Some(&cluster)), Step::Tell(connect("a")), "it is so again");
    }

    #[test]
    fn a_cluster_that_is_being_deleted_is_not_registered() {
        let now = Instant::now();
        let mut cluster = by_secret();
        let deleted = serde_json::from_value(json!("2026-01-01T00:00:00Z")).expect("a time");
        cluster.metadata.deletion_timestamp = Some(deleted);
        let known = Known::Runs(connect("a"));
        let secret = Seen::with(Some("b"));
        let expected = Step::Retire(now + KEEP_FOR);
        assert_eq!(step(&known, Some(&cluster), Some(&secret), now), expected);
    }
}
