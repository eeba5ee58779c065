//! Which registration of a worker cluster counts, where one cluster has several. Pure.
//!
//! Two connections to one cluster would each see what the other made there, and take it away: it bears our origin, and is
//! recorded as another's. So a cluster belongs to one registration, which is written on it before the cluster is used and
//! so outlasts restarts. Of two that it is written on, as after a copy by hand, the older one counts.

use std::{collections::BTreeMap, sync::Arc};

use crds::{names::annotations::CLUSTER_UID, v1beta2::MultiKueueCluster};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use parking_lot::{Mutex, MutexGuard};

/// All tasks of workers ask it. It is held for one question, and never while something is awaited.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedClaims(Arc<Mutex<Claims>>);

impl SharedClaims {
    /// For one question, or one piece of news.
    pub(super) fn lock(&self) -> MutexGuard<'_, Claims> {
        self.0.lock()
    }
}

/// What each registration has.
#[derive(Debug, Default)]
pub(super) struct Claims {
    of: BTreeMap<Box<str>, Claim>,
}

#[derive(Debug, Default)]
struct Claim {
    since: Option<Time>,
    /// The registration's own uid: one that was deleted and made again has nothing written on it.
    object: Option<String>,
    /// The cluster that it was last found to lead to.
    uid: Option<Box<str>>,
}

/// What a claim came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It stands, and is written already.
    Stands,
    /// It stands once it is written.
    Write,
    /// The cluster belongs to this registration.
    Another(Box<str>),
}

impl Claims {
    /// A registration as it is seen.
    pub(super) fn see(&mut self, name: &str, cluster: &MultiKueueCluster) {
        let claim = self.of.entry(name.into()).or_default();
        claim.since.clone_from(&cluster.metadata.creation_timestamp);
        if claim.object != cluster.metadata.uid {
            claim.object.clone_from(&cluster.metadata.uid);
            claim.uid = None;
        }
        let annotations = cluster.metadata.annotations.as_ref();
        if let Some(uid) = annotations.and_then(|all| all.get(CLUSTER_UID)) {
            claim.uid = Some(uid.as_str().into());
        }
    }

    /// Forgets registrations that are gone, and their connections with them.
    pub(super) fn keep(&mut self, there: impl Fn(&str) -> bool) {
        self.of.retain(|name, _| there(name));
    }

    /// What a registration leads to could not be written on it.
    pub(super) fn give_up(&mut self, name: &str) {
        if let Some(claim) = self.of.get_mut(name) {
            claim.uid = None;
        }
    }

    /// The registration leads to this cluster.
    pub(super) fn claim(&mut self, name: &str, uid: &str) -> Verdict {
        let mine = self.of.entry(name.into()).or_default();
        let written = mine.uid.as_deref() == Some(uid);
        let rank = |name: &str, claim: &Claim| (claim.since.clone(), Box::<str>::from(name));
        let my_rank = rank(name, mine);
        let others = self
            .of
            .iter()
            .filter(|(other, claim)| &***other != name && claim.uid.as_deref() == Some(uid));
        let mut better = others.filter(|(other, claim)| !written || rank(other, claim) < my_rank);
        if let Some((other, _)) = better.next() {
            return Verdict::Another(other.clone());
        }
        if written {
            return Verdict::Stands;
        }
        if let Some(mine) = self.of.get_mut(name) {
            mine.uid = Some(uid.into());
        }
        Verdict::Write
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn see(claims: &mut Claims, name: &str, second: u8, uid: Option<&str>) {
        let annotations = uid.map_or(Value::Null, |uid| json!({CLUSTER_UID: uid}));
        let cluster = json!({"spec": {}, "metadata": {
            "name": name, "annotations": annotations,
            "creationTimestamp": format!("2026-01-01T00:00:0{second}Z"),
        }});
        claims.see(name, &serde_json::from_value(cluster).expect("a cluster"));
    }

    #[test]
    fn a_registration_that_was_made_again_has_nothing_written_on_it() {
        let mut claims = Claims::default();
        let seen = |claims: &mut Claims, uid: &str| {
            let cluster = json!({"spec": {}, "metadata": {"name": "old", "uid": uid}});
            claims.see("old", &serde_json::from_value(cluster).expect("a cluster"));
        };
        seen(&mut claims, "1");
        assert_eq!(claims.claim("old", "east"), Verdict::Write);
        seen(&mut claims, "1");
        assert_eq!(claims.claim("old", "east"), Verdict::Stands);
        seen(&mut claims, "2");
        assert_eq!(claims.claim("old", "east"), Verdict::Write);
    }

    #[test]
    fn a_cluster_belongs_to_whoever_had_it_first() {
        let mut claims = Claims::default();
        see(&mut claims, "old", 1, None);
        see(&mut claims, "new", 2, None);
        assert_eq!(claims.claim("new", "east"), Verdict::Write);
        assert_eq!(claims.claim("old", "east"), Verdict::Another("new".into()));
        assert_eq!(claims.claim("old", "west"), Verdict::Write);
        assert_eq!(claims.claim("new", "east"), Verdict::Stands);
        claims.keep(|name| name != "new");
        see(&mut claims, "new", 3, None);
        assert_eq!(claims.claim("old", "east"), Verdict::Write, "it leads elsewhere now");
        assert_eq!(claims.claim("new", "west"), Verdict::Write);
    }

    #[test]
    fn what_is_written_counts_though_its_cluster_cannot_be_reached() {
        let mut claims = Claims::default();
        see(&mut claims, "one", 2, Some("east"));
        see(&mut claims, "two", 1, None);
        assert_eq!(claims.claim("two", "east"), Verdict::Another("one".into()));
        assert_eq!(claims.claim("one", "east"), Verdict::Stands);
    }

    #[test]
    fn of_a_registration_and_its_copy_the_older_counts() {
        let mut claims = Claims::default();
        see(&mut claims, "b", 1, Some("east"));
        see(&mut claims, "a", 2, Some("east"));
        see(&mut claims, "c", 1, Some("east"));
        assert_eq!(claims.claim("a", "east"), Verdict::Another("b".into()));
        assert_eq!(claims.claim("c", "east"), Verdict::Another("b".into()), "the name breaks ties");
        assert_eq!(claims.claim("b", "east"), Verdict::Stands);
    }
}
